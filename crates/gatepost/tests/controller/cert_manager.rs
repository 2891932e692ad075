//! The issuer `cert-manager` with cert-manager's own controllers: what they make of our Certificate objects is what counts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gatepost_testkit::handshake::{Pair, is_taken};
use gatepost_testkit::program::{Program, words};
use gatepost_testkit::servers::cert_manager::{CertManager, install, trial};
use gatepost_testkit::servers::kube::{ADMIN, Cluster, Setup};
use gatepost_testkit::{Failed, Trial};
use gatepost_tls::chain::{Chain, Leaf};
use gatepost_tls::key::KeyAlgorithm;
use serde_json::{Value, json};

use super::bed::{Controller, accept, accept_route, cluster, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("cert-manager: names come and go, and the Secret serves them", names_come_and_go),
        trial("cert-manager: what somebody else made is refused with a reason, and left alone", foreign),
        trial("cert-manager: not there yet is told, and it is picked up when it comes", installed_later),
        trial("cert-manager: the issuer of a policy wins, and its own words are told", issuer_of_a_policy),
        trial("cert-manager: an issuer that refuses is told with its words, and what serves goes on", refused),
        trial(
            "cert-manager: another issuer does not fight for a Secret, and takes it when nobody else fills it",
            other_issuer,
        ),
        trial("cert-manager: nothing is written in observe mode or while writing is frozen", no_writes),
    ]
}

/// The user that a controller works as, with the roles of `gatepost rbac` and no others.
const USER: &str = "limited";

const LISTENERS: &str = "\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: test
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: http, port: 80, protocol: HTTP, hostname: '*.example.org', allowedRoutes: {namespaces: {from: All}}}
";

const HTTPS: &str = "  - {name: https, port: 443, protocol: HTTPS, hostname: '*.example.org', tls: {certificateRefs: [{name: edge-tls}]}, allowedRoutes: {namespaces: {from: All}}}\n";

const POLICY: &str = "\
apiVersion: gatepost.dev/v1alpha1
kind: TLSPolicy
metadata: {namespace: infra, name: tls}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}, allowWildcardHosts: false}
";

/// A CA that signs itself, and who issues by it.
const ISSUERS: &str = "\
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: self}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {namespace: cert-manager, name: authority}
spec: {secretName: authority, isCA: true, commonName: authority, issuerRef: {kind: ClusterIssuer, name: self}, privateKey: {algorithm: ECDSA, size: 256}}
---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: authority}
spec: {ca: {secretName: authority}}
";

/// A cluster with a listener that ends TLS, a policy over it, and a user with our roles.
fn world() -> Result<Cluster, Failed> {
    let cluster = cluster(&Setup { users: vec![USER], ..Setup::default() })?;
    listeners(&cluster, HTTPS)?;
    cluster.apply(POLICY)?;
    grant(&cluster)?;
    Ok(cluster)
}

fn listeners(cluster: &Cluster, more: &str) -> Result<(), Failed> {
    cluster.apply(&format!("{LISTENERS}{more}"))?;
    accept(cluster, "edge", &["192.0.2.1"])
}

fn grant(cluster: &Cluster) -> Result<(), Failed> {
    roles(cluster, "cert-manager")?;
    for (kind, place) in [("ClusterRole", ""), ("Role", ", namespace: gatepost")] {
        cluster.apply(&format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding\nmetadata: {{name: {USER}{place}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: gatepost}}\n\
             subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {USER}}}]\n"
        ))?;
    }
    Ok(())
}

/// Gives our user the roles that some issuers take, and no others.
fn roles(cluster: &Cluster, issuers: &str) -> Result<(), Failed> {
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"));
    cluster.apply(&program.run(&words(&format!("rbac --issuer {issuers} --certificate-namespace '*'")), "")?.output)?;
    Ok(())
}

fn certified(cluster: &Cluster) -> Result<CertManager, Failed> {
    install(cluster)?;
    let running = CertManager::start(cluster)?;
    cluster.apply(ISSUERS)?;
    Ok(running)
}

