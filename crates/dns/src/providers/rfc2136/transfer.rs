//! Reading a zone by transfer (AXFR): from the first SOA to the last, every message verified, or not at all.

use std::collections::BTreeMap;

use domain::base::iana::{Class, Opcode, Rtype};
use domain::base::message::Message;
use domain::base::name::{ParsedName, ToName};
use domain::base::{MessageBuilder, ParsedRecord};
use domain::rdata::ZoneRecordData;
use tokio::time::timeout;

use super::answer;
use super::connection::ServerTransport;
use super::message::random_id;
use super::signing::{Sequence, Signer};
use crate::provider::data::{self, WireName};
use crate::provider::{ProviderError, ProviderProblem, Result};
use gatepost_core::plan::{RecordSet, ZoneContent};

/// A zone with more bytes on the wire is not read.
const MAX_BYTES: usize = 256 << 20;

/// A whole transfer may take this many times the patience for one message.
const MAX_PATIENCE: u32 = 12;

/// What a signer makes by itself, which nobody publishes and nobody must compare.
const SIGNERS_OWN: [Rtype; 4] = [Rtype::RRSIG, Rtype::NSEC, Rtype::NSEC3, Rtype::NSEC3PARAM];

/// Types that must be understood; any other is kept as bytes.
const UNDERSTOOD: [Rtype; 6] = [Rtype::A, Rtype::AAAA, Rtype::CNAME, Rtype::TXT, Rtype::NS, Rtype::SOA];

/// Reads a zone from one server.
pub(super) async fn read(
    transport: &ServerTransport,
    host: &str,
    zone: &WireName,
    signer: &Signer,
) -> Result<ZoneContent> {
    within_reason(transport, transfer(transport, host, zone, signer)).await
}

/// A whole transfer, or nothing where it takes too long.
pub(super) async fn within_reason<T>(transport: &ServerTransport, work: impl Future<Output = Result<T>>) -> Result<T> {
    let whole = transport.patience * MAX_PATIENCE;
    let late = || incomplete(format!("it took longer than {} s", whole.as_secs()));
    timeout(whole, work).await.unwrap_or_else(|_| Err(late()))
}

async fn transfer(transport: &ServerTransport, host: &str, zone: &WireName, signer: &Signer) -> Result<ZoneContent> {
    let unreachable = |cause| ProviderError::new(ProviderProblem::Unreachable(cause));
    let mut connection = transport.open(host).await.map_err(unreachable)?;
    let (id, question, mut sequence) = question(zone, signer)?;
    connection.send(&question).await.map_err(unreachable)?;
    let mut reading = AxfrReader::of(zone);
    while !reading.is_done() {
        let bytes = connection.receive().await.map_err(|cause| reading.broken_off(&cause))?;
        reading.arrived(bytes.len())?;
        reading.take(verified(bytes, id, &mut sequence)?)?;
    }
    sequence.done()?;
    Ok(reading.content())
}

fn question<'s>(zone: &WireName, signer: &'s Signer) -> Result<(u16, Vec<u8>, Sequence<'s>)> {
    let id = random_id()?;
    let mut builder = MessageBuilder::new_vec();
    builder.header_mut().set_id(id);
    let mut builder = builder.question();
    builder.push((zone, Rtype::AXFR)).map_err(|_| ProviderError::protocol("the question is too long"))?;
    let mut builder = builder.additional();
    let sequence = signer.ask_for_many(&mut builder)?;
    Ok((id, builder.finish(), sequence))
}

pub(super) fn verified(bytes: Vec<u8>, id: u16, sequence: &mut Sequence<'_>) -> Result<Message<Vec<u8>>> {
    let mut message = answer::parse(bytes, id, Opcode::QUERY)?;
    sequence.verify(&mut message)?;
    match answer::transfer_failure(message.header().rcode()) {
        Some(failure) => Err(failure),
        None => Ok(message),
    }
}

/// A transfer under way.
pub(super) struct AxfrReader<'a> {
    zone: &'a WireName,
    bytes: usize,
    records: usize,
    serial: Option<u32>,
    done: bool,
    sets: Sets,
}

/// Record sets as they are gathered from records.
#[derive(Default)]
pub(super) struct Sets(BTreeMap<(String, Rtype), (u32, Vec<String>)>);

pub(super) type Parsed<'m> = ParsedRecord<'m, Vec<u8>>;

