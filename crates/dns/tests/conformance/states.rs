//! The states that a zone is moved through. After each the next plan is empty, what others wrote is byte for byte as it was,
//! and every name that was served before and after was answered all the while.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::{Kind, ObjectRef, RouteKind};
use gatepost_core::publication::{NameSource, Record, RecordType};

use crate::beds::{Bed, BedKind, Hand};
use crate::keeper::{Keeper, Wish};
use crate::watch::Watch;

/// Record sets by label and type: TTL and values.
type Sets = BTreeMap<(String, RecordType), (u32, Vec<String>)>;

/// What is wanted at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    title: &'static str,
    sets: Sets,
    /// Names that a wildcard is to answer for, which need records of their own now.
    explicit: BTreeSet<&'static str>,
    /// Names that a wildcard is to answer for.
    covered: BTreeSet<&'static str>,
    challenges: Vec<(&'static str, &'static str)>,
    /// What others write when the state begins.
    hands: Vec<Hand>,
    /// Labels that are wanted and belong to others.
    held: BTreeSet<&'static str>,
}

impl State {
    fn next(&self, title: &'static str) -> State {
        State { title, hands: Vec::new(), ..self.clone() }
    }

    fn with(mut self, label: &str, kind: RecordType, ttl: u32, values: &[&str]) -> State {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        self.sets.insert((label.to_owned(), kind), (ttl, values));
        self
    }

    fn without(mut self, label: &str, kind: RecordType) -> State {
        self.sets.remove(&(label.to_owned(), kind)).unwrap();
        self
    }

    fn by_hand(mut self, label: &'static str, kind: &'static str, value: &'static str) -> State {
        self.hands.push(Hand { label, kind, value });
        self
    }

    pub(crate) fn wish(&self, zone: &str) -> Wish {
        let one = |((label, kind), (ttl, values)): (&(String, RecordType), &(u32, Vec<String>))| {
            record(&format!("{label}.{zone}"), *kind, *ttl, values)
        };
        let covered = |label: &&str| record(&format!("{label}.{zone}"), RecordType::A, 60, &["192.0.2.50".to_owned()]);
        let challenge = |(label, value): &(&str, &str)| {
            record(&format!("{label}.{zone}"), RecordType::Txt, 60, &[(*value).to_owned()])
        };
        Wish {
            records: self.sets.iter().map(one).collect(),
            covered: self.covered.iter().map(covered).collect(),
            challenges: self.challenges.iter().map(challenge).collect(),
        }
    }

    /// Whether a label is answered for: by records of its own, or by those of a wildcard.
    pub(crate) fn serves(&self, label: &str) -> bool {
        let wildcard = label.split_once('.').map(|(_, rest)| format!("*.{rest}"));
        let is_asked = |other: &String| other == label || Some(other) == wildcard.as_ref();
        !self.held.contains(label) && self.sets.keys().any(|(other, _)| is_asked(other))
    }

    /// Labels worth asking for.
    pub(crate) fn labels(&self) -> impl Iterator<Item = String> {
        self.sets.keys().map(|(label, _)| label.replace('*', "any")).chain(["a.apps".to_owned(), "b.apps".to_owned()])
    }

    /// Lines of ours in a dump: a line per value, and one per marker.
    fn lines(&self) -> usize {
        let made = self.sets.iter().filter(|((label, _), _)| !self.held.contains(&**label));
        made.map(|(_, (_, values))| values.len() + 1).sum::<usize>()
            + 2 * self.explicit.len()
            + 2 * self.challenges.len()
    }
}

