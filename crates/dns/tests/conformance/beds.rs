//! Every provider with a real server behind it. A bed says where to ask, what the whole zone is as other tools see it, and
//! changes the zone behind everybody's back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gatepost_dns::embedded::{self, Data, Key, Name, Record, Soa, TsigAlgorithm, Zone, ZoneSet, ZoneSpec};
use gatepost_dns::provider::{Shared, data};
use gatepost_dns::providers::embedded::{Authority, Embedded};
use gatepost_dns::providers::{cloudflare, rfc2136, route53, webhook};
use gatepost_testkit::servers::cloudflare::{CloudflareApi, HostedZones, TOKEN};
use gatepost_testkit::servers::route53::{AwsAccount, KEY_ID, Route53Api, SECRET};
use gatepost_testkit::servers::{self, KEY_ALGORITHM, KEY_NAME, KEY_SECRET, Kind, Primary};

/// A kind of bed.
#[derive(Clone, Copy)]
pub(crate) struct BedKind {
    /// The provider that is tested, by the name that settings give it.
    pub(crate) provider: &'static str,
    /// What stands behind it.
    pub(crate) behind: Behind,
}

/// What stands behind a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// The server in this process.
    Ourselves,
    /// A real server that takes updates.
    Primary(Kind),
    /// A server of the test bed that speaks the API of Cloudflare.
    Cloudflare,
    /// The same with the API of Route 53.
    Route53,
}

/// Every bed. A provider without one fails `every_provider_has_a_bed`.
pub(crate) const BEDS: &[BedKind] = &[
    BedKind { provider: "embedded", behind: Behind::Ourselves },
    BedKind { provider: "rfc2136", behind: Behind::Primary(Kind::Bind) },
    BedKind { provider: "rfc2136", behind: Behind::Primary(Kind::Knot) },
    BedKind { provider: "rfc2136", behind: Behind::Primary(Kind::Pdns) },
    BedKind { provider: "cloudflare", behind: Behind::Cloudflare },
    BedKind { provider: "route53", behind: Behind::Route53 },
    BedKind { provider: "webhook", behind: Behind::Ourselves },
    BedKind { provider: "webhook", behind: Behind::Primary(Kind::Bind) },
];

/// A zone, a provider for it, and the server that serves it.
pub(crate) struct Bed {
    pub(crate) zone: String,
    pub(crate) provider: Shared,
    /// Where to ask.
    pub(crate) address: SocketAddr,
    /// Where the webhook is, if the provider is one.
    pub(crate) webhook: Option<String>,
    server: Running,
}

enum Running {
    Ourselves(Arc<embedded::DnsServer>),
    Primary(servers::DnsServer),
    Cloudflare(Arc<CloudflareApi>),
    Route53(Arc<Route53Api>),
}

/// A record that somebody puts into the zone by hand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hand {
    pub(crate) label: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) value: &'static str,
}

impl BedKind {
    pub(crate) fn name(&self) -> String {
        match self.behind {
            Behind::Ourselves => format!("{} over embedded", self.provider),
            Behind::Primary(kind) => format!("{} over {}", self.provider, kind.name()),
            Behind::Cloudflare | Behind::Route53 => format!("{} over its API", self.provider),
        }
    }

    /// Whether its tests are to run here.
    pub(crate) fn is_wanted(&self) -> bool {
        match self.behind {
            Behind::Ourselves => servers::find("dig").is_some() || std::env::var_os("CI").is_some(),
            Behind::Primary(kind) => kind.is_wanted(),
            Behind::Cloudflare | Behind::Route53 => true,
        }
    }

    /// Starts the server with a zone that others wrote, and opens the provider.
    pub(crate) async fn start(&self, zone: &str) -> Bed {
        let (server, address, inner) = match self.behind {
            Behind::Ourselves => ourselves(zone),
            Behind::Primary(kind) => primary(kind, zone),
            Behind::Cloudflare => cloudflare(zone),
            Behind::Route53 => route53(zone),
        };
        let (provider, webhook) = match self.provider {
            "webhook" => behind_webhook(inner, zone).await,
            _ => (inner, None),
        };
        Bed { zone: zone.to_owned(), provider, address, webhook, server }
    }
}

impl Bed {
    /// The zone as other tools see it.
    pub(crate) fn dump(&self) -> Vec<String> {
        match &self.server {
            Running::Cloudflare(api) => {
                api.with(|zones| zones.zone(&self.zone).map(|zone| zone.dump()).unwrap_or_default())
            }
            Running::Route53(api) => {
                api.with(|account| account.zone(&self.zone).map(|zone| zone.dump()).unwrap_or_default())
            }
            _ => servers::dump(self.address, &self.zone).unwrap(),
        }
    }