impl Sets {
    pub(super) fn store(&mut self, kind: Rtype, record: &Parsed<'_>) -> Result<()> {
        if SIGNERS_OWN.contains(&kind) {
            return Ok(());
        }
        let name = record.owner().to_string().to_ascii_lowercase();
        let value = value_of(kind, record).ok_or_else(|| unreadable(&format!("{name} {kind} is damaged")))?;
        let ttl = record.ttl().as_secs();
        // Nearly all have one value, and there may be very many.
        let set = self.0.entry((name, kind)).or_insert_with(|| (ttl, Vec::with_capacity(1)));
        set.0 = set.0.min(ttl);
        set.1.push(value);
        Ok(())
    }

    pub(super) fn into_sets(self) -> impl Iterator<Item = RecordSet> {
        self.0.into_iter().map(|((name, kind), (ttl, mut values))| {
            values.sort();
            values.dedup();
            RecordSet::new(&name, &kind.to_string(), Some(ttl), values)
        })
    }
}

impl<'a> AxfrReader<'a> {
    pub(super) fn of(zone: &'a WireName) -> AxfrReader<'a> {
        AxfrReader { zone, bytes: 0, records: 0, serial: None, done: false, sets: Sets::default() }
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    pub(super) fn broken_off(&self, cause: &str) -> ProviderError {
        incomplete(format!("{cause}, after {} records and before the closing SOA", self.records))
    }

    /// Counts what came.
    pub(super) fn arrived(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes > MAX_BYTES {
            return Err(incomplete(format!("it is larger than {MAX_BYTES} bytes")));
        }
        Ok(())
    }

    pub(super) fn take(&mut self, message: Message<Vec<u8>>) -> Result<()> {
        let answers = message.answer().map_err(|_| unreadable("a message is damaged"))?;
        let before = self.records;
        for record in answers {
            self.record(&record.map_err(|_| unreadable("a record is damaged"))?)?;
        }
        if self.records == before {
            return Err(incomplete("the server sent a message without records"));
        }
        Ok(())
    }

    pub(super) fn record(&mut self, record: &Parsed<'_>) -> Result<()> {
        if self.done {
            return Err(unreadable("there are records behind the closing SOA"));
        }
        self.records += 1;
        if record.class() != Class::IN || !record.owner().ends_with(self.zone) {
            return Err(unreadable(&format!("{} is not in the zone", record.owner())));
        }
        match (record.rtype(), self.serial) {
            (Rtype::SOA, _) => self.boundary(record),
            (_, None) => Err(unreadable("it does not begin with the SOA")),
            (kind, _) => self.sets.store(kind, record),
        }
    }

    /// The SOA stands at both ends, with the same serial.
    fn boundary(&mut self, record: &Parsed<'_>) -> Result<()> {
        let serial = serial_of(record).filter(|_| record.owner().name_eq(self.zone));
        let serial = serial.ok_or_else(|| unreadable("there is a wrong SOA"))?;
        match self.serial {
            None => self.serial = Some(serial),
            Some(first) if first == serial => self.done = true,
            Some(first) => {
                return Err(incomplete(format!("the zone changed meanwhile: serial {first}, then {serial}")));
            }
        }
        Ok(())
    }

    pub(super) fn content(self) -> ZoneContent {
        ZoneContent::new(self.serial.unwrap_or_default().to_string(), self.sets.into_sets())
    }
}

pub(super) fn serial_of(record: &Parsed<'_>) -> Option<u32> {
    match record.to_record::<ZoneRecordData<_, ParsedName<_>>>().ok()??.into_data() {
        ZoneRecordData::Soa(soa) => Some(soa.serial().into_int()),
        _ => None,
    }
}

/// The value as text. Data that `domain` does not understand is kept as bytes, unless it is of a type that we write.
fn value_of(kind: Rtype, record: &Parsed<'_>) -> Option<String> {
    if let Ok(Some(record)) = record.to_record::<ZoneRecordData<_, ParsedName<_>>>() {
        return data::to_text(kind, &data::flatten(record.data()));
    }
    if UNDERSTOOD.contains(&kind) {
        return None;
    }
    let raw = record.to_record::<domain::base::UnknownRecordData<_>>().ok()??;
    Some(data::generic(raw.data().data()))
}

pub(super) fn incomplete(cause: impl Into<String>) -> ProviderError {
    ProviderError::new(ProviderProblem::Incomplete(cause.into()))
}

pub(super) fn unreadable(cause: &str) -> ProviderError {
    incomplete(cause)
}
