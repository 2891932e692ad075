//! Several providers: a public and a private view of one zone name, on two servers.

use gatepost_testkit::query_loop::ask;
use gatepost_testkit::servers::kube::{ADMIN, Cluster, Setup};
use gatepost_testkit::servers::{DnsServer, KEY_NAME, KEY_SECRET};
use gatepost_testkit::{Failed, Trial};

use super::bed::{
    Controller, ZONE, accept, accept_route, addresses, bind, cluster, route_text, trial, until, zone_comes_to,
    zone_stays,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial(
        "two views of one zone: names go where policies say, move without a gap, and wait for nobody",
        two_views,
    )]
}

const INNER: &str = "\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: inner}
spec:
  gatewayClassName: test
  listeners:
  - {name: http, port: 80, protocol: HTTP, hostname: '*.example.org', allowedRoutes: {namespaces: {from: All}}}
";

fn policy(gateway: &str, provider: &str) -> String {
    format!(
        "apiVersion: gatepost.dev/v1alpha1\nkind: DNSPolicy\nmetadata: {{namespace: infra, name: {gateway}}}\n\
         spec:\n  targetRef: {{group: gateway.networking.k8s.io, kind: Gateway, name: {gateway}}}\n  \
         providerRef: {{name: {provider}}}\n  allowWildcardHosts: false\n"
    )
}

/// The flags of the provider `default` on the public server, and a settings file with the private one.
fn words(cluster: &Cluster, public: &DnsServer, private: &DnsServer) -> Result<Vec<String>, Failed> {
    let (settings, secret) = (cluster.folder().join("settings.yaml"), cluster.folder().join("tsig"));
    std::fs::write(&secret, KEY_SECRET)?;
    let server = |server: &DnsServer| {
        format!(
            "rfc2136-host: [\"{}\"]\nrfc2136-tsig-keyname: {KEY_NAME}\nrfc2136-tsig-secret-file: {}\n",
            server.address,
            secret.display()
        )
    };
    let entry = format!("name: private\nkind: rfc2136\nzones: [{ZONE}]\n{}", server(private));
    let entry = entry.trim_end().replace('\n', "\n  ");
    let text = format!(
        "provider: rfc2136\nrfc2136-zone: [{ZONE}]\n{}txt-owner-id: east\npolicy: sync\nproviders:\n- {entry}\n",
        server(public)
    );
    std::fs::write(&settings, text)?;
    Ok(vec!["--settings".to_owned(), settings.display().to_string()])
}

fn two_views() -> Result<(), Failed> {
    let (cluster, public, private) = (cluster(&Setup::default())?, bind()?, bind()?);
    cluster.apply(INNER)?;
    accept(&cluster, "inner", &["10.0.0.1"])?;
    cluster.apply(&policy("inner", "private"))?;
    let words = words(&cluster, &public, &private)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let controller = Controller::start(&cluster.kubeconfig(ADMIN), &words);
    let route = |name: &str, gateway: &str| -> Result<(), Failed> {
        let text = route_text(name, &format!("{name}.example.org"));
        cluster.apply(&text.replace("name: edge", &format!("name: {gateway}")))?;
        accept_route(&cluster, "httproute", name)
    };
    route("open", "edge")?;
    route("walks", "inner")?;
    zone_comes_to(&public, &["open.example.org 192.0.2.1"], &[&controller]);
    zone_comes_to(&private, &["walks.example.org 10.0.0.1"], &[&controller]);
    controller.is_ready();
    for (server, owner) in [(&public, "owner=east,"), (&private, "owner=east-private,")] {
        let zone = server.dump(ZONE)?.join("\n");
        assert!(zone.contains(owner) && zone.contains("heritage=gatepost,term="), "{zone}");
    }

    // Another provider in the policy: made there first, then deleted here; somebody who asks both always gets an answer.
    cluster.apply(&policy("inner", "default"))?;
    until(
        "walks has moved",
        || {
            let has =
                |server: &DnsServer| ask(server.address, "walks.example.org").is_some_and(|(_, answers)| answers > 0);
            let (old, new) = (has(&private), has(&public));
            assert!(old || new, "no view has the name");
            !old && new
        },
        || controller.log(),
    );
    zone_comes_to(&private, &[], &[&controller]);

    // A provider is frozen by itself, and what it has stays.
    let freeze = |value: &str| {
        let word = format!("gatepost.dev/freeze.private{value}");
        cluster.kubectl(&["annotate", "lease", "gatepost", "-n", "gatepost", &word])
    };
    freeze("=audit")?;
    until("the freeze is told", || controller.get("/readyz").contains("audit"), || controller.get("/readyz"));
    cluster.apply(&policy("inner", "private"))?;
    route("more", "edge")?;
    let all = ["more.example.org 192.0.2.1", "open.example.org 192.0.2.1", "walks.example.org 10.0.0.1"];
    zone_comes_to(&public, &all, &[&controller]);
    zone_stays(&private, &[], &[&controller]);
    freeze("-")?;
    zone_comes_to(&private, &["walks.example.org 10.0.0.1"], &[&controller]);
    zone_comes_to(&public, &all[..2], &[&controller]);

    // The private server is killed: the public view goes on, and the status of a name there is no promise.
    private.kill();
    route("late", "edge")?;
    route("deep", "inner")?;
    let late = ["late.example.org 192.0.2.1", "more.example.org 192.0.2.1", "open.example.org 192.0.2.1"];
    zone_comes_to(&public, &late, &[&controller]);
    let deep = || {
        let status = cluster.json(&["dnspolicy", "inner", "-n", "infra"]).unwrap_or_default();
        let hostnames = status["status"]["hostnames"].as_array().cloned().unwrap_or_default();
        let of_deep = hostnames.iter().find(|one| one["hostname"] == "deep.example.org");
        of_deep.map(|one| one["state"].to_string()).unwrap_or_default()
    };
    until("deep is pending", || deep().contains("Pending"), deep);
    until("it is told", || controller.get("/readyz").contains("provider `private`"), || controller.get("/readyz"));
    private.run()?;
    zone_comes_to(&private, &["deep.example.org 10.0.0.1", "walks.example.org 10.0.0.1"], &[&controller]);
    until("deep is served", || deep().contains("Served"), deep);
    controller.is_ready();
    assert_eq!(addresses(&public), late);

    // dry-run in the entry of the private one: it is planned, and nothing is written there.
    controller.stop();
    let settings = cluster.folder().join("settings.yaml");
    std::fs::write(&settings, std::fs::read_to_string(&settings)? + "  dry-run: true\n")?;
    let controller = Controller::start(&cluster.kubeconfig(ADMIN), &words);
    route("also", "edge")?;
    route("not", "inner")?;
    zone_comes_to(&public, &[&["also.example.org 192.0.2.1"], &late[..]].concat(), &[&controller]);
    let open = "gatepost_provider_steps_open{provider=\"private\"} 1";
    until("it is planned", || controller.get("/metrics").contains(open), || controller.get("/metrics"));
    let note = "provider `private`: nothing is written there (dry-run)";
    until("it says so", || controller.get("/readyz").contains(note), || controller.get("/readyz"));
    assert_eq!(addresses(&private), ["deep.example.org 10.0.0.1", "walks.example.org 10.0.0.1"]);
    Ok(())
}
