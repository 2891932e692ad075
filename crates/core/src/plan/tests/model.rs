//! A zone that carries out steps as a careful provider would, and short ways to say what is wanted and what is there.

use std::collections::BTreeMap;

use crate::model::{Key, Kind, ObjectRef, RouteKind, Str};
use crate::plan::{
    Content, Hold, HoldScope, Instance, Intent, Observed, OwnedSets, Plan, PlanSettings, PlanStep, Precondition,
    RecordKind, RecordSet, Registry, SetChange, TxtRegistry, Unseen, ZoneContent, ZoneState, canonical, decide,
};
use crate::publication::{NameSource, Record, RecordType};
use crate::reason;

/// The zone of most tests.
pub(super) const ZONE: &str = "example.com";

type Sets = BTreeMap<(Str, RecordKind, Option<Str>), Content>;

/// A zone in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) sets: Sets,
}

/// What is wanted, owned.
#[derive(Clone, Debug, Default)]
pub(super) struct TestIntent {
    pub(super) records: Vec<Record>,
    pub(super) covered: Vec<Record>,
    pub(super) challenges: Vec<Record>,
    pub(super) retired: Vec<Record>,
    pub(super) holds: Vec<Hold>,
    pub(super) unseen: Vec<Unseen>,
    pub(super) remembered: OwnedSets,
}

impl TestIntent {
    pub(super) fn of(records: &[Record]) -> Self {
        TestIntent { records: records.to_vec(), ..TestIntent::default() }
    }

    pub(super) fn intent(&self) -> Intent<'_> {
        Intent {
            records: &self.records,
            covered: &self.covered,
            challenges: &self.challenges,
            retired: &self.retired,
            holds: &self.holds,
            unseen: &self.unseen,
            remembered: &self.remembered,
        }
    }
}

impl Model {
    /// A zone with these record sets: name, type, values.
    pub(super) fn of(sets: &[(&str, &str, &[&str])]) -> Self {
        let mut model = Model::default();
        model.put(ZONE, "SOA", &["ns.example.com. root.example.com. 1 2 3 4 5"]);
        model.put(ZONE, "NS", &["ns.example.net."]);
        sets.iter().for_each(|(name, kind, values)| model.put(name, kind, values));
        model
    }

    pub(super) fn put(&mut self, name: &str, kind: &str, values: &[&str]) {
        let set = RecordSet::new(name, kind, Some(300), values.iter().copied());
        self.sets.insert((set.name.clone(), set.kind.clone(), None), Content::of(&set));
    }

    pub(super) fn content(&self) -> ZoneContent {
        let sets = self.sets.iter().map(|((name, kind, set_identifier), content)| RecordSet {
            name: name.clone(),
            kind: kind.clone(),
            set_identifier: set_identifier.clone(),
            ttl: content.ttl,
            values: content.values.clone(),
            properties: content.properties.clone(),
        });
        ZoneContent::new("1", sets)
    }

    pub(super) fn observed(&self) -> Observed {
        let mut observed = Observed::default();
        observed.insert(ZONE, ZoneState::Read(self.content()));
        observed
    }

    pub(super) fn plan(&self, wish: &TestIntent, settings: &PlanSettings) -> Plan {
        decide(&wish.intent(), &self.observed(), settings)
    }

    /// Plans and writes until nothing is left to do; gives back the last plan.
    pub(super) fn settle(&mut self, wish: &TestIntent, settings: &PlanSettings) -> Plan {
        for _ in 0..6 {
            let plan = self.plan(wish, settings);
            if plan.steps.is_empty() {
                return plan;
            }
            plan.steps.iter().for_each(|step| self.write(step));
        }
        panic!("there is always something to do: {:#?}\n{self:#?}", self.plan(wish, settings).steps);
    }

    /// Writes a step; every precondition must hold, and no record set may be left empty.
    pub(super) fn write(&mut self, step: &PlanStep) {
        for condition in step.preconditions() {
            assert!(self.holds(&condition), "{condition:?} does not hold in\n{self:#?}");
        }
        for change in step.changes.iter().chain(&step.markers) {
            self.carry_out(change);
        }
        self.check();
    }

