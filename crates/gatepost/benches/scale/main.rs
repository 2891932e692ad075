//! A hundred thousand routes: Gatepost beside the real external-dns on the same worlds, and how both grow.
//!
//! ```text
//! make bench                          every row, then docs/performance.md and its plot
//! BENCH_ONLY=lookup make bench        the rows whose name contains the word; the document is put together when all rows ran
//! GATEPOST_BLESS=1 BENCH_ONLY=instructions make bench      takes the counts of this run as what later ones are compared with
//! ```
//!
//! Rounds alternate between the two programs, each has one thread, and the least of each counts: what is printed first is the
//! ratio, which carries over to other machines. Times are those of the processor. Before anything is timed, the records that
//! `plan --profile external-dns` gives have to equal what external-dns gives, record by record; a run that disagrees fails.
//! Nothing fails for being slow. Memory is measured in processes of their own.

use std::io::Write;

mod answers;
mod cost;
mod document;
mod files;
mod growth;
mod instructions;
mod lookup;
mod ours;
mod peer;
mod rows;
mod scratch;
mod sizes;
mod steps;
mod svg;

use rows::Row;

/// What the program has, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match arguments.split_first() {
        Some((first, rest)) if first == cost::CHILD => child(rest),
        _ => run(),
    }
}

/// What a part does: it measures and gives the rows of the table that it fills.
type Part = fn() -> Outcome<Vec<Row>>;

/// Every part of the benchmark by its name.
const PARTS: [(&str, Part); 10] = [
    ("scratch-10k-1", || scratch::row("10k-1")),
    ("scratch-100k-1", || scratch::row("100k-1")),
    ("scratch-10k-64", || scratch::row("10k-64")),
    ("scratch-10k-1000-one", || scratch::row("10k-1000-one")),
    ("scratch-10k-1000-all", || scratch::row("10k-1000-all")),
    ("change", steps::rows),
    ("lookup", lookup::rows),
    ("files", files::rows),
    ("growth", growth::rows),
    ("instructions", instructions::rows),
];

fn run() -> Outcome<()> {
    let only = std::env::var("BENCH_ONLY").unwrap_or_default();
    for (name, part) in PARTS.iter().filter(|(name, _)| name.contains(&only)) {
        say(&format!("== {name}"))?;
        let rows = part()?;
        rows.iter().try_for_each(|row| say(&row.line()))?;
        rows::keep(name, &rows)?;
    }
    document::write(&PARTS.map(|(name, _)| name))
}

/// What processes of this program do that measure one thing each.
fn child(words: &[String]) -> Outcome<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let answer = match words[..] {
        ["scratch", world, runs, turn] => scratch::child(world, runs.parse()?, turn.parse()?)?,
        ["change", world] => steps::child(world)?,
        ["lookup", hostnames] => lookup::child(hostnames.parse()?)?,
        ["leaf", name, times] => return instructions::child(name, times.parse()?),
        _ => return Err(format!("nothing measures {words:?}").into()),
    };
    say(&answer.to_string())
}

/// Writes a line to standard output.
fn say(line: &str) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
