//! Our own authority, behind the embedded DNS server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gatepost_testkit::servers::kube::{ADMIN, Cluster, Setup, trial};
use gatepost_testkit::{Failed, Trial};
use serde_json::json;

use super::bed::{
    WORDS, cluster, comes_to, condition, events, everything_shown, leaf, no_key_is_shown, policy, secret, serves, text,
};
use crate::controller::bed::{Controller, route, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a Secret is made, serves, and is told on policy, Gateway and metrics", issued),
        trial("a certificate follows its routes, and one that is lost or spoiled is made again", followed),
        trial("nothing is issued in observe mode or while writing is frozen", idle),
        trial("without an issuer a TLSPolicy is not enforced, and says so", nobody),
    ]
}

fn start(cluster: &Cluster, words: &[&str]) -> Controller {
    let own = ["--provider", "embedded", "--zone", "example.org", "--issuer", "embedded"];
    Controller::start(&cluster.kubeconfig(ADMIN), &[&own[..], &WORDS, words].concat())
}

fn issued() -> Result<(), Failed> {
    let cluster = cluster(&Setup::default())?;
    policy(&cluster, "allowWildcardHosts: false")?;
    route(&cluster, "www", "www.example.org")?;
    route(&cluster, "api", "api.example.org")?;
    let controller = start(&cluster, &[]);
    let first = comes_to(&cluster, &["api.example.org", "www.example.org"], &[&controller]);
    let made = secret(&cluster).ok_or("there is no Secret")?;
    assert_eq!(made["type"], "kubernetes.io/tls");
    assert_eq!(made["metadata"]["labels"]["gatepost.dev/managed-by"], "gatepost");
    let root = text(&made, "ca.crt").ok_or("there is no root")?;
    assert!(serves(&made, &root, "www.example.org")? && !serves(&made, &root, "other.example.org")?);
    until(
        "the policy is enforced",
        || condition(&cluster, "Enforced") == "True Enforced",
        || condition(&cluster, "Enforced") + &controller.log(),
    );
    let told = "Gateway edge: Secret infra/edge-tls has its certificate for api.example.org, www.example.org";
    until(
        "it is told",
        || events(&cluster, "CertificateIssued") == [told],
        || format!("{:?}", events(&cluster, "CertificateIssued")),
    );
    controller.is_ready();
    let end = controller.number("gatepost_certificate_soonest_expiry_seconds");
    assert!((end - first.not_after as f64).abs() < 1.0, "{end} is not {}", first.not_after);
    assert!((controller.number("gatepost_certificate_events_total{what=\"issued\"}") - 1.0).abs() < 0.1);
    let shown = everything_shown(&cluster, &[&controller]);
    controller.stop();
    // The authority and the certificate are the same after a restart.
    let controller = start(&cluster, &[]);
    controller.is_ready();
    until("a pass was made", || controller.number("gatepost_certificates_held") > 0.5, || controller.log());
    assert_eq!(leaf(&cluster).map(|leaf| leaf.serial), Some(first.serial));
    no_key_is_shown(&cluster, &(shown + &everything_shown(&cluster, &[&controller])));
    Ok(())
}

