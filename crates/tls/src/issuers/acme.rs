//! `acme`: certificates from a server that speaks RFC 8555, with dns-01, profiles, external accounts and renewal information.
//!
//! Every step begins by asking the server how far the order is, so a restart at any point goes on with the same order. The client
//! is our own: each step must be one request whose result is written down, every wait that a server asks for must reach
//! the issuance history, every answer is bounded, and no address outside the directory's host is ever asked.

use std::fmt;
use std::time::Duration;

use hyper::Method;
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};

use crate::Call;
use crate::budget::RateLimits;
use crate::chain::Leaf;
use crate::error::{Error, IssuanceProblem, Result};
use crate::history::{DAY, HOUR, MINUTE};
use crate::issuer::{Issuer, Progress, Suggestion};
use crate::order::{Order, OrderStep};
use crate::store::StateStore;

mod account;
mod client;
mod http;
mod jws;
mod order_requests;
mod wire;

#[cfg(test)]
pub(super) mod tests;

pub use jws::ExternalAccount;

use account::Account;
use client::Client;
use http::AcmeTransport;
use wire::RenewalInfo;

/// How to talk to a server.
#[derive(Clone, Debug)]
pub struct AcmeSettings {
    /// Where its directory is.
    pub directory: String,
    /// Whom to trust beside the system's authorities, in PEM.
    pub authority: Option<String>,
    /// Whom the issuer may write to.
    pub email: Option<String>,
    /// Which kind of certificate, where the issuer has several.
    pub profile: Option<String>,
    /// The account that somebody has with the issuer already.
    pub external: Option<ExternalAccount>,
    /// How long one request may take.
    pub patience: Duration,
}

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// A server that speaks ACME.
pub struct Acme {
    settings: AcmeSettings,
    state_store: std::sync::Arc<dyn StateStore>,
    session: Mutex<Option<Session>>,
}

/// A directory that was read, and the account there.
struct Session {
    client: Client,
    account: Account,
}

impl AcmeSettings {
    /// The settings for a directory, with nothing else said.
    pub fn new(directory: impl Into<String>) -> AcmeSettings {
        AcmeSettings {
            directory: directory.into(),
            authority: None,
            email: None,
            profile: None,
            external: None,
            patience: Duration::from_secs(15),
        }
    }
}

impl Acme {
    /// An issuer that keeps its account in the notebook. Nothing is asked before the first order.
    pub fn new(settings: AcmeSettings, state_store: std::sync::Arc<dyn StateStore>) -> Result<Acme> {
        // Settings that cannot work are told at once.
        AcmeTransport::new(&settings.directory, settings.authority.as_deref(), settings.patience)?;
        Ok(Acme { settings, state_store, session: Mutex::default() })
    }

