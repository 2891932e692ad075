//! Laws that hold for random sources over random zones.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::model::*;
use crate::model::{Key, Kind, ObjectRef, RouteKind, Str};
use crate::plan::layout::Layout;
use crate::plan::seal::SealKey;
use crate::plan::settings::TxtRegistry;
use crate::plan::{
    Content, Instance, Observed, Plan, PlanSettings, PlanStep, Policy, RecordKind, Registry, SetChange, Unseen,
    ZoneState, decide,
};
use crate::publication::Record;

/// Cases of each law, at least; `PROPTEST_CASES` asks for more. Each run draws fresh worlds, and a failure prints its own.
const CASES: u32 = 1000;

/// Names in which wildcards, names below them, and names that look like markers meet.
fn name() -> impl Strategy<Value = String> {
    let label = prop::sample::select(vec!["a", "b", "c", "a-b", "any"]);
    let deep = prop::collection::vec(label, 0..3);
    (prop::bool::weighted(0.25), deep).prop_map(|(is_wildcard, labels)| {
        let star = is_wildcard.then_some("*");
        star.into_iter().chain(labels).chain([ZONE]).collect::<Vec<_>>().join(".")
    })
}

/// The changes of a step in an order that leaves no record without its marker, and no CNAME beside something.
fn one_by_one(step: &PlanStep) -> Vec<&SetChange> {
    let (makes, goes) = (|change: &&SetChange| change.new.is_some(), |change: &&SetChange| change.new.is_none());
    let markers_first = step.markers.iter().filter(makes).chain(step.changes.iter().filter(goes));
    let markers_last = step.changes.iter().filter(makes).chain(step.markers.iter().filter(goes));
    markers_first.chain(markers_last).collect()
}

fn target() -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::select(vec![
        vec!["192.0.2.1"],
        vec!["192.0.2.1", "192.0.2.2"],
        vec!["192.0.2.2"],
        vec!["2001:db8::1"],
        vec!["edge.example.net"],
        vec!["other.example.net"],
    ])
}

fn wanted_record() -> impl Strategy<Value = Record> {
    let route = prop::sample::select(vec![Kind::Route(RouteKind::Http), Kind::Route(RouteKind::Grpc)]);
    let ttl = prop::option::weighted(0.3, prop::sample::select(vec![60_u32, 300]));
    (name(), target(), route, 0..3_u8, ttl).prop_map(|(name, target, kind, number, ttl)| {
        let routes = vec![ObjectRef { kind, key: Key::new("shop", format!("r{number}")) }];
        Record { routes: routes.into(), ttl, ..record(&name, &target) }
    })
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    prop::collection::vec(wanted_record(), 0..8)
}

/// A zone with records and markers of everybody in it.
fn foreign() -> impl Strategy<Value = Vec<(String, &'static str, String)>> {
    let kinds = vec![
        ("A", "192.0.2.9"),
        ("AAAA", "2001:DB8::9"),
        ("TXT", "\"v=spf1 -all\""),
        ("MX", "10 mx.example.net."),
        ("CNAME", "Somewhere.Example.NET."),
        ("SRV", "1 2 3 x."),
    ];
    prop::collection::vec((name(), prop::sample::select(kinds)), 0..6).prop_map(|sets| {
        let sets = sets.into_iter().filter(|(name, (kind, _))| *kind != "CNAME" || name != ZONE);
        sets.map(|(name, (kind, value))| (name, kind, value.to_owned())).collect()
    })
}

/// Names that belong to another owner, by markers of external-dns.
fn others() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(name(), 0..3)
}

fn layout() -> impl Strategy<Value = Layout> {
    let layouts = [("", "", ""), ("%{record_type}-own.", "", "any"), ("x-", "", ""), ("", "-%{record_type}", "")];
    let layouts = layouts.map(|(prefix, suffix, wildcard)| Layout::new(prefix, suffix, wildcard).unwrap());
    prop::sample::select(layouts.to_vec())
}

fn some_settings() -> impl Strategy<Value = PlanSettings> {
    let policy = prop::sample::select(vec![Policy::Sync, Policy::Sync, Policy::UpsertOnly, Policy::CreateOnly]);
    (layout(), policy, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(layout, policy, is_sealing, is_atomic, confirm_deletes)| {
            let key = SealKey::parse(&[7; 32]).ok();
            let mut settings = with(TxtRegistry { layout, key, is_sealing, ..registry() });
            settings.policy = policy;
            settings.capabilities.is_atomic = is_atomic;
            settings.confirm_deletes = confirm_deletes;
            settings
        },
    )
}

