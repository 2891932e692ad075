//! Properties over random small worlds: what holds of the strict profile whatever the objects are.
//!
//! The zone is evaluated here a second time, by plain loops over the records, so that the evaluation that publishes does not
//! check itself.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::world::*;
use crate::attachment::{Intersection, ListenerId, Scope, Topology};
use crate::model::*;
use crate::names::Hostname;
use crate::policy::{Policies, Policy};
use crate::publication::settings::{PublicationSettings, Publish};
use crate::publication::{Desired, NameSource, Record, Withheld};
use crate::reason;
use crate::snapshot::{Object, Snapshot};

const LISTENER_NAMES: [&str; 7] = ["*", "*.a.test", "*.b.a.test", "x.a.test", "b.a.test", "z.b.a.test", "*.test"];
const ROUTE_NAMES: [&str; 9] = [
    "x.a.test",
    "y.a.test",
    "z.b.a.test",
    "b.a.test",
    "*.a.test",
    "*.b.a.test",
    "c.d.a.test",
    "d.a.test",
    "e.c.d.a.test",
];
const ADDRESSES: [&[&str]; 8] = [
    &["y.a.test"],
    &["z.b.a.test"],
    &["192.0.2.1"],
    &["192.0.2.1", "2001:db8::1"],
    &["192.0.2.2"],
    &["lb1.lb"],
    &["lb2.lb"],
    &[],
];

/// Objects with names of their own: a letter and a number.
fn named<T>(objects: Vec<T>, letter: char, meta: impl Fn(&mut T) -> &mut Meta) -> Vec<T> {
    let name = |(i, mut object): (usize, T)| {
        meta(&mut object).key.name = format!("{letter}{i}").into();
        object
    };
    objects.into_iter().enumerate().map(name).collect()
}

fn listener() -> impl Strategy<Value = Listener> {
    (select(LISTENER_NAMES.to_vec()), any::<bool>(), select(vec!["s1", "s2"])).prop_map(
        |(hostname, is_https, secret)| {
            if is_https { https("x", hostname, secret) } else { http("x", hostname) }
        },
    )
}

fn gateways() -> impl Strategy<Value = Vec<Gateway>> {
    let gateway = (prop::collection::vec(listener(), 1..4), select(ADDRESSES.to_vec()), 0..3i64);
    let gateway = gateway.prop_map(|(mut listeners, addresses, created)| {
        for (i, listener) in listeners.iter_mut().enumerate() {
            listener.name = format!("l{i}").into();
            listener.port = 1000 + u16::try_from(i).unwrap_or_default();
        }
        let mut gateway = at(super::world::gateway("infra/x", listeners), addresses);
        gateway.meta.created = Some(created);
        gateway
    });
    prop::collection::vec(gateway, 1..4).prop_map(|all| named(all, 'g', |gateway| &mut gateway.meta))
}

fn routes() -> impl Strategy<Value = Vec<Route>> {
    let names = subsequence(ROUTE_NAMES.to_vec(), 0..4);
    let target = prop::option::weighted(0.2, select(vec!["192.0.2.9", "192.0.2.1", "lb3.lb"]));
    let extra = prop::option::weighted(0.2, select(vec!["n.a.test", "b.a.test", "q.test"]));
    let route = (names, subsequence(vec![0, 1, 2], 1..3), target, extra, 0..3i64);
    let route = route.prop_map(|(names, parents, target, extra, created)| {
        let mut route = super::world::route("shop/x", "infra/none", &names);
        route.parents = parents.iter().map(|g| parent("Gateway", &format!("infra/g{g}"))).collect();
        route.meta.created = Some(created);
        let route = target.into_iter().fold(route, |route, target| annotated(route, "target", target));
        extra.into_iter().fold(route, |route, name| annotated(route, "hostname", name))
    });
    prop::collection::vec(route, 0..6).prop_map(|all| named(all, 'r', |route| &mut route.meta))
}

