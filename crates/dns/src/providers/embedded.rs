//! The embedded server as a provider: it reads the zones being served, and puts changed ones into service whole.
//!
//! Every write checks that the zone is still as it was read, because nothing keeps two callers apart but that. A zone is
//! swapped once per write: a query sees all of it or nothing.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use gatepost_core::model::Str;
use gatepost_core::plan::{self, PlanStep, Precondition, RecordSet, SetChange, ZoneChange, ZoneContent};
use gatepost_core::publication::RecordType;

use crate::embedded::{Data, DnsServer, Name, Record, Soa, Zone, ZoneSet, ZoneSpec};
use crate::provider::kind::{ProviderAccess, ProviderKind};
use crate::provider::settings::Setting;
use crate::provider::{
    Call, Capabilities, ChangesSince, Provider, ProviderError, ProviderProblem, Result, data, units,
};

/// Writes per zone that [`Provider::since`] can answer for; who is further behind reads the zone again.
const KEPT_WRITES: usize = 64;

/// Seconds for a record that asks for no TTL of its own.
const USUAL_TTL: u32 = 300;

const ZONE: Setting = Setting::list("zone", "NAME", "embedded: a zone; may be repeated")
    .with_default("the last two labels of each hostname");

/// The kind, for the registry.
pub const KIND: ProviderKind = ProviderKind {
    settings: &[ZONE],
    zones: Some(ZONE),
    is_sole_writer: true,
    ..ProviderKind::new("embedded", "An authoritative DNS server inside this program", ProviderAccess::Process)
};

/// What every zone says of itself.
#[derive(Clone, Debug)]
pub struct Authority {
    /// The name server.
    pub server: Name,
    /// The mailbox of who answers for it, as a name.
    pub mailbox: Name,
    /// Seconds for which "there is no such thing" may be kept.
    pub negative_ttl: u32,
}

/// The embedded server, written through the same trait as any other provider.
pub struct Embedded {
    server: Arc<DnsServer>,
    authority: Authority,
    writing: Mutex<()>,
    unkept: Mutex<Option<String>>,
    /// The last writes of each zone, oldest first.
    writes: Mutex<BTreeMap<Str, VecDeque<ZoneChange>>>,
}

/// Name and type.
type Key = (Str, String);
/// TTL and values.
type Set = (u32, Vec<Str>);
/// The record sets of a zone.
type Sets = BTreeMap<Key, Set>;

impl Embedded {
    /// Publishes through a running server.
    pub fn new(server: Arc<DnsServer>, authority: Authority) -> Self {
        Embedded { server, authority, writing: Mutex::new(()), unkept: Mutex::new(None), writes: Mutex::default() }
    }

