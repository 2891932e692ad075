//! Every kind in every version: what is read, and what the API server would have filled in.

use gatepost_core::model::*;
use gatepost_core::selector::Test;
use gatepost_core::snapshot::Object;
use gatepost_objects::{ParseSettings, read};

#[track_caller]
fn one(text: &str) -> Object {
    let mut reading = read("input", text.as_bytes(), &ParseSettings::default());
    assert_eq!((reading.objects.len(), &reading.diagnostics), (1, &Vec::new()), "{text}");
    reading.objects.remove(0).object
}

/// Reads an object that has something wrong with it.
#[track_caller]
fn flawed(text: &str) -> Object {
    let mut reading = read("input", text.as_bytes(), &ParseSettings::default());
    assert!(reading.objects.len() == 1 && !reading.diagnostics.is_empty(), "{text}");
    reading.objects.remove(0).object
}

fn object(version: &str, kind: &str, spec: &str) -> String {
    format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a, namespace: ns}}\nspec: {spec}\n")
}

fn v1(kind: &str, spec: &str) -> String {
    object("gateway.networking.k8s.io/v1", kind, spec)
}

fn gateway(object: Object) -> Gateway {
    let Object::Gateway(gateway) = object else { panic!("{object:?}") };
    gateway
}

fn route(object: Object) -> Route {
    let Object::Route(route) = object else { panic!("{object:?}") };
    route
}

fn reference(group: &str, kind: &str, namespace: Option<&str>, name: &str) -> Reference {
    Reference { group: group.into(), kind: kind.into(), namespace: namespace.map(Str::from), name: name.into() }
}

#[test]
fn who_an_object_is() {
    let text = "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n  creationTimestamp: \"1970-01-01T00:01:00Z\"\n  generation: 3\n  labels: {l: m}\n  annotations: {x: \"y\"}\n";
    let meta = one(text).meta().clone();
    assert_eq!(meta.key, Key::new("default", "a"));
    assert_eq!((meta.created, meta.generation), (Some(60), Some(3)));
    assert_eq!(meta.labels.get("l").map(AsRef::as_ref), Some("m"));
    assert_eq!(meta.annotations.get("x").map(AsRef::as_ref), Some("y"));
    let class = one(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: a, namespace: b}\nspec: {controllerName: a.b/c}\n",
    );
    assert_eq!(class.object().to_string(), "GatewayClass/a");
    let settings = ParseSettings { namespace: "team".into(), ..ParseSettings::default() };
    assert_eq!(read("i", text.as_bytes(), &settings).objects[0].object.object().to_string(), "Service/team/a");
}

#[test]
fn gateway_class() {
    let text = v1("GatewayClass", "{controllerName: a.b/c}")
        + "status: {supportedFeatures: [{name: X}, Z], conditions: [{type: Accepted, status: \"True\", reason: R, message: M, observedGeneration: 2, lastTransitionTime: \"T\"}]}\n";
    let Object::GatewayClass(class) = one(&text) else { panic!() };
    assert_eq!(class.controller.as_ref(), "a.b/c");
    assert_eq!(class.features, [Str::from("X"), Str::from("Z")]);
    let condition = &class.conditions[0];
    assert_eq!(
        (condition.kind.as_ref(), condition.is_true(), condition.observed_generation),
        ("Accepted", true, Some(2))
    );
}

#[test]
fn gateway_and_its_defaults() {
    let text = "{gatewayClassName: c, listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: s}]}}], addresses: [{value: 192.0.2.1}]}";
    for version in ["v1", "v1beta1", "v1alpha2"] {
        let gateway = gateway(one(&object(&format!("gateway.networking.k8s.io/{version}"), "Gateway", text)));
        let listener = &gateway.listeners[0];
        assert_eq!((listener.port, &listener.protocol, &listener.hostname), (443, &Protocol::Https, &None));
        assert_eq!(listener.allowed_routes, AllowedRoutes { namespaces: Admission::Same, kinds: Vec::new() });
        let tls = listener.tls.as_ref().unwrap();
        assert_eq!((&tls.mode, &tls.certificates), (&TlsMode::Terminate, &vec![reference("", "Secret", None, "s")]));
        assert_eq!(gateway.allowed_listeners, Admission::None);
        assert_eq!(gateway.wished_addresses[0].kind.as_ref(), "IPAddress");
    }
}

