//! The names in a plan are those that a route, a listener or an annotation asks for: none is lost without a reason.
//!
//! What a route asks for is computed here a second time, by plain loops over its spec and its annotations.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::random_world::RandomWorld;
use crate::attachment::{ListenerState, RouteState, Scope, Topology};
use crate::model::*;
use crate::names::Hostname;
use crate::publication::settings::{GA_PREFIX, PublicationSettings};
use crate::publication::{self, Desired, NameSource, Record};

fn annotation<'a>(meta: &'a Meta, name: &str) -> Option<&'a str> {
    meta.annotations.get(format!("{GA_PREFIX}{name}").as_str()).map(|value| &**value)
}

/// The names that a route asks for, as text, and those that it leaves out itself.
struct Asked {
    names: BTreeSet<String>,
    left_out: BTreeSet<String>,
}

fn asked(topology: &Topology, desired: &Desired, state: &RouteState, settings: &PublicationSettings) -> Asked {
    let route = &state.route;
    let written: BTreeSet<String> = route.hostnames.iter().map(|written| written.text().to_string()).collect();
    let added = annotation(&route.meta, "hostname").filter(|_| !settings.ignore_hostname_annotation);
    let added: BTreeSet<String> = added.into_iter().flat_map(|text| text.split(',')).map(str::to_owned).collect();
    let source = annotation(&route.meta, "gateway-hostname-source");
    if annotation(&route.meta, "controller").is_some() || !route.meta.labels.is_empty() {
        let mut left_out = &written | &added;
        if left_out.is_empty() {
            left_out.insert("*".to_owned());
        }
        return Asked { names: BTreeSet::new(), left_out };
    }
    let (mut names, mut left_out) = match source {
        Some("annotation-only") => (added, written),
        Some("defined-hosts-only") => (written, added),
        _ => (&written | &added, BTreeSet::new()),
    };
    if names.is_empty() && settings.fqdn_template.is_some() && source != Some("annotation-only") {
        names.insert(format!("{}.{}.t.test", route.meta.key.name, route.meta.key.namespace));
    }
    if source.is_some() && names.is_empty() && left_out.is_empty() {
        left_out.insert("*".to_owned());
    }
    // Without a hostname of its own a route asks for those of the listeners, if none of them serves another name of it.
    let hosts = usable(topology, desired, state).map(|listener| &listener.hostname).collect::<Vec<_>>();
    let is_served = names.iter().any(|name| hosts.iter().any(|host| common(name, host).is_some()));
    if source.is_none() && route.hostnames.is_empty() && (names.is_empty() || !hosts.is_empty() && !is_served) {
        names.insert("*".to_owned());
    }
    Asked { names, left_out }
}

/// The listeners of a route that are part of a Gateway and that nothing leaves out.
fn usable<'a>(
    topology: &'a Topology,
    desired: &'a Desired,
    state: &'a RouteState,
) -> impl Iterator<Item = &'a ListenerState> {
    let listeners = state.attachments().map(|attachment| topology.listener(attachment.listener));
    listeners.filter(|listener| listener.gateway.is_some() && !is_left_out(desired, listener))
}

/// Whether a listener's owner or Gateway is passed over.
fn is_left_out(desired: &Desired, listener: &ListenerState) -> bool {
    let gateway = listener.gateway.clone().map(|key| ObjectRef { kind: Kind::Gateway, key });
    let owners = [gateway, Some(listener.owner.object())];
    desired.passed_over.iter().any(|passed| owners.contains(&Some(passed.object.clone())))
}

/// The name of a route at a listener; `*` stands for the listener's.
fn common(name: &str, host: &Hostname) -> Option<Hostname> {
    if name == "*" { Some(host.clone()) } else { Hostname::parse(name).ok()?.intersect(host) }
}

/// What is wrong with the names of a plan, if anything is.
fn fault(world: &RandomWorld) -> Option<String> {
    let (snapshot, settings) = (world.snapshot(), &world.settings);
    let topology = Topology::build(&snapshot, &Scope { classes: settings.gateway_classes.clone() });
    let desired = publication::build(&snapshot, &topology, settings);
    lost(&topology, &desired, settings).or_else(|| unasked(&topology, &desired, settings))
}

