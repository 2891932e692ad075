//! What a response code means, and what to do about it.

use domain::base::iana::{Opcode, Rcode};
use domain::base::message::Message;

use crate::provider::{ProviderError, ProviderProblem, Result};

/// What to do after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// One record of the batch may be the cause: find it.
    Isolate,
    /// Another server may do better.
    NextServer,
}

/// Takes bytes for the answer to the message with this id.
pub(super) fn parse(bytes: Vec<u8>, id: u16, opcode: Opcode) -> Result<Message<Vec<u8>>> {
    let message =
        Message::from_octets(bytes).map_err(|_| ProviderError::protocol("it is shorter than a DNS header"))?;
    let header = message.header();
    if !header.qr() || header.opcode() != opcode {
        return Err(ProviderError::protocol("it is not an answer to what was asked"));
    }
    if header.id() != id {
        return Err(ProviderError::protocol("it answers another question"));
    }
    Ok(message)
}

/// The failure behind a response code to an update, if it is one.
pub(super) fn update_failure(rcode: Rcode) -> Option<ProviderError> {
    let code = rcode.to_string();
    let refused = |meaning: &str| ProviderProblem::Refused { code: code.clone(), meaning: meaning.to_owned() };
    Some(ProviderError::new(match rcode {
        Rcode::NOERROR => return None,
        Rcode::YXDOMAIN => ProviderProblem::Stale(format!("{code}: the name is in use")),
        Rcode::YXRRSET => ProviderProblem::Stale(format!("{code}: a record exists that was absent")),
        Rcode::NXRRSET => ProviderProblem::Stale(format!("{code}: a record has other values or is gone")),
        Rcode::NXDOMAIN => ProviderProblem::Stale(format!("{code}: the name is gone")),
        Rcode::REFUSED => refused("the server does not let this key make this change"),
        Rcode::NOTZONE => refused("the name is not in the zone"),
        Rcode::NOTAUTH => refused("the server is not the primary of this zone, or does not have it"),
        Rcode::NOTIMP => refused("the server takes no dynamic updates"),
        Rcode::FORMERR => refused("the server does not understand the update"),
        Rcode::SERVFAIL => {
            ProviderProblem::Failed { code, meaning: "the server could not carry out the update".into() }
        }
        _ => refused("the server gives no further reason"),
    }))
}

/// The failure behind a response code to a transfer, if it is one.
pub(super) fn transfer_failure(rcode: Rcode) -> Option<ProviderError> {
    let code = rcode.to_string();
    let refused = |meaning: &str| ProviderProblem::Refused { code: code.clone(), meaning: meaning.to_owned() };
    Some(ProviderError::new(match rcode {
        Rcode::NOERROR => return None,
        Rcode::NOTAUTH => refused("the server does not have this zone, or does not let this key transfer it"),
        Rcode::REFUSED => refused("the server does not let this key or address transfer the zone (AXFR)"),
        Rcode::SERVFAIL => ProviderProblem::Failed { code, meaning: "the server could not give the zone".into() },
        _ => refused("the server does not give the zone (AXFR)"),
    }))
}

/// What to do after a failed update.
pub(super) fn reaction(error: &ProviderError) -> Reaction {
    match &error.problem {
        ProviderProblem::Stale(_) | ProviderProblem::Unwritable(_) => Reaction::Isolate,
        ProviderProblem::Failed { .. } => Reaction::NextServer,
        ProviderProblem::Refused { code, .. } if code == "NOTAUTH" || code == "NOTIMP" => Reaction::NextServer,
        ProviderProblem::Refused { .. } => Reaction::Isolate,
        _ => Reaction::NextServer,
    }
}

/// Whether one record of a batch may be what the servers fail at.
pub(super) fn may_be_one_record(error: &ProviderError) -> bool {
    reaction(error) == Reaction::Isolate || matches!(error.problem, ProviderProblem::Failed { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lead_somewhere() {
        let rows = [
            (Rcode::YXRRSET, Reaction::Isolate, true),
            (Rcode::NXRRSET, Reaction::Isolate, true),
            (Rcode::REFUSED, Reaction::Isolate, true),
            (Rcode::NOTZONE, Reaction::Isolate, true),
            (Rcode::FORMERR, Reaction::Isolate, true),
            (Rcode::SERVFAIL, Reaction::NextServer, true),
            (Rcode::NOTAUTH, Reaction::NextServer, false),
            (Rcode::NOTIMP, Reaction::NextServer, false),
        ];
        for (rcode, expected, one) in rows {
            let error = update_failure(rcode).unwrap();
            assert_eq!((reaction(&error), may_be_one_record(&error)), (expected, one), "{rcode}");
            assert!(error.to_string().contains(&rcode.to_string()));
        }
        assert!(update_failure(Rcode::NOERROR).is_none() && transfer_failure(Rcode::NOERROR).is_none());
    }
}
