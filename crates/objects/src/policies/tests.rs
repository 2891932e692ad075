//! What is read and what the CustomResourceDefinitions allow are the same fields with the same defaults.

use std::collections::BTreeSet;

use gatepost_core::model::{Kind, Meta, ObjectRef};
use gatepost_core::snapshot::Object;
use serde_json::{Map, Value, json};

use crate::crds;
use crate::fields::{Fields, ProblemCollector, Strictness};
use crate::tree::Mapping;

type Reader = fn(Meta, &Fields<'_>, &str) -> Object;

fn full_dns() -> Value {
    json!({
        "targetRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge", "sectionName": "https"},
        "allowWildcardHosts": false,
        "ttl": 60,
        "excludeAddresses": ["192.0.2.1", "2001:db8::/32", "lb.example.com"],
        "healthCheck": {
            "protocol": "HTTP", "port": 8080, "path": "/healthz", "interval": "1m30s", "failureThreshold": 3,
            "timeout": "2s", "successThreshold": 2, "expectedStatuses": ["204", "200-299"], "insecureSkipVerify": true,
            "additionalHeadersRef": {"name": "probe"},
        },
        "providerRef": {"name": "bind"},
    })
}

fn full_tls() -> Value {
    json!({
        "targetRef": {"group": "gateway.networking.k8s.io", "kind": "ListenerSet", "name": "own", "sectionName": "a"},
        "allowWildcardHosts": true,
        "issuerRef": {"group": "cert-manager.io", "kind": "ClusterIssuer", "name": "acme"},
        "duration": "2160h",
        "renewBefore": "720h",
        "privateKey": {"algorithm": "ECDSA", "size": 256, "encoding": "PKCS8", "rotationPolicy": "Always"},
    })
}

fn full_grant() -> Value {
    json!({
        "hostnames": ["example.org", "*.example.org"],
        "namespaces": {
            "names": ["shop"],
            "selector": {
                "matchLabels": {"team": "shop"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a"]}],
            },
        },
    })
}

/// Reads a policy: the object, the fields that were asked for, and what was told.
fn read(kind: Kind, reader: Reader, spec: Value) -> (Object, BTreeSet<String>, Vec<String>) {
    let collector = ProblemCollector::new(ObjectRef::new(kind, "infra", "p"));
    let map = Map::from_iter([("spec".to_owned(), spec)]);
    let map = Mapping::from(&map);
    let root = Fields::root(&map, &collector, Strictness::Full);
    let object = reader(Meta::named("infra", "p"), &root, "v1alpha1");
    root.finish();
    let asked = collector.asked();
    (object, asked, collector.into_parts().0.into_iter().map(|d| d.message).collect())
}

fn told(kind: Kind, reader: Reader, spec: Value) -> Vec<String> {
    read(kind, reader, spec).2
}

/// The schema of `spec`.
fn schema(kind: Kind) -> Value {
    let definitions = crds::definitions();
    let found = definitions.iter().find(|d| d["spec"]["names"]["kind"] == kind.as_str()).unwrap();
    found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
}

/// The path of every field of a schema.
fn fields(path: &str, schema: &Value, found: &mut BTreeSet<String>) {
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        fields(&path, below, found);
        found.insert(path);
    }
}

#[test]
fn the_reader_and_the_schema_know_the_same_fields() {
    for (kind, reader, spec) in [
        (Kind::DnsPolicy, super::dns as Reader, full_dns()),
        (Kind::TlsPolicy, super::tls as Reader, full_tls()),
        (Kind::HostnameGrant, super::grant as Reader, full_grant()),
    ] {
        let mut in_schema = BTreeSet::new();
        fields("spec", &schema(kind), &mut in_schema);
        let (_, asked, told) = read(kind, reader, spec);
        assert_eq!(told, Vec::<String>::new(), "{kind}");
        let is_of_spec = |path: &String| path.starts_with("spec.") && !path.contains('[');
        let asked: BTreeSet<String> = asked.into_iter().filter(is_of_spec).collect();
        assert_eq!(asked, in_schema, "{kind}");
    }
}

#[test]
fn the_reader_and_the_schema_demand_the_same_fields() {
    let empty =
        json!({"targetRef": {}, "healthCheck": {"additionalHeadersRef": {}}, "providerRef": {}, "issuerRef": {}});
    for (kind, reader) in [
        (Kind::DnsPolicy, super::dns as Reader),
        (Kind::TlsPolicy, super::tls as Reader),
        (Kind::HostnameGrant, super::grant as Reader),
    ] {
        let schema = schema(kind);
        let mut demanded = BTreeSet::new();
        required("spec", &schema, &mut demanded);
        let known = schema["properties"].as_object().unwrap();
        let spec = empty.as_object().unwrap().iter().filter(|(key, _)| known.contains_key(*key));
        let spec = Value::Object(spec.map(|(key, value)| (key.clone(), value.clone())).collect());
        let missing = |message: String| message.strip_suffix(" is missing; it must be set").map(str::to_owned);
        let mut found: BTreeSet<String> = told(kind, reader, spec).into_iter().filter_map(missing).collect();
        found.extend(told(kind, reader, json!({})).into_iter().filter_map(missing));
        assert_eq!(found, demanded, "{kind}");
    }
}

fn required(path: &str, schema: &Value, found: &mut BTreeSet<String>) {
    found.extend(
        schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|key| format!("`{path}.{key}`")),
    );
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        required(&format!("{path}.{key}"), below, found);
    }
}

