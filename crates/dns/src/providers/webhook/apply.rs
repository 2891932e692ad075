//! Sending changes: compared with a fresh reading just before, and judged by a fresh reading after a failure.

use std::collections::BTreeMap;

use gatepost_core::plan::{Precondition, SetChange, Step, Verb};

use super::Webhook;
use super::client::Body;
use super::endpoint::{Changes, Endpoint, Key};
use super::filter::Filter;
use crate::provider::{Error, Problem, Result, Unit, data, units};

/// Units in one question.
const BATCH: usize = 1000;

/// After this many single failures and no success the rest is not tried.
const PATIENCE: usize = 8;

/// What the webhook has, by key.
type Present = BTreeMap<Key, Endpoint>;

/// The results of a write, under way.
struct Results {
    steps: Vec<Option<Result<()>>>,
    successes: usize,
    failures: usize,
}

/// How a batch went.
enum Sent {
    /// All of it was done.
    Done,
    /// One change of it may be the cause of the failure.
    Unclear(Error),
}

impl Webhook {
    /// Writes steps and says for each how it went.
    pub(super) async fn write_steps(&self, zone: &str, steps: &[Step]) -> Vec<Result<()>> {
        let mut results = Results { steps: vec![None; steps.len()], successes: 0, failures: 0 };
        let units = units(steps);
        for batch in units.chunks(BATCH) {
            if let Err(stop) = self.write_batch(zone, batch, &mut results).await {
                results.abandon(&stop);
                break;
            }
        }
        results.finish(zone)
    }

