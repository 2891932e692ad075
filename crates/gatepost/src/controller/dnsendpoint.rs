//! The provider `dnsendpoint`: records as DNSEndpoint objects, which external-dns writes to a DNS server.
//!
//! It is not among the providers of `dns`, because it needs the API server, which `dns` does not depend on. One object
//! holds all record sets of one name. Only objects with our label are read, and every write names the resource version
//! that was read, so that two writers cannot undo each other's changes. A new leader writes its fencing token to every
//! object when it first reads them: a late write of an older leader then names an outdated resource version and is
//! refused. Late creation of an object cannot be refused in this way; the next pass finds the object and deletes it.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::Str;
use gatepost_core::plan::{self, Content, PlanStep, RecordSet, SetChange, ZoneContent};
use gatepost_core::publication::RecordType;
use gatepost_dns::provider::{
    Call, Capabilities, Provider, ProviderError as Error, ProviderProblem as Problem, Result,
};
use gatepost_kube::objects::{StoredObject, collection};
use gatepost_kube::{Connection, Error as KubeError};
use serde_json::{Value, json};

use super::permit::{Permit, TERM};

/// The supported record types.
const TYPES: [RecordType; 4] = [RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Txt];
/// The label of our objects.
const LABEL: (&str, &str) = ("app.kubernetes.io/managed-by", "gatepost");
/// The annotation with the name that an object is about.
const NAME: &str = "gatepost.dev/name";

/// DNSEndpoint objects in one namespace.
#[derive(Debug)]
pub struct DnsEndpoints {
    connection: Connection,
    namespace: String,
    zones: Vec<Str>,
    permit: Permit,
}

impl DnsEndpoints {
    /// Objects in a namespace, for these domains; for all names if there are none. The permit has our fencing token.
    pub fn new(connection: Connection, namespace: &str, domains: &[String], permit: Permit) -> DnsEndpoints {
        let zone = |domain: &String| Str::from(domain.trim_matches('.').to_ascii_lowercase());
        let mut zones: Vec<Str> = domains.iter().map(zone).filter(|zone| !zone.is_empty()).collect();
        if zones.is_empty() {
            zones.push("".into());
        }
        DnsEndpoints { connection, namespace: namespace.to_owned(), zones, permit }
    }

    fn folder(&self) -> String {
        format!("/apis/externaldns.k8s.io/v1alpha1/namespaces/{}/dnsendpoints", self.namespace)
    }

    /// Our objects, by the name that they are about.
    async fn objects(&self) -> Result<BTreeMap<Str, StoredObject>> {
        let selector = format!("{}={}", LABEL.0, LABEL.1);
        let all = collection(&self.connection, &self.folder(), &selector).await.map_err(failure)?;
        Ok(all.into_iter().filter_map(|stored| Some((name_of(&stored.value)?.into(), stored))).collect())
    }

    /// Our objects, each with our fencing token if we lead. Objects that change meanwhile are read again.
    async fn fenced_objects(&self) -> Result<BTreeMap<Str, StoredObject>> {
        let objects = self.objects().await?;
        let Some(token) = self.permit.current_token() else { return Ok(objects) };
        let older: Vec<&StoredObject> =
            objects.values().filter(|stored| term_of(&stored.value) != Some(token.as_str())).collect();
        if older.is_empty() {
            return Ok(objects);
        }
        let mark = json!({"metadata": {"annotations": {TERM: token}}});
        for stored in older {
            match stored.patch(&self.connection, &mark).await {
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                done => _ = done.map_err(failure)?,
            }
        }
        self.objects().await
    }

    async fn content(&self, zone: &str) -> Result<ZoneContent> {
        let objects = self.fenced_objects().await?;
        let inside = objects.iter().filter(|(name, _)| is_in(name, zone));
        let sets: Vec<RecordSet> = inside.flat_map(|(_, stored)| sets(&stored.value)).collect();
        Ok(ZoneContent::new("", sets))
    }

    /// Writes steps one by one. Objects are read once for all steps, and again if a name occurs twice.
    async fn steps(&self, steps: &[PlanStep]) -> Vec<Result<()>> {
        let (mut results, mut known) = (Vec::new(), None);
        let mut touched: BTreeSet<Str> = BTreeSet::new();
        for step in steps {
            let names = names(step);
            if known.is_none() || names.iter().any(|name| touched.contains(name)) {
                touched.clear();
                match self.objects().await {
                    Ok(objects) => known = Some(objects),
                    Err(error) => {
                        results.push(Err(error));
                        continue;
                    }
                }
            }
            let objects = known.get_or_insert_default();
            results.push(self.step(step, &names, objects).await);
            touched.extend(names);
        }
        results
    }

