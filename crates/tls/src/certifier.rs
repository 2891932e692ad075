//! The driver: what ought to be certified, what is, and the orders in between.
//!
//! A round looks at every Secret, asks [`decide`] what to do, and moves orders as far as they go without waiting. Each
//! step is written down before the next one is taken. Challenges are given out as records for the ordinary plan; whether they are
//! answered is asked through [`Answers`]. A round never sleeps: it says when the next one is due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatepost_core::model::{Key, Str};
use gatepost_core::publication::Record;

use crate::Call;
use crate::budget::Forecast;
use crate::decide::{IssuanceDecision, IssuanceRules, WantedCertificate, decide};
use crate::error::Result;
use crate::issuer::Issuer;
use crate::order;
use crate::store::{StateStore, Store};

mod saved_state;
mod secret_turn;
mod state;

pub use state::{IssuanceState, OpenOrder, Waiting};

use saved_state::SavedState;
use secret_turn::SecretTurn;

/// Obtains and renews the certificates of many Secrets from one issuer into one store.
#[derive(Debug)]
pub struct Certifier {
    issuer: Arc<dyn Issuer>,
    store: Arc<dyn Store>,
    state_store: Arc<dyn StateStore>,
    rules: IssuanceRules,
    saved: SavedState,
    /// Of the current round.
    usage: RoundUsage,
}

/// How much of its budget the current round has used.
#[derive(Debug, Default)]
struct RoundUsage {
    /// How often the issuer was asked.
    calls: usize,
    /// Why the issuer is not asked again in this round.
    away: Option<String>,
    /// Whether something is to be written down that may be lost.
    is_unwritten: bool,
}

/// Somebody who can say whether TXT values are answered.
pub trait Answers: Send + Sync {
    /// Whether every authoritative server answers with all these values for a name; otherwise why not.
    fn answers<'a>(&'a self, owner: &'a str, values: &'a [Str]) -> Call<'a, std::result::Result<(), String>>;
}

/// The result of one round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Every Secret, sorted.
    pub states: Vec<IssuanceState>,
    /// Whether other TXT values are wanted than before, so that they are to be published.
    pub needs_publishing: bool,
    /// When the next round is due, in seconds since 1970.
    pub wake: Option<i64>,
    /// What happened.
    pub events: Vec<IssuanceEvent>,
}

/// Something that happened to the certificate of a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuanceEvent {
    /// The Secret.
    pub secret: Key,
    /// What.
    pub what: IssuanceEventKind,
    /// The same as the end of a sentence that begins with the Secret.
    pub text: String,
}

/// The kinds of events in the life of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IssuanceEventKind {
    /// It was ordered.
    Ordered,
    /// It was issued and stored.
    Issued,
    /// Its order failed for good.
    Failed,
    /// Its order was let go, because it is no longer wanted as it was.
    LetGo,
    /// A step went wrong and is tried again.
    Trouble,
}

impl IssuanceEventKind {
    /// All of them.
    pub const ALL: [IssuanceEventKind; 5] = [
        IssuanceEventKind::Ordered,
        IssuanceEventKind::Issued,
        IssuanceEventKind::Failed,
        IssuanceEventKind::LetGo,
        IssuanceEventKind::Trouble,
    ];

    /// As shown to people and machines.
    pub fn as_str(self) -> &'static str {
        match self {
            IssuanceEventKind::Ordered => "ordered",
            IssuanceEventKind::Issued => "issued",
            IssuanceEventKind::Failed => "failed",
            IssuanceEventKind::LetGo => "let-go",
            IssuanceEventKind::Trouble => "trouble",
        }
    }
}

impl Certifier {
    /// Reads what was remembered.
    pub async fn open(
        issuer: Arc<dyn Issuer>,
        store: Arc<dyn Store>,
        state_store: Arc<dyn StateStore>,
        rules: IssuanceRules,
    ) -> Result<Certifier> {
        let saved = SavedState::read(&*state_store).await?;
        Ok(Certifier { issuer, store, state_store, rules, saved, usage: RoundUsage::default() })
    }

