//! The same answers first: both programs publish the same records for a world, or nothing is timed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::cost::output;
use super::{Outcome, peer};

/// Compares what both publish for a folder; how many records there are.
pub(super) fn same(folder: &Path) -> Outcome<usize> {
    let theirs: Vec<Value> = peer::records(folder)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let plan: Value = serde_json::from_str(&plan(folder)?)?;
    let ours = plan["records"].as_array().ok_or("the plan has no records")?;
    let (theirs, ours): (Vec<String>, Vec<String>) = (rows(&theirs), rows(ours));
    if theirs == ours {
        return Ok(ours.len());
    }
    let (left, right): (BTreeSet<_>, BTreeSet<_>) = (theirs.iter().collect(), ours.iter().collect());
    let some = |only: &BTreeSet<&String>, of: &BTreeSet<&String>| {
        only.difference(of).take(3).map(|row| format!("  {row}\n")).collect::<String>()
    };
    let message = format!(
        "external-dns gives {} records and Gatepost {}.\nOnly external-dns:\n{}Only Gatepost:\n{}",
        theirs.len(),
        ours.len(),
        some(&left, &right),
        some(&right, &left)
    );
    Err(message.into())
}

fn plan(folder: &Path) -> Outcome<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
    command.args(["plan", "--profile", "external-dns", "--gateway-listener-sets", "-o", "json", "-f"]).arg(folder);
    output(command)
}

/// Records as sorted texts of everything that a DNS server would see.
fn rows(records: &[Value]) -> Vec<String> {
    let mut rows: Vec<String> = records.iter().map(row).collect();
    rows.sort();
    rows
}

fn row(record: &Value) -> String {
    let sorted = |field: &str| {
        let mut values: Vec<String> = record[field].as_array().into_iter().flatten().map(Value::to_string).collect();
        values.sort();
        values
    };
    format!(
        "{} {} {:?} ttl {} set {} {:?}",
        record["name"],
        record["type"],
        sorted("targets"),
        record["ttl"].as_u64().unwrap_or_default(),
        record["setIdentifier"].as_str().unwrap_or_default(),
        sorted("providerSpecific")
    )
}
