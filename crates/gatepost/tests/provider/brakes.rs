//! Deletes that look like a mistake are held until somebody confirms them.

use super::bed::{Bed, world};

fn names(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("n{i}.example.org")).collect()
}

fn many(count: usize) -> String {
    let names = names(count);
    world("192.0.2.10", &names.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_third_of_the_zone_goes_only_when_confirmed() {
    let Some(bed) = Bed::new() else { return };
    assert_eq!(bed.run("apply", &many(30)).exit, 0);
    let shown = bed.run("plan", &many(15));
    assert_eq!(shown.exit, 0);
    assert!(shown.output.contains("15 held, 15 of them by a safety brake"), "{}", shown.output);
    assert!(shown.output.contains("… and 5 more of too-many-deletes"), "{}", shown.output);
    let answer = bed.run("apply", &many(15));
    assert_eq!(answer.exit, 3);
    assert!(answer.errors.contains("--confirm-deletes"), "{}", answer.errors);
    assert_eq!(bed.addresses("n29.example.org"), ["192.0.2.10"]);
    let (exit, json) = bed.json("apply", &many(15));
    assert_eq!((exit, &json["held"][0]["isBrake"]), (3, &true.into()));
    let digest = bed.json("plan --confirm-deletes", &many(15)).1["digest"].as_str().unwrap().to_owned();
    assert_eq!(bed.run(&format!("apply --plan {digest}"), &many(15)).exit, 3, "confirming is part of the plan");
    assert_eq!(bed.run(&format!("apply --confirm-deletes --plan {digest}"), &many(15)).exit, 0);
    assert!(bed.addresses("n29.example.org").is_empty());
    assert_eq!(bed.addresses("n0.example.org"), ["192.0.2.10"]);
}

#[test]
fn an_empty_source_deletes_nothing_by_itself() {
    let Some(bed) = Bed::new() else { return };
    assert_eq!(bed.run("apply", &many(2)).exit, 0);
    for objects in ["", &world("192.0.2.10", &[])] {
        assert_eq!(bed.run("apply", objects).exit, 3);
    }
    let filtered = bed.run("apply --label-filter nobody=here", &many(2));
    assert!(filtered.exit == 3 && filtered.output.contains("source-empty"), "{}", filtered.output);
    assert_eq!(bed.addresses("n1.example.org"), ["192.0.2.10"]);
    assert_eq!(bed.run("apply --confirm-deletes", "").exit, 0);
    assert!(bed.addresses("n1.example.org").is_empty());
}

#[test]
fn a_gateway_that_lost_its_addresses_keeps_its_records() {
    let Some(bed) = Bed::new() else { return };
    assert_eq!(bed.run("apply", &many(2)).exit, 0);
    let blinking = many(2).replace("status: {addresses: [{type: IPAddress, value: \"192.0.2.10\"}]}", "status: {}");
    let answer = bed.run("apply --confirm-deletes", &blinking);
    assert!(answer.output.contains("gateway-without-address"), "{}", answer.output);
    assert_eq!(bed.addresses("n1.example.org"), ["192.0.2.10"]);
}

/// Nine at a time are few; what was deleted a short while ago counts, where runs remember.
#[test]
fn many_small_deletes_are_one_large_one_for_who_remembers() {
    let Some(bed) = Bed::new() else { return };
    let state = format!("--state-dir '{}'", bed.folder.path().join("state").display());
    assert_eq!(bed.run(&format!("apply {state}"), &many(30)).exit, 0);
    assert_eq!(bed.run(&format!("apply {state}"), &many(22)).exit, 0);
    assert_eq!(bed.run(&format!("apply {state}"), &many(14)).exit, 3);
    assert_eq!(bed.addresses("n20.example.org"), ["192.0.2.10"]);
}
