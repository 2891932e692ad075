//! Whose records are whose: section C of the scorecard, with controllers.

use gatepost_testkit::servers::kube::Setup;
use gatepost_testkit::{Failed, Trial};

use super::bed::{Controller, accept, addresses, bind, cluster, route, trial, until, zone_comes_to, zone_stays};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("scenario 30: two clusters with one owner id do not fight", same_owner),
        trial("scenario 31: of two owners the first keeps the name", two_owners),
        trial("scenario 32: a record whose marker is gone is kept and not written again", marker_gone),
        trial("scenario 33: a forged marker does not make a record ours to delete", forged),
        trial("scenario 7: everything else in the zone stays as it is", everything_else),
        trial("scenario 34: garbage where markers stand harms nobody", garbage),
        trial("scenario 35: another owner id takes nothing over by itself", other_id),
        trial("scenario 36: what external-dns made beside us is not touched", beside_external_dns),
        trial("scenario 37: a record whose marker has no room is not written either", markers_without_room),
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
    zone_stays(&zone, &["a.example.org 192.0.2.1"], &[&first, &second]);
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
    zone_stays(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    Ok(())
}

fn forged() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let marker = "update add a-mail.example.org 300 TXT \"heritage=external-dns,external-dns/owner=default\"";
    zone.edit("example.org", &["update add mail.example.org 300 A 192.0.2.99", marker])?;
    route(&cluster, "a", "a.example.org")?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
    zone_comes_to(&zone, &["a.example.org 192.0.2.1", "mail.example.org 192.0.2.99"], &[&controller]);
    zone_stays(&zone, &["a.example.org 192.0.2.1", "mail.example.org 192.0.2.99"], &[&controller]);
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
    zone_stays(&zone, &all, &[&controller]);
    controller.says("record-owned-by-other");
    Ok(())
}

/// The zone without what we make: our fence, and the names of our routes with their markers.
fn others(zone: &gatepost_testkit::servers::DnsServer) -> Vec<String> {
    let lines = zone.dump("example.org").unwrap_or_default();
    lines.into_iter().filter(|line| !line.starts_with("_gatepost-") && !line.contains("mine")).collect()
}

fn everything_else() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    zone.edit(
        "example.org",
        &[
            "update add example.org 300 A 192.0.2.80",
            "update add example.org 300 MX 10 mail.example.org",
            "update add example.org 300 TXT \"v=spf1 -all\"",
            "update add mail.example.org 300 A 192.0.2.25",
            "update add sub.example.org 300 NS ns.sub.example.org",
            "update add *.wild.example.org 300 A 192.0.2.81",
            "update add _sip._tcp.example.org 300 SRV 1 1 5060 mail.example.org",
        ],
    )?;
    let before = others(&zone);
    for name in ["mine1", "mine2"] {
        route(&cluster, name, &format!("{name}.example.org"))?;
    }
    route(&cluster, "clash", "mail.example.org")?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
    controller.says("record-unmanaged");
    until("both are there", || zone_has(&zone, "mine2"), || controller.log());
    cluster.delete("httproute/mine1", "shop")?;
    cluster.delete("httproute/clash", "shop")?;
    until("one goes", || !zone_has(&zone, "mine1"), || controller.log());
    assert_eq!(others(&zone), before);
    Ok(())
}

fn zone_has(zone: &gatepost_testkit::servers::DnsServer, name: &str) -> bool {
    addresses(zone).iter().any(|line| line.starts_with(name))
}

fn garbage() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let long = "x".repeat(250);
    let lines = [
        "update add a-one.example.org 300 TXT \"heritage=external-dns,external-dns/owner=\"".to_owned(),
        format!("update add a-two.example.org 300 TXT \"{long}\" \"{long}\" \"{long}\""),
        "update add a-three.example.org 300 TXT \"\\255\\254\\000\"".to_owned(),
        "update add a-four.example.org 300 TXT \"heritage=external-dns,external-dns/owner=default,external-dns/version=99,external-dns/owner=again\"".to_owned(),
        "update add four.example.org 300 A 192.0.2.44".to_owned(),
    ];
    zone.edit("example.org", &lines.iter().map(String::as_str).collect::<Vec<_>>())?;
    for name in ["one", "two", "three", "mine"] {
        route(&cluster, name, &format!("{name}.example.org"))?;
    }
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
    until("ours is there", || zone_has(&zone, "mine"), || controller.log());
    controller.passes_again(|| ());
    assert!(zone_has(&zone, "four.example.org 192.0.2.44"), "{:?}", addresses(&zone));
    controller.is_ready();
    Ok(())
}

