//! What must not be deleted: unknown, unseen, empty, too many, apex, wildcards.

use std::collections::BTreeSet;

use super::model::*;
use crate::model::{Kind, ObjectRef, RouteKind};
use crate::plan::{Hold, HoldScope, PlanSettings, Policy, Registry, Unseen};
use crate::publication::Record;
use crate::reason;

fn many(count: usize) -> Vec<crate::publication::Record> {
    (0..count).map(|n| record(&format!("n{n}.example.com"), &["192.0.2.1"])).collect()
}

fn filled(count: usize) -> Model {
    let mut model = Model::of(&[]);
    model.settle(&TestIntent::of(&many(count)), &settings());
    model
}

fn confirmed() -> PlanSettings {
    PlanSettings { confirm_deletes: true, ..settings() }
}

#[test]
fn more_than_a_third_and_at_least_ten_is_too_many() {
    let table = [(100, 70, 30), (100, 69, 0), (12, 3, 9), (12, 2, 0), (30, 20, 0), (34, 24, 10), (33, 23, 0)];
    for (have, want, deletes) in table {
        let model = filled(have);
        let wish = TestIntent::of(&many(want));
        let plan = model.plan(&wish, &settings());
        assert_eq!(plan.steps.len(), deletes, "{have} to {want}");
        assert_eq!(plan.is_braked(), deletes == 0);
        let held = plan.held.iter().filter(|held| held.reason == reason::TOO_MANY_DELETES).count();
        assert_eq!(held, if deletes == 0 { have - want } else { 0 });
        assert_eq!(model.plan(&wish, &confirmed()).steps.len(), have - want);
    }
}

#[test]
fn a_name_that_moves_to_another_provider_stays_until_it_is_there() {
    let model = filled(3);
    let wish = TestIntent::of(&many(2));
    let moving = PlanSettings { moving: [("n2.example.com".into(), "private".into())].into(), ..confirmed() };
    let plan = model.plan(&wish, &moving);
    assert!(plan.steps.is_empty() && !plan.is_braked());
    let held: Vec<_> = plan.held.iter().map(|held| (&*held.name, held.reason)).collect();
    assert_eq!(held, [("n2.example.com", reason::REPLACEMENT_PENDING)]);
    assert!(plan.held[0].message.contains("`private`"), "{}", plan.held[0].message);
    let moved = PlanSettings { moved: moving.moving, ..settings() };
    let plan = model.plan(&wish, &moved);
    let told: Vec<&str> = plan.steps.iter().map(|step| &*step.because).collect();
    assert_eq!(told, ["it moved to the provider `private`"], "it goes once it is there");
    assert_eq!(plan.digest, model.plan(&wish, &settings()).digest, "why it goes is no part of the plan's identity");
}

#[test]
fn what_went_a_short_while_ago_counts_too() {
    let model = filled(80);
    let wish = TestIntent::of(&many(65));
    assert_eq!(model.plan(&wish, &settings()).steps.len(), 15);
    let lately = PlanSettings { recent_deletes: [("example.com".into(), 20)].into(), ..settings() };
    assert_eq!(model.plan(&wish, &lately).steps.len(), 0);
}

#[test]
fn a_name_that_others_reach_does_not_turn_inwards() {
    let table = [
        ("192.0.2.1", &["127.0.0.1"][..], true),
        ("192.0.2.1", &["169.254.169.254", "127.0.0.1"], true),
        ("192.0.2.1", &["127.0.0.1", "192.0.2.2"], false),
        ("127.0.0.1", &["127.0.0.2"], false),
        ("192.0.2.1", &["10.0.0.1"], false),
    ];
    for (old, new, is_held) in table {
        let mut model = Model::of(&[]);
        let names = |values: &[&str]| ["a", "b", "c"].map(|label| record(&format!("{label}.example.com"), values));
        let mut all = names(&[old]).to_vec();
        model.settle(&TestIntent::of(&all), &settings());
        all[1] = names(new)[1].clone();
        let plan = model.plan(&TestIntent::of(&all), &settings());
        assert_eq!(plan.steps.is_empty(), is_held, "{old} to {new:?}");
        let held: Vec<_> = plan.held.iter().map(|held| (held.reason, &*held.name)).collect();
        assert_eq!(held, if is_held { vec![(reason::ADDRESSES_INWARD, "b.example.com")] } else { vec![] });
        assert_eq!(model.plan(&TestIntent::of(&all), &confirmed()).steps.len(), 1);
    }
}

#[test]
fn an_empty_source_deletes_nothing() {
    let model = filled(3);
    let plan = model.plan(&TestIntent::default(), &settings());
    assert!(plan.steps.is_empty() && plan.is_braked());
    assert!(plan.held.iter().all(|held| held.reason == reason::SOURCE_EMPTY));
    assert_eq!(model.plan(&TestIntent::default(), &confirmed()).steps.len(), 3);
}

