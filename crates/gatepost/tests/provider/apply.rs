//! `apply`: what is written, what is not, and what is said about it.

use gatepost_testkit::servers::Primary;

use super::bed::{Bed, world};

#[test]
fn records_and_markers_are_written_and_nothing_else_is_touched() {
    let Some(bed) = Bed::new() else { return };
    let before = bed.zone();
    let answer = bed.run("apply", &world("192.0.2.10", &["www.example.org", "*.shop.example.org"]));
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert_eq!(bed.addresses("www.example.org"), ["192.0.2.10"]);
    assert_eq!(bed.addresses("*.shop.example.org"), ["192.0.2.10"]);
    let after = bed.zone();
    assert!(before.iter().all(|line| after.contains(line)), "{after:?}");
    assert_eq!(after.len(), before.len() + 4, "{after:?}");
    let again = bed.run("apply", &world("192.0.2.10", &["www.example.org", "*.shop.example.org"]));
    assert!(again.output.contains(": nothing to write, 0 held"), "{}", again.output);
    assert_eq!((again.exit, bed.zone(), bed.updates()), (0, after, bed.updates()));
}

#[test]
fn a_change_of_address_is_one_update_and_a_detached_name_goes() {
    let Some(bed) = Bed::new() else { return };
    assert_eq!(bed.run("apply", &world("192.0.2.10", &["a.example.org", "b.example.org"])).exit, 0);
    let (exit, plan) = bed.json("apply", &world("192.0.2.11", &["a.example.org"]));
    assert_eq!(exit, 0);
    let verbs: Vec<_> =
        plan["steps"].as_array().unwrap().iter().map(|s| (&s["verb"], &s["name"], &s["outcome"])).collect();
    let row = |verb: &str, name: &str| (verb.to_owned(), name.to_owned());
    let found: Vec<_> = verbs.iter().map(|(v, n, _)| row(v.as_str().unwrap(), n.as_str().unwrap())).collect();
    assert_eq!(found, [row("update", "a.example.org"), row("delete", "b.example.org")]);
    assert!(verbs.iter().all(|(_, _, outcome)| *outcome == "written"));
    assert_eq!(bed.addresses("a.example.org"), ["192.0.2.11"]);
    assert!(!bed.zone().iter().any(|line| line.contains("b.example.org")), "its marker goes with it");
}

#[test]
fn only_the_plan_that_was_asked_for_is_written() {
    let Some(bed) = Bed::new() else { return };
    let world = world("192.0.2.10", &["www.example.org"]);
    let digest = bed.json("plan", &world).1["digest"].as_str().unwrap().to_owned();
    let before = bed.zone();
    let other = "0123456789abcdef";
    let answer = bed.run(&format!("apply --plan {other}"), &world);
    assert_eq!((answer.exit, bed.zone()), (3, before.clone()));
    for part in ["plan-stale", &digest, other] {
        assert!(answer.errors.contains(part), "no {part} in {}", answer.errors);
    }
    let (exit, json) = bed.json(&format!("apply --plan {other}"), &world);
    assert_eq!((exit, &json["refused"]["reason"], &json["digest"]), (3, &"plan-stale".into(), &digest.as_str().into()));
    bed.server.edit("example.org", &["update add www.example.org 60 A 192.0.2.99"]).unwrap();
    assert_eq!(bed.run(&format!("apply --plan {digest}"), &world).exit, 3, "somebody took the name meanwhile");
    assert_eq!(bed.addresses("www.example.org"), ["192.0.2.99"]);
    bed.server.edit("example.org", &["update delete www.example.org A"]).unwrap();
    assert_eq!(bed.run(&format!("apply --plan {}", &digest[..8]), &world).exit, 0);
    assert_eq!(bed.addresses("www.example.org"), ["192.0.2.10"]);
}

#[test]
fn a_dry_run_sends_nothing_that_changes_anything() {
    let Some(bed) = Bed::new() else { return };
    let before = bed.zone();
    let answer = bed.run("apply --dry-run", &world("192.0.2.10", &["www.example.org"]));
    assert_eq!(answer.exit, 0, "{}", answer.errors);
    assert!(answer.output.contains("nothing was written (--dry-run)"), "{}", answer.output);
    assert_eq!((bed.zone(), bed.updates()), (before, 0));
}

