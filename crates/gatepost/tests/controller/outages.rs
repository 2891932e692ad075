//! An API server that answers wrongly, in part, late or with the past: section D of the scorecard, seen from the zone.
//!
//! What the watches make of it is tested where they live; here it is the name server that must not notice.

use std::sync::atomic::{AtomicUsize, Ordering};

use gatepost_testkit::servers::DnsServer;
use gatepost_testkit::servers::kube::proxy::{Fault, Proxy};
use gatepost_testkit::servers::kube::{Cluster, Setup};
use gatepost_testkit::{Failed, Trial};
use serde_json::{Value, json};

use super::bed::{
    Controller, addresses, bind, cluster, route, store_routes, stored_route, trial, until, zone_comes_to, zone_stays,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("scenario 3: the zone keeps what a suddenly empty list has not", suddenly_empty),
        trial("scenario 4: nothing is planned from a list of which a page fails", page_fails),
        trial("scenario 38: the zone loses what went while the server forgot it", forgotten),
        trial("scenario 40: the zone keeps what a store that was set back has not", set_back),
        trial("scenario 41: the zone does not follow a server that lags", lagging),
        trial("scenario 42: the zone follows a kind that may be listed and not watched", not_watched),
        trial("scenario 44: the zone follows through garbled events, errors and silence", garbled),
        trial("scenario 46: the zone follows a server that asks for pauses", pauses),
    ]
}

/// A cluster with routes `a` and `b`, published on BIND by a controller behind a proxy.
struct Bed {
    cluster: Cluster,
    zone: DnsServer,
    proxy: Proxy,
    controller: Controller,
}

impl Bed {
    fn start(words: &[&str]) -> Result<Bed, Failed> {
        let bed = Bed::among(0, words)?;
        bed.comes_to(&["a", "b"]);
        Ok(bed)
    }

    /// The same among so many others.
    fn among(others: usize, words: &[&str]) -> Result<Bed, Failed> {
        let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
        let stored = |i: usize| stored_route("shop", &format!("n{i:04}"), &[format!("n{i:04}.example.org")]);
        store_routes(&cluster, (0..others).map(stored))?;
        for name in ["a", "b"] {
            route(&cluster, name, &format!("{name}.example.org"))?;
        }
        let proxy = Proxy::start(&cluster)?;
        let words = [&["--policy", "sync", "--max-staleness", "20s"], words].concat();
        let controller = Controller::on_bind_as(&proxy.kubeconfig(), &zone, &words);
        Ok(Bed { cluster, zone, proxy, controller })
    }

    fn route(&self, name: &str) -> Result<(), Failed> {
        route(&self.cluster, name, &format!("{name}.example.org"))
    }

    fn comes_to(&self, labels: &[&str]) {
        let expected = lines(labels);
        zone_comes_to(&self.zone, &expected.iter().map(String::as_str).collect::<Vec<_>>(), &[&self.controller]);
    }

    fn stays(&self, labels: &[&str]) {
        let expected = lines(labels);
        zone_stays(&self.zone, &expected.iter().map(String::as_str).collect::<Vec<_>>(), &[&self.controller]);
    }

    /// Waits until `/readyz` tells this.
    fn tells(&self, words: &str) {
        let told = || self.controller.get("/readyz");
        until(&format!("{words} is told"), || told().contains(words), || told() + &self.controller.log());
    }
}

fn lines(labels: &[&str]) -> Vec<String> {
    labels.iter().map(|label| format!("{label}.example.org 192.0.2.1")).collect()
}

fn is_watch(path: &str) -> bool {
    path.contains("/httproutes?") && path.contains("watch=1")
}

fn is_list(path: &str) -> bool {
    path.contains("/httproutes?") && !path.contains("watch=1")
}

fn suddenly_empty() -> Result<(), Failed> {
    let bed = Bed::start(&[])?;
    bed.proxy.judge(|path| match path {
        path if is_watch(path) => Fault::Refuse(410, None),
        path if is_list(path) => Fault::Empty,
        _ => Fault::Pass,
    });
    bed.tells("suddenly empty");
    bed.stays(&["a", "b"]);
    bed.proxy.judge(|_| Fault::Pass);
    bed.route("c")?;
    bed.comes_to(&["a", "b", "c"]);
    Ok(())
}

/// Three pages of routes; the last one fails for as long as the test wants.
fn page_fails() -> Result<(), Failed> {
    let bed = Bed::among(1100, &[])?;
    let count = || addresses(&bed.zone).len();
    until("all are there", || count() == 1102, || bed.controller.log());
    let pages = AtomicUsize::new(0);
    bed.proxy.judge(move |path| match path {
        path if is_watch(path) => Fault::Refuse(410, None),
        path if is_list(path) && path.contains("continue=") && pages.fetch_add(1, Ordering::Relaxed) % 2 == 1 => {
            Fault::Refuse(500, None)
        }
        _ => Fault::Pass,
    });
    let failures = || bed.controller.log().matches("\"kind\":\"HTTPRoute\",\"error\"").count();
    until("a page failed", || failures() > 0, || bed.controller.log());
    cluster_loses(&bed, "n0007")?;
    let half_lists = failures();
    let nothing_comes = || assert_eq!(count(), 1102, "nothing comes of half a list");
    bed.controller.passes_again(nothing_comes);
    until("two more lists failed", || failures() >= half_lists + 2, || bed.controller.log());
    nothing_comes();
    bed.proxy.judge(|_| Fault::Pass);
    until("the whole list is followed", || count() == 1101, || bed.controller.log());
    assert!(!addresses(&bed.zone).contains(&"n0007.example.org 192.0.2.1".to_owned()));
    Ok(())
}