    /// Puts a record there by hand.
    pub(crate) fn add(&self, hand: Hand) {
        let name = format!("{}.{}", hand.label, self.zone);
        match &self.server {
            Running::Primary(server) => {
                let line = format!("update add {name}. 77 {} {}", hand.kind, hand.value);
                server.edit(&self.zone, &[&line]).unwrap();
            }
            Running::Ourselves(server) => {
                let mut spec = spec_of(server, &self.zone);
                spec.records.push(record(&name, 77, hand.kind, hand.value));
                serve(server, &spec);
            }
            Running::Cloudflare(api) => api.with(|zones| zones.add(&self.zone, &name, 77, hand.kind, hand.value)),
            Running::Route53(api) => api.with(|account| account.add(&self.zone, &name, 77, hand.kind, hand.value)),
        }
    }

    /// The API of Cloudflare, where it is what stands behind the provider.
    pub(crate) fn api(&self) -> Option<Arc<CloudflareApi>> {
        match &self.server {
            Running::Cloudflare(api) => Some(api.clone()),
            _ => None,
        }
    }

    /// The API of Route 53, where it is what stands behind the provider.
    pub(crate) fn aws(&self) -> Option<Arc<Route53Api>> {
        match &self.server {
            Running::Route53(api) => Some(api.clone()),
            _ => None,
        }
    }

    /// The server, where it is a child process.
    pub(crate) fn primary(&self) -> &servers::DnsServer {
        match &self.server {
            Running::Primary(server) => server,
            _ => panic!("no child process is behind this bed"),
        }
    }
}

/// The configuration that reaches a zone on the server at this address.
pub(crate) fn rfc2136_config(address: SocketAddr, zone: &str) -> rfc2136::Rfc2136Config {
    rfc2136::Rfc2136Config {
        hosts: vec![address.to_string()],
        zones: vec![zone.to_owned()],
        key: Some(rfc2136::KeyConfig::new(KEY_NAME, KEY_SECRET, KEY_ALGORITHM)),
        timeout: Duration::from_secs(20),
        ..rfc2136::Rfc2136Config::default()
    }
}

fn primary(kind: Kind, zone: &str) -> (Running, SocketAddr, Shared) {
    let zones = vec![(zone.to_owned(), zone_text(zone))];
    let refused = vec![format!("refused.{zone}")];
    let server = kind.start(&Primary { zones, refused, ..Primary::default() }).unwrap();
    let address = server.address;
    let provider = rfc2136::Rfc2136::new(rfc2136_config(address, zone)).unwrap();
    (Running::Primary(server), address, Arc::new(provider))
}

/// The configuration that reaches the API at this address.
pub(crate) fn cloudflare_config(api: &CloudflareApi) -> cloudflare::CloudflareConfig {
    cloudflare::CloudflareConfig {
        url: api.url(),
        timeout: Duration::from_secs(20),
        ..cloudflare::CloudflareConfig::new(TOKEN)
    }
}

/// An API with this zone and another one, which nobody may touch.
fn cloudflare(zone: &str) -> (Running, SocketAddr, Shared) {
    let mut zones = HostedZones::new(&["other.test", zone]);
    zones.zone(zone).unwrap().refused = vec![format!("refused.{zone}")];
    for (label, ttl, kind, value) in FOREIGN {
        zones.add(zone, &at(label, zone), u64::from(*ttl), kind, value);
    }
    let api = Arc::new(CloudflareApi::start(zones).unwrap());
    let provider = cloudflare::Cloudflare::new(cloudflare_config(&api)).unwrap();
    (Running::Cloudflare(api.clone()), api.address, Arc::new(provider))
}

/// The configuration that reaches the API at this address.
pub(crate) fn route53_config(api: &Route53Api) -> route53::Route53Config {
    let environment = [("AWS_ACCESS_KEY_ID", KEY_ID), ("AWS_SECRET_ACCESS_KEY", SECRET)];
    route53::Route53Config {
        url: Some(api.url()),
        timeout: Duration::from_secs(20),
        // The server of the test bed has no limit to keep.
        calls_per_second: 100_000,
        ..route53::Route53Config::new(route53::AwsEnvironment::of(environment))
    }
}

/// An account with this zone and another one, which nobody may touch.
fn route53(zone: &str) -> (Running, SocketAddr, Shared) {
    let mut account = AwsAccount::new(&["other.test", zone]);
    account.zone(zone).unwrap().refused = vec![format!("refused.{zone}")];
    for (label, ttl, kind, value) in FOREIGN {
        account.add(zone, &at(label, zone), u64::from(*ttl), kind, value);
    }
    let api = Arc::new(Route53Api::start(account).unwrap());
    let provider = route53::Route53::new(route53_config(&api)).unwrap();
    (Running::Route53(api.clone()), api.address, Arc::new(provider))
}

