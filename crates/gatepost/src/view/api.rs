//! `/api/v1`: the shapes of its answers, made of the views of `-o json` where a command answers the same.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::attachment::ListenerId;
use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::explain::NameHealth;
use gatepost_core::model::{Key, Material, Str};
use gatepost_core::names::Hostname;
use gatepost_core::plan::Held;
use gatepost_core::report::Item;
use gatepost_tls::certifier::IssuanceState;
use schemars::JsonSchema;
use serde::Serialize;

use super::certificates::{IssuingView, ServedView};
use super::diagnostic::DiagnosticView;
use super::explain::{ExplainView, ReasonView};
use super::plan;
use super::status::StatusView;
use super::steps::{self, HeldView, StepView};
use crate::api::{ActivityEntry, NameRow, NamesIndex, PassFacts, ProgramFacts, ReadZone, ServerFacts, WorldCopy};
use crate::apply::Mode;

/// A refusal.
#[derive(Serialize, JsonSchema, Debug)]
pub struct ErrorView {
    /// What is wrong with the request, or not known yet.
    pub error: String,
}

/// How many names have each health.
#[derive(Serialize, JsonSchema, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountsView {
    right: usize,
    wrong: usize,
    held: usize,
    foreign: usize,
    unknown: usize,
}

impl CountsView {
    /// Counts names.
    pub fn of(all: impl Iterator<Item = NameHealth>) -> Self {
        let mut counts = CountsView::default();
        for health in all {
            *match health {
                NameHealth::Right => &mut counts.right,
                NameHealth::Wrong => &mut counts.wrong,
                NameHealth::Held => &mut counts.held,
                NameHealth::Foreign => &mut counts.foreign,
                NameHealth::Unknown => &mut counts.unknown,
            } += 1;
        }
        counts
    }
}

/// `/api/v1/overview`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub struct OverviewView {
    version: &'static str,
    command: &'static str,
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval_seconds: Option<u64>,
    generation: u64,
    /// When the last pass ended, in seconds since 1970.
    as_of: i64,
    /// When the list of names was made that the counts are of.
    names_as_of: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_at: Option<i64>,
    /// Whether what is shown is known to be current.
    is_current: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    troubles: Vec<String>,
    notes: Vec<String>,
    counts: CountsView,
    /// Whether namespaces are left out that the reader may not see; what cannot be counted for them is unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_restricted: Option<bool>,
    names: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    objects: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificates: Option<usize>,
    held: usize,
    steps: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    zones: Option<usize>,
    problems: Vec<DiagnosticView>,
}

/// Problems of objects and texts in the overview, at most.
const MOST_PROBLEMS: usize = 20;

impl OverviewView {
    /// The view of a world and what the server knows beside it.
    pub fn of(
        world: &WorldCopy,
        pass: &PassFacts,
        names: &NamesIndex,
        program: &ProgramFacts,
        server: &ServerFacts,
        trouble: Option<String>,
    ) -> Self {
        let mut troubles: Vec<String> = trouble.into_iter().chain(server.unready.clone()).collect();
        let unread = pass.unread.iter().filter(|why| server.unready.as_ref() != Some(why));
        troubles.extend(unread.cloned());
        let mut notes = server.notes.clone();
        notes.extend(pass.notes.iter().cloned());
        OverviewView {
            version: env!("CARGO_PKG_VERSION"),
            command: program.command,
            mode: mode(program.mode),
            provider: program.provider.clone(),
            interval_seconds: program.interval,
            generation: pass.generation,
            as_of: pass.ended,
            names_as_of: names.as_of,
            seen_at: server.seen_at,
            is_current: troubles.is_empty(),
            troubles,
            notes,
            counts: names.counts(),
            is_restricted: None,
            names: names.rows.len(),
            objects: Some(world.snapshot.len()),
            records: Some(world.desired.records.len()),
            certificates: Some(world.desired.certificates.len()),
            held: pass.held.len(),
            steps: pass.step_count,
            zones: Some(pass.zones.len()),
            problems: pass.problems.iter().take(MOST_PROBLEMS).map(DiagnosticView::of).collect(),
        }
    }
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Observe => "observe",
        Mode::Act => "act",
    }
}

/// `/api/v1/names`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub struct NamesView {
    /// The pass of the list.
    pub generation: u64,
    /// When that ended, in seconds since 1970.
    pub as_of: i64,
    /// All names.
    pub total: usize,
    /// Those that the filters take.
    pub matching: usize,
    /// How many of them come before the first one here.
    pub offset: usize,
    /// Health of the names that the filters take, but for the filter by health.
    pub counts: CountsView,
    /// The values of filters.
    pub facets: FacetsView,
    /// The names.
    pub items: Vec<NameRowView>,
}

