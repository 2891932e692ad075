//! One Secret in a round: decides, then advances its order as far as it goes without waiting.

use std::time::Duration;

use gatepost_core::model::{Key, Str};
use gatepost_core::reason;

use super::state::IssuanceState;
use super::{Answers, Certifier, IssuanceEvent, IssuanceEventKind};
use crate::chain::{Chain, Leaf};
use crate::decide::{HeldCertificate, IssuanceDecision, WantedCertificate, decide};
use crate::error::{Error, IssuanceProblem, Result};
use crate::history::{DAY, FailureBackoff, HOUR, IssuedCertificate, LONGEST, RenewalWindow, spread};
use crate::issuer::{Failed, Progress};
use crate::key::PrivateKey;
use crate::order::{Order, OrderRequest, OrderStep, records};
use crate::store::{Store, StoredPair, TlsKeyPair};

/// More steps are not taken in one turn, whatever an issuer says.
const MOST_STEPS: usize = 24;
/// So many orders may fail by their names, one after the other, before the Secret as a whole rests.
const QUICK_TRIES: u32 = 3;
/// How many seconds values may take to be answered before their names are given up.
const PUBLISHING_PATIENCE: i64 = 900;
/// After so many seconds an issuer that did not answer somebody else is asked again.
const AWAY: i64 = 30;
/// The longest pause between two looks at an issuer or a zone, in seconds.
const LONGEST_PAUSE: i64 = 300;

pub(super) struct SecretTurn<'t> {
    pub(super) certifier: &'t mut Certifier,
    pub(super) secret: &'t Key,
    pub(super) want: &'t WantedCertificate,
    pub(super) answers: &'t dyn Answers,
    pub(super) now: i64,
    pub(super) events: &'t mut Vec<IssuanceEvent>,
}

/// What a Secret holds, judged: whether key and chain belong together and can be read.
pub(super) async fn hold(store: &dyn Store, secret: &Key) -> Result<HeldCertificate> {
    let Some(StoredPair { pair, keeper }) = store.read(secret).await? else { return Ok(HeldCertificate::Nothing) };
    let judged = pair.and_then(|pair| judge(&pair, keeper.is_some()));
    Ok(match (keeper, judged) {
        (Some(keeper), judged) => HeldCertificate::Foreign(keeper, judged),
        (None, Ok(leaf)) => HeldCertificate::Pair(leaf),
        (None, Err(why)) => HeldCertificate::Unusable(why),
    })
}

/// Somebody else's key may be of a kind that is not read here: then its certificate counts.
fn judge(pair: &TlsKeyPair, is_foreign: bool) -> std::result::Result<Leaf, String> {
    let chain = Chain::read(&pair.chain)?;
    match PrivateKey::from_pem(&pair.secret_key) {
        Err(_) if is_foreign && !pair.secret_key.is_empty() => Ok(chain.leaf),
        Ok(key) if chain.is_for(&key) => Ok(chain.leaf),
        Ok(_) => Err("its key is not the one of its certificate".to_owned()),
        Err(_) => Err("its private key cannot be read".to_owned()),
    }
}

