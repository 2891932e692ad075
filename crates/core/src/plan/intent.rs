//! What the planner is to bring about, and how much of the world that wish was made from.
//!
//! "Not there" and "could not see" are different values here: a hostname may be wanted, not wanted, or unknown, and what is
//! unknown is listed, so that nothing is deleted because it was not seen.

use std::collections::BTreeMap;

use crate::diagnostic::Diagnostic;
use crate::model::{Kind, ObjectRef, Str};
use crate::publication::{Desired, Record, RecordType, Withheld};
use crate::reason::{self, Reason};
use crate::snapshot::{Snapshot, Visibility};

/// What the planner is to bring about.
#[derive(Clone, Copy, Debug)]
pub struct Intent<'a> {
    /// Records that ought to exist.
    pub records: &'a [Record],
    /// Records that need not exist because a wildcard among the others answers for them; made where it does not (D13).
    pub covered: &'a [Record],
    /// TXT values that open certificate orders need.
    pub challenges: &'a [Record],
    /// TXT values that the caller put there for orders that are done.
    pub retired: &'a [Record],
    /// Hostnames of which it is not known whether they ought to be gone.
    pub holds: &'a [Hold],
    /// What could not be seen at all.
    pub unseen: &'a [Unseen],
    /// Record sets that earlier plans called ours; see [`super::Plan::ours`].
    pub remembered: &'a OwnedSets,
}

/// Record sets that are wanted and ours, with the route that each was made for where no marker tells that.
pub type OwnedSets = BTreeMap<RecordKey, Option<ObjectRef>>;

/// A hostname of which it is not known whether it ought to be gone: a verdict of `Unknown`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hold {
    /// The hostname; what a wildcard stands for depends on the scope.
    pub hostname: Str,
    /// What is held beside the hostname itself.
    pub scope: HoldScope,
    /// Why it is not known.
    pub reason: Reason,
    /// The same in words.
    pub message: String,
    /// The object to look at.
    pub object: Option<ObjectRef>,
}

/// The record sets that a hold keeps beside those of its hostname (D32).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HoldScope {
    /// Those of every name below a wildcard; all of them for `*`.
    Names,
    /// Those that were made for this route, whatever it lists now. Others only if nothing tells what they were made for.
    Route(ObjectRef),
    /// Those that were made for any route of this namespace: one of its routes could not be read, and may list any of them.
    Namespace(Str),
}

/// Something that could not be seen, such as a kind that could not be listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unseen {
    /// What: `HTTPRoute`.
    pub what: Str,
    /// Why not.
    pub why: String,
}

/// A record set of a zone by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordKey {
    /// The name.
    pub name: Str,
    /// Its type.
    pub kind: RecordType,
    /// Tells it from others of its name and type.
    pub set_identifier: Option<Str>,
}

/// What could not be seen or is not known, gathered from what led to the wish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// Hostnames of which it is not known whether they ought to be gone.
    pub holds: Vec<Hold>,
    /// What could not be seen at all.
    pub unseen: Vec<Unseen>,
}

impl Sight {
    /// Gathers hidden kinds, hostnames whose verdict is unknown, and objects that could not be read: those may ask for any
    /// hostname.
    pub fn of(snapshot: &Snapshot, desired: &Desired, problems: &[Diagnostic]) -> Self {
        let unseen = Unseen::all(snapshot);
        let unreadable = problems.iter().filter_map(Hold::of_problem);
        let holds = desired.withheld.iter().filter_map(Hold::of).chain(unreadable);
        let holds = holds.chain(Hold::of_incomplete(snapshot)).collect();
        Sight { holds: sorted(holds), unseen: unseen.collect() }
    }
}

/// Holds by route, so that a change of one route does not gather those of all again.
#[derive(Clone, Debug, Default)]
pub struct SightCache {
    by_route: BTreeMap<ObjectRef, Vec<Hold>>,
    /// The holds of all routes, sorted, each once; nothing where they are to be gathered again.
    gathered: Option<Vec<Hold>>,
}