#[test]
fn one_refused_record_does_not_keep_the_others_back_and_is_told() {
    let primary = Primary { refused: vec!["b.example.org".to_owned()], ..Primary::default() };
    let Some(bed) = Bed::with(primary) else { return };
    let world = world("192.0.2.10", &["a.example.org", "b.example.org", "c.example.org"]);
    let (exit, plan) = bed.json("apply", &world);
    assert_eq!(exit, 4);
    let outcomes: Vec<_> = plan["steps"].as_array().unwrap().iter().map(|step| step["outcome"].clone()).collect();
    assert_eq!(outcomes, ["written", "failed", "written"]);
    let error = plan["steps"][1]["error"].as_str().unwrap();
    assert!(error.contains("REFUSED") && error.contains("b.example.org"), "{error}");
    assert_eq!(bed.addresses("c.example.org"), ["192.0.2.10"]);
    let answer = bed.run("apply", &world);
    assert_eq!(answer.exit, 4);
    assert!(answer.output.contains("0 of 1 change written, 1 failed"), "{}", answer.output);
}

#[test]
fn policies_keep_what_they_do_not_allow() {
    let Some(bed) = Bed::new() else { return };
    assert_eq!(bed.run("apply", &world("192.0.2.10", &["a.example.org", "b.example.org"])).exit, 0);
    let next = world("192.0.2.11", &["a.example.org", "c.example.org"]);
    assert_eq!(bed.run("apply --policy create-only", &next).exit, 0);
    assert_eq!([bed.addresses("a.example.org"), bed.addresses("c.example.org")], [["192.0.2.10"], ["192.0.2.11"]]);
    assert_eq!(bed.run("apply --policy upsert-only", &next).exit, 0);
    assert_eq!([bed.addresses("a.example.org"), bed.addresses("b.example.org")], [["192.0.2.11"], ["192.0.2.10"]]);
    assert_eq!(bed.run("apply --policy sync", &next).exit, 0);
    assert!(bed.addresses("b.example.org").is_empty());
}

#[test]
fn types_that_are_not_managed_are_left_out() {
    let Some(bed) = Bed::new() else { return };
    let world = world("192.0.2.10", &["a.example.org"])
        .replace("{type: IPAddress", "{type: IPAddress, value: \"2001:db8::1\"}, {type: IPAddress");
    assert_eq!(bed.run("apply --exclude-record-types AAAA", &world).exit, 0);
    assert_eq!(bed.addresses("a.example.org"), ["192.0.2.10"]);
    assert_eq!(bed.run("apply --rfc2136-min-ttl 10m", &world).exit, 0);
    assert_eq!(bed.addresses("a.example.org"), ["192.0.2.10", "2001:db8::1"]);
}

#[test]
fn a_file_that_cannot_be_read_deletes_nothing() {
    let Some(bed) = Bed::new() else { return };
    assert_eq!(bed.run("apply", &world("192.0.2.10", &["a.example.org", "b.example.org"])).exit, 0);
    let half = world("192.0.2.10", &["a.example.org"]) + "---\nkind: [unclosed\n";
    let answer = bed.run("apply", &half);
    assert!(answer.output.contains("source-unknown") && answer.errors.contains("syntax-error"), "{answer:?}");
    assert_eq!(bed.addresses("b.example.org"), ["192.0.2.10"]);
}

/// Profile external-dns: what competes for a name is settled as external-dns does, and an empty target is never written.
#[test]
fn profile_external_dns_writes_one_of_several_and_no_empty_target() {
    let Some(bed) = Bed::new() else { return };
    let status = "status: {parents: [{parentRef: {name: edge}, controllerName: example.org/gateway, conditions: [{type: Accepted, status: \"True\", reason: Accepted}]}]}\n";
    let objects = world("192.0.2.10", &["a.example.org"]).replace(
        "metadata: {namespace: infra, name: edge}",
        "metadata: {namespace: infra, name: edge, annotations: {external-dns.kubernetes.io/target: \"192.0.2.10,\"}}",
    ) + status;
    let answer = bed.run("apply --profile external-dns", &objects);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert_eq!(bed.addresses("a.example.org"), ["192.0.2.10"]);
    let moved = objects.replace("192.0.2.10", "192.0.2.11");
    assert_eq!(bed.run("apply --profile external-dns", &moved).exit, 0);
    assert_eq!(bed.addresses("a.example.org"), ["192.0.2.11"]);
    let only_empty = objects.replace("192.0.2.10,", ",");
    let answer = bed.run("apply --profile external-dns", &only_empty);
    assert!(answer.output.contains("target-invalid"), "{}{}", answer.output, answer.errors);
    assert_eq!(bed.addresses("a.example.org"), ["192.0.2.11"]);
}
