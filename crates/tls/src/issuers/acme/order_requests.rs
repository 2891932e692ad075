//! The requests that take an ACME order one step further, depending on the state the server reports.
//!
//! The server's word is the state; ours only says what was published and when the server was told. Nothing here waits.

use std::time::Duration;

use gatepost_core::model::Str;
use serde_json::json;

use super::client::{Client, Signer, blamed};
use super::http::{AcmeResponse, brief};
use super::jws::encode;
use super::new_order;
use super::wire::{AcmeStatus, Authorization, OrderShape};
use crate::chain::MAX_CHAIN;
use crate::error::{Error, IssuanceProblem, Result};
use crate::issuer::{Failed, Progress};
use crate::order::{Challenge, Order, OrderStep};

/// How long to wait where the server does not say.
const POLL: Duration = Duration::from_secs(2);
/// How long a server is waited for at most in one go.
const LONGEST_POLL: Duration = Duration::from_secs(600);
/// After this many seconds in which nothing came of it, a server is told again that challenges are answered.
const TELL_AGAIN: i64 = 120;
/// So often a server may fail over an order that replaces a certificate, before it is placed as an order like any other.
const REPLACING_TRIES: u32 = 3;
/// An order that is this many seconds old and not done is given up.
const TOO_OLD: i64 = 7 * 86_400;

pub(super) struct OrderRequests<'a> {
    pub(super) client: &'a Client,
    pub(super) signer: Signer<'a>,
    pub(super) now: i64,
}

