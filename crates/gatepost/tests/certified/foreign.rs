//! Secrets that somebody else made.

use gatepost_testkit::servers::kube::{ADMIN, Cluster, Setup, trial};
use gatepost_testkit::{Failed, Trial};
use rcgen::{CertificateParams, KeyPair};

use super::bed::{WORDS, cluster, comes_to, condition, events, leaf, policy};
use crate::controller::bed::{Controller, route, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("a Secret that somebody else made is left alone until it is handed over", foreign)]
}

/// A Secret of a hand's making.
fn make(cluster: &Cluster, names: &[&str]) -> Result<(), Failed> {
    let key = KeyPair::generate()?;
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let chain = CertificateParams::new(names)?.self_signed(&key)?.pem();
    let (chain_file, key_file) = (cluster.folder().join("tls.crt"), cluster.folder().join("tls.key"));
    std::fs::write(&chain_file, chain)?;
    std::fs::write(&key_file, key.serialize_pem())?;
    let files = [format!("--cert={}", chain_file.display()), format!("--key={}", key_file.display())];
    let _ = cluster.delete("secret/edge-tls", "infra");
    cluster.kubectl(&["create", "secret", "tls", "edge-tls", "-n", "infra", &files[0], &files[1]])?;
    Ok(())
}

fn foreign() -> Result<(), Failed> {
    let cluster = cluster(&Setup::default())?;
    policy(&cluster, "allowWildcardHosts: false")?;
    make(&cluster, &["old.example.org"])?;
    let before = leaf(&cluster).ok_or("there is no Secret")?;
    route(&cluster, "www", "www.example.org")?;
    let own = ["--provider", "embedded", "--zone", "example.org", "--issuer", "embedded"];
    let controller = Controller::start(&cluster.kubeconfig(ADMIN), &[&own[..], &WORDS].concat());
    until("it is told", || condition(&cluster, "Enforced") == "False Pending", || controller.log());
    let status = cluster.kubectl(&["get", "tlspolicy", "tls", "-n", "infra", "-o", "json"])?;
    assert!(status.contains("certificate-foreign") && status.contains("gatepost.dev/managed-by=gatepost"), "{status}");
    let told = |object: &str| {
        let word =
            format!("{object}: Secret infra/edge-tls has no certificate for www.example.org (certificate-foreign)");
        events(&cluster, "CertificateMissing").iter().any(|line| line.starts_with(&word))
    };
    until(
        "Events say so",
        || told("Gateway edge") && told("HTTPRoute www"),
        || format!("{:?}", events(&cluster, "CertificateMissing")),
    );
    assert!(controller.get("/readyz").contains("was made by somebody else"), "{}", controller.get("/readyz"));
    assert_eq!(leaf(&cluster).map(|leaf| leaf.serial), Some(before.serial), "it is as it was");
    assert!(!controller.log().contains("\"ordered\""), "what could not be kept is not ordered");
    // One that holds the names is as good as ours.
    make(&cluster, &["www.example.org", "more.example.org"])?;
    let theirs = leaf(&cluster).ok_or("there is no Secret")?;
    until("the policy is enforced", || condition(&cluster, "Enforced") == "True Enforced", || controller.log());
    assert_eq!(leaf(&cluster).map(|leaf| leaf.serial), Some(theirs.serial), "it is as it was");
    // Its owner hands it over.
    cluster.kubectl(&["label", "secret/edge-tls", "-n", "infra", "gatepost.dev/managed-by=gatepost"])?;
    comes_to(&cluster, &["www.example.org"], &[&controller]);
    Ok(())
}
