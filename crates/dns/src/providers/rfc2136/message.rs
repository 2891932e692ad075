//! UPDATE messages: preconditions and changes of steps as records.
//!
//! The zone stands in the question, prerequisites in the answer section, changes in the authority section.

use std::collections::BTreeSet;
use std::ops::Range;

use domain::base::iana::{Class, Opcode, Rtype};
use domain::base::message_builder::AdditionalBuilder;
use domain::base::{MessageBuilder, Record, Ttl, UnknownRecordData};
use gatepost_core::model::Str;
use ring::rand::{SecureRandom, SystemRandom};

use super::USUAL_TTL;
use crate::provider::data::{self, WireName};
use crate::provider::isolate::Piece;
use crate::provider::{ProviderError, ProviderProblem, Result, Unit};
use gatepost_core::plan::{Content, Precondition, SetChange};

/// One record of a message.
#[derive(Clone, Debug)]
pub(super) struct MessageRecord {
    owner: WireName,
    kind: Rtype,
    class: Class,
    ttl: u32,
    data: Vec<u8>,
}

/// A unit in wire format.
#[derive(Clone, Debug)]
pub(super) struct Prepared<'a> {
    unit: Unit<'a>,
    /// Names that change.
    pub(super) touched: BTreeSet<&'a Str>,
    /// Names that must be as they were read.
    pub(super) needed: BTreeSet<Str>,
    prerequisites: Vec<MessageRecord>,
    changes: Vec<MessageRecord>,
}

/// A random id, so that an answer cannot be guessed.
pub(super) fn random_id() -> Result<u16> {
    let mut bytes = [0; 2];
    let failed = |_| ProviderError::protocol("the system has no random numbers");
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(u16::from_be_bytes(bytes))
}

/// Puts a unit into wire format, or says why it cannot be written.
pub(super) fn prepare<'a>(unit: &Unit<'a>, zone: &WireName, min_ttl: u32) -> Result<Prepared<'a>> {
    let mut prepared = Prepared {
        unit: unit.clone(),
        touched: unit.names(),
        needed: BTreeSet::new(),
        prerequisites: Vec::new(),
        changes: Vec::new(),
    };
    let unwritable = |cause: String| ProviderError::new(ProviderProblem::Unwritable(cause)).record(unit.subject());
    for precondition in unit.steps.iter().flat_map(|step| step.preconditions()) {
        prepared.require(&precondition, zone).map_err(unwritable)?;
    }
    // What goes makes room first: an address is not added beside a CNAME that is still there.
    unit.changes().try_for_each(|change| prepared.remove(change, zone)).map_err(unwritable)?;
    unit.changes().try_for_each(|change| prepared.add(change, zone, min_ttl)).map_err(unwritable)?;
    Ok(prepared)
}

/// A message with these units, not signed yet.
pub(super) fn compose(id: u16, zone: &WireName, units: &[&Prepared<'_>]) -> Result<AdditionalBuilder<Vec<u8>>> {
    let too_long = |_| ProviderError::new(ProviderProblem::Unwritable("the update is longer than one message".into()));
    let mut builder = MessageBuilder::new_vec();
    builder.header_mut().set_id(id);
    builder.header_mut().set_opcode(Opcode::UPDATE);
    let mut builder = builder.question();
    builder.push((zone, Rtype::SOA)).map_err(too_long)?;
    let mut builder = builder.answer();
    // Units may ask for the same thing; a server compares whole sets, in which nothing stands twice.
    let mut asked = BTreeSet::new();
    for line in units.iter().flat_map(|unit| &unit.prerequisites) {
        if !asked.insert((line.owner.as_slice(), line.kind.to_int(), line.class.to_int(), &line.data)) {
            continue;
        }
        builder.push(line.record()?).map_err(too_long)?;
    }
    let mut builder = builder.authority();
    for line in units.iter().flat_map(|unit| &unit.changes) {
        builder.push(line.record()?).map_err(too_long)?;
    }
    Ok(builder.additional())
}

impl Piece for Prepared<'_> {
    fn steps(&self) -> Range<usize> {
        self.unit.steps()
    }

    fn subject(&self) -> String {
        self.unit.subject()
    }
}

