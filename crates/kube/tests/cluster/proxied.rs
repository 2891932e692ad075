//! A server that answers wrongly, in part, or not at all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gatepost_core::model::{Kind, RouteKind};
use gatepost_kube::watch::WatchSettings;
use gatepost_kube::{ClusterChoice, Connection, read_once};
use gatepost_testkit::servers::kube::proxy::{Fault, Proxy};
use gatepost_testkit::servers::kube::{Cluster, trial};
use gatepost_testkit::{Failed, Trial};

use super::watched::{WatchedCluster, impatient, namespace, route, runtime};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("scenario 3: a list that is suddenly empty is doubted", suddenly_empty),
        trial("scenario 4: a page that fails discards the whole list", page_fails),
        trial("scenario 41: a server that lags takes nothing back", lagging),
        trial("scenario 44: events that are garbled, errors without a version and silence are gone around", garbled),
        trial("scenario 46: a server that asks for a pause gets it", pauses),
    ]
}

/// Routes in a namespace, followed through a proxy.
fn followed(name: &str, settings: WatchSettings) -> Result<(Proxy, WatchedCluster), Failed> {
    let cluster = Cluster::shared();
    cluster.apply(&(namespace(name) + &route(name, "one", "one.example.org")))?;
    let proxy = Proxy::start(cluster)?;
    let runtime = runtime();
    let place = ClusterChoice { kubeconfig: Some(proxy.kubeconfig()), context: None };
    let connection = runtime.block_on(Connection::open(&place))?;
    let mut watched =
        WatchedCluster::on(runtime, &connection, WatchSettings { namespace: Some(name.into()), ..settings });
    watched.until("the route is there", |f| f.has_route(name, "one") && f.sees(Kind::Route(RouteKind::Http)));
    Ok((proxy, watched))
}

fn is_watch(path: &str) -> bool {
    path.contains("watch=1")
}

fn suddenly_empty() -> Result<(), Failed> {
    let settings = WatchSettings {
        idle: Duration::from_secs(1),
        doubt: Duration::from_secs(3600),
        ..impatient(&[Kind::Route(RouteKind::Http)])
    };
    let (proxy, mut watched) = followed("empty", settings)?;
    proxy.judge(|path| match path {
        path if is_watch(path) => Fault::Refuse(410, None),
        path if path.contains("/httproutes?") => Fault::Empty,
        _ => Fault::Pass,
    });
    watched.until("it is doubted", |f| f.hidden(Kind::Route(RouteKind::Http)).contains("suddenly empty"));
    assert!(watched.has_route("empty", "one") && !watched.lost("one"));
    proxy.judge(|_| Fault::Pass);
    watched.until("all is well again", |f| f.sees(Kind::Route(RouteKind::Http)));
    assert!(!watched.lost("one"));
    Ok(())
}

fn lagging() -> Result<(), Failed> {
    let settings = WatchSettings { idle: Duration::from_secs(2), ..impatient(&[Kind::Route(RouteKind::Http)]) };
    let (proxy, mut watched) = followed("lag", settings)?;
    let path = "/apis/gateway.networking.k8s.io/v1/namespaces/lag/httproutes";
    let old = Cluster::shared().kubectl(&["get", "--raw", &format!("{path}?limit=500")])?;
    Cluster::shared().apply(&route("lag", "two", "two.example.org"))?;
    watched.until("the second route is there", |f| f.has_route("lag", "two"));
    // From here on another server answers, which stands still where the first one was.
    proxy.judge(move |path| match path {
        path if is_watch(path) => Fault::Refuse(410, None),
        path if path.contains("/httproutes?") => Fault::Say(old.clone()),
        _ => Fault::Pass,
    });
    watched.until("it is doubted", |f| f.hidden(Kind::Route(RouteKind::Http)).contains("lags"));
    assert!(watched.has_route("lag", "two") && !watched.lost("two"));
    proxy.judge(|_| Fault::Pass);
    watched.until("the server has caught up", |f| f.sees(Kind::Route(RouteKind::Http)));
    assert!(!watched.lost("two"));
    Ok(())
}

