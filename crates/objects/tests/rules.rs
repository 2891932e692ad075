//! Every rule of the API that a file escapes: what breaks it, the field that is named, and what is said. Each broken object
//! has a sound twin from which it differs in one place.

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::reason::*;
use gatepost_objects::{ParseSettings, read};

fn told(text: &str) -> Vec<Diagnostic> {
    let reading = read("input", text.as_bytes(), &ParseSettings::default());
    assert_eq!(reading.objects.len(), 1, "{:?}", reading.diagnostics);
    reading.diagnostics
}

fn object(version: &str, kind: &str, spec: &str) -> String {
    format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a, namespace: ns}}\nspec: {spec}\n")
}

fn v1(kind: &str, spec: &str) -> String {
    object("gateway.networking.k8s.io/v1", kind, spec)
}

fn gateway(listeners: &str) -> String {
    v1("Gateway", &format!("{{gatewayClassName: c, listeners: [{listeners}]}}"))
}

fn gateway_with(more: &str) -> String {
    v1("Gateway", &format!("{{gatewayClassName: c, listeners: [{{name: a, port: 80, protocol: HTTP}}], {more}}}"))
}

fn http(rule: &str) -> String {
    v1("HTTPRoute", &format!("{{parentRefs: [{{name: g}}], rules: [{rule}]}}"))
}

#[track_caller]
fn sound(text: &str) {
    assert_eq!(told(text), [], "{text}");
}

#[track_caller]
fn broken(text: &str, reason: Reason, field: &str, part: &str) {
    let told = told(text);
    let found: Vec<String> = told.iter().map(|d| format!("{} {}", d.reason, d.message)).collect();
    assert_eq!(told.len(), 1, "{text}{found:?}");
    assert_eq!((told[0].reason, told[0].field.to_string().as_str()), (reason, field), "{found:?}");
    assert!(told[0].message.contains(part), "{found:?}");
    assert!(told[0].message.starts_with(&format!("`{field}` ")), "{found:?}");
    assert!(told[0].place.is_some());
}

#[track_caller]
fn invalid(text: &str, field: &str, part: &str) {
    broken(text, INVALID_FIELD, field, part);
}

#[test]
fn gateway_classes() {
    sound(&v1(
        "GatewayClass",
        "{controllerName: example.com/a, description: x, parametersRef: {group: g, kind: K, name: m, namespace: m}}",
    ));
    invalid(&v1("GatewayClass", "{}"), "spec.controllerName", "is missing");
    invalid(&v1("GatewayClass", "{controllerName: example}"), "spec.controllerName", "a domain, a `/` and a path");
    let long = "x".repeat(65);
    invalid(
        &v1("GatewayClass", &format!("{{controllerName: a.b/c, description: {long}}}")),
        "spec.description",
        "at most 64",
    );
    broken(
        &v1("GatewayClass", "{controllerName: a.b/c, controllername: x}"),
        UNKNOWN_FIELD,
        "spec.controllername",
        "is not a field",
    );
    invalid(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: a}\n",
        "spec",
        "is missing",
    );
}

#[test]
fn listener_fields() {
    sound(&gateway("{name: a.b, port: 80, protocol: HTTP}, {name: b, port: 81, protocol: example.com/own}"));
    invalid(&gateway("{port: 80, protocol: HTTP}"), "spec.listeners[0].name", "is missing");
    invalid(&gateway("{name: A, port: 80, protocol: HTTP}"), "spec.listeners[0].name", "lower-case");
    invalid(&gateway("{name: a, protocol: HTTP}"), "spec.listeners[0].port", "is missing");
    invalid(
        &gateway("{name: a, port: 70000, protocol: HTTP}"),
        "spec.listeners[0].port",
        "is 70000; a port is 1 to 65535",
    );
    invalid(&gateway("{name: a, port: \"80\", protocol: HTTP}"), "spec.listeners[0].port", "remove the quotes");
    invalid(&gateway("{name: a, port: 80}"), "spec.listeners[0].protocol", "is missing");
    invalid(&gateway("{name: a, port: 80, protocol: \"a b\"}"), "spec.listeners[0].protocol", "one word");
    invalid(&gateway("{name: yes, port: 80, protocol: HTTP}"), "spec.listeners[0].name", "put it in quotes");
    invalid(&gateway("5"), "spec.listeners[0]", "the number 5, a mapping is expected");
    broken(
        &gateway("{name: a, port: 80, protocol: HTTP, hostnam: b}"),
        UNKNOWN_FIELD,
        "spec.listeners[0].hostnam",
        "did you mean `hostname`?",
    );
}

#[test]
fn listener_counts_and_repeats() {
    invalid(&gateway(""), "spec.listeners", "has 0 entries, 1 to 64");
    invalid(&v1("Gateway", "{gatewayClassName: c}"), "spec.listeners", "is missing");
    let many: Vec<String> = (0..65).map(|i| format!("{{name: l{i}, port: {}, protocol: HTTP}}", i + 1)).collect();
    invalid(&gateway(&many.join(",")), "spec.listeners", "has 65 entries");
    let a = "{name: a, port: 80, protocol: HTTP}";
    invalid(
        &gateway(&format!("{a}, {{name: a, port: 81, protocol: HTTP}}")),
        "spec.listeners[1].name",
        "repeats the name `a`",
    );
    invalid(
        &gateway(&format!("{a}, {{name: b, port: 80, protocol: HTTP}}")),
        "spec.listeners[1]",
        "no hostname as `a`",
    );
    sound(&gateway(&format!("{a}, {{name: b, port: 80, protocol: HTTP, hostname: x.y}}")));
    let x = |name: &str| format!("{{name: {name}, port: 80, protocol: HTTP, hostname: x.y}}");
    invalid(&gateway(&format!("{}, {}", x("a"), x("b"))), "spec.listeners[1]", "hostname x.y");
}

