//! A part of a zone against the whole: the plan of the names that changed is the plan of everything.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::model::*;
use crate::model::{Kind, RouteKind, Str};
use crate::plan::follow::{Part, PartialPlanner};
use crate::plan::{Held, Instance, OwnedSets, PlanSettings, RecordSet, Registry, TxtRegistry, ZoneChange, ZoneContent};
use crate::publication::Record;

const NAMES: [&str; 12] = [
    "example.com",
    "a.example.com",
    "b.example.com",
    "c.b.example.com",
    "d.c.b.example.com",
    "e.example.com",
    "a-a.example.com",
    "cname-b.example.com",
    "x.y.z.example.com",
    "*.w.example.com",
    "v.w.example.com",
    "f.example.com",
];

const TARGETS: [&[&str]; 4] = [&["192.0.2.1"], &["192.0.2.1", "192.0.2.2"], &["lb.example.net"], &["192.0.2.9"]];

fn records(wanted: &BTreeMap<usize, usize>) -> Vec<Record> {
    let kinds = [Kind::Route(RouteKind::Http), Kind::Route(RouteKind::Grpc)];
    let record = |(name, target): (&usize, &usize)| record_of(kinds[*name % 5 / 4], NAMES[*name], TARGETS[*target]);
    wanted.iter().map(record).collect()
}

fn kinds(records: &[Record]) -> BTreeSet<String> {
    records.iter().flat_map(|record| &record.routes).map(|r| r.kind.as_str().to_ascii_lowercase()).collect()
}

/// Certificate orders that are open for some names: of each name one of two values.
fn orders() -> impl Strategy<Value = BTreeMap<usize, usize>> {
    prop::collection::btree_map(0..NAMES.len(), 0..2usize, 0..3)
}

fn challenges(orders: &BTreeMap<usize, usize>) -> Vec<Record> {
    let name = |name: usize| format!("_acme-challenge.{}", NAMES[name].trim_start_matches("*."));
    orders.iter().map(|(at, value)| challenge(&name(*at), &[["first", "second"][*value]])).collect()
}

/// A wish with open orders, after one with others: what those needed is retired.
fn ordering(records: Vec<Record>, now: &BTreeMap<usize, usize>, before: &BTreeMap<usize, usize>) -> TestIntent {
    let over = before.iter().filter(|(name, value)| now.get(name) != Some(value)).map(|(name, value)| (*name, *value));
    let retired = challenges(&over.collect());
    TestIntent { records, challenges: challenges(now), retired, ..TestIntent::default() }
}

fn wishes() -> impl Strategy<Value = BTreeMap<usize, usize>> {
    prop::collection::btree_map(0..NAMES.len(), 0..TARGETS.len(), 0..NAMES.len())
}

fn choices() -> impl Strategy<Value = PlanSettings> {
    let registries = prop_oneof![Just(settings()), Just(PlanSettings::new(Registry::WholeZone))];
    (registries, any::<bool>(), any::<bool>()).prop_map(|(mut settings, is_atomic, is_confirmed)| {
        settings.capabilities.is_atomic = is_atomic;
        settings.confirm_deletes = is_confirmed;
        settings
    })
}

/// How a zone got from one content to another.
fn change(before: &ZoneContent, after: &ZoneContent) -> ZoneChange {
    let without = |some: &ZoneContent, others: &ZoneContent| {
        let stay = |set: &RecordSet, value: &Str| {
            others
                .sets()
                .iter()
                .any(|other| other.key() == set.key() && other.ttl == set.ttl && other.values.contains(value))
        };
        let lacking = some.sets().iter().cloned().map(|mut set| {
            let values = std::mem::take(&mut set.values);
            set.values = values.into_iter().filter(|value| !stay(&set, value)).collect();
            set
        });
        lacking.filter(|set| !set.values.is_empty()).collect::<Vec<_>>()
    };
    let (gone, come) = (without(before, after), without(after, before));
    ZoneChange { from: before.epoch.clone(), to: after.epoch.clone(), gone, come }
}

