//! Reading what changed in a zone since a serial (IXFR, RFC 1995): every message verified, from the SOA of now to the SOA of now,
//! one difference after the other, or not at all.
//!
//! A server that keeps no differences answers with the whole zone; that is taken as it is. Whether differences fit what is
//! known is for others to find out.

use domain::base::iana::{Class, Rtype};
use domain::base::message::Message;
use domain::base::name::{Name, ToName};
use domain::base::{MessageBuilder, Serial, Ttl};
use domain::rdata::Soa;

use super::connection::ServerTransport;
use super::message::random_id;
use super::signing::{Sequence, Signer};
use super::transfer::{self, AxfrReader, Parsed, Sets, incomplete, serial_of, unreadable, verified};
use crate::provider::data::WireName;
use crate::provider::{ChangesSince, ProviderError, ProviderProblem, Result};
use gatepost_core::plan::ZoneChange;

/// Asks one server what changed since a serial.
pub(super) async fn read(
    transport: &ServerTransport,
    host: &str,
    zone: &WireName,
    serial: u32,
    signer: &Signer,
) -> Result<ChangesSince> {
    transfer::within_reason(transport, ask(transport, host, zone, serial, signer)).await
}

async fn ask(
    transport: &ServerTransport,
    host: &str,
    zone: &WireName,
    serial: u32,
    signer: &Signer,
) -> Result<ChangesSince> {
    let unreachable = |cause| ProviderError::new(ProviderProblem::Unreachable(cause));
    let mut connection = transport.open(host).await.map_err(unreachable)?;
    let (id, question, mut sequence) = question(zone, serial, signer)?;
    connection.send(&question).await.map_err(unreachable)?;
    let mut answer = IxfrReader::of(zone, serial);
    loop {
        let bytes = connection.receive().await.map_err(|cause| answer.whole.broken_off(&cause))?;
        answer.whole.arrived(bytes.len())?;
        if answer.take(&verified(bytes, id, &mut sequence)?)? {
            sequence.done()?;
            return Ok(answer.outcome());
        }
    }
}

fn question<'s>(zone: &WireName, serial: u32, signer: &'s Signer) -> Result<(u16, Vec<u8>, Sequence<'s>)> {
    let (id, long) = (random_id()?, || ProviderError::protocol("the question is too long"));
    let mut builder = MessageBuilder::new_vec();
    builder.header_mut().set_id(id);
    let mut builder = builder.question();
    builder.push((zone, Rtype::IXFR)).map_err(|_| long())?;
    let mut builder = builder.authority();
    // Of this SOA only the serial is looked at.
    let (root, zero) = (Name::root_vec(), Ttl::ZERO);
    let known = Soa::new(root.clone(), root, Serial(serial), zero, zero, zero, zero);
    builder.push((zone, Class::IN, Ttl::ZERO, known)).map_err(|_| long())?;
    let mut builder = builder.additional();
    let sequence = signer.ask_for_many(&mut builder)?;
    Ok((id, builder.finish(), sequence))
}

/// An answer under way.
struct IxfrReader<'a> {
    zone: &'a WireName,
    known: u32,
    /// The serial of now, which stands first.
    now: Option<u32>,
    form: Form,
    /// The whole zone, where it comes as a whole.
    whole: AxfrReader<'a>,
    done: bool,
}

/// What kind of answer it is.
enum Form {
    /// Nobody knows before the second record.
    Open,
    /// The whole zone.
    Whole,
    /// Differences: those that are complete, and the one that comes.
    Differences(Vec<ZoneChange>, Difference),
    /// The server has no other state than ours, or only an older one.
    Nothing,
}

/// One difference as it comes.
struct Difference {
    from: u32,
    /// Where it leads; nothing while only what went is told.
    to: Option<u32>,
    gone: Sets,
    come: Sets,
}