impl SightCache {
    /// Begins with the hostnames that get nothing, sorted by route.
    pub fn reset(&mut self, withheld: &[Withheld]) {
        (self.by_route, self.gathered) = (BTreeMap::new(), None);
        for hold in withheld.chunk_by(|a, b| a.route == b.route) {
            self.update(&hold[0].route, hold);
        }
    }

    /// Replaces the hostnames of one route that get nothing.
    pub fn update(&mut self, route: &ObjectRef, withheld: &[Withheld]) {
        let holds: Vec<Hold> = withheld.iter().filter_map(Hold::of).collect();
        let before = match holds.is_empty() {
            true => self.by_route.remove(route),
            false => self.by_route.insert(route.clone(), holds.clone()),
        };
        if before.unwrap_or_default() != holds {
            self.gathered = None;
        }
    }

    /// The same as [`Sight::of`] says of the desired state that these hostnames are from.
    pub fn sight(&mut self, snapshot: &Snapshot, problems: &[Diagnostic]) -> Sight {
        let all = self.gathered.get_or_insert_with(|| sorted(self.by_route.values().flatten().cloned().collect()));
        let mut holds = all.clone();
        holds.extend(problems.iter().filter_map(Hold::of_problem).chain(Hold::of_incomplete(snapshot)));
        Sight { holds: sorted(holds), unseen: Unseen::all(snapshot).collect() }
    }
}

fn sorted(mut holds: Vec<Hold>) -> Vec<Hold> {
    holds.sort();
    holds.dedup();
    holds
}

impl Hold {
    /// The hold of a hostname that gets nothing; none where it is known that it ought to be gone.
    pub fn of(withheld: &Withheld) -> Option<Self> {
        withheld.holds().then(|| Hold {
            hostname: withheld.hostname.clone(),
            scope: HoldScope::Route(withheld.route.clone()),
            reason: withheld.reason,
            message: withheld.message.clone(),
            object: Some(withheld.object.clone()),
        })
    }

    /// Whether there are objects that are not known: unread ones, or ones that another program completes.
    pub fn any(snapshot: &Snapshot, problems: &[Diagnostic]) -> bool {
        problems.iter().any(|problem| Hold::of_problem(problem).is_some()) || Hold::of_incomplete(snapshot).is_some()
    }

    /// The hold of objects that Kustomize, Flux or placeholders complete: they may have any namespace and any hostname then.
    fn of_incomplete(snapshot: &Snapshot) -> Option<Self> {
        let object = snapshot.file_facts.incomplete.iter().find(|object| decides(object.kind))?;
        Some(Hold {
            hostname: "*".into(),
            scope: HoldScope::Names,
            reason: reason::OBJECT_INCOMPLETE,
            message: format!("placeholders or patches complete {object}; render it with `-k DIR`"),
            object: Some(object.clone()),
        })
    }

    /// The hold of an object that could not be read. A route decides only about names of its own.
    fn of_problem(problem: &Diagnostic) -> Option<Self> {
        let is_unread = UNREAD.contains(&problem.reason);
        let decides = problem.object.as_ref().is_none_or(|object| decides(object.kind));
        let route = problem.object.as_ref().filter(|object| object.kind.route().is_some());
        let namespace = route.map(|route| &route.key.namespace).filter(|namespace| !namespace.is_empty());
        (is_unread && decides).then(|| Hold {
            hostname: "*".into(),
            scope: namespace.map_or(HoldScope::Names, |namespace| HoldScope::Namespace(namespace.clone())),
            reason: problem.reason,
            message: match &problem.place {
                Some(place) => format!("{}:{} cannot be read: {}", place.source, place.line, problem.message),
                None => problem.message.clone(),
            },
            object: problem.object.clone(),
        })
    }
}