#[test]
fn the_reader_and_the_schema_have_the_same_defaults() {
    let target = json!({"kind": "Gateway", "name": "edge"});
    let spec = |kind| {
        let schema = schema(kind);
        let defaults = |part: &str| {
            let all = schema["properties"][part]["properties"].as_object().unwrap().iter();
            all.filter_map(|(key, s)| Some((key.clone(), s.get("default")?.clone()))).collect::<Map<_, _>>()
        };
        let mut filled = Map::from_iter([("targetRef".to_owned(), Value::Object(defaults("targetRef")))]);
        filled["targetRef"]["kind"] = "Gateway".into();
        filled["targetRef"]["name"] = "edge".into();
        let part = if kind == Kind::DnsPolicy { "healthCheck" } else { "issuerRef" };
        filled.insert(part.to_owned(), Value::Object(defaults(part)));
        Value::Object(filled)
    };
    let bare = json!({"targetRef": target, "healthCheck": {}});
    let filled = spec(Kind::DnsPolicy);
    assert_eq!(filled["healthCheck"].as_object().unwrap().len(), 6, "{filled}");
    assert_eq!(read(Kind::DnsPolicy, super::dns, bare).0, read(Kind::DnsPolicy, super::dns, filled).0);
    let bare = json!({"targetRef": target, "issuerRef": {"name": "x"}});
    let mut filled = spec(Kind::TlsPolicy);
    filled["issuerRef"]["name"] = "x".into();
    assert_eq!(filled["issuerRef"].as_object().unwrap().len(), 3, "{filled}");
    assert_eq!(read(Kind::TlsPolicy, super::tls, bare).0, read(Kind::TlsPolicy, super::tls, filled).0);
}

#[test]
fn what_a_cluster_refuses_is_told() {
    let with = |mut spec: Value, pointer: &str, value: Value| {
        *spec.pointer_mut(pointer).unwrap() = value;
        spec
    };
    for (pointer, value) in [
        ("/targetRef/group", json!("apps")),
        ("/targetRef/kind", json!("Service")),
        ("/targetRef/sectionName", json!("A b")),
        ("/ttl", json!(0)),
        ("/excludeAddresses", json!(vec!["192.0.2.1"; 33])),
        ("/excludeAddresses/0", json!("10.0.0.0/33")),
        ("/excludeAddresses/0", json!("10.0.0.0/08")),
        ("/excludeAddresses/0", json!("::ffff:192.0.2.1")),
        ("/excludeAddresses/0", json!("300.1.1.1")),
        ("/excludeAddresses/0", json!("*.example.com")),
        ("/healthCheck/protocol", json!("UDP")),
        ("/healthCheck/expectedStatuses/0", json!("20")),
        ("/healthCheck/expectedStatuses/0", json!("299-200")),
        ("/healthCheck/expectedStatuses", json!(vec!["200"; 17])),
        ("/healthCheck/successThreshold", json!(0)),
        ("/healthCheck/timeout", json!("0s")),
        ("/healthCheck/port", json!(70000)),
        ("/healthCheck/path", json!("/a b")),
        ("/healthCheck/interval", json!("500ms")),
        ("/healthCheck/interval", json!("5 minutes")),
        ("/healthCheck/failureThreshold", json!(0)),
        ("/providerRef", json!("bind")),
    ] {
        let told = told(Kind::DnsPolicy, super::dns, with(full_dns(), pointer, value.clone()));
        assert_eq!(told.len(), 1, "{pointer} {value}: {told:?}");
    }
    for (pointer, value) in [
        ("/renewBefore", json!("2160h")),
        ("/duration", json!("90d")),
        ("/issuerRef/kind", json!("an issuer")),
        ("/privateKey/algorithm", json!("DSA")),
        ("/privateKey/size", json!(2048)),
        ("/privateKey", json!({"size": 2048})),
        ("/privateKey", json!({"algorithm": "Ed25519", "size": 256})),
        ("/privateKey", json!({"algorithm": "RSA", "size": 1024})),
        ("/privateKey/encoding", json!("DER")),
        ("/privateKey/rotationPolicy", json!("Sometimes")),
        ("/privateKey", json!({"curve": "P256"})),
    ] {
        let told = told(Kind::TlsPolicy, super::tls, with(full_tls(), pointer, value.clone()));
        assert_eq!(told.len(), 1, "{pointer} {value}: {told:?}");
    }
    for (pointer, value) in [
        ("/hostnames", json!([])),
        ("/hostnames", json!(["a.example.org", "a.example.org"])),
        ("/hostnames/0", json!("*")),
        ("/hostnames/0", json!("a..example.org")),
        ("/hostnames/0", json!("A.example.org")),
        ("/hostnames/0", json!("192.0.2.1")),
        ("/hostnames/0", json!(1)),
        ("/namespaces", json!({})),
        ("/namespaces/names/0", json!("Shop")),
        ("/namespaces/names", json!(["shop", "shop"])),
        ("/namespaces/selector/matchExpressions/0/operator", json!("Near")),
        ("/namespaces/selector/matchExpressions/0/values", json!([])),
        ("/namespaces/selector/matchLabels", json!("shop")),
        ("/namespaces/from", json!("All")),
    ] {
        let mut spec = full_grant();
        match spec.pointer_mut(pointer) {
            Some(found) => *found = value.clone(),
            None => spec["namespaces"]["from"] = value.clone(),
        }
        let told = told(Kind::HostnameGrant, super::grant, spec);
        assert_eq!(told.len(), 1, "{pointer} {value}: {told:?}");
    }
}
