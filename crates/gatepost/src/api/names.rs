//! The list of all names with their health, verdict and first cause; filtered, sorted and cut here.
//!
//! Every row comes from the explanation of its name. The list is made when it is asked for, at most a tenth of the time,
//! so that a large world that changes all the while does not keep the processor busy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gatepost_core::explain::{
    Chain, ExplainIndex, Explanation, NameHealth, NameVerdict, Publication, RecordWrites, Role, SecretContent,
};
use gatepost_core::model::{Key, Str};
use gatepost_core::names::Hostname;
use gatepost_core::plan::Held;
use gatepost_core::publication::RecordType;
use gatepost_tls::certifier::IssuanceState;

use super::csv;
use super::query::Query;
use super::visibility::Viewer;
use super::{ApiState, WorldCopy};
use crate::certificates::overlay;
use crate::view::api::{CountsView, FacetsView, NameRowView, NamesView};
use crate::view::diagnostic::DiagnosticView;

/// A list is made again at most after this many times the time that it took.
const SHARE: u32 = 9;
/// Rows of one answer unless more are asked for, and at most.
const ROWS: usize = 100;
const MOST_ROWS: usize = 500;
/// Values of one filter that are offered.
const MOST_VALUES: usize = 200;
/// Parameters of the list.
const PARAMETERS: [&str; 11] =
    ["q", "namespace", "gateway", "zone", "health", "verdict", "reason", "sort", "order", "offset", "limit"];

/// Those of the table, which is whole.
const TABLE_PARAMETERS: [&str; 9] =
    ["q", "namespace", "gateway", "zone", "health", "verdict", "reason", "sort", "order"];

/// All names as of one pass.
pub struct NamesIndex {
    /// The pass.
    pub generation: u64,
    /// When that ended, in seconds since 1970.
    pub as_of: i64,
    /// Sorted by hostname.
    pub rows: Vec<NameRow>,
    made: Instant,
    took: Duration,
}

/// One name.
#[derive(Clone, Debug)]
pub struct NameRow {
    /// The name.
    pub hostname: String,
    /// Its health.
    pub health: NameHealth,
    /// The verdict of `explain`.
    pub verdict: NameVerdict,
    /// The first cause, where the verdict is bad or something is held.
    pub cause: Option<DiagnosticView>,
    /// The zone, if one of those that were read has the name.
    pub zone: Option<Str>,
    /// The same at each provider that publishes it; the provider is unset where there is only one.
    pub zones: BTreeSet<(Option<Str>, Str)>,
    /// The namespaces of the routes that ask for it.
    pub namespaces: BTreeSet<String>,
    /// The Gateways on its chains.
    pub gateways: BTreeSet<String>,
    /// The routes that ask for it.
    pub routes: BTreeSet<String>,
    /// The Gateways of each route's chains.
    pub ways: BTreeSet<(String, String)>,
    /// Its records: type and targets.
    pub records: Vec<(RecordType, Vec<String>)>,
    /// When the first of its certificates ends, in seconds since 1970.
    pub not_after: Option<i64>,
}

/// Explanations of a copied world, with what certificates and the plan say beside it.
pub(super) struct Explainer<'w> {
    world: &'w WorldCopy,
    index: ExplainIndex<'w>,
    held: BTreeMap<&'w str, Vec<&'w Held>>,
    issuing: BTreeMap<&'w Key, &'w IssuanceState>,
}

/// The explanation of a name, its health and the cause of that.
pub(super) struct ExplainedName {
    pub(super) explanation: Explanation,
    pub(super) publication: Publication,
    pub(super) states: Vec<IssuanceState>,
    /// The providers that publish it, where there are several.
    pub(super) providers: BTreeSet<Str>,
    pub(super) health: NameHealth,
    pub(super) cause: Option<DiagnosticView>,
}

impl<'w> Explainer<'w> {
    pub(super) fn new(world: &'w WorldCopy) -> Self {
        let mut held: BTreeMap<&str, Vec<&Held>> = BTreeMap::new();
        for one in &world.pass.held {
            held.entry(&one.name).or_default().push(one);
        }
        Explainer {
            world,
            index: ExplainIndex::new(world.context(), &world.desired),
            held,
            issuing: world.pass.issuing.iter().map(|state| (&state.secret, state)).collect(),
        }
    }