    /// Serves these zones and no others; those that are new are empty.
    pub fn serve(&self, zones: &[Str]) -> Result<()> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.server.zones();
        let names: Vec<Str> = before.zones().iter().map(|zone| bare(&zone.name().to_string())).collect();
        // What could not be kept is tried again.
        let is_kept = self.unkept().is_none();
        if is_kept && names.len() == zones.len() && zones.iter().all(|zone| names.contains(zone)) {
            return Ok(());
        }
        let mut kept = Vec::new();
        for zone in zones {
            let name = parsed(zone)?;
            let zone = match before.zone(&name) {
                Some(zone) => (**zone).clone(),
                None => self.built(&name, 0, &Sets::new())?,
            };
            kept.push(zone);
        }
        self.swap(kept)
    }

    /// Why what is served now would not be there after a restart; nothing where it would, or where nothing is to be kept.
    pub fn unkept(&self) -> Option<String> {
        self.unkept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts zones into service. A disk that does not take them is no reason not to answer.
    fn swap(&self, zones: Vec<Zone>) -> Result<()> {
        let zones = ZoneSet::new(zones).map_err(|error| ProviderError::settings(error.to_string()))?;
        let saved = self.server.swap(zones).saved;
        *self.unkept.lock().unwrap_or_else(PoisonError::into_inner) = saved.err().map(|error| error.to_string());
        Ok(())
    }

    fn content(&self, zone: &str) -> Result<(Name, u32, Sets)> {
        let name = parsed(zone)?;
        let served = self.server.zones();
        let found = served.zone(&name).ok_or_else(|| ProviderError::settings("it is not served").zone(zone))?;
        let mut sets = Sets::new();
        for record in found.records() {
            let Some((kind, value)) = shown(&record.data) else { continue };
            let entry = sets.entry((bare(&record.name.to_string()), kind)).or_insert((record.ttl, Vec::new()));
            entry.1.push(value.into());
        }
        Ok((name, found.soa().serial, sets))
    }

    fn read_now(&self, zone: &str) -> Result<ZoneContent> {
        let (_, serial, sets) = self.content(zone)?;
        let sets =
            sets.into_iter().map(|((name, kind), (ttl, values))| RecordSet::new(&name, &kind, Some(ttl), values));
        Ok(ZoneContent::new(serial.to_string(), sets))
    }

    fn write_now(&self, zone: &str, steps: &[PlanStep]) -> Result<Vec<Result<()>>> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, serial, before) = self.content(zone)?;
        let (sets, results) = carried_out(before.clone(), steps, |_| Ok(()));
        let (changed, sets, results) = match self.built(&name, serial, &sets) {
            Ok(zone) => (zone, sets, results),
            // One of them does not go with the others: each is tried by itself.
            Err(_) => {
                let (sets, results) =
                    carried_out(before.clone(), steps, |sets| self.built(&name, serial, sets).map(drop));
                (self.built(&name, serial, &sets)?, sets, results)
            }
        };
        let others = self.server.zones();
        let others = others.zones().iter().filter(|zone| *zone.name() != name).map(|zone| (**zone).clone());
        self.swap(others.chain([changed]).collect())?;
        let after = self.server.zones().zone(&name).map_or(serial, |zone| zone.soa().serial);
        self.keep_write(zone, difference((serial, &before), (after, &sets)));
        Ok(results)
    }

    fn keep_write(&self, zone: &str, change: ZoneChange) {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let of_zone = writes.entry(zone.into()).or_default();
        if of_zone.len() == KEPT_WRITES {
            of_zone.pop_front();
        }
        of_zone.push_back(change);
    }

    /// The writes that lead from one state of a zone to another; nothing where they are not all kept.
    fn writes_between(&self, zone: &str, from: &str, to: &str) -> Option<Vec<ZoneChange>> {
        let writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let of_zone = writes.get(zone)?;
        let first = of_zone.iter().position(|change| &*change.from == from)?;
        let changes: Vec<ZoneChange> = of_zone.range(first..).cloned().collect();
        let is_unbroken = changes.windows(2).all(|pair| pair[0].to == pair[1].from);
        (is_unbroken && changes.last().is_some_and(|last| &*last.to == to)).then_some(changes)
    }

    fn built(&self, name: &Name, serial: u32, sets: &Sets) -> Result<Zone> {
        let authority = &self.authority;
        let soa = Soa {
            minimum: authority.negative_ttl,
            ..Soa::new(authority.server.clone(), authority.mailbox.clone(), serial)
        };
        let records = sets.iter().map(records).collect::<Result<Vec<_>>>()?.concat();
        let is_server = |record: &Record| record.name == *name && record.data == Data::Ns(authority.server.clone());
        let records = records.into_iter().filter(|record| !is_server(record)).collect();
        let servers = vec![authority.server.clone()];
        let spec = ZoneSpec { name: name.clone(), soa, servers, servers_ttl: 3_600, records };
        Zone::build(&spec).map_err(|error| refused(error.to_string()))
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Embedded({})", self.server.address())
    }
}

impl Provider for Embedded {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            plan: plan::Capabilities { is_atomic: true, ..plan::Capabilities::default() },
            preconditions: true,
            types: &[RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Txt],
        }
    }

    fn zones(&self) -> Call<'_, Result<Vec<Str>>> {
        let zones = self.server.zones();
        Box::pin(async move { Ok(zones.zones().iter().map(|zone| bare(&zone.name().to_string())).collect()) })
    }

    fn read<'a>(&'a self, zone: &'a str) -> Call<'a, Result<ZoneContent>> {
        Box::pin(async move { self.read_now(zone) })
    }

    fn since<'a>(&'a self, zone: &'a str, epoch: &'a str) -> Call<'a, Result<ChangesSince>> {
        Box::pin(async move {
            let (served, name) = (self.server.zones(), parsed(zone)?);
            let Some(now) = served.zone(&name).map(|zone| zone.soa().serial.to_string()) else {
                return Ok(ChangesSince::Unknown);
            };
            if now == epoch {
                return Ok(ChangesSince::Same);
            }
            Ok(self.writes_between(zone, epoch, &now).map_or(ChangesSince::Unknown, ChangesSince::Changed))
        })
    }

    fn write<'a>(&'a self, zone: &'a str, steps: &'a [PlanStep]) -> Call<'a, Vec<Result<()>>> {
        Box::pin(async move {
            self.write_now(zone, steps).unwrap_or_else(|error| steps.iter().map(|_| Err(error.clone())).collect())
        })
    }
}

