//! From one end to the other: objects of every kind come, change and go, and the name server's answers follow. The same story
//! on BIND and on the embedded server.

use std::net::SocketAddr;
use std::process::Command;

use gatepost_testkit::servers::DnsServer;
use gatepost_testkit::servers::kube::{ADMIN, Cluster, Setup};
use gatepost_testkit::{Failed, Trial};

use super::bed::{
    Controller, WORLD, accept, accept_route, accept_set, bind, cluster, route, route_status, trial, until,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("the zone on BIND follows objects of every kind", || story(&Bed::on_bind()?)),
        trial("the embedded server follows objects of every kind", || story(&Bed::embedded()?)),
    ]
}

/// A cluster, a controller, and the name server that is asked.
struct Bed {
    cluster: Cluster,
    controller: Controller,
    server: SocketAddr,
    _bind: Option<DnsServer>,
}

/// Every name that the story knows.
const NAMES: [&str; 9] = ["api", "any", "grant", "picky", "shop", "tcp", "tls", "udp", "www"];

impl Bed {
    fn on_bind() -> Result<Bed, Failed> {
        let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
        let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
        Ok(Bed { cluster, controller, server: zone.address, _bind: Some(zone) })
    }

    fn embedded() -> Result<Bed, Failed> {
        let cluster = cluster(&Setup::default())?;
        let words = ["--provider", "embedded", "--zone", "example.org", "--policy", "sync"];
        let controller = Controller::start(&cluster.kubeconfig(ADMIN), &words);
        let server = controller.dns.unwrap();
        Ok(Bed { cluster, controller, server, _bind: None })
    }

    /// What the name server answers: `name address`, sorted, without the zone's name.
    fn names(&self) -> Vec<String> {
        asked(self.server)
    }

    fn comes_to(&self, expected: &[&str]) {
        let state = || format!("{:?}\n{}", self.names(), self.controller.log());
        until(&format!("the names are {expected:?}"), || self.names() == expected, state);
    }

    fn stays(&self, expected: &[&str]) {
        self.controller.passes_again(|| assert_eq!(self.names(), expected, "{}", self.controller.log()));
    }

    fn apply(&self, objects: &str) -> Result<(), Failed> {
        self.cluster.apply(objects)?;
        Ok(())
    }
}

/// The answers to every name of the story, and all that dig said if the server did not answer every question.
fn asked(server: SocketAddr) -> Vec<String> {
    let (host, port) = (format!("@{}", server.ip()), server.port().to_string());
    let mut command = Command::new("dig");
    command.args(["+noall", "+answer", "+comments", "+time=5", "+tries=3", "-p", &port, &host]);
    for name in NAMES {
        let name = format!("{}.example.org", if name == "any" { "below.any" } else { name });
        command.args([&*name, "A", &name, "AAAA"]);
    }
    let said = command.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let lines = said.lines().filter(|line| !line.starts_with(';'));
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>()).filter(|words| words.len() > 4);
    let line = |words: Vec<&str>| format!("{} {}", words[0], words[4]).replace(".example.org. ", " ");
    let mut found: Vec<String> = words.map(line).map(|line| line.replace("below.any ", "*.any ")).collect();
    found.sort();
    let answered = |status: &str| said.matches(&format!("status: {status},")).count();
    if answered("NOERROR") + answered("NXDOMAIN") != 2 * NAMES.len() {
        found.push(format!("not every question was answered: {said}"));
    }
    found
}

fn story(bed: &Bed) -> Result<(), Failed> {
    a_crowd(bed)?;
    a_route_and_its_gateway(bed)?;
    other_kinds(bed)?;
    ports_without_hostnames(bed)?;
    labels_of_a_namespace(bed)?;
    a_grant(bed)?;
    a_hostname_grant(bed)?;
    a_policy(bed)?;
    everything_goes(bed)?;
    what_people_read(bed)
}