    /// What is held of a name, or of its zone as a whole at one of the providers that publish it.
    pub(super) fn held(&self, name: &str, providers: &BTreeSet<Str>) -> impl Iterator<Item = &'w Held> {
        let is_of_provider =
            |held: &Held| held.provider.as_ref().is_none_or(|of| providers.is_empty() || providers.contains(of));
        let own = self.held.get(name).into_iter().flatten();
        let of_zone = self.held.get("").into_iter().flatten();
        let zone = |held: &Held| self.world.pass.zone_at(name, held.provider.as_ref());
        let is_around = |held: &&&'w Held| match (&held.zone, zone(held)) {
            (None, _) => true,
            (Some(of), Some(zone)) => *of == zone.name,
            (Some(of), None) => gatepost_core::names::is_below(name, of) || name == &**of,
        };
        let around: Vec<&'w Held> = of_zone.filter(|held| is_of_provider(held)).filter(is_around).copied().collect();
        own.copied().chain(around)
    }

    pub(super) fn explain(&mut self, hostname: &Hostname) -> ExplainedName {
        let (explanation, mut publication) = self.index.explain(hostname);
        let secrets: BTreeSet<&Key> = publication.certificates.iter().map(|walk| &walk.secret).collect();
        let states = secrets.iter().filter_map(|secret| self.issuing.get(*secret));
        let states: Vec<IssuanceState> = states.map(|state| (*state).clone()).collect();
        overlay(&mut publication, &states, hostname.as_str());
        let verdict = publication.verdict(&explanation);
        let cause = publication.cause(&explanation);
        let writes = self.writes(&publication, hostname.as_str());
        let providers: BTreeSet<Str> =
            publication.records.iter().filter_map(|record| record.provider.clone()).collect();
        let held: Vec<&Held> = self.held(hostname.as_str(), &providers).collect();
        let health = NameHealth::of(verdict, cause.as_ref(), writes, held.iter().copied());
        let cause = match health {
            NameHealth::Right => None,
            _ => cause.as_ref().map(DiagnosticView::of).or_else(|| cause_of_held(&held, health)),
        };
        ExplainedName { explanation, publication, states, providers, health, cause }
    }

    /// What became of the changes of the records that answer for a name, a wildcard's included.
    fn writes(&self, publication: &Publication, name: &str) -> RecordWrites {
        let pass = &self.world.pass;
        let of_records =
            publication.records.iter().map(|record| pass.writes_at(&record.name, record.provider.as_ref()));
        of_records.max().unwrap_or_default().max(pass.writes_of(name))
    }

    /// Every name that something asks for, or that a plan holds back.
    fn all_names(&self) -> BTreeSet<Hostname> {
        let desired = &self.world.desired;
        let routes = self.world.snapshot.routes.values();
        let written = routes.flat_map(|route| &route.hostnames).filter_map(|written| written.name().ok().cloned());
        let records = desired.records.iter().chain(&desired.covered).map(|record| &record.name);
        let texts = records.chain(desired.withheld.iter().map(|withheld| &withheld.hostname));
        let texts = texts.chain(self.world.pass.held.iter().map(|held| &held.name));
        let parsed = texts.filter(|text| &***text != "*").filter_map(|text| Hostname::parse(text).ok());
        parsed.chain(written).collect()
    }

    fn row(&mut self, hostname: &Hostname) -> NameRow {
        let ExplainedName { explanation, publication, providers, health, cause, .. } = self.explain(hostname);
        let zones = self.world.pass.zones_of(hostname.as_str(), &providers);
        let ways: BTreeSet<(String, String)> = explanation.chains.iter().flat_map(way).collect();
        let gateways = ways.iter().map(|(_, gateway)| gateway.clone()).collect();
        let routes = explanation.chains.iter().map(|chain| &chain.route);
        let routes: BTreeSet<_> = routes.chain(publication.annotated.iter().map(|name| &name.object)).collect();
        let not_after = |walk: &gatepost_core::explain::CertificateWalk| match walk.held {
            SecretContent::Certificate { covers: true, not_after } => Some(not_after),
            _ => None,
        };
        NameRow {
            hostname: hostname.to_string(),
            health,
            verdict: publication.verdict(&explanation),
            cause,
            zone: zones.iter().map(|zone| &zone.name).max_by_key(|zone| zone.len()).cloned(),
            zones: zones.iter().map(|zone| (zone.provider.clone(), zone.name.clone())).collect(),
            namespaces: routes.iter().map(|route| route.namespace().to_string()).collect(),
            gateways,
            routes: routes.iter().map(ToString::to_string).collect(),
            ways,
            records: publication
                .records
                .iter()
                .map(|record| (record.kind, record.targets.iter().map(ToString::to_string).collect()))
                .collect(),
            not_after: publication.certificates.iter().filter_map(not_after).min(),
        }
    }
}

/// What is held as a cause: the sentence of the plan.
fn cause_of_held(held: &[&Held], health: NameHealth) -> Option<DiagnosticView> {
    let of = |held| NameHealth::of(NameVerdict::Works, None, RecordWrites::Done, std::iter::once(held));
    held.iter().find(|held| of(**held) == health).map(|held| DiagnosticView::of_held(held))
}