/// A zone of foreign records, filled by another owner and by an earlier wish of ours.
fn zone_of(
    foreign: &[(String, &str, String)],
    others: &[String],
    earlier: &[Record],
    settings: &PlanSettings,
) -> Model {
    let mut model = Model::of(&[]);
    let cnames: BTreeSet<&String> =
        foreign.iter().filter(|(_, kind, _)| *kind == "CNAME").map(|(name, ..)| name).collect();
    for (name, kind, value) in foreign.iter().filter(|(name, kind, _)| *kind == "CNAME" || !cnames.contains(name)) {
        model.put(name, kind, &[value]);
    }
    let Registry::Txt(registry) = &settings.registry else { return model };
    let theirs = TxtRegistry { owner: "other".into(), instance: Instance::new("other"), ..(**registry).clone() };
    let theirs = PlanSettings { registry: Registry::Txt(Box::new(theirs)), policy: Policy::Sync, ..settings.clone() };
    let wish: Vec<Record> = others.iter().map(|name| record(name, &["192.0.2.77"])).collect();
    model.settle(&TestIntent::of(&wish), &theirs);
    model.settle(&TestIntent::of(earlier), &PlanSettings { policy: Policy::Sync, ..settings.clone() });
    model
}

/// The record sets of a zone that are not ours, which an empty wish with everything confirmed leaves behind.
fn not_ours(model: &Model, settings: &PlanSettings) -> Model {
    let mut model = model.clone();
    model.settle(
        &TestIntent::default(),
        &PlanSettings { policy: Policy::Sync, confirm_deletes: true, ..settings.clone() },
    );
    model
}

fn assert_untouched(part: &Model, whole: &Model) {
    for (key, content) in &part.sets {
        assert_eq!(whole.sets.get(key), Some(content), "{key:?} was touched");
    }
}

/// The name whose record sets answer for a name, by a plain reading of RFC 4592; it may have none.
fn owner(model: &Model, name: &str) -> Option<String> {
    let exists = |name: &str| {
        let below = format!(".{name}");
        model.sets.keys().any(|(owner, _, _)| &**owner == name || owner.ends_with(&below))
    };
    if exists(name) {
        return Some(name.to_owned());
    }
    let mut encloser = name;
    while !exists(encloser) {
        encloser = encloser.split_once('.')?.1;
    }
    Some(format!("*.{encloser}"))
}

/// Which address queries for a name are answered: 1 for A, 2 for AAAA.
fn answers(model: &Model, name: &str) -> u8 {
    let Some(owner) = owner(model, name) else { return 0 };
    let here = |kind: &str| model.sets.contains_key(&(Str::from(&*owner), RecordKind::from(kind), None));
    u8::from(here("A") || here("CNAME")) | (u8::from(here("AAAA") || here("CNAME")) << 1)
}

/// Every name of interest: all owners and what is above them, and names that stand nowhere below each.
fn all_names(models: &[&Model]) -> BTreeSet<String> {
    let owners = models.iter().flat_map(|model| model.sets.keys()).map(|(name, _, _)| name.to_string());
    let mut names: BTreeSet<String> = BTreeSet::new();
    for owner in owners {
        let mut name = Some(owner.as_str());
        while let Some(here) = name {
            names.insert(here.to_owned());
            names.insert(format!("nowhere.{here}"));
            name = here.split_once('.').map(|(_, rest)| rest);
        }
    }
    names
}

/// Writes group by group; behind each, every name that resolves before and after resolves.
fn assert_resolves_all_the_while(model: &Model, plan: &Plan) {
    let mut end = model.clone();
    plan.steps.iter().for_each(|step| end.write(step));
    let names = all_names(&[model, &end]);
    let needs: BTreeMap<&String, u8> = names.iter().map(|n| (n, answers(model, n) & answers(&end, n))).collect();
    let mut now = model.clone();
    let groups: BTreeSet<usize> = plan.steps.iter().map(|step| step.group).collect();
    assert!(plan.steps.windows(2).all(|pair| pair[0].group <= pair[1].group), "groups are in order");
    for group in groups {
        plan.steps.iter().filter(|step| step.group == group).for_each(|step| now.write(step));
        for (name, need) in &needs {
            assert_eq!(
                need & !answers(&now, name),
                0,
                "{name} stops resolving behind group {group} of {:#?}",
                plan.steps
            );
        }
    }
}

fn assert_markers_go_with_records(step: &PlanStep, model: &Model) {
    for change in &step.changes {
        let is_marked = |kind: &str| step.markers.iter().any(|m| (m.old.is_none() && kind == "new") || kind == "any");
        match (&change.old, &change.new) {
            (None, Some(_)) | (Some(_), None) => assert!(is_marked("any"), "{step:#?} changes no marker in {model:#?}"),
            _ => assert!(!step.preconditions().is_empty()),
        }
    }
}

