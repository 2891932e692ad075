//! Signing what is sent and verifying what comes back, or neither where the settings say so.

use std::sync::Arc;

use domain::base::iana::{Rcode, TsigRcode};
use domain::base::message::Message;
use domain::base::message_builder::AdditionalBuilder;
use domain::rdata::tsig::{Time48, Tsig};
use domain::tsig::{ClientSequence, ClientTransaction, Key, ValidationError};

use super::Clock;
use super::key::KeyConfig;
use crate::provider::{ProviderError, ProviderProblem, Result};

/// The key and the clock.
pub(super) struct Signer {
    key: Option<Arc<Key>>,
    clock: Clock,
}

/// A question that awaits one answer.
pub(super) struct Transaction<'a>(&'a Signer, Option<ClientTransaction<Arc<Key>>>);

/// A question that awaits a stream of answers.
pub(super) struct Sequence<'a>(&'a Signer, Option<ClientSequence<Arc<Key>>>);

impl Signer {
    /// Takes a key, or none where that was asked for; one of both must be said.
    pub(super) fn new(key: Option<&KeyConfig>, insecure: bool, clock: Clock) -> Result<Signer> {
        match (key, insecure) {
            (None, false) => Err(ProviderError::settings(
                "rfc2136 needs a TSIG key: set --rfc2136-tsig-keyname and --rfc2136-tsig-secret, or --rfc2136-insecure",
            )),
            (Some(_), true) => {
                Err(ProviderError::settings("--rfc2136-insecure means no TSIG key, and one is set; take one away"))
            }
            (None, true) => Ok(Signer { key: None, clock }),
            (Some(key), false) => Ok(Signer { key: Some(Arc::new(key.build()?)), clock }),
        }
    }

    /// Signs a question with one answer.
    pub(super) fn ask(&self, message: &mut AdditionalBuilder<Vec<u8>>) -> Result<Transaction<'_>> {
        let Some(key) = &self.key else { return Ok(Transaction(self, None)) };
        let signed = ClientTransaction::request(key.clone(), message, self.now());
        Ok(Transaction(self, Some(signed.map_err(|_| too_long())?)))
    }

    /// Signs a question with many answers.
    pub(super) fn ask_for_many(&self, message: &mut AdditionalBuilder<Vec<u8>>) -> Result<Sequence<'_>> {
        let Some(key) = &self.key else { return Ok(Sequence(self, None)) };
        let signed = ClientSequence::request(key.clone(), message, self.now());
        Ok(Sequence(self, Some(signed.map_err(|_| too_long())?)))
    }

    fn now(&self) -> Time48 {
        // Only 48 bits are signed.
        Time48::from_u64((self.clock)() & 0xffff_ffff_ffff)
    }

    /// What a failed verification means. What the answer claims proves nothing, and only tells people where to look.
    fn explain(&self, error: ValidationError, claim: UnverifiedAnswer) -> ProviderError {
        if let Some(problem) = claim.clocks {
            return ProviderError::new(problem);
        }
        let rcode = claim.rcode;
        let (name, algorithm) = match &self.key {
            Some(key) => (key.name().to_string(), key.algorithm().to_string()),
            None => (String::new(), String::new()),
        };
        ProviderError::new(match error {
            ValidationError::ServerBadKey => ProviderProblem::BadKey { key: name, algorithm },
            ValidationError::ServerBadSig => ProviderProblem::BadSignature { key: name },
            ValidationError::ServerBadTime { client, server } => {
                ProviderProblem::BadTime { ours: seconds(client), theirs: seconds(server) }
            }
            ValidationError::ServerUnsigned => ProviderProblem::Unsigned { rcode: rcode.to_string(), key: name },
            other => ProviderProblem::Forged(format!("{other} (the answer claims {rcode})")),
        })
    }
}

impl Transaction<'_> {
    /// Verifies the answer and takes the signature out of it.
    pub(super) fn verify(&self, answer: &mut Message<Vec<u8>>) -> Result<()> {
        let Some(transaction) = &self.1 else { return Ok(()) };
        let claim = UnverifiedAnswer::of(answer);
        transaction.answer(answer, self.0.now()).map_err(|error| self.0.explain(error, claim))
    }
}

impl Sequence<'_> {
    /// Verifies the next answer and takes the signature out of it.
    pub(super) fn verify(&mut self, answer: &mut Message<Vec<u8>>) -> Result<()> {
        let Some(sequence) = &mut self.1 else { return Ok(()) };
        let claim = UnverifiedAnswer::of(answer);
        sequence.answer(answer, self.0.now()).map_err(|error| self.0.explain(error, claim))
    }

    /// Verifies that the last answer was signed.
    pub(super) fn done(self) -> Result<()> {
        let Some(sequence) = self.1 else { return Ok(()) };
        sequence.done().map_err(|error| self.0.explain(error, UnverifiedAnswer { rcode: Rcode::NOERROR, clocks: None }))
    }
}

/// What an answer says before it is verified.
struct UnverifiedAnswer {
    rcode: Rcode,
    /// Both clocks, where they are apart. `domain` 0.12.3 cannot verify such an answer: it signs the time of the server
    /// as eight bytes where six are meant.
    clocks: Option<ProviderProblem>,
}

impl UnverifiedAnswer {
    fn of(answer: &Message<Vec<u8>>) -> UnverifiedAnswer {
        UnverifiedAnswer { rcode: answer.header().rcode(), clocks: UnverifiedAnswer::clocks(answer) }
    }

    fn clocks(answer: &Message<Vec<u8>>) -> Option<ProviderProblem> {
        let last = answer.additional().ok()?.last()?.ok()?;
        let record = last.into_record::<Tsig<_, _>>().ok()??;
        let tsig = record.data();
        let theirs = tsig.other_time().filter(|_| tsig.error() == TsigRcode::BADTIME)?;
        Some(ProviderProblem::BadTime { ours: seconds(tsig.time_signed()), theirs: seconds(theirs) })
    }
}

fn too_long() -> ProviderError {
    ProviderError::new(ProviderProblem::Unwritable("the message leaves no room for its signature".into()))
}

/// Six bytes, as they are signed.
fn seconds(time: Time48) -> u64 {
    time.into_octets().iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}
