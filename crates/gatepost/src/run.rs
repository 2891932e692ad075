//! The loop: objects → topology → desired → plan → outcome, again and again.
//!
//! One pass is one straight line; `serve` runs it whenever files change. Nothing here decides: it carries values from one
//! stage to the next.

use gatepost_core::desired::{self, Desired};
use gatepost_core::model::Str;
use gatepost_core::plan::{self, Hold, Intent, Observed, Plan, Unseen, ZoneState};
use gatepost_core::reason;
use gatepost_core::topology::Scope;
use gatepost_dns::provider::Provider;

use crate::apply::{self, Mode, Outcome};
use crate::source::Objects;

/// What a pass goes by.
pub struct Line {
    /// What is published.
    pub publishing: desired::Settings,
    /// Whose Gateways are looked at.
    pub scope: Scope,
    /// What may be written.
    pub planning: plan::Settings,
    /// Whether anything is written.
    pub mode: Mode,
}

/// What one pass came to.
pub struct Pass {
    /// What ought to exist.
    pub desired: Desired,
    /// What was to be written, and what is held.
    pub plan: Plan,
    /// What was written.
    pub outcome: Outcome,
}

impl Line {
    /// What ought to exist.
    pub fn desired(&self, objects: &Objects) -> Desired {
        let topology = objects.topology(&self.scope);
        desired::build(objects.snapshot(), &topology, &self.publishing)
    }

    /// Compares what ought to exist with what does, and writes the difference.
    pub async fn pass(&self, objects: &Objects, desired: Desired, provider: &dyn Provider) -> Pass {
        let observed = observe(provider).await;
        let holds: Vec<_> = desired.withheld.iter().filter(|w| w.holds()).map(hold).collect();
        let unseen = unseen(objects);
        let intent = Intent {
            records: &desired.records,
            covered: &[],
            challenges: &[],
            retired: &[],
            holds: &holds,
            unseen: &unseen,
            remembered: &Default::default(),
        };
        let plan = plan::decide(&intent, &observed, &self.planning);
        let outcome = apply::apply(provider, &plan, self.mode).await;
        Pass { desired, plan, outcome }
    }
}

/// Reads every zone; one that cannot be read to its end is told as such.
async fn observe(provider: &dyn Provider) -> Observed {
    let mut observed = Observed::default();
    for zone in provider.zones().await.unwrap_or_default() {
        let state = match provider.read(&zone).await {
            Ok(content) => ZoneState::Read(content),
            Err(error) => ZoneState::Unreadable(error.to_string()),
        };
        observed.insert(&zone, state);
    }
    observed
}

fn hold(withheld: &desired::Withheld) -> Hold {
    Hold {
        hostname: withheld.hostname.clone(),
        reason: withheld.reason,
        message: withheld.message.clone(),
        object: Some(withheld.object.clone()),
    }
}

/// Texts that could not be read: what they would say is not known.
fn unseen(objects: &Objects) -> Vec<Unseen> {
    let lost = [reason::SYNTAX_ERROR, reason::OBJECT_UNREADABLE];
    let problems = objects.problems().iter().filter(|problem| lost.contains(&problem.reason));
    let told = problems.map(|problem| {
        let what: Str = problem.place.as_ref().map_or("a document".into(), |place| place.source.clone());
        Unseen { what, why: problem.message.clone() }
    });
    told.collect()
}

/// The zones that hold these names where none are named: the last two labels of each.
pub fn derived_zones(desired: &Desired) -> Vec<Str> {
    let mut zones: Vec<Str> = desired.records.iter().map(|record| zone_of(&record.name)).collect();
    zones.sort();
    zones.dedup();
    zones
}

fn zone_of(name: &str) -> Str {
    let labels: Vec<_> = name.split('.').filter(|label| *label != "*").collect();
    labels[labels.len().saturating_sub(2)..].join(".").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_served_in_the_zone_of_its_last_two_labels() {
        for (name, zone) in [
            ("www.example.org", "example.org"),
            ("a.b.example.org", "example.org"),
            ("*.example.org", "example.org"),
            ("localhost", "localhost"),
            ("*.org", "org"),
        ] {
            assert_eq!(&*zone_of(name), zone, "{name}");
        }
    }
}