/// The values that occur, at most 200 of each.
#[derive(Serialize, JsonSchema, Debug)]
pub struct FacetsView {
    /// Namespaces of routes.
    pub namespaces: Vec<String>,
    /// Gateways.
    pub gateways: Vec<String>,
    /// Zones.
    pub zones: Vec<String>,
    /// Reasons of causes.
    pub reasons: Vec<String>,
}

/// A row of the list of names.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct NameRowView {
    pub hostname: String,
    pub health: &'static str,
    pub verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<DiagnosticView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    pub namespaces: Vec<String>,
    pub gateways: Vec<String>,
    pub routes: Vec<String>,
    pub records: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<i64>,
}

/// `/api/v1/names/HOSTNAME`: the explanation, and what is beside it.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct NameView {
    pub generation: u64,
    pub as_of: i64,
    pub health: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<DiagnosticView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    pub record_sets: Vec<RecordSetView>,
    pub held: Vec<HeldView>,
    pub steps: Vec<StepView>,
    pub activity: Vec<ActivityEntry>,
    /// Namespaces whose routes ask for it too, and may not be seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_namespaces: Vec<String>,
    #[serde(flatten)]
    pub explain: ExplainView,
}

/// `/api/v1/names/HOSTNAME` for somebody who may see none of the routes that ask for it.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub struct HeldByView {
    /// The pass.
    pub generation: u64,
    /// When that ended, in seconds since 1970.
    pub as_of: i64,
    /// The name.
    pub hostname: String,
    /// The namespaces that hold it.
    pub held_by: Vec<String>,
}

/// What is wanted of a record set, and what is stored.
#[derive(Serialize, JsonSchema, Debug)]
#[allow(missing_docs)]
pub struct RecordSetView {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The provider, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    pub wanted: Vec<String>,
    /// Unset where it is not known.
    pub stored: Option<Vec<String>>,
}

/// `/api/v1/objects`: the statuses of `gatepost status`, some at a time.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct ObjectsView {
    pub generation: u64,
    pub as_of: i64,
    pub total: usize,
    pub matching: usize,
    pub offset: usize,
    pub kinds: BTreeMap<&'static str, usize>,
    #[serde(flatten)]
    pub status: StatusView,
}

/// `/api/v1/objects/KIND/NAMESPACE/NAME`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub struct ObjectView {
    generation: u64,
    as_of: i64,
    object: String,
    #[serde(flatten)]
    status: StatusView,
    problems: Vec<DiagnosticView>,
    names: Vec<ObjectNameView>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct ObjectNameView {
    hostname: String,
    health: &'static str,
    verdict: &'static str,
}

/// Names of an object, at most.
const MOST_NAMES: usize = 500;

impl ObjectView {
    /// The view of an object with its problems and its names.
    pub fn of<'a>(
        world: &WorldCopy,
        item: &Item,
        problems: impl Iterator<Item = &'a Diagnostic>,
        names: impl Iterator<Item = &'a NameRow>,
    ) -> Self {
        let name = |row: &NameRow| ObjectNameView {
            hostname: row.hostname.clone(),
            health: row.health.as_str(),
            verdict: row.verdict.as_str(),
        };
        ObjectView {
            generation: world.pass.generation,
            as_of: world.pass.ended,
            object: item.object.to_string(),
            status: StatusView::of_items(std::iter::once(item)),
            problems: problems.map(DiagnosticView::of).collect(),
            names: names.take(MOST_NAMES).map(name).collect(),
        }
    }
}

/// `/api/v1/plan`: the steps and what is held, as `plan -o json` has them.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub struct PlanStepsView {
    generation: u64,
    as_of: i64,
    digest: String,
    /// The word that confirms the held deletes; of several providers that of the first that holds some.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmation: Option<String>,
    /// The words of all providers, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    confirmations: Vec<ConfirmationView>,
    step_count: usize,
    held_count: usize,
    offset: usize,
    steps: Vec<StepView>,
    held: Vec<HeldView>,
    unread: Vec<String>,
}

/// The word that confirms what one of several providers holds.
#[derive(Serialize, JsonSchema, Debug)]
struct ConfirmationView {
    provider: String,
    word: String,
}

