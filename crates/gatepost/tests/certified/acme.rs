//! Pebble, proven through BIND.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gatepost_testkit::servers::kube::Setup;
use gatepost_testkit::servers::kube::proxy::{Fault, Proxy as KubeProxy};
use gatepost_testkit::servers::pebble::{self, Pebble};
use gatepost_testkit::{Failed, Trial};

use super::bed::{
    acme, challenges, cluster, comes_to, condition, everything_shown, leaf, logs, no_challenge_is_left,
    no_key_is_shown, on_pebble, policy,
};
use super::proxy::{Answer, Proxy};
use crate::controller::bed::{Controller, bind, route, trial, until};

pub(crate) fn trials() -> Vec<Trial> {
    if !pebble::is_wanted() {
        return vec![pebble::trial("certificates of a controller from Pebble", || Ok(()))];
    }
    vec![
        trial("names are proven through BIND, with a wildcard that a policy allows, and no value is left", issued),
        trial("killed at every write of an order: one certificate in the end, and no value left behind", killed),
        trial("an issuer that asks to be left alone is, across restarts", limited),
        trial("a name that goes while its order is open takes its value with it", detached),
    ]
}

fn pebble(dns: std::net::SocketAddr, slowness: Option<u32>) -> Result<Pebble, Failed> {
    Ok(Pebble::start(pebble::PebbleSetup { dns: Some(dns), slowness, ..pebble::PebbleSetup::default() })?)
}

fn issued() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let pebble = pebble(zone.address, None)?;
    policy(&cluster, "allowWildcardHosts: true\n  privateKey: {algorithm: RSA, size: 2048}")?;
    route(&cluster, "www", "www.example.org")?;
    route(&cluster, "deep", "a.b.example.org")?;
    let controller = on_pebble(&cluster, &zone, &pebble, &[]);
    let names = ["*.example.org", "a.b.example.org"];
    let first = comes_to(&cluster, &names, &[&controller]);
    assert!(first.public.len() > 256, "a public key of 2048 bits");
    until("the policy is enforced", || condition(&cluster, "Enforced") == "True Enforced", || controller.log());
    no_challenge_is_left(&zone, &[&controller]);
    assert_eq!((pebble.orders(), pebble.certificates()), (1, 1), "{}", controller.log());
    let shown = everything_shown(&cluster, &[&controller]);
    controller.stop();
    let controller = on_pebble(&cluster, &zone, &pebble, &[]);
    until("it is looked at", || controller.number("gatepost_certificates_held") > 0.5, || controller.log());
    assert_eq!(leaf(&cluster).map(|leaf| leaf.serial), Some(first.serial));
    assert_eq!((pebble.orders(), pebble.certificates()), (1, 1), "a restart orders nothing");
    // The account is kept as well.
    cluster.delete("secret/edge-tls", "infra")?;
    comes_to(&cluster, &names, &[&controller]);
    assert_eq!(pebble.log().matches("There are now 1 accounts").count(), 1, "{}", pebble.log());
    assert!(!pebble.log().contains("There are now 2 accounts"));
    no_key_is_shown(&cluster, &(shown + &everything_shown(&cluster, &[&controller])));
    Ok(())
}

/// The controller is killed at its first write to a Secret, then at its second, and so on, before the write arrives.
fn killed() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let pebble = pebble(zone.address, None)?;
    route(&cluster, "www", "www.example.org")?;
    let proxy = KubeProxy::start(&cluster)?;
    let words = acme(&pebble.directory(), &pebble.root_file(), &zone);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_write = |path: &str| path.contains("/secrets") && path.contains("fieldManager=");
    let mut kills = 0;
    for step in 1.. {
        let seen = Arc::new(AtomicUsize::new(0));
        let count = seen.clone();
        proxy.judge(move |path| match is_write(path) {
            true if count.fetch_add(1, Ordering::Relaxed) + 1 >= step => Fault::Hang,
            _ => Fault::Pass,
        });
        let controller = Controller::on_bind_as(&proxy.kubeconfig(), &zone, &words);
        let is_reached = || seen.load(Ordering::Relaxed) >= step;
        until("it writes, or is done", || is_reached() || leaf(&cluster).is_some(), || controller.log());
        controller.kill();
        if leaf(&cluster).is_some() {
            break;
        }
        kills += 1;
    }
    assert!(kills >= 5, "it was killed {kills} times only");
    proxy.judge(|_| Fault::Pass);
    let controller = Controller::on_bind_as(&proxy.kubeconfig(), &zone, &words);
    comes_to(&cluster, &["www.example.org"], &[&controller]);
    no_challenge_is_left(&zone, &[&controller]);
    assert_eq!(pebble.certificates(), 1, "{}", pebble.log());
    Ok(())
}

fn limited() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let pebble = pebble(zone.address, None)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let proxy = runtime.block_on(Proxy::start(pebble.address(), pebble.root()))?;
    proxy.lie("/order-plz", |answer| Answer {
        status: 429,
        headers: vec![("retry-after".to_owned(), "3600".to_owned())],
        body: br#"{"type": "urn:ietf:params:acme:error:rateLimited", "detail": "too many new orders"}"#.to_vec(),
        ..answer
    });
    let (directory, root) = (format!("https://{}/dir", proxy.address), cluster.folder().join("root.pem"));
    std::fs::write(&root, &proxy.root)?;
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    let words = acme(&directory, &root, &zone);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    route(&cluster, "www", "www.example.org")?;
    policy(&cluster, "allowWildcardHosts: false")?;
    let mut asked = None;
    for restart in 0..4 {
        let controller = Controller::on_bind(&cluster, &zone, &words);
        let why = "too many new orders";
        until(
            "it is told",
            || controller.get("/readyz").contains(why),
            || controller.get("/readyz") + &controller.log(),
        );
        if restart == 0 {
            let status = || cluster.kubectl(&["get", "tlspolicy", "tls", "-n", "infra", "-o", "json"]).unwrap();
            until("the policy says so", || status().contains("issuer-rate-limited"), status);
        }
        controller.passes_again(|| ());
        let now = proxy.asked();
        assert_eq!(*asked.get_or_insert(now), now, "a restart asks nobody: {}", controller.log());
        controller.stop();
    }
    assert_eq!(pebble.orders(), 1, "it was asked once, and never again");
    Ok(())
}

fn detached() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    // This server never comes to look at the values, so the order stays open.
    let pebble = pebble(gatepost_testkit::servers::free_address()?, pebble::NEVER)?;
    route(&cluster, "www", "www.example.org")?;
    route(&cluster, "gone", "gone.example.org")?;
    let controller = on_pebble(&cluster, &zone, &pebble, &[]);
    let has = |name: &str| challenges(&zone).iter().any(|line| line.starts_with(&format!("_acme-challenge.{name}.")));
    let state = || format!("{:?}\n{}", challenges(&zone), logs(&[&controller]));
    until("both values are published", || has("www") && has("gone"), state);
    cluster.delete("httproute/gone", "shop")?;
    until("the value of the name that went is gone", || !has("gone"), state);
    controller.says("`gone.example.org` is no longer wanted");
    until("the other name is ordered anew", || has("www"), state);
    cluster.delete("httproute/www", "shop")?;
    no_challenge_is_left(&zone, &[&controller]);
    controller.says("nobody wants the certificate any more");
    assert!(leaf(&cluster).is_none());
    Ok(())
}