/// Reasons for which objects of the input are not known.
const UNREAD: [Reason; 4] =
    [reason::OBJECT_UNREADABLE, reason::SYNTAX_ERROR, reason::UNRENDERED_TEMPLATE, reason::CHART_NOT_RENDERED];

impl Unseen {
    /// Every hidden kind that decides which hostnames are published.
    fn all(snapshot: &Snapshot) -> impl Iterator<Item = Unseen> {
        let kinds = Kind::ALL.into_iter().filter(|kind| decides(*kind));
        kinds.filter_map(|kind| Unseen::of(snapshot, kind))
    }

    fn of(snapshot: &Snapshot, kind: Kind) -> Option<Self> {
        match snapshot.visibility(kind) {
            Visibility::Complete => None,
            Visibility::NotVisible(why) => Some(Unseen { what: kind.as_str().into(), why: why.to_string() }),
        }
    }
}

/// Whether objects of a kind decide which hostnames are published.
fn decides(kind: Kind) -> bool {
    !matches!(kind, Kind::Service | Kind::Secret | Kind::ConfigMap | Kind::TlsPolicy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{FieldPath, SourcePosition};
    use crate::model::RouteKind;

    fn withheld(reason: Reason) -> Withheld {
        let route = ObjectRef::new(Kind::Route(RouteKind::Http), "shop", "web");
        Withheld {
            route: route.clone(),
            hostname: "www.example.com".into(),
            listener: None,
            reason,
            message: "so".to_owned(),
            object: route,
            field: FieldPath::root(),
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_by_file_and_line() {
        let place = SourcePosition { source: "m/more.yaml".into(), line: 26, column: 1 };
        let problem = Diagnostic::of_text(reason::SYNTAX_ERROR, place, "unclosed bracket '['");
        let hold = Hold::of_problem(&problem).unwrap();
        assert_eq!(hold.message, "m/more.yaml:26 cannot be read: unclosed bracket '['");
    }

    #[test]
    fn what_is_unknown_is_gathered_and_what_is_known_is_not() {
        let reasons = [reason::STATUS_MISSING, reason::NO_COMMON_HOSTNAME, reason::GATEWAY_WITHOUT_ADDRESS];
        let desired = Desired { withheld: reasons.map(withheld).to_vec(), ..Desired::default() };
        let mut snapshot = Snapshot::default();
        snapshot.set_visibility(Kind::Route(RouteKind::Grpc), Visibility::NotVisible("forbidden".into()));
        snapshot.set_visibility(Kind::Secret, Visibility::NotVisible("forbidden".into()));
        let problem = |kind: Kind| {
            Diagnostic::new(reason::OBJECT_UNREADABLE, &ObjectRef::new(kind, "shop", "x"), FieldPath::root(), "bad")
        };
        let sight = Sight::of(&snapshot, &desired, &[problem(Kind::Route(RouteKind::Http)), problem(Kind::ConfigMap)]);
        let holds: Vec<_> = sight.holds.iter().map(|hold| (&*hold.hostname, hold.reason.name())).collect();
        assert_eq!(
            holds,
            [
                ("*", "object-unreadable"),
                ("www.example.com", "status-missing"),
                ("www.example.com", "gateway-without-address")
            ]
        );
        assert_eq!(sight.unseen.iter().map(|unseen| &*unseen.what).collect::<Vec<_>>(), ["GRPCRoute"]);
        let mut cache = SightCache::default();
        cache.reset(&desired.withheld);
        assert_eq!(cache.sight(&snapshot, &[problem(Kind::Route(RouteKind::Http)), problem(Kind::ConfigMap)]), sight);
        cache.update(&desired.withheld[0].route, &desired.withheld[..1]);
        assert_eq!(cache.sight(&snapshot, &[]).holds, sight.holds[1..2]);
        cache.update(&desired.withheld[0].route, &[]);
        assert!(cache.sight(&snapshot, &[]).holds.is_empty());
    }
}