#[test]
fn listener_tls() {
    let tls = |protocol: &str, tls: &str| gateway(&format!("{{name: a, port: 443, protocol: {protocol}, tls: {tls}}}"));
    let refs = "{certificateRefs: [{name: s}]}";
    for protocol in ["HTTP", "TCP", "UDP"] {
        invalid(&tls(protocol, refs), "spec.listeners[0].tls", "must be left out");
    }
    sound(&tls("HTTPS", refs));
    sound(&tls("TLS", refs));
    sound(&tls("TLS", "{mode: Passthrough}"));
    sound(&tls("HTTPS", "{options: {a: b}}"));
    sound(&gateway("{name: a, port: 443, protocol: HTTPS}"));
    invalid(&tls("HTTPS", "{mode: Passthrough}"), "spec.listeners[0].tls.mode", "use Terminate, or protocol TLS");
    invalid(&gateway("{name: a, port: 443, protocol: TLS}"), "spec.listeners[0].tls", "is missing");
    invalid(&tls("HTTPS", "{}"), "spec.listeners[0].tls.certificateRefs", "needs a certificate");
    broken(&tls("TLS", "{mode: Terminat}"), UNKNOWN_VALUE, "spec.listeners[0].tls.mode", "did you mean `Terminate`?");
    let many = vec!["{name: s}"; 65].join(",");
    invalid(
        &tls("HTTPS", &format!("{{certificateRefs: [{many}]}}")),
        "spec.listeners[0].tls.certificateRefs",
        "at most 64",
    );
    invalid(
        &tls("HTTPS", "{certificateRefs: [{kind: Secret}]}"),
        "spec.listeners[0].tls.certificateRefs[0].name",
        "is missing",
    );
    invalid(
        &tls("HTTPS", "{certificateRefs: [{name: s, namespace: A}]}"),
        "spec.listeners[0].tls.certificateRefs[0].namespace",
        "lower-case",
    );
}

#[test]
fn listener_hostnames() {
    let host = |host: &str| gateway(&format!("{{name: a, port: 443, protocol: HTTP, hostname: {host}}}"));
    let field = "spec.listeners[0].hostname";
    sound(&host("\"*.example.com\""));
    broken(&host("192.0.2.1"), HOSTNAME_IS_IP, field, "IP address");
    broken(&host("WWW.example.com"), HOSTNAME_NOT_LOWERCASE, field, "write `www.example.com`");
    broken(&host("xn--bcher-kva.example"), HOSTNAME_INTERNATIONAL, field, "bücher.example");
    broken(&host("xn--a.example"), HOSTNAME_BROKEN_PUNYCODE, field, "xn--a");
    broken(&host(&format!("{}.example", "a".repeat(64))), HOSTNAME_LABEL_TOO_LONG, field, "at most 63");
    broken(&host("bücher.example"), INVALID_HOSTNAME, field, "write `xn--bcher-kva.example`");
    broken(&host("\"*\""), INVALID_HOSTNAME, field, "leave the field out");
    broken(&host("a_b.example"), INVALID_HOSTNAME, field, "`_`");
    broken(&host("a.example:80"), INVALID_HOSTNAME, field, "port");
    broken(&host("a.example."), INVALID_HOSTNAME, field, "dot");
    broken(&host("\"\""), INVALID_HOSTNAME, field, "is empty");
    invalid(&host("[a]"), field, "is a list, text is expected");
    invalid(&gateway("{name: a, port: 1, protocol: TCP, hostname: a.b}"), field, "must be left out");
}

#[test]
fn admission() {
    let routes = |routes: &str| gateway(&format!("{{name: a, port: 80, protocol: HTTP, allowedRoutes: {routes}}}"));
    let base = "spec.listeners[0].allowedRoutes";
    sound(&routes(
        "{namespaces: {from: Selector, selector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b]}]}}}",
    ));
    broken(
        &routes("{namespaces: {from: None}}"),
        UNKNOWN_VALUE,
        &format!("{base}.namespaces.from"),
        "All, Selector, Same",
    );
    broken(
        &routes("{namespaces: {from: Selector}}"),
        SELECTOR_MISSING,
        &format!("{base}.namespaces.selector"),
        "no namespace",
    );
    let selector =
        |s: &str| routes(&format!("{{namespaces: {{from: Selector, selector: {{matchExpressions: [{s}]}}}}}}"));
    let expression = format!("{base}.namespaces.selector.matchExpressions[0]");
    invalid(&selector("{key: a, operator: In}"), &format!("{expression}.values"), "at least one");
    invalid(&selector("{key: a, operator: Exists, values: [b]}"), &format!("{expression}.values"), "takes no values");
    broken(
        &selector("{key: a, operator: Equals, values: [b]}"),
        UNKNOWN_VALUE,
        &format!("{expression}.operator"),
        "NotIn",
    );
    let kinds = ["{kind: HTTPRoute}"; 9].join(",");
    invalid(&routes(&format!("{{kinds: [{kinds}]}}")), &format!("{base}.kinds"), "at most 8");
    sound(&gateway_with("allowedListeners: {namespaces: {from: None}}"));
    broken(
        &gateway_with("allowedListeners: [{from: Same}]"),
        ALLOWED_LISTENERS_SHAPE,
        "spec.allowedListeners",
        "early draft",
    );
}