/// A controller that asks cert-manager, and does not wait long for anything.
fn controller(cluster: &Cluster, more: &[&str]) -> Controller {
    let usual = ["--certificate-settle", "1s", "--certificate-grace", "4s"];
    Controller::start(&cluster.kubeconfig(USER), &[&usual[..], more].concat())
}

const ISSUER: [&str; 6] = ["--policy", "sync", "--issuer", "cert-manager", "--issuer-ref", "ClusterIssuer/authority"];

fn route(cluster: &Cluster, name: &str) -> Result<(), Failed> {
    super::bed::route(cluster, name, &format!("{name}.example.org"))?;
    accept_route(cluster, "httproute", name)
}

fn object(cluster: &Cluster, kind: &str, name: &str) -> Value {
    cluster.json(&[kind, name, "-n", "infra"]).unwrap_or_default()
}

/// What the Secret of the listener holds.
fn held(cluster: &Cluster) -> Option<Leaf> {
    let words =
        ["get", "secret", "edge-tls", "-n", "infra", "-o", "go-template={{index .data \"tls.crt\" | base64decode}}"];
    Chain::read(&cluster.kubectl(&words).ok()?).ok().map(|chain| chain.leaf)
}

/// Whether a client that trusts the authority takes what a server with the Secret presents for a name.
fn serves(cluster: &Cluster, name: &str) -> Result<bool, Failed> {
    let data = &object(cluster, "secret", "edge-tls")["data"];
    let text = |key: &str| -> Result<String, Failed> {
        Ok(String::from_utf8(STANDARD.decode(data[key].as_str().unwrap_or_default())?)?)
    };
    let (chain, key) = (text("tls.crt")?, text("tls.key")?);
    Ok(is_taken(Pair { chain: &chain, key: &key }, &text("ca.crt")?, name)?)
}

