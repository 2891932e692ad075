//! Hosted zones at AWS Route 53, over its API (REST and XML, version 2013-04-01).
//!
//! A zone is read page by page; pages that do not fit together are a failed read, never a shorter zone. Every change is a
//! delete of exactly what was read and a create of what is to be, in batches that the service takes whole or not at all: so it
//! fails where somebody else changed a record. Nothing here overwrites, and nothing retries: a failure says whether and when to.
//!
//! The client is our own instead of the SDK: four calls are needed, and the SDK with its credentials is some 40 crates and
//! more than 100,000 lines for them. Signatures are made with `ring`; [`credentials`] looks where the SDK does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use gatepost_core::model::Str;
use gatepost_core::plan::{self, PlanStep, ZoneContent};
use gatepost_core::publication::{Record, RecordType};

use crate::provider::zone::{fingerprint, is_published, zone_name};
use crate::provider::{Call, Capabilities, Provider, ProviderError, ProviderProblem, Result};

mod adjust;
mod batch;
mod client;
mod credentials;
mod load_balancers;
mod pace;
mod records;
mod settings;
mod signing;
mod wire;
mod write;

use batch::{WireBatch, ZoneSets};
use client::{AwsClient, AwsQuestion};
pub use credentials::AwsEnvironment;
pub use settings::{KIND, Route53Config};
use wire::{WireSet, WireZone};

/// Record sets on one page; the most that the service gives.
const SETS_PER_PAGE: &str = "300";

/// Zones that may be asked about with one question for tags.
const TAGGED_AT_ONCE: usize = 10;

/// The most record sets of a zone, or zones of an account, that are read.
const MOST: usize = 1_000_000;

/// The provider.
pub struct Route53 {
    client: AwsClient,
    config: Route53Config,
    /// The zones when they were last listed, by name.
    zones: Mutex<BTreeMap<Str, ZoneEntry>>,
    /// Each zone when it was last read, with what was written since, by id.
    contents: Mutex<BTreeMap<String, Arc<ZoneSets>>>,
}

/// A zone of the account.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ZoneEntry {
    id: String,
}

impl Route53 {
    /// A provider with these settings; nothing is asked of the network yet.
    pub fn new(config: Route53Config) -> Result<Route53> {
        let client = AwsClient::new(&config)?;
        Ok(Route53 { client, config, zones: Mutex::default(), contents: Mutex::default() })
    }

