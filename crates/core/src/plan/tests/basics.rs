//! Creates, updates, deletes; types; policies; zones.

use super::model::*;
use crate::plan::{Observed, PlanSettings, PlanStep, Policy, Registry, Verb, ZoneState, decide};
use crate::publication::RecordType;
use crate::reason;

#[test]
fn an_empty_zone_is_filled_and_then_left_alone() {
    let wish =
        TestIntent::of(&[record("www.example.com", &["192.0.2.1"]), record("www.example.com", &["2001:db8::1"])]);
    let mut model = Model::of(&[]);
    let plan = model.plan(&wish, &settings());
    assert_eq!(verbs(&plan), ["create www.example.com"]);
    let step = &plan.steps[0];
    assert_eq!((step.changes.len(), step.markers.len()), (2, 2));
    assert_eq!(step.because, "HTTPRoute/shop/web asks for it");
    let last = model.settle(&wish, &settings());
    assert!(last.held.is_empty());
    assert_eq!(last.ours.len(), 2);
    assert_eq!(model.values("www.example.com", "AAAA"), ["2001:db8::1"]);
    let marker = &model.values("a-www.example.com", "TXT")[0];
    assert!(marker.starts_with("\"heritage=external-dns,external-dns/gatepost="), "{marker}");
    assert!(marker.ends_with(",external-dns/owner=me,external-dns/resource=httproute/shop/web\""), "{marker}");
}

#[test]
fn a_changed_address_is_one_step_with_its_old_side_as_precondition() {
    let mut model = Model::of(&[]);
    model.settle(&TestIntent::of(&[record("www.example.com", &["192.0.2.1"])]), &settings());
    let plan = model.plan(&TestIntent::of(&[record("www.example.com", &["192.0.2.2"])]), &settings());
    assert_eq!(verbs(&plan), ["update www.example.com"]);
    assert_eq!(plan.steps[0].because, "192.0.2.1 becomes 192.0.2.2");
    assert!(plan.steps[0].markers.is_empty(), "the marker says the same as before");
    assert_eq!(plan.steps[0].preconditions().len(), 2, "record and marker must be as they were read");
}

#[test]
fn what_a_provider_writes_differently_is_not_rewritten() {
    let mut model = Model::of(&[]);
    let mut wish = TestIntent::of(&[
        record("a.example.com", &["192.0.2.2", "192.0.2.1"]),
        record("b.example.com", &["2001:db8::1"]),
        record("c.example.com", &["edge.example.net"]),
    ]);
    wish.records[0].ttl = Some(30);
    let mut settings = settings();
    settings.capabilities.min_ttl = 300;
    model.settle(&wish, &settings);
    model.put("A.example.com.", "A", &["192.0.2.2", "192.0.2.1"]);
    model.put("b.example.com", "AAAA", &["2001:DB8:0:0:0:0:0:1"]);
    model.put("c.example.com", "CNAME", &["Edge.Example.Net."]);
    assert_eq!(verbs(&model.plan(&wish, &settings)), [""; 0]);
}

#[test]
fn an_alias_record_has_one_name_as_its_value() {
    let mut settings = settings();
    settings.capabilities.has_properties = true;
    let mut wish = TestIntent::of(&[record("www.example.com", &["192.0.2.1"])]);
    wish.records[0].targets = ["lb.example.net".into()].into();
    let reasons = |wish: &TestIntent| -> Vec<_> {
        Model::of(&[]).plan(wish, &settings).held.iter().map(|held| held.reason).collect()
    };
    assert_eq!(reasons(&wish), [reason::TARGET_INVALID]);
    wish.records[0].provider_specific = vec![("alias".into(), "true".into())];
    let mut model = Model::of(&[]);
    assert_eq!(verbs(&model.plan(&wish, &settings)), ["create www.example.com"]);
    assert!(model.settle(&wish, &settings).held.is_empty());
    wish.records[0].targets = ["lb.example.net".into(), "other.example.net".into()].into();
    assert_eq!(reasons(&wish), [reason::SEVERAL_CNAME_TARGETS]);
}

