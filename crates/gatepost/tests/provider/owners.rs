//! Whose a record is: other owners, other instances, records of nobody, sealed markers.

use super::bed::{Bed, run, world};

fn other_owner(bed: &Bed) -> String {
    bed.flags().replace("--txt-owner-id me", "--txt-owner-id you")
}

#[test]
fn the_records_of_another_owner_are_left_alone_until_they_are_migrated() {
    let Some(bed) = Bed::new() else { return };
    let (first, second) = (world("192.0.2.10", &["www.example.org"]), world("192.0.2.20", &["www.example.org"]));
    assert_eq!(bed.run("apply", &first).exit, 0);
    let answer = run(&format!("apply {}", other_owner(&bed)), &second);
    assert!(answer.output.contains("record-owned-by-other"), "{}", answer.output);
    assert_eq!(bed.addresses("www.example.org"), ["192.0.2.10"]);
    let answer = run(&format!("apply {} --migrate-from-txt-owner me", other_owner(&bed)), &second);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert_eq!(bed.addresses("www.example.org"), ["192.0.2.20"]);
    assert!(bed.zone().iter().any(|line| line.contains("owner=you")));
}

#[test]
fn records_of_nobody_are_adopted_only_by_name() {
    let Some(bed) = Bed::new() else { return };
    let world = world("192.0.2.10", &["hand.example.org"]);
    assert_eq!(bed.run("apply", &world).exit, 0);
    assert_eq!(bed.addresses("hand.example.org"), ["192.0.2.7"]);
    assert_eq!(bed.run("apply --adopt hand.example.org", &world).exit, 0);
    assert_eq!(bed.addresses("hand.example.org"), ["192.0.2.10"]);
    assert_eq!(bed.run("plan --expect-no-changes", &world).exit, 0, "from now on it is ours");
}

#[test]
fn two_instances_with_one_owner_id_stop_before_they_delete_each_other() {
    let Some(bed) = Bed::new() else { return };
    let state = |name: &str| format!("--state-dir '{}'", bed.folder.path().join(name).display());
    assert_eq!(bed.run(&format!("apply {}", state("one")), &world("192.0.2.10", &["a.example.org"])).exit, 0);
    let other = world("192.0.2.20", &["b.example.org"]);
    let answer = bed.run(&format!("apply --confirm-deletes {}", state("two")), &other);
    assert_eq!(answer.exit, 3, "{}", answer.output);
    assert!(answer.output.contains("owner-twin"), "{}", answer.output);
    assert_eq!((bed.addresses("a.example.org").len(), bed.addresses("b.example.org").len()), (1, 0));
    let answer = bed.run(&format!("apply --replace-instance {}", state("two")), &other);
    assert_ne!(answer.exit, 4, "{}{}", answer.output, answer.errors);
    assert_eq!(bed.addresses("b.example.org"), ["192.0.2.20"]);
    assert_eq!(bed.run(&format!("plan {}", state("two")), &other).exit, 0);
}

#[test]
fn markers_may_be_sealed_and_stand_elsewhere() {
    let Some(bed) = Bed::new() else { return };
    let key = bed.folder.file("key", "0123456789abcdef0123456789abcdef").unwrap();
    let flags = format!(
        "--txt-encrypt-enabled --txt-encrypt-aes-key-file '{key}' --txt-prefix %{{record_type}}-owner. --txt-wildcard-replacement any"
    );
    let names = ["www.example.org", "*.example.org", "example.org"];
    let world = world("192.0.2.10", &names);
    let answer = bed.run(&format!("apply {flags}"), &world);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    let zone = bed.zone();
    for marker in ["a-owner.www.example.org.", "a-owner.any.example.org.", "a-owner.example.org."] {
        assert!(zone.iter().any(|line| line.starts_with(marker)), "{marker}: {zone:?}");
    }
    assert!(!zone.iter().any(|line| line.contains("heritage")), "{zone:?}");
    assert_eq!(bed.run(&format!("plan --expect-no-changes {flags}"), &world).exit, 0);
    let unsealed =
        bed.run(&format!("apply {}", flags.replace("0123", "x").replace("--txt-encrypt-enabled", "")), &world);
    assert_eq!(unsealed.exit, 0, "with the key they are read, and written plain");
    let blind =
        bed.run("plan --txt-prefix %{record_type}-owner. --txt-wildcard-replacement any --expect-no-changes", &world);
    assert_eq!(blind.exit, 0, "{}", blind.output);
}

#[test]
fn without_a_registry_nothing_is_ever_deleted() {
    let Some(bed) = Bed::new() else { return };
    assert_eq!(bed.run("apply --registry noop", &world("192.0.2.10", &["a.example.org", "hand.example.org"])).exit, 0);
    assert_eq!([bed.addresses("a.example.org"), bed.addresses("hand.example.org")], [["192.0.2.10"], ["192.0.2.10"]]);
    assert_eq!(bed.run("apply --registry noop --confirm-deletes", &world("192.0.2.10", &[])).exit, 0);
    assert_eq!(bed.addresses("a.example.org"), ["192.0.2.10"]);
    assert!(!bed.zone().iter().any(|line| line.contains("heritage")));
}

#[test]
fn a_state_directory_has_one_writer_and_many_readers() {
    let Some(bed) = Bed::new() else { return };
    let state = bed.folder.path().join("state");
    bed.folder.file("objects/all.yaml", &world("192.0.2.10", &["a.example.org"])).unwrap();
    let objects = bed.folder.path().join("objects");
    let line = format!("serve -f '{}' --http-addr 127.0.0.1:0 {}", objects.display(), bed.flags());
    let served = super::running::Running::start(&format!("{line} --state-dir '{}'", state.display()));
    let world = world("192.0.2.10", &["a.example.org"]);
    let second = bed.run(&format!("apply --state-dir '{}'", state.display()), &world);
    assert_eq!(second.exit, 2, "{}", second.output);
    assert!(second.errors.contains("another run of gatepost"), "{}", second.errors);
    let reader = bed.run(&format!("plan --expect-no-changes --state-dir '{}'", state.display()), &world);
    assert_eq!(reader.exit, 0, "{}{}", reader.output, reader.errors);
    assert_eq!(served.stop(), Some(0));
    assert_eq!(bed.run(&format!("apply --state-dir '{}'", state.display()), &world).exit, 0);
}