/// What both kinds of policies have: target, wildcards, age.
fn policy_values() -> impl Strategy<Value = (PolicyTarget, Option<bool>, i64)> {
    let section = prop::option::weighted(0.3, select(vec!["l0", "l1"]));
    (0..3, section, prop::option::of(any::<bool>()), 0..3i64).prop_map(|(gateway, section, allow, created)| {
        let mut target = dns("infra/x", "Gateway", &format!("g{gateway}")).target;
        target.section = section.map(Str::from);
        (target, allow, created)
    })
}

fn policies() -> impl Strategy<Value = Vec<Object>> {
    let dns =
        (policy_values(), prop::bool::weighted(0.1)).prop_map(|((target, allow_wildcards, created), is_invalid)| {
            let meta = Meta { created: Some(created), ..Meta::named("infra", "x") };
            let exclude_addresses = if is_invalid { vec!["10.0.0.0/99".into()] } else { Vec::new() };
            DnsPolicy { meta, target, allow_wildcards, exclude_addresses, ..dns("infra/x", "Gateway", "x") }
        });
    let tls = policy_values().prop_map(|(target, allow_wildcards, created)| {
        let meta = Meta { created: Some(created), ..Meta::named("infra", "x") };
        TlsPolicy { meta, target, allow_wildcards, ..tls("infra/x", "Gateway", "x") }
    });
    (prop::collection::vec(dns, 0..4), prop::collection::vec(tls, 0..3)).prop_map(|(dns, tls)| {
        let dns = named(dns, 'p', |policy| &mut policy.meta).into_iter().map(Object::DnsPolicy);
        dns.chain(named(tls, 'p', |policy| &mut policy.meta).into_iter().map(Object::TlsPolicy)).collect()
    })
}

fn worlds() -> impl Strategy<Value = (Vec<Object>, PublicationSettings)> {
    (gateways(), routes(), policies(), any::<bool>()).prop_map(|(gateways, routes, policies, is_governed)| {
        let gateways = gateways.into_iter().map(Object::Gateway);
        let objects = gateways.chain(routes.into_iter().map(Object::Route)).chain(policies).collect();
        let publish = if is_governed { Publish::Governed } else { Publish::All };
        (objects, PublicationSettings { publish, ..PublicationSettings::default() })
    })
}

/// A world with everything that was made of it.
struct Made {
    topology: Topology,
    policies: Policies,
    desired: Desired,
}

fn made(objects: Vec<Object>, settings: &PublicationSettings) -> Made {
    let snapshot = Snapshot::of(objects);
    let topology = Topology::build(&snapshot, &Scope::default());
    let policies = Policies::build(&snapshot, &topology, &Default::default());
    Made { desired: of_snapshot(&snapshot, settings), topology, policies }
}

/// A route that requests a name, and the listener.
type Claimant = (ObjectRef, ListenerId);

impl Made {
    /// Published names with their claimants: attached pairs of which nothing is withheld.
    fn granted(&self) -> BTreeMap<Hostname, BTreeSet<Claimant>> {
        let withheld: BTreeSet<_> =
            self.desired.withheld.iter().map(|w| (w.route.clone(), w.listener.clone(), w.hostname.clone())).collect();
        let mut granted: BTreeMap<Hostname, BTreeSet<Claimant>> = BTreeMap::new();
        for (route, id, names) in self.topology.attachments() {
            let listener = self.topology.listener(id);
            for hostname in asked(&route.route, &listener.hostname, names, &self.topology) {
                let object = route.route.object();
                let entry = (object.clone(), Some(listener.key()), hostname.as_str().into());
                if !withheld.contains(&entry) {
                    granted.entry(hostname).or_default().insert((object, id));
                }
            }
        }
        granted
    }

    /// The expected targets of a claim, computed by simple loops.
    fn targets(&self, (route, id): &Claimant) -> BTreeSet<String> {
        let route = &self.topology.routes[route].route;
        if let Some(target) = annotation(route, "target") {
            return BTreeSet::from([target.to_string()]);
        }
        let gateway = self.topology.listener(*id).gateway.as_ref().expect("attached");
        self.topology.gateways[gateway].gateway.status.addresses.iter().map(|a| a.value.to_string()).collect()
    }
}