/// Names that stay as they are, so many that what goes in the story is never a third of the zone.
fn a_crowd(bed: &Bed) -> Result<(), Failed> {
    bed.apply(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {namespace: infra, name: crowd}\nspec:\n  \
         gatewayClassName: test\n  listeners:\n  \
         - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}\n",
    )?;
    accept(&bed.cluster, "crowd", &["192.0.2.9"])?;
    for route in 0..5 {
        let names: Vec<String> = (0..16).map(|i| format!("crowd{route}-{i}.example.org")).collect();
        bed.apply(&format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{namespace: shop, name: crowd{route}}}\n\
             spec: {{hostnames: [{}], parentRefs: [{{namespace: infra, name: crowd}}]}}\n",
            names.join(", ")
        ))?;
        accept_route(&bed.cluster, "httproute", &format!("crowd{route}"))?;
    }
    Ok(())
}

fn a_route_and_its_gateway(bed: &Bed) -> Result<(), Failed> {
    route(&bed.cluster, "web", "www.example.org")?;
    bed.comes_to(&["www 192.0.2.1"]);
    bed.controller.is_ready();
    route(&bed.cluster, "web", "shop.example.org")?;
    bed.comes_to(&["shop 192.0.2.1"]);
    accept(&bed.cluster, "edge", &["192.0.2.1", "2001:db8::1"])?;
    bed.comes_to(&["shop 192.0.2.1", "shop 2001:db8::1"]);
    accept(&bed.cluster, "edge", &["192.0.2.1"])?;
    bed.comes_to(&["shop 192.0.2.1"]);
    Ok(())
}

/// A GRPCRoute, and a TLSRoute on a ListenerSet that changes its hostname.
fn other_kinds(bed: &Bed) -> Result<(), Failed> {
    let set = |hostname: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: ListenerSet\nmetadata: {{namespace: shop, name: extra}}\nspec:\n  \
             parentRef: {{namespace: infra, name: edge}}\n  listeners:\n  \
             - {{name: tls, port: 443, protocol: TLS, hostname: {hostname}, tls: {{mode: Passthrough}}}}\n"
        )
    };
    bed.apply(&set("other.example.org"))?;
    bed.apply(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: GRPCRoute\nmetadata: {namespace: shop, name: api}\n\
         spec: {hostnames: [api.example.org], parentRefs: [{namespace: infra, name: edge}]}\n---\n\
         apiVersion: gateway.networking.k8s.io/v1\nkind: TLSRoute\nmetadata: {namespace: shop, name: raw}\nspec:\n  \
         hostnames: [tls.example.org]\n  \
         parentRefs: [{group: gateway.networking.k8s.io, kind: ListenerSet, name: extra}]\n  \
         rules: [{backendRefs: [{name: x, port: 443}]}]\n",
    )?;
    accept_set(&bed.cluster, "extra")?;
    accept_route(&bed.cluster, "grpcroute", "api")?;
    route_status(&bed.cluster, "tlsroute", "raw", "False")?;
    bed.comes_to(&["api 192.0.2.1", "shop 192.0.2.1"]);
    bed.apply(&set("tls.example.org"))?;
    accept_set(&bed.cluster, "extra")?;
    accept_route(&bed.cluster, "tlsroute", "raw")?;
    bed.comes_to(&["api 192.0.2.1", "shop 192.0.2.1", "tls 192.0.2.1"]);
    Ok(())
}

