//! The policies of `gatepost admission` on a real API server: what they refuse, with which words, that they decide as the program
//! does, and that a controller keeps what they read. Objects are sent as dry runs, which are judged like others.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_testkit::program::{Program, words};
use gatepost_testkit::servers::kube::{Channel, Cluster, Setup, trial};
use gatepost_testkit::{Failed, Trial};
use serde_json::{Value, json};

use super::bed::{Controller, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("admission: hostnames of others are refused when they are written, as the program decides", admitted)]
}

/// Namespaces with the labels that grants ask for.
const NAMESPACES: [(&str, &str); 5] = [
    ("gatepost", "{}"),
    ("infra", "{}"),
    ("shop", "{team: shop, stage: live}"),
    ("blog", "{team: blog, stage: ''}"),
    ("evil", "{}"),
];

/// Grants: name, date, hostnames, namespaces.
const GRANTS: [(&str, &str, &str, &str); 11] = [
    ("platform", "2024-01-01", "example.org, '*.example.org'", "names: [infra]"),
    ("shop", "2024-01-02", "shop.example.org, '*.shop.example.org'", "names: [shop]"),
    ("pay", "2024-01-02", "pay.shop.example.org", "names: [blog]"),
    ("deep", "2024-01-02", "'*.b.a.shop.example.org'", "names: [blog, infra]"),
    ("both", "2024-01-02", "both.example.org", "{names: [infra], selector: {matchLabels: {team: shop}}}"),
    ("everybody", "2024-01-02", "open.example.org, '*.open.example.org'", "selector: {}"),
    ("younger", "2025-01-01", "'*.shop.example.org', young.example.org", "names: [evil]"),
    (
        "expressions",
        "2024-01-02",
        "in.example.org",
        "selector: {matchExpressions: [{key: stage, operator: In, values: [live, '']}, {key: team, operator: NotIn, values: [blog]}]}",
    ),
    (
        "absent",
        "2024-01-02",
        "absent.example.org",
        "selector: {matchExpressions: [{key: team, operator: DoesNotExist}]}",
    ),
    ("present", "2024-01-02", "present.example.org", "selector: {matchExpressions: [{key: stage, operator: Exists}]}"),
    // A name of a line in what the policies read.
    ("selector", "2024-01-02", "named.example.org", "names: [shop]"),
];

/// Hostnames at, above and below the entries of grants, and beside them.
const HOSTNAMES: [&str; 27] = [
    "example.org",
    "www.example.org",
    "*.example.org",
    "shop.example.org",
    "www.shop.example.org",
    "*.shop.example.org",
    "pay.shop.example.org",
    "*.pay.shop.example.org",
    "x.pay.shop.example.org",
    "a.shop.example.org",
    "*.a.shop.example.org",
    "b.a.shop.example.org",
    "c.b.a.shop.example.org",
    "*.b.a.shop.example.org",
    "d.c.b.a.shop.example.org",
    "both.example.org",
    "open.example.org",
    "x.open.example.org",
    "young.example.org",
    "in.example.org",
    "absent.example.org",
    "present.example.org",
    "named.example.org",
    "notexample.org",
    "xshop.example.org",
    "*.free.test",
    "free.test",
];

fn grants() -> String {
    let grant = |(name, created, hostnames, namespaces): &(&str, &str, &str, &str)| {
        let namespaces = namespaces.trim_start_matches('{').trim_end_matches('}');
        let namespaces = match namespaces.matches('{').count() - namespaces.matches('}').count() {
            0 => namespaces.to_owned(),
            missing => namespaces.to_owned() + &"}".repeat(missing),
        };
        format!(
            "apiVersion: gatepost.dev/v1alpha1\nkind: HostnameGrant\n\
             metadata: {{name: {name}, creationTimestamp: '{created}T00:00:00Z'}}\n\
             spec: {{hostnames: [{hostnames}], namespaces: {{{namespaces}}}}}\n"
        )
    };
    GRANTS.iter().map(grant).collect::<Vec<_>>().join("---\n")
}

fn namespaces() -> String {
    let namespace = |(name, labels): &(&str, &str)| {
        format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, labels: {labels}}}\n")
    };
    NAMESPACES.iter().map(namespace).collect::<Vec<_>>().join("---\n")
}