fn names(cluster: &Cluster) -> String {
    held(cluster).map(|leaf| leaf.names.join(" ")).unwrap_or_default()
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// What the policy says: its `Enforced` condition, and a line for each hostname.
fn told(cluster: &Cluster) -> String {
    let status = object(cluster, "tlspolicy", "tls")["status"].clone();
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let enforced = conditions.iter().find(|condition| condition["type"] == "Enforced").cloned().unwrap_or_default();
    let hostnames = status["hostnames"].as_array().cloned().unwrap_or_default();
    let line = |h: &Value| format!("{} {} {} {}", h["hostname"], h["state"], h["reason"], h["message"]);
    let lines: Vec<String> = hostnames.iter().map(line).collect();
    format!("{} {}\n{}", enforced["status"], enforced["reason"], lines.join("\n"))
}

fn comes_to(what: &str, cluster: &Cluster, controller: &Controller, is_so: impl FnMut() -> bool) {
    let state = || {
        format!(
            "{}\n{}\n{}\n{}",
            told(cluster),
            object(cluster, "tlspolicy", "tls"),
            object(cluster, "certificate", "edge-tls"),
            controller.log()
        )
    };
    until(what, is_so, state);
}

/// What our user wrote on Certificate objects.
fn written(cluster: &Cluster) -> Vec<String> {
    let ours = cluster.writes().into_iter().filter(|(_, user, path)| user == USER && path.contains("/certificates"));
    ours.map(|(verb, _, path)| format!("{verb} {path}")).collect()
}

fn names_come_and_go() -> Result<(), Failed> {
    let cluster = world()?;
    let _running = certified(&cluster)?;
    route(&cluster, "a")?;
    let controller = controller(&cluster, &ISSUER);
    comes_to("the Secret serves a", &cluster, &controller, || names(&cluster) == "a.example.org");
    comes_to("the policy is enforced", &cluster, &controller, || told(&cluster).starts_with("\"True\" \"Enforced\""));
    let certificate = object(&cluster, "certificate", "edge-tls");
    assert!(is_ready(&certificate), "{certificate}");
    assert_eq!(certificate["metadata"]["labels"]["gatepost.dev/managed-by"], "gatepost");
    assert!(serves(&cluster, "a.example.org")? && !serves(&cluster, "b.example.org")?);
    let before = held(&cluster).unwrap();
    route(&cluster, "b")?;
    comes_to("b is served beside a", &cluster, &controller, || names(&cluster) == "a.example.org b.example.org");
    assert_ne!(held(&cluster).unwrap().serial, before.serial, "it was issued anew");
    assert!(serves(&cluster, "a.example.org")? && serves(&cluster, "b.example.org")?);
    cluster.delete("httproute/b", "shop")?;
    comes_to("b leaves", &cluster, &controller, || names(&cluster) == "a.example.org");
    let last = written(&cluster);
    assert_eq!(last.len(), 3, "made once, grown once, shrunk once: {last:#?}");
    controller.passes_again(|| ());
    assert_eq!(written(&cluster), last, "what is right is not written again");
    listeners(&cluster, "")?;
    comes_to("the object goes with its listener", &cluster, &controller, || {
        object(&cluster, "certificate", "edge-tls").is_null()
    });
    assert_eq!(names(&cluster), "a.example.org", "the Secret stays");
    assert!(!controller.log().contains("forbidden"), "the roles are enough: {}", controller.log());
    Ok(())
}

/// Somebody else's Certificate for the Secret of our listener.
fn theirs(name: &str) -> String {
    format!(
        "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {{namespace: infra, name: {name}}}\n\
         spec: {{secretName: edge-tls, dnsNames: [theirs.example.org], issuerRef: {{kind: ClusterIssuer, name: authority}}}}\n"
    )
}

/// An object without its status, which cert-manager goes on writing, and the version that hangs on it.
fn without_status(mut object: Value) -> Value {
    object["status"].take();
    object["metadata"]["resourceVersion"].take();
    object
}

fn foreign() -> Result<(), Failed> {
    let cluster = world()?;
    let _running = certified(&cluster)?;
    for name in ["theirs", "edge-tls"] {
        cluster.apply(&theirs(name))?;
        until("theirs is ready", || is_ready(&object(&cluster, "certificate", name)), String::new);
        let before = without_status(object(&cluster, "certificate", name));
        route(&cluster, "a")?;
        let controller = controller(&cluster, &ISSUER);
        let reason = format!("Certificate infra/{name} looks after this Secret");
        comes_to("it is refused", &cluster, &controller, || told(&cluster).contains(&reason));
        assert!(told(&cluster).contains("certificate-foreign"), "{}", told(&cluster));
        controller.passes_again(|| ());
        assert_eq!(without_status(object(&cluster, "certificate", name)), before, "it is left alone");
        assert_eq!(names(&cluster), "theirs.example.org");
        cluster.delete(&format!("certificate/{name}"), "infra")?;
        // Nobody here collects what went with it, and a request of the same name would be in the way.
        cluster.kubectl(&["delete", "certificaterequests", "--all", "-n", "infra"])?;
        comes_to("its Secret is a stranger's", &cluster, &controller, || {
            told(&cluster).contains("Secret infra/edge-tls was made by somebody else")
        });
    }
    assert_eq!(written(&cluster), Vec::<String>::new());
    let controller = controller(&cluster, &ISSUER);
    cluster.kubectl(&["label", "secret", "edge-tls", "-n", "infra", "gatepost.dev/managed-by=gatepost"])?;
    comes_to("it is handed over", &cluster, &controller, || names(&cluster) == "a.example.org");
    Ok(())
}

fn installed_later() -> Result<(), Failed> {
    let cluster = world()?;
    route(&cluster, "a")?;
    let controller = controller(&cluster, &ISSUER);
    comes_to("it is told", &cluster, &controller, || told(&cluster).contains("cert-manager is not installed"));
    assert!(told(&cluster).contains("issuer-unusable"), "{}", told(&cluster));
    let _running = certified(&cluster)?;
    comes_to("it is picked up", &cluster, &controller, || names(&cluster) == "a.example.org");
    comes_to("the policy is enforced", &cluster, &controller, || told(&cluster).starts_with("\"True\" \"Enforced\""));
    Ok(())
}

fn issuer_of_a_policy() -> Result<(), Failed> {
    let cluster = world()?;
    let _running = certified(&cluster)?;
    let policy =
        |more: &str| POLICY.replace("allowWildcardHosts: false", &format!("allowWildcardHosts: false, {more}"));
    cluster.apply(&policy("issuerRef: {kind: ClusterIssuer, name: nobody}, duration: 48h"))?;
    route(&cluster, "a")?;
    let controller = controller(&cluster, &["--policy", "sync"]);
    comes_to("who is missing is told", &cluster, &controller, || {
        let told = told(&cluster);
        told.contains("certificate-pending") && told.contains(r#"clusterissuer.cert-manager.io \"nobody\" not found"#)
    });
    let waits = explained(&cluster, "a.example.org")?;
    assert!(
        waits.contains("clusterissuer.cert-manager.io \"nobody\" not found [GP0613 certificate-pending]"),
        "{waits}"
    );
    cluster.apply(&policy("issuerRef: {kind: ClusterIssuer, name: authority}, duration: 48h"))?;
    let lifetime = || held(&cluster).map_or(0, |leaf| leaf.lifetime() / 3600);
    comes_to("the authority issues", &cluster, &controller, || names(&cluster) == "a.example.org" && lifetime() == 48);
    cluster.apply(&policy("issuerRef: {kind: ClusterIssuer, name: authority}"))?;
    comes_to("what the policy no longer says goes", &cluster, &controller, || {
        object(&cluster, "certificate", "edge-tls")["spec"]["duration"].is_null()
    });
    cluster.apply(&policy(
        "issuerRef: {kind: ClusterIssuer, name: authority}, privateKey: {algorithm: RSA, size: 2048}",
    ))?;
    comes_to("another key is asked for, and comes", &cluster, &controller, || {
        held(&cluster).and_then(|leaf| leaf.algorithm) == Some(KeyAlgorithm::Rsa(2048))
    });
    let works = explained(&cluster, "a.example.org")?;
    assert!(works.contains("infra/edge-tls is to hold a.example.org\n    held         a.example.org until"), "{works}");
    assert!(works.contains("    renewal      about ") && !works.contains("has no certificate"), "{works}");
    Ok(())
}

/// An authority whose Secret holds another one's key: cert-manager finds it ready, and fails over every request.
fn broken_issuer(cluster: &Cluster) -> Result<(), Failed> {
    let other = ISSUERS.split("---\n").nth(1).unwrap_or_default().replace("authority", "other");
    cluster.apply(&other)?;
    let secret = |name: &str| cluster.json(&["secret", name, "-n", "cert-manager"]).unwrap_or_default();
    let is_there = |name: &str| secret(name)["data"]["tls.key"].is_string();
    until("both authorities are there", || is_there("authority") && is_there("other"), String::new);
    let data = json!({
        "tls.crt": secret("authority")["data"]["tls.crt"], "tls.key": secret("other")["data"]["tls.key"],
    });
    let broken = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": data,
        "metadata": {"namespace": "cert-manager", "name": "broken"},
    });
    cluster.apply(&broken.to_string())?;
    let issuer = ISSUERS.split("---\n").nth(2).unwrap_or_default().replace("authority", "broken");
    cluster.apply(&issuer)?;
    Ok(())
}

