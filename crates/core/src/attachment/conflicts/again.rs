//! How far a change among the listeners of a Gateway reaches, so that no others are judged again.
//!
//! Listeners have to do with each other on one port only: where their protocols exclude each other, where they have the same
//! hostname, and, with TLS, where one hostname contains the other. Two hostnames that contain a third one contain one another;
//! so whatever has to do with a listener, or with those that have to do with it, and so on, is at or below the widest hostname
//! that contains its own. Everything else stands as it was judged, as long as its order is the same.

use std::sync::Arc;

use crate::attachment::listeners::Hall;
use crate::attachment::{ListenerId, ListenerState};
use crate::model::Protocol;
use crate::names::Hostname;

/// Where more listeners than that differ all are judged again.
const FEW: usize = 8;

/// Listeners as they were judged before.
#[derive(Clone, Copy)]
pub(in crate::attachment) struct Known<'a> {
    pub(in crate::attachment) hall: &'a Hall,
    /// In order of precedence.
    pub(in crate::attachment) order: &'a [ListenerId],
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
    use Protocol::{Http, Https, Tcp, Tls, Udp};
    let can_share = match one {
        Http => matches!(other, Http | Udp),
        Https | Tls => matches!(other, Https | Tls | Udp),
        Tcp => *other == Udp,
        Udp => matches!(other, Http | Https | Tls | Tcp),
        Protocol::Other(_) => false,
    };
    !can_share
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::attachment::Scope;
    use crate::attachment::grants::Grants;
    use crate::attachment::listeners::{Before, Judge, Judged};
    use crate::model::{Gateway, Listener, ListenerSet};
    use crate::publication::tests::world;
    use crate::reason::Reason;
    use crate::snapshot::{Object, Snapshot};

    const NAMES: [&str; 8] =
        ["*", "*.test", "*.x.test", "a.x.test", "*.a.x.test", "*.y.test", "b.y.test", "b.other.example"];

    /// A Gateway with ListenerSets.
    #[derive(Clone, Debug)]
    struct Tree {
        gateway: Arc<Gateway>,
        sets: Vec<Arc<ListenerSet>>,
    }

    impl Tree {
        fn of(resources: &[Vec<Listener>]) -> Self {
            let set = |(at, listeners): (usize, &Vec<Listener>)| {
                Arc::new(world::listener_set(&format!("a/set-{at}"), "a/edge", listeners.clone()))
            };
            let gateway = Arc::new(world::gateway("a/edge", resources[0].clone()));
            Tree { gateway, sets: resources.iter().enumerate().skip(1).map(set).collect() }
        }

        /// The same, with objects that are equal shared.
        fn like(mut self, before: &Tree) -> Self {
            for set in &mut self.sets {
                let known = before.sets.iter().find(|known| *known == set).cloned();
                *set = known.unwrap_or_else(|| set.clone());
            }
            self
        }

        fn judged(&self, before: Option<&Judged>) -> Judged {
            let snapshot = Snapshot::of([Object::Gateway((*self.gateway).clone())]);
            let (grants, scope) = (Grants::of(&snapshot), Scope::default());
            let judge = Judge { snapshot: &snapshot, grants: &grants, scope: &scope };
            let states = before.map(|judged| &judged.sets[..]).unwrap_or_default();
            let set = |set: &Arc<ListenerSet>| states.iter().find(|state| Arc::ptr_eq(&state.set, set)).cloned();
            let before = before.map(|judged| Before {
                hall: &judged.hall,
                order: &judged.gateway.listeners,
                gateway: None,
                set: &set,
            });
            judge.gateway(0, before, &self.gateway, self.sets.clone())
        }
    }

    /// What is said of each listener, in order.
    #[allow(clippy::type_complexity)]
    fn told(judged: &Judged) -> Vec<(String, Option<(Reason, String)>, Option<String>)> {
        let name = |id: &ListenerId| judged.hall.listener(id.slot).unwrap().key().to_string();
        let listener = |id: &ListenerId| {
            let listener = judged.hall.listener(id.slot).unwrap();
            let conflict = listener.conflict.map(|conflict| (conflict.reason, name(&conflict.with)));
            (name(id), conflict, listener.overlaps.as_ref().map(name))
        };
        judged.gateway.listeners.iter().map(listener).collect()
    }

    fn listener(name: &str, hostname: &str, kind: u8) -> Listener {
        let https = world::https(name, hostname, "secret");
        match kind {
            0..5 => https,
            5..8 => Listener { protocol: Protocol::Tls, ..https },
            8..12 => world::http(name, hostname),
            12 => Listener { port: 443, ..world::http(name, hostname) },
            13 => Listener { protocol: Protocol::Tcp, tls: None, ..https },
            14 => Listener { protocol: Protocol::Udp, tls: None, ..https },
            _ => Listener { protocol: Protocol::Other("mine".into()), tls: None, ..https },
        }
    }

    fn any_resource() -> impl Strategy<Value = Vec<Listener>> {
        let listener = (prop::sample::select(&NAMES[..]), 0..16u8);
        prop::collection::vec(listener, 0..5).prop_map(|parts| {
            let named = parts.into_iter().enumerate();
            named.map(|(at, (hostname, kind))| self::listener(&format!("l{at}"), hostname, kind)).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
        #[test]
        fn it_is_as_if_all_had_been_judged_again(
            mut resources in prop::collection::vec(any_resource(), 1..5),
            changes in prop::collection::vec((0..5usize, any_resource()), 1..8),
        ) {
            let mut tree = Tree::of(&resources);
            let mut judged = tree.judged(None);
            for (at, resource) in changes {
                let at = at % resources.len();
                resources[at] = resource;
                tree = Tree::of(&resources).like(&tree);
                judged = tree.judged(Some(&judged));
                prop_assert_eq!(told(&judged), told(&tree.judged(None)));
            }
        }
    }

    #[test]
    fn others_are_left_alone() {
        let named = |hostname: &&str| listener(hostname, hostname, 0);
        let before: Vec<Listener> = ["*.x.test", "a.x.test", "*.y.test", "b.y.test"].iter().map(named).collect();
        let after = [&before[..], &[named(&"c.a.x.test")]].concat();
        let judged = Tree::of(&[before]).judged(None);
        let known = Known { hall: &judged.hall, order: &judged.gateway.listeners };
        let tree = Tree::of(&[after]).judged(Some(&judged));
        let ids = tree.gateway.listeners.iter();
        let listeners: Vec<_> = ids.map(|id| tree.hall.shared(id.slot).unwrap().clone()).collect();
        assert_eq!(known.reached(&listeners), Some(vec![0, 1, 4]));
        assert_eq!(known.reached(&listeners[..4]), Some(vec![]));
        assert_eq!(known.reached(&listeners[1..4]), Some(vec![0]));
    }
}