/// Edits by hand: something goes, becomes somebody else's, or appears.
fn edit(model: &mut Model, edits: &[(usize, u8)]) {
    for (at, verb) in edits {
        let mut keys = model.sets.keys().filter(|(_, kind, _)| ["A", "CNAME", "TXT"].contains(&kind.as_str())).cloned();
        let Some(key) = keys.nth(*at) else {
            model.put(NAMES[at % NAMES.len()], "A", &["203.0.113.8"]);
            continue;
        };
        let is_text = key.1.as_str() == "TXT";
        match verb {
            0 => _ = model.sets.remove(&key),
            1 if is_text => model.put(&key.0, "TXT", &["\"heritage=external-dns,external-dns/owner=other\""]),
            _ if key.1.as_str() == "A" => model.put(&key.0, "A", &["192.0.2.1", "203.0.113.7"]),
            _ => _ = model.sets.remove(&key),
        }
    }
}

fn named(held: &[Held]) -> Vec<Held> {
    held.iter().filter(|held| !held.name.is_empty()).cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn the_plan_of_what_changed_is_the_plan_of_everything(
        before in wishes(),
        after in wishes(),
        foreign in prop::option::of(0..NAMES.len()),
        (ordered_before, ordered) in (orders(), orders()),
        settings in choices(),
    ) {
        let mut model = Model::of(&[]);
        if let Some(name) = foreign {
            model.put(NAMES[name], "A", &["203.0.113.7"]);
        }
        let old = ordering(records(&before), &ordered_before, &BTreeMap::new());
        model.settle(&old, &settings);
        let new = ordering(records(&after), &ordered, &ordered_before);
        let all = model.plan(&new, &settings);
        let mut follower = PartialPlanner::new(model.observed(), &settings);
        let names: Vec<Str> = NAMES.iter().map(|name| Str::from(*name)).collect();
        let differ: BTreeSet<&Str> = all.steps.iter().map(|step| &step.name).chain(all.held.iter().map(|h| &h.name)).collect();
        let mut asked: Vec<Str> = names.iter().filter(|name| differ.contains(name)).cloned().collect();
        asked.extend(new.challenges.iter().chain(&new.retired).map(|record| record.name.clone()));
        let wanted = |name: &str| new.records.iter().filter(|record| &*record.name == name).cloned().collect();
        let (kinds, nothing) = (kinds(&new.records), OwnedSets::new());
        let part =
            Part { names: &asked, records: &wanted, challenges: &new.challenges, retired: &new.retired, kinds: &kinds, holds: &[], unseen: &[], remembered: &nothing };
        let meets_wildcard = asked.iter().any(|name| name.contains("w.example.com"));
        let Some(found) = follower.plan(&part) else {
            prop_assert!(meets_wildcard);
            return Ok(());
        };
        prop_assert_eq!(&found.steps, &all.steps);
        prop_assert_eq!(named(&found.held), named(&all.held));
        let read = model.content();
        found.steps.iter().for_each(|step| model.write(step));
        prop_assert!(follower.advance(ZONE, vec![change(&read, &model.content())]).is_some());
        let fresh = PartialPlanner::new(model.observed(), &settings);
        prop_assert_eq!(follower.plan(&part).map(|plan| plan.steps), fresh.plan(&part).map(|plan| plan.steps));
        prop_assert_eq!(follower.counts(), fresh.counts());
    }

    /// What changed in the wish, what was changed in the zone and what was open before is all that can differ.
    #[test]
    fn a_zone_that_others_change_is_followed(
        before in wishes(),
        after in wishes(),
        edits in prop::collection::vec((0..40usize, 0..3u8), 0..6),
        (ordered_before, ordered) in (orders(), orders()),
        settings in choices(),
    ) {
        let mut model = Model::of(&[]);
        let old = ordering(records(&before), &ordered_before, &BTreeMap::new());
        let new = ordering(records(&after), &ordered, &ordered_before);
        let rest = model.settle(&old, &settings);
        let read = model.content();
        let mut follower = PartialPlanner::new(model.observed(), &settings);
        edit(&mut model, &edits);
        let change = change(&read, &model.content());
        let mut names = follower.advance(ZONE, vec![change.clone()]).unwrap();
        let fresh = PartialPlanner::new(model.observed(), &settings);
        prop_assert_eq!(follower.counts(), fresh.counts());
        prop_assert_eq!(follower.clone().into_everything(), model.observed());
        let differs = |name: &&str| (old.records.iter().find(|r| &*r.name == *name)) != (new.records.iter().find(|r| &*r.name == *name));
        names.extend(NAMES.iter().filter(|name| differs(name)).map(|name| Str::from(*name)));
        names.extend(rest.held.iter().map(|held| held.name.clone()));
        names.extend(new.challenges.iter().chain(&new.retired).map(|record| record.name.clone()));
        let asked: Vec<Str> = names.into_iter().collect();
        let wanted = |name: &str| new.records.iter().filter(|record| &*record.name == name).cloned().collect();
        let (kinds, nothing) = (kinds(&new.records), OwnedSets::new());
        let part =
            Part { names: &asked, records: &wanted, challenges: &new.challenges, retired: &new.retired, kinds: &kinds, holds: &[], unseen: &[], remembered: &nothing };
        let all = model.plan(&new, &settings);
        if let Some(found) = follower.plan(&part) {
            prop_assert_eq!(&found.steps, &all.steps);
            prop_assert_eq!(named(&found.held), named(&all.held));
        }
        if change != (ZoneChange { from: "1".into(), to: "1".into(), ..ZoneChange::default() }) {
            prop_assert_eq!(follower.advance(ZONE, vec![change]), None, "what went cannot go again");
        }
    }
}

