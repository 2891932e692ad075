//! Any provider that speaks the webhook protocol of external-dns, version 1.
//!
//! The protocol knows no preconditions and no transactions: a change is compared with a fresh reading just before it is
//! sent, and after a failure the reading says what was done. An answer that is not exactly what the protocol allows is a
//! failed read, never an empty zone. Nothing here retries: a failure says whether and when to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gatepost_core::model::Str;
use gatepost_core::plan::{self, PlanStep, RecordSet, ZoneContent};
use gatepost_core::publication::{Record, RecordType};
use tokio::sync::OnceCell;

use crate::provider::kind::{ProviderAccess, ProviderKind};
use crate::provider::settings::{ProviderSettings, Setting};
use crate::provider::zone::{fingerprint, zone_name, zone_of};
use crate::provider::{Call, Capabilities, Provider, ProviderError, ProviderProblem, Result};

mod adjust;
mod apply;
mod client;
mod endpoint;
mod filter;
pub mod server;

use client::{Body, Client};
pub use endpoint::{Changes, Endpoint, Property};
pub use filter::WebhookDomains;

/// The media type of the protocol; it is compared as it stands.
pub const MEDIA_TYPE: &str = "application/external.dns.webhook+json;version=1";

/// The largest body that is taken, in either direction.
pub const MAX_BODY: usize = 32 << 20;

/// Where a sidecar listens.
pub const DEFAULT_URL: &str = "http://localhost:8888";

/// How long a question with its answer may take, where settings do not say.
const TIMEOUT: Duration = Duration::from_secs(15);

const PROVIDER_URL: Setting =
    Setting::text("webhook-provider-url", "URL", "webhook: its address").with_default(DEFAULT_URL);

/// The kind, for the registry.
pub const KIND: ProviderKind = ProviderKind {
    settings: &[PROVIDER_URL],
    ..ProviderKind::new(
        "webhook",
        "Any provider that speaks the webhook protocol of external-dns",
        ProviderAccess::Network {
            open: |settings| Ok(Arc::new(Webhook::new(WebhookConfig::from_settings(settings))?)),
            timeout: TIMEOUT,
        },
    )
};

/// The settings of this provider.
#[derive(Clone, Debug)]
pub struct WebhookConfig {
    /// The base address.
    pub url: String,
    /// Zones to look after where the webhook does not name its domains.
    pub zones: Vec<String>,
    /// How long a question with its answer may take.
    pub timeout: Duration,
}

/// The provider.
pub struct Webhook {
    client: Client,
    zones: Vec<Str>,
    filter: OnceCell<WebhookDomains>,
}

impl Default for WebhookConfig {
    fn default() -> Self {
        WebhookConfig { url: DEFAULT_URL.to_owned(), zones: Vec::new(), timeout: TIMEOUT }
    }
}

impl WebhookConfig {
    /// The configuration that settings amount to. The webhook may not name its domains: then those of publication are its zones.
    fn from_settings(settings: &ProviderSettings) -> WebhookConfig {
        WebhookConfig {
            url: settings.text(&PROVIDER_URL).unwrap_or(DEFAULT_URL).to_owned(),
            zones: settings.domains.clone(),
            timeout: settings.timeout.unwrap_or(TIMEOUT),
        }
    }
}

impl Webhook {
    /// A provider with these settings; nothing is asked of the network yet.
    pub fn new(config: WebhookConfig) -> Result<Webhook> {
        let zones = config.zones.iter().map(|zone| zone_name(zone)).filter(|zone| !zone.is_empty()).collect();
        Ok(Webhook { client: Client::new(&config.url, config.timeout)?, zones, filter: OnceCell::new() })
    }

    /// The domains that the webhook looks after; asked for once.
    async fn filter(&self) -> Result<&WebhookDomains> {
        let negotiate = async {
            let answer = self.client.ask("GET", "", Body::None).await?;
            answer.expect(200)?;
            answer.expect_exact_type()?;
            WebhookDomains::parse(&answer.body).map_err(|cause| self.client.wrong(cause))
        };
        self.filter.get_or_try_init(|| negotiate).await
    }

    async fn all_zones(&self) -> Result<Vec<Str>> {
        let filter = self.filter().await?;
        let named: Vec<Str> = filter.include().iter().map(|domain| zone_name(domain)).collect();
        let zones = if self.zones.is_empty() { named } else { self.zones.clone() };
        if zones.is_empty() {
            let message = "the webhook does not say which domains it has: name the zones with --domain-filter";
            return Err(ProviderError::settings(message).at(&self.client));
        }
        Ok(zones)
    }

    /// Every endpoint that the webhook has.
    async fn endpoints(&self) -> Result<Vec<Endpoint>> {
        self.filter().await?;
        let answer = self.client.ask("GET", "records", Body::None).await?;
        answer.expect(200)?;
        answer.expect_type()?;
        endpoint::parse_list(&answer.body).map_err(|cause| {
            let problem = ProviderProblem::Incomplete(format!("GET /records: {cause}"));
            ProviderError::new(problem).at(&self.client)
        })
    }

    /// The endpoints of one zone: those for which no longer zone is there.
    async fn endpoints_of(&self, zone: &str) -> Result<Vec<Endpoint>> {
        let zones = self.all_zones().await?;
        let wanted = zone_name(zone);
        if !zones.contains(&wanted) {
            return Err(
                ProviderError::settings(format!("`{zone}` is not among the domains of the webhook")).at(&self.client)
            );
        }
        let mut endpoints = self.endpoints().await?;
        endpoints.retain(|endpoint| zone_of(&zones, &endpoint.name()) == Some(&wanted));
        Ok(endpoints)
    }

    async fn read_zone(&self, zone: &str) -> Result<ZoneContent> {
        let endpoints = self.endpoints_of(zone).await.map_err(|error| error.zone(zone))?;
        let sets: Vec<RecordSet> = endpoints.iter().map(Endpoint::to_set).collect();
        let mut content = ZoneContent::new("", sets);
        content.epoch = fingerprint(&content);
        Ok(content)
    }
}

impl Provider for Webhook {
    fn capabilities(&self) -> Capabilities {
        let plan = plan::Capabilities {
            is_atomic: false,
            has_aliases: false,
            has_properties: true,
            has_set_identifiers: true,
            min_ttl: 0,
        };
        const TYPES: [RecordType; 4] = [RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Txt];
        Capabilities { plan, preconditions: false, types: &TYPES }
    }

    fn zones(&self) -> Call<'_, Result<Vec<Str>>> {
        Box::pin(self.all_zones())
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

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("url", &self.client.to_string())
            .field("zones", &self.zones)
            .finish_non_exhaustive()
    }
}
