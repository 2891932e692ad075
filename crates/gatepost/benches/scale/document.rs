//! `docs/performance.md`, put together from the rows of all parts.

use super::rows::{self, Row};
use super::{Outcome, peer, say};

const HEAD: &str = "\
# Performance

Written by `make bench`; do not edit. Ratios carry over to other machines, times do not.

Gatepost and the real external-dns 0.23.0 run on the same worlds in the same rounds, alternating, one thread each, the least of each;
in its turn Gatepost runs again for as long as external-dns took, a second at most, so that both have the same chance of a quiet moment.
external-dns repeats its whole loop on every change; the times are of that loop over filled caches, without reading and without a
provider. Gatepost's are from objects in memory to records and certificates. Times are those of the processor. On every world both
publish the same records (`plan --profile external-dns`), or the benchmark fails.

A changed route has another hostname. Changes are read as a watch reads them, sharing what they have in common with what is there; what is
kept for that counts as steady memory. The time is the least median of several batches of changes.

JSON is read some five times as quickly as YAML, so that the same rules are a larger share of it: it is shown, and has no bar.

| work | found | bar | | external-dns | Gatepost |
| --- | --- | --- | --- | --- | --- |
";

const PARITY: &str = "
## As external-dns does it

The same worlds in profile `external-dns`, which makes no certificates: the records that both programs agree on, and how much faster.

| work | records agreed on | ratio | Gatepost | certificates that the table above includes |
| --- | --- | --- | --- | --- |
";

const GROWTH: &str = "
## Growth

![Time and memory over the number of routes](performance/growth.svg)

One Gateway with one listener. Memory is the most that a process of its own occupied while it computed, objects included.

| routes | Gatepost | each route | memory | external-dns | memory |
| --- | --- | --- | --- | --- | --- |
";

const INSTRUCTIONS: &str = "
## Instructions

Counted by callgrind, so that a busy machine does not matter; the change is against `benches/instructions.txt`.

| one time of | instructions | change |
| --- | --- | --- |
";

/// Writes the document where every part has run, now or before.
pub(super) fn write(parts: &[&str]) -> Outcome<()> {
    let missing: Vec<&str> = parts.iter().copied().filter(|part| rows::recall(part).is_none()).collect();
    if !missing.is_empty() {
        return say(&format!("docs/performance.md stays as it is: {} did not run yet", missing.join(", ")));
    }
    let rows: Vec<Row> = parts.iter().filter_map(|part| rows::recall(part)).flatten().collect();
    std::fs::write(peer::root().join("docs/performance.md"), text(&rows))?;
    let bars = rows.iter().filter_map(|row| row.met).collect::<Vec<bool>>();
    let met = bars.iter().filter(|met| **met).count();
    say(&format!("docs/performance.md: {met} of {} bars met", bars.len()))
}

fn text(rows: &[Row]) -> String {
    let table = rows.iter().filter(|row| !row.work.starts_with("instructions: "));
    let table: String = table.map(|row| row.markdown() + "\n").collect();
    let notes = |section: &str| {
        let of = rows.iter().flat_map(|row| &row.notes).filter(|(name, _)| name == section);
        of.map(|(_, line)| line.clone() + "\n").collect::<String>()
    };
    let (parity, growth, counts) = (notes("parity"), notes("growth"), notes("instructions"));
    format!("{HEAD}{table}{PARITY}{parity}{GROWTH}{growth}{INSTRUCTIONS}{counts}")
}
