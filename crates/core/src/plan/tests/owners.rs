//! Whose records are: layouts, other owners, other instances under our owner id, forged and copied markers, adoption and transfer.

use super::model::*;
use crate::plan::layout::Layout;
use crate::plan::seal::SealKey;
use crate::plan::settings::TxtRegistry;
use crate::plan::{Instance, PlanSettings, text};
use crate::reason;

/// Name, type and values.
type Sets<'a> = (&'a str, &'a str, &'a [&'a str]);

fn www() -> TestIntent {
    TestIntent::of(&[record("www.example.com", &["192.0.2.1"])])
}

#[test]
fn what_external_dns_wrote_under_our_owner_id_is_ours_and_stays_as_it_is() {
    let marker = heritage("me");
    let model = Model::of(&[("www.example.com", "A", &["192.0.2.1"]), ("a-www.example.com", "TXT", &[&marker])]);
    let plan = model.plan(&www(), &settings());
    assert!(plan.steps.is_empty() && plan.held.is_empty(), "{plan:?}");
}

#[test]
fn every_layout_is_read() {
    let marker = heritage("me");
    let table = [
        (("", "", ""), "www.example.com", "a-www.example.com"),
        (("own.", "", ""), "www.example.com", "own.a-www.example.com"),
        (("", "-own", ""), "www.example.com", "a-www-own.example.com"),
        (("%{record_type}-own.", "", ""), "www.example.com", "a-own.www.example.com"),
        (("", "-%{record_type}", ""), "www.example.com", "www-a.example.com"),
        (("", "", "any"), "*.example.com", "a-any.example.com"),
        (("", "", ""), "*.example.com", "a-*.example.com"),
        (("%{record_type}-own.", "", ""), "example.com", "a-own.example.com"),
    ];
    for ((prefix, suffix, wildcard), name, place) in table {
        let layout = Layout::new(prefix, suffix, wildcard).unwrap();
        let settings = with(TxtRegistry { layout, ..registry() });
        let model = Model::of(&[(name, "A", &["192.0.2.9"]), (place, "TXT", &[&marker])]);
        let plan = model.plan(&TestIntent::of(&[record(name, &["192.0.2.1"])]), &settings);
        assert_eq!(verbs(&plan), [format!("update {name}")], "{place}");
        assert_eq!(&*plan.steps[0].markers[0].name, place);
    }
}

#[test]
fn the_oldest_layout_gets_its_typed_marker_and_goes_with_the_record() {
    let marker = heritage("me");
    let mut model = Model::of(&[("www.example.com", "A", &["192.0.2.1"]), ("www.example.com", "TXT", &[&marker])]);
    let plan = model.plan(&www(), &settings());
    assert_eq!(plan.steps[0].because, "its marker belongs to `a-www.example.com`");
    assert!(plan.steps[0].changes.is_empty());
    model.settle(&www(), &settings());
    assert_eq!(model.sets.len(), 2 + 3);
    // The name turns into a CNAME, which needs the bare marker gone.
    model.settle(&TestIntent::of(&[record("www.example.com", &["edge.example.net"])]), &settings());
    assert_eq!(model.sets.len(), 2 + 2 + 1, "the bare marker was not ours by itself: {model:?}");
}

#[test]
fn the_oldest_layout_says_nothing_about_ipv6() {
    let marker = heritage("me");
    let model = Model::of(&[("www.example.com", "AAAA", &["2001:db8::1"]), ("www.example.com", "TXT", &[&marker])]);
    let plan = model.plan(&TestIntent::of(&[record("www.example.com", &["2001:db8::2"])]), &settings());
    assert_eq!(held(&plan), ["www.example.com record-unmanaged"]);
}

#[test]
fn records_of_others_and_of_nobody_are_left_alone() {
    let other = heritage("other");
    let garbage = "\"heritage=external-dns,\\255\\254\"";
    let table: [(&str, &str); 4] = [
        (other.as_str(), "www.example.com record-owned-by-other"),
        ("\"v=spf1\"", "www.example.com record-unmanaged"),
        (garbage, "www.example.com record-unmanaged"),
        ("\"heritage=external-dns\"", "www.example.com record-owned-by-other"),
    ];
    for (marker, expected) in table {
        let model = Model::of(&[("www.example.com", "A", &["192.0.2.9"]), ("a-www.example.com", "TXT", &[marker])]);
        assert_eq!(held(&model.plan(&www(), &settings())), [expected]);
        let gone = model.plan(&TestIntent::of(&[record("x.example.com", &["192.0.2.1"])]), &settings());
        assert_eq!(verbs(&gone), ["create x.example.com"]);
    }
}

#[test]
fn a_marker_of_another_owner_without_a_record_keeps_the_name_from_being_made() {
    let model = Model::of(&[("a-www.example.com", "TXT", &[&heritage("other")])]);
    let plan = model.plan(&www(), &settings());
    assert!(plan.steps.is_empty());
    assert_eq!(held(&plan), ["www.example.com record-owned-by-other"]);
}

#[test]
fn two_markers_that_disagree_prove_nothing() {
    let (ours, theirs) = (heritage("me"), heritage("other"));
    let model = Model::of(&[("www.example.com", "A", &["192.0.2.9"]), ("a-www.example.com", "TXT", &[&ours, &theirs])]);
    assert_eq!(held(&model.plan(&www(), &settings())), ["www.example.com record-owned-by-other"]);
}

#[test]
fn another_instance_with_our_owner_id_stops_everything() {
    let mut model = Model::of(&[]);
    model.settle(&www(), &with(TxtRegistry { instance: Instance::new("two"), ..registry() }));
    let wish = TestIntent::of(&[record("x.example.com", &["192.0.2.1"])]);
    let plan = model.plan(&wish, &settings());
    assert!(plan.steps.is_empty() && plan.is_braked());
    assert_eq!(held(&plan), [" owner-twin"]);
    let mut taken = model.clone();
    let settings = with(TxtRegistry { replaces_instance: true, ..registry() });
    assert_eq!(verbs(&taken.plan(&www(), &settings)), ["update www.example.com"]);
    taken.settle(&www(), &settings);
    assert_eq!(held(&taken.plan(&www(), &super::model::settings())), [""; 0]);
}

#[test]
fn a_forged_or_copied_marker_deletes_nothing() {
    let mut model = Model::of(&[("hand.example.com", "A", &["192.0.2.9"])]);
    model.settle(&www(), &settings());
    let genuine = model.values("a-www.example.com", "TXT")[0].clone();
    for (marker, reasons) in [(heritage("me"), vec!["hand.example.com ownership-unproven"]), (genuine, vec![])] {
        let mut model = model.clone();
        model.put("a-hand.example.com", "TXT", &[&marker]);
        let plan = model.plan(&www(), &settings());
        assert!(plan.steps.is_empty(), "{:?}", plan.steps);
        assert_eq!(held(&plan), reasons);
    }
}

#[test]
fn what_external_dns_made_is_deleted_when_it_was_ours_before_or_on_confirmation() {
    let marker = heritage("me");
    let mut model = Model::of(&[("www.example.com", "A", &["192.0.2.1"]), ("a-www.example.com", "TXT", &[&marker])]);
    let before = model.plan(&www(), &settings());
    let mut wish = TestIntent::of(&[record("x.example.com", &["192.0.2.1"])]);
    model.settle(&wish, &settings());
    assert_eq!(held(&model.plan(&wish, &settings())), ["www.example.com ownership-unproven"]);
    assert_eq!(
        verbs(&model.plan(&wish, &PlanSettings { confirm_deletes: true, ..settings() })),
        ["delete www.example.com"]
    );
    assert_eq!(
        verbs(&model.plan(&wish, &PlanSettings { trust_unstamped: true, ..settings() })),
        ["delete www.example.com"]
    );
    wish.remembered = before.ours;
    let plan = model.plan(&wish, &settings());
    assert_eq!(verbs(&plan), ["delete www.example.com"]);
    assert_eq!(&*plan.steps[0].markers[0].old.as_ref().unwrap().values[0], marker, "by the value that was read");
}

#[test]
fn another_owner_id_is_taken_over_on_request_only() {
    let mut model = Model::of(&[]);
    let theirs = with(TxtRegistry { owner: "old".into(), instance: Instance::new("two"), ..registry() });
    model.settle(&www(), &theirs);
    assert_eq!(held(&model.plan(&www(), &settings())), ["www.example.com record-owned-by-other"]);
    let moving = with(TxtRegistry { migrate_from: Some("old".into()), ..registry() });
    let plan = model.plan(&www(), &moving);
    assert_eq!(plan.steps[0].because, "owner id `old` becomes `me`");
    model.settle(&www(), &moving);
    assert!(model.plan(&www(), &settings()).held.is_empty());
    assert_eq!(held(&model.plan(&www(), &theirs)), ["www.example.com record-owned-by-other"]);
}

#[test]
fn unmanaged_records_are_adopted_on_request_only() {
    let mut model = Model::of(&[("www.example.com", "A", &["192.0.2.1"])]);
    assert_eq!(held(&model.plan(&www(), &settings())), ["www.example.com record-unmanaged"]);
    let asking = PlanSettings { adopt: ["www.example.com".into()].into(), ..settings() };
    let plan = model.plan(&www(), &asking);
    assert_eq!((verbs(&plan), plan.steps[0].changes.len()), (vec!["update www.example.com".to_owned()], 0));
    model.settle(&www(), &asking);
    assert!(model.plan(&www(), &settings()).held.is_empty());
    let other = Model::of(&[("www.example.com", "A", &["192.0.2.7"])]).plan(&www(), &asking);
    assert!(other.steps[0].because.starts_with("it is adopted; it was 192.0.2.7"), "{:?}", other.steps[0].because);
}

#[test]
fn sealed_markers_are_read_and_written_and_another_key_reads_nothing() {
    let key = |byte: u8| SealKey::parse(&[byte; 32]).ok();
    let sealing = with(TxtRegistry { key: key(1), is_sealing: true, ..registry() });
    let mut model = Model::of(&[]);
    model.settle(&www(), &sealing);
    assert!(!model.values("a-www.example.com", "TXT")[0].contains("heritage"));
    assert!(model.plan(&www(), &sealing).steps.is_empty());
    let reading = with(TxtRegistry { key: key(1), ..registry() });
    assert!(model.plan(&www(), &reading).held.is_empty());
    for blind in [settings(), with(TxtRegistry { key: key(2), is_sealing: true, ..registry() })] {
        let plan = model.plan(&www(), &blind);
        assert!(plan.steps.is_empty());
        assert_eq!(held(&plan), ["www.example.com record-unmanaged"]);
    }
}

#[test]
fn a_marker_that_cannot_stand_keeps_its_record_from_being_made() {
    let long = format!("{}.example.com", "x".repeat(62));
    let longer = format!("zz{}example.com", "abcdefghi.".repeat(24));
    let table: [(&str, &[Sets<'_>], &str); 5] = [
        ("example.com", &[], "outside zone `example.com`"),
        (&long, &[], "has a label of 64 characters"),
        (&longer, &[], "is not a possible name"),
        ("www.example.com", &[("a-www.example.com", "CNAME", &["x."])], "is a CNAME"),
        ("www.example.com", &[("a-www.example.com", "TXT", &["\"hello\""])], "has TXT records that are left alone"),
    ];
    for (name, sets, words) in table {
        let plan = Model::of(sets).plan(&TestIntent::of(&[record(name, &["192.0.2.1"])]), &settings());
        assert!(plan.steps.is_empty());
        assert_eq!(plan.held[0].reason, reason::MARKER_NOT_POSSIBLE, "{name}");
        assert!(plan.held[0].message.contains(words), "{}", plan.held[0].message);
        assert!(plan.held[0].message.contains("--txt-prefix"), "{}", plan.held[0].message);
    }
}

#[test]
fn a_wildcard_and_the_name_that_replaces_its_star_do_not_share_a_marker() {
    let settings = with(TxtRegistry { layout: Layout::new("", "", "any").unwrap(), ..registry() });
    let wish = TestIntent::of(&[record("*.example.com", &["192.0.2.1"]), record("any.example.com", &["192.0.2.2"])]);
    let mut model = Model::of(&[]);
    let plan = model.settle(&wish, &settings);
    assert_eq!(held(&plan), ["any.example.com marker-not-possible"]);
    assert!(plan.held[0].message.contains("--txt-wildcard-replacement"));
    // A hand-made record there is not ours, although external-dns would read the marker so.
    let mut model = Model::of(&[]);
    model.settle(&TestIntent::of(&wish.records[..1]), &settings);
    model.put("any.example.com", "A", &["192.0.2.9"]);
    let confirmed = PlanSettings { confirm_deletes: true, ..settings };
    model.settle(&TestIntent::of(&[record("x.example.com", &["192.0.2.1"])]), &confirmed);
    assert_eq!(model.values("any.example.com", "A"), ["192.0.2.9"]);
    assert_eq!(model.values("*.example.com", "A"), [""; 0]);
}

#[test]
fn markers_that_lost_their_record_are_swept_if_this_instance_wrote_them() {
    let mut model = Model::of(&[("a-old.example.com", "TXT", &[&heritage("me")])]);
    let wish = TestIntent::of(&[record("www.example.com", &["192.0.2.1"]), record("x.example.com", &["192.0.2.1"])]);
    model.settle(&wish, &settings());
    model.sets.retain(|(name, _, _), _| &**name != "www.example.com" && &**name != "x.example.com");
    let plan = model.plan(&www(), &settings());
    assert_eq!(verbs(&plan), ["create www.example.com", "delete x.example.com"]);
    assert!(plan.steps[1].changes.is_empty());
    model.settle(&www(), &settings());
    assert_eq!(model.sets.len(), 2 + 2 + 1, "only what external-dns left is left: {model:?}");
}

#[test]
fn a_marker_whose_text_is_long_is_split_and_read_again() {
    let name = format!("www.{}.{}.example.com", "y".repeat(60), "z".repeat(60));
    let mut wish = TestIntent::of(&[record(&name, &["192.0.2.1"])]);
    wish.records[0].routes[0].key.name = "n".repeat(253).into();
    let mut model = Model::of(&[]);
    model.settle(&wish, &settings());
    let marker = model.values(&format!("a-{name}"), "TXT")[0].clone();
    assert!(marker.contains("\" \"") && text::content(&marker).len() > 255);
    assert!(model.plan(&wish, &settings()).steps.is_empty());
}
