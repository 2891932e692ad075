//! `webhook-server`: our providers behind the protocol, used by our own client of it.

use super::bed::{Bed, run, world};
use super::running::{Running, get};

#[test]
fn a_server_of_updates_is_reached_through_the_protocol() {
    let Some(bed) = Bed::new() else { return };
    let (_, flags) = bed.flags().split_once("--provider").map(|(_, rest)| ((), format!("--provider{rest}"))).unwrap();
    let flags = flags.replace(" --txt-owner-id me", "");
    let server = Running::start(&format!("webhook-server --webhook-addr 127.0.0.1:0 {flags}"));
    let address = server.address("webhook");
    assert!(get(address, "/healthz").ends_with("ok\n"));
    assert!(get(address, "/").contains("\"include\":[\"example.org\"]"));
    let client = format!("--provider webhook --webhook-provider-url http://{address} --txt-owner-id me");
    let before = bed.zone();
    let first = world("192.0.2.10", &["www.example.org", "old.example.org"]);
    let answer = run(&format!("apply {client}"), &first);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert_eq!(bed.addresses("www.example.org"), ["192.0.2.10"]);
    assert_eq!(run(&format!("plan --expect-no-changes {client}"), &first).exit, 0);
    assert_eq!(run(&format!("apply {client}"), &world("192.0.2.11", &["www.example.org"])).exit, 0);
    assert_eq!(bed.addresses("www.example.org"), ["192.0.2.11"]);
    assert!(bed.addresses("old.example.org").is_empty());
    let after = bed.zone();
    assert!(before.iter().all(|line| after.contains(line)), "what others wrote stays: {after:?}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn the_embedded_server_answers_for_what_comes_through_the_protocol() {
    let server = Running::start(
        "webhook-server --webhook-addr 127.0.0.1:0 --provider embedded --dns-addr 127.0.0.1:0 --zone example.org",
    );
    let (address, dns) = (server.address("webhook"), server.address("dns"));
    let client = format!("--provider webhook --webhook-provider-url http://{address}");
    let world = world("192.0.2.10", &["www.example.org"]);
    let answer = run(&format!("apply {client}"), &world);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    let answer = run(&format!("verify {client} --server {dns}"), &world);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn what_is_missing_is_named() {
    use gatepost_testkit::program::{Program, words};
    let rows = [
        ("webhook-server", "--provider"),
        ("webhook-server --provider embedded --dns-addr 127.0.0.1:0", "--zone"),
        ("webhook-server --provider rfc2136", "--rfc2136-host"),
        ("webhook-server --provider webhook --webhook-addr 192.0.2.1:1", "--webhook-addr"),
    ];
    for (line, named) in rows {
        let answer = Program::at(env!("CARGO_BIN_EXE_gatepost")).run(&words(line), "").unwrap();
        assert_eq!(answer.exit, 2, "{line}: {}", answer.errors);
        assert!(answer.errors.contains(named), "{line}: {}", answer.errors);
    }
}
