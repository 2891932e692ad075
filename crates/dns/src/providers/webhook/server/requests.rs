//! What a request means to a provider: endpoints become records and steps, and back.

use std::collections::BTreeMap;

use gatepost_core::model::Str;
use gatepost_core::plan::{Content, PlanStep, SetChange, Verb};
use gatepost_core::publication::{NameSource, Record};

use super::super::endpoint::{Changes, Endpoint};
use super::super::filter::Wire;
use super::RequestFailure;
use crate::provider::Provider;
use crate::provider::zone::{zone_name, zone_of};

/// With this label external-dns says which record a TXT of ownership is about.
const OWNED_RECORD: &str = "ownedRecord";

/// At most this many failures are told in one answer.
const TOLD: usize = 5;

/// The steps of each zone, by the name that they are about.
type Steps = BTreeMap<Str, BTreeMap<String, PlanStep>>;

/// The domains of the provider.
pub(super) async fn filter(provider: &dyn Provider) -> Result<Wire, RequestFailure> {
    let zones = provider.zones().await?;
    Ok(Wire { include: Some(zones.iter().map(|zone| zone.to_string()).collect()), ..Wire::default() })
}

/// Everything in all zones.
pub(super) async fn records(provider: &dyn Provider) -> Result<Vec<Endpoint>, RequestFailure> {
    let mut endpoints = Vec::new();
    for zone in provider.zones().await? {
        let content = provider.read(&zone).await?;
        endpoints.extend(content.sets().iter().map(Endpoint::of_set));
    }
    Ok(endpoints)
}

/// Carries changes out, zone by zone. What fails does not stop the rest; one failure fails the request.
pub(super) async fn apply(provider: &dyn Provider, changes: &Changes) -> Result<(), RequestFailure> {
    let zones: Vec<Str> = provider.zones().await?.iter().map(|zone| zone_name(zone)).collect();
    let mut failures = Vec::new();
    for (zone, steps) in steps(&zones, changes)? {
        let steps: Vec<PlanStep> = numbered(steps);
        let results = provider.write(&zone, &steps).await;
        failures.extend(results.into_iter().filter_map(Result::err));
    }
    let Some(first) = failures.first().cloned() else { return Ok(()) };
    let told: Vec<String> = failures.iter().take(TOLD).map(ToString::to_string).collect();
    let message = format!("{} changes failed: {}", failures.len(), told.join("; "));
    Err(RequestFailure { message, ..RequestFailure::from(first) })
}

/// The endpoints as the provider would keep them: what it cannot keep is taken away, so that it makes no difference.
pub(super) async fn adjust(provider: &dyn Provider, endpoints: Vec<Endpoint>) -> Result<Vec<Endpoint>, RequestFailure> {
    let can = provider.capabilities().plan;
    let (made, others): (Vec<_>, Vec<_>) = endpoints.into_iter().partition(|endpoint| endpoint.made().is_some());
    let labels: BTreeMap<_, _> = made.iter().map(|endpoint| (endpoint.key(), endpoint.labels.clone())).collect();
    let records = made.iter().filter_map(|endpoint| {
        let mut record = record(endpoint)?;
        record.ttl = record.ttl.map(|ttl| ttl.max(can.min_ttl));
        record.provider_specific.retain(|_| can.has_properties);
        Some(record)
    });
    let adjusted = provider.adjust(records.collect()).await?;
    let adjusted = adjusted.iter().map(Endpoint::of_record).map(|endpoint| {
        let labels = labels.get(&endpoint.key()).cloned().unwrap_or_default();
        Endpoint { labels, ..endpoint }
    });
    Ok(adjusted.chain(others).collect())
}

fn record(endpoint: &Endpoint) -> Option<Record> {
    Some(Record {
        name: endpoint.name().into(),
        kind: endpoint.made()?,
        targets: endpoint.targets.iter().map(|target| target.as_str().into()).collect(),
        ttl: endpoint.ttl(),
        set_identifier: identifier(endpoint),
        provider_specific: endpoint.properties(),
        routes: Default::default(),
        listeners: Default::default(),
        source: NameSource::Annotation,
        provider: None,
    })
}

fn steps(zones: &[Str], changes: &Changes) -> Result<Steps, RequestFailure> {
    if changes.update_old.len() != changes.update_new.len() {
        return Err(RequestFailure::bad("updateOld and updateNew have different lengths"));
    }
    let mut steps = Steps::new();
    let pairs = changes.update_old.iter().zip(&changes.update_new);
    let creates = changes.create.iter().map(|new| (None, Some(new)));
    let updates = pairs.map(|(old, new)| (Some(old), Some(new)));
    let deletes = changes.delete.iter().map(|old| (Some(old), None));
    for (old, new) in creates.chain(updates).chain(deletes) {
        put(&mut steps, zones, old, new)?;
    }
    Ok(steps)
}