#[test]
fn a_kind_that_asks_for_nothing_any_more_deletes_nothing() {
    let mut model = filled(3);
    let grpc = record_of(Kind::Route(RouteKind::Grpc), "g.example.com", &["192.0.2.1"]);
    let all = TestIntent::of(&[many(3), vec![grpc.clone()]].concat());
    model.settle(&all, &settings());
    let plan = model.plan(&TestIntent::of(std::slice::from_ref(&grpc)), &settings());
    assert!(plan.steps.is_empty());
    assert!(plan.held.iter().all(|held| held.reason == reason::SOURCE_EMPTY));
    assert_eq!(model.plan(&TestIntent::of(&many(3)), &settings()).steps.len(), 1, "one alone is no source");
    assert_eq!(model.plan(&TestIntent::of(&[many(1), vec![grpc]].concat()), &settings()).steps.len(), 2);
}

/// 24 names of three namespaces, and nothing asks for any: those whose objects were seen to go are deleted, the others are held.
#[test]
fn an_empty_source_holds_only_what_vanished_without_a_cause() {
    let mut model = Model::of(&[]);
    model.settle(&TestIntent::of(&of_three_namespaces()), &settings());
    let explained = ["n1.blog", "n2.shop", "n3.team"].map(|label| format!("{label}.example.com"));
    let seen = PlanSettings { explained: explained.iter().map(|name| name.as_str().into()).collect(), ..settings() };
    let plan = model.plan(&TestIntent::default(), &seen);
    assert_eq!(plan.steps.iter().map(|step| step.name.to_string()).collect::<Vec<_>>(), explained);
    assert_eq!(plan.held.iter().filter(|held| held.reason == reason::SOURCE_EMPTY).count(), 21);
    let all = PlanSettings { explained: of_three_namespaces().into_iter().map(|r| r.name).collect(), ..settings() };
    let plan = model.plan(&TestIntent::default(), &all);
    assert!(plan.steps.is_empty() && plan.held.iter().all(|held| held.reason == reason::TOO_MANY_DELETES));
}

#[test]
fn the_apex_is_guarded() {
    use crate::plan::layout::Layout;
    use crate::plan::settings::TxtRegistry;
    let settings = with(TxtRegistry { layout: Layout::new("%{record_type}-own.", "", "").unwrap(), ..registry() });
    let mut model = Model::of(&[]);
    let www = record("www.example.com", &["192.0.2.1"]);
    model.settle(&TestIntent::of(&[record("example.com", &["192.0.2.1"]), www.clone()]), &settings);
    let wish = TestIntent::of(&[www]);
    assert_eq!(held(&model.plan(&wish, &settings)), ["example.com apex-guarded"]);
    let confirmed = PlanSettings { confirm_deletes: true, ..settings };
    assert_eq!(verbs(&model.plan(&wish, &confirmed)), ["delete example.com"]);
}

#[test]
fn what_is_not_known_is_kept_whatever_is_confirmed() {
    let mut model = Model::of(&[]);
    let names = ["a.example.com", "b.sub.example.com", "*.wild.example.com", "z.example.com"];
    model.settle(&TestIntent::of(&names.map(|name| record(name, &["192.0.2.1"]))), &settings());
    let table: [(&str, &[&str]); 5] = [
        ("a.example.com", &["b.sub.example.com", "*.wild.example.com"]),
        ("*.sub.example.com", &["a.example.com", "*.wild.example.com"]),
        ("x.wild.example.com", &["b.sub.example.com", "a.example.com"]),
        ("*.example.com", &[]),
        ("*", &[]),
    ];
    for (unknown, gone) in table {
        let wish =
            TestIntent { holds: vec![hold(unknown)], ..TestIntent::of(&[record("z.example.com", &["192.0.2.1"])]) };
        let plan = model.plan(&wish, &confirmed());
        assert_eq!(verbs(&plan), gone.iter().map(|name| format!("delete {name}")).collect::<Vec<_>>(), "{unknown}");
        assert!(plan.held.iter().all(|held| held.reason == reason::SOURCE_UNKNOWN));
        assert!(plan.held.iter().all(|held| held.cause == Some(reason::STATUS_MISSING)));
        assert!(!plan.is_braked());
    }
}

/// Eight names of each of three namespaces, each made for a route of its own.
fn of_three_namespaces() -> Vec<Record> {
    let of = |namespace: &'static str| (0..8).map(move |i| made_for(namespace, i, &format!("n{i}.{namespace}")));
    ["blog", "shop", "team"].into_iter().flat_map(of).collect()
}

fn made_for(namespace: &str, i: usize, label: &str) -> Record {
    let route = ObjectRef::new(Kind::Route(RouteKind::Http), namespace, format!("r{i}"));
    Record { routes: [route].into(), ..record(&format!("{label}.example.com"), &["192.0.2.1"]) }
}

