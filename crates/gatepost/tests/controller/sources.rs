//! Sources that are wrong or vanish: section A of the scorecard.

use std::time::Duration;

use gatepost_testkit::servers::Server;
use gatepost_testkit::servers::kube::{Cluster, Setup};
use gatepost_testkit::{Failed, Trial};

use super::bed::{
    Controller, accept, accept_route, addresses, bind, cluster, gateway_status, route, route_status, route_text, trial,
    until, zone_comes_to, zone_stays,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("scenario 1: a Gateway that is not programmed any more keeps its records", not_programmed),
        trial("scenario 2: addresses that blink are no reason to delete", blinking),
        trial("scenario 5: a filter that matches nothing deletes nothing", filtered),
        trial("scenario 6: a third of the zone goes only when it is confirmed", many_deletes),
        trial("scenario 8: a CRD that is deleted deletes nothing", crd_deleted),
        trial("scenario 11: routes that are all refused at once keep their records", refused_at_once),
        trial("scenario 12: a route that moves to another Gateway resolves all the time", moving),
        trial("scenario 13: a wildcard goes after its replacements are there", wildcard_replaced),
        trial("scenario 14: a status of an older generation deletes nothing", stale_status),
    ]
}

/// A cluster with some routes, published on BIND.
fn published(names: &[&str], words: &[&str]) -> Result<(Cluster, Server, Controller), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    for name in names {
        route(&cluster, name, &format!("{name}.example.org"))?;
    }
    let controller = Controller::on_bind(&cluster, &zone, &[&["--policy", "sync"], words].concat());
    let expected: Vec<String> = names.iter().map(|name| format!("{name}.example.org 192.0.2.1")).collect();
    zone_comes_to(&zone, &expected.iter().map(String::as_str).collect::<Vec<_>>(), &[&controller]);
    Ok((cluster, zone, controller))
}

/// Time for a pass or two to go wrong.
const PASSES: Duration = Duration::from_secs(8);

fn not_programmed() -> Result<(), Failed> {
    let (cluster, zone, controller) = published(&["a", "b"], &[])?;
    gateway_status(&cluster, "edge", "False", &["192.0.2.1"])?;
    route_status(&cluster, "httproute", "b", "False")?;
    zone_stays(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], PASSES);
    controller.says("status-refused");
    Ok(())
}

fn blinking() -> Result<(), Failed> {
    let (cluster, zone, controller) = published(&["a"], &[])?;
    for _ in 0..4 {
        accept(&cluster, "edge", &[])?;
        zone_stays(&zone, &["a.example.org 192.0.2.1"], Duration::from_secs(3));
        accept(&cluster, "edge", &["192.0.2.1"])?;
        zone_stays(&zone, &["a.example.org 192.0.2.1"], Duration::from_secs(2));
    }
    controller.says("gateway-without-address");
    Ok(())
}

fn filtered() -> Result<(), Failed> {
    let (cluster, zone, controller) = published(&["a", "b"], &[])?;
    controller.stop();
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync", "--gateway-class", "nobody"]);
    controller.says("source-empty");
    zone_stays(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], PASSES);
    Ok(())
}

fn many_deletes() -> Result<(), Failed> {
    let names: Vec<String> = (0..30).map(|i| format!("n{i:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (cluster, zone, controller) = published(&names, &[])?;
    let mut gone = vec!["delete", "httproute", "-n", "shop", "--wait=false"];
    gone.extend(&names[..12]);
    cluster.kubectl(&gone)?;
    controller.says("too-many-deletes");
    let before: Vec<String> = names.iter().map(|name| format!("{name}.example.org 192.0.2.1")).collect();
    zone_stays(&zone, &before.iter().map(String::as_str).collect::<Vec<_>>(), PASSES);
    controller.stop();
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync", "--confirm-deletes"]);
    let after: Vec<&str> = before[12..].iter().map(String::as_str).collect();
    zone_comes_to(&zone, &after, &[&controller]);
    Ok(())
}

fn crd_deleted() -> Result<(), Failed> {
    let (cluster, zone, controller) = published(&["a"], &[])?;
    cluster.kubectl(&["delete", "crd", "httproutes.gateway.networking.k8s.io", "--wait=false"])?;
    controller.says("no longer installed");
    zone_stays(&zone, &["a.example.org 192.0.2.1"], PASSES);
    assert!(controller.get("/readyz").contains("HTTPRoute objects are not visible"), "{}", controller.get("/readyz"));
    Ok(())
}

fn refused_at_once() -> Result<(), Failed> {
    let (cluster, zone, _controller) = published(&["a", "b", "c"], &[])?;
    for name in ["a", "b", "c"] {
        route_status(&cluster, "httproute", name, "False")?;
    }
    let all = ["a.example.org 192.0.2.1", "b.example.org 192.0.2.1", "c.example.org 192.0.2.1"];
    zone_stays(&zone, &all, PASSES);
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
    zone_stays(&zone, &["a.example.org 192.0.2.1"], PASSES);
    accept_route(&cluster, "httproute", "a")?;
    zone_comes_to(&zone, &["new.example.org 192.0.2.1"], &[&controller]);
    Ok(())
}