#[test]
fn listener_filters() {
    let filters = |protocol: &str, filters: &str| {
        gateway(&format!("{{name: a, port: 80, protocol: {protocol}, filters: {{requests: [{filters}]}}}}"))
    };
    let extension = "{type: ExtensionRef, extensionRef: {group: g, kind: K, name: m}}";
    sound(&filters("HTTP", extension));
    sound(&filters(
        "HTTP",
        "{type: ExternalAuth, externalAuth: {protocol: HTTP, http: {path: /x}, backendRef: {name: s, port: 1}}}",
    ));
    invalid(&filters("TCP", extension), "spec.listeners[0].filters", "only for listeners of protocol HTTP or HTTPS");
    invalid(&filters("HTTP", "{type: ExternalAuth}"), "spec.listeners[0].filters.requests[0].externalAuth", "needs it");
    invalid(&filters("HTTP", &vec![extension; 17].join(",")), "spec.listeners[0].filters.requests", "at most 16");
}

#[test]
fn addresses() {
    let address = |a: &str| gateway_with(&format!("addresses: [{a}]"));
    sound(&address(
        "{value: 192.0.2.1}, {value: \"2001:db8::1\"}, {type: Hostname, value: a.b}, {type: Hostname}, {type: a.b/c, value: x}",
    ));
    sound(&address(
        "{value: 192.0.2.1, routability: Cluster}, {value: 192.0.2.2, routability: a.b/c}, {value: 192.0.2.3, routability: \"\"}",
    ));
    invalid(&address("{value: 256.0.0.1}"), "spec.addresses[0].value", "not an IP address");
    invalid(&address("{value: \"[::1]\"}"), "spec.addresses[0].value", "not an IP address");
    invalid(&address("{type: Hostname, value: a_b}"), "spec.addresses[0].value", "`_`");
    invalid(&address("{value: 192.0.2.1}, {value: 192.0.2.1}"), "spec.addresses[1].value", "repeats the address");
    sound(&address("{type: NamedAddress, value: x}, {type: NamedAddress, value: x}"));
    broken(&address("{type: IP, value: x}"), UNKNOWN_VALUE, "spec.addresses[0].type", "IPAddress");
    invalid(
        &address("{value: 192.0.2.1, routability: k8s.io/x}"),
        "spec.addresses[0].routability",
        "other than k8s.io",
    );
    invalid(&address("{value: 192.0.2.1, routability: Other}"), "spec.addresses[0].routability", "`Cluster`");
    let many: Vec<String> = (0..17).map(|i| format!("{{value: 192.0.2.{i}}}")).collect();
    invalid(&address(&many.join(",")), "spec.addresses", "at most 16");
}

#[test]
fn rest_of_a_gateway() {
    let infrastructure = |i: &str| gateway_with(&format!("infrastructure: {{{i}}}"));
    sound(&infrastructure(
        "labels: {a.b/c: d}, annotations: {a: \"any text!\"}, parametersRef: {group: g, kind: K, name: m}",
    ));
    invalid(&infrastructure("labels: {-a: b}"), "spec.infrastructure.labels.-a", "key");
    invalid(&infrastructure("labels: {a: \"b c\"}"), "spec.infrastructure.labels.a", "not a valid label value");
    invalid(&infrastructure("annotations: {a/b/c: b}"), "spec.infrastructure.annotations[\"a/b/c\"]", "key");
    let entries = |n: usize| (0..n).map(|i| format!("k{i}: v")).collect::<Vec<_>>().join(",");
    invalid(&infrastructure(&format!("labels: {{{}}}", entries(9))), "spec.infrastructure.labels", "at most 8");
    invalid(
        &infrastructure(&format!("annotations: {{{}}}", entries(17))),
        "spec.infrastructure.annotations",
        "at most 16",
    );
    invalid(
        &infrastructure("parametersRef: {kind: K, name: m}"),
        "spec.infrastructure.parametersRef.group",
        "is missing",
    );
    let tls = |t: &str| gateway_with(&format!("tls: {{frontend: {t}}}"));
    let ca = "validation: {caCertificateRefs: [{group: \"\", kind: ConfigMap, name: c}]}";
    sound(&tls(&format!("{{default: {{{ca}}}, perPort: [{{port: 1, tls: {{{ca}}}}}]}}")));
    sound(&gateway_with("tls: {backend: {clientCertificateRef: {name: s}}}, defaultScope: All"));
    invalid(&tls("{perPort: []}"), "spec.tls.frontend.default", "is missing");
    invalid(
        &tls("{default: {}, perPort: [{port: 1, tls: {}}, {port: 1, tls: {}}]}"),
        "spec.tls.frontend.perPort[1].port",
        "repeats",
    );
    invalid(
        &tls("{default: {validation: {}}}"),
        "spec.tls.frontend.default.validation.caCertificateRefs",
        "is missing",
    );
    let bundle = "{group: certificates.k8s.io, kind: ClusterTrustBundle, name: c, namespace: m}";
    invalid(
        &tls(&format!("{{default: {{validation: {{caCertificateRefs: [{bundle}]}}}}}}")),
        "spec.tls.frontend.default.validation.caCertificateRefs[0].namespace",
        "must be left out",
    );
    broken(&gateway_with("defaultScope: Some"), UNKNOWN_VALUE, "spec.defaultScope", "All, None");
    invalid(&v1("Gateway", "{listeners: [{name: a, port: 1, protocol: TCP}]}"), "spec.gatewayClassName", "is missing");
}