/// TCPRoute and UDPRoute have no hostnames, and neither have their listeners: an annotation names them.
fn ports_without_hostnames(bed: &Bed) -> Result<(), Failed> {
    bed.apply(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {namespace: infra, name: ports}\nspec:\n  \
         gatewayClassName: test\n  listeners:\n  \
         - {name: tcp, port: 9000, protocol: TCP, allowedRoutes: {namespaces: {from: All}}}\n  \
         - {name: udp, port: 9000, protocol: UDP, allowedRoutes: {namespaces: {from: All}}}\n",
    )?;
    accept(&bed.cluster, "ports", &["192.0.2.4"])?;
    let port = |kind: &str, name: &str, hostname: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: {kind}\nmetadata:\n  namespace: shop\n  name: {name}\n  \
             annotations: {{external-dns.kubernetes.io/hostname: {hostname}}}\nspec:\n  \
             parentRefs: [{{namespace: infra, name: ports, sectionName: {name}}}]\n  \
             rules: [{{backendRefs: [{{name: x, port: 9000}}]}}]\n"
        )
    };
    for (kind, name) in [("TCPRoute", "tcp"), ("UDPRoute", "udp")] {
        bed.apply(&port(kind, name, &format!("{name}.example.org")))?;
        accept_route(&bed.cluster, &kind.to_ascii_lowercase(), name)?;
    }
    let others = ["api 192.0.2.1", "shop 192.0.2.1"];
    bed.comes_to(&[&others[..], &["tcp 192.0.2.4", "tls 192.0.2.1", "udp 192.0.2.4"]].concat());
    accept(&bed.cluster, "ports", &["192.0.2.5"])?;
    bed.comes_to(&[&others[..], &["tcp 192.0.2.5", "tls 192.0.2.1", "udp 192.0.2.5"]].concat());
    bed.cluster.delete("tcproute/tcp", "shop")?;
    bed.comes_to(&[&others[..], &["tls 192.0.2.1", "udp 192.0.2.5"]].concat());
    // A Gateway that goes takes the names of its routes.
    bed.cluster.delete("gateway/ports", "infra")?;
    route_status(&bed.cluster, "udproute", "udp", "False")?;
    bed.comes_to(&[&others[..], &["tls 192.0.2.1"]].concat());
    Ok(())
}

/// A listener that admits namespaces by label. As long as the implementation still says yes, what is published is kept.
fn labels_of_a_namespace(bed: &Bed) -> Result<(), Failed> {
    bed.apply(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {namespace: infra, name: picky}\nspec:\n  \
         gatewayClassName: test\n  listeners:\n  - name: http\n    port: 80\n    protocol: HTTP\n    \
         allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: shop}}}}\n---\n\
         apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {namespace: shop, name: picky}\n\
         spec: {hostnames: [picky.example.org], parentRefs: [{namespace: infra, name: picky}]}\n",
    )?;
    accept(&bed.cluster, "picky", &["192.0.2.6"])?;
    accept_route(&bed.cluster, "httproute", "picky")?;
    let with = ["api 192.0.2.1", "picky 192.0.2.6", "shop 192.0.2.1", "tls 192.0.2.1"];
    let without = ["api 192.0.2.1", "shop 192.0.2.1", "tls 192.0.2.1"];
    bed.comes_to(&with);
    bed.cluster.kubectl(&["label", "--overwrite", "namespace", "shop", "team=other"])?;
    bed.controller.says("status-disagrees");
    bed.stays(&with);
    route_status(&bed.cluster, "httproute", "picky", "False")?;
    bed.comes_to(&without);
    bed.cluster.kubectl(&["label", "--overwrite", "namespace", "shop", "team=shop"])?;
    accept_route(&bed.cluster, "httproute", "picky")?;
    bed.comes_to(&with);
    bed.cluster.delete("httproute/picky", "shop")?;
    bed.comes_to(&without);
    Ok(())
}