/// The route of a chain with its Gateways.
fn way(chain: &Chain) -> impl Iterator<Item = (String, String)> {
    let gateways = chain.links.iter().filter(|link| link.role == Role::Gateway);
    gateways.map(|link| (chain.route.to_string(), link.name.clone()))
}

impl NamesIndex {
    #[cfg(test)]
    pub(super) fn of_rows(rows: Vec<NameRow>) -> NamesIndex {
        NamesIndex { generation: 1, as_of: 0, rows, made: Instant::now(), took: Duration::ZERO }
    }

    pub(super) fn of(world: &WorldCopy) -> NamesIndex {
        let begun = Instant::now();
        let mut explainer = Explainer::new(world);
        let mut rows: Vec<NameRow> = explainer.all_names().iter().map(|hostname| explainer.row(hostname)).collect();
        rows.sort_by(|a, b| a.hostname.cmp(&b.hostname));
        let (generation, as_of) = (world.pass.generation, world.pass.ended);
        NamesIndex { generation, as_of, rows, made: Instant::now(), took: begun.elapsed() }
    }

    /// The row of a hostname.
    pub(super) fn find(&self, hostname: &str) -> Option<&NameRow> {
        let at = self.rows.binary_search_by(|row| row.hostname.as_str().cmp(hostname)).ok()?;
        self.rows.get(at)
    }

    /// The rows that a viewer may see, as far as they may be seen.
    pub(super) fn seen_by(&self, viewer: &Viewer) -> NamesIndex {
        let rows = self.rows.iter().filter_map(|row| viewer.row(row)).collect();
        NamesIndex { rows, ..*self }
    }

    /// Whether it is still good for a pass, or is too young to be made again.
    fn is_good(&self, generation: u64) -> bool {
        self.generation == generation || self.made.elapsed() < self.took * SHARE
    }

    /// How many names have each health.
    pub fn counts(&self) -> CountsView {
        CountsView::of(self.rows.iter().map(|row| row.health))
    }

    /// The rows that a query asks for.
    pub(super) fn select(&self, query: &Query) -> Result<NamesView, String> {
        query.only(&PARAMETERS)?;
        let filter = Filter::of(query)?;
        let limit = query.value("limit", "a number")?.unwrap_or(ROWS).min(MOST_ROWS);
        let offset = query.value("offset", "a number")?.unwrap_or(0);
        let mut rows: Vec<&NameRow> = self.rows.iter().filter(|row| filter.takes(row)).collect();
        let counts = CountsView::of(rows.iter().map(|row| row.health));
        rows.retain(|row| filter.health.is_empty() || filter.health.contains(&row.health));
        sort(&mut rows, query)?;
        let items = rows.iter().skip(offset).take(limit).map(|row| row.view()).collect();
        Ok(NamesView {
            generation: self.generation,
            as_of: self.as_of,
            total: self.rows.len(),
            matching: rows.len(),
            offset,
            counts,
            facets: self.facets(),
            items,
        })
    }

    /// All rows, what is wrong first.
    pub(super) fn whole(&self) -> NamesView {
        let mut rows: Vec<&NameRow> = self.rows.iter().collect();
        rows.sort_by(|a, b| (a.health, &a.hostname).cmp(&(b.health, &b.hostname)));
        NamesView {
            generation: self.generation,
            as_of: self.as_of,
            total: rows.len(),
            matching: rows.len(),
            offset: 0,
            counts: self.counts(),
            facets: self.facets(),
            items: rows.into_iter().map(NameRow::view).collect(),
        }
    }

    /// All rows that a query asks for, as a table in CSV.
    pub(super) fn table(&self, query: &Query) -> Result<String, String> {
        query.only(&TABLE_PARAMETERS)?;
        let filter = Filter::of(query)?;
        let is_meant =
            |row: &&NameRow| filter.takes(row) && (filter.health.is_empty() || filter.health.contains(&row.health));
        let mut rows: Vec<&NameRow> = self.rows.iter().filter(is_meant).collect();
        sort(&mut rows, query)?;
        Ok(csv::table(rows))
    }

    /// The values that filters may have.
    fn facets(&self) -> FacetsView {
        let values = |of: &dyn Fn(&NameRow) -> Vec<String>| {
            let all: BTreeSet<String> = self.rows.iter().flat_map(of).collect();
            all.into_iter().take(MOST_VALUES).collect()
        };
        FacetsView {
            namespaces: values(&|row| row.namespaces.iter().cloned().collect()),
            gateways: values(&|row| row.gateways.iter().cloned().collect()),
            zones: values(&|row| row.zone.iter().map(ToString::to_string).collect()),
            reasons: values(&|row| row.cause.iter().map(|cause| cause.reason.to_owned()).collect()),
        }
    }
}

