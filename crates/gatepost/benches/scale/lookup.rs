//! Host to listener to route rule, and what it takes when there are a million names.

use std::hint::black_box;

use gatepost_core::attachment::{Scope, Topology};
use gatepost_core::model::{Key, Kind};
use gatepost_core::names::Hostname;
use gatepost_core::routing::{GatewayRequest, HostIndex, Router, Scheme};
use gatepost_core::snapshot::Snapshot;
use gatepost_worlds::{Size, World, values};
use serde_json::{Value, json};

use super::Outcome;
use super::cost::{self, lesser, number};
use super::rows::{Row, time, times};

const MANY: usize = 1_000_000;
const FEW: usize = 1_000;
/// How often both are measured, by turns.
const ROUNDS: usize = 3;
/// How many hosts are asked for in one run, and how many runs there are: of lookups, which are soon over, and of whole requests.
const ASKED: usize = 200_000;
const LOOKUPS: usize = 40;
const REQUESTS: usize = 5;

pub(super) fn rows() -> Outcome<Vec<Row>> {
    let (mut few, mut many) = (measure(FEW)?, measure(MANY)?);
    for _ in 1..ROUNDS {
        (few, many) = (lesser(few, &measure(FEW)?), lesser(many, &measure(MANY)?));
    }
    let (index, before) = (number(&many, "indexMs")?, number(&few, "indexMs")?);
    let (whole, small) = (number(&many, "routeMs")?, number(&few, "routeMs")?);
    let row = |work: &str, found: f64, small: f64| Row {
        work: work.to_owned(),
        found: time(found),
        bar: "–".to_owned(),
        met: None,
        theirs: "–".to_owned(),
        ours: format!("{} of what it takes at 1,000", times(found / small)),
        notes: Vec::new(),
    };
    Ok(vec![
        row("host lookup at 1,000,000 hostnames", index, before),
        row("a whole request there: host, listener, rule, backends", whole, small),
    ])
}

fn measure(hostnames: usize) -> Outcome<Value> {
    cost::child(&["lookup", &hostnames.to_string()])
}

/// Measures in this process, which does nothing else.
pub(super) fn child(hostnames: usize) -> Outcome<Value> {
    let each = gatepost_worlds::HOSTNAME_LIMIT;
    let size =
        Size { routes: hostnames.div_ceil(each), hostnames: each, shared: 0.0, wildcards: 0.0, ..Size::default() };
    let snapshot = values::snapshot(&World::new(size)?);
    let names = names(&snapshot);
    // Copies, one behind the other: who asks has just read the name, so that fetching it is not part of looking it up.
    let asked: Vec<String> = (0..ASKED).map(|at| names[at.wrapping_mul(7_919) % names.len()].clone()).collect();
    let index: HostIndex<usize> =
        names.iter().enumerate().filter_map(|(at, name)| Some((Hostname::parse(name).ok()?, at))).collect();
    // The value is read, too.
    let look =
        || asked.iter().filter_map(|host| index.best(black_box(host))).fold(0, |sum, (_, at)| sum ^ black_box(*at));
    let index_ms = cost::least(LOOKUPS, look) / ASKED as f64;
    let route_ms = requests(&snapshot, &asked)?;
    if let Some(host) = asked.iter().find(|host| index.best(host).is_none()) {
        return Err(format!("{host} is not found").into());
    }
    Ok(json!({"hostnames": names.len(), "indexMs": index_ms, "routeMs": route_ms}))
}

fn names(snapshot: &Snapshot) -> Vec<String> {
    snapshot.routes.values().flat_map(|route| &route.hostnames).map(|written| written.text().to_string()).collect()
}

/// What one request takes, from its host to the backends.
fn requests(snapshot: &Snapshot, asked: &[String]) -> Outcome<f64> {
    let topology = Topology::build(snapshot, &Scope::default());
    let gateway = Key::new("infra", "edge-0");
    let router = Router::compile(snapshot, &topology, &gateway).ok_or("the world has its Gateway")?;
    let requests: Vec<GatewayRequest> = asked.iter().map(|host| request(host)).collect();
    let answer = router.route(&requests[0]);
    if !answer.outcome.is_served() {
        return Err(format!("{} {gateway} does not serve {}", Kind::Gateway, asked[0]).into());
    }
    let run = || requests.iter().filter(|request| router.route(black_box(request)).outcome.is_served()).count();
    Ok(cost::least(REQUESTS, run) / requests.len() as f64)
}

pub(super) fn request(host: &str) -> GatewayRequest {
    GatewayRequest {
        scheme: Scheme::Http,
        host: host.to_owned(),
        sni: None,
        port: 80,
        method: "GET".to_owned(),
        path: "/".to_owned(),
        headers: Vec::new(),
        grpc: false,
    }
}