fn refused() -> Result<(), Failed> {
    let cluster = world()?;
    let _running = certified(&cluster)?;
    broken_issuer(&cluster)?;
    let issued_by = |name: &str| {
        let more = format!("allowWildcardHosts: false, issuerRef: {{kind: ClusterIssuer, name: {name}}}");
        cluster.apply(&POLICY.replace("allowWildcardHosts: false", &more)).map(drop)
    };
    issued_by("authority")?;
    route(&cluster, "a")?;
    let controller = controller(&cluster, &["--policy", "sync"]);
    comes_to("a is served", &cluster, &controller, || names(&cluster) == "a.example.org");
    let before = held(&cluster).unwrap();
    issued_by("broken")?;
    route(&cluster, "b")?;
    let is_told = |text: &str| {
        let line =
            text.lines().find(|line| line.contains("b.example.org") && line.contains("certificate-order-failed"));
        line.is_some_and(|line| line.contains("cert-manager failed ") && line.contains("doesn't match parent"))
    };
    comes_to("its words are told", &cluster, &controller, || is_told(&told(&cluster)));
    let status = told(&cluster);
    assert!(status.starts_with("\"True\" \"Partial\"") && status.contains("\"a.example.org\" \"Served\""), "{status}");
    comes_to("explain tells them", &cluster, &controller, || {
        let text = explained(&cluster, "b.example.org").unwrap_or_default();
        text.contains("doesn't match parent") && text.contains("certificate-order-failed]")
    });
    assert_eq!(held(&cluster).unwrap().serial, before.serial, "what serves goes on");
    issued_by("authority")?;
    comes_to("another issuer is asked at once", &cluster, &controller, || {
        names(&cluster) == "a.example.org b.example.org"
    });
    comes_to("the policy is enforced", &cluster, &controller, || told(&cluster).starts_with("\"True\" \"Enforced\""));
    Ok(())
}

