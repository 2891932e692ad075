//! Instructions of the hot leaves, counted by callgrind: a neighbour on the machine does not change them.
//!
//! A leaf runs so many times and then twice as many times; the difference is what it takes, and everything around it cancels
//! out. The counts that runs are compared with are in `benches/instructions.txt`.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;

use gatepost_core::attachment::{Scope, Topology};
use gatepost_core::model::Key;
use gatepost_core::names::Hostname;
use gatepost_core::routing::{HostIndex, Router};
use gatepost_core::snapshot::Snapshot;
use gatepost_objects::ParseSettings;
use gatepost_worlds::{Size, Style, World, values};

use super::rows::Row;
use super::{Outcome, cost, ours, peer};

/// A leaf: how often it runs at least, and what one time is.
struct Leaf {
    name: &'static str,
    what: &'static str,
    times: usize,
    run: fn(usize) -> Outcome<usize>,
}

const LEAVES: [Leaf; 8] = [
    Leaf { name: "hostname-parse", what: "one hostname", times: 2_000, run: parse },
    Leaf { name: "hostname-intersect", what: "one pair of hostnames", times: 2_000, run: intersect },
    // So many that filling the index, which takes a little more or less each time, counts for nothing.
    Leaf { name: "host-index", what: "one lookup among 10,000 names", times: 200_000, run: look_up },
    Leaf { name: "read-json", what: "one HTTPRoute, JSON to object", times: 50, run: |n| read(Style::JsonLines, n) },
    Leaf { name: "read-yaml", what: "one HTTPRoute, YAML to object", times: 50, run: |n| read(Style::Yaml, n) },
    Leaf { name: "strict", what: "1,000 routes × 64 listeners to records and certificates", times: 10, run: strict },
    Leaf { name: "external-dns", what: "the same world in profile external-dns", times: 4, run: external_dns },
    Leaf { name: "route", what: "one request to its backends", times: 2_000, run: route },
];

pub(super) fn rows() -> Outcome<Vec<Row>> {
    let path = baseline_path();
    let before = baseline(&std::fs::read_to_string(&path).unwrap_or_default());
    let counts = LEAVES.iter().map(|leaf| Ok((leaf, count(leaf)?))).collect::<Outcome<Vec<_>>>()?;
    if std::env::var_os("GATEPOST_BLESS").is_some() || before.is_empty() {
        let lines: String = counts.iter().map(|(leaf, count)| format!("{} {count:.0}\n", leaf.name)).collect();
        std::fs::write(&path, lines)?;
    }
    Ok(counts.into_iter().map(|(leaf, count)| row(leaf, count, before.get(leaf.name).copied())).collect())
}

fn row(leaf: &Leaf, count: f64, before: Option<f64>) -> Row {
    let change = before.map_or("new".to_owned(), |before| format!("{:+.1} %", 100.0 * (count / before - 1.0)));
    let work = format!("instructions: {}", leaf.what);
    let note = format!("| {} | {} | {change} |", leaf.what, grouped(count));
    Row {
        work,
        found: change,
        bar: "–".to_owned(),
        met: None,
        theirs: "–".to_owned(),
        ours: grouped(count),
        notes: vec![("instructions".to_owned(), note)],
    }
}

/// Instructions of one time.
fn count(leaf: &Leaf) -> Outcome<f64> {
    let (once, twice) = (counted(leaf.name, leaf.times)?, counted(leaf.name, 2 * leaf.times)?);
    Ok((twice - once).max(0.0) / leaf.times as f64)
}

/// Instructions of a whole process that runs a leaf so many times.
fn counted(leaf: &str, times: usize) -> Outcome<f64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(std::env::current_exe()?);
    command.args([cost::CHILD, "leaf", leaf, &times.to_string()]);
    let done = command.output().map_err(|error| format!("valgrind: {error}; `scripts/setup bench` installs it"))?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let line = said.lines().find_map(|line| line.split_once("Collected :"));
    line.and_then(|(_, rest)| rest.trim().parse().ok())
        .ok_or_else(|| format!("callgrind counted nothing:\n{said}").into())
}

