//! Rights that are missing, servers that go away, forget, or come back with older data.

use std::time::Duration;

use gatepost_core::model::{Kind, RouteKind};
use gatepost_kube::watch::{WatchEvent, WatchSettings};
use gatepost_testkit::servers::kube::{ADMIN, Cluster, Setup, trial};
use gatepost_testkit::{Failed, Trial};

use super::watched::{WatchedCluster, impatient, namespace, route};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("scenario 38: what went while the server forgot is found", forgotten),
        trial("scenario 39: a server that is away hides what is old, and is followed again", away),
        trial("scenario 40: a store that was set back deletes nothing", set_back),
        trial("scenario 42: a kind that may be listed and not watched is listed again", not_watched),
        trial("who may only see one namespace sees that one, and knows what is missing", one_namespace),
        trial("scenario 43: a kind that may not be listed is not visible, and says which right is missing", not_listed),
    ]
}

fn started(name: &str, settings: WatchSettings) -> Result<(Cluster, WatchedCluster), Failed> {
    let cluster = Cluster::start(&Setup::default())?;
    cluster
        .apply(&(namespace(name) + &route(name, "one", "one.example.org") + &route(name, "two", "two.example.org")))?;
    let mut watched = WatchedCluster::start(&cluster, ADMIN, settings);
    watched.until("both routes are there", |f| {
        f.has_route(name, "one") && f.has_route(name, "two") && f.sees(Kind::Route(RouteKind::Http))
    });
    Ok((cluster, watched))
}

fn forgotten() -> Result<(), Failed> {
    let (cluster, mut watched) = started("gap", impatient(&[Kind::Route(RouteKind::Http)]))?;
    // The follower only runs while it is listened to: it misses all of this, and the server forgets it.
    cluster.kill_api();
    cluster.run_api()?;
    cluster.delete("httproute/one", "gap")?;
    cluster.apply(&route("gap", "three", "three.example.org"))?;
    cluster.compact()?;
    cluster.kill_api();
    cluster.run_api()?;
    watched.until("the gap is closed", |f| f.has_route("gap", "three") && !f.has_route("gap", "one"));
    assert!(watched.has_route("gap", "two") && watched.sees(Kind::Route(RouteKind::Http)));
    Ok(())
}

fn away() -> Result<(), Failed> {
    let settings = WatchSettings {
        idle: Duration::from_secs(2),
        stale: Duration::from_secs(3),
        ..impatient(&[Kind::Route(RouteKind::Http)])
    };
    let (cluster, mut watched) = started("away", settings)?;
    cluster.kill_api();
    watched.until("what is old is hidden", |f| f.hidden(Kind::Route(RouteKind::Http)).contains("not heard"));
    assert!(watched.has_route("away", "one") && !watched.lost("one"), "what was seen is kept");
    cluster.run_api()?;
    cluster.apply(&route("away", "three", "three.example.org"))?;
    watched.until("it is followed again", |f| f.sees(Kind::Route(RouteKind::Http)) && f.has_route("away", "three"));
    assert!(!watched.lost("one") && !watched.lost("two"));
    Ok(())
}

fn set_back() -> Result<(), Failed> {
    let settings = WatchSettings { doubt: Duration::from_secs(20), ..impatient(&[Kind::Route(RouteKind::Http)]) };
    let (cluster, mut watched) = started("back", settings)?;
    cluster.keep()?;
    for i in 0..40 {
        cluster.apply(&route("back", "late", &format!("late{i}.example.org")))?;
    }
    watched.until("the late route is there", |f| f.has_route("back", "late"));
    cluster.restore()?;
    watched.until("older data are doubted", |f| {
        f.hidden(Kind::Route(RouteKind::Http)).contains("set back [GP0104 list-doubted]")
    });
    assert!(watched.has_route("back", "late") && !watched.lost("late"));
    watched.until("older data are believed in the end", |f| {
        f.sees(Kind::Route(RouteKind::Http)) && !f.has_route("back", "late")
    });
    assert!(watched.has_route("back", "one"));
    Ok(())
}

