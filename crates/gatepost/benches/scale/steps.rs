//! Change by change: what one route, one listener costs when everything else stays, and what a world occupies meanwhile.

use gatepost_core::snapshot::Change;
use gatepost_worlds::values::WorldReader;
use gatepost_worlds::{Event, Stream, Style, World};
use serde_json::{Value, json};

use super::cost::{self, lesser, number};
use super::ours::Kept;
use super::rows::{Row, time, times};
use super::sizes::{self, Folder};
use super::{Outcome, peer};

/// Changes are taken until so much time has passed, and at most so many; that so many times, of which the least counts: whoever
/// else is at work on the machine slows down what waits for memory more than what does not.
const BUDGET_MS: f64 = 1000.0;
const MOST: usize = 2000;
const LEAST: usize = 3;
const BATCHES: usize = 4;

/// So many times each world is measured, by turns.
const ROUNDS: usize = 4;

/// How many changes of which stream come before memory is measured once more.
const CHANGES: usize = 200;
const SETTLING: u64 = 2;

pub(super) fn rows() -> Outcome<Vec<Row>> {
    let [mut small, mut large, mut listeners] = turn()?;
    let mut per_route = number(&large, "kibPerRoute")?;
    for _ in 1..ROUNDS {
        let again = turn()?;
        // Of memory the most counts.
        per_route = per_route.max(number(&again[1], "kibPerRoute")?);
        (small, large, listeners) = (lesser(small, &again[0]), lesser(large, &again[1]), lesser(listeners, &again[2]));
    }
    let (at_1k, at_100k) = (number(&small, "routeMs")?, number(&large, "routeMs")?);
    let listener = number(&listeners, "listenerMs")?;
    Ok(vec![
        plain("one route changed at 100k routes, change to plan", time(at_100k), "≤ 200 µs", Some(at_100k <= 0.2)),
        plain("the same, compared with 1k routes", times(at_100k / at_1k), "–", None),
        plain("one listener added at 1,000 listeners", time(listener), "–", None),
        Row {
            theirs: format!("{:.1} KiB", their_memory()?),
            ..plain("steady memory, for each of 100k routes", format!("{per_route:.1} KiB"), "–", None)
        },
    ])
}

/// One after the other, each in a process of its own.
fn turn() -> Outcome<[Value; 3]> {
    let measure = |world: &str| cost::child(&["change", world]);
    Ok([measure("1k-1")?, measure("100k-1")?, measure("10k-1000-one")?])
}

fn plain(work: &str, found: String, bar: &str, met: Option<bool>) -> Row {
    Row {
        work: work.to_owned(),
        ours: found.clone(),
        found,
        bar: bar.to_owned(),
        met,
        theirs: "its whole loop again".to_owned(),
        notes: Vec::new(),
    }
}

/// What the caches of external-dns hold for each of 100k routes, in KiB.
fn their_memory() -> Outcome<f64> {
    let size = sizes::size("100k-1")?;
    let routes = size.routes as f64;
    let folder = Folder::write("steady", size, Style::JsonDocuments)?;
    Ok(number(&peer::time(folder.path(), 1)?, "residentMiB")? * 1024.0 / routes)
}

/// Measures a world in this process, which does nothing else.
pub(super) fn child(name: &str) -> Outcome<Value> {
    let world = sizes::world(name)?;
    let empty = cost::resident();
    let mut reader = WorldReader::default();
    let mut kept = Kept::new(reader.objects(&world));
    let steady = steady(&world, &mut reader, &mut kept) - empty;
    if !kept.is_right() {
        return Err(format!("{name}: the engine and the computation from scratch disagree").into());
    }
    let mut edits = Changes::new(&world, &mut reader, Event::RouteEdited);
    let route = edits.typical(|change| kept.change(change));
    let mut additions = Changes::new(&world, &mut reader, Event::ListenerAdded);
    let listener = additions.typical(|change| kept.change(change));
    let kib = steady * 1024.0 / world.size().routes.max(1) as f64;
    Ok(json!({"routeMs": route, "listenerMs": listener, "kibPerRoute": kib}))
}

/// What the process occupies when everything has been taken in, or after some changes where that is more.
fn steady(world: &World, reader: &mut WorldReader, kept: &mut Kept) -> f64 {
    let taken_in = cost::resident();
    for step in world.stream(SETTLING, &[(Event::RouteEdited, 1)]).take(CHANGES) {
        step.told.iter().filter_map(|told| reader.change(told)).for_each(|change| _ = kept.change(change));
    }
    cost::resident().max(taken_in)
}

/// Changes of one kind, one after the other.
struct Changes<'a> {
    stream: Stream<'a>,
    reader: &'a mut WorldReader,
    event: Event,
}

impl<'a> Changes<'a> {
    fn new(world: &'a World, reader: &'a mut WorldReader, event: Event) -> Self {
        Changes { stream: world.stream(1, &[(event, 1)]), reader, event }
    }

    /// What the next of them take mostly, in milliseconds: the least median of several batches.
    fn typical(&mut self, mut take: impl FnMut(Change) -> usize) -> f64 {
        let batches = (0..BATCHES).map(|_| self.median(&mut take));
        batches.fold(f64::NAN, f64::min)
    }

    /// The median of one batch. Edits of routes that come to nothing are passed over: every other edit of a route changes only
    /// a label, and in a large world hardly a route is edited twice.
    fn median(&mut self, take: &mut impl FnMut(Change) -> usize) -> f64 {
        let mut taken = Vec::new();
        let mut spent = 0.0;
        while taken.len() < LEAST || (spent < BUDGET_MS && taken.len() < MOST) {
            // A listener is only added where there is room, so that some steps tell nothing.
            let Some(step) = self.stream.by_ref().take(MOST).find(|step| !step.told.is_empty()) else { break };
            for change in step.told.iter().filter_map(|told| self.reader.change(told)).collect::<Vec<Change>>() {
                let (cost, count) = cost::timed(|| take(change));
                taken.extend((count > 0 || self.event != Event::RouteEdited).then_some(cost));
                spent += cost;
            }
        }
        taken.sort_by(f64::total_cmp);
        taken.get(taken.len() / 2).copied().unwrap_or(f64::NAN)
    }
}
