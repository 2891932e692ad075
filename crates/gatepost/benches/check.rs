//! `gatepost check` from process start to output, and where its time goes: reading, rules, places, the rest.
//!
//! Worlds of 1,000 and 10,000 HTTPRoutes are written to a temporary folder as YAML and as JSON lines. The built program then
//! runs on them as people run it, and the same stages run in this process one by one. Every number is the least of several
//! rounds, taken in turns, so that what else a machine does is left out as far as possible; ratios carry over to other
//! machines, milliseconds do not. Nothing fails for being slow.
//!
//! A runner with statistics (criterion) would add nothing here: it measures functions of this process, and what counts is a
//! whole process that takes seconds. `cargo bench --bench check -- 1000 30000` takes other sizes.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gatepost_core::attachment::{Scope, Topology};
use gatepost_core::lint::LintContext;
use gatepost_objects::{ParseSettings, collect};
use gatepost_testkit::world::{self, Size, Style};

const SIZES: [usize; 2] = [1_000, 10_000];
const ROUNDS: usize = 5;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let folder = std::env::temp_dir().join(format!("gatepost-bench-{}", std::process::id()));
    let result = measure(&folder);
    fs::remove_dir_all(&folder)?;
    print(&result?)
}

/// A world on disk and what it cost.
struct Row {
    style: Style,
    routes: usize,
    bytes: usize,
    folder: PathBuf,
    least: Costs,
}

/// What one round cost.
#[derive(Clone, Copy)]
struct Costs {
    /// The whole process on the wall clock.
    wall: Duration,
    /// The whole process.
    process: Duration,
    /// Texts become objects.
    reading: Duration,
    /// Objects become decisions and diagnostics.
    rules: Duration,
    /// Diagnostics get their lines.
    places: Duration,
}

fn measure(folder: &Path) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for style in [Style::Yaml, Style::JsonLines] {
        for routes in sizes() {
            rows.push(Row::write(folder, style, routes)?);
        }
    }
    for _ in 1..ROUNDS {
        for row in &mut rows {
            row.least = row.least.or_less(Costs::of(&row.folder)?);
        }
    }
    Ok(rows)
}

/// The sizes on the command line, or else the usual ones.
fn sizes() -> Vec<usize> {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    if given.is_empty() { SIZES.to_vec() } else { given }
}

impl Row {
    fn write(folder: &Path, style: Style, routes: usize) -> Outcome<Row> {
        let folder = folder.join(format!("{style:?}-{routes}"));
        fs::create_dir_all(&folder)?;
        let mut bytes = 0;
        for file in world::files(&world::World::new(Size::platform(routes))?, style) {
            bytes += file.text.len();
            fs::write(folder.join(file.name), file.text)?;
        }
        let least = Costs::of(&folder)?;
        Ok(Row { style, routes, bytes, folder, least })
    }

    fn per_route(&self, cost: Duration) -> f64 {
        cost.as_nanos() as f64 / self.routes as f64
    }
}

impl Costs {
    fn of(folder: &Path) -> Outcome<Costs> {
        let (wall, process) = process(folder)?;
        let texts = texts(folder)?;
        let (reading, loaded) = timed(|| collect(texts, &ParseSettings::default()));
        let (rules, (topology, mut diagnostics)) = timed(|| {
            let topology = Topology::build(&loaded.snapshot, &Scope::default());
            let diagnostics = LintContext { snapshot: &loaded.snapshot, topology: &topology }.diagnostics();
            (topology, diagnostics)
        });
        let (places, ()) = timed(|| loaded.fill_places(&mut diagnostics));
        drop((topology, diagnostics));
        Ok(Costs { wall, process, reading, rules, places })
    }

    fn or_less(self, other: Costs) -> Costs {
        Costs {
            wall: self.wall.min(other.wall),
            process: self.process.min(other.process),
            reading: self.reading.min(other.reading),
            rules: self.rules.min(other.rules),
            places: self.places.min(other.places),
        }
    }

    /// Process start, files, output, process end.
    fn rest(&self) -> Duration {
        self.process.saturating_sub(self.reading + self.rules + self.places)
    }
}

/// The texts of a folder, as the program would find them.
fn texts(folder: &Path) -> Outcome<Vec<(std::sync::Arc<str>, Vec<u8>)>> {
    let mut texts = Vec::new();
    for path in gatepost_testkit::tree::files(folder) {
        texts.push((path.to_string_lossy().into(), fs::read(&path)?));
    }
    Ok(texts)
}

/// Runs the program once: time on the wall, and of the processor.
fn process(folder: &Path) -> Outcome<(Duration, Duration)> {
    let start = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
    command.arg("check").arg("-f").arg(folder).env_clear().stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut said = String::new();
    child.stdout.take().ok_or("no output")?.read_to_string(&mut said)?;
    // The program has closed its output and is not yet waited for, so that the system still knows what it used.
    let used = used_by(child.id());
    let code = child.wait()?.code();
    let wall = start.elapsed();
    if !matches!(code, Some(0 | 1)) {
        return Err(format!("check ended with {code:?}:\n{said}").into());
    }
    Ok((wall, used.unwrap_or(wall)))
}

/// Runs a stage and takes the processor time of this thread.
fn timed<T>(stage: impl FnOnce() -> T) -> (Duration, T) {
    let now = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let before = now();
    let result = stage();
    let used = now() - before;
    (Duration::try_from(used).unwrap_or_default(), result)
}

/// What a process has used so far, as Linux tells it; other systems have no such file.
fn used_by(process: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

fn print(rows: &[Row]) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "check on files, least of {ROUNDS} rounds; all but `wall` is processor time, in milliseconds")?;
    writeln!(
        out,
        "{:<10} {:>7} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}  {:>13} {:>14}",
        "style",
        "routes",
        "MB",
        "wall",
        "process",
        "reading",
        "rules",
        "places",
        "rest",
        "rules/reading",
        "ns per route"
    )?;
    for row in rows {
        writeln!(out, "{}", line(row))?;
    }
    for pair in rows.windows(2).filter(|pair| pair[0].style == pair[1].style) {
        writeln!(out, "{}", growth(&pair[0], &pair[1]))?;
    }
    Ok(())
}

fn line(row: &Row) -> String {
    let Costs { wall, process, reading, rules, places } = row.least;
    let ms = |cost: Duration| format!("{:>8.1}", cost.as_secs_f64() * 1e3);
    format!(
        "{:<10} {:>7} {:>7.1} {} {} {} {} {} {}  {:>12.1}% {:>14.0}",
        format!("{:?}", row.style),
        row.routes,
        row.bytes as f64 / 1e6,
        ms(wall),
        ms(process),
        ms(reading),
        ms(rules),
        ms(places),
        ms(row.least.rest()),
        percent(rules, reading),
        row.per_route(process)
    )
}

/// How much more a route costs in a larger world; 1.00 is linear.
fn growth(small: &Row, large: &Row) -> String {
    let times =
        |cost: fn(&Costs) -> Duration| large.per_route(cost(&large.least)) / small.per_route(cost(&small.least));
    format!(
        "{:?}: from {} to {} routes, a route costs {:.2} times as much in all, {:.2} in reading, {:.2} in the rules",
        large.style,
        small.routes,
        large.routes,
        times(|c| c.process),
        times(|c| c.reading),
        times(|c| c.rules)
    )
}

fn percent(part: Duration, whole: Duration) -> f64 {
    100.0 * part.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE)
}