    /// Lists the zones of the account, within the domains of publication, of the type, ids and tags that settings want.
    async fn list_zones(&self) -> Result<BTreeMap<Str, ZoneEntry>> {
        let mut zones = self.all_zones().await?;
        let seen = zones.len();
        zones.retain(|zone| self.is_wanted(zone));
        if !self.config.zone_tags.is_empty() {
            let tagged = self.tagged(&zones).await?;
            zones.retain(|zone| tagged.contains(&zone.id));
        }
        if zones.is_empty() {
            let message = match seen {
                0 => "the account has no hosted zone".to_owned(),
                some => format!(
                    "none of the {some} hosted zones of the account is let in by --domain-filter, --zone-id-filter, \
                     --aws-zone-type and --aws-zone-tags"
                ),
            };
            return Err(ProviderError::settings(message).at(&self.client));
        }
        let mut by_name = BTreeMap::<Str, ZoneEntry>::new();
        for zone in zones {
            let name = zone_name(&records::plain_name(&zone.name));
            if let Some(other) = by_name.insert(name.clone(), ZoneEntry { id: zone.id.clone() }) {
                let message = format!(
                    "there are several zones `{name}` ({} and {}): choose one with --aws-zone-type or --zone-id-filter",
                    other.id, zone.id
                );
                return Err(ProviderError::settings(message).at(&self.client));
            }
        }
        self.zones.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&by_name);
        Ok(by_name)
    }

    async fn all_zones(&self) -> Result<Vec<WireZone>> {
        let (mut zones, mut ids) = (Vec::<WireZone>::new(), BTreeSet::<String>::new());
        let mut marker = None::<String>;
        loop {
            let query: Vec<(&str, &str)> = marker.iter().map(|marker| ("marker", marker.as_str())).collect();
            let page = self.client.get("/2013-04-01/hostedzone", &query, wire::zone_page).await?;
            if let Some(twice) = page.zones.iter().find(|zone| !ids.insert(zone.id.clone())) {
                return Err(incomplete(format!("the zone `{}` comes twice", twice.id)).at(&self.client));
            }
            zones.extend(page.zones);
            match page.next {
                None => return Ok(zones),
                Some(next) if zones.len() > MOST || marker.as_ref() == Some(&next) => {
                    return Err(incomplete(format!("the list of zones does not end: `{next}`")).at(&self.client));
                }
                next => marker = next,
            }
        }
    }

    fn is_wanted(&self, zone: &WireZone) -> bool {
        let name = zone_name(&records::plain_name(&zone.name));
        self.config.only_private.is_none_or(|only| only == zone.is_private)
            && (self.config.zone_ids.is_empty() || self.config.zone_ids.contains(&zone.id))
            && is_published(&self.config.domains, &name)
    }

    /// The ids of those zones that have all tags.
    async fn tagged(&self, zones: &[WireZone]) -> Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        for some in zones.chunks(TAGGED_AT_ONCE) {
            let ids: Vec<&str> = some.iter().map(|zone| zone.id.as_str()).collect();
            let body = Some(wire::tags_body(&ids));
            let question = AwsQuestion { path: "/2013-04-01/tags/hostedzone", query: &[], body, is_write: false };
            let tags = self.client.ask(question, wire::tags).await.map_err(|failure| *failure.error)?;
            let fits = |tags: &BTreeMap<String, String>| {
                self.config.zone_tags.iter().all(|(key, value)| {
                    tags.get(key).is_some_and(|found| value.as_ref().is_none_or(|value| value == found))
                })
            };
            found.extend(tags.into_iter().filter(|(_, tags)| fits(tags)).map(|(id, _)| id));
        }
        Ok(found)
    }

    async fn entry(&self, zone: &str) -> Result<ZoneEntry> {
        let name = zone_name(zone);
        let known = self.zones.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        if let Some(entry) = known {
            return Ok(entry);
        }
        let missing = || ProviderError::settings(format!("`{zone}` is not among the hosted zones"));
        self.list_zones().await?.remove(&name).ok_or_else(|| missing().at(&self.client))
    }

    /// Every record set of a zone.
    async fn read_sets(&self, zone: &ZoneEntry) -> Result<Arc<ZoneSets>> {
        let path = format!("/2013-04-01/hostedzone/{}/rrset", zone.id);
        let fail = |cause: String| incomplete(format!("GET {path}: {cause}")).at(&self.client);
        let mut sets = ZoneSets::new();
        let mut next = None::<(String, String, Option<String>)>;
        loop {
            let mut query = vec![("maxitems", SETS_PER_PAGE)];
            if let Some((name, kind, identifier)) = &next {
                query.extend([("name", name), ("type", kind)].map(|(key, value)| (key, value.as_str())));
                query.extend(identifier.iter().map(|id| ("identifier", id.as_str())));
            }
            let page = self.client.get(&path, &query, wire::set_page).await?;
            let is_first =
                |set: &WireSet| next.as_ref().is_none_or(|(name, kind, _)| set.name == *name && set.kind == *kind);
            if page.sets.first().is_none_or(|set| !is_first(set)) {
                return Err(fail("a page does not begin with the record set that it was asked for".to_owned()));
            }
            for set in page.sets {
                let told = format!("`{} {}`", set.name, set.kind);
                if sets.insert(set.key(), set).is_some() {
                    return Err(fail(format!("{told} comes twice")));
                }
            }
            match page.next {
                None => break,
                Some(_) if sets.len() > MOST => return Err(fail(format!("more than {MOST} record sets came"))),
                Some(same) if next.as_ref() == Some(&same) => return Err(fail("a page repeats".to_owned())),
                more => next = more,
            }
        }
        let sets = Arc::new(sets);
        self.contents.lock().unwrap_or_else(PoisonError::into_inner).insert(zone.id.clone(), sets.clone());
        Ok(sets)
    }

    async fn read_zone(&self, zone: &str) -> Result<ZoneContent> {
        let read = async { self.read_sets(&self.entry(zone).await?).await };
        let found = read.await.map_err(|error| error.zone(zone))?;
        let sets = found.values().filter(|set| set.kind != "SOA").map(WireSet::to_record_set);
        let mut content = ZoneContent::new("", sets);
        content.epoch = fingerprint(&content);
        Ok(content)
    }

    /// A zone as it was read last, where it was.
    fn content_of(&self, id: &str) -> Option<Arc<ZoneSets>> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// What a batch did.
    fn note(&self, id: &str, batch: WireBatch) {
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sets) = contents.get_mut(id) {
            batch.carry_out(Arc::make_mut(sets));
        }
    }

    /// Nobody knows what a zone has now.
    fn forget(&self, id: &str) {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

impl Provider for Route53 {
    fn capabilities(&self) -> Capabilities {
        let plan = plan::Capabilities {
            is_atomic: true,
            // An alias is an A or AAAA record here; `adjust` makes them, and what is a CNAME then is one.
            has_aliases: false,
            has_properties: true,
            has_set_identifiers: true,
            min_ttl: 0,
        };
        const TYPES: [RecordType; 4] = [RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Txt];
        Capabilities { plan, preconditions: true, types: &TYPES }
    }

    fn zones(&self) -> Call<'_, Result<Vec<Str>>> {
        Box::pin(async { Ok(self.list_zones().await?.into_keys().collect()) })
    }

    fn read<'a>(&'a self, zone: &'a str) -> Call<'a, Result<ZoneContent>> {
        Box::pin(self.read_zone(zone))
    }

    fn write<'a>(&'a self, zone: &'a str, steps: &'a [PlanStep]) -> Call<'a, Vec<Result<()>>> {
        Box::pin(self.write_steps(zone, steps))
    }

    fn adjusts(&self) -> bool {
        true
    }

    fn adjust(&self, records: Vec<Record>) -> Call<'_, Result<Vec<Record>>> {
        Box::pin(self.adjust_records(records))
    }
}

impl fmt::Debug for Route53 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route53").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A reading that nothing can be concluded from.
fn incomplete(cause: String) -> ProviderError {
    ProviderError::new(ProviderProblem::Incomplete(cause))
}
