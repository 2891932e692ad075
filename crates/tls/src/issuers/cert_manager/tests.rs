use gatepost_core::model::{Meta, PolicyTarget};

use super::*;

const NOW: i64 = 1_800_000_000;

fn certificate() -> Certificate {
    Certificate {
        secret: Key::new("infra", "edge-tls"),
        dns_names: vec!["a.test".into(), "b.test".into()],
        listeners: Vec::new(),
        routes: Default::default(),
        issuer: None,
        policy: None,
    }
}

fn policy(private_key: &[(&str, &str)]) -> TlsPolicy {
    let reference = |kind: &str| Reference {
        group: "gateway.networking.k8s.io".into(),
        kind: kind.into(),
        namespace: None,
        name: "edge".into(),
    };
    TlsPolicy {
        meta: Meta::named("infra", "tls"),
        target: PolicyTarget { object: reference("Gateway"), section: None },
        allow_wildcards: None,
        issuer: None,
        duration: Some(2160 * 3600),
        renew_before: Some(90),
        private_key: private_key.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
    }
}

fn usual() -> IssuerRef {
    IssuerRef::parse("ClusterIssuer/public").unwrap()
}

fn leaf(names: &[&str]) -> Leaf {
    Leaf { names: names.iter().map(|name| (*name).into()).collect(), not_after: NOW + 1000, ..Leaf::default() }
}

fn with_status(mut object: Value, ready: &str, attempts: u64) -> Value {
    object["status"] = json!({
        "conditions": [{"type": "Ready", "status": ready, "message": "it is so"}, {"type": "Issuing", "status": "True", "message": "no such zone"}],
        "failedIssuanceAttempts": attempts,
    });
    object
}

#[test]
fn the_object_says_what_is_wanted_and_no_more() {
    let made = manifest(&certificate(), None, Some(&usual())).unwrap();
    let expected = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
        "metadata": {"namespace": "infra", "name": "edge-tls", "labels": {"gatepost.dev/managed-by": "gatepost"}},
        "spec": {
            "secretName": "edge-tls", "dnsNames": ["a.test", "b.test"],
            "issuerRef": {"group": "cert-manager.io", "kind": "ClusterIssuer", "name": "public"},
            "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"},
            "usages": ["digital signature", "server auth"], "revisionHistoryLimit": 1,
            "secretTemplate": {"labels": {"gatepost.dev/managed-by": "gatepost"}},
        },
    });
    assert_eq!(made, expected);
}

#[test]
fn a_policy_decides_over_key_times_and_issuer() {
    let reference = Reference { group: "x.test".into(), kind: "Vault".into(), namespace: None, name: "v".into() };
    let certificate = Certificate { issuer: Some(reference), ..certificate() };
    let policy = policy(&[("algorithm", "RSA"), ("size", "4096"), ("rotationPolicy", "Never")]);
    let spec = manifest(&certificate, Some(&policy), Some(&usual())).unwrap()["spec"].clone();
    assert_eq!(spec["issuerRef"], json!({"group": "x.test", "kind": "Vault", "name": "v"}));
    assert_eq!(spec["privateKey"], json!({"algorithm": "RSA", "size": 4096, "rotationPolicy": "Never"}));
    assert_eq!(spec["usages"], json!(["digital signature", "key encipherment", "server auth"]));
    assert_eq!((&spec["duration"], &spec["renewBefore"]), (&json!("2160h0m0s"), &json!("1m30s")));
    let error = manifest(&Certificate { issuer: None, ..certificate }, None, None).unwrap_err().to_string();
    assert!(error.contains("--issuer-ref"), "{error}");
}

#[test]
fn references_are_read_or_refused() {
    assert_eq!(IssuerRef::parse("Issuer/x").unwrap().to_string(), "Issuer/x");
    for text in ["", "x", "Issuer/", "Vault/x", "Issuer/a/b"] {
        assert!(IssuerRef::parse(text).is_err(), "{text}");
    }
}

#[test]
fn what_somebody_else_made_is_never_taken_over() {
    let wanted = manifest(&certificate(), None, Some(&usual())).unwrap();
    let mut foreign = wanted.clone();
    foreign["metadata"]["labels"] = json!({});
    foreign["metadata"]["ownerReferences"] = json!([{"kind": "Gateway", "name": "edge", "controller": true}]);
    let by_name = judge(&wanted, &[&foreign], None, NOW);
    assert_eq!(by_name, Judgement::Foreign("Certificate infra/edge-tls of Gateway edge".to_owned()));
    foreign["metadata"]["name"] = json!("another");
    let by_secret = judge(&wanted, &[&wanted, &foreign], None, NOW);
    assert_eq!(by_secret, Judgement::Foreign("Certificate infra/another of Gateway edge".to_owned()));
    foreign["metadata"]["namespace"] = json!("elsewhere");
    assert_eq!(judge(&wanted, &[&foreign], None, NOW), Judgement::Missing, "another namespace has Secrets of its own");
}