impl SecretTurn<'_> {
    /// Takes the order of the Secret as far as it goes.
    pub(super) async fn run(&mut self) -> Result<IssuanceState> {
        let mut held = match self.hold().await {
            Ok(held) => held,
            // Nothing is ordered while that cannot be seen: the result could not be kept either.
            Err(error) => return Ok(self.certifier.unseen(self.secret, self.want, &error, self.now)),
        };
        self.settle(&held).await;
        for _ in 0..MOST_STEPS {
            if !self.step(&mut held).await? {
                break;
            }
        }
        Ok(self.certifier.state(self.secret, self.want, &held, self.now))
    }

    /// What the Secret holds.
    async fn hold(&self) -> Result<HeldCertificate> {
        hold(&*self.certifier.store, self.secret).await
    }

    /// Notes what is wanted since when, and when the issuer would have the certificate renewed.
    ///
    /// Both may be lost in a crash without harm, so they are written with the next step or at the end of the round.
    async fn settle(&mut self, held: &HeldCertificate) {
        let names: Vec<String> = self.want.names.iter().map(|name| name.to_string()).collect();
        let (key, now) = (self.key(), self.now);
        let known = self.certifier.saved.history.wanted.get(&key).cloned();
        let algorithm = self.want.algorithm.map(|algorithm| algorithm.to_string());
        self.certifier.saved.history.settle(&key, names, algorithm, now);
        let is_new = self.certifier.saved.history.wanted.get(&key) != known.as_ref();
        let is_asked = self.ask_window(held).await;
        self.certifier.usage.is_unwritten |= is_new || is_asked;
    }

    /// Asks the issuer when it would have the certificate renewed, where that is due.
    async fn ask_window(&mut self, held: &HeldCertificate) -> bool {
        let HeldCertificate::Pair(leaf) = held else { return false };
        let Some(id) = leaf.renewal_id.as_deref().filter(|_| leaf.not_after > self.now) else { return false };
        let history = &self.certifier.saved.history;
        let known = history.windows.get(&self.key()).filter(|window| window.id == id);
        let is_fresh = known.is_some_and(|window| window.again > self.now && window.again <= self.now + 2 * DAY);
        let is_resting = history.pause.as_ref().is_some_and(|pause| pause.rests(self.now));
        if is_fresh || is_resting || !self.may_ask() {
            return false;
        }
        let old = known.and_then(|window| window.window);
        self.certifier.usage.calls += 1;
        let (window, again) = match self.certifier.issuer.suggestion(leaf, self.now).await {
            Ok(Some(suggestion)) => (suggestion.window, suggestion.again),
            Ok(None) => (None, self.now + DAY),
            Err(error) => {
                self.note_absence(&error);
                (old, self.now + 6 * HOUR)
            }
        };
        let key = self.key();
        self.certifier.saved.history.windows.insert(key, RenewalWindow { id: id.to_owned(), window, again });
        true
    }

    /// Takes one step; says whether another may follow.
    async fn step(&mut self, held: &mut HeldCertificate) -> Result<bool> {
        let (key, saved) = (self.key(), &self.certifier.saved);
        let open = saved.orders.get(&key);
        match decide(self.secret, self.want, held, open, &saved.history, &self.certifier.rules, self.now) {
            IssuanceDecision::Keep { .. } | IssuanceDecision::Wait { .. } => Ok(false),
            IssuanceDecision::Abandon { because } => {
                self.certifier.saved.close(&key);
                self.tell(IssuanceEventKind::LetGo, format!("let its order go: {because}"));
                self.write().await?;
                Ok(true)
            }
            IssuanceDecision::Order { request, because } => self.begin(&request, &because).await,
            IssuanceDecision::Continue => {
                let is_stored = self.go_on().await?;
                if let Some(leaf) = is_stored {
                    *held = HeldCertificate::Pair(leaf);
                    return Ok(true);
                }
                Ok(self.is_awake())
            }
        }
    }

    /// Whether the open order may go on at once.
    fn is_awake(&self) -> bool {
        self.certifier.saved.orders.get(&self.key()).is_none_or(|order| order.wake <= self.now)
    }

    async fn begin(&mut self, request: &OrderRequest, because: &str) -> Result<bool> {
        let key = match PrivateKey::generate_aside(self.want.algorithm.unwrap_or_default()).await {
            Ok(key) => key,
            Err(error) => return self.fail(&Failed::default(), &error).await.map(|()| false),
        };
        let order = Order::new(self.secret, request, &key, self.now);
        let names = request.names.join(", ");
        let secret = self.key();
        self.certifier.saved.orders.insert(secret, order);
        self.tell(IssuanceEventKind::Ordered, format!("ordered for {names}: {because}"));
        self.write().await?;
        Ok(true)
    }

    /// Moves the open order one step; gives back the certificate where one was stored.
    async fn go_on(&mut self) -> Result<Option<Leaf>> {
        let key = self.key();
        let Some(mut order) = self.certifier.saved.orders.get(&key).cloned() else { return Ok(None) };
        if order.wake > self.now && order.wake <= self.now + LONGEST {
            return Ok(None);
        }
        if order.step == OrderStep::Issued {
            return self.store(order).await;
        }
        if !self.may_ask() {
            self.postpone(order);
            return Ok(None);
        }
        self.certifier.usage.calls += 1;
        let unanswered = self.unanswered(&order).await;
        let published = order.step == OrderStep::Publishing && unanswered.is_empty();
        order.trouble = unanswered.first().map(|(owner, why)| format!("`{owner}` is not answered everywhere: {why}"));
        if !unanswered.is_empty() && self.now - order.since > PUBLISHING_PATIENCE {
            return self.give_up(&order, &unanswered).await.map(|()| None);
        }
        let was_placed = order.url.is_some();
        let issuer = self.certifier.issuer.clone();
        let progress = issuer.advance(&mut order, published, self.now).await;
        if !was_placed && order.url.is_some() {
            self.certifier.saved.history.orders.push(self.now);
        }
        match progress {
            Ok(progress) => self.note(order, progress, published).await.map(|()| None),
            Err(error) => self.stumble(order, error).await.map(|()| None),
        }
    }

    /// Whether the issuer may be asked once more in this round.
    fn may_ask(&self) -> bool {
        self.certifier.usage.away.is_none() && self.certifier.usage.calls < self.certifier.rules.calls
    }

    /// Leaves an order for the next round, because the issuer is not asked again in this one.
    fn postpone(&mut self, mut order: Order) {
        order.wake = self.now + if self.certifier.usage.away.is_some() { AWAY } else { 1 };
        order.trouble = self.certifier.usage.away.clone();
        let key = self.key();
        self.certifier.saved.orders.insert(key, order);
        self.certifier.usage.is_unwritten = true;
    }

    /// An issuer that does not answer is not asked again in this round: everybody else would wait for it in turn.
    fn note_absence(&mut self, error: &Error) {
        if matches!(
            error.problem,
            IssuanceProblem::Unreachable(_) | IssuanceProblem::Busy(_) | IssuanceProblem::Broken(_)
        ) {
            self.certifier.usage.away = Some(error.to_string());
        }
    }

    /// The values of an order that are not answered everywhere, and why; where they are not needed yet or any more, none.
    async fn unanswered(&self, order: &Order) -> Vec<(Str, String)> {
        let mut unanswered = Vec::new();
        if order.step == OrderStep::Publishing {
            for record in records(&order.challenges) {
                if let Err(why) = self.answers.answers(&record.name, &record.targets).await {
                    unanswered.push((record.name, why));
                }
            }
        }
        unanswered
    }

    /// Ends an order some of whose values do not get answered: those names are to blame, unless all of them are.
    async fn give_up(&mut self, order: &Order, unanswered: &[(Str, String)]) -> Result<()> {
        let blamed = |name: &&String| {
            let owner = format!("_acme-challenge.{}", name.strip_prefix("*.").unwrap_or(name));
            unanswered.iter().any(|(unanswered, _)| **unanswered == *owner)
        };
        let names: Vec<&String> = order.names.iter().filter(blamed).collect();
        let why = order.trouble.clone().unwrap_or_default();
        let is_all = names.len() == order.names.len();
        let names = names.into_iter().filter(|_| !is_all).map(|name| (Str::from(name.as_str()), why.clone()));
        let failed = Failed { names: names.collect(), why: why.clone() };
        self.fail(&failed, &Error::new(IssuanceProblem::Unanswered(why))).await
    }

    async fn note(&mut self, mut order: Order, progress: Progress, published: bool) -> Result<()> {
        let is_same_step = self.certifier.saved.orders.get(&self.key()).is_some_and(|old| old.step == order.step);
        if !is_same_step {
            order.since = self.now;
        }
        match progress {
            Progress::Again | Progress::Issued => (order.wake, order.stumbles) = (self.now, 0),
            Progress::Wait(wait) => {
                order.wake = self.now + seconds(wait).max(1);
                order.stumbles = 0;
            }
            Progress::Publish if is_same_step && !published => {
                order.stumbles = order.stumbles.saturating_add(1);
                order.wake = self.now + pause(order.stumbles);
            }
            Progress::Publish => {
                order.stumbles = 0;
                order.wake = self.now + 1;
            }
            Progress::Failed(failed) => {
                let error = Error::new(IssuanceProblem::Refused {
                    kind: "order".to_owned(),
                    detail: failed.why.clone(),
                    names: Vec::new(),
                });
                return self.fail(&failed, &error).await;
            }
        }
        let key = self.key();
        self.certifier.saved.orders.insert(key, order);
        self.write().await
    }

    /// A step that failed: the order rests, or is given up.
    async fn stumble(&mut self, mut order: Order, error: Error) -> Result<()> {
        if matches!(error.problem, IssuanceProblem::Gone(_)) || !error.is_transient() {
            return self.fail(&Failed { names: Vec::new(), why: error.to_string() }, &error).await;
        }
        // A failure over an order that replaces a certificate may be about that certificate alone.
        if order.replaces.is_none() || !matches!(error.problem, IssuanceProblem::Broken(_)) {
            self.note_absence(&error);
        }
        let asked = error.retry_after.map(seconds);
        if matches!(error.problem, IssuanceProblem::RateLimited(_)) {
            let (last, why) = (self.certifier.saved.history.pause.clone(), error.to_string());
            let roll = spread(&self.key());
            let failure = FailureBackoff::after(last.as_ref(), why, error.reason().name(), asked, roll, self.now);
            order.wake = failure.until;
            self.certifier.saved.history.pause = Some(failure);
        } else {
            order.stumbles = order.stumbles.saturating_add(1);
            order.wake = self.now + pause(order.stumbles).max(asked.unwrap_or(0)).min(DAY);
        }
        if order.trouble.as_deref() != Some(&error.to_string()) {
            self.tell(IssuanceEventKind::Trouble, error.to_string());
        }
        order.trouble = Some(error.to_string());
        let key = self.key();
        self.certifier.saved.orders.insert(key, order);
        self.write().await
    }

    /// Ends an order without a certificate, and remembers why.
    async fn fail(&mut self, failed: &Failed, error: &Error) -> Result<()> {
        let (key, now) = (self.key(), self.now);
        self.certifier.saved.close(&key);
        let history = &mut self.certifier.saved.history;
        for (name, why) in &failed.names {
            let roll = spread(name);
            let last = history.names.get(&**name).cloned();
            let reason = reason::CERTIFICATE_ORDER_FAILED.name();
            let failure = FailureBackoff::after(last.as_ref(), why.clone(), reason, None, roll, now);
            history.names.insert(name.to_string(), failure);
        }
        let why = if failed.why.is_empty() { error.to_string() } else { failed.why.clone() };
        let asked = error.retry_after.map(seconds);
        let last = history.failures.get(&key).cloned();
        let mut failure =
            FailureBackoff::after(last.as_ref(), why.clone(), error.reason().name(), asked, spread(&key), now);
        if !failed.names.is_empty() && failure.count < QUICK_TRIES {
            failure.until = now;
        }
        history.failures.insert(key, failure);
        self.tell(IssuanceEventKind::Failed, format!("its order failed: {why}"));
        self.write().await
    }

    /// Judges the chain of an order and stores it; what serves stays until then.
    async fn store(&mut self, mut order: Order) -> Result<Option<Leaf>> {
        let names = order.dns_names();
        let (pair, leaf) = match self.accept(&order, &names) {
            Ok(accepted) => accepted,
            Err(error) => {
                self.count(&order);
                return self.fail(&Failed::default(), &error).await.map(|()| None);
            }
        };
        if let Err(error) = self.certifier.store.write(self.secret, &pair).await {
            order.stumbles = order.stumbles.saturating_add(1);
            order.wake = self.now + pause(order.stumbles);
            order.trouble = Some(error.to_string());
            self.tell(IssuanceEventKind::Trouble, error.to_string());
            let key = self.key();
            self.certifier.saved.orders.insert(key, order);
            return self.write().await.map(|()| None);
        }
        self.count(&order);
        self.finish(&names).await.map(|()| Some(leaf))
    }

    fn accept(&self, order: &Order, names: &[Str]) -> Result<(TlsKeyPair, Leaf)> {
        let chain = Chain::read(order.chain.as_deref().unwrap_or_default()).map_err(Error::rejected)?;
        let key = order.key()?;
        chain.verify(&key, names, self.now)?;
        Ok((TlsKeyPair { chain: chain.pem, secret_key: key.to_secret_pem() }, chain.leaf))
    }

    /// Notes that the issuer made a certificate.
    fn count(&mut self, order: &Order) {
        let issue = IssuedCertificate { at: self.now, names: order.names.clone(), replaces: order.replaces.is_some() };
        self.certifier.saved.history.issued.push(issue);
    }

    async fn finish(&mut self, names: &[Str]) -> Result<()> {
        let key = self.key();
        self.certifier.saved.close(&key);
        let history = &mut self.certifier.saved.history;
        history.failures.remove(&key);
        for name in names {
            history.names.remove(&**name);
        }
        self.tell(IssuanceEventKind::Issued, format!("has its certificate for {}", names.join(", ")));
        self.write().await
    }

    async fn write(&mut self) -> Result<()> {
        let state_store = self.certifier.state_store.clone();
        self.certifier.saved.write(&*state_store).await?;
        self.certifier.usage.is_unwritten = false;
        Ok(())
    }

    fn tell(&mut self, what: IssuanceEventKind, text: String) {
        self.events.push(IssuanceEvent { secret: self.secret.clone(), what, text });
    }

    fn key(&self) -> String {
        self.secret.to_string()
    }
}

fn seconds(wait: Duration) -> i64 {
    i64::try_from(wait.as_secs()).unwrap_or(DAY)
}

/// How long to wait after so many disappointments in a row.
fn pause(stumbles: u32) -> i64 {
    (1_i64 << stumbles.min(10)).min(LONGEST_PAUSE)
}