impl OrderRequests<'_> {
    /// Places an order.
    pub(super) async fn place(&self, order: &mut Order, profile: Option<&str>) -> Result<Progress> {
        let payload = new_order(order, profile);
        let place = &self.client.directory.new_order;
        let answer = match self.client.post(&self.signer, place, Some(&payload), self.now).await {
            Ok(answer) => answer,
            // Not every certificate may be replaced: then it is an order like any other.
            Err(error) if order.replaces.is_some() && is_about_replacing(&error, order.stumbles) => {
                order.replaces = None;
                return Ok(Progress::Again);
            }
            Err(error) => return refused(error),
        };
        let url = answer.header("location").filter(|url| self.client.transport.is_own(url));
        let missing = || Error::protocol("it did not say where the order is").at(&self.client.transport);
        order.url = Some(url.ok_or_else(missing)?.to_owned());
        order.step = OrderStep::Placed;
        Ok(Progress::Again)
    }

    /// Goes on with an order that the server has.
    pub(super) async fn go_on(&self, url: &str, order: &mut Order, published: bool) -> Result<Progress> {
        let (shape, answer) = self.client.read::<OrderShape>(&self.signer, url, self.now).await.map_err(gone)?;
        if self.now - order.made > TOO_OLD {
            let why = "the order did not come to an end within a week".to_owned();
            return Ok(Progress::Failed(Failed { names: Vec::new(), why }));
        }
        match shape.status {
            AcmeStatus::Pending => self.authorize(&shape, order, published).await,
            AcmeStatus::Ready => self.finalize(&shape, order).await,
            AcmeStatus::Processing => {
                order.step = OrderStep::Finalizing;
                Ok(self.wait(&answer))
            }
            AcmeStatus::Valid => self.download(&shape, order).await,
            AcmeStatus::Invalid => self.autopsy(&shape).await,
            other => Err(Error::protocol(format!("an order cannot be {other:?}")).at(&self.client.transport)),
        }
    }

    /// Finds out which names are still to be proven, and tells the server once their values are answered.
    async fn authorize(&self, shape: &OrderShape, order: &mut Order, published: bool) -> Result<Progress> {
        let all = self.authorizations(shape).await?;
        let failed = self.failed(&all);
        if !failed.names.is_empty() {
            return Ok(Progress::Failed(failed));
        }
        let open: Vec<_> = all.iter().filter(|(one, _)| one.status == AcmeStatus::Pending).collect();
        let Some((_, answer)) = open.last() else { return Ok(Progress::Wait(POLL)) };
        let challenges = self.challenges(open.iter().map(|(one, _)| one), order)?;
        let is_known = challenges.iter().all(|challenge| order.challenges.contains(challenge));
        if !is_known {
            order.challenges = challenges;
            order.step = OrderStep::Publishing;
            return Ok(Progress::Publish);
        }
        order.step = order.step.with_challenges();
        if order.step == OrderStep::Publishing && !published {
            return Ok(Progress::Publish);
        }
        if order.step == OrderStep::Publishing || self.now - order.told > TELL_AGAIN || order.told > self.now {
            for (one, _) in &open {
                self.tell(one).await?;
            }
            order.told = self.now;
            order.step = OrderStep::Validating;
            return Ok(Progress::Wait(Duration::from_secs(1)));
        }
        Ok(self.wait(answer))
    }

    async fn authorizations(&self, shape: &OrderShape) -> Result<Vec<(Authorization, AcmeResponse)>> {
        let mut all = Vec::new();
        for url in shape.authorizations.iter().take(1000) {
            all.push(self.client.read::<Authorization>(&self.signer, url, self.now).await?);
        }
        Ok(all)
    }

    /// The values that prove names, sorted.
    fn challenges<'s>(&self, open: impl Iterator<Item = &'s Authorization>, order: &Order) -> Result<Vec<Challenge>> {
        let mut challenges = Vec::new();
        for one in open {
            let name = one.name();
            let foreign = || Error::protocol(format!("it asks about `{}`, which was not ordered", brief(&name)));
            if !order.names.contains(&name) {
                return Err(foreign().at(&self.client.transport));
            }
            if let Some(challenge) = one.dns() {
                let value = self.signer.key.dns_value(&challenge.token);
                let name = name.strip_prefix("*.").unwrap_or(&name).to_owned();
                challenges.push(Challenge { name, value });
            }
        }
        challenges.sort();
        challenges.dedup();
        Ok(challenges)
    }

    /// Tells the server that the value of a challenge is answered.
    async fn tell(&self, one: &Authorization) -> Result<()> {
        let Some(challenge) = one.dns().filter(|challenge| challenge.status == AcmeStatus::Pending) else {
            return Ok(());
        };
        match self.client.post(&self.signer, &challenge.url, Some(&json!({})), self.now).await {
            // It was told before; what came of it shows with the next look.
            Err(error) if matches!(error.problem, IssuanceProblem::Refused { .. }) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }

    /// The names that cannot be proven any more.
    fn failed(&self, all: &[(Authorization, AcmeResponse)]) -> Failed {
        let mut names = Vec::new();
        for (one, _) in all {
            if one.is_dead() {
                let error = one.challenges.iter().find_map(|challenge| challenge.error.as_ref());
                let why = error.map_or_else(|| format!("{:?}", one.status), |error| brief(&error.detail));
                names.push((Str::from(one.name()), why));
            } else if one.status == AcmeStatus::Pending && one.dns().is_none() {
                names.push((one.name().into(), "the issuer offers no dns-01 challenge for it".to_owned()));
            }
        }
        let why = names.first().map_or_else(String::new, |(name, why)| format!("`{name}`: {why}"));
        Failed { names, why }
    }

    /// Sends the request for the certificate.
    async fn finalize(&self, shape: &OrderShape, order: &mut Order) -> Result<Progress> {
        let request = order.key()?.request(&order.names)?;
        order.step = OrderStep::Finalizing;
        let payload = json!({"csr": encode(request)});
        match self.client.post(&self.signer, &shape.finalize, Some(&payload), self.now).await {
            Ok(answer) => {
                let shape: OrderShape = self.client.parse(&answer)?;
                Ok(if shape.status == AcmeStatus::Valid { Progress::Again } else { self.wait(&answer) })
            }
            Err(error) => refused(error),
        }
    }

    async fn download(&self, shape: &OrderShape, order: &mut Order) -> Result<Progress> {
        let missing = || Error::protocol("it did not say where the certificate is").at(&self.client.transport);
        let url = shape.certificate.as_deref().ok_or_else(missing)?;
        let answer = self.client.post(&self.signer, url, None, self.now).await?;
        if answer.body.len() > MAX_CHAIN {
            return Err(Error::rejected(format!("the chain is larger than {} KiB", MAX_CHAIN >> 10)));
        }
        let text = std::str::from_utf8(&answer.body).map_err(|_| Error::rejected("the chain is not text"))?;
        order.chain = Some(text.to_owned());
        order.step = OrderStep::Issued;
        Ok(Progress::Issued)
    }

    /// Why an order is invalid.
    async fn autopsy(&self, shape: &OrderShape) -> Result<Progress> {
        let mut failed = self.failed(&self.authorizations(shape).await?);
        if let Some(error) = &shape.error {
            if failed.names.is_empty() {
                failed.names = blamed(error);
            }
            if failed.why.is_empty() {
                failed.why = format!("{}: {}", brief(error.word()), brief(&error.detail));
            }
        }
        if failed.why.is_empty() {
            failed.why = "the issuer calls the order invalid and does not say why".to_owned();
        }
        Ok(Progress::Failed(failed))
    }

    fn wait(&self, answer: &AcmeResponse) -> Progress {
        let asked = answer.retry_after(self.now).unwrap_or(POLL);
        Progress::Wait(asked.clamp(Duration::from_secs(1), LONGEST_POLL))
    }
}

/// Whether an order may be taken without the certificate that it replaces: servers refuse such orders, or fail over a
/// certificate that they cannot find. A failure may pass, so that one is given time.
fn is_about_replacing(error: &Error, stumbles: u32) -> bool {
    match error.problem {
        IssuanceProblem::Refused { .. } => true,
        IssuanceProblem::Broken(_) => stumbles + 1 >= REPLACING_TRIES,
        _ => false,
    }
}

/// A refusal ends an order; everything else may pass.
fn refused(error: Error) -> Result<Progress> {
    match error.problem {
        IssuanceProblem::Refused { ref kind, ref names, .. }
            if kind != "accountDoesNotExist" && kind != "status 404" =>
        {
            Ok(Progress::Failed(Failed { names: names.clone(), why: error.to_string() }))
        }
        _ => Err(error),
    }
}

/// An order that cannot be read any more is gone.
fn gone(error: Error) -> Error {
    match &error.problem {
        IssuanceProblem::Refused { kind, .. } if kind != "accountDoesNotExist" => {
            let problem = IssuanceProblem::Gone(error.problem.to_string());
            Error { problem, ..error }
        }
        _ => error,
    }
}