impl PlanStepsView {
    /// The view of a pass; of steps and of what is held so many, from so many on.
    pub fn of(pass: &PassFacts, offset: usize, limit: usize) -> Self {
        let steps = pass.steps.iter().zip(&pass.outcomes).enumerate().skip(offset).take(limit);
        let confirmation = |(provider, word): &(Option<Str>, String)| {
            Some(ConfirmationView { provider: provider.as_ref()?.to_string(), word: word.clone() })
        };
        PlanStepsView {
            generation: pass.generation,
            as_of: pass.ended,
            digest: pass.digest.clone(),
            confirmation: pass.confirmations.first().map(|(_, word)| word.clone()),
            confirmations: pass.confirmations.iter().filter_map(confirmation).collect(),
            step_count: pass.step_count,
            held_count: pass.held.len(),
            offset,
            steps: steps
                .flat_map(|(i, (step, done))| steps::rows_of(i, step, done.provider.as_ref(), Some(done.told())))
                .collect(),
            held: pass.held.iter().skip(offset).take(limit).map(steps::held).collect(),
            unread: pass.unread.clone(),
        }
    }
}

/// `/api/v1/certificates`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub struct CertificatesView {
    generation: u64,
    as_of: i64,
    items: Vec<SecretView>,
}

/// One Secret: what is planned for it, what it holds, and how far its order is. Never a key.
#[derive(Serialize, JsonSchema, Debug, Default)]
#[serde(rename_all = "camelCase")]
struct SecretView {
    secret: String,
    listeners: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    planned: Option<plan::CertificateView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuing: Option<IssuingView>,
    held: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_after: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unusable: Option<String>,
    /// Hostnames of routes that the listeners serve with it, as far as the certificate held covers them, or the planned one
    /// where none is held. Those that are not covered come first.
    served: Vec<ServedView>,
    /// How many these are; `served` holds at most 200.
    served_count: usize,
}

/// Hostnames of one Secret that are told.
const MOST_SERVED: usize = 200;

impl CertificatesView {
    /// The view of every Secret that a listener names, or for which a certificate is planned or issued. Of the hostnames
    /// that are served only those that may be seen.
    pub fn of(world: &WorldCopy, is_seen: &dyn Fn(&Hostname) -> bool) -> Self {
        let mut secrets: BTreeMap<Key, SecretView> = BTreeMap::new();
        let mut users: BTreeMap<ListenerId, Vec<Key>> = BTreeMap::new();
        for (id, listener) in world.topology.listener_ids().filter(|(_, listener)| listener.spec().terminates_tls()) {
            let own = listener.owner.object();
            for target in listener.spec().tls.iter().flat_map(|tls| &tls.certificates) {
                let secret = Key::new(target.namespace_or(own.namespace()).clone(), target.name.clone());
                secrets.entry(secret.clone()).or_default().listeners.push(listener.key().to_string());
                users.entry(id).or_default().push(secret);
            }
        }
        let mut served: BTreeMap<&Key, BTreeSet<&Hostname>> = BTreeMap::new();
        for (_, listener, names) in world.topology.attachments() {
            let names = names.iter().map(|name| &name.hostname).filter(|name| !name.is_any() && is_seen(name));
            let names: Vec<&Hostname> = names.collect();
            for secret in users.get(&listener).into_iter().flatten() {
                served.entry(secret).or_default().extend(&names);
            }
        }
        for certificate in &world.desired.certificates {
            secrets.entry(certificate.secret.clone()).or_default().planned = Some(plan::certificate(certificate));
        }
        let issuing: BTreeMap<&Key, &IssuanceState> =
            world.pass.issuing.iter().map(|state| (&state.secret, state)).collect();
        for secret in issuing.keys() {
            secrets.entry((*secret).clone()).or_default();
        }
        let items = secrets.into_iter().map(|(secret, view)| {
            let view = view.filled(world, &secret, issuing.get(&secret).copied());
            view.serving(served.get(&secret).into_iter().flatten().copied())
        });
        CertificatesView { generation: world.pass.generation, as_of: world.pass.ended, items: items.collect() }
    }
}