/// A name of as many labels as fit.
fn longest(below: &str) -> String {
    "x.".repeat((253 - below.len()) / 2) + below
}

fn says(line: &str, input: &str) -> Result<String, Failed> {
    let answer = Program::at(env!("CARGO_BIN_EXE_gatepost")).run(&words(line), input)?;
    assert_eq!(answer.exit, 0, "{line}: {}", answer.errors);
    Ok(answer.output)
}

/// What the API server answers to objects that are not stored: the refusals by the objects' names.
fn refusals(cluster: &Cluster, objects: &[Value]) -> BTreeMap<String, String> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let said = cluster.feed(&["create", "--dry-run=server", "-f", "-"], &list).err();
    let said = said.map(|error| error.to_string()).unwrap_or_default();
    let mut found = BTreeMap::new();
    for line in said.lines().filter(|line| line.contains("Error from server")) {
        let name = line.split('"').rfind(|part| part.starts_with("o-")).unwrap_or_else(|| panic!("{line}"));
        found.insert(name.to_owned(), line.to_owned());
    }
    found
}

/// Why the API server refuses one object; empty if it does not.
fn refusal(cluster: &Cluster, mut object: Value) -> String {
    object["metadata"]["name"] = "o-1".into();
    refusals(cluster, &[object]).remove("o-1").unwrap_or_default()
}

const GROUP: &str = "gateway.networking.k8s.io";

fn route(kind: &str, namespace: &str, hostnames: &[&str], annotations: &[(&str, &str)]) -> Value {
    let version = if ["HTTPRoute", "GRPCRoute"].contains(&kind) { "v1" } else { "v1alpha2" };
    let version = if kind == "TLSRoute" { "v1" } else { version };
    let annotations: BTreeMap<String, &str> =
        annotations.iter().map(|(name, value)| (format!("external-dns.{name}"), *value)).collect();
    let mut route = json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": kind,
        "metadata": {"namespace": namespace, "annotations": annotations},
        "spec": {"parentRefs": [{"namespace": "infra", "name": "edge"}]},
    });
    if !hostnames.is_empty() {
        route["spec"]["hostnames"] = json!(hostnames);
    }
    if !["HTTPRoute", "GRPCRoute"].contains(&kind) {
        route["spec"]["rules"] = json!([{"backendRefs": [{"name": "web", "port": 80}]}]);
    }
    route
}

fn http(namespace: &str, hostname: &str) -> Value {
    route("HTTPRoute", namespace, &[hostname], &[])
}

fn listeners(hostnames: &[&str]) -> Value {
    let listener = |(i, hostname): (usize, &&str)| {
        let mut listener = json!({"name": format!("l{i}"), "port": 80, "protocol": "HTTP"});
        if !hostname.is_empty() {
            listener["hostname"] = (*hostname).into();
        }
        listener
    };
    hostnames.iter().enumerate().map(listener).collect()
}

fn gateway(namespace: &str, hostnames: &[&str]) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Gateway", "metadata": {"namespace": namespace},
        "spec": {"gatewayClassName": "test", "listeners": listeners(hostnames)},
    })
}

fn set(namespace: &str, hostname: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ListenerSet", "metadata": {"namespace": namespace},
        "spec": {"parentRef": {"name": "edge", "namespace": "infra"}, "listeners": listeners(&[hostname])},
    })
}

fn admitted() -> Result<(), Failed> {
    let setup = Setup { channel: Channel::Experimental("v1.7.0"), users: vec!["gatepost"], ..Setup::default() };
    let cluster = Cluster::start(&setup)?;
    cluster.install_text(&gatepost_objects::crds::yaml()?)?;
    cluster.apply(&namespaces())?;
    let policies = says("admission --platform-namespace infra", "")?;
    let said = cluster.apply(&policies)?;
    assert!(!said.contains("Warning") && said.lines().count() == 4, "{said}");
    // Without what they read they refuse nothing, and fail for nobody.
    assert_eq!(refusal(&cluster, http("evil", "shop.example.org")), "");
    let settings = says("admission -f -", &grants())?;
    cluster.apply(&settings)?;
    comes_to_refuse(&cluster, "evil", "shop.example.org", "HostnameGrant/shop");
    decides_as_the_program(&cluster, "")?;
    every_kind(&cluster);
    annotations(&cluster);
    updates(&cluster)?;
    cluster.apply(&says("admission -f - --require-grants", &grants())?)?;
    comes_to_refuse(&cluster, "shop", "free.test", "no HostnameGrant covers `free.test`");
    decides_as_the_program(&cluster, "--require-grants")?;
    kept(&cluster)
}

