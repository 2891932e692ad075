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
    .with_default("the registered domain of each hostname");

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
        Ok(ZoneContent::new(serial.to_string(), sets.iter().map(|(key, set)| record_set(key, set))))
    }

    fn write_now(&self, zone: &str, steps: &[PlanStep]) -> Result<Vec<Result<()>>> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, serial, mut sets) = self.content(zone)?;
        let mut carried = carry_out(&mut sets, steps, |_| Ok(()));
        let changed = match self.built(&name, serial, &sets) {
            Ok(zone) => zone,
            // One of them does not go with the others: each is tried by itself.
            Err(_) => {
                carried.replaced.into_iter().for_each(|(key, old)| restore(&mut sets, key, old));
                carried = carry_out(&mut sets, steps, |sets| self.built(&name, serial, sets).map(drop));
                self.built(&name, serial, &sets)?
            }
        };
        let others = self.server.zones();
        let others = others.zones().iter().filter(|zone| *zone.name() != name).map(|zone| (**zone).clone());
        self.swap(others.chain([changed]).collect())?;
        let after = self.server.zones().zone(&name).map_or(serial, |zone| zone.soa().serial);
        let (gone, come) = carried.changes(&sets);
        self.keep_write(zone, ZoneChange { from: serial.to_string().into(), to: after.to_string().into(), gone, come });
        Ok(carried.results)
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

/// What became of steps, and what they replaced.
struct CarriedOut {
    results: Vec<Result<()>>,
    /// What was there before, for each record set that a step wrote.
    replaced: BTreeMap<Key, Option<Set>>,
}

impl CarriedOut {
    /// The record sets that are gone and those that came, where a step wrote something else than was there.
    fn changes(&self, sets: &Sets) -> (Vec<RecordSet>, Vec<RecordSet>) {
        let differ = || self.replaced.iter().filter(|(key, old)| sets.get(*key) != old.as_ref());
        let gone = differ().filter_map(|(key, old)| Some(record_set(key, old.as_ref()?)));
        let come = differ().filter_map(|(key, _)| Some(record_set(key, sets.get(key)?)));
        (gone.collect(), come.collect())
    }
}

/// Carries out what still stands, unit by unit; a unit that `check` does not like is undone.
fn carry_out(sets: &mut Sets, steps: &[PlanStep], check: impl Fn(&Sets) -> Result<()>) -> CarriedOut {
    let mut carried = CarriedOut { results: Vec::new(), replaced: BTreeMap::new() };
    for unit in units(steps) {
        let result = unit.steps.iter().try_for_each(|step| stands(sets, step)).and_then(|()| {
            let replaced: Vec<_> = unit.changes().map(|change| replace(sets, change)).collect();
            if let Err(error) = check(sets) {
                replaced.into_iter().rev().for_each(|(key, old)| restore(sets, key, old));
                return Err(error);
            }
            replaced.into_iter().for_each(|(key, old)| _ = carried.replaced.entry(key).or_insert(old));
            Ok(())
        });
        carried.results.extend(unit.steps.iter().map(|_| result.clone()));
    }
    carried
}