#[test]
fn listener_sets() {
    let set = |parent: &str| {
        v1("ListenerSet", &format!("{{parentRef: {parent}, listeners: [{{name: a, port: 80, protocol: HTTP}}]}}"))
    };
    sound(&set("{name: g, namespace: m}"));
    invalid(&set("{}"), "spec.parentRef.name", "is missing");
    invalid(&v1("ListenerSet", "{listeners: [{name: a, port: 80, protocol: HTTP}]}"), "spec.parentRef", "is missing");
    invalid(&v1("ListenerSet", "{parentRef: {name: g}}"), "spec.listeners", "is missing");
    invalid(
        &v1("ListenerSet", "{parentRef: {name: g}, listeners: [{name: a, protocol: HTTP}]}"),
        "spec.listeners[0].port",
        "is missing",
    );
    let draft = object(
        "gateway.networking.x-k8s.io/v1alpha1",
        "ListenerSet",
        "{parentRef: {name: g}, listeners: [{name: a, port: 80, protocol: HTTP}]}",
    );
    broken(&draft, UNKNOWN_VALUE, "apiVersion", "`gateway.networking.k8s.io/v1`");
}

#[test]
fn parents() {
    let route = |parents: &str| v1("HTTPRoute", &format!("{{parentRefs: [{parents}]}}"));
    sound(&route("{name: g, sectionName: a}, {name: g, sectionName: b}, {name: h}, {name: g, kind: ListenerSet}"));
    sound(&route("{name: g, port: 80}, {name: g, port: 81}"));
    invalid(&route("{name: g}, {name: g}"), "spec.parentRefs[1]", "repeats entry 0");
    invalid(&route("{name: g, sectionName: a}, {name: g, sectionName: a}"), "spec.parentRefs[1]", "repeats entry 0");
    invalid(&route("{name: g}, {name: g, sectionName: a}"), "spec.parentRefs[1]", "both need");
    sound(&route("{name: g}, {name: g, namespace: ns}"));
    invalid(&route("{name: g, sectionName: a}, {name: g, port: 80}"), "spec.parentRefs[1]", "both a `port`");
    invalid(&route("{sectionName: a}"), "spec.parentRefs[0].name", "is missing");
    invalid(&route("{name: g, sectionName: A}"), "spec.parentRefs[0].sectionName", "lower-case");
    invalid(&route("{name: g, port: 0}"), "spec.parentRefs[0].port", "1 to 65535");
    let many: Vec<String> = (0..33).map(|i| format!("{{name: g{i}}}")).collect();
    invalid(&route(&many.join(",")), "spec.parentRefs", "at most 32");
    broken(&v1("HTTPRoute", "{useDefaultGateways: Yes please}"), UNKNOWN_VALUE, "spec.useDefaultGateways", "All, None");
}

#[test]
fn counts_of_routes() {
    let list = |item: &str, n: usize| vec![item; n].join(",");
    let names: Vec<String> = (0..17).map(|i| format!("h{i}.a")).collect();
    invalid(&v1("HTTPRoute", &format!("{{hostnames: [{}]}}", names.join(","))), "spec.hostnames", "at most 16");
    invalid(&v1("GRPCRoute", &format!("{{hostnames: [{}]}}", names.join(","))), "spec.hostnames", "at most 16");
    invalid(&v1("HTTPRoute", &format!("{{rules: [{}]}}", list("{}", 17))), "spec.rules", "has 17 entries, 1 to 16");
    invalid(&v1("HTTPRoute", "{rules: []}"), "spec.rules", "has 0 entries");
    invalid(&v1("GRPCRoute", &format!("{{rules: [{}]}}", list("{}", 17))), "spec.rules", "at most 16");
    let matches = |n: usize| format!("{{matches: [{}]}}", list("{method: GET}", n));
    invalid(&http(&matches(65)), "spec.rules[0].matches", "at most 64");
    invalid(&http(&format!("{}, {}, {}", matches(64), matches(64), matches(1))), "spec.rules", "129 matches in all");
    invalid(&http("{name: a}, {name: a}"), "spec.rules[1].name", "repeats the rule name `a`");
    invalid(&v1("GRPCRoute", "{rules: [{name: a}, {name: a}]}"), "spec.rules[1].name", "repeats");
    invalid(&http("{name: A}"), "spec.rules[0].name", "lower-case");
    invalid(
        &http(&format!("{{backendRefs: [{}]}}", list("{name: s, port: 1}", 17))),
        "spec.rules[0].backendRefs",
        "at most 16",
    );
    broken(&v1("HTTPRoute", "{hostnames: [10.0.0.1]}"), HOSTNAME_IS_IP, "spec.hostnames[0]", "IP");
    invalid(&v1("HTTPRoute", "{hostnames: a.b}"), "spec.hostnames", "a list is expected");
}

