//! How far a change among the listeners of a Gateway reaches, so that no others are judged again.
//!
//! Listeners have to do with each other on one port only: where their protocols exclude each other, where they have the same
//! hostname, and, with TLS, where one hostname contains the other. Two hostnames that contain a third one contain one another;
//! so whatever has to do with a listener, or with those that have to do with it, and so on, is at or below the widest hostname
//! that contains its own. Everything else stands as it was judged, as long as its order is the same.

use std::sync::Arc;

use crate::model::Protocol;
use crate::names::Hostname;
use crate::topology::listeners::Hall;
use crate::topology::{ListenerId, ListenerState};

/// Where more listeners than that differ all are judged again.
const FEW: usize = 8;

/// Listeners as they were judged before.
#[derive(Clone, Copy)]
pub(in crate::topology) struct Known<'a> {
    pub(in crate::topology) hall: &'a Hall,
    /// In order of precedence.
    pub(in crate::topology) order: &'a [ListenerId],
}

impl Known<'_> {
    /// How a listener was judged.
    pub(super) fn of(&self, listener: &ListenerState) -> Option<&Arc<ListenerState>> {
        self.hall.shared(listener.id.slot)
    }

    /// The places of listeners that are to be judged again, in order; nothing where all are.
    pub(super) fn reached(&self, listeners: &[Arc<ListenerState>]) -> Option<Vec<usize>> {
        let mut is_due: Vec<bool> = listeners.iter().map(|listener| !self.stays(listener)).collect();
        let kept = || listeners.iter().zip(&is_due).filter(|(_, is_due)| !**is_due).map(|(listener, _)| listener);
        let mut is_kept = vec![false; self.hall.width()];
        kept().for_each(|listener| is_kept[listener.id.slot as usize] = true);
        let (stayed, gone): (Vec<ListenerId>, Vec<ListenerId>) =
            self.order.iter().partition(|id| is_kept[id.slot as usize]);
        if !stayed.iter().eq(kept().map(|listener| &listener.id)) {
            return None;
        }
        let new = listeners.iter().zip(&is_due).filter(|(_, is_due)| **is_due).map(|(listener, _)| &**listener);
        let old = gone.iter().filter_map(|id| self.hall.listener(id.slot));
        let changed: Vec<&ListenerState> = new.chain(old).filter(|listener| listener.refused.is_none()).collect();
        if changed.len() > FEW {
            return None;
        }
        for listener in changed {
            reach(listener, listeners, |place| is_due[place] = true)?;
        }
        Some((0..listeners.len()).filter(|place| is_due[*place]).collect())
    }

    /// Whether a listener is to others what it was.
    fn stays(&self, listener: &Arc<ListenerState>) -> bool {
        let is_same = |then: &ListenerState| {
            (then.spec().port, &then.spec().protocol) == (listener.spec().port, &listener.spec().protocol)
                && then.hostname == listener.hostname
                && then.refused.is_some() == listener.refused.is_some()
        };
        self.of(listener).is_some_and(|then| Arc::ptr_eq(then, listener) || is_same(then))
    }
}

/// Visits whoever a listener reaches; nothing where that cannot be told by hostnames.
fn reach(listener: &ListenerState, listeners: &[Arc<ListenerState>], mut visit: impl FnMut(usize)) -> Option<()> {
    let (port, protocol) = (listener.spec().port, &listener.spec().protocol);
    let others = listeners.iter().enumerate();
    let others = others.filter(|(_, other)| other.spec().port == port && other.refused.is_none());
    let mut widest: &Hostname = &listener.hostname;
    for (_, other) in others.clone() {
        if excludes(protocol, &other.spec().protocol) {
            return None;
        }
        if *protocol != Protocol::Http && other.hostname.contains(widest) {
            widest = &other.hostname;
        }
    }
    let is_reached = |other: &ListenerState| match protocol {
        Protocol::Http => other.hostname == listener.hostname,
        _ => widest.contains(&other.hostname),
    };
    others.filter(|(_, other)| is_reached(other)).for_each(|(place, _)| visit(place));
    Some(())
}

/// Whether two listeners of these protocols may not be able to share a port, whatever their hostnames are.
fn excludes(one: &Protocol, other: &Protocol) -> bool {
    use Protocol::*;
    match (one, other) {
        (Http, Http) | (Https | Tls, Https | Tls) => false,
        (Udp, Http | Https | Tls | Tcp) | (Http | Https | Tls | Tcp, Udp) => false,
        _ => true,
    }
}
