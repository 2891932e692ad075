//! Sources that are wrong or vanish: section A of the scorecard.

use gatepost_testkit::servers::DnsServer;
use gatepost_testkit::servers::kube::{Channel, Cluster, Setup};
use gatepost_testkit::{Failed, Trial};

use super::bed::{
    Controller, WORLD, accept, accept_route, addresses, bind, cluster, gateway_status, route, route_status, route_text,
    store_routes, stored_route, trial, until, zone_comes_to, zone_stays,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("scenario 1: a Gateway that is not programmed any more keeps its records", not_programmed),
        trial("scenario 2: addresses that blink are no reason to delete", blinking),
        trial("scenario 5: a filter that matches nothing deletes nothing", filtered),
        trial("scenario 6: a third of the zone goes only when it is confirmed", many_deletes),
        trial("held deletes go when a word on the Lease confirms these and no others", confirmed_deletes),
        trial("the last route that is deleted takes its name along", last_route_deleted),
        trial("scenario 8: a CRD that is deleted deletes nothing", crd_deleted),
        trial("scenario 10: objects that an upgrade of their CRD makes unreadable keep their records", crd_upgraded),
        trial("scenario 11: routes that are all refused at once keep their records", refused_at_once),
        trial("scenario 12: a route that moves to another Gateway resolves all the time", moving),
        trial("scenario 13: a wildcard goes after its replacements are there", wildcard_replaced),
        trial("scenario 14: a status of an older generation deletes nothing", stale_status),
    ]
}

/// A cluster with some routes, published on BIND.
fn published(names: &[&str], words: &[&str]) -> Result<(Cluster, DnsServer, Controller), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    for name in names {
        route(&cluster, name, &format!("{name}.example.org"))?;
    }
    let controller = Controller::on_bind(&cluster, &zone, &[&["--policy", "sync"], words].concat());
    let expected: Vec<String> = names.iter().map(|name| format!("{name}.example.org 192.0.2.1")).collect();
    zone_comes_to(&zone, &expected.iter().map(String::as_str).collect::<Vec<_>>(), &[&controller]);
    Ok((cluster, zone, controller))
}

fn not_programmed() -> Result<(), Failed> {
    let (cluster, zone, controller) = published(&["a", "b"], &[])?;
    gateway_status(&cluster, "edge", "False", &["192.0.2.1"])?;
    route_status(&cluster, "httproute", "b", "False")?;
    zone_stays(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], &[&controller]);
    controller.says("status-refused");
    Ok(())
}