/// Our webhook server over HTTP in front of another provider, our client of it, and where it is.
pub(crate) async fn behind_webhook(inner: Shared, zone: &str) -> (Shared, Option<String>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(webhook::server::WebhookService::new(inner).serve(listener));
    (webhook_at(&url, zone), Some(url))
}

/// A client of the webhook at this address.
pub(crate) fn webhook_at(url: &str, zone: &str) -> Shared {
    let config = webhook::WebhookConfig {
        url: url.to_owned(),
        zones: vec![zone.to_owned()],
        ..webhook::WebhookConfig::default()
    };
    Arc::new(webhook::Webhook::new(config).unwrap())
}

fn ourselves(zone: &str) -> (Running, SocketAddr, Shared) {
    let mut config = embedded::ServerConfig::new("127.0.0.1:0".parse().unwrap());
    config.keys = vec![Key::new(KEY_NAME, TsigAlgorithm::Sha256, KEY_SECRET).unwrap()];
    config.rate_limit = None;
    let server = Arc::new(embedded::DnsServer::start(config).unwrap());
    let name = |text: &str| Name::parse(text).unwrap();
    let ns = name(&format!("ns1.{zone}"));
    let soa = Soa::new(ns.clone(), name(&format!("hostmaster.{zone}")), 1);
    let records = FOREIGN.iter().map(|(label, ttl, kind, value)| record(&at(label, zone), *ttl, kind, value));
    let spec =
        ZoneSpec { name: name(zone), soa, servers: vec![ns.clone()], servers_ttl: 3600, records: records.collect() };
    serve(&server, &spec);
    let authority = Authority { server: ns, mailbox: name(&format!("hostmaster.{zone}")), negative_ttl: 60 };
    let (address, provider) = (server.address(), Embedded::new(server.clone(), authority));
    (Running::Ourselves(server), address, Arc::new(provider))
}

fn serve(server: &embedded::DnsServer, spec: &ZoneSpec) {
    server.swap(ZoneSet::new([Zone::build(spec).unwrap()]).unwrap()).saved.unwrap();
}

fn spec_of(server: &embedded::DnsServer, zone: &str) -> ZoneSpec {
    let zones = server.zones();
    let zone = zones.zone(&Name::parse(zone).unwrap()).unwrap();
    let ns = Name::parse(&format!("ns1.{}", zone.name())).unwrap();
    let is_ours = |record: &Record| record.name == *zone.name() && record.data == Data::Ns(ns.clone());
    let records = zone.records().filter(|record| !is_ours(record) && record.data.kind() != embedded::kind::SOA);
    let records = records.collect();
    ZoneSpec {
        name: zone.name().clone(),
        soa: zone.soa().clone(),
        servers: vec![ns.clone()],
        servers_ttl: 3600,
        records,
    }
}

fn record(name: &str, ttl: u32, kind: &str, value: &str) -> Record {
    let rtype = data::rtype(kind).unwrap();
    let wire = data::to_wire(rtype, value).unwrap();
    Record::new(name, ttl, Data::from_wire(rtype.to_int(), &wire).unwrap()).unwrap()
}

fn at(label: &str, zone: &str) -> String {
    if label == "@" { zone.to_owned() } else { format!("{label}.{zone}") }
}

/// What others have in the zone: hand-made records of every sort, a wildcard, an alias, and the records of another owner
/// with their markers.
const FOREIGN: &[(&str, u32, &str, &str)] = &[
    ("ns1", 3600, "A", "192.0.2.53"),
    ("@", 300, "MX", "10 mail.elsewhere.test."),
    ("@", 300, "TXT", "\"v=spf1 -all\""),
    ("mail", 300, "A", "192.0.2.25"),
    ("hand", 120, "A", "192.0.2.7"),
    ("hand", 120, "A", "192.0.2.8"),
    ("*.wild", 60, "A", "192.0.2.9"),
    ("long", 300, "TXT", "\"one\" \"two; three\" \"quo\\\"te\""),
    ("_sip._tcp", 300, "SRV", "1 2 5060 mail.elsewhere.test."),
    ("mixed", 300, "CNAME", "hand.elsewhere.test."),
    ("theirs", 300, "A", "192.0.2.77"),
    ("a-theirs", 300, "TXT", "\"heritage=external-dns,external-dns/owner=other,external-dns/resource=service/x/y\""),
];

fn zone_text(zone: &str) -> String {
    let head = format!(
        "$ORIGIN {zone}.\n@ 3600 IN SOA ns1.{zone}. hostmaster.{zone}. 1 3600 600 1209600 60\n@ 3600 IN NS ns1.{zone}.\n"
    );
    let line = |(label, ttl, kind, value): &(&str, u32, &str, &str)| format!("{label} {ttl} IN {kind} {value}\n");
    head + &FOREIGN.iter().map(line).collect::<String>()
}