#[test]
fn paths() {
    let path =
        |kind: &str, value: &str| http(&format!("{{matches: [{{path: {{type: {kind}, value: \"{value}\"}}}}]}}"));
    let field = "spec.rules[0].matches[0].path.value";
    for good in ["/", "/a/b", "/a%20b", "/~x", "/a/..b", "/.well-known"] {
        sound(&path("Exact", good));
        sound(&path("PathPrefix", good));
    }
    for (bad, part) in [
        ("a", "begins with `/`"),
        ("", "begins with `/`"),
        ("/a//b", "`//`"),
        ("/a/./b", "`/./`"),
        ("/a/../b", "`/../`"),
        ("/a%2fb", "`%2f`"),
        ("/a%2Fb", "`%2F`"),
        ("/a#b", "`#`"),
        ("/a/..", "end with `/..`"),
        ("/a/.", "end with `/.`"),
        ("/a b", "%XX"),
        ("/a?b", "%XX"),
        ("/a%2", "%XX"),
    ] {
        invalid(&path("Exact", bad), field, part);
        invalid(&path("PathPrefix", bad), field, part);
        sound(&path("RegularExpression", bad));
    }
    invalid(&path("RegularExpression", &"x".repeat(1025)), field, "at most 1024");
    broken(&path("Prefix", "/"), UNKNOWN_VALUE, "spec.rules[0].matches[0].path.type", "PathPrefix");
}

#[test]
fn matches() {
    let matching = |m: &str| http(&format!("{{matches: [{m}]}}"));
    let base = "spec.rules[0].matches[0]";
    sound(&matching(
        "{headers: [{name: A, value: b}, {name: c, type: RegularExpression, value: \"^d$\"}], queryParams: [{name: e, value: f}], method: GET}",
    ));
    broken(&matching("{method: get}"), UNKNOWN_VALUE, &format!("{base}.method"), "did you mean `GET`?");
    invalid(
        &matching("{headers: [{name: a, value: b}, {name: a, value: c}]}"),
        &format!("{base}.headers[1].name"),
        "repeats",
    );
    invalid(
        &matching("{queryParams: [{name: a, value: b}, {name: a, value: c}]}"),
        &format!("{base}.queryParams[1].name"),
        "repeats",
    );
    invalid(&matching("{headers: [{name: \"a b\", value: b}]}"), &format!("{base}.headers[0].name"), "letters, digits");
    invalid(&matching("{headers: [{name: a, value: \" b\"}]}"), &format!("{base}.headers[0].value"), "printable");
    invalid(&matching("{headers: [{name: a}]}"), &format!("{base}.headers[0].value"), "is missing");
    invalid(&matching("{headers: [{name: a, value: yes}]}"), &format!("{base}.headers[0].value"), "quotes");
    broken(
        &matching("{headers: [{name: a, value: b, type: Prefix}]}"),
        UNKNOWN_VALUE,
        &format!("{base}.headers[0].type"),
        "Exact",
    );
    let many: Vec<String> = (0..17).map(|i| format!("{{name: h{i}, value: v}}")).collect();
    invalid(&matching(&format!("{{headers: [{}]}}", many.join(","))), &format!("{base}.headers"), "at most 16");
}

#[test]
fn grpc_matches() {
    let method = |m: &str| v1("GRPCRoute", &format!("{{rules: [{{matches: [{{method: {m}}}]}}]}}"));
    let base = "spec.rules[0].matches[0].method";
    sound(&method("{service: a.B, method: C}"));
    sound(&method("{type: RegularExpression, service: \"a+\"}"));
    invalid(&method("{}"), base, "neither `service` nor `method`");
    invalid(&method("{service: a/b}"), &format!("{base}.service"), "a service such as");
    invalid(&method("{method: a.b}"), &format!("{base}.method"), "a method such as");
    broken(&method("{method: a, type: Prefix}"), UNKNOWN_VALUE, &format!("{base}.type"), "Exact");
}

#[test]
fn backends() {
    let backend = |b: &str| http(&format!("{{backendRefs: [{b}]}}"));
    let base = "spec.rules[0].backendRefs[0]";
    sound(&backend("{name: s, port: 80, weight: 0}, {group: other.io, kind: Bucket, name: b}"));
    sound(&backend("{group: gateway.networking.x-k8s.io, kind: XBackend, name: b}"));
    invalid(&backend("{name: s}"), &format!("{base}.port"), "needs a port");
    invalid(
        &backend("{group: gateway.networking.x-k8s.io, kind: XBackend, name: b, port: 1}"),
        &format!("{base}.port"),
        "takes no port",
    );
    invalid(&backend("{name: s, port: 80, weight: 1000001}"), &format!("{base}.weight"), "0 to 1000000");
    invalid(&backend("{name: s, port: 80, weight: -1}"), &format!("{base}.weight"), "is -1");
    invalid(&backend("{port: 80}"), &format!("{base}.name"), "is missing");
    invalid(&backend("{name: s, port: 80, kind: \"*\"}"), &format!("{base}.kind"), "a kind has letters");
    invalid(&backend("{name: s, port: 80, group: \"*\", kind: Service}"), &format!("{base}.group"), "an API group");
}

