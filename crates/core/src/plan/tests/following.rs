//! A part of a zone against the whole: the plan of the names that changed is the plan of everything.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::model::*;
use crate::desired::Record;
use crate::model::{Kind, Str};
use crate::plan::follow::{Follower, Part};
use crate::plan::{Registry, Settings};

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
    let kinds = [Kind::HttpRoute, Kind::GrpcRoute];
    let record = |(name, target): (&usize, &usize)| record_of(kinds[*name % 5 / 4], NAMES[*name], TARGETS[*target]);
    wanted.iter().map(record).collect()
}

fn kinds(records: &[Record]) -> BTreeSet<String> {
    records.iter().flat_map(|record| &record.routes).map(|r| r.kind.as_str().to_ascii_lowercase()).collect()
}

fn wishes() -> impl Strategy<Value = BTreeMap<usize, usize>> {
    prop::collection::btree_map(0..NAMES.len(), 0..TARGETS.len(), 0..NAMES.len())
}

fn choices() -> impl Strategy<Value = Settings> {
    let registries = prop_oneof![Just(settings()), Just(Settings::new(Registry::WholeZone))];
    (registries, any::<bool>(), any::<bool>()).prop_map(|(mut settings, is_atomic, is_confirmed)| {
        settings.capabilities.is_atomic = is_atomic;
        settings.confirm_deletes = is_confirmed;
        settings
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn the_plan_of_what_changed_is_the_plan_of_everything(
        before in wishes(),
        after in wishes(),
        foreign in prop::option::of(0..NAMES.len()),
        settings in choices(),
    ) {
        let mut model = Model::of(&[]);
        if let Some(name) = foreign {
            model.put(NAMES[name], "A", &["203.0.113.7"]);
        }
        let old = Wish::of(&records(&before));
        model.settle(&old, &settings);
        let new = Wish::of(&records(&after));
        let all = model.plan(&new, &settings);
        let mut follower = Follower::new(&model.observed(), &settings);
        let names: Vec<Str> = NAMES.iter().map(|name| Str::from(*name)).collect();
        let differ: BTreeSet<&Str> = all.steps.iter().map(|step| &step.name).chain(all.held.iter().map(|h| &h.name)).collect();
        let asked: Vec<Str> = names.iter().filter(|name| differ.contains(name)).cloned().collect();
        let wanted = |name: &str| new.records.iter().filter(|record| &*record.name == name).cloned().collect();
        let (kinds, nothing) = (kinds(&new.records), BTreeSet::new());
        let part =
            Part { names: &asked, records: &wanted, kinds: &kinds, holds: &[], unseen: &[], remembered: &nothing };
        let meets_wildcard = asked.iter().any(|name| name.contains("w.example.com"));
        let Some(found) = follower.plan(&part) else {
            prop_assert!(meets_wildcard);
            return Ok(());
        };
        prop_assert_eq!(&found.steps, &all.steps);
        let named = |held: &[crate::plan::Held]| {
            held.iter().filter(|held| !held.name.is_empty()).cloned().collect::<Vec<_>>()
        };
        prop_assert_eq!(named(&found.held), named(&all.held));
        for step in &found.steps {
            model.write(step);
            follower.carry_out(step);
        }
        let fresh = Follower::new(&model.observed(), &settings);
        prop_assert_eq!(follower.plan(&part).map(|plan| plan.steps), fresh.plan(&part).map(|plan| plan.steps));
        prop_assert_eq!(follower.counts(), fresh.counts());
    }
}