#[test]
fn a_route_whose_verdict_is_unknown_holds_what_was_made_for_it_and_nothing_else() {
    let route = |i: usize| ObjectRef::new(Kind::Route(RouteKind::Http), "blog", format!("r{i}"));
    let of_route = |hostname: &str| Hold { scope: HoldScope::Route(route(3)), ..hold(hostname) };
    // `blog/r3` lists another name now, or a wildcard, or none; or it cannot be read, as may be any route of its namespace.
    let table = [
        (of_route("new.example.com"), &["n3.blog"][..]),
        (of_route("*.example.com"), &["n3.blog"]),
        (of_route("*"), &["n3.blog"]),
        (of_route("n5.team.example.com"), &["n3.blog", "n5.team"]),
        (Hold { scope: HoldScope::Namespace("blog".into()), ..hold("*") }, &["n3.blog", "n6.blog"]),
    ];
    for registry in [settings(), PlanSettings::new(Registry::WholeZone)] {
        let mut model = Model::of(&[]);
        let before = TestIntent::of(&of_three_namespaces());
        let remembered = model.plan(&before, &registry).ours;
        model.settle(&before, &registry);
        let going = ["n3.blog", "n6.blog", "n5.team"].map(|label| format!("{label}.example.com"));
        let left = before.records.iter().filter(|record| !going.contains(&record.name.to_string()));
        let left: Vec<Record> = left.cloned().collect();
        for (hold, kept) in &table {
            let wish =
                TestIntent { holds: vec![hold.clone()], remembered: remembered.clone(), ..TestIntent::of(&left) };
            let plan = model.plan(&wish, &PlanSettings { confirm_deletes: true, ..registry.clone() });
            let kept: Vec<String> = kept.iter().map(|label| format!("{label}.example.com")).collect();
            let gone: Vec<String> = going.iter().filter(|name| !kept.contains(name)).cloned().collect();
            let deletes: BTreeSet<String> = plan.steps.iter().map(|step| step.name.to_string()).collect();
            assert_eq!(deletes, gone.into_iter().collect(), "{hold:?}");
            assert_eq!(plan.unknown_names().iter().map(ToString::to_string).collect::<Vec<_>>(), kept, "{hold:?}");
        }
    }
}

/// Without a marker that names a route, and without a note of it, a record may have been made for any route.
#[test]
fn a_record_of_unknown_origin_is_held_by_what_a_route_may_ask_for() {
    let mut model = Model::of(&[]);
    let whole = PlanSettings::new(Registry::WholeZone);
    let before = TestIntent::of(&of_three_namespaces());
    model.settle(&before, &whole);
    let route = ObjectRef::new(Kind::Route(RouteKind::Http), "blog", "r3");
    let hold = Hold { scope: HoldScope::Route(route), ..hold("*.team.example.com") };
    let wish = TestIntent { holds: vec![hold], ..TestIntent::of(&before.records[..14]) };
    let plan = model.plan(&wish, &PlanSettings { confirm_deletes: true, ..whole });
    assert_eq!(verbs(&plan), ["delete n6.shop.example.com", "delete n7.shop.example.com"]);
    assert_eq!(plan.unknown_names().len(), 8);
}

#[test]
fn while_a_kind_is_not_visible_nothing_shrinks() {
    let mut model = filled(3);
    let unseen = vec![Unseen { what: "GRPCRoute".into(), why: "forbidden".to_owned() }];
    let wish = TestIntent {
        unseen,
        ..TestIntent::of(&[record("n0.example.com", &["192.0.2.2"]), record("x.example.com", &["192.0.2.1"])])
    };
    let plan = model.plan(&wish, &confirmed());
    assert_eq!(verbs(&plan), ["create x.example.com", "update n0.example.com"]);
    assert!(plan.held.iter().all(|held| held.reason == reason::KIND_NOT_VISIBLE));
    model.settle(&wish, &confirmed());
    assert_eq!(
        model.values("n0.example.com", "A"),
        ["192.0.2.1", "192.0.2.2"],
        "addresses are added, none is taken away"
    );
    assert_eq!(model.values("n1.example.com", "A"), ["192.0.2.1"]);
}

#[test]
fn a_name_that_is_not_known_does_not_change_its_type() {
    let mut model = filled(1);
    let wish = TestIntent {
        holds: vec![hold("n0.example.com")],
        ..TestIntent::of(&[record("n0.example.com", &["edge.example.net"])])
    };
    assert!(model.settle(&wish, &confirmed()).held.iter().all(|held| held.reason == reason::SOURCE_UNKNOWN));
    assert_eq!(model.values("n0.example.com", "A"), ["192.0.2.1"]);
}