fn other_id() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    route(&cluster, "a", "a.example.org")?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync", "--txt-owner-id", "old"]);
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    controller.stop();
    accept(&cluster, "edge", &["192.0.2.2"])?;
    let words = ["--policy", "sync", "--txt-owner-id", "new"];
    let controller = Controller::on_bind(&cluster, &zone, &words);
    controller.says("record-owned-by-other");
    zone_stays(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    controller.stop();
    let words = [&words[..], &["--migrate-from-txt-owner", "old"]].concat();
    let controller = Controller::on_bind(&cluster, &zone, &words);
    zone_comes_to(&zone, &["a.example.org 192.0.2.2"], &[&controller]);
    Ok(())
}

/// A hostname of exactly this length, in labels of forty.
fn deep(length: usize) -> String {
    let front: String = (1..=length - ".example.org".len()).map(|i| if i % 41 == 0 { '.' } else { 'd' }).collect();
    front + ".example.org"
}

/// Checks that every record has its marker and every marker its record, as the name server has them.
fn pairs(zone: &gatepost_testkit::servers::DnsServer, prefix: &str) -> Vec<String> {
    let lines = zone.dump("example.org").unwrap_or_default();
    let name = |line: &String| line.split(' ').next().unwrap_or_default().trim_end_matches('.').to_owned();
    let marks = lines.iter().filter(|line| line.contains("heritage=external-dns")).map(name);
    let mut records: Vec<String> = addresses(zone).iter().map(name).collect();
    let mut marked: Vec<String> = marks.map(|mark| mark.strip_prefix(prefix).unwrap_or(&mark).to_owned()).collect();
    records.sort();
    marked.sort();
    assert_eq!(records, marked);
    records
}

fn markers_without_room() -> Result<(), Failed> {
    let (cluster, plain, prefixed) = (cluster(&Setup::default())?, bind()?, bind()?);
    let apex =
        "  - {name: apex, port: 80, protocol: HTTP, hostname: example.org, allowedRoutes: {namespaces: {from: All}}}\n";
    let gateway = super::bed::WORLD.rsplit("---\n").next().unwrap_or_default();
    cluster.apply(&format!("{gateway}{apex}"))?;
    accept(&cluster, "edge", &["192.0.2.1"])?;
    let label = |length: usize| format!("{}.example.org", "x".repeat(length));
    let names =
        [label(61), label(62), label(63), deep(251), deep(253), "*.wild.example.org".into(), "example.org".into()];
    for (number, name) in names.iter().enumerate() {
        route(&cluster, &format!("r{number}"), name)?;
    }
    let sorted = |places: &[usize]| {
        let mut names: Vec<String> = places.iter().map(|place| names[*place].clone()).collect();
        names.sort();
        names
    };
    // `a-` before the first label: one of 61 has room for it, and so has a name of 251.
    let controller = Controller::on_bind(&cluster, &plain, &["--policy", "sync"]);
    let fitting = sorted(&[0, 3, 5]);
    until("what fits is there", || addresses(&plain).len() == fitting.len(), || controller.log());
    controller.says("marker-not-possible");
    controller.passes_again(|| ());
    assert_eq!(pairs(&plain, "a-"), fitting);
    let told = || cluster.kubectl(&["describe", "httproute", "r2", "-n", "shop"]).unwrap_or_default();
    until("the route says why", || told().contains("marker-not-possible"), told);
    // A label of its own: only the longest names have no room.
    let words = ["--policy", "sync", "--lease", "other", "--txt-prefix", "%{record_type}-own."];
    let controller = Controller::on_bind(&cluster, &prefixed, &words);
    let fitting = sorted(&[0, 1, 2, 5, 6]);
    until("what fits is there", || addresses(&prefixed).len() == fitting.len(), || controller.log());
    controller.says("marker-not-possible");
    assert_eq!(pairs(&prefixed, "a-own."), fitting);
    Ok(())
}
