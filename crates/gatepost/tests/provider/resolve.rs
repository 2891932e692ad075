//! `--resolve-targets` (D24): addresses where no CNAME may stand, and what is kept when they cannot be found out.

use std::time::{Duration, Instant};

use super::bed::{Bed, run, world};
use super::running::{Running, get};

const TOP: &str = "--txt-prefix %{record_type}-owner.";

#[test]
fn a_cname_stands_where_it_may_and_is_held_where_it_may_not() {
    let Some(bed) = Bed::new() else { return };
    let world = world("lb.example.net", &["example.org", "www.example.org"]);
    let answer = bed.run(&format!("apply {TOP}"), &world);
    assert_eq!(answer.exit, 0, "{}", answer.errors);
    for part in ["cname-not-possible", "--resolve-targets", "the top of its zone"] {
        assert!(answer.output.contains(part), "no {part} in {}", answer.output);
    }
    assert!(bed.zone().iter().any(|line| line == "www.example.org. 300 in cname lb.example.net."), "{:?}", bed.zone());
    assert!(bed.addresses("example.org").is_empty());
}

#[test]
fn addresses_are_published_followed_and_kept() {
    let Some(bed) = Bed::new() else { return };
    let world = world("lb.example.net", &["example.org", "mail.example.org", "www.example.org"]);
    let resolving = format!("apply {TOP} --resolve-targets --resolver {}", bed.server.address);
    let answer = bed.run(&resolving, &world);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert_eq!(bed.addresses("example.org"), ["198.51.100.1", "2001:db8::51"]);
    assert!(bed.zone().iter().any(|line| line == "www.example.org. 300 in cname lb.example.net."));
    assert_eq!(bed.addresses("mail.example.org"), ["192.0.2.25"], "somebody else's address stays");
    bed.server.edit("example.net", &["update add lb.example.net 60 A 198.51.100.2"]).unwrap();
    assert_eq!(bed.run(&resolving, &world).exit, 0);
    assert_eq!(bed.addresses("example.org"), ["198.51.100.1", "198.51.100.2", "2001:db8::51"]);
    let gone = resolving.replace(&bed.server.address.to_string(), "127.0.0.1:1");
    let answer = bed.run(&format!("{gone} --confirm-deletes"), &world);
    assert!(answer.output.contains("target-unresolved"), "{}{}", answer.output, answer.errors);
    assert_eq!(bed.addresses("example.org"), ["198.51.100.1", "198.51.100.2", "2001:db8::51"]);
    bed.server.edit("example.net", &["update delete lb.example.net"]).unwrap();
    let answer = bed.run(&format!("{resolving} --confirm-deletes"), &world);
    assert!(answer.output.contains("target-unresolved") && answer.output.contains("NXDOMAIN"), "{}", answer.output);
    assert_eq!(bed.addresses("example.org"), ["198.51.100.1", "198.51.100.2", "2001:db8::51"]);
}

#[test]
fn the_plan_shows_what_was_resolved() {
    let Some(bed) = Bed::new() else { return };
    let flags = format!("{TOP} --resolve-targets --resolver {}", bed.server.address);
    let (exit, plan) = bed.json(&format!("plan {flags}"), &world("lb.example.net", &["example.org"]));
    assert_eq!(exit, 0);
    let records: Vec<_> = plan["records"].as_array().unwrap().iter().map(|r| (&r["type"], &r["targets"][0])).collect();
    assert_eq!(records, [(&"A".into(), &"198.51.100.1".into()), (&"AAAA".into(), &"2001:db8::51".into())]);
}

#[test]
fn the_embedded_server_gets_addresses_too() {
    let Some(bed) = Bed::new() else { return };
    let state = bed.folder.path().join("state");
    let flags = format!(
        "--provider embedded --state-dir '{}' --zone example.org --resolve-targets --resolver {}",
        state.display(),
        bed.server.address
    );
    let world = world("lb.example.net", &["example.org"]);
    let answer = run(&format!("apply {flags}"), &world);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert!(answer.output.contains("+ example.org A 198.51.100.1"), "{}", answer.output);
    assert_eq!(run(&format!("plan --expect-no-changes {flags}"), &world).exit, 0, "it is kept for the next start");
}

/// `serve` asks again when the TTL of an answer has passed, though no file and no record has changed.
#[test]
fn addresses_are_refreshed_by_their_ttl() {
    let Some(bed) = Bed::new() else { return };
    bed.folder.file("objects/all.yaml", &world("soon.example.net", &["example.org"])).unwrap();
    let served = Running::start(&format!(
        "serve -f '{}' --http-addr 127.0.0.1:0 --dns-addr 127.0.0.1:0 --resolve-targets --resolver {}",
        bed.folder.path().join("objects").display(),
        bed.server.address
    ));
    let published = || get(served.address("http"), "/plan.json");
    assert!(published().contains("198.51.100.3"), "{}", published());
    let moved = ["update delete soon.example.net A", "update add soon.example.net 1 A 198.51.100.4"];
    bed.server.edit("example.net", &moved).unwrap();
    let end = Instant::now() + Duration::from_secs(120);
    while !published().contains("198.51.100.4") {
        assert!(Instant::now() < end, "the address never followed: {}", published());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(published().contains("198.51.100.3 becomes 198.51.100.4"), "{}", published());
}