/// Runs a leaf so many times in this process.
pub(super) fn child(name: &str, times: usize) -> Outcome<()> {
    let leaf = LEAVES.iter().find(|leaf| leaf.name == name).ok_or_else(|| format!("no leaf {name}"))?;
    black_box((leaf.run)(times)?);
    Ok(())
}

fn baseline_path() -> PathBuf {
    peer::root().join("benches/instructions.txt")
}

fn baseline(text: &str) -> BTreeMap<String, f64> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.filter_map(|(name, count)| Some((name.to_owned(), count.trim().parse().ok()?))).collect()
}

/// A count with commas.
fn grouped(count: f64) -> String {
    let digits = format!("{count:.0}");
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    groups.iter().map(|group| String::from_utf8_lossy(group)).collect::<Vec<_>>().join(",")
}

fn world(routes: usize) -> Outcome<World> {
    Ok(World::new(Size { listeners: 64, https: true, ..Size::routes(routes) })?)
}

fn snapshot(routes: usize) -> Outcome<Snapshot> {
    Ok(values::snapshot(&world(routes)?))
}

fn texts(routes: usize) -> Outcome<Vec<String>> {
    let snapshot = snapshot(routes)?;
    Ok(snapshot.routes.values().flat_map(|route| &route.hostnames).map(|written| written.text().to_string()).collect())
}

fn parse(times: usize) -> Outcome<usize> {
    let texts = texts(200)?;
    Ok((0..times).filter(|at| Hostname::parse(black_box(&texts[at % texts.len()])).is_ok()).count())
}

fn hostnames(routes: usize) -> Outcome<Vec<Hostname>> {
    Ok(texts(routes)?.iter().filter_map(|text| Hostname::parse(text).ok()).collect())
}

fn intersect(times: usize) -> Outcome<usize> {
    let names = hostnames(200)?;
    let wide: Vec<Hostname> = names
        .iter()
        .filter_map(|name| Hostname::parse(&format!("*.{}", name.as_str().split_once('.')?.1)).ok())
        .collect();
    let pair = |at: usize| (&wide[at % wide.len()], &names[at % names.len()]);
    Ok((0..times).filter(|at| black_box(pair(*at).0).intersect(black_box(pair(*at).1)).is_some()).count())
}

fn look_up(times: usize) -> Outcome<usize> {
    let names = hostnames(10_000)?;
    let index: HostIndex<usize> = names.iter().cloned().enumerate().map(|(at, name)| (name, at)).collect();
    let asked = |at: usize| names[at * 31 % names.len()].as_str();
    Ok((0..times).filter(|at| index.best(black_box(asked(*at))).is_some()).count())
}

fn read(style: Style, times: usize) -> Outcome<usize> {
    let world = world(100)?;
    let texts: Vec<String> = (0..100).map(|number| world.route(number, style).text).collect();
    let settings = ParseSettings::default();
    let one = |at: usize| gatepost_objects::read("route", black_box(texts[at % texts.len()].as_bytes()), &settings);
    Ok((0..times).map(|at| one(at).objects.len()).sum())
}

fn strict(times: usize) -> Outcome<usize> {
    let snapshot = snapshot(1_000)?;
    Ok((0..times).map(|_| ours::strict(black_box(&snapshot)).records.len()).sum())
}

fn external_dns(times: usize) -> Outcome<usize> {
    let snapshot = snapshot(1_000)?;
    Ok((0..times).map(|_| ours::external_dns(black_box(&snapshot)).records.len()).sum())
}

fn route(times: usize) -> Outcome<usize> {
    let snapshot = values::snapshot(&World::new(Size { wildcards: 0.0, ..Size::routes(1_000) })?);
    let topology = Topology::build(&snapshot, &Scope::default());
    let router = Router::compile(&snapshot, &topology, &Key::new("infra", "edge-0")).ok_or("no Gateway")?;
    let hosts = snapshot.routes.values().flat_map(|route| &route.hostnames).map(|written| &**written.text());
    let requests: Vec<_> = hosts.map(super::lookup::request).collect();
    Ok((0..times).filter(|at| router.route(black_box(&requests[at % requests.len()])).outcome.is_served()).count())
}