#[test]
fn a_ttl_that_nobody_asks_for_stays() {
    let mut model = Model::of(&[]);
    let mut wish = TestIntent::of(&[record("a.example.com", &["192.0.2.1"])]);
    wish.records[0].ttl = Some(60);
    model.settle(&wish, &settings());
    wish.records[0].ttl = None;
    assert_eq!(verbs(&model.plan(&wish, &settings())), [""; 0]);
    wish.records[0].ttl = Some(120);
    let plan = model.plan(&wish, &settings());
    assert_eq!(plan.steps[0].because, "TTL 60 becomes 120");
}

#[test]
fn a_cname_takes_the_place_of_addresses_in_one_step_and_back() {
    let addresses =
        TestIntent::of(&[record("a.example.com", &["192.0.2.1"]), record("a.example.com", &["2001:db8::1"])]);
    let name = TestIntent::of(&[record("a.example.com", &["edge.example.net"])]);
    for policy in [Policy::Sync, Policy::UpsertOnly] {
        let settings = PlanSettings { policy, ..settings() };
        let mut model = Model::of(&[]);
        model.settle(&addresses, &settings);
        let plan = model.plan(&name, &settings);
        assert_eq!(verbs(&plan), ["update a.example.com"]);
        assert_eq!((plan.steps[0].changes.len(), plan.steps[0].markers.len()), (3, 3));
        model.settle(&name, &settings);
        assert_eq!(model.values("a.example.com", "CNAME"), ["edge.example.net"]);
        model.settle(&addresses, &settings);
        assert_eq!(model.values("a.example.com", "A"), ["192.0.2.1"]);
        assert_eq!(model.sets.len(), 2 + 4, "no marker is left behind");
    }
}

#[test]
fn a_cname_stands_alone_or_not_at_all() {
    let cases: [(&str, &str, &[&str], &str); 6] = [
        ("example.com", "A", &["192.0.2.9"], "example.com record-unmanaged"),
        ("a.example.com", "TXT", &["\"v=1\""], "a.example.com cname-not-possible"),
        ("a.example.com", "MX", &["10 mx.example.net."], "a.example.com cname-not-possible"),
        ("a.example.com", "A", &["192.0.2.9"], "a.example.com record-unmanaged"),
        ("a.example.com", "CNAME", &["other.example.net."], "a.example.com record-unmanaged"),
        ("x.example.com", "A", &["192.0.2.9"], "example.com cname-not-possible"),
    ];
    for (name, kind, values, expected) in cases {
        let model = Model::of(&[(name, kind, values)]);
        let wanted = expected.split(' ').next().unwrap();
        let plan = model.plan(&TestIntent::of(&[record(wanted, &["edge.example.net"])]), &settings());
        assert_eq!(held(&plan), [expected]);
        assert!(plan.steps.is_empty());
    }
}

#[test]
fn a_replacement_is_made_whole_or_not_at_all() {
    let mut model = Model::of(&[("aaaa-a.example.com", "TXT", &["\"in the way of a marker\""])]);
    model.settle(&TestIntent::of(&[record("a.example.com", &["edge.example.net"])]), &settings());
    let both = TestIntent::of(&[record("a.example.com", &["192.0.2.1"]), record("a.example.com", &["2001:db8::1"])]);
    let plan = model.settle(&both, &settings());
    assert_eq!(held(&plan), ["a.example.com marker-not-possible", "a.example.com marker-not-possible"]);
    assert_eq!(model.values("a.example.com", "CNAME"), ["edge.example.net"]);
}

#[test]
fn an_address_does_not_stand_beside_a_foreign_cname() {
    let model = Model::of(&[("a.example.com", "CNAME", &["other.example.net."])]);
    let mut wide = settings();
    assert_eq!(
        held(&model.plan(&TestIntent::of(&[record("a.example.com", &["192.0.2.1"])]), &wide)),
        ["a.example.com record-unmanaged"]
    );
    wide.managed.remove(&RecordType::Cname);
    assert_eq!(
        held(&model.plan(&TestIntent::of(&[record("a.example.com", &["192.0.2.1"])]), &wide)),
        ["a.example.com type-clash"]
    );
}

#[test]
fn foreign_text_beside_addresses_is_left_alone() {
    let mut model = Model::of(&[("a.example.com", "TXT", &["\"v=spf1 -all\""]), ("a.example.com", "MX", &["10 mx."])]);
    let before = model.clone();
    let wish = TestIntent::of(&[record("a.example.com", &["192.0.2.1"])]);
    model.settle(&wish, &settings());
    assert_eq!(model.values("a.example.com", "A"), ["192.0.2.1"]);
    before.sets.iter().for_each(|(key, content)| assert_eq!(model.sets.get(key), Some(content)));
}

