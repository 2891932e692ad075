//! Clusters with other releases of the Gateway API, or with none until later.

use gatepost_core::model::{Kind, RouteKind};
use gatepost_kube::discovery::discover;
use gatepost_testkit::servers::kube::{ADMIN, Channel, Cluster, Setup, trial};
use gatepost_testkit::{Failed, Trial};

use super::watched::{WatchedCluster, connect, impatient, namespace, route, runtime};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("older releases and the experimental channel", older_releases_and_the_experimental_channel),
        trial("a kind is picked up when its CRD appears", a_kind_is_picked_up_when_its_crd_appears),
    ]
}

/// One cluster, from 1.3.0 upwards, as clusters are upgraded.
fn older_releases_and_the_experimental_channel() -> Result<(), Failed> {
    let cluster = Cluster::start(&Setup { channel: Channel::Standard("v1.3.0"), ..Setup::default() })?;
    let runtime = runtime();
    let connection = runtime.block_on(connect(&cluster, ADMIN));
    let served = || -> Result<Vec<String>, Failed> {
        let served = runtime.block_on(discover(&connection, &Kind::ALL))?;
        Ok(served
            .values()
            .filter(|r| !r.kind.group().is_empty())
            .map(|r| format!("{} {}", r.kind, r.version))
            .collect())
    };
    let old = ["GatewayClass v1", "Gateway v1", "HTTPRoute v1", "GRPCRoute v1", "ReferenceGrant v1beta1"];
    assert_eq!(served()?, old);
    cluster.install(Channel::Experimental("v1.3.0"))?;
    assert!(served()?.contains(&"XListenerSet v1alpha1".to_owned()), "{:?}", served()?);
    assert!(served()?.contains(&"TCPRoute v1alpha2".to_owned()));
    cluster.install(Channel::Standard("v1.5.0"))?;
    assert!(served()?.contains(&"ListenerSet v1".to_owned()), "{:?}", served()?);
    assert!(served()?.contains(&"TLSRoute v1".to_owned()));
    cluster.install(Channel::Experimental("v1.7.0"))?;
    assert!(served()?.contains(&"TCPRoute v1".to_owned()), "{:?}", served()?);
    assert!(served()?.contains(&"ReferenceGrant v1".to_owned()));
    Ok(())
}

fn a_kind_is_picked_up_when_its_crd_appears() -> Result<(), Failed> {
    let cluster = Cluster::start(&Setup { channel: Channel::None, ..Setup::default() })?;
    let mut watched =
        WatchedCluster::start(&cluster, ADMIN, impatient(&[Kind::Route(RouteKind::Http), Kind::Namespace]));
    watched.until("a kind that is not installed has no objects", |f| {
        f.sees(Kind::Route(RouteKind::Http)) && f.sees(Kind::Namespace)
    });
    assert!(watched.told.contains(&gatepost_kube::watch::WatchEvent::Installed(Kind::Route(RouteKind::Http), None)));
    cluster.install(Channel::Standard("v1.7.0"))?;
    cluster.apply(&(namespace("late") + &route("late", "web", "late.example.org")))?;
    watched.until("the kind is picked up", |f| f.has_route("late", "web"));
    cluster.kubectl(&["delete", "crd", "httproutes.gateway.networking.k8s.io", "--wait=false"])?;
    watched
        .until("a kind that goes is held", |f| f.hidden(Kind::Route(RouteKind::Http)).contains("no longer installed"));
    Ok(())
}
