//! Zone transfers out (RFC 5936): a zone as a sequence of messages, signed if the request was.
//!
//! An incremental transfer (RFC 1995) gets the whole zone too, which every secondary accepts. Who may transfer is decided
//! before; nothing here decides it.

use std::borrow::Cow;
use std::sync::Arc;

use domain::base::iana::{Class, Rcode, Rtype};
use domain::base::message_builder::AnswerBuilder;
use domain::base::rdata::UnknownRecordData;
use domain::base::{Message, MessageBuilder, Ttl};
use domain::tsig::{self, ServerSequence};

use super::record::kind;
use super::signing::{Transaction, time};
use super::wire::DnsRequest;
use super::zone::{Cursor, Zone};

/// A message is closed when it has grown beyond this many bytes.
const FULL: usize = 16_000;

/// No message becomes larger than this many bytes before its signature.
const LARGEST: usize = 65_000;

/// A transfer that was allowed.
pub struct Transfer {
    zone: Arc<Zone>,
    request: Message<Vec<u8>>,
    signer: Option<ServerSequence<Arc<tsig::Key>>>,
    next: Next,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    FirstSoa,
    Record(Cursor),
    LastSoa,
    Nothing,
}

impl Transfer {
    pub(crate) fn new(zone: Arc<Zone>, request: &DnsRequest<'_>, signer: Option<Transaction>) -> Option<Transfer> {
        let request = Message::from_octets(request.packet.to_vec()).ok()?;
        Some(Transfer { zone, request, signer: signer.map(Into::into), next: Next::FirstSoa })
    }

    /// The zone being sent.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Whether the last message was written.
    pub fn is_whole(&self) -> bool {
        self.next == Next::Nothing
    }

    /// The next message, signed at this time; `None` after the last one.
    pub fn next_message(&mut self, now: u64) -> Option<Vec<u8>> {
        if self.next == Next::Nothing {
            return None;
        }
        let mut builder = MessageBuilder::new_vec().start_answer(&self.request, Rcode::NOERROR).ok()?;
        builder.header_mut().set_aa(true);
        let mut room = true;
        while room && self.next != Next::Nothing {
            room = self.push(&mut builder)?;
        }
        let mut builder = builder.additional();
        if let Some(signer) = &mut self.signer {
            signer.answer(&mut builder, time(now)).ok()?;
        }
        Some(builder.finish())
    }

    /// Adds the next record, and says whether there is room for more.
    fn push(&mut self, builder: &mut AnswerBuilder<Vec<u8>>) -> Option<bool> {
        let soa = self.zone.soa();
        let (owner, kind, ttl, data) = match self.next {
            Next::Nothing => return Some(false),
            Next::FirstSoa | Next::LastSoa => {
                (self.zone.name().as_wire(), kind::SOA, soa.ttl, Cow::Owned(soa.to_wire()))
            }
            Next::Record(cursor) => {
                let (owner, set, data) = self.zone.at(cursor)?;
                (owner, set.kind, set.ttl(), Cow::Borrowed(data))
            }
        };
        if builder.counts().ancount() > 0 && builder.as_slice().len() + owner.len() + 10 + data.len() > LARGEST {
            return Some(false);
        }
        let owner = domain::base::Name::from_octets(owner).ok()?;
        let data = UnknownRecordData::from_octets(Rtype::from_int(kind), data.as_ref()).ok()?;
        builder.push((owner, Class::IN, Ttl::from_secs(ttl), data)).ok()?;
        self.next = self.after();
        Some(builder.as_slice().len() < FULL)
    }

    fn after(&self) -> Next {
        let record = |cursor: Option<Cursor>| cursor.map_or(Next::LastSoa, Next::Record);
        match self.next {
            Next::FirstSoa => record(self.zone.first()),
            Next::Record(cursor) => record(self.zone.next(cursor)),
            Next::LastSoa | Next::Nothing => Next::Nothing,
        }
    }
}

impl std::fmt::Debug for Transfer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transfer({}, {:?})", self.zone.name(), self.next)
    }
}
