//! Whose records are whose: section C of the scorecard, with controllers.

use std::time::Duration;

use gatepost_testkit::servers::kube::Setup;
use gatepost_testkit::{Failed, Trial};

use super::bed::{Controller, accept, bind, cluster, route, trial, zone_comes_to, zone_stays};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("scenario 30: two clusters with one owner id do not fight", same_owner),
        trial("scenario 31: of two owners the first keeps the name", two_owners),
        trial("scenario 32: a record whose marker is gone is kept and not written again", marker_gone),
        trial("scenario 33: a forged marker does not make a record ours to delete", forged),
        trial("scenario 36: what external-dns made beside us is not touched", beside_external_dns),
    ]
}

/// Two clusters over one zone; the second has another address.
fn two(words: [&str; 2]) -> Result<(), Failed> {
    let (one, other, zone) = (cluster(&Setup::default())?, cluster(&Setup::default())?, bind()?);
    accept(&other, "edge", &["192.0.2.2"])?;
    route(&one, "a", "a.example.org")?;
    let flags = |owner| ["--policy", "sync", "--txt-owner-id", owner];
    let first = Controller::on_bind(&one, &zone, &flags(words[0]));
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&first]);
    route(&other, "a", "a.example.org")?;
    let second = Controller::on_bind(&other, &zone, &flags(words[1]));
    second.says(if words[0] == words[1] { "owner-twin" } else { "record-owned-by-other" });
    zone_stays(&zone, &["a.example.org 192.0.2.1"], Duration::from_secs(10));
    Ok(())
}

fn same_owner() -> Result<(), Failed> {
    two(["default", "default"])
}

fn two_owners() -> Result<(), Failed> {
    two(["one", "other"])
}

fn marker_gone() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    route(&cluster, "a", "a.example.org")?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    zone.edit("example.org", &["update delete a-a.example.org TXT", "update delete a.example.org TXT"])?;
    controller.says("record-unmanaged");
    cluster.delete("httproute/a", "shop")?;
    zone_stays(&zone, &["a.example.org 192.0.2.1"], Duration::from_secs(8));
    Ok(())
}

fn forged() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let marker = "update add a-mail.example.org 300 TXT \"heritage=external-dns,external-dns/owner=default\"";
    zone.edit("example.org", &["update add mail.example.org 300 A 192.0.2.99", marker])?;
    route(&cluster, "a", "a.example.org")?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
    zone_comes_to(&zone, &["a.example.org 192.0.2.1", "mail.example.org 192.0.2.99"], &[&controller]);
    zone_stays(&zone, &["a.example.org 192.0.2.1", "mail.example.org 192.0.2.99"], Duration::from_secs(8));
    controller.says("ownership-unproven");
    Ok(())
}

fn beside_external_dns() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let value = "\"heritage=external-dns,external-dns/owner=theirs,external-dns/resource=service/a/b\"";
    let lines = [
        "update add old.example.org 300 A 192.0.2.98".to_owned(),
        format!("update add old.example.org 300 TXT {value}"),
        "update add new.example.org 300 A 192.0.2.97".to_owned(),
        format!("update add a-new.example.org 300 TXT {value}"),
    ];
    zone.edit("example.org", &lines.iter().map(String::as_str).collect::<Vec<_>>())?;
    for name in ["old", "new", "mine"] {
        route(&cluster, name, &format!("{name}.example.org"))?;
    }
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
    let all = ["mine.example.org 192.0.2.1", "new.example.org 192.0.2.97", "old.example.org 192.0.2.98"];
    zone_comes_to(&zone, &all, &[&controller]);
    zone_stays(&zone, &all, Duration::from_secs(8));
    controller.says("record-owned-by-other");
    Ok(())
}
