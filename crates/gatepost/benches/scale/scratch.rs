//! From scratch: all objects in memory, nothing computed yet.

use std::hint::black_box;

use gatepost_worlds::{Style, values};
use serde_json::{Value, json};

use super::cost::{self, lesser, number};
use super::rows::{Row, time, times};
use super::sizes::{self, Folder};
use super::{Outcome, answers, ours, peer};

/// How often the programs take turns.
const ROUNDS: usize = 3;

/// Ours runs again for as long as theirs takes, in milliseconds at most: the least of a moment says little on a machine that
/// others use, too.
const TURN_MS: f64 = 1000.0;

/// A row of the table: the world, its name for people, the bars for time and peak memory.
struct Bars {
    work: &'static str,
    faster: f64,
    peak: Option<f64>,
    /// How often each program runs in a round.
    runs: usize,
}

fn bars(world: &str) -> Bars {
    let (work, faster, peak, runs) = match world {
        "10k-1" => ("from scratch, 10k routes × 1 listener", 3.0, None, 9),
        "100k-1" => ("from scratch, 100k × 1", 3.0, Some(200.0), 3),
        "10k-64" => ("from scratch, 10k × 64", 10.0, None, 5),
        "10k-1000-one" => ("from scratch, 10k × 1000, one parent each", 10.0, None, 5),
        _ => ("from scratch, 10k × 1000, all 16 parents each", 10.0, Some(150.0), 2),
    };
    Bars { work, faster, peak, runs }
}

/// What both programs take for a world.
pub(super) struct Both {
    pub(super) theirs: Value,
    pub(super) ours: Value,
}

pub(super) fn row(world: &str) -> Outcome<Vec<Row>> {
    let bars = bars(world);
    let folder = Folder::write(world, sizes::size(world)?, Style::JsonDocuments)?;
    let records = answers::same(folder.path())?;
    let both = alternate(world, &folder, bars.runs, ROUNDS)?;
    let (theirs, strict) = (number(&both.theirs, "cpuLeastMs")?, number(&both.ours, "strictMs")?);
    let parity = number(&both.ours, "externalDnsMs")?;
    let ratio = theirs / strict;
    let note = format!(
        "| {} | {records} | {} | {} | {} |",
        bars.work,
        times(theirs / parity),
        time(parity),
        number(&both.ours, "certificates")?
    );
    let mut rows = vec![Row {
        work: bars.work.to_owned(),
        found: times(ratio),
        bar: format!("≥ {} × faster", bars.faster),
        met: Some(ratio >= bars.faster),
        theirs: time(theirs),
        ours: time(strict),
        notes: vec![("parity".to_owned(), note)],
    }];
    rows.extend(bars.peak.map(|bar| peak(bars.work, bar, &both)).transpose()?);
    Ok(rows)
}

fn peak(work: &str, bar: f64, both: &Both) -> Outcome<Row> {
    let (theirs, ours) = (number(&both.theirs, "peakMiB")?, number(&both.ours, "peakMiB")?);
    Ok(Row {
        work: format!("{work}: peak memory, objects included"),
        found: times(theirs / ours) + " less",
        bar: format!("≤ {bar} MiB"),
        met: Some(ours <= bar),
        theirs: format!("{theirs:.0} MiB"),
        ours: format!("{ours:.0} MiB, {:.0} of them objects", number(&both.ours, "objectsMiB")?),
        notes: Vec::new(),
    })
}

/// Lets both programs take turns on a world, and takes the least of each.
pub(super) fn alternate(world: &str, folder: &Folder, runs: usize, rounds: usize) -> Outcome<Both> {
    let mut both: Option<Both> = None;
    for _ in 0..rounds {
        let theirs = peer::time(folder.path(), runs)?;
        let turn = TURN_MS.min(number(&theirs, "cpuLeastMs")? * runs as f64);
        let ours = measure(world, runs, turn)?;
        both = Some(match both {
            Some(before) => Both { theirs: lesser(before.theirs, &theirs), ours: lesser(before.ours, &ours) },
            None => Both { theirs, ours },
        });
    }
    both.ok_or_else(|| "no rounds".into())
}

/// What Gatepost takes for a world, in a process of its own: so many runs, and more until so many milliseconds are over.
pub(super) fn measure(world: &str, runs: usize, turn: f64) -> Outcome<Value> {
    cost::child(&["scratch", world, &runs.to_string(), &turn.to_string()])
}

/// Measures a world in this process, which does nothing else.
pub(super) fn child(world: &str, runs: usize, turn: f64) -> Outcome<Value> {
    let world = sizes::world(world)?;
    let empty = cost::resident();
    let (reading, snapshot) = cost::timed(|| values::snapshot(&world));
    let objects = cost::resident() - empty;
    cost::forget_peak();
    let strict = cost::least_within(runs, turn, || ours::strict(black_box(&snapshot)));
    let peak = cost::peak();
    let external_dns = cost::least(runs, || ours::external_dns(black_box(&snapshot)));
    let desired = ours::strict(&snapshot);
    let routes = snapshot.routes.len().max(1);
    Ok(json!({
        "objectsMiB": objects, "peakMiB": peak, "strictMs": strict, "externalDnsMs": external_dns, "readMs": reading,
        "records": desired.records.len(), "certificates": desired.certificates.len(),
        "withheld": desired.withheld.len(), "bytesPerRoute": objects * 1024.0 * 1024.0 / routes as f64,
    }))
}