    async fn step(&self, step: &PlanStep, names: &[Str], objects: &BTreeMap<Str, StoredObject>) -> Result<()> {
        let token = self.permit.current_token();
        for name in names {
            let stored = objects.get(name);
            if stored.is_some_and(|stored| token.is_some() && term_of(&stored.value) != token.as_deref()) {
                let why = "another leader has written this DNSEndpoint since it was read".to_owned();
                return Err(Error::new(Problem::Stale(why)).record(&**name));
            }
            let found = stored.map(|stored| sets(&stored.value)).unwrap_or_default();
            let changes: Vec<&SetChange> =
                step.changes.iter().chain(&step.markers).filter(|c| c.name == *name).collect();
            let next = changed(&found, &changes)?;
            self.put(name, stored, &next).await.map_err(|error| failure(error).record(name))?;
        }
        Ok(())
    }

    async fn put(
        &self,
        name: &str,
        stored: Option<&StoredObject>,
        sets: &[RecordSet],
    ) -> std::result::Result<(), KubeError> {
        match (stored, sets.is_empty()) {
            (None, true) => Ok(()),
            (None, false) => {
                let token = self.permit.current_token();
                self.connection.create(&self.folder(), &object(&self.namespace, name, sets, token.as_deref())).await
            }
            (Some(stored), true) => stored.delete(&self.connection).await,
            (Some(stored), false) => stored.patch(&self.connection, &json!({"spec": spec(sets)})).await.map(drop),
        }
    }
}

impl Provider for DnsEndpoints {
    fn capabilities(&self) -> Capabilities {
        let plan = plan::Capabilities {
            is_atomic: false,
            has_aliases: false,
            has_properties: true,
            has_set_identifiers: true,
            min_ttl: 0,
        };
        Capabilities { plan, preconditions: true, types: &TYPES }
    }

    fn zones(&self) -> Call<'_, Result<Vec<Str>>> {
        Box::pin(async { Ok(self.zones.clone()) })
    }

    fn read<'a>(&'a self, zone: &'a str) -> Call<'a, Result<ZoneContent>> {
        Box::pin(self.content(zone))
    }

    fn write<'a>(&'a self, _zone: &'a str, steps: &'a [PlanStep]) -> Call<'a, Vec<Result<()>>> {
        Box::pin(self.steps(steps))
    }
}

/// The names that a step changes.
fn names(step: &PlanStep) -> Vec<Str> {
    let mut names: Vec<Str> = step.changes.iter().chain(&step.markers).map(|change| change.name.clone()).collect();
    names.sort();
    names.dedup();
    names
}

/// The record sets of a name after changes; the old side of each change must match.
fn changed(found: &[RecordSet], changes: &[&SetChange]) -> Result<Vec<RecordSet>> {
    let mut sets = found.to_vec();
    for change in changes {
        let is_it = |set: &RecordSet| set.kind == change.kind.into() && set.set_identifier == change.set_identifier;
        let known = sets.iter().find(|set| is_it(set)).map(Content::of);
        if known != change.old {
            let words = format!("{} {}", change.name, change.kind);
            return Err(Error::new(Problem::Stale("the DNSEndpoint holds something else".to_owned())).record(words));
        }
        sets.retain(|set| !is_it(set));
        if let Some(new) = &change.new {
            sets.push(RecordSet {
                name: change.name.clone(),
                kind: change.kind.into(),
                set_identifier: change.set_identifier.clone(),
                ttl: new.ttl,
                values: new.values.clone(),
                properties: new.properties.clone(),
            });
        }
    }
    sets.sort();
    Ok(sets)
}

fn is_in(name: &str, zone: &str) -> bool {
    zone.is_empty() || name == zone || name.strip_suffix(zone).is_some_and(|rest| rest.ends_with('.'))
}

fn term_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/annotations")?.get(TERM)?.as_str()
}

fn name_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/annotations")?.get(NAME)?.as_str()
}

/// The record sets that an object holds.
fn sets(object: &Value) -> Vec<RecordSet> {
    let endpoints = object.pointer("/spec/endpoints").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    endpoints.iter().filter_map(set).collect()
}