/// A grant decides whether a listener may use a certificate of another namespace. Attachment does not depend on it, and so the
/// name stays; what is said about the listener follows.
fn a_grant(bed: &Bed) -> Result<(), Failed> {
    bed.apply(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {namespace: infra, name: secure}\nspec:\n  \
         gatewayClassName: test\n  listeners:\n  - name: https\n    port: 443\n    protocol: HTTPS\n    \
         hostname: grant.example.org\n    tls: {certificateRefs: [{namespace: shop, name: pair}]}\n    \
         allowedRoutes: {namespaces: {from: All}}\n---\n\
         apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {namespace: shop, name: grant}\n\
         spec: {parentRefs: [{namespace: infra, name: secure}]}\n",
    )?;
    accept(&bed.cluster, "secure", &["192.0.2.7"])?;
    accept_route(&bed.cluster, "httproute", "grant")?;
    let with = ["api 192.0.2.1", "grant 192.0.2.7", "shop 192.0.2.1", "tls 192.0.2.1"];
    bed.comes_to(&with);
    let config = bed.cluster.kubeconfig(ADMIN).display().to_string();
    let program = gatepost_testkit::program::Program::at(env!("CARGO_BIN_EXE_gatepost"));
    let complains = || -> Result<bool, Failed> {
        let words = ["check", "--kubeconfig", &config].map(str::to_owned);
        Ok(program.run(&words, "")?.output.contains("error[reference-not-permitted]: Gateway/infra/secure"))
    };
    assert!(complains()?);
    bed.apply(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: ReferenceGrant\nmetadata: {namespace: shop, name: pair}\nspec:\n  \
         from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: infra}]\n  to: [{group: '', kind: Secret}]\n",
    )?;
    assert!(!complains()?);
    bed.stays(&with);
    bed.cluster.delete("referencegrant/pair", "shop")?;
    assert!(complains()?);
    bed.stays(&with);
    bed.cluster.delete("httproute/grant", "shop")?;
    bed.comes_to(&["api 192.0.2.1", "shop 192.0.2.1", "tls 192.0.2.1"]);
    Ok(())
}

/// A HostnameGrant gives a name to another namespace, to the namespaces with a label, and goes. The API server refuses one that
/// could not be understood.
fn a_hostname_grant(bed: &Bed) -> Result<(), Failed> {
    let grant = |hostname: &str, namespaces: &str| {
        format!(
            "apiVersion: gatepost.dev/v1alpha1\nkind: HostnameGrant\nmetadata: {{name: shop}}\n\
             spec: {{hostnames: ['{hostname}'], namespaces: {namespaces}}}\n"
        )
    };
    for (hostname, namespaces, told) in [
        ("*.shop..example.org", "{names: [shop]}", "spec.hostnames[0]"),
        ("Shop.example.org", "{names: [shop]}", "spec.hostnames[0]"),
        ("192.0.2.1", "{names: [shop]}", "a hostname must not be an IP address"),
        ("shop.example.org", "{}", "names or selector must say which namespaces may have the hostnames"),
        ("shop.example.org", "{names: [shop, shop]}", "duplicate entries"),
        (
            "shop.example.org",
            "{selector: {matchExpressions: [{key: team, operator: In}]}}",
            "values must be set for the operators In and NotIn",
        ),
    ] {
        let said = bed.cluster.apply(&grant(hostname, namespaces)).err().map(|error| error.to_string());
        assert!(said.as_ref().is_some_and(|said| said.contains(told)), "{hostname} {namespaces}: {said:?}");
    }
    let with = ["api 192.0.2.1", "shop 192.0.2.1", "tls 192.0.2.1"];
    let without = ["api 192.0.2.1", "tls 192.0.2.1"];
    bed.apply(&grant("shop.example.org", "{names: [infra]}"))?;
    bed.comes_to(&without);
    bed.controller.says("hostname-not-granted");
    bed.apply(&grant("shop.example.org", "{selector: {matchLabels: {team: shop}}}"))?;
    bed.comes_to(&with);
    bed.cluster.kubectl(&["label", "--overwrite", "namespace", "shop", "team=other"])?;
    bed.comes_to(&without);
    let listed = bed.cluster.kubectl(&["get", "hostnamegrants"])?;
    assert!(listed.contains("HOSTNAMES") && listed.contains("[\"shop.example.org\"]"), "{listed}");
    bed.cluster.delete("hostnamegrant/shop", "infra")?;
    bed.comes_to(&with);
    bed.cluster.kubectl(&["label", "--overwrite", "namespace", "shop", "team=shop"])?;
    Ok(())
}

