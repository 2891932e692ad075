//! Several providers, once: what `plan` shows of them, `apply` writes to them, and `verify` compares with.
//!
//! All of them are read and written at the same time, each with its own plan; one that cannot be read holds what is there and
//! leaves the plans of the others as they are. What is shown and how a command ends is for the commands to say.

use std::time::Duration;

use futures_util::future::join_all;
use gatepost_core::model::Str;
use gatepost_core::plan::{Hold, Observed, Plan, Sight};
use gatepost_core::publication::holders::ObservedNames;
use gatepost_core::publication::{self, Desired};

use super::Failure;
use super::session::{Flags, Session};
use crate::apply::Outcome;
use crate::progress::LongWork;
use crate::run::desired::DesiredUpdate;
use crate::run::publisher::{Publisher, PublisherWork, RecordOrigins};
use crate::run::publishers::{KnownNames, PublishedState, beside, combined_digest};
use crate::run::{Comparison, Decision, Pass};
use crate::source::Objects;

/// Several providers, and what is remembered of them.
pub(super) struct ProvidersOnce {
    publishers: Vec<Publisher>,
}

/// What is to be done at each of several providers.
pub(super) struct DecidedProviders {
    /// What ought to exist, at all of them.
    pub(super) desired: Desired,
    /// The providers, in order.
    pub(super) parts: Vec<DecidedProvider>,
    sight: Sight,
}

/// What is to be done at one of several providers.
pub(super) struct DecidedProvider {
    /// Its name.
    pub(super) name: Str,
    /// What it is to bring about.
    pub(super) work: PublisherWork,
    /// What it has.
    pub(super) observed: Observed,
    /// The plan, and what could not be read.
    pub(super) decision: Decision,
}

/// For as long as one command takes, zones need not be read again where a provider says what changed.
const FRESH: Duration = Duration::from_secs(3600);

impl ProvidersOnce {
    /// The providers, where there are several.
    pub(super) fn open(session: &Session, flags: Flags<'_>) -> Result<Option<ProvidersOnce>, Failure> {
        let publishers = session.publishers(flags, FRESH, |_, provider| provider)?;
        Ok((!publishers.is_empty()).then_some(ProvidersOnce { publishers }))
    }

    /// What ought to exist against what does.
    pub(super) async fn decide(&mut self, session: &Session, objects: &Objects) -> DecidedProviders {
        let pipeline = &session.pipeline;
        let topology = objects.topology(&pipeline.scope);
        let seen = objects.seen(&topology);
        let mut desired = pipeline.desired(seen, &session.challenge_records, &Default::default());
        let _work = LongWork::begin("reading the zones, and planning what to write");
        let comparisons = join_all(self.publishers.iter_mut().map(Publisher::read)).await;
        let has_unread = Hold::any(seen.snapshot, seen.problems);
        let contested = publication::contested_names(seen.snapshot, &topology, &pipeline.publishing, has_unread);
        let mut origins = RecordOrigins::new();
        for (publisher, comparison) in self.publishers.iter().zip(&comparisons) {
            for (name, found) in publisher.origins(comparison, &contested).unwrap_or_default() {
                origins.entry(name).or_default().extend(found);
            }
        }
        if !origins.is_empty() {
            let observed = ObservedNames::new(origins, has_unread);
            desired = pipeline.desired(seen, &session.challenge_records, &observed);
        }
        let sight = Sight::of(seen.snapshot, &desired, seen.problems);
        let mut decided = DecidedProviders { desired, parts: Vec::new(), sight };
        let nothing = vec![KnownNames::default(); self.publishers.len()];
        let works = decided.works(session, &self.names(), &nothing);
        let decisions =
            self.publishers.iter_mut().zip(comparisons).zip(&works).map(|((publisher, comparison), work)| {
                let observed = comparison.observed().cloned().unwrap_or_default();
                async move { (observed, publisher.decide(work, comparison).await) }
            });
        let decisions = join_all(decisions).await;
        let parts = self.names().into_iter().zip(works).zip(decisions);
        decided.parts = parts
            .map(|((name, work), (observed, decision))| DecidedProvider { name, work, observed, decision })
            .collect();
        // A name that moves is deleted where it was if the other provider has it already.
        let works = decided.works(session, &self.names(), &decided.known());
        for ((publisher, part), work) in self.publishers.iter_mut().zip(&mut decided.parts).zip(works) {
            if part.work != work && part.decision.unread.is_empty() {
                part.decision = publisher.decide_again(&work).await;
                part.work = work;
            }
        }
        decided
    }