fn followed() -> Result<(), Failed> {
    let cluster = cluster(&Setup::default())?;
    route(&cluster, "www", "www.example.org")?;
    route(&cluster, "api", "api.example.org")?;
    let controller = start(&cluster, &[]);
    comes_to(&cluster, &["api.example.org", "www.example.org"], &[&controller]);
    cluster.delete("httproute/api", "shop")?;
    comes_to(&cluster, &["www.example.org"], &[&controller]);
    // Two names that come one after the other are one certificate.
    route(&cluster, "a", "a.example.org")?;
    route(&cluster, "b", "b.example.org")?;
    let names = ["a.example.org", "b.example.org", "www.example.org"];
    let before = comes_to(&cluster, &names, &[&controller]);
    // Secrets that somebody deletes are made again: that of the listener, and the controller's own notes.
    cluster.delete("secret/gatepost-certificates", "gatepost")?;
    cluster.delete("secret/edge-tls", "infra")?;
    let again = comes_to(&cluster, &names, &[&controller]);
    assert_ne!(before.serial, again.serial);
    cluster.json(&["secret", "gatepost-certificates", "-n", "gatepost"])?;
    // Somebody fills it with a megabyte that is no certificate.
    let spoiled = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"namespace": "infra", "name": "edge-tls", "labels": {"gatepost.dev/managed-by": "gatepost"}},
        "data": {
            "tls.crt": STANDARD.encode("-----BEGIN CERTIFICATE-----\nQ0FOQVJZ\n".repeat(25_000)),
            "tls.key": STANDARD.encode("CANARY"),
        },
    });
    cluster.feed(&["replace", "-f", "-"], &spoiled.to_string())?;
    let mended = comes_to(&cluster, &names, &[&controller]);
    assert_ne!(again.serial, mended.serial);
    controller.says("what is there cannot serve: tls.crt is larger than 64 KiB");
    let shown = everything_shown(&cluster, &[&controller]);
    assert!(!shown.contains("CANARY") && !shown.contains("Q0FOQVJZ"));
    // Nobody wants a certificate any more: what serves stays.
    for name in ["www", "a", "b"] {
        cluster.delete(&format!("httproute/{name}"), "shop")?;
    }
    until("no certificate is wanted", || controller.number("gatepost_certificates") < 0.5, || controller.log());
    controller.passes_again(|| ());
    assert_eq!(leaf(&cluster).map(|leaf| leaf.serial), Some(mended.serial), "a Secret is never deleted");
    Ok(())
}

fn idle() -> Result<(), Failed> {
    let cluster = cluster(&Setup::default())?;
    route(&cluster, "www", "www.example.org")?;
    let own = ["--provider", "embedded", "--zone", "example.org", "--issuer", "embedded"];
    let observer = Controller::start(&cluster.kubeconfig(ADMIN), &own);
    observer.is_ready();
    observer.passes_again(|| ());
    let secrets = cluster.json(&["secrets", "-A"])?;
    assert_eq!(secrets["items"].as_array().map(Vec::len), Some(0), "{}", observer.log());
    observer.stop();
    let controller = start(&cluster, &[]);
    let first = comes_to(&cluster, &["www.example.org"], &[&controller]);
    cluster.kubectl(&["annotate", "lease/gatepost", "-n", "gatepost", "gatepost.dev/freeze=a test"])?;
    controller.says("writing is frozen");
    cluster.delete("secret/edge-tls", "infra")?;
    // The first of these passes may find that the Secret is gone, the second would order.
    controller.passes_again(|| ());
    controller.passes_again(|| ());
    assert!(leaf(&cluster).is_none(), "frozen: {}", controller.log());
    cluster.kubectl(&["annotate", "lease/gatepost", "-n", "gatepost", "gatepost.dev/freeze-"])?;
    let again = comes_to(&cluster, &["www.example.org"], &[&controller]);
    assert_ne!(first.serial, again.serial);
    Ok(())
}

fn nobody() -> Result<(), Failed> {
    let cluster = cluster(&Setup::default())?;
    policy(&cluster, "allowWildcardHosts: false")?;
    route(&cluster, "www", "www.example.org")?;
    let words = ["--provider", "embedded", "--zone", "example.org"];
    let controller = Controller::start(&cluster.kubeconfig(ADMIN), &[&words[..], &WORDS].concat());
    until(
        "it is pending",
        || condition(&cluster, "Enforced") == "False Pending",
        || condition(&cluster, "Enforced") + &controller.log(),
    );
    let status = cluster.kubectl(&["get", "tlspolicy", "tls", "-n", "infra", "-o", "json"])?;
    assert!(status.contains("start the controller with --issuer"), "{status}");
    Ok(())
}