/// The names that a route requests at a listener. These are the intersections and the annotation's names; the
/// listener's hostname only if the route has none, and no listener that it attaches to serves the annotation's.
fn asked(route: &Route, listener: &Hostname, names: &[Intersection], topology: &Topology) -> Vec<Hostname> {
    let added = annotation(route, "hostname").and_then(|name| Hostname::parse(name).ok());
    let attached = topology.attachments().filter(|(state, ..)| state.route.object() == route.object());
    let mut hosts = attached.map(|(_, id, _)| &topology.listener(id).hostname);
    let is_served = hosts.any(|host| added.as_ref().is_some_and(|name| host.overlaps(name)));
    let has_other_names = route.hostnames.is_empty() && is_served;
    let common = names.iter().filter(|_| !has_other_names).map(|name| name.hostname.clone());
    common.chain(added.and_then(|name| listener.intersect(&name))).collect()
}

fn annotation<'a>(route: &'a Route, name: &str) -> Option<&'a Str> {
    route.meta.annotations.get(format!("{}{name}", crate::publication::settings::GA_PREFIX).as_str())
}

/// The answer to a query for a name according to RFC 4592, by simple loops.
fn resolved(records: &[Record], name: &str) -> BTreeSet<String> {
    let at = |owner: &str| -> BTreeSet<String> {
        let found = records.iter().filter(|record| &*record.name == owner);
        found.flat_map(|record| record.targets.iter().map(ToString::to_string)).collect()
    };
    let exists = |node: &str| records.iter().any(|r| &*r.name == node || r.name.ends_with(&format!(".{node}")));
    if exists(name) {
        return at(name);
    }
    let mut rest = name;
    while let Some((_, above)) = rest.split_once('.') {
        if exists(above) {
            return at(&format!("*.{above}"));
        }
        rest = above;
    }
    BTreeSet::new()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_name_resolves_to_its_own_addresses((objects, settings) in worlds()) {
        let made = made(objects, &settings);
        for (name, wishes) in made.granted() {
            let expected: BTreeSet<String> = wishes.iter().flat_map(|wish| made.targets(wish)).collect();
            prop_assert_eq!(resolved(&made.desired.records, name.as_str()), expected, "{}", name);
        }
    }

    #[test]
    fn every_name_is_wanted_and_says_by_whom((objects, settings) in worlds()) {
        let made = made(objects, &settings);
        let intersected: BTreeSet<Str> =
            made.topology.attachments().flat_map(|(_, _, names)| names).map(|n| n.hostname.as_str().into()).collect();
        let allows = |id| made.policies.dns.governing(id).is_some_and(|policy| policy.allows_wildcards());
        let wildcards: BTreeSet<Str> =
            made.topology.listener_ids().filter(|(id, _)| allows(*id)).map(|(_, l)| l.hostname.as_str().into()).collect();
        let annotated: BTreeSet<&str> =
            made.topology.routes.values().filter_map(|r| annotation(&r.route, "hostname")).map(|name| &**name).collect();
        let published = made.desired.records.iter().filter(|record| record.source != NameSource::HiddenFromWildcard);
        let published: BTreeSet<&Str> = published.map(|record| &record.name).collect();
        for record in &made.desired.records {
            let is_known = match record.source {
                NameSource::Intersected => intersected.contains(&record.name),
                NameSource::Annotation => annotated.contains(&*record.name),
                NameSource::ListenerWildcard => wildcards.contains(&record.name),
                NameSource::Template => false,
                NameSource::HiddenFromWildcard => !published.contains(&record.name),
            };
            prop_assert!(is_known, "{:?}", record);
            prop_assert!(!record.routes.is_empty() && !record.listeners.is_empty());
            prop_assert!(record.routes.is_sorted_by(|a, b| a < b) && record.listeners.is_sorted_by(|a, b| a < b));
        }
    }

    /// D35: below a wildcard that a route serves every name has an answer, whatever else exists there.
    #[test]
    fn a_routed_wildcard_answers_for_everything_below_it((objects, settings) in worlds(), front in select(vec!["q", "q.x", "q.z.b", "z.b", "b", "q.b", "d", "q.d", "c.d"])) {
        let made = made(objects, &settings);
        let name = format!("{front}.a.test");
        let query = Hostname::parse(&name).unwrap();
        let covering = |r: &&Record| Hostname::parse(&r.name).is_ok_and(|n| n.is_wildcard() && n.contains(&query));
        let own = [query.as_str().to_owned(), format!("*.{query}")];
        let is_withheld = made.desired.withheld.iter().any(|w| own.contains(&w.hostname.to_string()) || w.hostname.starts_with("*."));
        let closest = made.desired.records.iter().filter(covering).max_by_key(|record| record.name.len());
        if let Some(wildcard) = closest.filter(|w| w.source != NameSource::ListenerWildcard && !is_withheld) {
            prop_assert!(!resolved(&made.desired.records, &name).is_empty(), "{} below {}", name, wildcard.name);
        }
    }

    /// D34: following CNAMEs through what is published ends.
    #[test]
    fn no_cname_leads_back_to_itself((objects, settings) in worlds()) {
        let made = made(objects, &settings);
        for record in made.desired.records.iter().filter(|r| r.kind == crate::publication::RecordType::Cname) {
            let mut name = record.targets[0].to_string();
            for _ in 0..made.desired.records.len() {
                let next = resolved(&made.desired.records, &name).into_iter().find(|target| !crate::names::is_ip(target));
                let Some(next) = next else { break };
                prop_assert_ne!(&next, &*record.name);
                name = next;
            }
            prop_assert!(resolved(&made.desired.records, &name).iter().all(|target| crate::names::is_ip(target)), "{}", record.name);
        }
    }

    /// The names in a desired state are those that a route, listener or annotation asks for: none is lost without a reason,
    /// and none is added but those that a routed wildcard serves.
    #[test]
    fn no_name_is_lost_without_a_reason((objects, settings) in worlds()) {
        let made = made(objects, &settings);
        let names_of = |route: &Route| -> Vec<Hostname> {
            let written = route.hostnames.iter().filter_map(|written| written.name().ok().cloned());
            let annotated = annotation(route, "hostname").and_then(|name| Hostname::parse(name).ok());
            let names: Vec<Hostname> = written.chain(annotated).collect();
            if route.hostnames.is_empty() { [names, vec![Hostname::any()]].concat() } else { names }
        };
        let is_about = |told: &str, name: &Hostname| Hostname::parse(told).map_or(told == "*", |told| told.overlaps(name));
        let published = || made.desired.records.iter().chain(&made.desired.covered).filter(|r| r.source != NameSource::HiddenFromWildcard);
        for state in made.topology.routes.values() {
            let object = state.route.object();
            // A bare `*` stands for the listeners' hostnames, which are a last resort.
            let asked = names_of(&state.route);
            let certain = if asked.len() > 1 { asked.iter().filter(|name| !name.is_any()).collect() } else { Vec::from_iter(&asked) };
            for name in certain {
                let is_published = published().any(|r| r.routes.contains(&object) && is_about(&r.name, name));
                let is_withheld = made.desired.withheld.iter().any(|w| w.route == object && is_about(&w.hostname, name));
                prop_assert!(is_published || is_withheld, "{} of {}", name, object);
            }
            for withheld in made.desired.withheld.iter().filter(|withheld| withheld.route == object) {
                prop_assert!(asked.iter().any(|name| is_about(&withheld.hostname, name)), "{:?}", withheld);
            }
            for record in published().filter(|r| r.routes.contains(&object) && r.source != NameSource::ListenerWildcard) {
                prop_assert!(asked.iter().any(|name| is_about(&record.name, name)), "{:?}", record);
            }
        }
    }

    #[test]
    fn no_wildcard_certificate_without_a_policy_that_allows_it((objects, settings) in worlds()) {
        let made = made(objects, &settings);
        for certificate in &made.desired.certificates {
            let is_allowed = made.topology.listener_ids().any(|(id, listener)| {
                let policy = made.policies.tls.governing(id);
                certificate.listeners.contains(&listener.key()) && policy.is_some_and(|policy| policy.allows_wildcards())
            });
            prop_assert!(is_allowed || certificate.dns_names.iter().all(|name| !name.starts_with('*')));
            prop_assert!(certificate.dns_names.iter().all(|name| &**name != "*"));
        }
    }

    #[test]
    fn every_precise_name_on_a_certified_listener_is_covered((objects, settings) in worlds()) {
        let made = made(objects, &settings);
        for (_, id, names) in made.topology.attachments() {
            let key = made.topology.listener(id).key();
            for certificate in made.desired.certificates.iter().filter(|c| c.listeners.contains(&key)) {
                for name in names.iter().filter(|name| name.hostname.is_precise()) {
                    let covers = |held: &Str| Hostname::parse(held).is_ok_and(|held| held.covers_in_certificate(name.hostname.as_str()));
                    let covering = certificate.dns_names.iter().filter(|held| covers(held)).count();
                    prop_assert_eq!(covering, 1, "{} in {:?}", &name.hostname, certificate);
                }
            }
        }
    }

    #[test]
    fn removing_a_route_takes_no_name_from_another((objects, settings) in worlds(), at in any::<prop::sample::Index>()) {
        let is_route = |object: &&Object| matches!(object, Object::Route(_));
        let routes: Vec<ObjectRef> = objects.iter().filter(is_route).map(Object::object).collect();
        prop_assume!(!routes.is_empty());
        let gone = at.get(&routes).clone();
        let before = made(objects.clone(), &settings);
        let after = made(objects.into_iter().filter(|object| object.object() != gone).collect(), &settings);
        for (name, wishes) in before.granted() {
            let is_wanted = wishes.iter().any(|(route, _)| *route != gone);
            let is_left = !resolved(&after.desired.records, name.as_str()).is_empty();
            // What was below a wildcard may have been the target of its CNAME, which would lead back to itself then (D34).
            let is_loop = |w: &Withheld| *w.hostname == *name.as_str() && w.reason == reason::CNAME_LOOP;
            let is_refused = after.desired.withheld.iter().any(is_loop);
            prop_assert!(!is_wanted || is_left || is_refused, "{} without {}", name, gone);
        }
        for certificate in &before.desired.certificates {
            let is_left = after.desired.certificates.iter().any(|c| c.secret == certificate.secret);
            prop_assert!(is_left || certificate.routes == [gone.clone()]);
        }
    }

    #[test]
    fn the_order_of_objects_does_not_matter((objects, settings) in worlds(), seed in any::<u64>()) {
        let mut shuffled = objects.clone();
        for i in (1..shuffled.len()).rev() {
            let step = seed.rotate_left(u32::try_from(i).unwrap_or_default()) as usize;
            shuffled.swap(i, step % (i + 1));
        }
        prop_assert_eq!(desired(objects, &settings), desired(shuffled, &settings));
    }

    #[test]
    fn no_name_has_a_cname_beside_anything((objects, settings) in worlds()) {
        let found = desired(objects, &settings);
        for record in found.records.iter().filter(|record| record.kind == crate::publication::RecordType::Cname) {
            let beside = found.records.iter().filter(|other| other.name == record.name).count();
            prop_assert_eq!((beside, record.targets.len()), (1, 1));
        }
    }

    #[test]
    fn every_attached_hostname_is_published_or_withheld((objects, settings) in worlds()) {
        let made = made(objects, &settings);
        let told: BTreeSet<&Str> = made.desired.withheld.iter().map(|w| &w.hostname).collect();
        for (route, id, names) in made.topology.attachments() {
            for hostname in asked(&route.route, &made.topology.listener(id).hostname, names, &made.topology) {
                let is_told = told.contains(&Str::from(hostname.as_str()));
                prop_assert!(is_told || !made.desired.answer(hostname.as_str()).is_empty(), "{}", &hostname);
            }
        }
    }
}