impl Prepared<'_> {
    /// Bytes that it takes up in a message.
    pub(super) fn size(&self) -> usize {
        self.prerequisites.iter().chain(&self.changes).map(MessageRecord::size).sum()
    }

    fn require(&mut self, precondition: &Precondition, zone: &WireName) -> std::result::Result<(), String> {
        let (name, lines) = match precondition {
            Precondition::Unused { name } => (name, vec![MessageRecord::empty(name, Rtype::ANY, Class::NONE, zone)?]),
            Precondition::Absent { name, kind, set_identifier } => {
                plain(set_identifier.as_ref())?;
                (name, vec![MessageRecord::empty(name, rtype(kind.as_str())?, Class::NONE, zone)?])
            }
            Precondition::Equals { name, kind, set_identifier, values } => {
                plain(set_identifier.as_ref())?;
                (name, MessageRecord::set(name, rtype(kind.as_str())?, 0, values, zone)?)
            }
        };
        self.needed.insert(name.clone());
        self.prerequisites.extend(lines);
        Ok(())
    }

    fn remove(&mut self, change: &SetChange, zone: &WireName) -> std::result::Result<(), String> {
        if change.old.is_some() {
            let kind = rtype(change.kind.as_str())?;
            self.changes.push(MessageRecord::empty(&change.name, kind, Class::ANY, zone)?);
        }
        Ok(())
    }

    fn add(&mut self, change: &SetChange, zone: &WireName, min_ttl: u32) -> std::result::Result<(), String> {
        let Some(new) = &change.new else { return Ok(()) };
        if new.values.is_empty() {
            return Err("a set without values is never written".into());
        }
        let ttl = ttl(change.old.as_ref(), new).max(min_ttl);
        self.changes.extend(MessageRecord::set(&change.name, rtype(change.kind.as_str())?, ttl, &new.values, zone)?);
        Ok(())
    }
}

impl MessageRecord {
    fn empty(name: &str, kind: Rtype, class: Class, zone: &WireName) -> std::result::Result<MessageRecord, String> {
        Ok(MessageRecord { owner: owner(name, zone)?, kind, class, ttl: 0, data: Vec::new() })
    }

    fn set(
        name: &str,
        kind: Rtype,
        ttl: u32,
        values: &[Str],
        zone: &WireName,
    ) -> std::result::Result<Vec<MessageRecord>, String> {
        let owner = owner(name, zone)?;
        let line = |value: &Str| {
            let data = data::to_wire(kind, value).map_err(|error| error.to_string())?;
            Ok(MessageRecord { owner: owner.clone(), kind, class: Class::IN, ttl, data })
        };
        values.iter().map(line).collect()
    }

    fn record(&self) -> Result<Record<&WireName, UnknownRecordData<&[u8]>>> {
        let too_long = |_| ProviderError::new(ProviderProblem::Unwritable("a value is longer than 65535 bytes".into()));
        let data = UnknownRecordData::from_octets(self.kind, &self.data[..]).map_err(too_long)?;
        Ok(Record::new(&self.owner, self.class, Ttl::from_secs(self.ttl), data))
    }

    fn size(&self) -> usize {
        self.owner.len() + 10 + self.data.len()
    }
}

fn ttl(old: Option<&Content>, new: &Content) -> u32 {
    new.ttl.or(old.and_then(|old| old.ttl)).unwrap_or(USUAL_TTL)
}

fn owner(name: &str, zone: &WireName) -> std::result::Result<WireName, String> {
    let name = data::name(name)?;
    if name.ends_with(zone) { Ok(name) } else { Err(format!("{name} is not in the zone {zone}")) }
}

fn rtype(kind: &str) -> std::result::Result<Rtype, String> {
    data::rtype(kind).ok_or_else(|| format!("the type {kind} is unknown"))
}

fn plain(set_identifier: Option<&Str>) -> std::result::Result<(), String> {
    match set_identifier {
        None => Ok(()),
        Some(identifier) => Err(format!("a DNS server keeps no set identifiers (`{identifier}`)")),
    }
}