fn page_fails() -> Result<(), Failed> {
    let cluster = Cluster::shared();
    let maps = (0..1100)
        .map(|i| format!("---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{namespace: torn, name: m{i}}}}}\n"));
    cluster.feed(&["create", "-f", "-"], &(namespace("torn") + &maps.collect::<String>()))?;
    let proxy = Proxy::start(cluster)?;
    let runtime = runtime();
    let place = ClusterChoice { kubeconfig: Some(proxy.kubeconfig()), context: None };
    let connection = runtime.block_on(Connection::open(&place))?;
    for fault in [Fault::Refuse(410, None), Fault::Refuse(500, None), Fault::Cut(2000), Fault::Say("<html>".into())] {
        let pages = AtomicUsize::new(0);
        let last = fault.clone();
        proxy.judge(move |path| match path.contains("/configmaps?") && pages.fetch_add(1, Ordering::Relaxed) >= 2 {
            true => last.clone(),
            false => Fault::Pass,
        });
        let read = runtime.block_on(read_once(&connection, &[Kind::ConfigMap], None));
        assert!(read.is_err(), "{fault:?} gave {:?}", read.map(|read| read.snapshot.config_maps.len()));
    }
    proxy.judge(|_| Fault::Pass);
    let read = runtime.block_on(read_once(&connection, &[Kind::ConfigMap], None))?;
    assert_eq!(read.snapshot.config_maps.keys().filter(|key| &*key.namespace == "torn").count(), 1100);
    Ok(())
}

fn garbled() -> Result<(), Failed> {
    let settings = WatchSettings { idle: Duration::from_secs(2), ..impatient(&[Kind::Route(RouteKind::Http)]) };
    let (proxy, mut watched) = followed("garbled", settings)?;
    let lines = [
        Fault::Say("{\"type\":\"MODIFIED\",\"object\":{\"meta".into()),
        Fault::Say("nonsense\n".into()),
        Fault::Say("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\"}}\n".into()),
        Fault::Say("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"message\":\"gone\"}}\n".into()),
        Fault::Say("{\"type\":\"STRANGE\",\"object\":{}}\n".into()),
        Fault::Say("{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}\n".into()),
        Fault::Hang,
        Fault::Cut(700),
    ];
    let next = AtomicUsize::new(0);
    proxy.judge(move |path| match is_watch(path) {
        true => lines.get(next.fetch_add(1, Ordering::Relaxed)).cloned().unwrap_or(Fault::Pass),
        false => Fault::Pass,
    });
    Cluster::shared().apply(&route("garbled", "two", "two.example.org"))?;
    watched.until("the other route comes", |f| f.has_route("garbled", "two"));
    // All faults are gone through before the next change.
    let watches = |proxy: &Proxy| proxy.asked().iter().filter(|path| is_watch(path)).count();
    watched.until("all faults were met", |_| watches(&proxy) > 9);
    Cluster::shared().apply(&route("garbled", "three", "three.example.org"))?;
    Cluster::shared().delete("httproute/one", "garbled")?;
    watched.until("it is followed", |f| f.has_route("garbled", "three") && !f.has_route("garbled", "one"));
    assert!(!watched.lost("two") && watched.sees(Kind::Route(RouteKind::Http)));
    Ok(())
}

fn pauses() -> Result<(), Failed> {
    let (proxy, mut watched) = followed("busy", impatient(&[Kind::Route(RouteKind::Http)]))?;
    let before = proxy.asked().len();
    let refused = AtomicUsize::new(0);
    proxy.judge(move |path| match path.contains("/httproutes?") && refused.fetch_add(1, Ordering::Relaxed) < 3 {
        true => Fault::Refuse(429, Some(1)),
        false => Fault::Pass,
    });
    Cluster::shared().apply(&route("busy", "two", "two.example.org"))?;
    watched.until("it is followed", |f| f.has_route("busy", "two"));
    assert!(!watched.lost("one") && watched.sees(Kind::Route(RouteKind::Http)));
    let asked = proxy.asked()[before..].iter().filter(|path| path.contains("/httproutes?")).count();
    assert!(asked < 10, "asked {asked} times though told to wait");
    Ok(())
}
