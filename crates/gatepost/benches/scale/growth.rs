//! How time and memory grow with the number of routes.

use serde_json::Value;

use super::cost::number;
use super::rows::{Row, time};
use super::sizes::{self, Folder};
use super::svg::{Line, Plot};
use super::{Outcome, peer, scratch};
use gatepost_worlds::Style;

/// Worlds, and how often the programs run on each. external-dns is left out of the last, where its caches alone would take
/// several GiB.
const SIZES: [(&str, usize, bool); 4] =
    [("1k-1", 9, true), ("10k-1", 5, true), ("100k-1", 2, true), ("1m-1", 1, false)];

struct Point {
    routes: usize,
    ours: Value,
    theirs: Option<Value>,
}

pub(super) fn rows() -> Outcome<Vec<Row>> {
    let points = SIZES.iter().map(point).collect::<Outcome<Vec<Point>>>()?;
    plot(&points)?;
    let lines = points.iter().map(table_line).collect::<Outcome<Vec<String>>>()?;
    let (first, last) = (&points[0], &points[points.len() - 1]);
    let per_route =
        |point: &Point| Ok::<_, Box<dyn std::error::Error>>(number(&point.ours, "strictMs")? / point.routes as f64);
    let ratio = per_route(last)? / per_route(first)?;
    Ok(vec![Row {
        work: "one route from scratch, at 1M routes compared with 1k".to_owned(),
        found: format!("{ratio:.1} ×"),
        bar: "–".to_owned(),
        met: None,
        theirs: "–".to_owned(),
        ours: format!("{} and {}", time(per_route(first)?), time(per_route(last)?)),
        notes: lines.into_iter().map(|line| ("growth".to_owned(), line)).collect(),
    }])
}

fn point(&(world, runs, beside): &(&str, usize, bool)) -> Outcome<Point> {
    let size = sizes::size(world)?;
    let routes = size.routes;
    if !beside {
        return Ok(Point { routes, ours: scratch::measure(world, runs, 0.0)?, theirs: None });
    }
    let folder = Folder::write(&format!("growth-{world}"), size, Style::JsonDocuments)?;
    let both = scratch::alternate(world, &folder, runs, 1)?;
    Ok(Point { routes, ours: both.ours, theirs: Some(both.theirs) })
}

fn table_line(point: &Point) -> Outcome<String> {
    let (strict, peak) = (number(&point.ours, "strictMs")?, number(&point.ours, "peakMiB")?);
    let theirs = match &point.theirs {
        Some(theirs) => format!("{} | {:.0} MiB", time(number(theirs, "cpuLeastMs")?), number(theirs, "peakMiB")?),
        None => "– | –".to_owned(),
    };
    let each = time(strict / point.routes as f64);
    Ok(format!("| {} | {} | {each} | {peak:.0} MiB | {theirs} |", point.routes, time(strict)))
}

/// Both programs over the number of routes: time on the left, memory on the right.
fn plot(points: &[Point]) -> Outcome<()> {
    let ours =
        |name: &str| points.iter().map(|p| Ok((p.routes as f64, number(&p.ours, name)?))).collect::<Outcome<Vec<_>>>();
    let theirs = |name: &str| {
        let known = points.iter().filter_map(|p| Some((p.routes, p.theirs.as_ref()?)));
        known.map(|(routes, value)| Ok((routes as f64, number(value, name)?))).collect::<Outcome<Vec<_>>>()
    };
    let panel = |title, unit, ours, theirs| Plot {
        title,
        unit,
        lines: vec![
            Line { name: "Gatepost", class: "ours", points: ours },
            Line { name: "external-dns", class: "theirs", points: theirs },
        ],
    };
    let time = panel("From scratch, processor time", "ms", ours("strictMs")?, theirs("cpuLeastMs")?);
    let memory = panel("Peak memory, objects included", "MiB", ours("peakMiB")?, theirs("peakMiB")?);
    let folder = peer::root().join("docs/performance");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("growth.svg"), super::svg::page(&[time, memory]))?;
    Ok(())
}