/// The way of a zone from nothing through everything to nothing.
pub(crate) fn states() -> Vec<State> {
    use RecordType::{A, Aaaa, Cname};
    let mut hosts = State { title: "twenty hosts", ..State::default() };
    for number in 0..20 {
        hosts = hosts.with(&format!("host-{number}"), A, 60, &[&format!("192.0.2.{number}")]);
    }
    let more = hosts.next("more addresses").with("host-1", Aaaa, 60, &["2001:db8::1"]);
    let more = more.with("host-2", A, 60, &["192.0.2.2", "192.0.2.202"]);
    let ttl = more.next("another TTL").with("host-5", A, 300, &["192.0.2.5"]);
    let alias = ttl.next("addresses become an alias").without("host-3", A);
    let alias = alias.with("host-3", Cname, 60, &["edge.example.net"]);
    let mut wild = alias.next("a wildcard, and a name below it").with("*.apps", A, 60, &["192.0.2.50"]);
    wild = wild.with("deep.x.apps", A, 60, &["192.0.2.51"]);
    wild.covered = ["a.apps", "b.apps"].into();
    let beside = wild.next("others write beside ours").by_hand("host-6", "MX", "10 mail.elsewhere.test.");
    let beside = beside.by_hand("host-7", "TXT", "\"by hand\"").by_hand("hand.apps", "A", "192.0.2.60");
    let mut precise = beside.next("the wildcard becomes names").without("*.apps", A);
    precise = precise.with("a.apps", A, 60, &["192.0.2.50"]).with("b.apps", A, 60, &["192.0.2.50"]);
    precise.covered.clear();
    let mut back = precise.next("names become a wildcard").without("a.apps", A).without("b.apps", A);
    back = back.with("*.apps", A, 60, &["192.0.2.50"]);
    back.covered = ["a.apps", "b.apps"].into();
    let mut challenged = back.next("a challenge below a wildcard");
    challenged.challenges = vec![("_acme-challenge.a.apps", "token"), ("_acme-challenge.host-1", "other-token")];
    challenged.explicit = ["a.apps"].into();
    let mut done = challenged.next("the challenges go");
    (done.challenges, done.explicit) = (Vec::new(), BTreeSet::new());
    let plain = done.next("an alias becomes addresses").without("host-3", Cname).with("host-3", A, 60, &["192.0.2.3"]);
    let mut wanted = plain.next("what belongs to others is wanted").with("hand", A, 60, &["192.0.2.99"]);
    wanted = wanted.with("theirs", A, 60, &["192.0.2.99"]).with("mixed", A, 60, &["192.0.2.99"]);
    wanted.held = ["hand", "theirs", "mixed"].into();
    let fewer = plain.next("some go").without("host-7", A).without("host-8", A).without("deep.x.apps", A);
    let nothing = State { title: "everything goes", ..State::default() };
    vec![hosts, more, ttl, alias, wild, beside, precise, back, challenged, done, plain, wanted, fewer, nothing]
}

/// A state with enough in it for faults: hosts, an alias, a wildcard.
pub(crate) fn full() -> State {
    states().into_iter().find(|state| state.title.starts_with("a wildcard")).unwrap()
}

/// What comes after it in the tests of faults: names instead of the wildcard, addresses instead of the alias, some gone.
pub(crate) fn precise() -> State {
    use RecordType::{A, Cname};
    let mut state = full().next("names, no alias, fewer hosts").without("*.apps", A).without("host-3", Cname);
    state = state.with("a.apps", A, 60, &["192.0.2.50"]).with("b.apps", A, 60, &["192.0.2.50"]);
    state = state.with("host-3", A, 60, &["192.0.2.3"]).with("host-4", A, 60, &["192.0.2.204"]);
    state.covered.clear();
    state.without("host-7", A).without("host-8", A).without("host-9", A)
}

pub(crate) async fn moves_through(kind: BedKind) {
    let bed = kind.start("states.test").await;
    let mut keeper = Keeper::new(&bed.zone, bed.provider.clone());
    let mut foreign = bed.dump();
    let mut before = State::default();
    for state in states() {
        for hand in &state.hands {
            let unedited = bed.dump();
            bed.add(*hand);
            foreign.extend(bed.dump().into_iter().filter(|line| !unedited.contains(line)));
        }
        let watch = Watch::start(&bed, &before, &state);
        let last = keeper.settle(&state.wish(&bed.zone)).await;
        watch.stop(state.title).await;
        check(&bed, &state, &foreign);
        let held: BTreeSet<&str> = last.held.iter().map(|held| &*held.name).collect();
        let expected: Vec<String> = state.held.iter().map(|label| format!("{label}.{}", bed.zone)).collect();
        assert_eq!(held, expected.iter().map(String::as_str).collect(), "{}: {:#?}", state.title, last.held);
        before = state;
    }
    foreign.sort();
    assert_eq!(bed.dump(), foreign);
}

/// What is foreign is there as it was, and beside it are our records and their markers, nothing else.
fn check(bed: &Bed, state: &State, foreign: &[String]) {
    let dump = bed.dump();
    let gone: Vec<_> = foreign.iter().filter(|line| !dump.contains(line)).collect();
    assert!(gone.is_empty(), "{}: {gone:#?}", state.title);
    let ours: Vec<&String> = dump.iter().filter(|line| !foreign.contains(line)).collect();
    assert_eq!(ours.len(), state.lines(), "{}: {ours:#?}", state.title);
    let is_marker =
        |line: &&&String| line.contains("heritage=external-dns,") && line.contains("external-dns/owner=me,");
    let sets = state.sets.keys().filter(|(label, _)| !state.held.contains(&**label)).count();
    let markers = sets + state.explicit.len() + state.challenges.len();
    assert_eq!(ours.iter().filter(is_marker).count(), markers, "{}: {ours:#?}", state.title);
}

fn record(name: &str, kind: RecordType, ttl: u32, values: &[String]) -> Record {
    Record {
        name: name.into(),
        kind,
        targets: values.iter().map(|value| value.as_str().into()).collect(),
        ttl: Some(ttl),
        set_identifier: None,
        provider_specific: Vec::new(),
        routes: [ObjectRef::new(Kind::Route(RouteKind::Http), "shop", "web")].into(),
        listeners: Default::default(),
        source: NameSource::Intersected,
        provider: None,
    }
}