fn comes_to_refuse(cluster: &Cluster, namespace: &str, hostname: &str, words: &str) {
    let said = || refusal(cluster, http(namespace, hostname));
    until(&format!("{hostname} is refused to {namespace}"), || said().contains(words), said);
}

/// Compares the API server with `gatepost plan` for every hostname in every namespace.
fn decides_as_the_program(cluster: &Cluster, flags: &str) -> Result<(), Failed> {
    let (long, longer) = (longest("shop.example.org"), longest("b.a.shop.example.org"));
    let hostnames: Vec<&str> = HOSTNAMES.into_iter().chain([&*long, &*longer]).collect();
    let mut routes = Vec::new();
    for (namespace, _) in NAMESPACES {
        for hostname in &hostnames {
            let mut route = http(namespace, hostname);
            route["metadata"]["name"] = format!("o-{}", routes.len()).into();
            routes.push(route);
        }
    }
    let refused: BTreeSet<String> = refusals(cluster, &routes).into_keys().collect();
    let gateway = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {namespace: infra, name: edge}\n\
         spec:\n  gatewayClassName: test\n  listeners: [{name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]\n\
         status: {addresses: [{type: IPAddress, value: 192.0.2.1}]}\n";
    let policy = "---\napiVersion: gatepost.dev/v1alpha1\nkind: DNSPolicy\nmetadata: {namespace: infra, name: dns}\n\
         spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}, allowWildcardHosts: true}\n";
    let routes_text: String = routes.iter().map(|route| format!("---\n{route}\n")).collect();
    let world = format!("{}---\n{}{gateway}{policy}{routes_text}", namespaces(), grants());
    let plan: Value = serde_json::from_str(&says(&format!("plan -f - -o json {flags}"), &world)?)?;
    let withheld = plan["withheld"].as_array().ok_or("no withheld")?.iter();
    let withheld = withheld.filter(|withheld| withheld["reason"] == "hostname-not-granted");
    let expected: BTreeSet<String> =
        withheld.filter_map(|w| Some(w["route"].as_str()?.rsplit_once('/')?.1.to_owned())).collect();
    let shown = |names: Vec<&String>| -> Vec<String> {
        let of = |name: &&&String| routes.iter().find(|route| route["metadata"]["name"] == ***name);
        names
            .iter()
            .filter_map(|name| of(&name))
            .map(|r| format!("{} {}", r["metadata"]["namespace"], r["spec"]["hostnames"][0]))
            .collect()
    };
    assert_eq!(
        (shown(refused.difference(&expected).collect()), shown(expected.difference(&refused).collect())),
        (Vec::new(), Vec::new()),
        "refused by the API server alone, and by the program alone"
    );
    assert!(expected.len() > 40 && expected.len() < routes.len() - 20, "{} of {}", expected.len(), routes.len());
    Ok(())
}

/// Routes of all kinds, Gateways and ListenerSets: those of others are refused, one's own pass.
fn every_kind(cluster: &Cluster) {
    for kind in ["HTTPRoute", "GRPCRoute", "TLSRoute"] {
        let said = refusal(cluster, route(kind, "evil", &["free.test", "www.shop.example.org"], &[]));
        let expected = "denied request: HostnameGrant/shop decides about `www.shop.example.org` and does not admit namespace `evil`: \
             use a hostname that is granted to the namespace, or ask the administrators of the cluster to admit the namespace there or to grant it the hostname";
        assert!(said.contains("Forbidden") && said.ends_with(expected), "{kind}: {said}");
        assert_eq!(refusal(cluster, route(kind, "shop", &["www.shop.example.org", "free.test"], &[])), "", "{kind}");
    }
    for kind in ["TCPRoute", "UDPRoute"] {
        let asks = |name: &'static str| route(kind, "evil", &[], &[("kubernetes.io/hostname", name)]);
        assert!(refusal(cluster, asks("shop.example.org")).contains("HostnameGrant/shop decides"), "{kind}");
        assert_eq!(refusal(cluster, asks("free.test")), "", "{kind}");
    }
    let several = refusal(cluster, route("HTTPRoute", "evil", &["a.example.org", "b.example.org", "free.test"], &[]));
    assert!(
        several.contains("`a.example.org`") && several.ends_with("(1 more of its hostnames are refused, too)"),
        "{several}"
    );
    for (hostname, words) in [
        ("www.shop.example.org", "HostnameGrant/shop decides about `www.shop.example.org`"),
        ("*.example.org", "HostnameGrant/platform decides about `*.example.org`"),
        ("*.a.example.org", "HostnameGrant/platform decides about `*.a.example.org`"),
    ] {
        let attacks = [gateway("evil", &["", hostname]), set("evil", hostname)];
        for attack in attacks {
            let said = refusal(cluster, attack.clone());
            assert!(said.contains(words) && said.contains("does not admit namespace `evil`"), "{attack}: {said}");
        }
        // The platform may listen for everybody.
        assert_eq!(refusal(cluster, gateway("infra", &[hostname])), "");
    }
    assert!(refusal(cluster, http("infra", "shop.example.org")).contains("does not admit namespace `infra`"));
    // Nor is cert-manager kept from proving names there; elsewhere its label opens nothing.
    let solver = |namespace: &str| {
        let mut route = http(namespace, "shop.example.org");
        route["metadata"]["labels"] = json!({"acme.cert-manager.io/http01-solver": "true"});
        refusal(cluster, route)
    };
    assert_eq!(solver("infra"), "");
    assert!(solver("evil").contains("does not admit namespace `evil`"));
    for sound in [
        gateway("evil", &["", "free.test"]),
        gateway("shop", &["*.shop.example.org", "shop.example.org"]),
        set("shop", "www.shop.example.org"),
        route("HTTPRoute", "evil", &[], &[]),
    ] {
        assert_eq!(refusal(cluster, sound), "");
    }
}

/// Hostnames and targets in annotations.
fn annotations(cluster: &Cluster) {
    let asks = |name: &str, value: &str| refusal(cluster, route("HTTPRoute", "evil", &["free.test"], &[(name, value)]));
    for value in
        ["shop.example.org", " free.test , SHOP.example.org. ", "free.test,,*.example.org", "s hop.example.org"]
    {
        for name in ["kubernetes.io/hostname", "alpha.kubernetes.io/hostname"] {
            assert!(asks(name, value).contains(" decides about `"), "{name}: {value}");
        }
    }
    // What is no hostname gets nothing in any case.
    for value in ["free.test", "shop_example.org", "shop.example.org/x", "шоп.example.org", "", ","] {
        assert_eq!(asks("kubernetes.io/hostname", value), "", "{value}");
    }
    let inward = [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "0.1.2.3",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "::1",
        "::",
        "fe80::1",
        "ff02::1",
        "fd00:ec2::254",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "0:0:0:0:0:ffff:7f00:1",
        "64:ff9b::7f00:1",
        "::127.0.0.1",
        "localhost",
        "LocalHost.",
        "a.localhost",
        "metadata.google.internal.",
        " 192.0.2.1, 127.0.0.1",
        "192.0.2.1,\t127.0.0.1",
        "fd20:ce::254",
        "::ffff:0:7f00:1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "64:ff9b:1::7f00:1",
        "ip6-loopback",
        "Metadata.Azure.Internal",
        "instance-data.ec2.internal",
        "127.1",
        "0x7f.1",
        "2130706433",
    ];
    let outward = [
        "192.0.2.1",
        "10.0.0.1",
        "192.168.1.1",
        "100.100.100.201",
        "2001:db8::1",
        "fd00::1",
        "64:ff9b::c000:201",
        "lb.example.net",
        "localhost.example.net",
        "notlocalhost",
        "2002:c000:201::1",
        "127.1.example.org",
        "192.0.2.1, 2001:db8::1",
        "",
    ];
    let is_inward = |value: &str| value.split(',').any(gatepost_core::publication::inward::is_inward);
    for value in inward {
        assert!(is_inward(value) && asks("kubernetes.io/target", value).contains("points inwards"), "{value}");
    }
    for value in outward {
        assert!(!is_inward(value) && asks("alpha.kubernetes.io/target", value).is_empty(), "{value}");
    }
    let mut gateway = gateway("evil", &[""]);
    gateway["metadata"]["annotations"] = json!({"external-dns.kubernetes.io/target": "127.0.0.1"});
    assert!(refusal(cluster, gateway).contains("points inwards"));
}

/// An object from before a grant keeps what it has, can be repaired and deleted, and gets nothing more.
fn updates(cluster: &Cluster) -> Result<(), Failed> {
    let before = says("admission -f -", &grants().replace("names: [shop]", "names: [shop, evil]"))?;
    let after = says("admission -f -", &grants())?;
    cluster.apply(&before)?;
    let mut old = route("HTTPRoute", "evil", &["www.shop.example.org", "free.test"], &[]);
    old["metadata"]["name"] = "o-1".into();
    old["metadata"]["finalizers"] = json!(["example.org/last"]);
    let put = |object: &Value| cluster.feed(&["apply", "-f", "-"], &object.to_string());
    until("the namespace is admitted", || put(&old).is_ok(), String::new);
    cluster.apply(&after)?;
    comes_to_refuse(cluster, "evil", "shop.example.org", "HostnameGrant/shop");
    old["metadata"]["labels"] = json!({"a": "b"});
    put(&old)?;
    let mut more = old.clone();
    more["spec"]["hostnames"] = json!(["www.shop.example.org", "api.shop.example.org"]);
    let said = put(&more).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(said.contains("decides about `api.shop.example.org`"), "{said}");
    more["spec"]["hostnames"] = json!(["free.test"]);
    put(&more)?;
    let said = put(&old).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(said.contains("decides about `www.shop.example.org`"), "{said}");
    cluster.delete("httproute/o-1", "evil")?;
    cluster.kubectl(&[
        "patch",
        "httproute/o-1",
        "-n",
        "evil",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ])?;
    assert!(cluster.kubectl(&["get", "httproute/o-1", "-n", "evil"]).is_err());
    Ok(())
}

/// A controller with the rights of `gatepost rbac --admission` and no others writes the grants of the cluster.
fn kept(cluster: &Cluster) -> Result<(), Failed> {
    let rights = says("rbac --admission", "")?
        .replace("kind: ServiceAccount\n  name: gatepost\n  namespace: gatepost", "kind: User\n  name: gatepost");
    cluster.apply(&rights)?;
    cluster.kubectl(&["create", "clusterrolebinding", "tester", "--clusterrole=gatepost", "--user=gatepost"])?;
    cluster.kubectl(&["create", "rolebinding", "tester", "--role=gatepost", "--user=gatepost", "-n", "gatepost"])?;
    let grant = |namespace: &str| {
        format!(
            "apiVersion: gatepost.dev/v1alpha1\nkind: HostnameGrant\nmetadata: {{name: late}}\nspec: {{hostnames: [late.example.org], namespaces: {{names: [{namespace}]}}}}\n"
        )
    };
    cluster.apply(&grant("evil"))?;
    let words = ["--policy", "sync", "--admission", "--controller-namespace", "gatepost"];
    let controller = Controller::start(&cluster.kubeconfig("gatepost"), &words);
    // Only one grant is in the cluster, and none is required: what was there before goes.
    let said = || refusal(cluster, http("shop", "late.example.org"));
    until("the grant counts", || said().contains("HostnameGrant/late"), || format!("{}\n{}", said(), controller.log()));
    assert_eq!(refusal(cluster, http("evil", "late.example.org")), "");
    assert_eq!(refusal(cluster, http("evil", "shop.example.org")), "");
    cluster.apply(&grant("shop"))?;
    let said = || refusal(cluster, http("evil", "late.example.org"));
    until(
        "the changed grant counts",
        || said().contains("HostnameGrant/late"),
        || format!("{}\n{}", said(), controller.log()),
    );
    assert_eq!(refusal(cluster, http("shop", "late.example.org")), "");
    cluster.kubectl(&["delete", "hostnamegrant/late"])?;
    until("it is gone", || said().is_empty(), || format!("{}\n{}", said(), controller.log()));
    let data = cluster.json(&["configmap", "gatepost-hostname-grants", "-n", "gatepost"])?;
    assert_eq!(data["data"].as_object().map(|data| data.len()), Some(3), "{data}");
    Ok(())
}
