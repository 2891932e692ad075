//! The chart, with the real Helm on a real API server: what it renders is accepted, what is wrong is refused by its schema,
//! and a controller that has its rights and its settings, and nothing else, does its work.

use std::collections::BTreeSet;
use std::path::PathBuf;

use gatepost_testkit::servers::helm::{self, Helm};
use gatepost_testkit::servers::kube::{ADMIN, Cluster, Setup};
use gatepost_testkit::servers::{DnsServer, KEY_NAME, KEY_SECRET};
use gatepost_testkit::{Failed, Trial, tree};
use serde_json::{Value, json};

use super::bed::{Controller, bind, cluster, route, route_text, until, zone_comes_to};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        helm::trial("the chart: what it renders is accepted by the API server, whatever is switched on", accepted),
        helm::trial("the chart: values that cannot work are refused", refused),
        helm::trial("the chart: a controller with its settings and rights publishes and reports", runs),
        helm::trial("the chart: alerts and dashboard ask for numbers that /metrics tells", numbers),
    ]
}

/// Values, from nothing to everything.
const VALUES: [(&str, &str); 8] = [
    ("plain", ""),
    (
        "everything",
        "settings: {provider: embedded, policy: sync, zone: [example.org]}\ndns: {enabled: true, service: {type: LoadBalancer}}\n\
         metrics: {serviceMonitor: {enabled: true}, prometheusRule: {enabled: true, labels: {team: x}}, dashboard: {enabled: true}}\n\
         existingSecret: tsig\nimagePullSecrets: [{name: pull}]\npodAnnotations: {a: b}\npodLabels: {c: d}\n\
         priorityClassName: system-cluster-critical\nnodeSelector: {kubernetes.io/os: linux}\n\
         tolerations: [{operator: Exists}]\nnetworkPolicy: {metricsFrom: [{podSelector: {}}], egress: [{ports: [{port: 53}]}]}\n",
    ),
    ("one replica", "replicas: 1\ncrds: {install: false}\nnetworkPolicy: {enabled: false}\n"),
    ("others' account", "serviceAccount: {create: false, name: somebody}\nrbac: {create: false}\n"),
    (
        "certificates",
        "settings: {provider: embedded, issuer: embedded, policy: sync}\nrbac: {certificateNamespaces: [infra]}\n",
    ),
    (
        "admission",
        "settings: {provider: embedded, policy: sync, lease: other, require-grants: true}\n\
         admission: {enabled: true, platformNamespaces: [infra, edge]}\n",
    ),
    (
        "page",
        "page: {enabled: true, hosts: [page.example.org], basePath: /gatepost, httpRoute: {enabled: true, parentRefs: [{name: edge, namespace: infra}]}}\n",
    ),
    ("endpoints", "settings: {provider: dnsendpoint, source: [gateway-httproute], policy: upsert-only}\n"),
];

fn accepted() -> Result<(), Failed> {
    let (cluster, helm) = (cluster(&Setup::default())?, Helm::find()?);
    cluster.install_text(&stand_ins())?;
    cluster.kubectl(&["label", "namespace", "gatepost", "pod-security.kubernetes.io/enforce=restricted"])?;
    for (name, values) in VALUES {
        let file = helm.values("values.yaml", values)?;
        let words = ["template", "release", &helm::chart(), "-n", "gatepost", "--kube-version", "1.36.3", "-f", &file];
        let rendered = helm.run(&words)?;
        let said = cluster.feed(&["apply", "--server-side", "--dry-run=server", "-f", "-"], &rendered)?;
        assert!(said.contains("deployment.apps/release-gatepost serverside-applied"), "{name}: {said}");
        assert!(!said.contains("Warning"), "{name}: {said}");
        let pod = pod(&cluster, &rendered)?;
        cluster.feed(&["create", "--dry-run=server", "-f", "-"], &pod.to_string())?;
    }
    Ok(())
}