    /// Writes what was decided; names that moved are deleted where they were once they are where they ought to be.
    pub(super) async fn write(&mut self, session: &mut Session, decided: DecidedProviders) -> Vec<(Str, Pass)> {
        let DecidedProviders { desired, parts, sight } = decided;
        let mut known = Vec::new();
        let writes = self.publishers.iter_mut().zip(parts).map(|(publisher, part)| async move {
            let (mut pass, kept) = publisher.write(&part.work, part.decision, &mut |_, _| ()).await;
            pass.notes.extend(kept.err().map(|error| format!("--state-dir: what was done could not be kept: {error}")));
            (part.name, part.work, pass)
        });
        let mut written = join_all(writes).await;
        for (_, work, pass) in &written {
            let mut names = KnownNames::default();
            names.learn(work, pass);
            known.push(names);
        }
        let decided = DecidedProviders { desired, parts: Vec::new(), sight };
        let works = decided.works(session, &self.names(), &known);
        let again = self.publishers.iter_mut().zip(&mut written).zip(works).map(
            |((publisher, (_, before, pass)), work)| async move {
                let only_looks = publisher.mode_of(&work) == crate::apply::Mode::Observe;
                if work == *before || !pass.unread.is_empty() || only_looks {
                    return;
                }
                let comparison = publisher.read().await;
                let decision = publisher.decide(&work, comparison).await;
                let (next, _) = publisher.write(&work, decision, &mut |_, _| ()).await;
                let first = std::mem::replace(pass, crate::run::publishers::nothing());
                *pass = first.followed_by(next);
            },
        );
        join_all(again).await;
        written.into_iter().map(|(name, _, pass)| (name, pass)).collect()
    }

    /// Whether the settings of a provider forbid every write.
    pub(super) fn only_looks(&self, name: &str) -> bool {
        self.publishers.iter().any(|publisher| *publisher.name == *name && publisher.only_looks())
    }

    /// What became of all plans. A step that `dry-run` of its provider leaves out is not one that was skipped.
    pub(super) fn outcome(&self, parts: &[(Str, Pass)]) -> Outcome {
        let tried = parts.iter().map(|(name, pass)| {
            let (plan, mut outcome) = (pass.plan.clone(), pass.outcome.clone());
            if self.only_looks(name) {
                outcome.skipped.clear();
            }
            (name.clone(), Pass { plan, outcome, ..crate::run::publishers::nothing() })
        });
        merged(tried.collect::<Vec<_>>().iter()).outcome
    }

    fn names(&self) -> Vec<Str> {
        self.publishers.iter().map(|publisher| publisher.name.clone()).collect()
    }
}

impl DecidedProviders {
    /// What each provider is to bring about, if these names are known to exist at each.
    fn works(&self, session: &Session, names: &[Str], known: &[KnownNames]) -> Vec<PublisherWork> {
        let mode = |_: &str| session.pipeline.mode;
        let state = PublishedState {
            desired: &self.desired,
            rule: &session.pipeline.publishing.providers,
            challenge_records: &session.challenge_records,
            sight: &self.sight,
            contested: &Default::default(),
            explained: &Default::default(),
            mode: &mode,
            confirmed: None,
        };
        let work = |name: &Str| {
            let others = names.iter().zip(known).filter(|(other, _)| *other != name);
            state.work(name, &RecordOrigins::new(), others)
        };
        names.iter().map(work).collect()
    }

    /// The names that are as they ought to be before anything is written.
    fn known(&self) -> Vec<KnownNames> {
        let known = |part: &DecidedProvider| {
            let (mut names, nothing) = (KnownNames::default(), Outcome::default());
            names.learn_of(&part.work, &part.decision.plan, &nothing, &part.decision.unread);
            names
        };
        self.parts.iter().map(known).collect()
    }

    /// The plans of all providers as one.
    pub(super) fn plan(&self) -> Plan {
        let passes = self.parts.iter().map(|part| {
            let plan = part.decision.plan.clone();
            (part.name.clone(), Pass { plan, ..crate::run::publishers::nothing() })
        });
        merged(passes.collect::<Vec<_>>().iter()).plan
    }

    /// The plan of all providers with what ought to exist.
    pub(super) fn into_decision(self) -> Decision {
        let plan = self.plan();
        Decision::of(DesiredUpdate::Whole(Box::new(self.desired)), plan)
    }

    /// What could not be read.
    pub(super) fn unread(&self) -> Vec<String> {
        let of_part = |part: &DecidedProvider| {
            let name = part.name.clone();
            part.decision.unread.clone().into_iter().map(move |why| format!("provider `{name}`: {why}"))
        };
        self.parts.iter().flat_map(of_part).collect()
    }
}

/// The passes of all providers as one.
pub(super) fn merged<'p>(passes: impl Iterator<Item = &'p (Str, Pass)> + Clone) -> Pass {
    let mut all = crate::run::publishers::nothing();
    for (name, pass) in passes.clone() {
        all = beside(all, name, pass);
    }
    all.plan.held.sort();
    all.plan.digest = combined_digest(passes.map(|(name, pass)| (&**name, &*pass.plan.digest)));
    all
}

/// What was read, where everything was.
impl Comparison {
    fn observed(&self) -> Option<&Observed> {
        match self {
            Comparison::WithCache => None,
            Comparison::AfterReading(reading) => Some(reading.observed()),
        }
    }
}
