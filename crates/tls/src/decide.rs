//! What is to be done about the certificate of one Secret: nothing, wait, order, go on, or let an order go.
//!
//! Pure: everything that is known comes in, with the time; one value comes out, with its reason. What serves is never given up
//! for less: a name that fails is left out of an order only if the certificate that serves does not hold it, or will soon
//! end anyway.

use std::collections::BTreeSet;
use std::sync::Arc;

use gatepost_core::model::{Key, Str};
use gatepost_core::reason::{self, Reason};

use crate::budget::RateLimits;
use crate::chain::Leaf;
use crate::history::{DAY, FailureBackoff, HOUR, IssuanceHistory};
use crate::key::KeyAlgorithm;
use crate::order::{Order, OrderRequest};
use crate::renewal;

/// The certificate that a Secret is to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedCertificate {
    /// The names, sorted.
    pub names: Vec<Str>,
    /// Names that stay if they are there, because it is not known that they ought to be gone.
    pub kept: Vec<Str>,
    /// Names whose records are kept for that reason, of all certificates.
    pub held: Arc<BTreeSet<Str>>,
    /// Seconds before the end at which it is renewed, where a policy says so.
    pub renew_before: Option<u64>,
    /// Lifetime in seconds, where a policy says so.
    pub duration: Option<u64>,
    /// Which key it is to have; where nobody says, what serves keeps the one it has.
    pub algorithm: Option<KeyAlgorithm>,
}

/// What a Secret holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldCertificate {
    /// Nothing.
    Nothing,
    /// Something that cannot serve, and why.
    Unusable(String),
    /// A key pair.
    Pair(Leaf),
    /// Something that somebody else looks after: who, and the pair, or why it cannot serve.
    Foreign(String, std::result::Result<Leaf, String>),
}

/// Rules that hold for all Secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuanceRules {
    /// What the issuer allows.
    pub limits: RateLimits,
    /// How long names must be wanted before a certificate grows, in seconds.
    pub settle: i64,
    /// How long names must be gone before a certificate shrinks.
    pub grace: i64,
    /// The issuer is not asked more often in one round, so that a round comes to an end.
    pub calls: usize,
}

/// What to do about the certificate of one Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssuanceDecision {
    /// Nothing, until then.
    Keep {
        /// When it is to be renewed.
        until: i64,
    },
    /// Nothing yet.
    Wait {
        /// Until when.
        until: i64,
        /// Why.
        reason: Reason,
        /// The same in words.
        why: String,
    },
    /// A new order.
    Order {
        /// For what.
        request: OrderRequest,
        /// Why.
        because: String,
    },
    /// The open order goes on.
    Continue,
    /// The open order is let go.
    Abandon {
        /// Why.
        because: String,
    },
}

impl Default for IssuanceRules {
    fn default() -> Self {
        IssuanceRules { limits: RateLimits::default(), settle: 30, grace: HOUR, calls: 100 }
    }
}

/// What is to be done about one Secret. `open` is its order, if there is one.
pub fn decide(
    secret: &Key,
    want: &WantedCertificate,
    held: &HeldCertificate,
    open: Option<&Order>,
    history: &IssuanceHistory,
    rules: &IssuanceRules,
    now: i64,
) -> IssuanceDecision {
    let case = DecisionInput::new(secret, want, held, history, rules, now);
    match (held, open) {
        (HeldCertificate::Foreign(..), Some(_)) => {
            IssuanceDecision::Abandon { because: "somebody else looks after it".to_owned() }
        }
        (HeldCertificate::Foreign(keeper, _), None) => case.foreign(keeper),
        (_, Some(order)) => case.open(order),
        (_, None) => case.closed(),
    }
}

/// After this many seconds it is looked again whether a Secret is still somebody else's.
const LOOK_AGAIN: i64 = 60;

struct DecisionInput<'a> {
    secret: String,
    want: &'a WantedCertificate,
    /// What serves now.
    serving: Option<&'a Leaf>,
    held: &'a HeldCertificate,
    /// What the certificate is to have: what is wanted, and what is kept.
    target: BTreeSet<Str>,
    history: &'a IssuanceHistory,
    rules: &'a IssuanceRules,
    now: i64,
}

/// How what serves differs from what ought to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    /// Names that are not in it.
    missing: Vec<Str>,
    /// Names that are in it and ought not to be.
    extra: Vec<Str>,
    /// The key that it ought to have instead of its own.
    key: Option<KeyAlgorithm>,
}

