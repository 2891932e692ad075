//! How long the rules take: from objects in memory to desired records and certificates, on one thread.
//!
//! `cargo bench -p gatepost-core --bench engine [world]`. Each line is one world: the least of several runs, and the peak
//! memory of the process, which is why a world named alone is the one to look at for memory.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stdout, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use gatepost_core::attachment::{Scope, Topology};
use gatepost_core::incremental::Engine;
use gatepost_core::model::*;
use gatepost_core::plan::follow::{Part, PartialPlanner};
use gatepost_core::plan::{self, Observed, RecordSet, Registry, ZoneContent, ZoneState};
use gatepost_core::publication::{self, PublicationSettings, Record};
use gatepost_core::snapshot::{Change, Object, Origin, Snapshot};

/// The shape of a world: routes, listeners, whether every route has all parents, and whether listeners end TLS.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    routes: usize,
    listeners: usize,
    all_parents: bool,
    tls: bool,
}

const SHAPES: [Shape; 7] = [
    Shape { name: "10k-1", routes: 10_000, listeners: 1, all_parents: false, tls: false },
    Shape { name: "10k-1-tls", routes: 10_000, listeners: 1, all_parents: false, tls: true },
    Shape { name: "100k-1", routes: 100_000, listeners: 1, all_parents: false, tls: false },
    Shape { name: "10k-64", routes: 10_000, listeners: 64, all_parents: false, tls: false },
    Shape { name: "10k-64-tls", routes: 10_000, listeners: 64, all_parents: false, tls: true },
    Shape { name: "10k-1000-one", routes: 10_000, listeners: 1000, all_parents: false, tls: false },
    Shape { name: "10k-1000-all", routes: 10_000, listeners: 1000, all_parents: true, tls: false },
];

fn timeless(conditions: Vec<Condition>) -> Conditions {
    conditions.into_iter().map(|condition| (condition, None)).collect()
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for shape in SHAPES.iter().filter(|shape| wanted.is_empty() || wanted.iter().any(|name| name == shape.name)) {
        scratch(*shape);
    }
    let all = [
        ("change-1k", 1_000, false),
        ("change-100k", 100_000, false),
        ("change-1k-tls", 1_000, true),
        ("change-100k-tls", 100_000, true),
    ];
    for (name, routes, tls) in all {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            changes(name, Shape { name, routes, listeners: 1, all_parents: false, tls });
        }
    }
    for (name, tls) in [("listener", false), ("listener-tls", true)] {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            listener(Shape { name, routes: 10_000, listeners: 1000, all_parents: false, tls });
        }
    }
}

/// From the change of one route to the steps for its names.
fn changes(name: &str, shape: Shape) {
    let mut engine = Engine::new(PublicationSettings::default(), Scope::default(), Origin::Cluster);
    let start = now();
    engine.apply(world(shape).into_iter().map(Change::Upsert));
    let filled = now() - start;
    let rest = memory("VmRSS");
    let planning = plan::PlanSettings::new(Registry::WholeZone);
    let mut observed = Observed::default();
    let records = engine.world().desired().records;
    let set =
        |record: &Record| RecordSet::new(&record.name, record.kind.as_str(), Some(300), record.targets.iter().cloned());
    observed.insert("example", ZoneState::Read(ZoneContent::new("1", records.iter().map(set))));
    drop(records);
    let follower = PartialPlanner::new(observed, &planning);
    let (mut least, mut steps) = ([Duration::MAX; 2], 0);
    for number in 0..200 {
        let mut route = (**engine.world().snapshot().routes.values().nth(number * 4).unwrap()).clone();
        route.hostnames = vec![WrittenHostname::new(&format!("new-{number}.domain-7.example"))].into();
        let start = Instant::now();
        let delta = engine.apply([Change::Upsert(Object::Route(route))]);
        let reader = engine.world();
        let applied = start.elapsed();
        let (kinds, nothing) = (reader.kinds(), Default::default());
        let part = Part {
            names: &delta.names,
            records: &|name| reader.records(name),
            challenges: &[],
            retired: &[],
            kinds: &kinds,
            holds: &[],
            unseen: &[],
            remembered: &nothing,
        };
        let plan = follower.plan(&part);
        least = [least[0].min(applied), least[1].min(start.elapsed())];
        steps += plan.map_or(0, |plan| plan.steps.len());
    }
    println!(
        "{name:14} filled {:7.2} ms  resident {} MiB  change {:.1} us  change to plan {:.1} us  steps {steps}",
        millis(filled),
        rest >> 10,
        least[0].as_secs_f64() * 1e6,
        least[1].as_secs_f64() * 1e6,
    );
}