/// A DNSPolicy forbids wildcards, allows them, leaves an address out, and goes.
fn a_policy(bed: &Bed) -> Result<(), Failed> {
    let policy = |spec: &str| {
        format!(
            "apiVersion: gatepost.dev/v1alpha1\nkind: DNSPolicy\nmetadata: {{namespace: infra, name: dns}}\n\
             spec: {{targetRef: {{group: gateway.networking.k8s.io, kind: Gateway, name: edge}}, {spec}}}\n"
        )
    };
    accept(&bed.cluster, "edge", &["192.0.2.1", "192.0.2.2"])?;
    bed.apply(&policy("allowWildcardHosts: false, excludeAddresses: [192.0.2.2]"))?;
    let without = ["api 192.0.2.1", "shop 192.0.2.1", "tls 192.0.2.1"];
    bed.comes_to(&without);
    route(&bed.cluster, "any", "*.any.example.org")?;
    let live = || bed.cluster.json(&["dnspolicy", "dns", "-n", "infra"]).unwrap_or_default();
    let counts = |served: u64, skipped: u64| {
        let found = live()["status"]["counts"].clone();
        found["served"] == served && found["skipped"] == skipped
    };
    until("the policy counts", || counts(3, 1), || live().to_string());
    bed.stays(&without);
    bed.apply(&policy("allowWildcardHosts: true, excludeAddresses: [192.0.2.2]"))?;
    // Now the listener's own wildcard answers for every name.
    let mut every: Vec<String> =
        NAMES.iter().map(|name| format!("{name} 192.0.2.1").replace("any ", "*.any ")).collect();
    every.sort();
    bed.comes_to(&every.iter().map(String::as_str).collect::<Vec<_>>());
    until("nothing is skipped", || live()["status"]["counts"]["skipped"] == 0, || live().to_string());
    bed.apply(&policy("allowWildcardHosts: false, excludeAddresses: [192.0.2.2]"))?;
    bed.comes_to(&without);
    bed.cluster.delete("httproute/any", "shop")?;
    bed.cluster.delete("dnspolicy/dns", "infra")?;
    let both: Vec<String> = without.iter().flat_map(|line| [(*line).to_owned(), line.replace("2.1", "2.2")]).collect();
    bed.comes_to(&both.iter().map(String::as_str).collect::<Vec<_>>());
    accept(&bed.cluster, "edge", &["192.0.2.1"])?;
    bed.comes_to(&without);
    Ok(())
}

fn everything_goes(bed: &Bed) -> Result<(), Failed> {
    bed.cluster.delete("listenerset/extra", "shop")?;
    route_status(&bed.cluster, "tlsroute", "raw", "False")?;
    bed.comes_to(&["api 192.0.2.1", "shop 192.0.2.1"]);
    bed.cluster.delete("grpcroute/api", "shop")?;
    bed.comes_to(&["shop 192.0.2.1"]);
    // A listener that serves another domain leaves its routes without a name; one that comes back brings it back.
    let gateway = WORLD.rsplit("---\n").next().unwrap_or_default();
    bed.apply(&gateway.replace("*.example.org", "*.example.net"))?;
    accept(&bed.cluster, "edge", &["192.0.2.1"])?;
    route_status(&bed.cluster, "httproute", "web", "False")?;
    bed.comes_to(&[]);
    bed.apply(gateway)?;
    accept(&bed.cluster, "edge", &["192.0.2.1"])?;
    accept_route(&bed.cluster, "httproute", "web")?;
    bed.comes_to(&["shop 192.0.2.1"]);
    Ok(())
}

fn what_people_read(bed: &Bed) -> Result<(), Failed> {
    let told = bed.cluster.json(&["events.events.k8s.io", "-n", "shop"])?.to_string();
    assert!(told.contains("HostnamePublished") && told.contains("shop.example.org is published"), "{told}");
    let described = bed.cluster.kubectl(&["describe", "httproute", "web", "-n", "shop"])?;
    assert!(described.contains("HostnamePublished"), "{described}");
    Ok(())
}