fn record_set((name, kind): &Key, (ttl, values): &Set) -> RecordSet {
    RecordSet::new(name, kind, Some(*ttl), values.clone())
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
    let rtype = data::rtype(kind_text).ok_or_else(|| refused(format!("`{kind_text}` is not a record type")))?;
    let record = |value: &Str| {
        let wire = data::to_wire(rtype, value).map_err(|error| refused(error.to_string()))?;
        let data = Data::from_wire(rtype.to_int(), &wire)
            .ok_or_else(|| refused(format!("`{value}` is not a value of type {kind_text}")))?;
        Ok(Record { name: owner.clone(), ttl: *ttl, data })
    };
    values.iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::ServerConfig;
    use gatepost_core::plan::{Content, Verb};

    const ZONE: &str = "example.org";

    fn provider() -> Embedded {
        let server = DnsServer::start(ServerConfig::new("127.0.0.1:0".parse().unwrap())).unwrap();
        let name = |text| Name::parse(text).unwrap();
        let authority =
            Authority { server: name("ns.example.org"), mailbox: name("root.example.org"), negative_ttl: 60 };
        let provider = Embedded::new(Arc::new(server), authority);
        provider.serve(&[ZONE.into()]).unwrap();
        provider
    }

    /// The step that changes the address of a name, where a number stands for an address.
    fn step(name: &str, old: Option<u8>, new: Option<u8>) -> PlanStep {
        let content = |last: u8| Content {
            ttl: Some(60),
            values: vec![format!("192.0.2.{last}").into()],
            properties: Vec::new(),
        };
        let (old, new) = (old.map(content), new.map(content));
        let name = Str::from(name);
        let change = SetChange { name: name.clone(), kind: RecordType::A, set_identifier: None, old, new };
        PlanStep {
            zone: ZONE.into(),
            name,
            verb: Verb::Update,
            changes: vec![change],
            markers: Vec::new(),
            guards: Vec::new(),
            because: String::new(),
            routes: Vec::new(),
            group: 0,
            after: Vec::new(),
        }
    }

    /// Writes steps, each by itself; whether each was carried out.
    fn write<const N: usize>(provider: &Embedded, mut steps: [PlanStep; N]) -> [bool; N] {
        steps.iter_mut().enumerate().for_each(|(group, step)| step.group = group);
        let results = provider.write_now(ZONE, &steps).unwrap();
        std::array::from_fn(|i| results[i].is_ok())
    }

    fn epoch(provider: &Embedded) -> String {
        provider.read_now(ZONE).unwrap().epoch.to_string()
    }

    fn since(provider: &Embedded, from: &str) -> Option<Vec<ZoneChange>> {
        provider.writes_between(ZONE, from, &epoch(provider))
    }

    fn shown(sets: &[RecordSet]) -> Vec<String> {
        sets.iter().map(|set| format!("{} {}", set.name, set.values.join(" "))).collect()
    }

    #[test]
    fn a_write_tells_what_its_steps_changed_and_nothing_else() {
        let provider = provider();
        provider
            .write_now(ZONE, &[step("a.example.org", None, Some(1)), step("b.example.org", None, Some(2))])
            .unwrap();
        let from = epoch(&provider);
        let steps = [
            step("a.example.org", Some(1), Some(3)),
            step("b.example.org", Some(9), None),
            step("c.example.org", None, Some(4)),
        ];
        assert_eq!(write(&provider, steps), [true, false, true], "b is not as expected");
        let writes = since(&provider, &from).unwrap();
        assert_eq!(writes.len(), 1);
        assert_eq!(shown(&writes[0].gone), ["a.example.org 192.0.2.1"]);
        assert_eq!(shown(&writes[0].come), ["a.example.org 192.0.2.3", "c.example.org 192.0.2.4"]);
    }

    /// The value of one step does not fit its type: the others are carried out one by one, and only they are told.
    #[test]
    fn a_step_that_was_undone_is_not_told() {
        let provider = provider();
        let from = epoch(&provider);
        let mut bad = step("b.example.org", None, Some(2));
        bad.changes[0].new.as_mut().unwrap().values = vec!["no address".into()];
        assert_eq!(write(&provider, [step("a.example.org", None, Some(1)), bad]), [true, false]);
        let writes = since(&provider, &from).unwrap();
        assert_eq!(
            (shown(&writes[0].gone), shown(&writes[0].come)),
            (vec![], vec!["a.example.org 192.0.2.1".to_owned()])
        );
    }

    #[test]
    fn only_so_many_writes_are_kept() {
        let provider = provider();
        let mut epochs = vec![epoch(&provider)];
        for i in 0..=KEPT_WRITES {
            write(&provider, [step(&format!("n{i}.example.org"), None, Some(1))]);
            epochs.push(epoch(&provider));
        }
        assert_eq!(provider.writes.lock().unwrap()[ZONE].len(), KEPT_WRITES);
        assert_eq!(since(&provider, &epochs[0]), None, "the first write is forgotten");
        assert_eq!(since(&provider, &epochs[1]).unwrap().len(), KEPT_WRITES);
        assert_eq!(since(&provider, &epochs[KEPT_WRITES]).unwrap().len(), 1);
    }

    /// Somebody else put another zone into service in between: what was written before and after does not tell all.
    #[test]
    fn writes_with_a_gap_between_them_tell_nothing() {
        let provider = provider();
        let from = epoch(&provider);
        write(&provider, [step("a.example.org", None, Some(1))]);
        let content = provider.read_now(ZONE).unwrap();
        let serial: u32 = content.epoch.parse().unwrap();
        let other = provider.built(&Name::parse(ZONE).unwrap(), serial + 5, &Sets::new()).unwrap();
        provider.swap(vec![other]).unwrap();
        assert_eq!(since(&provider, &from), None, "the last state is not that of a write");
        let gap = epoch(&provider);
        write(&provider, [step("b.example.org", None, Some(2))]);
        assert_eq!(since(&provider, &from), None, "a state in between is not that of a write");
        assert_eq!(since(&provider, &gap).unwrap().len(), 1);
    }
}