impl NameRow {
    fn view(&self) -> NameRowView {
        NameRowView {
            hostname: self.hostname.clone(),
            health: self.health.as_str(),
            verdict: self.verdict.as_str(),
            cause: self.cause.clone(),
            zone: self.zone.as_ref().map(ToString::to_string),
            namespaces: self.namespaces.iter().cloned().collect(),
            gateways: self.gateways.iter().cloned().collect(),
            routes: self.routes.iter().cloned().collect(),
            records: self.records.iter().map(|(kind, targets)| format!("{kind} {}", targets.join(" "))).collect(),
            not_after: self.not_after,
        }
    }
}

/// Which rows are meant.
struct Filter<'q> {
    text: Option<String>,
    namespace: Option<&'q str>,
    gateway: Option<&'q str>,
    zone: Option<&'q str>,
    verdict: Option<&'q str>,
    reason: Option<&'q str>,
    health: Vec<NameHealth>,
}

impl<'q> Filter<'q> {
    fn of(query: &'q Query) -> Result<Self, String> {
        let health = |text: &str| {
            let known = NameHealth::ALL.into_iter().find(|health| health.as_str() == text);
            known.ok_or_else(|| format!("health={text}: write wrong, held, unknown, foreign or right"))
        };
        let words = query.all("health").flat_map(|value| value.split(','));
        Ok(Filter {
            text: query.one("q").map(|text| text.trim().to_lowercase()),
            namespace: query.one("namespace"),
            gateway: query.one("gateway"),
            zone: query.one("zone"),
            verdict: query.one("verdict"),
            reason: query.one("reason"),
            health: words.map(health).collect::<Result<_, _>>()?,
        })
    }

    /// Whether a row is meant, whatever its health.
    fn takes(&self, row: &NameRow) -> bool {
        let has_reason = |reason: &str| row.cause.as_ref().is_some_and(|c| c.reason == reason || c.code == reason);
        self.namespace.is_none_or(|namespace| row.namespaces.contains(namespace))
            && self.gateway.is_none_or(|gateway| row.gateways.contains(gateway))
            && self.zone.is_none_or(|zone| row.zone.as_deref() == Some(zone))
            && self.verdict.is_none_or(|verdict| row.verdict.as_str() == verdict)
            && self.reason.is_none_or(has_reason)
            && self.text.as_deref().is_none_or(|text| row.has(text))
    }
}

impl NameRow {
    /// Whether a text in lower case occurs in the name, an object or the reason.
    fn has(&self, text: &str) -> bool {
        let objects = self.routes.iter().chain(&self.gateways).map(String::as_str);
        let cause = self.cause.iter().flat_map(|cause| [cause.reason, cause.code]);
        let blamed = self.cause.iter().filter_map(|cause| cause.object.as_deref());
        let mut texts = std::iter::once(&*self.hostname).chain(objects).chain(cause).chain(blamed);
        texts.any(|own| own.to_lowercase().contains(text))
    }
}

fn sort(rows: &mut [&NameRow], query: &Query) -> Result<(), String> {
    match query.one("sort").unwrap_or("health") {
        "health" => rows.sort_by(|a, b| (a.health, &a.hostname).cmp(&(b.health, &b.hostname))),
        "name" => rows.sort_by(|a, b| a.hostname.cmp(&b.hostname)),
        "zone" => rows.sort_by(|a, b| (&a.zone, &a.hostname).cmp(&(&b.zone, &b.hostname))),
        "expiry" => rows.sort_by_key(|row| (row.not_after.unwrap_or(i64::MAX), &row.hostname)),
        other => return Err(format!("sort={other}: write health, name, zone or expiry")),
    }
    match query.one("order").unwrap_or("up") {
        "up" => {}
        "down" => rows.reverse(),
        other => return Err(format!("order={other}: write up or down")),
    }
    Ok(())
}

impl ApiState {
    /// The names of a world, made beside the loop. A reader that goes away does not stop the work, which others wait for.
    pub(super) async fn names(self: &Arc<Self>, world: &Arc<WorldCopy>) -> Option<Arc<NamesIndex>> {
        let (state, world) = (self.clone(), world.clone());
        let work = tokio::spawn(async move {
            let mut names = state.names.lock().await;
            if let Some(known) = names.as_ref().filter(|known| known.is_good(world.pass.generation)) {
                return Some(known.clone());
            }
            let made = tokio::task::spawn_blocking(move || Arc::new(NamesIndex::of(&world))).await.ok()?;
            *names = Some(made.clone());
            Some(made)
        });
        work.await.ok()?
    }
}
