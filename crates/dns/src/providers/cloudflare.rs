//! Zones at Cloudflare, over its API (REST, version 4).
//!
//! The API has no conditional requests: a change is compared with a fresh reading just before it is sent, and is addressed
//! by the ids of that reading, so that what was replaced meanwhile fails. A zone is read page by page; pages that do not fit
//! together are a failed read, never a shorter zone. Nothing here retries: a failure says whether and when to.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use gatepost_core::model::Str;
use gatepost_core::plan::{self, PlanStep, ZoneContent};
use gatepost_core::publication::{Record, RecordType};

use crate::provider::zone::{fingerprint, is_published, zone_name};
use crate::provider::{Call, Capabilities, Provider, ProviderError, ProviderProblem, Result};

mod adjust;
mod batch;
mod client;
mod pages;
mod records;
mod settings;
mod wire;
mod write;

use client::ApiClient;
pub use settings::{CloudflareConfig, DEFAULT_URL, KIND};
use wire::{ApiRecord, ApiZone};

/// Zones on one page of their list.
const ZONES_PER_PAGE: usize = 50;

/// The provider.
pub struct Cloudflare {
    client: ApiClient,
    config: CloudflareConfig,
    /// The zones when they were last listed, by name.
    zones: Mutex<BTreeMap<Str, ZoneEntry>>,
    /// How many pages each zone had when it was last read, by id.
    pages: Mutex<BTreeMap<String, usize>>,
}

/// A zone of the account.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ZoneEntry {
    id: String,
    /// Whether it is on a plan that is paid for.
    is_paid: bool,
}

impl Cloudflare {
    /// A provider with these settings; nothing is asked of the network yet.
    pub fn new(config: CloudflareConfig) -> Result<Cloudflare> {
        let client = ApiClient::new(&config)?;
        Ok(Cloudflare { client, config, zones: Mutex::default(), pages: Mutex::default() })
    }

    /// Lists the zones that the token sees, within the domains of publication.
    async fn list_zones(&self) -> Result<BTreeMap<Str, ZoneEntry>> {
        let found: Vec<ApiZone> = pages::read(&self.client, "zones", "", ZONES_PER_PAGE).await?;
        if found.is_empty() {
            let message = "the token sees no zone: it needs the rights Zone / Zone / Read and Zone / DNS / Edit";
            return Err(ProviderError::settings(message).at(&self.client));
        }
        let mut zones = BTreeMap::<Str, Vec<ApiZone>>::new();
        for zone in found {
            zones.entry(zone_name(&zone.name)).or_default().push(zone);
        }
        zones.retain(|name, _| is_published(&self.config.domains, name));
        if zones.is_empty() {
            let message = "the token sees no zone that --domain-filter lets in";
            return Err(ProviderError::settings(message).at(&self.client));
        }
        let zones: BTreeMap<Str, ZoneEntry> = zones
            .into_iter()
            .map(|(name, same)| Ok((name.clone(), self.choose(&name, same)?)))
            .collect::<Result<_>>()?;
        self.zones.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&zones);
        Ok(zones)
    }

    /// The zone among several of one name, in different accounts: the one that is delegated to.
    fn choose(&self, name: &str, mut same: Vec<ApiZone>) -> Result<ZoneEntry> {
        if same.len() > 1 {
            same.retain(|zone| zone.status == "active");
        }
        match &same[..] {
            [zone] => Ok(ZoneEntry { id: zone.id.clone(), is_paid: zone.is_paid() }),
            _ => {
                let message = format!("the token sees several zones `{name}`: limit it to one account");
                Err(ProviderError::settings(message).at(&self.client))
            }
        }
    }

    async fn entry(&self, zone: &str) -> Result<ZoneEntry> {
        let name = zone_name(zone);
        let known = self.zones.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        if let Some(entry) = known {
            return Ok(entry);
        }
        let missing = || ProviderError::settings(format!("`{zone}` is not among the zones of the token"));
        self.list_zones().await?.remove(&name).ok_or_else(|| missing().at(&self.client))
    }

    /// Every record of a zone.
    async fn records_of(&self, zone: &ZoneEntry) -> Result<Vec<ApiRecord>> {
        let per_page = self.config.per_page;
        let found: Vec<ApiRecord> = pages::read(&self.client, &zone.path(), "", per_page).await?;
        let pages = found.len().div_ceil(per_page).max(1);
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).insert(zone.id.clone(), pages);
        Ok(found)
    }

    async fn read_zone(&self, zone: &str) -> Result<ZoneContent> {
        let read = async { self.records_of(&self.entry(zone).await?).await };
        let found = read.await.map_err(|error| error.zone(zone))?;
        let mut content = ZoneContent::new("", records::sets(&found));
        content.epoch = fingerprint(&content);
        Ok(content)
    }
}

impl ZoneEntry {
    /// The path of its records.
    fn path(&self) -> String {
        format!("zones/{}/dns_records", self.id)
    }

    /// How many characters a comment may have.
    fn comment_length(&self) -> usize {
        if self.is_paid { 500 } else { 100 }
    }
}

impl Provider for Cloudflare {
    fn capabilities(&self) -> Capabilities {
        let plan = plan::Capabilities {
            // A batch is one transaction in the database, and reaches the name servers record by record.
            is_atomic: false,
            // A CNAME at the apex is flattened.
            has_aliases: true,
            has_properties: true,
            has_set_identifiers: false,
            // `adjust` keeps TTLs within their bounds: 1, which is automatic, is below the least of the others.
            min_ttl: 0,
        };
        const TYPES: [RecordType; 4] = [RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Txt];
        Capabilities { plan, preconditions: false, types: &TYPES }
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

impl fmt::Debug for Cloudflare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cloudflare").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A reading that nothing can be concluded from.
fn incomplete(cause: String) -> ProviderError {
    ProviderError::new(ProviderProblem::Incomplete(cause))
}