    async fn write_batch(&self, zone: &str, batch: &[Unit<'_>], results: &mut Results) -> Result<()> {
        let mut waiting = vec![batch.to_vec()];
        let mut tried = false;
        while let Some(part) = waiting.pop() {
            let present = self.present(zone).await?;
            let filter = self.filter().await?;
            let part: Vec<Unit<'_>> =
                part.into_iter().filter(|unit| results.is_ready(unit, &present, filter, tried)).collect();
            if part.is_empty() {
                continue;
            }
            let sent = self.send(&part, &present).await;
            tried = true;
            match sent {
                Ok(Sent::Done) => part.iter().for_each(|unit| results.put(unit, Ok(()))),
                Ok(Sent::Unclear(error)) if part.len() == 1 => {
                    results.put(&part[0], Err(error.clone()));
                    results.check_patience(&error)?;
                }
                Ok(Sent::Unclear(_)) => {
                    let (first, second) = part.split_at(part.len() / 2);
                    waiting.extend([second.to_vec(), first.to_vec()]);
                }
                Err(error) => {
                    part.iter().for_each(|unit| results.put(unit, Err(error.clone())));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    async fn present(&self, zone: &str) -> Result<Present> {
        let endpoints = self.endpoints_of(zone).await?;
        Ok(endpoints.into_iter().map(|endpoint| (endpoint.key(), endpoint)).collect())
    }

    async fn send(&self, units: &[Unit<'_>], present: &Present) -> Result<Sent> {
        let mut changes = Changes::default();
        units.iter().flat_map(Unit::changes).for_each(|change| add(change, present, &mut changes));
        let body = serde_json::to_vec(&changes).map_err(|error| self.client.wrong(error.to_string()))?;
        let answer = self.client.ask("POST", "records", Body::Json(body)).await?;
        match answer.expect(204) {
            Ok(()) => Ok(Sent::Done),
            Err(error) if answer.may_be_one_change() && error.retry_after.is_none() => Ok(Sent::Unclear(error)),
            Err(error) => Err(error),
        }
    }
}

impl Results {
    /// Whether a unit is still to be sent: not if it is done already, nor if something changed meanwhile.
    fn is_ready(&mut self, unit: &Unit<'_>, present: &Present, filter: &Filter, tried: bool) -> bool {
        let is_done = tried && unit.changes().all(|change| is_new(change, present));
        let result = if is_done { Some(Ok(())) } else { obstacle(unit, present, filter).map(Err) };
        match result {
            None => true,
            Some(result) => {
                self.put(unit, result);
                false
            }
        }
    }

    fn put(&mut self, unit: &Unit<'_>, result: Result<()>) {
        match &result {
            Ok(()) => self.successes += 1,
            Err(_) => self.failures += 1,
        }
        let result = result.map_err(|error| error.record(unit.subject()));
        let steps = self.steps.iter_mut().skip(unit.first).take(unit.steps.len());
        steps.for_each(|step| *step = Some(result.clone()));
    }

    /// A server that says no to everything is not asked a thousand times.
    fn check_patience(&self, error: &Error) -> Result<()> {
        let hopeless = self.successes == 0 && self.failures >= PATIENCE;
        if hopeless { Err(error.clone()) } else { Ok(()) }
    }

    fn abandon(&mut self, stop: &Error) {
        let left = Error { record: None, problem: Problem::NotTried(stop.problem.to_string()), ..stop.clone() };
        self.steps.iter_mut().filter(|step| step.is_none()).for_each(|step| *step = Some(Err(left.clone())));
    }

    fn finish(self, zone: &str) -> Vec<Result<()>> {
        let untried = || Err(Error::new(Problem::NotTried("no answer was recorded".into())));
        let named = |result: Result<()>| result.map_err(|error| error.zone(zone));
        self.steps.into_iter().map(|step| named(step.unwrap_or_else(untried))).collect()
    }
}

/// Puts a change where it belongs. The old side is what the webhook itself said, labels included.
fn add(change: &SetChange, present: &Present, changes: &mut Changes) {
    let old = present.get(&key_of(&change.name, change.kind.as_str(), change.set_identifier.as_deref())).cloned();
    match (change.verb(), old, Endpoint::of_new(change)) {
        (Verb::Create, _, Some(new)) => changes.create.push(new),
        (Verb::Update, Some(old), Some(new)) => {
            changes.update_old.push(old);
            changes.update_new.push(new);
        }
        (Verb::Delete, Some(old), _) => changes.delete.push(old),
        // The preconditions hold, so that an old side is there; and no side is ever empty.
        _ => {}
    }
}

/// What stands in the way of a unit.
fn obstacle(unit: &Unit<'_>, present: &Present, filter: &Filter) -> Option<Error> {
    if let Some(change) = unit.changes().find(|change| !filter.admits(&change.name)) {
        let cause = format!("{} is outside of the domains that the webhook takes", change.name);
        return Some(Error::new(Problem::Unwritable(cause)));
    }
    let mut conditions = unit.steps.iter().flat_map(|step| step.preconditions());
    conditions.find_map(|condition| broken(&condition, present)).map(|cause| Error::new(Problem::Stale(cause)))
}

fn broken(condition: &Precondition, present: &Present) -> Option<String> {
    let find = |name: &str, kind: &str, id: Option<&str>| present.get(&key_of(name, kind, id));
    match condition {
        Precondition::Unused { name } => {
            let used = present.keys().any(|(other, ..)| other == &**name);
            used.then(|| format!("{name} is in use"))
        }
        Precondition::Absent { name, kind, set_identifier } => {
            let found = find(name, kind.as_str(), set_identifier.as_deref());
            found.map(|_| format!("{name} {kind} exists and was absent"))
        }
        Precondition::Equals { name, kind, set_identifier, values } => {
            let found = find(name, kind.as_str(), set_identifier.as_deref());
            let values = values.iter().map(|value| value.to_string()).collect::<Vec<_>>();
            match found {
                None => Some(format!("{name} {kind} is gone")),
                Some(found) if same(kind.as_str(), &found.targets, &values) => None,
                Some(_) => Some(format!("{name} {kind} has other values")),
            }
        }
    }
}

/// Whether a change has been made.
fn is_new(change: &SetChange, present: &Present) -> bool {
    let found = present.get(&key_of(&change.name, change.kind.as_str(), change.set_identifier.as_deref()));
    match (found, &change.new) {
        (None, None) => true,
        (Some(found), Some(new)) => {
            let values: Vec<String> = new.values.iter().map(|value| value.to_string()).collect();
            same(change.kind.as_str(), &found.targets, &values) && new.ttl.is_none_or(|ttl| found.ttl() == Some(ttl))
        }
        _ => false,
    }
}

fn key_of(name: &str, kind: &str, id: Option<&str>) -> Key {
    (name.to_ascii_lowercase(), kind.to_ascii_uppercase(), id.unwrap_or_default().to_owned())
}

/// Whether two lists of values mean the same, whatever their order and spelling.
fn same(kind: &str, ours: &[String], theirs: &[String]) -> bool {
    let tidy = |values: &[String]| {
        let one = |value: &String| {
            let value = data::tidy(kind, value).unwrap_or_else(|_| value.clone());
            if kind == "TXT" { value } else { value.to_ascii_lowercase() }
        };
        let mut values: Vec<String> = values.iter().map(one).collect();
        values.sort();
        values.dedup();
        values
    };
    tidy(ours) == tidy(theirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_is_no_difference() {
        let list = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        let rows = [
            ("A", &["192.0.2.2", "192.0.2.1"][..], &["192.0.2.1", "192.0.2.2"][..], true),
            ("A", &["192.0.2.1"], &["192.0.2.1", "192.0.2.2"], false),
            ("AAAA", &["2001:DB8::1"], &["2001:db8:0::1"], true),
            ("CNAME", &["Edge.Example.net."], &["edge.example.net"], true),
            ("TXT", &["\"Abc\""], &["Abc"], true),
            ("TXT", &["\"Abc\""], &["\"abc\""], false),
            ("ODD", &["x"], &["x"], true),
        ];
        for (kind, ours, theirs, expected) in rows {
            assert_eq!(same(kind, &list(ours), &list(theirs)), expected, "{kind} {ours:?} {theirs:?}");
        }
    }
}
