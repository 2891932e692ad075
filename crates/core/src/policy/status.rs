//! The status of a policy: its conditions, and the state of every hostname that it governs.
//!
//! Hostnames that should be published or certified count as served. A caller that knows the result of a provider or
//! issuer marks some of them as pending and calls [`enforced`] again. Nothing is decided here.

use super::*;
use crate::attachment::ListenerKey;
use crate::health::AddressReport;

/// The conditions and hostnames in a policy's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyReport {
    /// Which policy.
    pub policy: ObjectRef,
    /// `Accepted`; `Enforced` if accepted; `SubResourcesHealthy` if names are probed.
    pub conditions: Vec<Condition>,
    /// Every hostname on the listeners it governs, sorted.
    pub hostnames: Vec<HostnameReport>,
    /// Every address that it has probed, sorted by hostname.
    pub addresses: Vec<AddressReport>,
}

/// The state of one hostname under a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostnameReport {
    /// The hostname.
    pub hostname: Str,
    /// The listener that serves it.
    pub listener: ListenerKey,
    /// The route that requests it.
    pub route: ObjectRef,
    /// Its state.
    pub state: HostnameState,
    /// Why it is not served.
    pub message: String,
}

/// The state of a hostname under a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostnameState {
    /// It has the records or the certificate that it needs.
    Served,
    /// It waits for something that is not yet known or done.
    Pending(Reason),
    /// It gets neither records nor a certificate.
    Skipped(Reason),
}

impl HostnameState {
    /// The text form in output.
    pub fn as_str(self) -> &'static str {
        match self {
            HostnameState::Served => "served",
            HostnameState::Pending(_) => "pending",
            HostnameState::Skipped(_) => "skipped",
        }
    }

    /// Why it is not served.
    pub fn reason(self) -> Option<Reason> {
        match self {
            HostnameState::Served => None,
            HostnameState::Pending(reason) | HostnameState::Skipped(reason) => Some(reason),
        }
    }
}

impl HostnameReport {
    /// Its key in the `skipped` list of a plan; `None` if it is not listed there.
    pub fn skipped(&self) -> Option<&'static str> {
        let HostnameState::Skipped(reason) = self.state else { return None };
        match reason {
            reason::WILDCARD_NOT_ALLOWED => Some("wildcard"),
            reason::NO_NAME => Some("no-name"),
            reason::TYPE_CLASH | reason::SEVERAL_CNAME_TARGETS => Some("type-clash"),
            _ => None,
        }
    }
}

/// The status of a policy; `note` is added to the message of `Enforced`.
pub fn report<P: Policy>(
    book: &PoliciesOfKind<P>,
    key: &Key,
    mut hostnames: Vec<HostnameReport>,
    note: &str,
) -> PolicyReport {
    hostnames.sort();
    hostnames.dedup();
    let policy = ObjectRef { kind: P::KIND, key: key.clone() };
    let addresses = Vec::new();
    let Some(state) = book.states.get(key) else {
        return PolicyReport { policy, conditions: Vec::new(), hostnames, addresses };
    };
    let mut conditions = vec![accepted(state)];
    if state.refused.is_none() {
        let is_overridden = !state.listeners.is_empty() && book.governed_by(key).is_empty();
        conditions.push(if is_overridden { overridden() } else { enforced(&hostnames, note) });
    }
    PolicyReport { policy, conditions, hostnames, addresses }
}

/// The `Enforced` condition for these hostnames.
pub fn enforced(hostnames: &[HostnameReport], note: &str) -> Condition {
    let count = |test: fn(&HostnameState) -> bool| hostnames.iter().filter(|h| test(&h.state)).count();
    let served = count(|state| *state == HostnameState::Served);
    let pending = count(|state| matches!(state, HostnameState::Pending(_)));
    let failed = count(|state| matches!(state, HostnameState::Skipped(reason) if is_failure(*reason)));
    let (status, word) = match (hostnames.len() - served, served, pending, failed) {
        (0, _, _, _) => (true, "Enforced"),
        (_, 0, 0, 0) => (true, "Partial"),
        (_, 0, 0, _) => (false, "Failed"),
        (_, 0, _, _) => (false, "Pending"),
        _ => (true, "Partial"),
    };
    Condition::new("Enforced", status, word, message(hostnames, served, note))
}