#[test]
fn filters_have_the_settings_of_their_type() {
    let filter = |f: &str| http(&format!("{{filters: [{f}]}}"));
    let base = "spec.rules[0].filters[0]";
    for (kind, field) in [
        ("RequestHeaderModifier", "requestHeaderModifier"),
        ("ResponseHeaderModifier", "responseHeaderModifier"),
        ("RequestMirror", "requestMirror"),
        ("RequestRedirect", "requestRedirect"),
        ("URLRewrite", "urlRewrite"),
        ("ExtensionRef", "extensionRef"),
        ("CORS", "cors"),
        ("ExternalAuth", "externalAuth"),
    ] {
        invalid(&filter(&format!("{{type: {kind}}}")), &format!("{base}.{field}"), "needs it");
    }
    invalid(&filter("{type: CORS, cors: {}, urlRewrite: {}}"), &format!("{base}.urlRewrite"), "must be left out");
    broken(&filter("{type: Cors}"), UNKNOWN_VALUE, &format!("{base}.type"), "did you mean `CORS`?");
    invalid(&filter("{cors: {}}"), &format!("{base}.type"), "is missing");
    let grpc = v1("GRPCRoute", "{rules: [{filters: [{type: URLRewrite}]}]}");
    broken(&grpc, UNKNOWN_VALUE, &format!("{base}.type"), "RequestMirror");
}

#[test]
fn filters_beside_each_other() {
    let redirect = "{type: RequestRedirect, requestRedirect: {scheme: https}}";
    let rewrite = "{type: URLRewrite, urlRewrite: {hostname: a.b}}";
    let mirror = "{type: RequestMirror, requestMirror: {backendRef: {name: s, port: 1}}}";
    sound(&http(&format!("{{filters: [{mirror}, {mirror}, {rewrite}]}}")));
    invalid(&http(&format!("{{filters: [{redirect}, {rewrite}]}}")), "spec.rules[0].filters[1]", "beside a redirect");
    invalid(
        &http(&format!("{{filters: [{redirect}, {redirect}]}}")),
        "spec.rules[0].filters[1].type",
        "repeats the type",
    );
    let backends = "backendRefs: [{name: s, port: 1}]";
    invalid(
        &http(&format!("{{filters: [{redirect}], {backends}}}")),
        "spec.rules[0].filters[0]",
        "redirect in a rule with backends",
    );
    invalid(&http(&format!("{{filters: [{}]}}", vec![mirror; 17].join(","))), "spec.rules[0].filters", "at most 16");
}

#[test]
fn replaced_prefixes_need_one_prefix_match() {
    let change = "path: {type: ReplacePrefixMatch, replacePrefixMatch: /x}";
    let prefix = "{path: {value: /a}}";
    let exact = "{path: {type: Exact, value: /a}}";
    for (kind, field) in [("RequestRedirect", "requestRedirect"), ("URLRewrite", "urlRewrite")] {
        let filters = format!("filters: [{{type: {kind}, {field}: {{{change}}}}}]");
        let path = format!("spec.rules[0].filters[0].{field}.path.replacePrefixMatch");
        sound(&http(&format!("{{{filters}}}")));
        sound(&http(&format!("{{matches: [{prefix}], {filters}}}")));
        invalid(&http(&format!("{{matches: [{exact}], {filters}}}")), &path, "exactly one match");
        invalid(&http(&format!("{{matches: [{prefix}, {prefix}], {filters}}}")), &path, "exactly one match");
        let backend = format!("{{matches: [{exact}], backendRefs: [{{name: s, port: 1, {filters}}}]}}");
        invalid(
            &http(&backend),
            &format!("spec.rules[0].backendRefs[0].filters[0].{field}.path.replacePrefixMatch"),
            "exactly one",
        );
    }
}

#[test]
fn settings_of_filters() {
    let filter = |kind: &str, field: &str, s: &str| http(&format!("{{filters: [{{type: {kind}, {field}: {s}}}]}}"));
    let redirect = |s: &str| filter("RequestRedirect", "requestRedirect", s);
    let base = "spec.rules[0].filters[0].requestRedirect";
    sound(&redirect(
        "{scheme: https, hostname: a.b, port: 8443, statusCode: 308, path: {type: ReplaceFullPath, replaceFullPath: /x}}",
    ));
    broken(&redirect("{scheme: ftp}"), UNKNOWN_VALUE, &format!("{base}.scheme"), "http, https");
    broken(&redirect("{statusCode: 300}"), UNKNOWN_VALUE, &format!("{base}.statusCode"), "301, 302, 303, 307, 308");
    broken(&redirect("{hostname: \"*.a\"}"), INVALID_HOSTNAME, &format!("{base}.hostname"), "wildcard");
    invalid(&redirect("{path: {type: ReplaceFullPath}}"), &format!("{base}.path.replaceFullPath"), "needs it");
    invalid(&redirect("{path: {replaceFullPath: /x}}"), &format!("{base}.path.type"), "is missing");
    let headers = |s: &str| filter("RequestHeaderModifier", "requestHeaderModifier", s);
    let base = "spec.rules[0].filters[0].requestHeaderModifier";
    sound(&headers("{set: [{name: a, value: b}], add: [{name: a, value: b}], remove: [c]}"));
    invalid(&headers("{set: [{name: a, value: b}, {name: a, value: c}]}"), &format!("{base}.set[1].name"), "repeats");
    invalid(&headers("{remove: [a, a]}"), &format!("{base}.remove[1]"), "repeats");
    invalid(&headers("{add: [{name: a}]}"), &format!("{base}.add[0].value"), "is missing");
    let mirror =
        |s: &str| filter("RequestMirror", "requestMirror", &format!("{{backendRef: {{name: s, port: 1}}, {s}}}"));
    let base = "spec.rules[0].filters[0].requestMirror";
    sound(&mirror("percent: 100"));
    sound(&mirror("fraction: {numerator: 1, denominator: 1000}"));
    invalid(&mirror("percent: 101"), &format!("{base}.percent"), "0 to 100");
    invalid(&mirror("percent: 1, fraction: {numerator: 1}"), &format!("{base}.fraction"), "must be left out");
    invalid(
        &mirror("fraction: {numerator: 101}"),
        &format!("{base}.fraction.numerator"),
        "more than the denominator 100",
    );
}