/// One listener more, and one less, at many: at the Gateway, and at one of its ListenerSets.
fn listener(shape: Shape) {
    let mut engine = Engine::new(PublicationSettings::default(), Scope::default(), Origin::Cluster);
    engine.apply(world(shape).into_iter().map(Change::Upsert));
    let mut least = [Duration::MAX; 2];
    let mut routes = [0; 2];
    let gateway = engine.world().snapshot().gateways.values().next().unwrap().clone();
    let set = engine.world().snapshot().listener_sets.values().nth(3).unwrap().clone();
    for number in 0..40 {
        let (is_gateway, mut gateway, mut set) = (number % 2 == 0, (*gateway).clone(), (*set).clone());
        let listeners = if is_gateway { &mut gateway.listeners } else { &mut set.listeners };
        let mut listener = listeners[0].clone();
        listener.name = format!("new-{number}").into();
        listener.hostname = Some(WrittenHostname::new(&format!("*.new-{number}.example")));
        listeners.truncate(63);
        listeners.push(listener);
        let object = if is_gateway { Object::Gateway(gateway) } else { Object::ListenerSet(set) };
        let start = Instant::now();
        let delta = engine.apply([Change::Upsert(object)]);
        let which = usize::from(!is_gateway);
        least[which] = least[which].min(start.elapsed());
        routes[which] = delta.routes;
    }
    println!(
        "{:14} one listener more: of the Gateway {:.2} ms, routes bound anew {}; of a set {:.2} ms, routes {}",
        shape.name,
        millis(least[0]),
        routes[0],
        millis(least[1]),
        routes[1],
    );
}

fn scratch(shape: Shape) {
    let snapshot = Snapshot::of(world(shape));
    let settings = PublicationSettings::default();
    let filled = memory("VmRSS");
    let mut least = [Duration::MAX; 2];
    let mut counts = (0, 0);
    for _ in 0..5 {
        let start = now();
        let topology = Topology::build(&snapshot, &Scope::default());
        let judged = now() - start;
        let desired = publication::build(&snapshot, &topology, &settings);
        let all = now() - start;
        least = [least[0].min(judged), least[1].min(all)];
        counts = (desired.records.len(), desired.certificates.len());
    }
    println!(
        "{:14} topology {:7.2} ms  desired {:7.2} ms  all {:7.2} ms  records {} certificates {}  objects {} MiB  peak {} MiB",
        shape.name,
        millis(least[0]),
        millis(least[1] - least[0]),
        millis(least[1]),
        counts.0,
        counts.1,
        filled >> 10,
        memory("VmHWM") >> 10,
    );
}

/// The processor time of this thread, which other work on the machine disturbs least.
fn now() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A figure of this process in KiB.
fn memory(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap_or("0");
    line.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or_default()
}

const DOMAINS: usize = 300;
const HOLDER: usize = 64;
const CONTROLLER: &str = "gateway.example/controller";

/// Strings that are said again and again are one string, as a reader of objects makes them.
#[derive(Default)]
struct Words(std::collections::BTreeMap<String, Str>);

impl Words {
    fn say(&mut self, text: &str) -> Str {
        if let Some(word) = self.0.get(text) {
            return word.clone();
        }
        let word: Str = text.into();
        self.0.insert(text.to_owned(), word.clone());
        word
    }
}

/// Where routes attach: a Gateway or a ListenerSet, with its zones.
struct Holder {
    object: ObjectRef,
    zones: Vec<Option<String>>,
}

fn world(shape: Shape) -> Vec<Object> {
    let mut words = Words::default();
    let holders = holders(shape);
    let mut objects = vec![Object::GatewayClass(GatewayClass {
        meta: Meta::named("", "shared"),
        controller: CONTROLLER.into(),
        features: Vec::new(),
        conditions: Default::default(),
    })];
    for (number, holder) in holders.iter().enumerate() {
        objects.push(holder_object(shape, number, holder, &mut words));
    }
    let teams = (shape.routes / 50).clamp(1, 500);
    for team in 0..teams {
        let namespace = words.say(&format!("team-{team}"));
        objects.push(Object::Namespace(Namespace { meta: Meta::named("", namespace.clone()) }));
        let ports = vec![ServicePort { port: 8080, protocol: words.say("TCP") }];
        objects.push(Object::Service(Service { meta: Meta::named(namespace, words.say("app")), ports }));
    }
    objects.extend((0..shape.routes).map(|number| Object::Route(route(shape, number, teams, &holders, &mut words))));
    objects
}

/// The zones of all listeners, spread over the Gateway and as few ListenerSets as can hold them.
fn holders(shape: Shape) -> Vec<Holder> {
    let count = shape.listeners.div_ceil(HOLDER);
    let mut holders: Vec<Holder> = (0..count)
        .map(|number| Holder {
            object: match number {
                0 => ObjectRef::new(Kind::Gateway, "infra", "edge-0"),
                _ => ObjectRef::new(Kind::ListenerSet, "infra", format!("set-{number:02}")),
            },
            zones: Vec::new(),
        })
        .collect();
    for at in 0..shape.listeners {
        let zone = match at {
            _ if shape.listeners < DOMAINS && at == shape.listeners - 1 => None,
            _ if at < DOMAINS => Some(format!("domain-{at}.example")),
            _ => Some(format!("dept-{}.domain-{}.example", at / DOMAINS, at % DOMAINS)),
        };
        holders[at % count].zones.push(zone);
    }
    if shape.all_parents {
        holders.iter_mut().for_each(|holder| holder.zones.push(None));
    }
    holders
}