#[test]
fn a_wildcard_goes_after_its_replacements_are_seen() {
    let mut model = Model::of(&[]);
    let wild = record("*.example.com", &["192.0.2.1"]);
    model.settle(&TestIntent::of(std::slice::from_ref(&wild)), &settings());
    let wish = TestIntent::of(&[record("a.example.com", &["192.0.2.1"]), record("b.example.com", &["192.0.2.1"])]);
    let plan = model.plan(&wish, &settings());
    assert_eq!(verbs(&plan), ["create a.example.com", "create b.example.com"]);
    assert_eq!(held(&plan), ["*.example.com replacement-pending"]);
    let mut atomic = settings();
    atomic.capabilities.is_atomic = true;
    let plan = model.plan(&wish, &atomic);
    assert_eq!(verbs(&plan), ["create a.example.com", "create b.example.com", "delete *.example.com"]);
    assert_eq!(plan.steps[2].after, [0, 1]);
    model.settle(&wish, &settings());
    assert_eq!(model.values("*.example.com", "A"), [""; 0]);
}

#[test]
fn a_wildcard_without_replacements_goes_at_once() {
    let mut model = Model::of(&[]);
    let other = record("a.other.example.com", &["192.0.2.1"]);
    model.settle(&TestIntent::of(&[record("*.wild.example.com", &["192.0.2.1"]), other.clone()]), &settings());
    assert_eq!(verbs(&model.plan(&TestIntent::of(&[other]), &settings())), ["delete *.wild.example.com"]);
}

#[test]
fn a_wildcard_that_names_hang_on_is_guarded() {
    let mut model = Model::of(&[]);
    model.settle(&TestIntent::of(&[record("*.example.com", &["192.0.2.1"])]), &settings());
    // The replacement cannot be made, because its marker cannot.
    let long = format!("{}.example.com", "x".repeat(63));
    let wish = TestIntent::of(&[record(&long, &["192.0.2.1"])]);
    let plan = model.plan(&wish, &settings());
    assert!(plan.steps.is_empty() && plan.is_braked());
    assert!(held(&plan).contains(&"*.example.com wildcard-guarded".to_owned()), "{:?}", held(&plan));
    assert_eq!(verbs(&model.plan(&wish, &confirmed())), ["delete *.example.com"]);
}

#[test]
fn a_name_goes_after_the_wildcard_that_covers_it_is_seen() {
    let mut model = Model::of(&[]);
    let www = record("www.example.com", &["192.0.2.1"]);
    model.settle(&TestIntent::of(std::slice::from_ref(&www)), &settings());
    let wish = TestIntent { covered: vec![www], ..TestIntent::of(&[record("*.example.com", &["192.0.2.1"])]) };
    let plan = model.plan(&wish, &settings());
    assert_eq!(verbs(&plan), ["create *.example.com"]);
    assert_eq!(held(&plan), ["www.example.com replacement-pending"]);
    model.settle(&wish, &settings());
    assert_eq!(model.values("www.example.com", "A"), [""; 0]);
}

#[test]
fn a_stale_digest_is_refused() {
    let model = filled(2);
    let plan = model.plan(&TestIntent::of(&many(3)), &settings());
    assert_eq!(plan.check(&plan.digest), Ok(()));
    assert_eq!(plan.check(&plan.digest[..8]), Ok(()));
    assert!(plan.check(&plan.digest[..4]).is_err());
    let other = model.plan(&TestIntent::of(&many(4)), &settings());
    assert_eq!(other.check(&plan.digest).unwrap_err().found, other.digest);
}

#[test]
fn what_others_do_elsewhere_leaves_the_digest_alone() {
    let mut model = filled(2);
    let digest = model.plan(&TestIntent::of(&many(3)), &settings()).digest;
    model.put("hand.example.com", "A", &["192.0.2.9"]);
    assert_eq!(model.plan(&TestIntent::of(&many(3)), &settings()).digest, digest);
    model.put("n2.example.com", "A", &["192.0.2.9"]);
    assert_ne!(model.plan(&TestIntent::of(&many(3)), &settings()).digest, digest);
}

/// The marker of `b.example.com` is a TXT record at `a-b.example.com`, so the wildcard does not answer there.
#[test]
fn a_marker_that_stays_under_upsert_only_hides_a_covered_name_from_the_wildcard() {
    let settings = PlanSettings { policy: Policy::UpsertOnly, ..settings() };
    let mut model = Model::of(&[]);
    model.settle(&TestIntent::of(&[record("b.example.com", &["192.0.2.1"])]), &settings);
    let covered = vec![record("a-b.example.com", &["192.0.2.2"])];
    let wish = TestIntent { covered, ..TestIntent::of(&[record("*.example.com", &["192.0.2.2"])]) };
    model.settle(&wish, &settings);
    assert_eq!(model.values("a-b.example.com", "A"), ["192.0.2.2"]);
}
