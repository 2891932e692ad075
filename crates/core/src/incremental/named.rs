//! What became of a name, kept as shortly as it can be told again.
//!
//! Most names are wanted by one route, and then everything follows from what that route brings in. Only where there is more to
//! know is a decision kept; nothing is decided here that [`decide_name`] does not.

use std::borrow::Cow;
use std::sync::Arc;

use crate::names::Hostname;
use crate::publication::strict::{Bid, Contribution, Decision, NameRest, decide_name};

/// A decision about a name, or the one route that it follows from.
#[derive(Clone, Debug)]
pub(super) enum Named {
    /// Nobody else has claims on the name, nobody is told of it, and no wildcard may stand for it.
    Alone(Arc<Contribution>),
    Decided(Arc<Decision>),
}

impl Named {
    /// The decision about a name by all who may have claims on it; nothing where nobody has.
    pub(super) fn of(name: &Hostname, claimants: &[Arc<Contribution>]) -> Option<(Named, Arc<Decision>)> {
        let decision = Arc::new(decided(name, claimants)?);
        let named = match claimants {
            [only] if decision.rest().is_none() && !decision.is_coverable => Named::Alone(only.clone()),
            _ => Named::Decided(decision.clone()),
        };
        Some((named, decision))
    }

    /// What became of the name that it is kept under.
    pub(super) fn decision(&self, name: &Hostname) -> Cow<'_, Decision> {
        match self {
            // A route that is kept here has claims on the name.
            Named::Alone(only) => {
                Cow::Owned(decided(name, std::slice::from_ref(only)).expect("claims of the route that has the name"))
            }
            Named::Decided(decision) => Cow::Borrowed(decision),
        }
    }

    /// What most names have nothing of.
    pub(super) fn rest(&self) -> Option<&NameRest> {
        self.decided()?.rest()
    }

    /// The decision, where it is kept.
    pub(super) fn decided(&self) -> Option<&Decision> {
        match self {
            Named::Alone(_) => None,
            Named::Decided(decision) => Some(decision),
        }
    }

    /// Whether a wildcard may stand for it.
    pub(super) fn is_coverable(&self) -> bool {
        self.decided().is_some_and(|decision| decision.is_coverable)
    }

    /// Whether another name is answered in the same way. Both are given with the names that they are kept under.
    pub(super) fn has_same_answer(&self, name: &Hostname, other: &Named, owner: &Hostname) -> bool {
        self.decision(name).is_same_answer(&other.decision(owner))
    }

    /// Whether both are one value in memory.
    pub(super) fn is_one_with(&self, other: &Named) -> bool {
        match (self, other) {
            (Named::Alone(a), Named::Alone(b)) => Arc::ptr_eq(a, b),
            (Named::Decided(a), Named::Decided(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

fn decided(name: &Hostname, claimants: &[Arc<Contribution>]) -> Option<Decision> {
    let mut bids = Vec::with_capacity(claimants.len());
    claimants.iter().for_each(|contribution| Bid::all(contribution, name, &mut bids));
    (!bids.is_empty()).then(|| decide_name(name, &mut bids))
}