#[test]
fn an_owner_conflict_that_appears_is_seen_and_what_does_not_fit_is_refused() {
    let of = |instance: &str| with(TxtRegistry::new("me", Instance::new(instance)));
    let mut model = Model::of(&[]);
    model.settle(&TestIntent::of(&[record("a.example.com", &["192.0.2.1"])]), &of("one"));
    let mut follower = PartialPlanner::new(model.observed(), &of("one"));
    let mut other = Model::of(&[]);
    other.settle(&TestIntent::of(&[record("b.example.com", &["192.0.2.2"])]), &of("two"));
    let mut come = other.content().into_sets();
    come.retain(|set| !["SOA", "NS"].contains(&set.kind.as_str()));
    let arrival = ZoneChange { from: "1".into(), to: "2".into(), come, ..ZoneChange::default() };
    let part = |follower: &PartialPlanner, name: &str| {
        let (names, nothing) = ([Str::from(name)], OwnedSets::new());
        let (records, kinds) = (|_: &str| Vec::new(), BTreeSet::new());
        let part = Part {
            names: &names,
            records: &records,
            challenges: &[],
            retired: &[],
            kinds: &kinds,
            holds: &[],
            unseen: &[],
            remembered: &nothing,
        };
        follower.plan(&part)
    };
    assert!(part(&follower, "f.example.com").is_some());
    let strange = ZoneChange { from: "7".into(), ..arrival.clone() };
    assert_eq!(follower.clone().advance(ZONE, vec![strange]), None, "it follows another state");
    assert!(follower.advance(ZONE, vec![arrival]).unwrap().contains("b.example.com"));
    assert!(part(&follower, "f.example.com").is_none(), "beside another instance only the whole zone can tell");
    assert_eq!(follower.epochs().collect::<Vec<_>>(), [(&ZONE.into(), Some(&"2".into()))]);
}

#[test]
fn a_marker_that_somebody_removes_concerns_its_record() {
    let settings = settings();
    let wish = TestIntent::of(&[record("f.example.com", &["192.0.2.1"])]);
    let mut model = Model::of(&[]);
    model.settle(&wish, &settings);
    let read = model.content();
    let mut follower = PartialPlanner::new(model.observed(), &settings);
    model.sets.retain(|(name, _, _), _| &**name != "a-f.example.com");
    let names = follower.advance(ZONE, vec![change(&read, &model.content())]).unwrap();
    let asked: Vec<Str> = names.into_iter().collect();
    assert_eq!(asked, ["a-f.example.com".into()]);
    let wanted = |name: &str| wish.records.iter().filter(|record| &*record.name == name).cloned().collect();
    let (kinds, nothing) = (kinds(&wish.records), OwnedSets::new());
    let part = Part {
        names: &asked,
        records: &wanted,
        challenges: &[],
        retired: &[],
        kinds: &kinds,
        holds: &[],
        unseen: &[],
        remembered: &nothing,
    };
    let (found, all) = (follower.plan(&part).unwrap(), model.plan(&wish, &settings));
    assert_eq!((&found.steps, named(&found.held)), (&all.steps, named(&all.held)));
    assert_eq!(all.held.len(), 1);
}
