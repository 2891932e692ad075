//! `plan` with a provider: steps, what is held, the digest, the exit status.

use super::bed::{Bed, run, world};

#[test]
fn a_plan_shows_steps_and_a_digest_and_writes_nothing() {
    let Some(bed) = Bed::new() else { return };
    let before = bed.zone();
    let (exit, plan) = bed.json("plan", &world("192.0.2.10", &["www.example.org"]));
    assert_eq!(exit, 0);
    let step = &plan["steps"][0];
    assert_eq!(
        (&step["verb"], &step["name"], &step["type"]),
        (&"create".into(), &"www.example.org".into(), &"A".into())
    );
    assert_eq!((&step["old"], &step["new"][0]), (&serde_json::Value::Null, &"192.0.2.10".into()));
    assert_eq!(step["because"], "HTTPRoute/infra/route-0 asks for it");
    assert!(step.get("outcome").is_none());
    assert!(step["markers"][0]["new"][0].as_str().unwrap().contains("external-dns/owner=me"), "{step}");
    assert_eq!(plan["digest"].as_str().unwrap().len(), 16);
    assert_eq!(plan["held"], serde_json::json!([]));
    assert_eq!((bed.zone(), bed.updates()), (before, 0));
}

#[test]
fn without_a_provider_there_are_no_steps() {
    let answer = run("plan -o json", &world("192.0.2.10", &["www.example.org"]));
    for key in ["\"steps\"", "\"held\"", "\"digest\""] {
        assert!(!answer.output.contains(key), "{}", answer.output);
    }
}

#[test]
fn the_text_says_what_and_why_and_how_to_go_on() {
    let Some(bed) = Bed::new() else { return };
    let answer = bed.run("plan", &world("192.0.2.10", &["www.example.org", "hand.example.org", "www.example.com"]));
    assert_eq!(answer.exit, 0, "{}", answer.errors);
    for part in [
        ": 1 to create, 0 to change, 0 to delete, 2 held\n",
        "  + www.example.org A 192.0.2.10  because HTTPRoute/infra/route-0 asks for it\n",
        "hand.example.org A: `hand.example.org` has A records without an ownership TXT record",
        "[GP0403 record-unmanaged]",
        "--adopt NAME",
        "no zone holds `www.example.com`; served: `example.org` [GP0401 zone-not-served]",
        "write it with `gatepost apply --plan ",
    ] {
        assert!(answer.output.contains(part), "no {part:?} in\n{}", answer.output);
    }
}

#[test]
fn markdown_shows_changes_and_what_is_held() {
    let Some(bed) = Bed::new() else { return };
    let answer = bed.run("plan -o markdown", &world("192.0.2.10", &["www.example.org", "hand.example.org"]));
    assert!(answer.output.contains("| `+ www.example.org A 192.0.2.10` |"), "{}", answer.output);
    assert!(answer.output.contains("| held | because |"), "{}", answer.output);
}

#[test]
fn expecting_no_changes_is_answered_by_the_status() {
    let Some(bed) = Bed::new() else { return };
    let world = world("192.0.2.10", &["www.example.org"]);
    assert_eq!(bed.run("plan --expect-no-changes", &world).exit, 1);
    assert_eq!(bed.run("apply", &world).exit, 0);
    for format in ["text", "json", "markdown", "zonefile"] {
        assert_eq!(bed.run(&format!("plan --expect-no-changes -o {format}"), &world).exit, 0, "{format}");
    }
    assert_eq!(bed.run("plan --expect-no-changes", "").exit, 1, "a brake holds a difference, and it is one");
}

#[test]
fn the_digest_is_that_of_what_would_be_done() {
    let Some(bed) = Bed::new() else { return };
    let digest = |objects: &str| bed.json("plan", objects).1["digest"].clone();
    let one = world("192.0.2.10", &["www.example.org"]);
    let before = digest(&one);
    assert_eq!(before, digest(&one));
    assert_ne!(before, digest(&world("192.0.2.11", &["www.example.org"])));
    bed.server.edit("example.org", &["update add other.example.org 60 A 192.0.2.99"]).unwrap();
    assert_eq!(before, digest(&one), "what others do elsewhere does not matter");
    bed.server.edit("example.org", &["update add www.example.org 60 A 192.0.2.99"]).unwrap();
    assert_ne!(before, digest(&one));
}