impl<'a> DecisionInput<'a> {
    fn new(
        secret: &Key,
        want: &'a WantedCertificate,
        held: &'a HeldCertificate,
        history: &'a IssuanceHistory,
        rules: &'a IssuanceRules,
        now: i64,
    ) -> DecisionInput<'a> {
        let leaf = match held {
            HeldCertificate::Pair(leaf) | HeldCertificate::Foreign(_, Ok(leaf)) => Some(leaf),
            _ => None,
        };
        let is_kept = |name: &&Str| want.kept.contains(*name) || want.held.contains(*name);
        let kept = leaf.into_iter().flat_map(|leaf| &leaf.names).filter(is_kept);
        let target = want.names.iter().chain(kept).cloned().collect();
        let serving = leaf.filter(|leaf| leaf.not_after > now);
        DecisionInput { secret: secret.to_string(), want, serving, held, target, history, rules, now }
    }

    /// An order goes on as long as all its names are wanted; what came since is for the next one.
    fn open(&self, order: &Order) -> IssuanceDecision {
        let gone = order.names.iter().find(|name| !self.target.contains(name.as_str()));
        match gone {
            Some(name) => IssuanceDecision::Abandon { because: format!("`{name}` is no longer wanted") },
            None => IssuanceDecision::Continue,
        }
    }

    /// What is somebody else's is left alone, and its names count as long as it serves them.
    fn foreign(&self, keeper: &str) -> IssuanceDecision {
        match (self.serving, self.missing().first()) {
            (Some(leaf), None) => IssuanceDecision::Keep { until: leaf.not_after },
            (_, missing) => {
                let lack = missing.map(|name| format!("`{name}` is not in it, and ")).unwrap_or_default();
                let why = format!("{lack}{keeper}");
                IssuanceDecision::Wait { until: self.now + LOOK_AGAIN, reason: reason::CERTIFICATE_FOREIGN, why }
            }
        }
    }

    fn closed(&self) -> IssuanceDecision {
        let due = self.due();
        let changes = self.changes();
        let is_due = due.is_none_or(|due| due <= self.now);
        if self.target.is_empty() || (!is_due && changes == Changes::default()) {
            let until = due.filter(|due| *due > self.now).unwrap_or(self.now + DAY);
            return IssuanceDecision::Keep { until };
        }
        let wait = self.unsettled(is_due, &changes).or_else(|| self.resting());
        if let Some(wait) = wait.or_else(|| self.too_soon(&changes)) {
            return wait;
        }
        self.order(is_due, &changes)
    }

    /// How what serves differs from what ought to.
    fn changes(&self) -> Changes {
        let is_other = |(leaf, asked): &(&Leaf, KeyAlgorithm)| leaf.algorithm != Some(*asked);
        let key = self.serving.zip(self.want.algorithm).filter(is_other).map(|(_, asked)| asked);
        Changes { missing: self.missing(), extra: self.extra(), key }
    }

    /// When what serves is to be renewed; nothing where nothing serves.
    fn due(&self) -> Option<i64> {
        let leaf = self.serving?;
        let window = self.history.windows.get(&self.secret);
        let window = window.filter(|window| Some(window.id.as_str()) == leaf.renewal_id.as_deref());
        Some(renewal::due(leaf, window.and_then(|window| window.window), self.want.renew_before))
    }

    fn missing(&self) -> Vec<Str> {
        let is_missing = |name: &&Str| self.serving.is_none_or(|leaf| !leaf.covers(name));
        self.target.iter().filter(is_missing).cloned().collect()
    }

    fn extra(&self) -> Vec<Str> {
        let held = self.serving.into_iter().flat_map(|leaf| &leaf.names);
        held.filter(|name| !self.target.contains(*name)).cloned().collect()
    }

    /// Changes that may be taken back are waited for, as long as something serves. A wildcard that nobody wants is not one of
    /// them: nobody may have one that no policy allows.
    fn unsettled(&self, is_due: bool, changes: &Changes) -> Option<IssuanceDecision> {
        if is_due || changes.extra.iter().any(|name| name.starts_with("*.")) {
            return None;
        }
        let since = self.history.wanted.get(&self.secret)?.at;
        let (wait, why) = match (changes.missing.is_empty(), changes.key) {
            (false, _) => (self.rules.settle, "the names changed a moment ago"),
            (true, Some(_)) => (self.rules.settle, "another key was asked for a moment ago"),
            (true, None) => (self.rules.grace, "names went a moment ago"),
        };
        let until = since + wait;
        let reason = reason::CERTIFICATE_PENDING;
        (until > self.now && since <= self.now).then(|| IssuanceDecision::Wait { until, reason, why: why.to_owned() })
    }

    /// What failed rests, and an issuer that asked to be left alone is.
    fn resting(&self) -> Option<IssuanceDecision> {
        let failures = [self.history.pause.as_ref(), self.history.failures.get(&self.secret)];
        let failure = failures.into_iter().flatten().filter(|failure| failure.rests(self.now));
        failure.max_by_key(|failure| failure.until).map(wait_for)
    }

    /// What was made a moment ago and is to be renewed already is a sign of a clock that is off: no second one follows at once.
    fn too_soon(&self, changes: &Changes) -> Option<IssuanceDecision> {
        let leaf = self.serving.filter(|_| *changes == Changes::default())?;
        let is_it = |names: &[String]| names.iter().map(String::as_str).eq(leaf.names.iter().map(|name| &**name));
        let made = self.history.issued.iter().filter(|issue| is_it(&issue.names)).map(|issue| issue.at).max()?;
        let until = made + DAY.min(leaf.lifetime() / 10);
        let why = "it was made a moment ago and is to be renewed already; is the clock of this machine right?";
        let reason = reason::CERTIFICATE_PENDING;
        (made <= self.now && until > self.now).then(|| IssuanceDecision::Wait { until, reason, why: why.to_owned() })
    }

    fn order(&self, is_due: bool, changes: &Changes) -> IssuanceDecision {
        let missing = &changes.missing;
        let failing: Vec<(&Str, &FailureBackoff)> = self.target.iter().filter_map(|name| self.failing(name)).collect();
        let is_last_call = self.serving.is_none_or(|leaf| renewal::last_call(leaf) <= self.now);
        let guarded = failing.iter().find(|(name, _)| !is_last_call && !missing.contains(name));
        let left_out: BTreeSet<&Str> = failing.iter().map(|(name, _)| *name).collect();
        let names: Vec<Str> = self.target.iter().filter(|name| !left_out.contains(name)).cloned().collect();
        let is_worth = is_due
            || !changes.extra.is_empty()
            || changes.key.is_some()
            || missing.iter().any(|name| !left_out.contains(name));
        if let Some((_, failure)) = guarded {
            return wait_for(failure);
        }
        if let Some((_, failure)) = failing.iter().min_by_key(|(_, failure)| failure.until)
            && (names.is_empty() || !is_worth)
        {
            return wait_for(failure);
        }
        self.within_budget(names, is_due, changes)
    }

    fn failing(&self, name: &'a Str) -> Option<(&'a Str, &'a FailureBackoff)>
    where
        Self: 'a,
    {
        let failure = self.history.names.get(&**name).filter(|failure| failure.rests(self.now))?;
        Some((name, failure))
    }

    fn within_budget(&self, names: Vec<Str>, is_due: bool, changes: &Changes) -> IssuanceDecision {
        let shares = |leaf: &&Leaf| leaf.names.iter().any(|name| names.contains(name));
        let replaces = self.serving.filter(shares).and_then(|leaf| leaf.renewal_id.clone());
        let left = self.rules.limits.left(self.history, &names, replaces.is_some(), self.now);
        if let Some((0, who)) = left {
            let why = format!("no order is left this week for {who}");
            return IssuanceDecision::Wait { until: self.now + HOUR, reason: reason::ISSUER_RATE_LIMITED, why };
        }
        let request = OrderRequest { names, replaces, duration: self.want.duration };
        IssuanceDecision::Order { request, because: self.because(is_due, changes) }
    }

    fn because(&self, is_due: bool, changes: &Changes) -> String {
        match (self.held, self.serving, changes.missing.first()) {
            (HeldCertificate::Nothing, ..) => "the Secret holds no certificate yet".to_owned(),
            (HeldCertificate::Unusable(why) | HeldCertificate::Foreign(_, Err(why)), ..) => {
                format!("what is there cannot serve: {why}")
            }
            (HeldCertificate::Pair(_) | HeldCertificate::Foreign(..), None, _) => {
                "what is there has expired".to_owned()
            }
            (_, _, Some(name)) => format!("`{name}` is not in it"),
            _ if is_due => "it is to be renewed".to_owned(),
            _ => match changes.key {
                Some(key) => format!("its key is to be {key}"),
                None => "names in it are no longer wanted".to_owned(),
            },
        }
    }
}

fn wait_for(failure: &FailureBackoff) -> IssuanceDecision {
    let reason = Reason::find(&failure.reason).unwrap_or(reason::CERTIFICATE_ORDER_FAILED);
    IssuanceDecision::Wait { until: failure.until, reason, why: failure.why.clone() }
}

#[cfg(test)]
mod tests;