/// What differs between two states of a zone, each with its serial.
fn difference((from, before): (u32, &Sets), (to, after): (u32, &Sets)) -> ZoneChange {
    let missing = |sets: &Sets, other: &Sets| -> Vec<RecordSet> {
        let differ = sets.iter().filter(|(key, set)| other.get(*key) != Some(*set));
        differ.map(|((name, kind), (ttl, values))| RecordSet::new(name, kind, Some(*ttl), values.clone())).collect()
    };
    ZoneChange {
        from: from.to_string().into(),
        to: to.to_string().into(),
        gone: missing(before, after),
        come: missing(after, before),
    }
}

fn parsed(zone: &str) -> Result<Name> {
    Name::parse(zone).map_err(|error| ProviderError::settings(error.to_string()))
}

fn bare(name: &str) -> Str {
    name.strip_suffix('.').unwrap_or(name).into()
}

fn refused(meaning: String) -> ProviderError {
    ProviderError::new(ProviderProblem::Refused { code: "invalid".to_owned(), meaning })
}

/// Type and value of a record as text; `None` where there is no text for it.
fn shown(data: &Data) -> Option<(String, String)> {
    let rtype = domain::base::iana::Rtype::from_int(data.kind());
    Some((rtype.to_string(), data::to_text(rtype, &data.to_wire())?))
}

/// Carries out what still stands, unit by unit; a unit that `check` does not like is undone.
fn carried_out(mut sets: Sets, steps: &[PlanStep], check: impl Fn(&Sets) -> Result<()>) -> (Sets, Vec<Result<()>>) {
    let mut results = Vec::new();
    for unit in units(steps) {
        let result = unit.steps.iter().try_for_each(|step| stands(&sets, step)).and_then(|()| {
            let undo: Vec<_> = unit.changes().map(|change| replace(&mut sets, change)).collect();
            check(&sets).inspect_err(|_| undo.into_iter().rev().for_each(|(key, old)| restore(&mut sets, key, old)))
        });
        results.extend(unit.steps.iter().map(|_| result.clone()));
    }
    (sets, results)
}

/// Whether everything a step relies on is still so.
fn stands(sets: &Sets, step: &PlanStep) -> Result<()> {
    let holds = |condition: &Precondition| match condition {
        Precondition::Absent { name, kind, .. } => !sets.contains_key(&key(name, *kind)),
        Precondition::Equals { name, kind, values, .. } => {
            sets.get(&key(name, *kind)).is_some_and(|(_, found)| sorted(found) == sorted(values))
        }
        Precondition::Unused { name } => {
            sets.range((name.clone(), String::new())..).next().is_none_or(|((owner, _), _)| owner != name)
        }
    };
    match step.preconditions().iter().find(|condition| !holds(condition)) {
        Some(_) => Err(ProviderError::new(ProviderProblem::Stale(step.name.to_string()))),
        None => Ok(()),
    }
}

fn key(name: &Str, kind: RecordType) -> Key {
    (name.clone(), kind.as_str().to_owned())
}

fn sorted(values: &[Str]) -> Vec<&Str> {
    let mut values: Vec<_> = values.iter().collect();
    values.sort();
    values
}

/// Makes a change; returns what was there.
fn replace(sets: &mut Sets, change: &SetChange) -> (Key, Option<Set>) {
    let key = key(&change.name, change.kind);
    let old = match &change.new {
        Some(new) => sets.insert(key.clone(), (new.ttl.unwrap_or(USUAL_TTL), new.values.clone())),
        None => sets.remove(&key),
    };
    (key, old)
}

fn restore(sets: &mut Sets, key: Key, old: Option<Set>) {
    match old {
        Some(old) => sets.insert(key, old),
        None => sets.remove(&key),
    };
}

fn records(((name, kind_text), (ttl, values)): (&Key, &Set)) -> Result<Vec<Record>> {
    let owner = parsed(name)?;
    let rtype = data::rtype(kind_text).ok_or_else(|| refused(format!("`{kind_text}` is no type")))?;
    let record = |value: &Str| {
        let wire = data::to_wire(rtype, value).map_err(|error| refused(error.to_string()))?;
        let data = Data::from_wire(rtype.to_int(), &wire)
            .ok_or_else(|| refused(format!("`{value}` is no value of {kind_text}")))?;
        Ok(Record { name: owner.clone(), ttl: *ttl, data })
    };
    values.iter().map(record).collect()
}