#[test]
fn differences_are_ours_alone() {
    let wanted = manifest(&certificate(), None, Some(&usual())).unwrap();
    let mut found = wanted.clone();
    found["spec"]["privateKey"]["encoding"] = json!("PKCS1");
    found["metadata"]["resourceVersion"] = json!("7");
    assert!(matches!(judge(&wanted, &[&found], None, NOW), Judgement::Pending(_)), "what others added is theirs");
    found["spec"]["dnsNames"] = json!(["a.test"]);
    found["spec"]["privateKey"]["size"] = json!(384);
    let paths = vec!["spec.dnsNames".to_owned(), "spec.privateKey.size".to_owned()];
    assert_eq!(judge(&wanted, &[&found], None, NOW), Judgement::Differs(paths));
}

#[test]
fn ready_is_what_the_secret_holds_and_not_what_is_said_of_it() {
    let wanted = manifest(&certificate(), None, Some(&usual())).unwrap();
    let ready = with_status(wanted.clone(), "True", 0);
    let look = |object: &Value, held: Option<&Leaf>| judge(&wanted, &[object], held, NOW);
    let whole = leaf(&["a.test", "b.test"]);
    assert_eq!(look(&ready, Some(&whole)), Judgement::Ready { not_after: NOW + 1000 });
    let old = look(&ready, Some(&leaf(&["a.test"])));
    assert_eq!(old, Judgement::Pending("its Secret does not hold `b.test` yet".to_owned()));
    assert_eq!(look(&ready, None), Judgement::Pending("its Secret is not there".to_owned()));
    assert_eq!(look(&wanted, None), Judgement::Pending("cert-manager has not looked at it yet".to_owned()));
    let unready = with_status(wanted.clone(), "False", 0);
    assert_eq!(look(&unready, None), Judgement::Pending("cert-manager says: it is so".to_owned()));
    let failed = with_status(wanted.clone(), "False", 3);
    assert_eq!(look(&failed, None), Judgement::Failed("cert-manager failed 3 times: no such zone".to_owned()));
    let expired = Leaf { not_after: NOW, ..whole };
    assert!(!matches!(look(&ready, Some(&expired)), Judgement::Ready { .. }));
}

#[test]
fn a_label_that_was_copied_from_a_gateway_makes_nothing_ours() {
    let wanted = manifest(&certificate(), None, Some(&usual())).unwrap();
    let mut copied = wanted.clone();
    assert!(is_ours(&copied));
    copied["metadata"]["ownerReferences"] = json!([{"kind": "Gateway", "name": "edge", "controller": true}]);
    assert!(!is_ours(&copied));
    assert!(matches!(judge(&wanted, &[&copied], None, NOW), Judgement::Foreign(_)));
}

#[test]
fn what_we_put_there_and_no_longer_want_is_a_difference_and_what_others_put_there_is_none() {
    let wanted = manifest(&certificate(), None, Some(&usual())).unwrap();
    let mut found = wanted.clone();
    found["spec"]["duration"] = json!("24h0m0s");
    found["spec"]["privateKey"]["encoding"] = json!("PKCS8");
    let entry = |manager: &str| {
        json!({"manager": manager, "operation": "Apply", "fieldsV1": {
            "f:metadata": {"f:labels": {}}, "f:spec": {".": {}, "f:duration": {}, "f:privateKey": {"f:encoding": {}, "f:size": {}}},
        }})
    };
    found["metadata"]["managedFields"] = json!([entry("kubectl")]);
    assert!(matches!(judge(&wanted, &[&found], None, NOW), Judgement::Pending(_)));
    found["metadata"]["managedFields"] = json!([entry("kubectl"), entry("gatepost")]);
    let paths = vec!["spec.duration".to_owned(), "spec.privateKey.encoding".to_owned()];
    assert_eq!(judge(&wanted, &[&found], None, NOW), Judgement::Differs(paths));
}

#[test]
fn of_others_objects_little_is_kept() {
    let mut object = manifest(&certificate(), None, Some(&usual())).unwrap();
    object["metadata"]["annotations"] = json!({"a": "b"});
    object["metadata"]["managedFields"] = json!([]);
    object["status"] = json!({"renewalTime": "2026-01-01T00:00:00Z"});
    let ours = trimmed(object.clone());
    assert!(ours["metadata"].get("annotations").is_none() && ours["metadata"].get("managedFields").is_some());
    assert_eq!((names_of(&ours).len(), renewal_of(&ours)), (2, Some(1_767_225_600)));
    object["metadata"]["labels"] = json!({});
    let expected = json!({"metadata": {"namespace": "infra", "name": "edge-tls", "labels": {}}, "spec": {"secretName": "edge-tls"}});
    assert_eq!(trimmed(object), expected);
}

#[test]
fn the_request_that_is_worked_on_says_more() {
    let mut object = with_status(manifest(&certificate(), None, Some(&usual())).unwrap(), "False", 0);
    assert_eq!(request_of(&object), Some(Key::new("infra", "edge-tls-1")));
    object["status"]["revision"] = json!(4);
    assert_eq!(request_of(&object), Some(Key::new("infra", "edge-tls-5")));
    object["status"]["conditions"][1]["status"] = json!("False");
    assert_eq!(request_of(&object), None, "nothing is under way");
    assert_eq!(request_says(&with_status(json!({}), "False", 0)), Some("it is so"));
    assert_eq!(request_says(&with_status(json!({}), "True", 0)), None);
}
