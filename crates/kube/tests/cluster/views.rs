//! What is seen of a healthy cluster.

use gatepost_core::model::{Key, Kind, RouteKind};
use gatepost_core::snapshot::Origin;
use gatepost_kube::read_once;
use gatepost_testkit::servers::kube::{ADMIN, Cluster, trial};
use gatepost_testkit::{Failed, Trial};

use super::watched::{WatchedCluster, connect, impatient, namespace, route, runtime};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("objects come, change and go", objects_come_change_and_go),
        trial("everything is read once", everything_is_read_once),
        trial("lists of several pages are whole", lists_of_several_pages_are_whole),
    ]
}

fn objects_come_change_and_go() -> Result<(), Failed> {
    let cluster = Cluster::shared();
    cluster.apply(&(namespace("follow") + &route("follow", "one", "one.example.org")))?;
    let mut watched = WatchedCluster::start(
        cluster,
        ADMIN,
        impatient(&[Kind::Route(RouteKind::Http), Kind::Namespace, Kind::Route(RouteKind::Tcp)]),
    );
    assert!(!watched.sees(Kind::Route(RouteKind::Http)), "a kind is visible only after it was read");
    watched.until("all kinds are visible", |f| {
        [Kind::Route(RouteKind::Http), Kind::Namespace, Kind::Route(RouteKind::Tcp)].iter().all(|k| f.sees(*k))
    });
    assert!(watched.has_route("follow", "one"));
    assert!(watched.snapshot.namespaces.contains_key("follow"));
    cluster.apply(&route("follow", "two", "two.example.org"))?;
    watched.until("a route comes", |f| f.has_route("follow", "two"));
    cluster.apply(&route("follow", "two", "new.example.org"))?;
    let hostname = |f: &WatchedCluster| {
        let route = f.snapshot.routes.values().find(|route| &*route.meta.key.name == "two");
        route.map(|route| format!("{:?}", route.hostnames))
    };
    watched.until("a route changes", |f| hostname(f).is_some_and(|names| names.contains("new.example.org")));
    cluster.delete("httproute/one", "follow")?;
    watched.until("a route goes", |f| !f.has_route("follow", "one"));
    assert!(watched.has_route("follow", "two"));
    Ok(())
}

fn everything_is_read_once() -> Result<(), Failed> {
    let cluster = Cluster::shared();
    cluster.apply(&(namespace("once") + &route("once", "web", "once.example.org")))?;
    let runtime = runtime();
    let connection = runtime.block_on(connect(cluster, ADMIN));
    let read = runtime.block_on(read_once(&connection, &Kind::ALL, None))?;
    assert_eq!(read.snapshot.origin, Origin::Cluster);
    assert!(read.snapshot.routes.keys().any(|route| route.key == Key::new("once", "web")));
    assert!(read.snapshot.namespaces.contains_key("default"));
    assert_eq!(read.absent, [Kind::XListenerSet, Kind::DnsPolicy, Kind::TlsPolicy, Kind::HostnameGrant]);
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    Ok(())
}

fn lists_of_several_pages_are_whole() -> Result<(), Failed> {
    let cluster = Cluster::shared();
    let maps = (0..1203)
        .map(|i| format!("---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{namespace: pages, name: m{i}}}}}\n"));
    cluster.feed(&["create", "-f", "-"], &(namespace("pages") + &maps.collect::<String>()))?;
    let runtime = runtime();
    let connection = runtime.block_on(connect(cluster, ADMIN));
    let read = runtime.block_on(read_once(&connection, &[Kind::ConfigMap], None))?;
    let inside = read.snapshot.config_maps.keys().filter(|key| &*key.namespace == "pages");
    assert_eq!(inside.count(), 1203);
    Ok(())
}