#[test]
fn cors_and_authorisation() {
    let filter = |kind: &str, field: &str, s: &str| http(&format!("{{filters: [{{type: {kind}, {field}: {s}}}]}}"));
    let cors = |s: &str| filter("CORS", "cors", s);
    let base = "spec.rules[0].filters[0].cors";
    sound(&cors(
        "{allowOrigins: [\"https://*.a\", \"http://b:1\"], allowMethods: [\"*\"], allowHeaders: [A], exposeHeaders: [\"*\", B], maxAge: 1, allowCredentials: true}",
    ));
    invalid(&cors("{allowOrigins: [\"*\", \"https://a\"]}"), &format!("{base}.allowOrigins"), "`*` stands alone");
    invalid(&cors("{allowOrigins: [a.b]}"), &format!("{base}.allowOrigins[0]"), "an origin such as");
    invalid(&cors("{allowMethods: [\"*\", GET]}"), &format!("{base}.allowMethods"), "`*` stands alone");
    broken(&cors("{allowMethods: [FETCH]}"), UNKNOWN_VALUE, &format!("{base}.allowMethods[0]"), "PATCH");
    invalid(&cors("{maxAge: 0}"), &format!("{base}.maxAge"), "is 0");
    invalid(&cors("{exposeHeaders: [a, a]}"), &format!("{base}.exposeHeaders[1]"), "repeats");
    let auth = |s: &str| filter("ExternalAuth", "externalAuth", &format!("{{backendRef: {{name: s, port: 1}}, {s}}}"));
    let base = "spec.rules[0].filters[0].externalAuth";
    sound(&auth("protocol: GRPC, grpc: {allowedHeaders: [a]}, forwardBody: {maxSize: 1}"));
    invalid(&auth("protocol: GRPC"), &format!("{base}.grpc"), "needs it");
    invalid(&auth("protocol: GRPC, grpc: {}, http: {}"), &format!("{base}.http"), "must be left out");
    invalid(&auth("protocol: HTTP, http: {path: \"/[]\"}"), &format!("{base}.http.path"), "URL path");
    broken(&auth("protocol: TCP"), UNKNOWN_VALUE, &format!("{base}.protocol"), "HTTP, GRPC");
}

#[test]
fn timeouts_retries_and_sessions() {
    let base = "spec.rules[0]";
    sound(&http("{timeouts: {request: 10s, backendRequest: 2s}, retry: {codes: [500], attempts: 3, backoff: 100ms}}"));
    sound(&http("{timeouts: {request: 0s, backendRequest: 2s}}"));
    invalid(
        &http("{timeouts: {request: 1s, backendRequest: 1500ms}}"),
        &format!("{base}.timeouts.backendRequest"),
        "longer",
    );
    invalid(&http("{timeouts: {request: 1 minute}}"), &format!("{base}.timeouts.request"), "a duration such as");
    invalid(&http("{retry: {codes: [200]}}"), &format!("{base}.retry.codes[0]"), "400 to 599");
    sound(&http("{sessionPersistence: {type: Header, header: {name: X-A}}}"));
    sound(&http("{sessionPersistence: {sessionName: a, idleTimeout: 1h, cookieConfig: {lifetimeType: Session}}}"));
    let session = |s: &str| http(&format!("{{sessionPersistence: {{{s}}}}}"));
    invalid(
        &session("cookie: {lifetimeType: Permanent}"),
        &format!("{base}.sessionPersistence.absoluteTimeout"),
        "is missing",
    );
    invalid(
        &session("type: Header, cookie: {}, header: {name: a}"),
        &format!("{base}.sessionPersistence.cookie"),
        "left out",
    );
}

#[test]
fn tls_tcp_and_udp_routes() {
    let rules = "rules: [{backendRefs: [{name: s, port: 1}]}]";
    sound(&v1("TLSRoute", &format!("{{hostnames: [a.b], {rules}}}")));
    invalid(&v1("TLSRoute", &format!("{{{rules}}}")), "spec.hostnames", "1 to 1024");
    sound(&object("gateway.networking.k8s.io/v1alpha2", "TLSRoute", &format!("{{{rules}}}")));
    for kind in ["TCPRoute", "UDPRoute"] {
        sound(&v1(kind, &format!("{{{rules}}}")));
        invalid(&v1(kind, "{}"), "spec.rules", "is missing; exactly 1 is needed");
        let two = "{rules: [{backendRefs: [{name: s, port: 1}]}, {backendRefs: [{name: s, port: 1}]}]}";
        invalid(&v1(kind, two), "spec.rules", "exactly 1 is allowed");
        sound(&object("gateway.networking.k8s.io/v1alpha2", kind, two));
        invalid(&v1(kind, "{rules: [{}]}"), "spec.rules[0].backendRefs", "1 to 16");
        broken(
            &v1(kind, &format!("{{hostnames: [a.b], {rules}}}")),
            UNKNOWN_FIELD,
            "spec.hostnames",
            &format!("is not a field of {kind}"),
        );
    }
}