fn set(endpoint: &Value) -> Option<RecordSet> {
    let text = |key: &str| endpoint[key].as_str().map(Str::from);
    let kind = TYPES.into_iter().find(|kind| endpoint["recordType"] == kind.as_str())?;
    let values = endpoint["targets"].as_array()?.iter().filter_map(|value| value.as_str().map(Str::from)).collect();
    let properties = endpoint["providerSpecific"].as_array().into_iter().flatten();
    let properties = properties.filter_map(|p| Some((p["name"].as_str()?.into(), p["value"].as_str()?.into())));
    Some(RecordSet {
        name: text("dnsName")?,
        kind: kind.into(),
        set_identifier: text("setIdentifier"),
        ttl: endpoint["recordTTL"].as_u64().and_then(|ttl| u32::try_from(ttl).ok()).filter(|ttl| *ttl > 0),
        values,
        properties: properties.collect(),
    })
}

fn spec(sets: &[RecordSet]) -> Value {
    json!({"endpoints": sets.iter().map(endpoint).collect::<Vec<_>>()})
}

fn endpoint(set: &RecordSet) -> Value {
    let values: Vec<&str> = set.values.iter().map(|value| &**value).collect();
    let mut endpoint = json!({"dnsName": &*set.name, "recordType": set.kind.as_str(), "targets": values});
    if let Some(ttl) = set.ttl {
        endpoint["recordTTL"] = ttl.into();
    }
    if let Some(identifier) = &set.set_identifier {
        endpoint["setIdentifier"] = (**identifier).into();
    }
    if !set.properties.is_empty() {
        let property = |(name, value): &(Str, Str)| json!({"name": &**name, "value": &**value});
        endpoint["providerSpecific"] = set.properties.iter().map(property).collect();
    }
    endpoint
}

fn object(namespace: &str, name: &str, sets: &[RecordSet], token: Option<&str>) -> Value {
    let mut annotations = json!({NAME: name});
    if let Some(token) = token {
        annotations[TERM] = token.into();
    }
    json!({
        "apiVersion": "externaldns.k8s.io/v1alpha1", "kind": "DNSEndpoint",
        "metadata": {
            "namespace": namespace, "name": object_name(name),
            "labels": {LABEL.0: LABEL.1}, "annotations": annotations,
        },
        "spec": spec(sets),
    })
}

/// An object name for any hostname, including wildcards and long names.
fn object_name(name: &str) -> String {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(100).collect();
    format!("gatepost-{}-{hash:016x}", plain.trim_matches('-').to_ascii_lowercase())
}

fn failure(error: KubeError) -> Error {
    let words = error.to_string();
    let problem = match error.problem {
        gatepost_kube::Problem::Conflict(_) => Problem::Stale(words),
        gatepost_kube::Problem::Unreachable(_) => Problem::Unreachable(words),
        gatepost_kube::Problem::Failed { code, message } => {
            Problem::Failed { code: code.to_string(), meaning: message }
        }
        _ => Problem::Refused { code: "refused".to_owned(), meaning: words },
    };
    Error::new(problem).at("API server")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a(value: &str) -> RecordSet {
        RecordSet {
            name: "www.example.org".into(),
            kind: RecordType::A.into(),
            set_identifier: None,
            ttl: Some(60),
            values: vec![value.into()],
            properties: vec![("x".into(), "y".into())],
        }
    }

    fn change(old: Option<&RecordSet>, new: Option<&RecordSet>) -> SetChange {
        let (name, kind) = ("www.example.org".into(), RecordType::A);
        SetChange { name, kind, set_identifier: None, old: old.map(Content::of), new: new.map(Content::of) }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let written = object("infra", "*.example.org", &[a("192.0.2.1")], Some("term=1"));
        assert_eq!(sets(&written), [a("192.0.2.1")]);
        assert_eq!((name_of(&written), term_of(&written)), (Some("*.example.org"), Some("term=1")));
        assert!(written["metadata"]["name"].as_str().unwrap().starts_with("gatepost-example-org-"));
    }

    #[test]
    fn a_change_begins_where_its_old_side_says() {
        let (one, two) = ([a("192.0.2.1")], [a("192.0.2.2")]);
        let made = change(None, Some(&one[0]));
        let gone = change(Some(&one[0]), None);
        assert_eq!(changed(&[], &[&made]).unwrap(), one);
        assert_eq!(changed(&one, &[&change(Some(&one[0]), Some(&two[0]))]).unwrap(), two);
        assert!(changed(&one, &[&gone]).unwrap().is_empty());
        assert!(changed(&two, &[&gone]).is_err());
        assert!(changed(&one, &[&made]).is_err());
    }

    #[test]
    fn names_lie_in_zones_on_label_boundaries() {
        assert!(is_in("a.example.org", "example.org") && is_in("example.org", "example.org") && is_in("x", ""));
        assert!(!is_in("badexample.org", "example.org"));
    }
}