#[test]
fn policies_keep_what_they_keep_and_say_so() {
    let mut model = Model::of(&[]);
    let first = [record("a.example.com", &["192.0.2.1"]), record("b.example.com", &["192.0.2.1"])];
    model.settle(&TestIntent::of(&first), &settings());
    let wish = TestIntent::of(&[record("a.example.com", &["192.0.2.2"]), record("c.example.com", &["192.0.2.1"])]);
    let table: [(Policy, &[&str], &[&str]); 3] = [
        (Policy::Sync, &["create c.example.com", "update a.example.com", "delete b.example.com"], &[]),
        (Policy::UpsertOnly, &["create c.example.com", "update a.example.com"], &["b.example.com kept-by-policy"]),
        (
            Policy::CreateOnly,
            &["create c.example.com"],
            &["a.example.com kept-by-policy", "b.example.com kept-by-policy"],
        ),
    ];
    for (policy, steps, kept) in table {
        let plan = model.plan(&wish, &PlanSettings { policy, ..settings() });
        assert_eq!(verbs(&plan), steps);
        assert_eq!(held(&plan), kept);
        assert!(!plan.is_braked());
    }
}

#[test]
fn types_that_are_not_managed_are_left_alone() {
    let mut model = Model::of(&[]);
    model.settle(&TestIntent::of(&[record("a.example.com", &["2001:db8::1"])]), &settings());
    let mut settings = settings();
    settings.managed.remove(&RecordType::Aaaa);
    let plan = model.plan(&TestIntent::of(&[record("b.example.com", &["2001:db8::1"])]), &settings);
    assert!(plan.steps.is_empty());
    assert_eq!(held(&plan), ["b.example.com type-not-managed"]);
}

#[test]
fn names_outside_all_zones_and_below_a_delegation_are_held() {
    let model = Model::of(&[("sub.example.com", "NS", &["ns.example.net."])]);
    let wish =
        TestIntent::of(&[record("www.example.org", &["192.0.2.1"]), record("a.sub.example.com", &["192.0.2.1"])]);
    let plan = model.plan(&wish, &settings());
    assert_eq!(held(&plan), ["www.example.org zone-not-served", "a.sub.example.com zone-not-served"]);
    assert!(plan.steps.is_empty());
}

#[test]
fn an_unreadable_zone_is_left_alone_and_the_others_are_not() {
    let mut observed = Model::of(&[]).observed();
    observed.insert("example.org", ZoneState::Unreadable("transfer cut".to_owned()));
    let wish = TestIntent::of(&[record("www.example.org", &["192.0.2.1"]), record("www.example.com", &["192.0.2.1"])]);
    let plan = decide(&wish.intent(), &observed, &settings());
    assert_eq!(verbs(&plan), ["create www.example.com"]);
    assert_eq!(held(&plan), [" zone-unreadable"]);
    assert!(plan.held[0].message.contains("transfer cut"));
}

#[test]
fn a_name_that_moves_to_a_closer_zone_is_kept_until_it_is_seen_there() {
    let mut model = Model::of(&[]);
    let wish = TestIntent::of(&[record("a.sub.example.com", &["192.0.2.1"]), record("b.example.com", &["192.0.2.1"])]);
    model.settle(&wish, &settings());
    let mut observed = model.observed();
    observed.insert("sub.example.com", ZoneState::Unreadable(String::new()));
    let plan = decide(&wish.intent(), &observed, &settings());
    assert!(plan.steps.is_empty());
    assert_eq!(held(&plan), ["a.sub.example.com replacement-pending", " zone-unreadable"]);
}

#[test]
fn several_candidates_are_settled_as_external_dns_settles_them() {
    let mut other = record("a.example.com", &["192.0.2.1"]);
    other.routes[0].key.name = "other".into();
    let two = record("a.example.com", &["192.0.2.8", "192.0.2.9"]);
    let both = TestIntent::of(&[two.clone(), other.clone()]);
    let mut fresh = Model::of(&[]);
    fresh.settle(&both, &settings());
    assert_eq!(fresh.values("a.example.com", "A"), ["192.0.2.1"], "fewer values go first");
    let mut held_by_two = Model::of(&[]);
    held_by_two.settle(&TestIntent::of(&[two]), &settings());
    held_by_two.settle(&both, &settings());
    assert_eq!(held_by_two.values("a.example.com", "A"), ["192.0.2.8", "192.0.2.9"], "who has it keeps it");
}

