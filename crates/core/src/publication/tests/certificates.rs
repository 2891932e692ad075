//! Which certificates ought to exist.

use super::world::*;
use crate::model::*;
use crate::objects;
use crate::publication::settings::PublicationSettings;

fn edge(hostname: &str) -> Gateway {
    gateway("infra/edge", vec![https("web", hostname, "edge-tls")])
}

fn allowing() -> TlsPolicy {
    tls("infra/tls", "Gateway", "edge")
}

fn forbidding() -> TlsPolicy {
    TlsPolicy { allow_wildcards: Some(false), ..allowing() }
}

#[test]
fn precise_names_need_no_policy_and_wildcards_do() {
    let web = || route("shop/web", "infra/edge", &["a.example.com", "*.example.com"]);
    let found = plain(objects![edge("*.example.com"), web()]);
    assert_eq!(certificates(&found), ["infra/edge-tls a.example.com"]);
    assert_eq!(told(&found)[0], "HTTPRoute/shop/web certificate-cannot-cover");
    assert_eq!(found.certificates[0].issuer, None);
    let found = plain(objects![edge("*.example.com"), web(), forbidding()]);
    assert_eq!(certificates(&found), ["infra/edge-tls a.example.com"]);
    let found = plain(objects![edge("*.example.com"), web(), allowing()]);
    assert_eq!(certificates(&found), ["infra/edge-tls *.example.com"]);
    assert_eq!(found.certificates[0].policy, Some(key("infra/tls")));
}

#[test]
fn a_wildcard_by_default_is_told_in_the_status() {
    let web = || route("shop/web", "infra/edge", &["a.example.com"]);
    let unset = plain(objects![edge("*.example.com"), web(), allowing()]);
    assert!(condition_of(&unset, "TLSPolicy/infra/tls", "Enforced").contains("`allowWildcardHosts` is not set"));
    let set = TlsPolicy { allow_wildcards: Some(true), ..allowing() };
    let set = plain(objects![edge("*.example.com"), web(), set]);
    assert!(!condition_of(&set, "TLSPolicy/infra/tls", "Enforced").contains("allowWildcardHosts"));
    let precise = plain(objects![edge("a.example.com"), web(), allowing()]);
    assert!(!condition_of(&precise, "TLSPolicy/infra/tls", "Enforced").contains("allowWildcardHosts"));
}

#[test]
fn without_routes_there_is_no_certificate() {
    assert!(plain(objects![edge("a.example.com"), allowing()]).certificates.is_empty());
}

#[test]
fn names_are_covered_one_label_deep() {
    let web = route("shop/web", "infra/edge", &["a.example.com", "x.b.example.com", "*.c.example.com"]);
    let found = plain(objects![edge("*.example.com"), web, allowing()]);
    assert_eq!(certificates(&found), ["infra/edge-tls *.c.example.com *.example.com x.b.example.com"]);
}

#[test]
fn a_listener_without_hostname_has_the_names_of_its_routes() {
    let web = route("shop/web", "infra/edge", &["a.example.com", "*.b.test"]);
    let any = route("shop/any", "infra/edge", &[]);
    let found = plain(objects![edge("*"), web, any, allowing()]);
    assert_eq!(certificates(&found), ["infra/edge-tls *.b.test a.example.com"]);
    let report = found.policies.iter().find(|p| p.policy.kind == Kind::TlsPolicy).unwrap();
    assert_eq!(report.hostnames.iter().filter_map(|h| h.skipped()).collect::<Vec<_>>(), ["no-name"]);
}

#[test]
fn listeners_share_a_secret_and_names_count_for_each_listener() {
    let listeners = vec![
        https("wild", "*.example.com", "one"),
        https("precise", "a.example.com", "two"),
        https("org", "*.example.org", "one"),
    ];
    let web = route("shop/web", "infra/edge", &["a.example.com", "a.example.org"]);
    let found = plain(objects![gateway("infra/edge", listeners), web]);
    assert_eq!(certificates(&found), ["infra/one a.example.com a.example.org", "infra/two a.example.com"]);
    assert_eq!(found.certificates[0].listeners.len(), 2);
}

#[test]
fn only_under_a_policy_where_policies_publish() {
    let web = route("shop/web", "infra/edge", &["a.example.com"]);
    let found = governed(objects![edge("*.example.com"), web, dns("infra/dns", "Gateway", "edge")]);
    assert!(found.certificates.is_empty());
    assert_eq!(records(&found).len(), 1);
}

#[test]
fn passthrough_has_no_certificate() {
    let mut listener = https("web", "a.example.com", "edge-tls");
    listener.protocol = Protocol::Tls;
    if let Some(tls) = &mut listener.tls {
        tls.mode = TlsMode::Passthrough;
    }
    let mut web = route("shop/web", "infra/edge", &["a.example.com"]);
    web.kind = RouteKind::Tls;
    let found = plain(objects![gateway("infra/edge", vec![listener]), web, allowing()]);
    assert_eq!((records(&found).len(), found.certificates.len()), (1, 0));
}