fn cluster_loses(bed: &Bed, name: &str) -> Result<(), Failed> {
    bed.cluster.delete(&format!("httproute/{name}"), "shop")?;
    Ok(())
}

fn forgotten() -> Result<(), Failed> {
    let bed = Bed::start(&[])?;
    bed.route("k")?;
    bed.comes_to(&["a", "b", "k"]);
    // It sees nothing of this, and when it looks again the server does not know any more how it came about.
    bed.controller.signal("STOP");
    cluster_loses(&bed, "a")?;
    bed.route("c")?;
    bed.cluster.compact()?;
    bed.cluster.kill_api();
    bed.cluster.run_api()?;
    bed.controller.signal("CONT");
    bed.comes_to(&["b", "c", "k"]);
    Ok(())
}

fn set_back() -> Result<(), Failed> {
    let bed = Bed::start(&["--doubt", "30s", "--lease-duration", "5s"])?;
    bed.cluster.keep()?;
    for i in 0..20 {
        route(&bed.cluster, "late", &format!("late{}.example.org", i % 2))?;
    }
    route(&bed.cluster, "late", "late.example.org")?;
    bed.comes_to(&["a", "b", "late"]);
    bed.cluster.restore()?;
    bed.tells("set back [GP0104 list-doubted]");
    bed.stays(&["a", "b", "late"]);
    // Who insists for long enough is believed.
    bed.comes_to(&["a", "b"]);
    Ok(())
}

fn lagging() -> Result<(), Failed> {
    let bed = Bed::start(&[])?;
    let folder = "/apis/gateway.networking.k8s.io/v1/httproutes?limit=500";
    let old = bed.cluster.kubectl(&["get", "--raw", folder])?;
    bed.route("c")?;
    bed.comes_to(&["a", "b", "c"]);
    // From here on another server answers, which stands still where the first one was.
    bed.proxy.judge(move |path| match path {
        path if is_watch(path) => Fault::Refuse(410, None),
        path if is_list(path) => Fault::Say(old.clone()),
        _ => Fault::Pass,
    });
    bed.tells("lags");
    bed.stays(&["a", "b", "c"]);
    bed.proxy.judge(|_| Fault::Pass);
    cluster_loses(&bed, "a")?;
    bed.comes_to(&["b", "c"]);
    Ok(())
}

/// The rules without the right to watch HTTPRoutes.
fn unwatched(rules: &[Value]) -> Vec<Value> {
    let is_about = |rule: &Value| rule["resources"].to_string().contains("\"httproutes\"");
    let without = |rule: &Value| {
        let mut rule = rule.clone();
        let verbs = rule["verbs"].as_array().into_iter().flatten().filter(|verb| **verb != "watch").cloned();
        rule["verbs"] = verbs.collect();
        rule
    };
    rules.iter().map(|rule| if is_about(rule) { without(rule) } else { rule.clone() }).collect()
}

fn not_watched() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup { users: vec!["limited"], ..Setup::default() })?, bind()?);
    super::leaders::give_rights(&cluster, "limited")?;
    let role = cluster.json(&["clusterrole", "gatepost"])?;
    let patch = json!({"rules": unwatched(role["rules"].as_array().unwrap())}).to_string();
    cluster.kubectl(&["patch", "clusterrole", "gatepost", "--type=merge", "-p", &patch])?;
    route(&cluster, "a", "a.example.org")?;
    let controller = Controller::on_bind_as(&cluster.kubeconfig("limited"), &zone, &["--policy", "sync"]);
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    controller.says("kind may be listed and not watched");
    until("it is told", || controller.get("/readyz").contains("GP0103"), || controller.get("/readyz"));
    route(&cluster, "b", "b.example.org")?;
    cluster.delete("httproute/a", "shop")?;
    zone_comes_to(&zone, &["b.example.org 192.0.2.1"], &[&controller]);
    Ok(())
}

fn garbled() -> Result<(), Failed> {
    let bed = Bed::start(&[])?;
    let events = [
        Fault::Say("{\"type\":\"MODIFIED\",\"object\":{\"meta".into()),
        Fault::Say("nonsense\n".into()),
        Fault::Say("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\"}}\n".into()),
        Fault::Say("{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}\n".into()),
        Fault::Hang,
        Fault::Cut(700),
    ];
    let next = AtomicUsize::new(0);
    bed.proxy.judge(move |path| match is_watch(path) {
        true => events.get(next.fetch_add(1, Ordering::Relaxed)).cloned().unwrap_or(Fault::Pass),
        false => Fault::Pass,
    });
    bed.route("c")?;
    bed.comes_to(&["a", "b", "c"]);
    let watches = || bed.proxy.asked().iter().filter(|path| is_watch(path)).count();
    until("all faults were met", || watches() > 7, || bed.controller.log());
    cluster_loses(&bed, "a")?;
    bed.route("d")?;
    bed.comes_to(&["b", "c", "d"]);
    Ok(())
}

fn pauses() -> Result<(), Failed> {
    let bed = Bed::start(&[])?;
    let refused = AtomicUsize::new(0);
    bed.proxy.judge(move |path| match path.contains("/httproutes?") && refused.fetch_add(1, Ordering::Relaxed) < 3 {
        true => Fault::Refuse(429, Some(2)),
        false => Fault::Pass,
    });
    let before = bed.proxy.asked().len();
    // The watch that runs ends in its time; the next ones are refused.
    let asked = || bed.proxy.asked()[before..].iter().filter(|path| path.contains("/httproutes?")).count();
    until("it was refused and asked again", || asked() > 3, || bed.controller.log());
    bed.route("c")?;
    cluster_loses(&bed, "a")?;
    bed.comes_to(&["b", "c"]);
    assert!(asked() < 12, "asked {} times though told to wait", asked());
    Ok(())
}
