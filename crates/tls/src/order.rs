//! An order: what was asked of an issuer, how far it came, and what it needs next.
//!
//! It is a value that is written down after every step. What the issuer says of it is always asked anew, so a restart at any
//! point goes on with the same order. It holds the key of the certificate to come, and so is shown without it.

use std::fmt;

use gatepost_core::model::{Key, Str};
use gatepost_core::publication::{NameSource, Record, RecordType};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::key::PrivateKey;

/// One order for the certificate of one Secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub name: String,
    /// The names it is for, sorted.
    pub names: Vec<String>,
    /// When it was made, in seconds since 1970.
    pub made: i64,
    /// How far it is.
    pub step: OrderStep,
    /// Where the issuer keeps it, once it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The certificate it replaces, as the issuer calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// How long the certificate is to be valid, in seconds, where the issuer lets us say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
    /// TXT values that must be answered before the issuer is told.
    #[serde(default)]
    pub challenges: Vec<Challenge>,
    /// When it came to its step.
    #[serde(default)]
    pub since: i64,
    /// When the issuer was told that they are.
    #[serde(default)]
    pub told: i64,
    /// Nothing is done before, in seconds since 1970.
    #[serde(default)]
    pub wake: i64,
    /// Failures in a row while talking to the issuer.
    #[serde(default)]
    pub stumbles: u32,
    /// What stands in its way at the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The chain, once it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// The key of the certificate to come, in PEM.
    secret_key: String,
}

/// How far an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderStep {
    /// The issuer does not know of it yet.
    New,
    /// The issuer knows of it.
    Placed,
    /// TXT values are to be answered.
    Publishing,
    /// The issuer looks at them.
    Validating,
    /// The certificate is being made.
    Finalizing,
    /// The chain is there; it is to be judged and stored.
    Issued,
}

/// One TXT value that the issuer wants to see.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Challenge {
    /// The name it proves, without `*.`.
    pub name: String,
    /// The value.
    pub value: String,
}

/// What an order is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderRequest {
    /// The names, sorted.
    pub names: Vec<Str>,
    /// The certificate it replaces, as the issuer calls it.
    pub replaces: Option<Str>,
    /// How long it is to be valid, in seconds.
    pub duration: Option<u64>,
}

impl Order {
    /// A new order with a key of its own.
    pub fn new(secret: &Key, request: &OrderRequest, key: &PrivateKey, now: i64) -> Order {
        Order {
            namespace: secret.namespace.to_string(),
            name: secret.name.to_string(),
            names: request.names.iter().map(|name| name.to_string()).collect(),
            made: now,
            step: OrderStep::New,
            url: None,
            replaces: request.replaces.as_deref().map(str::to_owned),
            duration: request.duration,
            challenges: Vec::new(),
            since: now,
            told: 0,
            wake: now,
            stumbles: 0,
            trouble: None,
            chain: None,
            secret_key: key.to_secret_pem(),
        }
    }

    /// The Secret it is for.
    pub fn secret(&self) -> Key {
        Key::new(self.namespace.as_str(), self.name.as_str())
    }

    /// The key of the certificate to come.
    pub fn key(&self) -> Result<PrivateKey> {
        PrivateKey::from_pem(&self.secret_key)
    }

    /// The names as the rules spell them.
    pub fn dns_names(&self) -> Vec<Str> {
        self.names.iter().map(|name| name.as_str().into()).collect()
    }

    /// Whether TXT values are wanted.
    pub fn is_publishing(&self) -> bool {
        matches!(self.step, OrderStep::Publishing | OrderStep::Validating)
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Order");
        shown.field("secret", &self.secret()).field("names", &self.names).field("step", &self.step);
        shown.field("url", &self.url).field("challenges", &self.challenges).finish_non_exhaustive()
    }
}

impl OrderStep {
    /// As shown to people and machines.
    pub fn as_str(self) -> &'static str {
        match self {
            OrderStep::New => "new",
            OrderStep::Placed => "placed",
            OrderStep::Publishing => "publishing",
            OrderStep::Validating => "validating",
            OrderStep::Finalizing => "finalizing",
            OrderStep::Issued => "issued",
        }
    }
}

impl fmt::Display for OrderStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Challenge {
    /// Where the value is to be found.
    pub fn owner(&self) -> String {
        format!("_acme-challenge.{}", self.name)
    }
}

/// TXT records for challenges: one per name, with every value of that name. `a.test` and `*.a.test` have the same name.
pub fn records<'a>(challenges: impl IntoIterator<Item = &'a Challenge>) -> Vec<Record> {
    let mut by_owner = std::collections::BTreeMap::<String, std::collections::BTreeSet<Str>>::new();
    for challenge in challenges {
        by_owner.entry(challenge.owner()).or_default().insert(challenge.value.as_str().into());
    }
    let record = |(owner, values): (String, std::collections::BTreeSet<Str>)| Record {
        name: owner.into(),
        kind: RecordType::Txt,
        targets: values.into_iter().collect(),
        ttl: Some(TTL),
        set_identifier: None,
        provider_specific: Vec::new(),
        routes: Default::default(),
        listeners: Default::default(),
        source: NameSource::Intersected,
        provider: None,
    };
    by_owner.into_iter().map(record).collect()
}

/// Challenges come and go within minutes.
const TTL: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(name: &str, value: &str) -> Challenge {
        Challenge { name: name.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn a_name_and_its_wildcard_share_one_record() {
        let challenges = [challenge("a.test", "two"), challenge("a.test", "one"), challenge("b.test", "x")];
        let records = records(&challenges);
        let told: Vec<_> = records.iter().map(|record| (&*record.name, record.targets.join(" "))).collect();
        assert_eq!(
            told,
            [("_acme-challenge.a.test", "one two".to_owned()), ("_acme-challenge.b.test", "x".to_owned())]
        );
    }

    #[test]
    fn an_order_survives_being_written_and_does_not_show_its_key() {
        let key = PrivateKey::generate(Default::default()).unwrap();
        let request = OrderRequest { names: vec!["a.test".into()], ..OrderRequest::default() };
        let order = Order::new(&Key::new("infra", "tls"), &request, &key, 7);
        let text = serde_json::to_string(&order).unwrap();
        let again: Order = serde_json::from_str(&text).unwrap();
        assert_eq!(again, order);
        assert_eq!(again.key().unwrap().public(), key.public());
        let inner = key.to_secret_pem().lines().nth(1).unwrap().to_owned();
        assert!(text.contains(&inner[..20]) && !format!("{order:?}").contains(&inner[..20]));
    }
}