impl SecretView {
    /// Adds what the Secret holds: as the issuer keeps it, otherwise as the object says.
    fn filled(mut self, world: &WorldCopy, secret: &Key, issuing: Option<&IssuanceState>) -> Self {
        self.secret = secret.to_string();
        if let Some(state) = issuing {
            self.held = state.held.iter().flat_map(|leaf| &leaf.names).map(ToString::to_string).collect();
            self.not_after = state.held.as_ref().map(|leaf| leaf.not_after);
            self.unusable = state.unusable.clone();
            self.issuing = Some(IssuingView::of(state));
            return self;
        }
        match world.snapshot.secrets.get(secret).map(|secret| &secret.certificate) {
            Some(Material::Present(certificate)) => {
                self.held = certificate.dns_names.iter().map(ToString::to_string).collect();
                self.not_after = Some(certificate.not_after);
            }
            Some(Material::Malformed(why)) => self.unusable = Some(why.to_string()),
            Some(Material::Missing) => self.unusable = Some("it has no `tls.crt`".to_owned()),
            None => {}
        }
        self
    }

    /// Adds the hostnames that are served with it.
    fn serving<'h>(mut self, hostnames: impl Iterator<Item = &'h Hostname>) -> Self {
        let planned = self.planned.iter().flat_map(|certificate| certificate.dns_names());
        let names: Vec<&String> = if self.held.is_empty() { planned.collect() } else { self.held.iter().collect() };
        let names: Vec<Hostname> = names.into_iter().filter_map(|name| Hostname::parse(name).ok()).collect();
        self.served = hostnames.map(|hostname| ServedView::of(hostname, &names)).collect();
        self.served.sort_by_key(ServedView::is_covered);
        self.served_count = self.served.len();
        self.served.truncate(MOST_SERVED);
        self
    }
}

/// `/api/v1/zones`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub struct ZonesView {
    generation: u64,
    as_of: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    items: Vec<ZoneVersionView>,
    unread: Vec<String>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct ZoneVersionView {
    /// The provider, where there are several; each may have a zone of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    name: String,
    version: String,
    records: usize,
}

impl ZonesView {
    /// The view of the zones that the last comparison read.
    pub fn of(world: &WorldCopy, provider: Option<String>) -> Self {
        let mut records: BTreeMap<(Option<&Str>, &Str), usize> = BTreeMap::new();
        for record in &world.desired.records {
            if let Some(zone) = world.pass.zone_at(&record.name, record.provider.as_ref()) {
                *records.entry((zone.provider.as_ref(), &zone.name)).or_default() += 1;
            }
        }
        let zone = |zone: &ReadZone| ZoneVersionView {
            provider: zone.provider.as_ref().map(ToString::to_string),
            name: zone.name.to_string(),
            version: zone.version.to_string(),
            records: records.get(&(zone.provider.as_ref(), &zone.name)).copied().unwrap_or(0),
        };
        ZonesView {
            generation: world.pass.generation,
            as_of: world.pass.ended,
            provider,
            items: world.pass.zones.iter().map(zone).collect(),
            unread: world.pass.unread.clone(),
        }
    }
}

/// `/api/v1/health`: what probes found out about each address of a name.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub struct HealthView {
    generation: u64,
    as_of: i64,
    items: Vec<ProbedAddressView>,
}

#[derive(Serialize, JsonSchema, Debug)]
struct ProbedAddressView {
    policy: String,
    #[serde(flatten)]
    address: plan::AddressView,
}

impl HealthView {
    /// The addresses that policies ask to probe.
    pub fn of(world: &WorldCopy) -> Self {
        let reports = world.desired.policies.iter();
        let items = reports.flat_map(|report| {
            let policy = report.policy.to_string();
            let view = move |address| ProbedAddressView { policy: policy.clone(), address: plan::address(address) };
            report.addresses.iter().map(view)
        });
        HealthView { generation: world.pass.generation, as_of: world.pass.ended, items: items.collect() }
    }
}

/// `/api/v1/activity`.
#[derive(Serialize, JsonSchema, Debug)]
pub struct ActivityView {
    /// The pass.
    pub generation: u64,
    /// Newest first.
    pub items: Vec<ActivityEntry>,
}

/// `/api/v1/reasons/REASON`: `explain REASON -o json`, with its page.
#[derive(Serialize, JsonSchema, Debug)]
pub struct ReasonPageView {
    /// The row of the catalog.
    #[serde(flatten)]
    pub reason: ReasonView,
    /// Markdown.
    pub page: String,
}

impl DiagnosticView {
    /// What a plan holds, as a cause.
    pub fn of_held(held: &Held) -> Self {
        let row = held.reason.row();
        DiagnosticView {
            reason: row.name,
            code: row.code,
            severity: row.severity.as_str(),
            object: held.object.as_ref().map(ToString::to_string),
            field: String::new(),
            message: held.message.clone(),
            help: row.help.to_owned(),
            fix: None,
            place: None,
            related: Vec::new(),
        }
    }
}
