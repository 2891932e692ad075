//! What is known of the certificate of one Secret, for those who explain and report.

use gatepost_core::model::{Key, Str};
use gatepost_core::reason::{self, Reason};

use super::Certifier;
use crate::chain::Leaf;
use crate::decide::{HeldCertificate, IssuanceDecision, WantedCertificate, decide};
use crate::error::Error;
use crate::order::{Challenge, Order, OrderStep};

/// After this many seconds a Secret that could not be looked at is looked at again.
const LOOK_AGAIN: i64 = 60;

/// The state of issuance for one Secret: what it holds, its order, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuanceState {
    /// The Secret.
    pub secret: Key,
    /// The names it is to have.
    pub wanted: Vec<Str>,
    /// What it holds, if that can serve.
    pub held: Option<Leaf>,
    /// What is wrong with what it holds, if anything.
    pub unusable: Option<String>,
    /// Its order.
    pub order: Option<OpenOrder>,
    /// When it is to be renewed.
    pub renewal: Option<i64>,
    /// What it waits for.
    pub waiting: Option<Waiting>,
    /// Names that failed, with what was said and until when they rest.
    pub failing: Vec<(Str, String, i64)>,
    /// The moment this was true.
    pub now: i64,
}

/// An order as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOrder {
    /// Its names.
    pub names: Vec<Str>,
    /// How far it is.
    pub step: OrderStep,
    /// Where the issuer keeps it.
    pub url: Option<String>,
    /// TXT values it needs.
    pub challenges: Vec<Challenge>,
    /// What stands in its way.
    pub trouble: Option<String>,
    /// When it goes on.
    pub wake: i64,
}

/// Why nothing happens, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Until when.
    pub until: i64,
    /// Why.
    pub reason: Reason,
    /// The same in words.
    pub why: String,
}

impl IssuanceState {
    /// Whether a name has a certificate that serves now.
    pub fn serves(&self, name: &str) -> bool {
        self.held.as_ref().is_some_and(|leaf| leaf.not_after > self.now && leaf.covers(name))
    }

    /// Why a name has no certificate that serves: a row of the catalog, and words.
    pub fn obstacle(&self, name: &str) -> Option<(Reason, String)> {
        if self.serves(name) {
            return None;
        }
        if let Some((_, why, _)) = self.failing.iter().find(|(failing, ..)| **failing == *name) {
            return Some((reason::CERTIFICATE_ORDER_FAILED, why.clone()));
        }
        if let Some(waiting) = &self.waiting {
            return Some((waiting.reason, waiting.why.clone()));
        }
        let why = match &self.order {
            Some(OpenOrder { trouble: Some(trouble), step: OrderStep::Publishing, .. }) => {
                return Some((reason::CHALLENGE_NOT_ANSWERED, trouble.clone()));
            }
            Some(order) => match &order.trouble {
                Some(trouble) => format!("its order is {}: {trouble}", order.step),
                None => format!("its order is {}", order.step),
            },
            None => "it is about to be ordered".to_owned(),
        };
        Some((reason::CERTIFICATE_PENDING, why))
    }

    /// When something is to be done.
    pub fn wake(&self) -> Option<i64> {
        let order = self.order.as_ref().map(|order| order.wake);
        let waiting = self.waiting.as_ref().map(|waiting| waiting.until);
        waiting.or(order).or(self.renewal)
    }
}

impl Certifier {
    /// What is known of one Secret.
    pub(super) fn state(
        &self,
        secret: &Key,
        want: &WantedCertificate,
        held: &HeldCertificate,
        now: i64,
    ) -> IssuanceState {
        let key = secret.to_string();
        let open = self.saved.orders.get(&key);
        let decision = decide(secret, want, held, open, &self.saved.history, &self.rules, now);
        let (renewal, waiting) = match decision {
            // Who renews what is somebody else's is not known here.
            IssuanceDecision::Keep { .. } if matches!(held, HeldCertificate::Foreign(..)) => (None, None),
            IssuanceDecision::Keep { until } => (Some(until), None),
            IssuanceDecision::Wait { until, reason, why } => (None, Some(Waiting { until, reason, why })),
            IssuanceDecision::Continue => (None, open.and_then(|order| self.paused(order, now))),
            _ => (None, None),
        };
        let (leaf, unusable) = match held {
            HeldCertificate::Nothing => (None, None),
            HeldCertificate::Unusable(why) => (None, Some(why.clone())),
            HeldCertificate::Pair(leaf) | HeldCertificate::Foreign(_, Ok(leaf)) => (Some(leaf.clone()), None),
            HeldCertificate::Foreign(_, Err(why)) => (None, Some(why.clone())),
        };
        IssuanceState {
            secret: secret.clone(),
            wanted: want.names.clone(),
            held: leaf,
            unusable,
            order: open.map(|order| OpenOrder {
                names: order.dns_names(),
                step: order.step,
                url: order.url.clone(),
                challenges: order.challenges.clone(),
                trouble: order.trouble.clone(),
                wake: order.wake,
            }),
            renewal,
            waiting,
            failing: self.failing(want, now),
            now,
        }
    }

    /// What is known of a Secret that could not be looked at.
    pub(super) fn unseen(&self, secret: &Key, want: &WantedCertificate, error: &Error, now: i64) -> IssuanceState {
        let waiting = Waiting { until: now + LOOK_AGAIN, reason: error.reason(), why: error.to_string() };
        IssuanceState {
            renewal: None,
            waiting: Some(waiting),
            ..self.state(secret, want, &HeldCertificate::Nothing, now)
        }
    }

    /// What an order waits for whose issuer asked to be left alone.
    fn paused(&self, order: &Order, now: i64) -> Option<Waiting> {
        let pause = self.saved.history.pause.as_ref()?;
        let is_it = pause.rests(now) && order.wake > now && order.trouble.as_ref() == Some(&pause.why);
        is_it.then(|| Waiting { until: order.wake, reason: reason::ISSUER_RATE_LIMITED, why: pause.why.clone() })
    }

    fn failing(&self, want: &WantedCertificate, now: i64) -> Vec<(Str, String, i64)> {
        let failing = want.names.iter().filter_map(|name| {
            let failure = self.saved.history.names.get(&**name).filter(|failure| failure.rests(now))?;
            Some((name.clone(), failure.why.clone(), failure.until))
        });
        failing.collect()
    }
}
