//! What a provider would make of the desired records, asked before they are compared with what is there.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::Str;
use gatepost_core::publication::Record;

use super::Webhook;
use super::client::Body;
use super::endpoint::{self, Endpoint, Key};
use crate::provider::Result;

impl Webhook {
    /// The records as the webhook would keep them. What it leaves out stays as it was: only a write may refuse it, and
    /// nothing is ever deleted because an answer lacks it.
    pub(super) async fn adjust_records(&self, records: Vec<Record>) -> Result<Vec<Record>> {
        self.filter().await?;
        if records.is_empty() {
            return Ok(records);
        }
        let endpoints: Vec<Endpoint> = records.iter().map(Endpoint::of_record).collect();
        let body = serde_json::to_vec(&endpoints).map_err(|error| self.client.wrong(error.to_string()))?;
        let answer = self.client.ask("POST", "adjustendpoints", Body::Json(body)).await?;
        answer.expect(200)?;
        answer.expect_type()?;
        let adjusted = endpoint::parse_list(&answer.body);
        let adjusted = adjusted.map_err(|cause| self.client.wrong(format!("POST /adjustendpoints: {cause}")))?;
        merge(records, adjusted).map_err(|cause| self.client.wrong(format!("POST /adjustendpoints: {cause}")))
    }
}

/// Carries what came back over to the records it came from; a new record belongs to the first one of its name.
fn merge(records: Vec<Record>, adjusted: Vec<Endpoint>) -> std::result::Result<Vec<Record>, String> {
    let keys: BTreeMap<Key, usize> =
        records.iter().enumerate().rev().map(|(at, record)| (Endpoint::of_record(record).key(), at)).collect();
    let mut merged = records;
    let mut added = Vec::new();
    for endpoint in adjusted {
        match keys.get(&endpoint.key()) {
            Some(&at) => carry_over(&endpoint, &mut merged[at]),
            None => added.push(addition(&endpoint, &merged)?),
        }
    }
    merged.append(&mut added);
    merged.sort_by(|a, b| a.rank().cmp(&b.rank()));
    Ok(merged)
}

fn addition(endpoint: &Endpoint, records: &[Record]) -> std::result::Result<Record, String> {
    let name = endpoint.name();
    let first = records.iter().find(|record| record.name.eq_ignore_ascii_case(&name));
    let first = first.ok_or_else(|| format!("it has a name that was not asked about: {name}"))?;
    let kind =
        endpoint.made().ok_or_else(|| format!("{name} has a type that is not made here: {}", endpoint.record_type))?;
    let set_identifier = Some(endpoint.set_identifier.as_str().into()).filter(|id: &Str| !id.is_empty());
    let mut record = Record { kind, set_identifier, ..first.clone() };
    carry_over(endpoint, &mut record);
    Ok(record)
}

fn carry_over(endpoint: &Endpoint, record: &mut Record) {
    if !endpoint.targets.is_empty() {
        let targets: BTreeSet<Str> = endpoint.targets.iter().map(|target| target.as_str().into()).collect();
        record.targets = targets.into_iter().collect();
    }
    record.ttl = endpoint.ttl();
    record.provider_specific = endpoint.properties();
}