fn accepted<P: Policy>(state: &PolicyState<P>) -> Condition {
    match &state.refused {
        None => Condition::new("Accepted", true, "Accepted", "the policy is accepted"),
        Some(refusal) if refusal.reason == reason::KIND_NOT_VISIBLE => {
            let mut condition = Condition::new("Accepted", false, "TargetNotFound", refusal.message.as_str());
            condition.status = "Unknown".into();
            condition
        }
        Some(refusal) => Condition::new("Accepted", false, refusal.reason.row().condition.1, refusal.message.as_str()),
    }
}

fn overridden() -> Condition {
    let message = "every listener it is about has a policy of its own, so this one decides nothing";
    Condition::new("Enforced", true, "Enforced", message)
}

/// Whether a hostname is skipped although its owner wants it.
fn is_failure(reason: Reason) -> bool {
    const INTENDED: [Reason; 5] = [
        reason::WILDCARD_NOT_ALLOWED,
        reason::NO_NAME,
        reason::ADDRESS_EXCLUDED,
        reason::DOMAIN_NOT_SELECTED,
        reason::CERTIFICATE_SECRET_ELSEWHERE,
    ];
    !INTENDED.contains(&reason)
}

fn message(hostnames: &[HostnameReport], served: usize, note: &str) -> String {
    let mut text = match (hostnames.len(), served) {
        (0, _) => "no hostname at its listeners needs it, so there is nothing to do".to_owned(),
        (1, 1) => "the one hostname is served".to_owned(),
        (all, served) if all == served => format!("all {all} hostnames are served"),
        (all, served) => format!("{served} of {all} hostnames are served; {}", unserved(hostnames)),
    };
    if !note.is_empty() {
        text.push_str("; ");
        text.push_str(note);
    }
    text
}

/// The hostnames that are not served, by reason; bounded in length.
fn unserved(hostnames: &[HostnameReport]) -> String {
    let mut by_reason: BTreeMap<(&str, Reason), Vec<&str>> = BTreeMap::new();
    for report in hostnames {
        if let Some(reason) = report.state.reason() {
            let names = by_reason.entry((report.state.as_str(), reason)).or_default();
            if names.last() != Some(&&*report.hostname) {
                names.push(&report.hostname);
            }
        }
    }
    let clause = |((state, reason), names): (&(&str, Reason), &Vec<&str>)| {
        format!("{state} ({reason}): {}", crate::lint::listed(names.iter().copied()))
    };
    by_reason.iter().map(clause).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hostname(name: &str, state: HostnameState) -> HostnameReport {
        HostnameReport {
            hostname: name.into(),
            listener: ListenerKey { owner: ObjectRef::new(Kind::Gateway, "infra", "edge"), section: "web".into() },
            route: ObjectRef::new(Kind::Route(RouteKind::Http), "shop", "web"),
            state,
            message: String::new(),
        }
    }

    #[test]
    fn enforced_follows_what_became_of_the_hostnames() {
        use HostnameState::*;
        let wish = Skipped(reason::WILDCARD_NOT_ALLOWED);
        let clash = Skipped(reason::TYPE_CLASH);
        let waits = Pending(reason::STATUS_MISSING);
        let table: [(&[HostnameState], &str, &str, &str); 8] = [
            (&[], "True", "Enforced", "no hostname at its listeners needs it, so there is nothing to do"),
            (&[Served], "True", "Enforced", "the one hostname is served"),
            (&[Served, Served], "True", "Enforced", "all 2 hostnames are served"),
            (&[wish], "True", "Partial", "0 of 1 hostnames are served; skipped (wildcard-not-allowed): `0.test`"),
            (&[clash, wish], "False", "Failed", ""),
            (&[waits, clash], "False", "Pending", ""),
            (&[Served, clash], "True", "Partial", "1 of 2 hostnames are served; skipped (type-clash): `1.test`"),
            (&[Served, waits], "True", "Partial", "1 of 2 hostnames are served; pending (status-missing): `1.test`"),
        ];
        for (states, status, word, message) in table {
            let hostnames = states.iter().enumerate().map(|(i, state)| hostname(&format!("{i}.test"), *state));
            let condition = enforced(&hostnames.collect::<Vec<_>>(), "");
            assert_eq!((&*condition.status, &*condition.reason), (status, word), "{states:?}");
            assert!(message.is_empty() || &*condition.message == message, "{}", condition.message);
        }
    }

    #[test]
    fn a_note_is_added() {
        assert!(enforced(&[], "mind the gap").message.ends_with("; mind the gap"));
    }
}