/// The pod that the Deployment would make: admission judges pods, and only warns about what makes them.
fn pod(cluster: &Cluster, rendered: &str) -> Result<Value, Failed> {
    let text = cluster.feed(&["create", "--dry-run=client", "-o", "json", "-f", "-"], rendered)?;
    let objects = serde_json::Deserializer::from_str(&text).into_iter::<Value>().collect::<Result<Vec<_>, _>>()?;
    let lists = objects.iter().flat_map(|object| object["items"].as_array().cloned().unwrap_or(vec![object.clone()]));
    let deployment = lists.into_iter().find(|object| object["kind"] == "Deployment").ok_or("no Deployment")?;
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["name"] = "pod".into();
    template["metadata"]["namespace"] = "gatepost".into();
    // A class of priority that the cluster would have to know, with its number.
    template["spec"].as_object_mut().ok_or("no pod")?.remove("priorityClassName");
    Ok(json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]}))
}

/// CRDs of others, without their schemas.
fn stand_ins() -> String {
    let one = |kind: &str, plural: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.monitoring.coreos.com}}\n\
             spec:\n  group: monitoring.coreos.com\n  scope: Namespaced\n  \
             names: {{kind: {kind}, listKind: {kind}List, plural: {plural}, singular: {}}}\n  versions:\n  \
             - name: v1\n    served: true\n    storage: true\n    \
             schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}\n",
            kind.to_ascii_lowercase()
        )
    };
    one("ServiceMonitor", "servicemonitors") + "---\n" + &one("PrometheusRule", "prometheusrules")
}

fn refused() -> Result<(), Failed> {
    let helm = Helm::find()?;
    let wrong = [
        ("settings: {provider: azure}", "provider"),
        ("settings: {policy: everything}", "policy"),
        ("settings: {source: [service]}", "source"),
        ("settings: {Provider: embedded}", "Provider"),
        ("settings: {rfc2136-tsig-secret: c2VjcmV0}", "rfc2136-tsig-secret"),
        ("replicas: 2.5", "replicas"),
        ("admission: {platformNamespaces: ['*']}", "platformNamespaces"),
        ("http: {port: 80}", "port"),
        ("metrics: {alerts: {enabled: true}}", "alerts"),
        ("page: {basePath: gatepost/}", "basePath"),
        ("terminationGracePeriodSeconds: 3", "terminationGracePeriodSeconds"),
        ("extraArgs: [--policy=sync]", "extraArgs"),
    ];
    for (values, named) in wrong {
        let file = helm.values("wrong.yaml", values)?;
        let said = helm.run(&["template", "release", &helm::chart(), "-f", &file]);
        let said = said.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains("schema") && said.contains(named), "{values}: {said}");
    }
    let incomplete = [
        ("settings: {issuer: acme}", "certificateNamespaces"),
        ("page: {httpRoute: {enabled: true}}", "page.enabled"),
        ("page: {enabled: true, httpRoute: {enabled: true}}", "page.hosts"),
    ];
    for (values, named) in incomplete {
        let file = helm.values("wrong.yaml", values)?;
        let words = ["template", "release", &helm::chart(), "--kube-version", "1.36.3", "-f", &file];
        let said = helm.run(&words).err().map(|error| error.to_string());
        assert!(said.as_ref().is_some_and(|said| said.contains(named)), "{values}: {said:?}");
    }
    Ok(())
}

/// Settings that lead to BIND, as somebody would write them; the secret stands in a file.
fn settings(zone: &DnsServer, secret: &str) -> Value {
    json!({
        "provider": "rfc2136", "rfc2136-host": [zone.address.ip().to_string()],
        "rfc2136-port": zone.address.port(), "rfc2136-zone": ["example.org"], "rfc2136-tsig-keyname": KEY_NAME,
        "rfc2136-tsig-secret-file": secret, "policy": "sync", "interval": "5s",
    })
}

/// A kubeconfig with a token of the chart's account.
fn account(cluster: &Cluster) -> Result<PathBuf, Failed> {
    let token = cluster.kubectl(&["create", "token", "gatepost", "-n", "gatepost"])?;
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(cluster.kubeconfig(ADMIN))?)?;
    config["users"][0]["user"] = json!({"token": token.trim()});
    let path = cluster.folder().join("account.kubeconfig");
    std::fs::write(&path, config.to_string())?;
    Ok(path)
}