fn explained(cluster: &Cluster, name: &str) -> Result<String, Failed> {
    let kubeconfig = cluster.kubeconfig(ADMIN).display().to_string();
    let line = ["explain", name, "--kubeconfig", &kubeconfig].map(str::to_owned);
    Ok(Program::at(env!("CARGO_BIN_EXE_gatepost")).run(&line, "")?.output)
}

fn other_issuer() -> Result<(), Failed> {
    let cluster = world()?;
    let _running = certified(&cluster)?;
    route(&cluster, "a")?;
    let first = controller(&cluster, &ISSUER);
    comes_to("cert-manager issues", &cluster, &first, || names(&cluster) == "a.example.org");
    first.stop();
    route(&cluster, "b")?;
    let embedded = ["--policy", "sync", "--issuer", "embedded", "--certificate-settle", "1s"];
    roles(&cluster, "embedded")?;
    let second = Controller::start(&cluster.kubeconfig(USER), &embedded);
    comes_to("who fills it is told", &cluster, &second, || {
        told(&cluster).contains("cert-manager fills Secret infra/edge-tls for Certificate edge-tls")
    });
    assert!(told(&cluster).contains("certificate-foreign"), "{}", told(&cluster));
    assert_eq!(names(&cluster), "a.example.org");
    assert!(!object(&cluster, "certificate", "edge-tls").is_null(), "who may not see Certificates removes none");
    second.stop();
    // Who may sees what the first run left, and takes the Secret over.
    roles(&cluster, "embedded,cert-manager")?;
    let third = Controller::start(&cluster.kubeconfig(USER), &embedded);
    comes_to("what the first run left goes", &cluster, &third, || {
        object(&cluster, "certificate", "edge-tls").is_null()
    });
    comes_to("the other one issues", &cluster, &third, || names(&cluster) == "a.example.org b.example.org");
    let annotations = object(&cluster, "secret", "edge-tls")["metadata"]["annotations"].clone();
    assert!(annotations["cert-manager.io/certificate-name"].is_null(), "{annotations}");
    Ok(())
}

fn no_writes() -> Result<(), Failed> {
    let cluster = world()?;
    let _running = certified(&cluster)?;
    route(&cluster, "a")?;
    let file = cluster.folder().join("freeze");
    std::fs::write(&file, "")?;
    let observing = controller(&cluster, &ISSUER[2..]);
    let path = file.display().to_string();
    let frozen = controller(&cluster, &[&ISSUER[..], &["--freeze-file", &path]].concat());
    observing.says("begun");
    frozen.says("frozen");
    observing.passes_again(|| ());
    frozen.passes_again(|| ());
    assert_eq!(written(&cluster), Vec::<String>::new());
    std::fs::remove_file(&file)?;
    comes_to("it is made", &cluster, &frozen, || names(&cluster) == "a.example.org");
    Ok(())
}
