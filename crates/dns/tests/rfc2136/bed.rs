//! What the tests share: a zone, a provider for it, and steps.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use gatepost_core::plan::{Content, PlanStep, Precondition, SetChange, Verb, ZoneContent};
use gatepost_core::publication::RecordType;
use gatepost_dns::provider::{Provider, Result};
use gatepost_dns::providers::rfc2136::{KeyConfig, Rfc2136, Rfc2136Config};
use gatepost_testkit::servers::{DnsServer, KEY_ALGORITHM, KEY_NAME, KEY_SECRET, Kind};

pub(crate) type Run = for<'a> fn(Bed<'a>) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One test, and what it needs.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
    /// Records in the zone beside the usual ones.
    pub(crate) filling: usize,
    pub(crate) own_server: bool,
    /// Whether the zone takes updates without a key.
    pub(crate) open: bool,
    pub(crate) fits: fn(Kind) -> bool,
}

impl Scenario {
    pub(crate) const fn new(name: &'static str, run: Run) -> Scenario {
        Scenario { name, run, filling: 0, own_server: false, open: false, fits: |_| true }
    }

    pub(crate) fn zone(&self) -> String {
        format!("{}.test", self.name.replace('_', "-"))
    }
}

pub(crate) struct Bed<'a> {
    pub(crate) server: &'a DnsServer,
    pub(crate) zone: String,
}

/// Records that nobody here may touch.
pub(crate) fn zone_text(scenario: &Scenario) -> String {
    let zone = scenario.zone();
    let mut text = format!(
        "$ORIGIN {zone}.
@ 3600 IN SOA ns1.{zone}. hostmaster.{zone}. 1 3600 600 1209600 60
@ 3600 IN NS ns1.{zone}.
ns1 3600 IN A 192.0.2.53
@ 300 IN MX 10 mail.{zone}.
@ 300 IN TXT \"v=spf1 -all\"
mail 300 IN A 192.0.2.25
hand 120 IN A 192.0.2.7
hand 120 IN A 192.0.2.8
*.wild 60 IN A 192.0.2.9
long 300 IN TXT \"one\" \"two; three\" \"quo\\\"te\"
_sip._tcp 300 IN SRV 1 2 5060 mail.{zone}.
Mixed 300 IN CNAME Hand.{zone}.
"
    );
    for number in 0..scenario.filling {
        text += &format!(
            "fill-{number} 300 IN A 192.0.2.{}\nfill-{number} 300 IN TXT \"{}\"\n",
            number % 250,
            "x".repeat(100)
        );
    }
    text
}

impl<'a> Bed<'a> {
    pub(crate) fn new(server: &'a DnsServer, scenario: Scenario) -> Bed<'a> {
        Bed { server, zone: scenario.zone() }
    }

    pub(crate) fn config(&self) -> Rfc2136Config {
        Rfc2136Config {
            hosts: vec![self.server.address.to_string()],
            zones: vec![self.zone.clone()],
            key: Some(KeyConfig::new(KEY_NAME, KEY_SECRET, KEY_ALGORITHM)),
            timeout: Duration::from_secs(20),
            ..Rfc2136Config::default()
        }
    }

    pub(crate) fn provider(&self) -> Rfc2136 {
        Rfc2136::new(self.config()).unwrap()
    }

    /// The provider through other addresses.
    pub(crate) fn through(&self, hosts: &[String]) -> Rfc2136 {
        let timeout = Duration::from_secs(10);
        Rfc2136::new(Rfc2136Config { hosts: hosts.to_vec(), timeout, ..self.config() }).unwrap()
    }

    pub(crate) fn name(&self, label: &str) -> String {
        format!("{label}.{}", self.zone)
    }

    pub(crate) async fn read(&self) -> ZoneContent {
        self.provider().read(&self.zone).await.unwrap()
    }

    pub(crate) async fn write(&self, steps: &[PlanStep]) -> Vec<Result<()>> {
        self.provider().write(&self.zone, steps).await
    }

    /// The values of a set, as the provider reads them.
    pub(crate) async fn values(&self, label: &str, kind: &str) -> Vec<String> {
        values(&self.read().await, &self.name(label), kind)
    }

    /// A step that makes an address and its marker.
    pub(crate) fn create(&self, label: &str, address: &str) -> PlanStep {
        let address = self.change(label, RecordType::A, None, Some(&[address]));
        let marker = self.change(&format!("a-{label}"), RecordType::Txt, None, Some(&[MARKER]));
        self.step(Verb::Create, vec![address], vec![marker])
    }

    /// A step that changes the address and leaves the marker, which must be there.
    pub(crate) fn update(&self, label: &str, old: &str, new: &str) -> PlanStep {
        let address = self.change(label, RecordType::A, Some(&[old]), Some(&[new]));
        let guard = Precondition::Equals {
            name: self.name(&format!("a-{label}")).into(),
            kind: RecordType::Txt,
            set_identifier: None,
            values: vec![MARKER.into()],
        };
        PlanStep { guards: vec![guard], ..self.step(Verb::Update, vec![address], Vec::new()) }
    }

    pub(crate) fn delete(&self, label: &str, old: &str) -> PlanStep {
        let address = self.change(label, RecordType::A, Some(&[old]), None);
        let marker = self.change(&format!("a-{label}"), RecordType::Txt, Some(&[MARKER]), None);
        self.step(Verb::Delete, vec![address], vec![marker])
    }

    pub(crate) fn change(
        &self,
        label: &str,
        kind: RecordType,
        old: Option<&[&str]>,
        new: Option<&[&str]>,
    ) -> SetChange {
        let content = |values: &[&str]| Content {
            ttl: Some(60),
            values: values.iter().map(|value| (*value).into()).collect(),
            properties: Vec::new(),
        };
        SetChange {
            name: self.name(label).into(),
            kind,
            set_identifier: None,
            old: old.map(content),
            new: new.map(content),
        }
    }

    pub(crate) fn step(&self, verb: Verb, changes: Vec<SetChange>, markers: Vec<SetChange>) -> PlanStep {
        static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        PlanStep {
            zone: self.zone.as_str().into(),
            name: changes.iter().chain(&markers).next().unwrap().name.clone(),
            verb,
            changes,
            markers,
            guards: Vec::new(),
            because: "a test".into(),
            routes: Vec::new(),
            group: COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            after: Vec::new(),
        }
    }
}

pub(crate) const MARKER: &str =
    "\"heritage=external-dns,external-dns/owner=me,external-dns/resource=httproute/shop/web\"";

pub(crate) fn values(content: &ZoneContent, name: &str, kind: &str) -> Vec<String> {
    let found = content.sets().iter().find(|set| &*set.name == name && set.kind.as_str() == kind);
    found.map(|set| set.values.iter().map(|value| value.to_string()).collect()).unwrap_or_default()
}

pub(crate) fn all_ok(results: &[Result<()>]) {
    for result in results {
        result.as_ref().unwrap();
    }
}