fn runs() -> Result<(), Failed> {
    let (cluster, zone, helm) = (cluster(&Setup::default())?, bind()?, Helm::find()?);
    let secret = cluster.folder().join("tsig");
    std::fs::write(&secret, KEY_SECRET)?;
    let values = json!({"settings": settings(&zone, secret.to_str().unwrap()), "crds": {"install": false},
        "admission": {"enabled": true, "platformNamespaces": ["infra"]}})
    .to_string();
    let (file, config) = (helm.values("values.json", &values)?, cluster.kubeconfig(ADMIN).display().to_string());
    let install = ["install", "gatepost", &helm::chart(), "-n", "gatepost", "--kubeconfig", &config, "-f", &file];
    let said = helm.run(&install)?;
    assert!(said.contains("Gatepost runs in gatepost."), "{said}");
    let map = cluster.json(&["configmap", "gatepost", "-n", "gatepost"])?;
    let settings = cluster.folder().join("settings.yaml");
    std::fs::write(&settings, map["data"]["settings.yaml"].as_str().unwrap_or_default())?;
    let account = account(&cluster)?;
    let program = gatepost_testkit::program::Program::at(env!("CARGO_BIN_EXE_gatepost"));
    let pre = ["check", "--pre", "--kubeconfig", account.to_str().unwrap()].map(str::to_owned);
    let answer = program.run(&pre, "")?;
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    let controller = Controller::start(&account, &["--settings", settings.to_str().unwrap()]);
    route(&cluster, "web", "www.example.org")?;
    cluster.apply(
        "apiVersion: gatepost.dev/v1alpha1\nkind: DNSPolicy\nmetadata: {namespace: infra, name: dns}\n\
         spec: {allowWildcardHosts: false, targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}}\n",
    )?;
    zone_comes_to(&zone, &["www.example.org 192.0.2.1"], &[&controller]);
    controller.is_ready();
    let status = || cluster.kubectl(&["get", "dnspolicy", "-n", "infra"]).unwrap_or_default();
    until("the policy has its status", || status().contains("True"), || status() + &controller.log());
    let events = || cluster.kubectl(&["get", "events", "-n", "shop"]).unwrap_or_default();
    until("the route has its Event", || events().contains("HostnamePublished"), || events() + &controller.log());
    cluster.apply(
        "apiVersion: gatepost.dev/v1alpha1\nkind: HostnameGrant\nmetadata: {name: blog}\n\
         spec: {hostnames: [blog.example.org], namespaces: {names: [blog]}}\n",
    )?;
    let dry_run = |object: &str| {
        let said = cluster.feed(&["create", "--dry-run=server", "-f", "-"], object);
        said.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let said = || dry_run(&route_text("grab", "blog.example.org"));
    until("the policy refuses", || said().contains("HostnameGrant/blog decides"), || said() + &controller.log());
    assert_eq!(dry_run(&route_text("sound", "sound.example.org")), "");
    assert!(!controller.log().contains("forbidden"), "{}", controller.log());
    helm.run(&["uninstall", "gatepost", "-n", "gatepost", "--kubeconfig", &config])?;
    Ok(())
}

/// The numbers that a text asks for.
fn asked(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let names =
        text.split("gatepost_").skip(1).map(|rest| rest.chars().take_while(|c| is_part(*c)).collect::<String>());
    names.filter(|name| !name.is_empty()).map(|name| format!("gatepost_{name}")).collect()
}

fn numbers() -> Result<(), Failed> {
    let cluster = cluster(&Setup::default())?;
    let controller =
        Controller::start(&cluster.kubeconfig(ADMIN), &["--provider", "embedded", "--zone", "example.org"]);
    controller.is_ready();
    let told = controller.get("/metrics");
    // A family whose last line has a label that nothing has now is told by its type alone.
    let families = told.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let name = |(name, kind): (&str, &str)| if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
    let families: BTreeSet<String> = families.map(name).collect();
    assert!(families.len() > 10, "{told}");
    for file in ["alerts.yaml", "dashboard.json"] {
        let text = tree::text(&tree::root().join("charts/gatepost/files").join(file))?;
        let asked = asked(&text);
        assert!(asked.len() > 5, "{file}: {asked:?}");
        let unknown: Vec<_> = asked.difference(&families).collect();
        assert!(unknown.is_empty(), "{file} asks for {unknown:?}, and /metrics tells {families:?}");
    }
    let page = tree::text(&tree::root().join("docs/controller.md"))?;
    let short = |name: &String| name.replacen("gatepost", "", 1);
    let missing: Vec<_> = families.iter().filter(|name| !page.contains(&short(name))).collect();
    assert!(missing.is_empty(), "docs/controller.md does not name {missing:?}");
    Ok(())
}