/// Adds one change to the step of the name that it is about.
fn put(steps: &mut Steps, zones: &[Str], old: Option<&Endpoint>, new: Option<&Endpoint>) -> Result<(), RequestFailure> {
    let Some(endpoint) = new.or(old) else { return Ok(()) };
    if old.is_some_and(|old| old.key() != endpoint.key()) {
        return Err(RequestFailure::bad(format!("the old side of {} is another record", endpoint.dns_name)));
    }
    let change = change(endpoint, old, new)?;
    let outside = || RequestFailure::bad(format!("{} is in none of the zones", change.name));
    let zone = zone_of(zones, &change.name).ok_or_else(outside)?;
    let owned = endpoint.labels.get(OWNED_RECORD).map(|name| name.trim_end_matches('.').to_ascii_lowercase());
    let owned = owned.filter(|name| zone_of(zones, name) == Some(zone));
    let is_marker = owned.is_some();
    let subject = owned.unwrap_or_else(|| change.name.to_string());
    let step = steps.entry(zone.clone()).or_default().entry(subject.clone()).or_insert_with(|| blank(zone, &subject));
    let list = if is_marker { &mut step.markers } else { &mut step.changes };
    list.push(change);
    Ok(())
}

fn change(endpoint: &Endpoint, old: Option<&Endpoint>, new: Option<&Endpoint>) -> Result<SetChange, RequestFailure> {
    let unknown = || {
        let message = format!("{} {}: this type is not written here", endpoint.dns_name, endpoint.record_type);
        RequestFailure { status: hyper::StatusCode::INTERNAL_SERVER_ERROR, message }
    };
    Ok(SetChange {
        name: endpoint.name().into(),
        kind: endpoint.made().ok_or_else(unknown)?,
        set_identifier: identifier(endpoint),
        old: old.map(content),
        new: new.map(content),
    })
}

fn content(endpoint: &Endpoint) -> Content {
    let mut values: Vec<Str> = endpoint.targets.iter().map(|target| target.as_str().into()).collect();
    values.sort();
    Content { ttl: endpoint.ttl(), values, properties: endpoint.properties() }
}

fn identifier(endpoint: &Endpoint) -> Option<Str> {
    Some(endpoint.set_identifier.as_str().into()).filter(|id: &Str| !id.is_empty())
}

fn blank(zone: &Str, name: &str) -> PlanStep {
    PlanStep {
        zone: zone.clone(),
        name: name.into(),
        verb: Verb::Update,
        changes: Vec::new(),
        markers: Vec::new(),
        guards: Vec::new(),
        because: "asked for through the webhook protocol".to_owned(),
        routes: Vec::new(),
        group: 0,
        after: Vec::new(),
    }
}

/// Steps in the order in which nothing stops resolving on the way, each a group of its own.
fn numbered(steps: BTreeMap<String, PlanStep>) -> Vec<PlanStep> {
    let mut steps: Vec<PlanStep> = steps.into_values().collect();
    for step in &mut steps {
        let changes = || step.changes.iter().chain(&step.markers);
        let is_all = |verb: Verb| changes().all(|change| change.verb() == verb);
        step.verb = [Verb::Create, Verb::Delete].into_iter().find(|verb| is_all(*verb)).unwrap_or(Verb::Update);
    }
    // Wildcards come first and go last.
    steps.sort_by_key(|step| (step.verb, step.name.starts_with("*.") != (step.verb == Verb::Create)));
    steps.iter_mut().enumerate().for_each(|(at, step)| step.group = at);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(name: &str, kind: &str, target: &str, owned: Option<&str>) -> Endpoint {
        let labels = owned.map(|owned| (OWNED_RECORD.to_owned(), owned.to_owned())).into_iter().collect();
        let (dns_name, record_type) = (name.to_owned(), kind.to_owned());
        Endpoint { dns_name, record_type, targets: vec![target.to_owned()], labels, ..Endpoint::default() }
    }

    #[test]
    fn record_and_marker_are_one_step() {
        let zones = [zone_name("example.com")];
        let changes = Changes {
            create: vec![
                endpoint("WWW.example.com.", "A", "192.0.2.1", None),
                endpoint("a-www.example.com", "TXT", "\"heritage=external-dns\"", Some("www.example.com")),
            ],
            delete: vec![endpoint("old.example.com", "A", "192.0.2.1", None)],
            ..Changes::default()
        };
        let steps = numbered(steps(&zones, &changes).ok().unwrap().remove("example.com").unwrap());
        let shape: Vec<_> =
            steps.iter().map(|step| (&*step.name, step.verb, step.changes.len(), step.markers.len())).collect();
        assert_eq!(shape, [("www.example.com", Verb::Create, 1, 1), ("old.example.com", Verb::Delete, 1, 0)]);
        assert_ne!(steps[0].group, steps[1].group);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let zones = [zone_name("example.com")];
        let fails = |changes: Changes| steps(&zones, &changes).is_err();
        let www = || endpoint("www.example.com", "A", "192.0.2.1", None);
        assert!(fails(Changes { update_old: vec![www()], ..Changes::default() }));
        let other = endpoint("web.example.com", "A", "192.0.2.1", None);
        assert!(fails(Changes { update_old: vec![www()], update_new: vec![other], ..Changes::default() }));
        assert!(fails(Changes {
            create: vec![endpoint("www.example.org", "A", "192.0.2.1", None)],
            ..Changes::default()
        }));
        assert!(fails(Changes {
            create: vec![endpoint("www.example.com", "MX", "10 x.", None)],
            ..Changes::default()
        }));
    }
}