fn published(desired: &Desired) -> impl Iterator<Item = &Record> {
    desired.records.iter().chain(&desired.covered).filter(|record| record.source != NameSource::HiddenFromWildcard)
}

/// A name that a route asks for, and that is neither published nor withheld.
fn lost(topology: &Topology, desired: &Desired, settings: &PublicationSettings) -> Option<String> {
    for state in topology.routes.values() {
        let (object, Asked { names, left_out }) = (state.route.object(), asked(topology, desired, state, settings));
        if !settings.sources.contains(&state.route.kind)
            || settings.namespace.as_ref().is_some_and(|n| n != object.namespace())
        {
            continue;
        }
        let is_withheld = |name: &str| desired.withheld.iter().any(|w| w.route == object && *w.hostname == *name);
        if let Some(name) = left_out.iter().find(|name| !is_withheld(name)) {
            return Some(format!("{object} leaves out `{name}`, and nothing says so"));
        }
        for name in &names {
            let mut is_answered = false;
            for listener in state.attachments().map(|attachment| topology.listener(attachment.listener)) {
                let Some(common) = common(name, &listener.hostname) else { continue };
                if is_left_out(desired, listener) {
                    is_answered = true;
                    continue;
                }
                is_answered |= listener.gateway.is_some();
                let key = listener.key();
                let is_it = |r: &Record| {
                    *r.name == *common.as_str() && r.routes.contains(&object) && r.listeners.contains(&key)
                };
                let is_told = desired
                    .withheld
                    .iter()
                    .any(|w| w.route == object && w.listener.as_ref() == Some(&key) && *w.hostname == *common.as_str());
                if listener.gateway.is_some() && !is_told && !published(desired).any(is_it) {
                    return Some(format!("`{common}` of {object} at {key} is lost"));
                }
            }
            if !is_answered && !is_withheld(name) {
                return Some(format!("`{name}` of {object} is lost"));
            }
        }
    }
    None
}

/// A name in the plan that nobody asks for.
fn unasked(topology: &Topology, desired: &Desired, settings: &PublicationSettings) -> Option<String> {
    let asks = |object: &ObjectRef, told: &str| {
        let Some(state) = topology.routes.get(object) else { return false };
        let Asked { names, left_out } = asked(topology, desired, state, settings);
        let told_name = Hostname::parse(told);
        let overlaps = |name: &String| {
            name == "*" || Hostname::parse(name).is_ok_and(|name| told_name.as_ref().is_ok_and(|t| t.overlaps(&name)))
        };
        names.contains(told) || left_out.contains(told) || names.iter().any(overlaps)
    };
    let record = published(desired).find(|r| r.routes.is_empty() || !r.routes.iter().any(|route| asks(route, &r.name)));
    let withheld = desired.withheld.iter().find(|w| !asks(&w.route, &w.hostname));
    record.map(|r| format!("{r:?}")).or(withheld.map(|w| format!("{w:?}")))
}

/// Panics with the smallest part of the world in which a name is lost or made up.
fn check(seed: u64) {
    let world = RandomWorld::of(seed);
    if fault(&world).is_some() {
        let world = world.reduced(|world| fault(world).is_some());
        panic!("{}\n{world:?}seed {seed}", fault(&world).unwrap_or_default());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn no_name_of_a_plan_is_lost_or_made_up(seed in any::<u64>()) {
        check(seed);
    }
}

/// The worlds are worth something only if names are published, covered, withheld and left out in them.
#[test]
fn random_worlds_have_names_of_every_kind() {
    let all = (0..60).map(RandomWorld::of).map(|world| {
        let topology = Topology::build(&world.snapshot(), &Scope::default());
        publication::build(&world.snapshot(), &topology, &world.settings)
    });
    let all: Vec<Desired> = all.collect();
    assert!(all.iter().any(|desired| !desired.covered.is_empty()));
    assert!(all.iter().any(|desired| !desired.passed_over.is_empty()));
    let reasons: BTreeSet<_> = all.iter().flat_map(|desired| &desired.withheld).map(|w| w.reason).collect();
    let sources: BTreeSet<_> = all.iter().flat_map(|desired| &desired.records).map(|record| record.source).collect();
    assert!(reasons.len() >= 15, "{reasons:?}");
    assert!(sources.len() >= 4, "{sources:?}");
}