#[test]
fn what_cannot_be_a_record_set_is_held_and_keeps_its_name() {
    let mut model = Model::of(&[]);
    let names = ["a.example.com", "b.example.com", "c.example.com", "d.example.com"];
    model.settle(&TestIntent::of(&names.map(|name| record(name, &["192.0.2.1"]))), &settings());
    let wish = TestIntent::of(&[
        record("a.example.com", &[]),
        record("b.example.com", &["one.example.net", "two.example.net"]),
        record("c.example.com", &["192.0.2.1", "not-an-address"]),
        record("d.example.com", &["192.0.2.1"]),
        record("d.example.com", &["name.example.net"]),
    ]);
    let plan = model.plan(&wish, &settings());
    assert!(plan.steps.is_empty(), "{:?}", verbs(&plan));
    let reasons: Vec<_> =
        plan.held.iter().filter(|held| held.verb == Some(Verb::Create)).map(|h| h.reason.name()).collect();
    assert_eq!(reasons, ["last-address", "several-cname-targets", "target-invalid", "type-clash"]);
}

#[test]
fn without_a_registry_nothing_is_deleted() {
    let noop = PlanSettings::new(Registry::Noop);
    let mut model = Model::of(&[("hand.example.com", "A", &["192.0.2.9"]), ("b.example.com", "CNAME", &["x."])]);
    model.settle(&TestIntent::of(&[record("a.example.com", &["192.0.2.1"])]), &noop);
    let wish = TestIntent::of(&[record("a.example.com", &["192.0.2.2"]), record("b.example.com", &["192.0.2.2"])]);
    let plan = model.plan(&wish, &noop);
    assert_eq!(verbs(&plan), ["update a.example.com"]);
    assert_eq!(held(&plan), ["b.example.com record-unmanaged"]);
    assert!(model.plan(&TestIntent::of(&[record("c.example.com", &["192.0.2.1"])]), &noop).steps.len() == 1);
}

#[test]
fn a_zone_of_our_own_is_made_as_wanted_without_markers() {
    let whole = PlanSettings::new(Registry::WholeZone);
    let mut model = Model::of(&[("old.example.com", "A", &["192.0.2.9"])]);
    model.settle(&TestIntent::of(&[record("a.example.com", &["192.0.2.1"])]), &whole);
    assert_eq!(model.sets.len(), 3, "SOA, NS and one record set: {model:?}");
}

#[test]
fn observed_zones_may_be_missing_altogether() {
    let plan =
        decide(&TestIntent::of(&[record("a.example.com", &["192.0.2.1"])]).intent(), &Observed::default(), &settings());
    assert_eq!(held(&plan), ["a.example.com zone-not-served"]);
}

/// A provider that silently keeps TTLs of its own: two tries, then the reason, and never a name that is lost.
#[test]
fn what_was_written_ineffective_is_not_written_again() {
    let mut model = Model::of(&[]);
    let mut wish = TestIntent::of(&[record("a.example.com", &["192.0.2.1"])]);
    wish.records[0].ttl = Some(300);
    model.settle(&wish, &settings());
    wish.records[0].ttl = Some(60);
    let plan = model.plan(&wish, &settings());
    let tried = PlanSettings { ineffective: plan.steps.iter().filter_map(PlanStep::mark).collect(), ..settings() };
    let plan = model.plan(&wish, &tried);
    assert!(plan.steps.is_empty(), "{plan:?}");
    assert_eq!(plan.held[0].reason, reason::RECORD_PUT_BACK);
    assert!(plan.held[0].message.contains("TTL 300 where TTL 60 was written"), "{}", plan.held[0].message);
    wish.records[0].ttl = Some(90);
    assert_eq!(verbs(&model.plan(&wish, &tried)), ["update a.example.com"], "another change is another try");
    let gone = model.plan(&TestIntent::of(&[]), &PlanSettings { confirm_deletes: true, ..tried });
    assert_eq!(verbs(&gone), ["delete a.example.com"]);
    assert_eq!(gone.steps[0].mark(), None, "what comes or goes is never in vain");
}