    /// Who issues.
    pub fn issuer(&self) -> &dyn Issuer {
        &*self.issuer
    }

    /// The TXT values that open orders need now.
    pub fn challenges(&self) -> Vec<Record> {
        let open = self.saved.orders.values().filter(|order| order.is_publishing());
        order::records(open.flat_map(|order| &order.challenges))
    }

    /// TXT values that were needed once and are to go.
    pub fn retired(&self) -> Vec<Record> {
        order::records(&self.saved.retired)
    }

    /// Notes that what was retired is gone from its zones.
    pub async fn forget_retired(&mut self) -> Result<()> {
        if self.saved.retired.is_empty() {
            return Ok(());
        }
        self.saved.retired.clear();
        self.saved.write(&*self.state_store).await
    }

    /// Looks at every Secret and moves its order as far as it goes without waiting.
    pub async fn advance(
        &mut self,
        wants: &BTreeMap<Key, WantedCertificate>,
        answers: &dyn Answers,
        now: i64,
    ) -> Result<Round> {
        let before = (self.challenges(), self.retired());
        let secrets: BTreeSet<String> = wants.keys().map(Key::to_string).collect();
        self.saved.history.tidy(now, |secret| secrets.contains(secret));
        self.usage = RoundUsage::default();
        let mut round = Round::default();
        self.let_go(wants, &mut round).await?;
        for (secret, want) in wants {
            let mut turn = SecretTurn { certifier: self, secret, want, answers, now, events: &mut round.events };
            let state = turn.run().await?;
            round.wake = [round.wake, state.wake()].into_iter().flatten().min();
            round.states.push(state);
        }
        if self.usage.is_unwritten {
            self.saved.write(&*self.state_store).await?;
        }
        round.needs_publishing = before != (self.challenges(), self.retired());
        Ok(round)
    }

    /// What is known of every Secret, without asking or changing anything.
    pub async fn look(&self, wants: &BTreeMap<Key, WantedCertificate>, now: i64) -> Result<Vec<IssuanceState>> {
        let mut states = Vec::new();
        for (secret, want) in wants {
            let state = match secret_turn::hold(&*self.store, secret).await {
                Ok(held) => self.state(secret, want, &held, now),
                Err(error) => self.unseen(secret, want, &error, now),
            };
            states.push(state);
        }
        Ok(states)
    }

    /// What it would take to bring these Secrets about.
    pub async fn forecast(&self, wants: &BTreeMap<Key, WantedCertificate>, now: i64) -> Result<Forecast> {
        let mut orders = Vec::new();
        for (secret, want) in wants {
            let held = secret_turn::hold(&*self.store, secret).await?;
            let open = self.saved.orders.get(&secret.to_string());
            let mut history = self.saved.history.clone();
            history.wanted.remove(&secret.to_string());
            if let IssuanceDecision::Order { request, .. } =
                decide(secret, want, &held, open, &history, &self.rules, now)
            {
                orders.push((request.names, request.replaces.is_some()));
            }
        }
        Ok(self.rules.limits.forecast(&self.saved.history, &orders, now))
    }

    /// Lets orders go whose Secret nobody wants any more.
    async fn let_go(&mut self, wants: &BTreeMap<Key, WantedCertificate>, round: &mut Round) -> Result<()> {
        let secrets: Vec<Key> = self.saved.orders.values().map(|order| order.secret()).collect();
        for secret in secrets.into_iter().filter(|secret| !wants.contains_key(secret)) {
            self.saved.close(&secret.to_string());
            self.saved.write(&*self.state_store).await?;
            let text = "let its order go: nobody wants the certificate any more".to_owned();
            round.events.push(IssuanceEvent { secret, what: IssuanceEventKind::LetGo, text });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