#[test]
fn a_secret_in_another_namespace_is_never_filled() {
    let mut gateway = edge("a.example.com");
    if let Some(tls) = &mut gateway.listeners[0].tls {
        tls.certificates[0].namespace = Some("vault".into());
    }
    let web = route("shop/web", "infra/edge", &["a.example.com"]);
    let refused = plain(objects![gateway.clone(), web.clone(), allowing()]);
    assert!(refused.certificates.is_empty());
    let mut objects = objects![gateway, web, allowing()];
    objects.push(crate::snapshot::Object::ReferenceGrant(ReferenceGrant {
        meta: Meta::named("vault", "open"),
        from: vec![GrantFrom { group: GATEWAY_GROUP.into(), kind: "Gateway".into(), namespace: "infra".into() }],
        to: vec![GrantTo { group: "".into(), kind: "Secret".into(), name: None }],
    }));
    let granted = plain(objects);
    assert!(granted.certificates.is_empty());
    assert!(told(&granted).contains(&"Gateway/infra/edge certificate-secret-elsewhere".to_owned()));
}

#[test]
fn names_beyond_the_limit_are_those_of_the_youngest_routes() {
    let mut routes: Vec<Route> = ["a", "b", "c"]
        .iter()
        .map(|name| route(&format!("shop/{name}"), "infra/edge", &[&format!("{name}.example.com")]))
        .collect();
    routes[0].meta.created = Some(900);
    let [a, b, c] = [routes.remove(0), routes.remove(0), routes.remove(0)];
    let settings = PublicationSettings { certificate_names: 2, ..PublicationSettings::default() };
    let few = PublicationSettings { certificate_names: 1, ..PublicationSettings::default() };
    let next = desired(objects![edge("*.example.com"), a.clone(), b.clone(), c.clone()], &few);
    let messages: Vec<&str> = next.diagnostics.iter().map(|said| &*said.message).collect();
    // The name of the oldest remaining route comes first.
    assert!(
        messages.iter().any(|said| said.ends_with("left out are `c.example.com`, `a.example.com`")),
        "{messages:?}"
    );
    let found = desired(objects![edge("*.example.com"), a, b, c, forbidding()], &settings);
    assert_eq!(certificates(&found), ["infra/edge-tls b.example.com c.example.com"]);
    assert!(told(&found).contains(&"Gateway/infra/edge certificate-too-many-names".to_owned()));
    assert!(condition_of(&found, "TLSPolicy/infra/tls", "Enforced").contains("certificate-too-many-names"));
}

#[test]
fn a_shared_secret_has_the_issuer_of_the_oldest_policy() {
    let issuer = |name: &str| Reference {
        group: "cert-manager.io".into(),
        kind: "Issuer".into(),
        namespace: None,
        name: name.into(),
    };
    let listeners = vec![https("a", "*.example.com", "one"), https("b", "*.example.org", "one")];
    let mut old = TlsPolicy { issuer: Some(issuer("old")), ..tls("infra/z", "Gateway", "edge") };
    old.target.section = Some("a".into());
    old.meta.created = Some(1);
    let mut young = TlsPolicy { issuer: Some(issuer("young")), ..tls("infra/a", "Gateway", "edge") };
    young.target.section = Some("b".into());
    let web = route("shop/web", "infra/edge", &["a.example.com", "a.example.org"]);
    let found = plain(objects![gateway("infra/edge", listeners), web, old, young]);
    assert_eq!(found.certificates[0].issuer, Some(issuer("old")));
    assert!(told(&found).contains(&"TLSPolicy/infra/a certificate-issuers-differ".to_owned()));
}

#[test]
fn a_name_that_only_an_annotation_adds_is_told() {
    let web = annotated(route("shop/web", "infra/edge", &["a.example.com"]), "hostname", "b.example.com");
    let found = plain(objects![edge("*.example.com"), web]);
    assert_eq!(records(&found).len(), 2);
    assert_eq!(certificates(&found), ["infra/edge-tls a.example.com"]);
    assert!(told(&found).contains(&"HTTPRoute/shop/web certificate-cannot-cover".to_owned()));
}

#[test]
fn names_that_are_not_known_to_be_gone_are_kept() {
    let kept = |found: &crate::publication::Desired| {
        let short = |k: &crate::publication::KeptName| format!("{} {} {}", k.secret, k.hostname, k.reason);
        found.kept_names.iter().map(short).collect::<Vec<_>>()
    };
    let web = || route("shop/web", "infra/edge", &["a.example.com"]);
    let mut speaking = edge("*.example.com");
    speaking.status.conditions = vec![Condition::new("Accepted", true, "Accepted", "")].into();
    let found = plain(objects![speaking, web()]);
    assert_eq!(kept(&found), ["infra/edge-tls a.example.com status-missing"]);
    let bad = TlsPolicy { duration: Some(1), renew_before: Some(2), ..allowing() };
    let found = governed(objects![edge("*.example.com"), web(), bad]);
    assert_eq!(
        kept(&found),
        ["infra/edge-tls *.example.com policy-invalid", "infra/edge-tls a.example.com policy-invalid"]
    );
    let found = governed(objects![edge("*.example.com"), web()]);
    assert!(found.kept_names.is_empty() && found.certificates.is_empty());
}