    pub(super) fn carry_out(&mut self, change: &SetChange) {
        let key = (change.name.clone(), RecordKind::from(change.kind), change.set_identifier.clone());
        assert_eq!(self.sets.get(&key), change.old.as_ref(), "{key:?}");
        match &change.new {
            Some(new) => {
                assert!(!new.values.is_empty(), "an empty record set at {key:?}");
                self.sets.insert(key, Content { ttl: new.ttl.or(Some(300)), ..new.clone() });
            }
            None => {
                self.sets.remove(&key);
            }
        }
    }

    fn holds(&self, condition: &Precondition) -> bool {
        let get = |name: &Str, kind: &RecordType, id: &Option<Str>| {
            self.sets.get(&(name.clone(), RecordKind::from(*kind), id.clone()))
        };
        match condition {
            Precondition::Absent { name, kind, set_identifier } => get(name, kind, set_identifier).is_none(),
            Precondition::Equals { name, kind, set_identifier, values } => {
                get(name, kind, set_identifier).is_some_and(|content| content.values == *values)
            }
            Precondition::Unused { name } => !self.sets.keys().any(|(other, _, _)| other == name),
        }
    }

    /// A CNAME stands alone, and has one target.
    pub(super) fn check(&self) {
        let cname = RecordKind::Made(RecordType::Cname);
        for ((name, _, _), content) in self.sets.iter().filter(|((_, kind, _), _)| *kind == cname) {
            let beside = self.sets.keys().filter(|(other, kind, _)| other == name && *kind != cname);
            assert_eq!(beside.count(), 0, "a CNAME beside something at {name}");
            assert_eq!(content.values.len(), 1, "a CNAME with several targets at {name}");
        }
    }

    /// The canonical values of a record set.
    pub(super) fn values(&self, name: &str, kind: &str) -> Vec<String> {
        let kind = RecordKind::from(kind);
        let content = self.sets.get(&(canonical::name(name), kind.clone(), None));
        let values = content.map(|content| canonical::values(&kind, &content.values)).unwrap_or_default();
        values.iter().map(ToString::to_string).collect()
    }
}

/// The usual settings: TXT registry, owner `me`, one instance.
pub(super) fn settings() -> PlanSettings {
    PlanSettings::new(Registry::Txt(Box::new(registry())))
}

pub(super) fn registry() -> TxtRegistry {
    TxtRegistry::new("me", Instance::new("one"))
}

pub(super) fn with(registry: TxtRegistry) -> PlanSettings {
    PlanSettings::new(Registry::Txt(Box::new(registry)))
}

/// A record that the route `shop/web` asks for.
pub(super) fn record(name: &str, targets: &[&str]) -> Record {
    record_of(Kind::Route(RouteKind::Http), name, targets)
}

pub(super) fn record_of(kind: Kind, name: &str, targets: &[&str]) -> Record {
    let first = targets.first().copied().unwrap_or("192.0.2.1");
    Record {
        name: name.into(),
        kind: crate::publication::targets::record_type(first),
        targets: targets.iter().map(|target| Str::from(*target)).collect(),
        ttl: None,
        set_identifier: None,
        provider_specific: Vec::new(),
        routes: [ObjectRef { kind, key: Key::new("shop", "web") }].into(),
        listeners: Default::default(),
        source: NameSource::Intersected,
        provider: None,
    }
}

pub(super) fn challenge(name: &str, values: &[&str]) -> Record {
    Record { kind: RecordType::Txt, ..record(name, values) }
}

pub(super) fn hold(hostname: &str) -> Hold {
    let message = "the Gateway has no status".to_owned();
    Hold { hostname: hostname.into(), scope: HoldScope::Names, reason: reason::STATUS_MISSING, message, object: None }
}

/// An ownership value of external-dns.
pub(super) fn heritage(owner: &str) -> String {
    format!("\"heritage=external-dns,external-dns/owner={owner},external-dns/resource=httproute/shop/web\"")
}

/// Names and verbs of steps, in order.
pub(super) fn verbs(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| format!("{} {}", step.verb, step.name)).collect()
}

/// Names and reasons of what is held.
pub(super) fn held(plan: &Plan) -> Vec<String> {
    plan.held.iter().map(|held| format!("{} {}", held.name, held.reason)).collect()
}
