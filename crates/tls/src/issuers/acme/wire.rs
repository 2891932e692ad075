//! The shapes of RFC 8555 and RFC 9773 as servers send them. Everything that is not needed is passed over.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Where things are.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Directory {
    pub(super) new_nonce: String,
    pub(super) new_account: String,
    pub(super) new_order: String,
    #[serde(default)]
    pub(super) renewal_info: Option<String>,
    #[serde(default)]
    pub(super) meta: Meta,
}

/// What a server says about itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    pub(super) external_account_required: bool,
    pub(super) profiles: BTreeMap<String, String>,
}

/// An order.
#[derive(Debug, Deserialize)]
pub(super) struct OrderShape {
    pub(super) status: AcmeStatus,
    #[serde(default)]
    pub(super) authorizations: Vec<String>,
    #[serde(default)]
    pub(super) finalize: String,
    #[serde(default)]
    pub(super) certificate: Option<String>,
    #[serde(default)]
    pub(super) error: Option<ProblemShape>,
}

/// An authorization: may this account have certificates for this name?
#[derive(Debug, Deserialize)]
pub(super) struct Authorization {
    pub(super) identifier: Identifier,
    pub(super) status: AcmeStatus,
    #[serde(default)]
    pub(super) challenges: Vec<ChallengeShape>,
    #[serde(default)]
    pub(super) wildcard: bool,
}

/// A name.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Identifier {
    pub(super) value: String,
}

/// One way to prove an authorization.
#[derive(Debug, Deserialize)]
pub(super) struct ChallengeShape {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) url: String,
    pub(super) status: AcmeStatus,
    #[serde(default)]
    pub(super) token: String,
    #[serde(default)]
    pub(super) error: Option<ProblemShape>,
}

/// How far orders, authorizations and challenges are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AcmeStatus {
    Pending,
    Ready,
    Processing,
    Valid,
    Invalid,
    Deactivated,
    Expired,
    Revoked,
    #[serde(other)]
    Unknown,
}

/// What is wrong (RFC 7807).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProblemShape {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) detail: String,
    pub(super) subproblems: Vec<SubProblem>,
}

/// What is wrong with one name.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct SubProblem {
    #[serde(default)]
    pub(super) detail: String,
    #[serde(default)]
    pub(super) identifier: Option<Identifier>,
}

/// When a certificate ought to be renewed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RenewalInfo {
    pub(super) suggested_window: WindowShape,
}

/// Begin and end.
#[derive(Debug, Deserialize)]
pub(super) struct WindowShape {
    pub(super) start: String,
    pub(super) end: String,
}

impl Authorization {
    /// The name as it stands in the order.
    pub(super) fn name(&self) -> String {
        let value = self.identifier.value.to_ascii_lowercase();
        if self.wildcard { format!("*.{value}") } else { value }
    }

    /// Whether it can no longer become valid.
    pub(super) fn is_dead(&self) -> bool {
        matches!(self.status, AcmeStatus::Invalid | AcmeStatus::Deactivated | AcmeStatus::Expired | AcmeStatus::Revoked)
    }

    /// The challenge that a TXT record answers.
    pub(super) fn dns(&self) -> Option<&ChallengeShape> {
        self.challenges.iter().find(|challenge| challenge.kind == "dns-01")
    }
}

impl ProblemShape {
    /// The last part of its type.
    pub(super) fn word(&self) -> &str {
        self.kind.rsplit(':').next().unwrap_or_default()
    }
}