/// Everything that a plan takes away: record sets, and values of record sets that stay.
fn shrinks(plan: &Plan) -> bool {
    let changes = plan.steps.iter().flat_map(|step| &step.changes);
    changes.into_iter().any(|change| match (&change.old, &change.new) {
        (Some(_), None) => true,
        (Some(old), Some(new)) => old.values.iter().any(|value| !new.values.contains(value)),
        _ => false,
    })
}

fn shuffled(content: &Content) -> Content {
    Content { values: content.values.iter().rev().cloned().collect(), ..content.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(CASES),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A plan that is carried out brings about what is wanted, leaves everybody else's records as they were, and the next
    /// plan is empty.
    #[test]
    fn plans_converge_and_touch_nothing_foreign(
        foreign in foreign(), others in others(), earlier in records(), later in records(), settings in some_settings(),
    ) {
        let mut model = zone_of(&foreign, &others, &earlier, &settings);
        let others = not_ours(&model, &settings);
        let wish = TestIntent::of(&later);
        let last = model.settle(&wish, &settings);
        assert_untouched(&others, &model);
        let is_sure = settings.policy == Policy::Sync && settings.confirm_deletes && last.held.is_empty();
        if is_sure {
            let mut fresh = others.clone();
            fresh.settle(&wish, &settings);
            let names = |model: &Model| model.sets.keys().cloned().collect::<Vec<_>>();
            prop_assert_eq!(names(&model), names(&fresh));
        }
    }

    /// At no point of a plan does a name stop resolving that resolves before and after; record and marker go together.
    #[test]
    fn served_names_resolve_all_the_while(
        foreign in foreign(), earlier in records(), later in records(), covered in records(), settings in some_settings(),
        challenged in prop::option::of(name()),
    ) {
        let mut model = zone_of(&foreign, &[], &earlier, &settings);
        let challenge = challenged.map(|name| challenge(&format!("_acme-challenge.{}", name.trim_start_matches("*.")), &["x"]));
        let wish = TestIntent { covered, challenges: challenge.into_iter().collect(), ..TestIntent::of(&later) };
        for _ in 0..6 {
            let plan = model.plan(&wish, &settings);
            assert_resolves_all_the_while(&model, &plan);
            for step in &plan.steps {
                assert_markers_go_with_records(step, &model);
                model.write(step);
            }
        }
        let last = model.plan(&wish, &settings);
        prop_assert!(last.steps.is_empty(), "{:#?}", last.steps);
        for record in wish.records.iter().chain(&wish.covered) {
            let is_held = last.held.iter().any(|held| held.name == record.name);
            prop_assert!(is_held || answers(&model, &record.name) != 0, "{} does not resolve", record.name);
        }
    }

    /// What cannot be seen or is not known takes nothing away, whatever is confirmed.
    #[test]
    fn losing_sight_takes_nothing_away(
        foreign in foreign(), earlier in records(), later in records(), settings in some_settings(), how in 0..3_u8,
    ) {
        let settings = PlanSettings { confirm_deletes: true, ..settings };
        let model = zone_of(&foreign, &[], &earlier, &settings);
        let mut wish = TestIntent::of(&later);
        let mut observed = model.observed();
        match how {
            0 => wish.unseen.push(Unseen { what: "HTTPRoute".into(), why: "forbidden".to_owned() }),
            1 => wish.holds.push(hold("*")),
            _ => observed.insert(ZONE, ZoneState::Unreadable("cut".to_owned())),
        }
        let plan = decide(&wish.intent(), &observed, &settings);
        prop_assert!(!shrinks(&plan), "{:#?}", plan.steps);
        prop_assert!(how < 2 || plan.steps.is_empty());
    }

    /// Each name that is not known keeps what it has; all others go their way.
    #[test]
    fn unknown_names_keep_what_they_have(
        foreign in foreign(), earlier in records(), later in records(), settings in some_settings(), unknown in name(),
    ) {
        let settings = PlanSettings { confirm_deletes: true, ..settings };
        let mut model = zone_of(&foreign, &[], &earlier, &settings);
        let before = model.clone();
        let wish = TestIntent { holds: vec![hold(&unknown)], ..TestIntent::of(&later) };
        let others = not_ours(&model, &settings);
        model.settle(&wish, &settings);
        let is_address = |kind: &RecordKind| ["A", "AAAA", "CNAME"].contains(&kind.as_str());
        let theirs = before.sets.iter().filter(|((name, kind, _), _)| **name == *unknown && is_address(kind));
        for ((name, kind, id), content) in theirs {
            let now = model.sets.get(&(name.clone(), kind.clone(), id.clone()));
            prop_assert!(now.is_some_and(|now| content.values.iter().all(|value| now.values.contains(value))));
        }
        let answering = owner(&before, &unknown).unwrap_or_default();
        let is_ours = before.sets.keys().any(|key| *key.0 == *answering && is_address(&key.1) && !others.sets.contains_key(key));
        prop_assert!(!is_ours || answers(&model, &unknown) != 0, "{unknown} does not resolve in {model:#?}");
    }

    /// The order in which anything arrives makes no difference.
    #[test]
    fn order_makes_no_difference(
        foreign in foreign(), earlier in records(), later in records(), settings in some_settings(), rotation in 0..8_usize,
    ) {
        let model = zone_of(&foreign, &[], &earlier, &settings);
        let plan = model.plan(&TestIntent::of(&later), &settings);
        let mut turned = later.clone();
        turned.reverse();
        if !turned.is_empty() {
            let middle = rotation % turned.len();
            turned.rotate_left(middle);
        }
        let mut sets = model.clone();
        sets.sets.values_mut().for_each(|content| *content = shuffled(content));
        let mut observed = Observed::default();
        observed.insert(ZONE, ZoneState::Read(sets.content()));
        let other = decide(&TestIntent::of(&turned).intent(), &observed, &settings);
        prop_assert_eq!(&plan.digest, &other.digest);
        prop_assert_eq!(plan, other);
    }

    /// Another instance under the same owner id makes no step.
    #[test]
    fn instances_of_one_owner_id_do_not_fight(earlier in records(), later in records(), settings in some_settings()) {
        let mut model = zone_of(&[], &[], &earlier, &settings);
        let Registry::Txt(registry) = &settings.registry else { unreachable!() };
        let other = TxtRegistry { instance: Instance::new("two"), ..(**registry).clone() };
        let other = PlanSettings { registry: Registry::Txt(Box::new(other)), ..settings.clone() };
        let before = model.clone();
        if model.plan(&TestIntent::of(&earlier), &settings).ours.is_empty() {
            return Ok(());
        }
        let plan = model.settle(&TestIntent::of(&later), &other);
        prop_assert!(plan.steps.is_empty());
        prop_assert_eq!(model, before);
    }

    /// A zone of our own becomes what is wanted; without a registry nothing ever goes.
    #[test]
    fn other_registries_keep_to_their_word(foreign in foreign(), earlier in records(), later in records()) {
        let mut model = zone_of(&foreign, &[], &[], &PlanSettings::new(Registry::WholeZone));
        let noop = PlanSettings::new(Registry::Noop);
        model.settle(&TestIntent::of(&earlier), &noop);
        let before = model.clone();
        let last = model.settle(&TestIntent::of(&later), &PlanSettings { confirm_deletes: true, ..noop });
        prop_assert!(before.sets.keys().all(|key| model.sets.contains_key(key)), "{last:?}");
        let whole = PlanSettings { confirm_deletes: true, ..PlanSettings::new(Registry::WholeZone) };
        model.settle(&TestIntent::of(&later), &whole);
        let names: BTreeSet<&str> = later.iter().map(|record| &*record.name).collect();
        let kinds = ["A", "AAAA", "CNAME"].map(RecordKind::from);
        let addresses = model.sets.keys().filter(|(_, kind, _)| kinds.contains(kind));
        prop_assert!(addresses.into_iter().all(|(name, _, _)| names.contains(&**name)));
    }

    /// Whoever is stopped between any two changes ends where he would have ended.
    #[test]
    fn a_crash_anywhere_leads_to_the_same_zone(
        foreign in foreign(), earlier in records(), later in records(), settings in some_settings(), stop in 0..40_usize,
        challenged in any::<bool>(),
    ) {
        let settings = PlanSettings { policy: Policy::Sync, confirm_deletes: true, ..settings };
        let model = zone_of(&foreign, &[], &earlier, &settings);
        let challenges = if challenged { vec![challenge("_acme-challenge.example.com", &["x"])] } else { Vec::new() };
        let wish = TestIntent { challenges, ..TestIntent::of(&later) };
        let mut stopped = model.clone();
        let plan = model.plan(&wish, &settings);
        let changes: Vec<_> = plan.steps.iter().flat_map(one_by_one).collect();
        for change in changes.iter().take(stop % (changes.len() + 1)) {
            stopped.carry_out(change);
            stopped.check();
        }
        let mut whole = model;
        whole.settle(&wish, &settings);
        stopped.settle(&wish, &settings);
        prop_assert_eq!(stopped, whole);
    }
}