#[test]
fn reference_grants() {
    let grant = |from: &str, to: &str| v1("ReferenceGrant", &format!("{{from: [{from}], to: [{to}]}}"));
    let (from, to) = ("{group: \"\", kind: Gateway, namespace: m}", "{group: \"\", kind: Secret}");
    sound(&grant(from, to));
    invalid(&grant("", to), "spec.from", "1 to 16");
    invalid(&grant(from, ""), "spec.to", "1 to 16");
    invalid(&grant(from, &vec![to; 17].join(",")), "spec.to", "has 17 entries");
    invalid(&grant("{kind: Gateway, namespace: m}", to), "spec.from[0].group", "is missing");
    invalid(&grant("{group: \"\", kind: Gateway}", to), "spec.from[0].namespace", "is missing");
}

#[test]
fn policies() {
    let policy = |kind: &str, spec: &str| {
        object("gatepost.dev/v1alpha1", kind, &format!("{{targetRef: {{kind: Gateway, name: g}}, {spec}}}"))
    };
    let dns = |spec: &str| policy("DNSPolicy", spec);
    sound(&dns(
        "ttl: 60, allowWildcardHosts: false, excludeAddresses: [10.0.0.0/8, \"::1\", a.b], providerRef: {name: p}",
    ));
    sound(&dns(
        "healthCheck: {protocol: HTTP, port: 80, path: /, interval: 5m, failureThreshold: 3, additionalHeadersRef: {name: s}}",
    ));
    invalid(&dns("ttl: 0"), "spec.ttl", "is 0");
    invalid(&dns("excludeAddresses: [10.0.0.0/33]"), "spec.excludeAddresses[0]", "10.0.0.0/8");
    invalid(&dns("healthCheck: {interval: 5}"), "spec.healthCheck.interval", "text is expected");
    invalid(&dns("healthCheck: {interval: 5 min}"), "spec.healthCheck.interval", "`10s`");
    invalid(&dns("allowWildcardHosts: maybe"), "spec.allowWildcardHosts", "true or false is expected");
    let tls = |spec: &str| policy("TLSPolicy", spec);
    sound(&tls(
        "issuerRef: {kind: ClusterIssuer, name: i}, duration: 2160h, renewBefore: 360h, privateKey: {algorithm: ECDSA, size: 256}",
    ));
    invalid(&tls("duration: 1h, renewBefore: 1h"), "spec.renewBefore", "not shorter");
    let target = |target: &str| object("gatepost.dev/v1alpha1", "DNSPolicy", &format!("{{targetRef: {target}}}"));
    broken(&target("{kind: HTTPRoute, name: r}"), UNKNOWN_VALUE, "spec.targetRef.kind", "Gateway, ListenerSet");
    invalid(&target("{kind: Gateway}"), "spec.targetRef.name", "is missing");
    invalid(&object("gatepost.dev/v1alpha1", "DNSPolicy", "{}"), "spec.targetRef", "is missing");
}

#[test]
fn metadata() {
    let meta = |m: &str| format!("apiVersion: v1\nkind: Namespace\nmetadata: {{{m}}}\n");
    sound(&meta("name: a, creationTimestamp: \"2026-03-01T10:00:00Z\", labels: {a: b}"));
    sound(&meta("name: a, creationTimestamp: null, finalizers: [x]"));
    invalid(&meta("name: a, creationTimestamp: yesterday"), "metadata.creationTimestamp", "RFC 3339");
    invalid(&meta("name: a, labels: {a: yes}"), "metadata.labels.a", "put it in quotes");
    invalid(&meta("name: A"), "metadata.name", "lower-case");
    invalid(&meta("name: a, annotations: [b]"), "metadata.annotations", "is a list, a mapping is expected");
    let route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a, label: {}}\nspec: {}\n";
    broken(route, UNKNOWN_FIELD, "metadata.label", "did you mean `labels`?");
    sound(
        "apiVersion: v1\nkind: Service\nmetadata: {name: a, other: b}\nspec: {ports: [{port: 80, nodePort: 1}], type: X}\nnonsense: 1\n",
    );
}

#[test]
fn status_is_never_judged() {
    let text = v1("Gateway", "{gatewayClassName: c, listeners: [{name: a, port: 80, protocol: HTTP}]}");
    sound(&(text.clone() + "status: {nonsense: 1, addresses: 5, conditions: [5, {type: 7}], listeners: {a: b}}\n"));
    sound(&(v1("HTTPRoute", "{}") + "status: {parents: [{parentRef: 5, conditions: {}}, 7]}\n"));
    sound(
        &(v1("GatewayClass", "{controllerName: a.b/c}")
            + "status: {supportedFeatures: [HTTPRoute, {name: Gateway}, 5]}\n"),
    );
    sound(&(text + "status: 5\n"));
}