    /// The directory and account, which are read or made where that was not done yet.
    async fn session(&self, now: i64) -> Result<MutexGuard<'_, Option<Session>>> {
        let mut session = self.session.lock().await;
        if session.is_none() {
            let settings = &self.settings;
            let transport = AcmeTransport::new(&settings.directory, settings.authority.as_deref(), settings.patience)?;
            let client = Client::open(transport, &settings.directory, now).await?;
            self.check_profile(&client)?;
            let account = Account::open(&client, settings, &*self.state_store, now).await?;
            *session = Some(Session { client, account });
        }
        Ok(session)
    }

    fn check_profile(&self, client: &Client) -> Result<()> {
        let known = &client.directory.meta.profiles;
        match &self.settings.profile {
            Some(profile) if !known.contains_key(profile) => {
                let known: Vec<&str> = known.keys().map(String::as_str).take(20).collect();
                let offer = if known.is_empty() { "no profiles".to_owned() } else { known.join(", ") };
                let message = format!("--acme-profile `{profile}` is not offered; there are {offer}");
                Err(Error::settings(message).at(&client.transport))
            }
            _ => Ok(()),
        }
    }

    async fn step(&self, order: &mut Order, published: bool, now: i64) -> Result<Progress> {
        let mut guard = self.session(now).await?;
        let Some(session) = guard.as_ref() else { return Err(Error::protocol("there is no session")) };
        let requests = order_requests::OrderRequests { client: &session.client, signer: session.account.signer(), now };
        let result = match &order.url {
            None => requests.place(order, self.settings.profile.as_deref()).await,
            Some(url) => requests.go_on(&url.clone(), order, published).await,
        };
        if let Err(error) = &result
            && is_stale(error)
        {
            // The server moved or forgot the account: the next step looks again.
            session.account.forget(&self.settings, &*self.state_store, error).await?;
            *guard = None;
        }
        result
    }

    async fn ask_suggestion(&self, id: &str, now: i64) -> Result<Option<Suggestion>> {
        let guard = self.session(now).await?;
        let Some(session) = guard.as_ref() else { return Ok(None) };
        let Some(place) = &session.client.directory.renewal_info else { return Ok(None) };
        let url = format!("{}/{id}", place.trim_end_matches('/'));
        let answer = session.client.transport.ask(Method::GET, &url, None).await?;
        if answer.status != 200 {
            return Err(client::problem(&answer, now).at(&session.client.transport));
        }
        let info: RenewalInfo = session.client.parse(&answer)?;
        let at = |text: &str| gatepost_objects::timestamp(text);
        let window = at(&info.suggested_window.start).zip(at(&info.suggested_window.end));
        let asked = answer.retry_after(now).map(|wait| i64::try_from(wait.as_secs()).unwrap_or(DAY));
        let again = now + asked.unwrap_or(6 * HOUR).clamp(MINUTE, DAY);
        Ok(Some(Suggestion { window: window.filter(|(begin, end)| end > begin), again }))
    }
}

/// Whether the account or the directory is to be looked at again.
fn is_stale(error: &Error) -> bool {
    match &error.problem {
        IssuanceProblem::Refused { kind, .. } => kind == "accountDoesNotExist" || kind == "status 404",
        IssuanceProblem::Unreachable(_) => true,
        _ => false,
    }
}

impl Issuer for Acme {
    fn kind(&self) -> &'static str {
        "acme"
    }

    fn limits(&self) -> RateLimits {
        let host = self.settings.directory.split('/').nth(2).unwrap_or_default();
        if host == "acme-v02.api.letsencrypt.org" {
            return RateLimits::lets_encrypt(self.settings.profile.as_deref());
        }
        RateLimits::default()
    }

    fn advance<'a>(&'a self, order: &'a mut Order, published: bool, now: i64) -> Call<'a, Result<Progress>> {
        Box::pin(self.step(order, published, now))
    }

    fn suggestion<'a>(&'a self, leaf: &'a Leaf, now: i64) -> Call<'a, Result<Option<Suggestion>>> {
        Box::pin(async move {
            match &leaf.renewal_id {
                Some(id) => self.ask_suggestion(id, now).await,
                None => Ok(None),
            }
        })
    }
}

impl fmt::Debug for Acme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acme").field("directory", &self.settings.directory).finish_non_exhaustive()
    }
}

impl OrderStep {
    /// The step that follows when TXT values are to be published.
    fn with_challenges(self) -> OrderStep {
        if self == OrderStep::Validating { self } else { OrderStep::Publishing }
    }
}

/// An order as the server takes it.
fn new_order(order: &Order, profile: Option<&str>) -> serde_json::Value {
    let identifiers: Vec<_> = order.names.iter().map(|name| json!({"type": "dns", "value": name})).collect();
    let mut payload = json!({"identifiers": identifiers});
    if let Some(profile) = profile {
        payload["profile"] = profile.into();
    }
    if let Some(replaces) = &order.replaces {
        payload["replaces"] = replaces.as_str().into();
    }
    payload
}