impl<'a> IxfrReader<'a> {
    fn of(zone: &'a WireName, known: u32) -> IxfrReader<'a> {
        IxfrReader { zone, known, now: None, form: Form::Open, whole: AxfrReader::of(zone), done: false }
    }

    /// Takes one message; says whether it was the last.
    fn take(&mut self, message: &Message<Vec<u8>>) -> Result<bool> {
        let answers = message.answer().map_err(|_| unreadable("a message is damaged"))?;
        let mut count = 0;
        for record in answers {
            self.record(&record.map_err(|_| unreadable("a record is damaged"))?)?;
            count += 1;
        }
        match (&self.form, count) {
            (_, 0) => Err(incomplete("the server sent a message without records")),
            // One SOA and nothing else: more follows, or there is nothing newer.
            (Form::Open, _) if self.is_newer() => Ok(false),
            (Form::Open, _) => {
                self.form = Form::Nothing;
                Ok(true)
            }
            (Form::Whole, _) => Ok(self.whole.is_done()),
            _ => Ok(self.done),
        }
    }

    fn record(&mut self, record: &Parsed<'_>) -> Result<()> {
        if self.done {
            return Err(unreadable("there are records behind the closing SOA"));
        }
        if record.class() != Class::IN || !record.owner().ends_with(self.zone) {
            return Err(unreadable(&format!("{} is not in the zone", record.owner())));
        }
        let serial = self.serial(record)?;
        let Some(now) = self.now else {
            self.now = Some(serial.ok_or_else(|| unreadable("it does not begin with the SOA"))?);
            return self.whole.record(record);
        };
        if let Form::Open = self.form {
            let is_difference = serial == Some(self.known) && now != self.known;
            let begun = || Form::Differences(Vec::new(), Difference::from(self.known));
            self.form = if is_difference { begun() } else { Form::Whole };
            if is_difference {
                return Ok(());
            }
        }
        match (&mut self.form, serial) {
            (Form::Differences(..), Some(serial)) => self.boundary(serial, now),
            (Form::Differences(_, difference), None) => difference.store(record),
            _ => self.whole.record(record),
        }
    }

    /// The serial of a SOA; nothing for any other record.
    fn serial(&self, record: &Parsed<'_>) -> Result<Option<u32>> {
        if record.rtype() != Rtype::SOA {
            return Ok(None);
        }
        let serial = serial_of(record).filter(|_| record.owner().name_eq(self.zone));
        serial.map(Some).ok_or_else(|| unreadable("there is a wrong SOA"))
    }

    /// A SOA between differences: what came begins, the next difference begins, or all is told.
    fn boundary(&mut self, serial: u32, now: u32) -> Result<()> {
        let Form::Differences(complete, difference) = &mut self.form else { return Ok(()) };
        let Some(to) = difference.to else {
            difference.to = Some(serial);
            return Ok(());
        };
        if serial != to {
            return Err(incomplete(format!("a difference leads to serial {to}, and the next begins at {serial}")));
        }
        let next = Difference::from(to);
        complete.push(std::mem::replace(difference, next).finish());
        self.done = to == now;
        Ok(())
    }

    /// Whether the server has a newer state than the one that is known; serials turn over.
    fn is_newer(&self) -> bool {
        self.now.is_some_and(|now| (1..1 << 31).contains(&now.wrapping_sub(self.known)))
    }

    fn outcome(self) -> ChangesSince {
        match self.form {
            Form::Nothing if self.now == Some(self.known) => ChangesSince::Same,
            Form::Differences(changes, _) => ChangesSince::Changed(changes),
            Form::Whole => ChangesSince::Whole(self.whole.content()),
            Form::Open | Form::Nothing => ChangesSince::Unknown,
        }
    }
}

impl Difference {
    fn from(serial: u32) -> Difference {
        Difference { from: serial, to: None, gone: Sets::default(), come: Sets::default() }
    }

    fn store(&mut self, record: &Parsed<'_>) -> Result<()> {
        let sets = if self.to.is_none() { &mut self.gone } else { &mut self.come };
        sets.store(record.rtype(), record)
    }

    fn finish(self) -> ZoneChange {
        ZoneChange {
            from: self.from.to_string().into(),
            to: self.to.unwrap_or(self.from).to_string().into(),
            gone: self.gone.into_sets().collect(),
            come: self.come.into_sets().collect(),
        }
    }
}