fn blinking() -> Result<(), Failed> {
    let (cluster, zone, controller) = published(&["a"], &["--interval", "1s"])?;
    for _ in 0..4 {
        accept(&cluster, "edge", &[])?;
        zone_stays(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
        accept(&cluster, "edge", &["192.0.2.1"])?;
        zone_stays(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    }
    controller.says("gateway-without-address");
    Ok(())
}

fn filtered() -> Result<(), Failed> {
    let (cluster, zone, controller) = published(&["a", "b"], &[])?;
    controller.stop();
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync", "--gateway-class", "nobody"]);
    controller.says("source-empty");
    zone_stays(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], &[&controller]);
    Ok(())
}

/// Does something of which a controller sees nothing before it is all over.
fn at_once(controller: &Controller, work: impl FnOnce() -> Result<(), Failed>) -> Result<(), Failed> {
    controller.signal("STOP");
    let done = work();
    controller.signal("CONT");
    done
}

fn many_deletes() -> Result<(), Failed> {
    let names: Vec<String> = (0..30).map(|i| format!("n{i:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (cluster, zone, controller) = published(&names, &[])?;
    let mut gone = vec!["delete", "httproute", "-n", "shop", "--wait=false"];
    gone.extend(&names[..12]);
    at_once(&controller, || Ok(cluster.kubectl(&gone).map(drop)?))?;
    controller.says("too-many-deletes");
    let before: Vec<String> = names.iter().map(|name| format!("{name}.example.org 192.0.2.1")).collect();
    zone_stays(&zone, &before.iter().map(String::as_str).collect::<Vec<_>>(), &[&controller]);
    controller.stop();
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync", "--confirm-deletes"]);
    let after: Vec<&str> = before[12..].iter().map(String::as_str).collect();
    zone_comes_to(&zone, &after, &[&controller]);
    Ok(())
}

/// The word that `/readyz` tells for the deletes that are held.
fn confirming_word(controller: &Controller) -> String {
    let told = controller.get("/readyz");
    let word = told.split("gatepost.dev/confirm-deletes=").nth(1).and_then(|rest| rest.split_whitespace().next());
    word.unwrap_or_default().to_owned()
}

fn confirm(cluster: &Cluster, word: &str) -> Result<(), Failed> {
    let annotation = format!("gatepost.dev/confirm-deletes={word}");
    cluster.kubectl(&["annotate", "--overwrite", "lease/gatepost", "-n", "gatepost", &annotation])?;
    Ok(())
}

fn confirmed_deletes() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let hostname = |number: usize| format!("n{number:02}.example.org");
    let routes = (0..40).map(|number| stored_route("shop", &format!("n{number:02}"), &[hostname(number)]));
    store_routes(&cluster, routes)?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync", "--lease-duration", "3s"]);
    let count = || addresses(&zone).len();
    until("all are there", || count() == 40, || controller.log());
    let delete = |numbers: std::ops::Range<usize>| -> Result<(), Failed> {
        let names: Vec<String> = numbers.map(|number| format!("n{number:02}")).collect();
        let words = ["delete", "httproute", "-n", "shop", "--wait=false"];
        let words = [&words[..], &names.iter().map(String::as_str).collect::<Vec<_>>()].concat();
        at_once(&controller, || Ok(cluster.kubectl(&words).map(drop)?))
    };
    let state = || controller.get("/readyz") + &controller.log();
    let unconfirmed = || controller.number("gatepost_unconfirmed_deletes");
    delete(0..14)?;
    until("fourteen are held", || unconfirmed() > 13.5, state);
    let first = confirming_word(&controller);
    // What else happens does not change the word; one delete more does, and then the first word is for nothing.
    route(&cluster, "more", "more.example.org")?;
    until("the other name is there", || count() == 41, state);
    assert_eq!(confirming_word(&controller), first);
    delete(14..15)?;
    until("fifteen are held", || unconfirmed() > 14.5, state);
    confirm(&cluster, &first)?;
    until("the word is refused", || state().contains("is for other deletes than are held now"), state);
    controller.passes_again(|| assert_eq!(count(), 41, "{}", controller.log()));
    // The right word releases just these, and is used up.
    let second = confirming_word(&controller);
    assert_ne!(first, second);
    confirm(&cluster, &second)?;
    until("they are gone", || count() == 26, state);
    controller.says("held deletes are confirmed");
    let lease = || cluster.json(&["lease", "gatepost", "-n", "gatepost"]).unwrap_or_default();
    let is_there = || lease()["metadata"]["annotations"]["gatepost.dev/confirm-deletes"].is_string();
    until("the word is taken off", || !is_there(), || lease().to_string());
    delete(15..30)?;
    until("the next are held again", || unconfirmed() > 14.5, state);
    controller.passes_again(|| assert_eq!(count(), 26, "{}", controller.log()));
    Ok(())
}

/// Its hostname is held while it is not known whether the CRD goes as well.
fn last_route_deleted() -> Result<(), Failed> {
    let (cluster, zone, controller) = published(&["a"], &[])?;
    cluster.delete("httproute/a", "shop")?;
    controller.says("source-empty");
    zone_comes_to(&zone, &[], &[&controller]);
    Ok(())
}

fn crd_deleted() -> Result<(), Failed> {
    let (cluster, zone, controller) = published(&["a"], &[])?;
    cluster.kubectl(&["delete", "crd", "httproutes.gateway.networking.k8s.io", "--wait=false"])?;
    controller.says("no longer installed");
    zone_stays(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    assert!(controller.get("/readyz").contains("HTTPRoute objects are not visible"), "{}", controller.get("/readyz"));
    Ok(())
}

fn crd_upgraded() -> Result<(), Failed> {
    let old = Setup { channel: Channel::Experimental("v1.3.0"), ..Setup::default() };
    let (cluster, zone) = (cluster(&old)?, bind()?);
    let listener = "  - {name: tls, port: 443, protocol: TLS, hostname: '*.example.org', tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: All}}}\n";
    let gateway = WORLD.rsplit("---\n").next().unwrap_or_default();
    cluster.apply(&format!("{gateway}{listener}"))?;
    accept(&cluster, "edge", &["192.0.2.1"])?;
    cluster.apply(
        "apiVersion: gateway.networking.k8s.io/v1alpha2\nkind: TLSRoute\nmetadata: {namespace: shop, name: raw}\nspec:\n  \
         hostnames: [raw.example.org]\n  parentRefs: [{namespace: infra, name: edge}]\n  \
         rules: [{backendRefs: [{name: x, port: 443}]}]\n",
    )?;
    accept_route(&cluster, "tlsroute", "raw")?;
    route(&cluster, "a", "a.example.org")?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync", "--max-staleness", "4s"]);
    let both = ["a.example.org 192.0.2.1", "raw.example.org 192.0.2.1"];
    zone_comes_to(&zone, &both, &[&controller]);
    // The upgrade as it is meant: another version is served, and what is stored is still read.
    cluster.install(Channel::Standard("v1.7.0"))?;
    let log = || controller.log();
    let is_followed = || log().matches("\"kind is installed\",\"kind\":\"TLSRoute\",\"version\":\"v1\"").count() > 0;
    until("the new version is followed", is_followed, log);
    zone_stays(&zone, &both, &[&controller]);
    // And as it goes wrong: the old version is taken out before the objects were written in the new one.
    let versions = cluster.json(&["crd", TLS_ROUTES])?["spec"]["versions"].clone();
    let only: Vec<_> = versions.as_array().into_iter().flatten().filter(|v| v["name"] == "v1").cloned().collect();
    let stored = serde_json::json!({"status": {"storedVersions": ["v1"]}}).to_string();
    cluster.kubectl(&["patch", "crd", TLS_ROUTES, "--subresource=status", "--type=merge", "-p", &stored])?;
    set_versions(&cluster, &only)?;
    until("the server cannot read them", || cluster.kubectl(&["get", "tlsroutes", "-A"]).is_err(), log);
    let ready = || controller.get("/readyz");
    until("it is said", || ready().contains("TLSRoute objects are not visible"), || ready() + &log());
    assert!(ready().contains("v1alpha2"), "the server's own words are told: {}", ready());
    cluster.delete("httproute/a", "shop")?;
    route(&cluster, "b", "b.example.org")?;
    let held = ["a.example.org 192.0.2.1", "b.example.org 192.0.2.1", "raw.example.org 192.0.2.1"];
    zone_comes_to(&zone, &held, &[&controller]);
    zone_stays(&zone, &held, &[&controller]);
    controller.says("kind-not-visible");
    set_versions(&cluster, versions.as_array().map(Vec::as_slice).unwrap_or_default())?;
    zone_comes_to(&zone, &held[1..], &[&controller]);
    Ok(())
}

const TLS_ROUTES: &str = "tlsroutes.gateway.networking.k8s.io";

fn set_versions(cluster: &Cluster, versions: &[serde_json::Value]) -> Result<(), Failed> {
    let patch = serde_json::json!({"spec": {"versions": versions}}).to_string();
    cluster.kubectl(&["patch", "crd", TLS_ROUTES, "--type=merge", "-p", &patch])?;
    Ok(())
}

fn refused_at_once() -> Result<(), Failed> {
    let (cluster, zone, controller) = published(&["a", "b", "c"], &[])?;
    for name in ["a", "b", "c"] {
        route_status(&cluster, "httproute", name, "False")?;
    }
    let all = ["a.example.org 192.0.2.1", "b.example.org 192.0.2.1", "c.example.org 192.0.2.1"];
    zone_stays(&zone, &all, &[&controller]);
    Ok(())
}

fn moving() -> Result<(), Failed> {
    let (cluster, zone, controller) = published(&["a"], &[])?;
    cluster.apply(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {namespace: infra, name: other}\nspec:\n  \
         gatewayClassName: test\n  listeners:\n  \
         - {name: http, port: 80, protocol: HTTP, hostname: '*.example.org', allowedRoutes: {namespaces: {from: All}}}\n",
    )?;
    accept(&cluster, "other", &["192.0.2.2"])?;
    cluster.apply(&route_text("a", "a.example.org").replace("name: edge", "name: other"))?;
    accept_route(&cluster, "httproute", "a")?;
    until(
        "it has moved, and resolved at every look",
        || {
            let now = addresses(&zone);
            assert!(!now.is_empty(), "the name was gone for a moment");
            now == ["a.example.org 192.0.2.2"]
        },
        || controller.log(),
    );
    Ok(())
}

fn wildcard_replaced() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    route(&cluster, "any", "*.example.org")?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
    zone_comes_to(&zone, &["*.example.org 192.0.2.1"], &[&controller]);
    route(&cluster, "any", "www.example.org")?;
    until(
        "the wildcard is replaced, and something answers at every look",
        || {
            let now = addresses(&zone);
            assert!(now.iter().any(|line| line.starts_with("*.") || line.starts_with("www.")), "{now:?}");
            now == ["www.example.org 192.0.2.1"]
        },
        || controller.log(),
    );
    Ok(())
}

fn stale_status() -> Result<(), Failed> {
    let (cluster, zone, controller) = published(&["a"], &[])?;
    // The implementation sleeps: the route has a new hostname, its status is of the old generation.
    cluster.apply(&route_text("a", "new.example.org"))?;
    controller.says("status-stale");
    zone_stays(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    accept_route(&cluster, "httproute", "a")?;
    zone_comes_to(&zone, &["new.example.org 192.0.2.1"], &[&controller]);
    Ok(())
}