fn holder_object(shape: Shape, number: usize, holder: &Holder, words: &mut Words) -> Object {
    let mut meta = Meta::named(holder.object.namespace().clone(), holder.object.name().clone());
    meta.created = Some(number as i64);
    meta.generation = Some(1);
    let listener = |(at, zone): (usize, &Option<String>)| Listener {
        name: format!("l{at}").into(),
        hostname: zone.as_ref().map(|zone| WrittenHostname::new(&format!("*.{zone}"))),
        port: match (zone, shape.all_parents) {
            (None, true) => 8000 + number as u16,
            _ => 443,
        },
        protocol: if shape.tls { Protocol::Https } else { Protocol::Http },
        tls: shape.tls.then(|| ListenerTls {
            mode: TlsMode::Terminate,
            certificates: vec![Reference {
                group: "".into(),
                kind: "Secret".into(),
                namespace: None,
                name: format!("cert-{number}-{at}").into(),
            }],
            options: 0,
        }),
        allowed_routes: AllowedRoutes { namespaces: Admission::All, kinds: Vec::new() },
        has_filters: false,
    };
    let listeners: Vec<Listener> = holder.zones.iter().enumerate().map(listener).collect();
    let conditions = conditions(words);
    let told =
        |listener: &Listener| ListenerStatus { name: listener.name.clone(), conditions: timeless(conditions.clone()) };
    let listener_status: Vec<ListenerStatus> = listeners.iter().map(told).collect();
    if number > 0 {
        let parent = reference(words, Kind::Gateway, "infra", "edge-0");
        return Object::ListenerSet(ListenerSet {
            kind: Kind::ListenerSet,
            meta,
            parent,
            listeners,
            conditions: timeless(conditions),
            listener_status,
        });
    }
    Object::Gateway(Gateway {
        meta,
        class: words.say("shared"),
        listeners,
        wished_addresses: Vec::new(),
        allowed_listeners: Admission::All,
        parameters: None,
        frontend: FrontendTls::default(),
        status: GatewayStatus {
            conditions: timeless(conditions),
            addresses: vec![Address { kind: "IPAddress".into(), value: "192.0.2.1".into(), routability: None }],
            listeners: listener_status,
        },
    })
}

fn conditions(words: &mut Words) -> Vec<Condition> {
    let mut condition = |kind: &str| Condition {
        kind: words.say(kind),
        status: words.say("True"),
        reason: words.say(kind),
        message: words.say(""),
        observed_generation: Some(1),
    };
    vec![condition("Accepted"), condition("ResolvedRefs")]
}

fn reference(words: &mut Words, kind: Kind, namespace: &str, name: &str) -> Reference {
    Reference {
        group: words.say(kind.group()),
        kind: words.say(kind.as_str()),
        namespace: Some(words.say(namespace)),
        name: words.say(name),
    }
}

fn route(shape: Shape, number: usize, teams: usize, holders: &[Holder], words: &mut Words) -> Route {
    let mix = number.wrapping_mul(2_654_435_761) >> 7;
    let home = &holders[mix % holders.len()];
    let zone = match &home.zones[(mix / 31) % home.zones.len()] {
        Some(zone) => zone.clone(),
        None => format!("domain-{}.example", mix % DOMAINS),
    };
    // One in ten repeats the name of another, one in a hundred is a wildcard.
    let label = if number % 10 == 3 { number - 1 } else { number };
    let name = match number % 100 {
        50 => format!("*.app-{label}.{zone}"),
        _ => format!("app-{label}.{zone}"),
    };
    let mut meta = Meta::named(words.say(&format!("team-{}", number % teams)), format!("route-{number}"));
    meta.created = Some(1_700_000_000 + number as i64);
    meta.generation = Some(1);
    let parents: Vec<ParentRef> = holders
        .iter()
        .filter(|holder| shape.all_parents || std::ptr::eq(*holder, home))
        .map(|holder| ParentRef {
            target: reference(words, holder.object.kind, holder.object.namespace(), holder.object.name()),
            section: None,
            port: None,
        })
        .collect();
    let told = |parent: &ParentRef| ParentStatus {
        parent: parent.clone(),
        controller: words.say(CONTROLLER),
        conditions: conditions(words).into(),
    };
    let status = parents.iter().map(told).collect::<Vec<_>>().into();
    let backend = BackendRef {
        target: Reference { group: words.say(""), kind: words.say("Service"), namespace: None, name: words.say("app") },
        port: Some(8080),
        weight: 1,
        filters: Default::default(),
    };
    let mut path = HttpMatch::default();
    path.path.value = words.say("/");
    let rule = Rule {
        name: None,
        matches: Matches::Http(vec![path].into()),
        filters: Default::default(),
        backends: vec![backend].into(),
    };
    Route {
        kind: RouteKind::Http,
        meta,
        parents: parents.into(),
        hostnames: vec![WrittenHostname::new(&name)].into(),
        rules: vec![rule].into(),
        status,
    }
}