#[test]
fn gateway_in_full() {
    let text = v1(
        "Gateway",
        "
  gatewayClassName: c
  infrastructure: {parametersRef: {group: g, kind: K, name: p}}
  allowedListeners: {namespaces: {from: Selector, selector: {matchLabels: {a: b}}}}
  tls:
    frontend:
      default: {validation: {caCertificateRefs: [{group: \"\", kind: ConfigMap, name: ca}]}}
      perPort: [{port: 8443, tls: {validation: {mode: AllowInsecureFallback, caCertificateRefs: [{group: \"\", kind: ConfigMap, name: cb, namespace: x}]}}}]
  listeners:
  - name: a
    port: 80
    protocol: HTTP
    hostname: \"*.Example.com\"
    filters: {requests: [{type: ExtensionRef, extensionRef: {group: g, kind: K, name: f}}]}
    allowedRoutes:
      kinds: [{kind: HTTPRoute}, {group: x, kind: Z}]
      namespaces: {from: All}",
    ) + "status:\n  addresses: [{value: 192.0.2.1, routability: Cluster}, {type: Hostname, value: lb.example}]\n  listeners: [{name: a, attachedRoutes: 1, conditions: [{type: X}]}]\n";
    let gateway = gateway(flawed(&text));
    assert_eq!(gateway.parameters, Some(reference("g", "K", None, "p")));
    let Admission::Selector(Some(selector)) = &gateway.allowed_listeners else { panic!() };
    assert_eq!(selector.requirements[0].test, Test::In(vec!["b".into()]));
    assert_eq!(gateway.frontend.default.as_ref().unwrap().mode.as_ref(), "AllowValidOnly");
    let (port, validation) = &gateway.frontend.per_port[0];
    assert_eq!(
        (*port, validation.as_ref().unwrap().ca_certificates[0].clone()),
        (8443, reference("", "ConfigMap", Some("x"), "cb"))
    );
    let listener = &gateway.listeners[0];
    assert!(listener.has_filters);
    let hostname = listener.hostname.as_ref().unwrap();
    assert_eq!((hostname.text().as_ref(), hostname.name().unwrap().as_str()), ("*.Example.com", "*.example.com"));
    let kinds = &listener.allowed_routes.kinds;
    assert_eq!(kinds[0], (GATEWAY_GROUP.into(), "HTTPRoute".into()));
    assert_eq!(kinds[1], ("x".into(), "Z".into()));
    assert_eq!(gateway.status.addresses[0].routability.as_deref(), Some("Cluster"));
    assert_eq!(gateway.status.listeners[0].conditions[0].kind.as_ref(), "X");
}

#[test]
fn listener_sets_of_both_groups() {
    let spec = "{parentRef: {name: g}, listeners: [{name: a, port: 80, protocol: HTTP}]}";
    for (version, kind, expected, text) in [
        ("gateway.networking.k8s.io/v1", "ListenerSet", Kind::ListenerSet, one as fn(&str) -> Object),
        ("gateway.networking.x-k8s.io/v1alpha1", "XListenerSet", Kind::XListenerSet, one),
        ("gateway.networking.x-k8s.io/v1alpha1", "ListenerSet", Kind::XListenerSet, flawed),
    ] {
        let Object::ListenerSet(set) = text(&object(version, kind, spec)) else { panic!() };
        assert_eq!((set.kind, &set.parent), (expected, &reference(GATEWAY_GROUP, "Gateway", None, "g")));
        assert_eq!(set.listeners.len(), 1);
    }
}

#[test]
fn draft_shape_of_allowed_listeners_admits_nobody() {
    let text = v1(
        "Gateway",
        "{gatewayClassName: c, listeners: [{name: a, port: 80, protocol: HTTP}], allowedListeners: [{from: Same}]}",
    );
    assert_eq!(gateway(flawed(&text)).allowed_listeners, Admission::None);
}

#[test]
fn http_route_defaults() {
    for version in ["v1", "v1beta1", "v1alpha2"] {
        let of = |spec: &str| route(one(&object(&format!("gateway.networking.k8s.io/{version}"), "HTTPRoute", spec)));
        let empty = of("{parentRefs: [{name: g}]}");
        let parent = ParentRef { target: reference(GATEWAY_GROUP, "Gateway", None, "g"), section: None, port: None };
        assert_eq!(empty.parents[..], [parent]);
        assert_eq!(
            empty.rules[..],
            [Rule { matches: Matches::Http(vec![HttpMatch::default()].into()), ..Rule::default() }]
        );
        for spec in [
            "{rules: [{}]}",
            "{rules: [{matches: []}]}",
            "{rules: [{matches: [{}]}]}",
            "{rules: [{matches: [{path: {}}]}]}",
        ] {
            assert_eq!(of(spec).rules, empty.rules, "{spec}");
        }
        let backend = of("{rules: [{backendRefs: [{name: s, port: 80}]}]}").rules[0].backends[0].clone();
        let expected = BackendRef {
            target: reference("", "Service", None, "s"),
            port: Some(80),
            weight: 1,
            filters: Vec::new().into(),
        };
        assert_eq!(backend, expected);
    }
}

#[test]
fn http_route_in_full() {
    let text = v1(
        "HTTPRoute",
        "
  parentRefs: [{name: g, namespace: x, sectionName: s, port: 80}, {kind: ListenerSet, name: l}]
  hostnames: [a.example, \"*.b.example\"]
  rules:
  - name: first
    matches:
    - path: {type: Exact, value: /a}
      headers: [{name: h, value: v}]
      queryParams: [{name: q, type: RegularExpression, value: w}]
      method: POST
    filters:
    - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}], remove: [c]}}
    - {type: URLRewrite, urlRewrite: {hostname: z.example, path: {type: ReplaceFullPath, replaceFullPath: /z}}}
    - {type: CORS, cors: {allowOrigins: [\"*\"]}}
    - {type: RequestMirror, requestMirror: {backendRef: {name: m, port: 1}}}
    - {type: ExtensionRef, extensionRef: {group: g, kind: K, name: e}}
    backendRefs: [{name: s, namespace: o, port: 80, weight: 7}]
  - filters: [{type: RequestRedirect, requestRedirect: {scheme: https, port: 8443, statusCode: 301}}]",
    ) + "status: {parents: [{controllerName: c, parentRef: {name: g}, conditions: [{type: Accepted, status: \"False\"}]}]}\n";
    let route = route(one(&text));
    assert_eq!((route.parents[0].section.as_deref(), route.parents[0].port), (Some("s"), Some(80)));
    assert_eq!(route.parents[1].target.kind.as_ref(), "ListenerSet");
    assert_eq!(route.hostnames.len(), 2);
    let rule = &route.rules[0];
    let Matches::Http(matches) = &rule.matches else { panic!() };
    assert_eq!(matches[0].path, PathMatch { kind: MatchKind::Exact, value: "/a".into() });
    assert_eq!((&matches[0].headers[0].kind, &matches[0].query[0].kind), (&MatchKind::Exact, &MatchKind::Regex));
    assert_eq!(matches[0].method.as_deref(), Some("POST"));
    assert_eq!(rule.backends[0].weight, 7);
    let Filter::RequestHeaders(change) = &rule.filters[0] else { panic!() };
    assert_eq!((change.set[0].1.as_ref(), change.remove[0].as_ref()), ("b", "c"));
    let Filter::Rewrite(rewrite) = &rule.filters[1] else { panic!() };
    assert_eq!(rewrite.path, Some(PathChange::Full("/z".into())));
    let Filter::Cors(cors) = &rule.filters[2] else { panic!() };
    assert_eq!((cors.max_age, cors.credentials), (5, false));
    assert!(matches!(&rule.filters[3..], [Filter::Mirror(_), Filter::Extension(_)]));
    let Filter::Redirect(redirect) = &route.rules[1].filters[0] else { panic!() };
    assert_eq!((redirect.status, redirect.port), (Some(301), Some(8443)));
    assert_eq!(route.status[0].controller.as_ref(), "c");
}

#[test]
fn grpc_route() {
    for version in ["v1", "v1alpha2"] {
        let spec = "{rules: [{matches: [{method: {service: s}, headers: [{name: h, value: v}]}, {}]}, {}]}";
        let route = route(one(&object(&format!("gateway.networking.k8s.io/{version}"), "GRPCRoute", spec)));
        let Matches::Grpc(matches) = &route.rules[0].matches else { panic!() };
        assert_eq!(
            (matches[0].service.as_deref(), &matches[0].kind, matches[0].headers.len()),
            (Some("s"), &MatchKind::Exact, 1)
        );
        assert_eq!((&matches[1].service, &matches[1].kind), (&None, &MatchKind::Exact));
        assert_eq!(route.rules[1].matches, Matches::Grpc(Vec::new().into()));
    }
}

#[test]
fn plain_routes() {
    let rules = "rules: [{backendRefs: [{name: s, port: 1, weight: 0}]}]";
    for (kind, versions) in [
        ("TLSRoute", &["v1", "v1alpha2", "v1alpha3"][..]),
        ("TCPRoute", &["v1", "v1alpha2"]),
        ("UDPRoute", &["v1", "v1alpha2"]),
    ] {
        for version in versions {
            let hostnames = if kind == "TLSRoute" { "hostnames: [a.b], " } else { "" };
            let text =
                object(&format!("gateway.networking.k8s.io/{version}"), kind, &format!("{{{hostnames}{rules}}}"));
            let route = route(one(&text));
            assert_eq!(route.object().kind.as_str(), kind);
            assert_eq!((&route.rules[0].matches, route.rules[0].backends[0].weight), (&Matches::Everything, 0));
        }
    }
}

#[test]
fn reference_grant() {
    for version in ["v1", "v1beta1", "v1alpha2"] {
        let spec = "{from: [{group: g, kind: K, namespace: x}], to: [{group: \"\", kind: Secret, name: s}, {group: \"\", kind: Service}]}";
        let Object::ReferenceGrant(grant) =
            one(&object(&format!("gateway.networking.k8s.io/{version}"), "ReferenceGrant", spec))
        else {
            panic!()
        };
        assert_eq!(grant.from[0].namespace.as_ref(), "x");
        assert_eq!((grant.to[0].name.as_deref(), grant.to[1].name.as_deref()), (Some("s"), None));
    }
}

#[test]
fn service_ports() {
    let Object::Service(service) = one(&object("v1", "Service", "{ports: [{port: 80}, {port: 53, protocol: UDP}]}"))
    else {
        panic!()
    };
    assert_eq!(service.ports[0], ServicePort { port: 80, protocol: "TCP".into() });
    assert_eq!(service.ports[1], ServicePort { port: 53, protocol: "UDP".into() });
}

#[test]
fn policies() {
    let spec = "{targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: g, sectionName: s}, allowWildcardHosts: true, ttl: 60, excludeAddresses: [10.0.0.0/8], healthCheck: {protocol: HTTPS, interval: 90s}, providerRef: {name: p}}";
    let Object::DnsPolicy(policy) = one(&object("gatepost.dev/v1alpha1", "DNSPolicy", spec)) else { panic!() };
    assert_eq!(
        (policy.target.object, policy.target.section.as_deref()),
        (reference(GATEWAY_GROUP, "Gateway", None, "g"), Some("s"))
    );
    assert_eq!((policy.allow_wildcards, policy.ttl, policy.provider.as_deref()), (Some(true), Some(60), Some("p")));
    let check = policy.health_check.unwrap();
    assert_eq!((check.port, check.interval, check.failure_threshold, check.path.as_ref()), (443, 90, 3, "/"));
    assert_eq!((check.timeout, check.success_threshold, check.expected_statuses), (5, 1, vec![]));
    let spec = "{targetRef: {kind: ListenerSet, name: l}, issuerRef: {name: i}, duration: 2160h, renewBefore: 360h, privateKey: {algorithm: RSA, size: 4096}}";
    let Object::TlsPolicy(policy) = one(&object("gatepost.dev/v1alpha1", "TLSPolicy", spec)) else { panic!() };
    assert_eq!(
        (policy.duration, policy.renew_before, policy.allow_wildcards),
        (Some(7_776_000), Some(1_296_000), None)
    );
    assert_eq!(policy.issuer, Some(reference("cert-manager.io", "Issuer", None, "i")));
    assert_eq!(policy.private_key, [("algorithm".into(), "RSA".into()), ("size".into(), "4096".into())]);
}

#[test]
fn what_cannot_be_read_never_means_everything() {
    let route_of = |spec: &str| route(flawed(&v1("HTTPRoute", spec)));
    assert!(route_of("{hostnames: a.b}").hostnames[0].name().is_err());
    assert!(route_of("{hostnames: [5]}").hostnames[0].name().is_err());
    assert_eq!(route_of("{parentRefs: [{name: g, sectionName: 5}]}").parents[0].section.as_deref(), Some(""));
    assert_eq!(route_of("{parentRefs: [{name: g, port: http}]}").parents[0].port, Some(0));
    for spec in [
        "{matches: 5}",
        "{matches: [5]}",
        "{matches: [{path: 5}]}",
        "{matches: [{headers: {a: b}}]}",
        "{matches: [{method: 5}]}",
    ] {
        let Matches::Http(matches) = &route_of(&format!("{{rules: [{spec}]}}")).rules[0].matches else { panic!() };
        assert!(matches!(matches[0].path.kind, MatchKind::Other(_)), "{spec}");
    }
    for spec in ["{matches: 5}", "{matches: [5]}", "{matches: [{method: 5}]}", "{matches: [{method: {service: 5}}]}"] {
        let route = route(flawed(&v1("GRPCRoute", &format!("{{rules: [{spec}]}}"))));
        let Matches::Grpc(matches) = &route.rules[0].matches else { panic!() };
        assert!(matches!(matches[0].kind, MatchKind::Other(_)), "{spec}");
    }
    let listener = |l: &str| {
        gateway(flawed(&v1(
            "Gateway",
            &format!("{{gatewayClassName: c, listeners: [{{name: a, port: 80, protocol: HTTP, {l}}}]}}"),
        )))
        .listeners
        .remove(0)
    };
    assert!(listener("hostname: 5").hostname.unwrap().name().is_err());
    assert_eq!(listener("allowedRoutes: {kinds: HTTPRoute}").allowed_routes.kinds, [("".into(), "".into())]);
    assert_eq!(listener("allowedRoutes: {namespaces: All}").allowed_routes.namespaces, Admission::Same);
    for selector in [
        "{matchLabels: {a: yes}}",
        "{matchLabels: []}",
        "{matchExpressions: [5]}",
        "{matchExpressions: [{key: a, operator: NotIn, values: [5]}]}",
    ] {
        let listener = listener(&format!("allowedRoutes: {{namespaces: {{from: Selector, selector: {selector}}}}}"));
        let Admission::Selector(Some(selector)) = listener.allowed_routes.namespaces else { panic!() };
        assert!(!selector.matches(&Labels::new()), "{selector}");
    }
    let grant = flawed(&v1(
        "ReferenceGrant",
        "{from: [{group: \"\", kind: Gateway, namespace: x}], to: [{group: \"\", kind: Secret, name: 5}]}",
    ));
    let Object::ReferenceGrant(grant) = grant else { panic!() };
    assert_eq!(grant.to[0].name.as_deref(), Some(""));
    let policy = flawed(&object(
        "gatepost.dev/v1alpha1",
        "DNSPolicy",
        "{targetRef: {kind: Gateway, name: g}, allowWildcardHosts: \"no\"}",
    ));
    let Object::DnsPolicy(policy) = policy else { panic!() };
    assert_eq!(policy.allow_wildcards, Some(false));
}

#[test]
fn entries_keep_their_numbers() {
    let text = v1(
        "HTTPRoute",
        "{parentRefs: [5, {name: g}], hostnames: [5, a.b], rules: [5, {backendRefs: [5, {name: s, port: 1}], filters: [5, {type: CORS, cors: {}}]}]}",
    );
    let route = route(flawed(&text));
    assert_eq!((route.parents.len(), route.hostnames.len(), route.rules.len()), (2, 2, 2));
    assert_eq!((route.rules[1].backends.len(), route.rules[1].filters.len()), (2, 2));
    assert_eq!(route.parents[1].target.name.as_ref(), "g");
}