/// A role with these verbs on routes, bound to the user `limited`.
fn role(verbs: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: limited}}\nrules:\n\
         - {{apiGroups: [gateway.networking.k8s.io], resources: [httproutes], verbs: [{verbs}]}}\n\
         - {{nonResourceURLs: [/api, /api/*, /apis, /apis/*], verbs: [get]}}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: limited}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: limited}}\n\
         subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: limited}}]\n"
    )
}

fn limited() -> Result<Cluster, Failed> {
    Ok(Cluster::start(&Setup { users: vec!["limited"], ..Setup::default() })?)
}

fn is_refused(told: &WatchEvent, verb: &str) -> bool {
    matches!(told, WatchEvent::Trouble(Some(Kind::Route(RouteKind::Http)), error) if error.is_forbidden() && error.to_string().contains(verb))
}

fn not_watched() -> Result<(), Failed> {
    let cluster = limited()?;
    cluster.apply(&role("list"))?;
    cluster.apply(&(namespace("watch") + &route("watch", "one", "one.example.org")))?;
    let mut watched = WatchedCluster::start(&cluster, "limited", impatient(&[Kind::Route(RouteKind::Http)]));
    watched.until("it is said at once", |f| f.told.iter().any(|told| is_refused(told, "cannot watch")));
    assert!(watched.told.iter().any(|told| matches!(told, WatchEvent::Watch(Kind::Route(RouteKind::Http), Some(_)))));
    assert!(watched.sees(Kind::Route(RouteKind::Http)) && watched.has_route("watch", "one"));
    cluster.apply(&route("watch", "two", "two.example.org"))?;
    cluster.delete("httproute/one", "watch")?;
    watched.until("lists follow", |f| f.has_route("watch", "two") && !f.has_route("watch", "one"));
    Ok(())
}

fn not_listed() -> Result<(), Failed> {
    let cluster = limited()?;
    cluster.apply(&role("list, watch"))?;
    cluster.apply(&(namespace("list") + &route("list", "one", "one.example.org")))?;
    let mut watched =
        WatchedCluster::start(&cluster, "limited", impatient(&[Kind::Route(RouteKind::Http), Kind::ListenerSet]));
    watched.until("routes are seen", |f| f.has_route("list", "one") && f.sees(Kind::Route(RouteKind::Http)));
    watched.until("ListenerSets are not", |f| {
        f.hidden(Kind::ListenerSet).contains("cannot list resource \"listenersets\"")
    });
    // The right is taken away while a watch runs: a running watch stays, so the server is restarted.
    cluster.apply(&role("get"))?;
    cluster.kill_api();
    cluster.run_api()?;
    watched.until("routes are hidden", |f| f.hidden(Kind::Route(RouteKind::Http)).contains("cannot"));
    assert!(watched.has_route("list", "one") && !watched.lost("one"));
    cluster.apply(&role("list, watch"))?;
    watched.until("routes are seen again", |f| f.sees(Kind::Route(RouteKind::Http)));
    Ok(())
}

fn one_namespace() -> Result<(), Failed> {
    let cluster = limited()?;
    let everything = namespace("own") + "---\n" + &namespace("foreign");
    cluster
        .apply(&(everything + &route("own", "one", "one.example.org") + &route("foreign", "two", "two.example.org")))?;
    let roles = role("list").replace("kind: ClusterRoleBinding", "kind: RoleBinding");
    let roles = roles.replacen("{name: limited}\nroleRef", "{name: limited, namespace: own}\nroleRef", 1);
    cluster.apply(&roles)?;
    let runtime = super::watched::runtime();
    let connection = runtime.block_on(super::watched::connect(&cluster, "limited"));
    let kinds = [Kind::Route(RouteKind::Http), Kind::Gateway];
    let read = runtime.block_on(gatepost_kube::read_once(&connection, &kinds, Some("own")))?;
    let names: Vec<String> = read.snapshot.routes.keys().map(|route| route.key.to_string()).collect();
    assert_eq!(names, ["own/one"]);
    for kind in kinds {
        assert_ne!(*read.snapshot.visibility(kind), gatepost_core::snapshot::Visibility::Complete, "{kind}");
    }
    Ok(())
}
