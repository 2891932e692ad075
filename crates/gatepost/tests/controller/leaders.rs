//! Leadership, freezing, outages: section D of the scorecard.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gatepost_testkit::clock::MovedClock;
use gatepost_testkit::query_loop::{QueryLoop, ask};
use gatepost_testkit::servers::DnsServer;
use gatepost_testkit::servers::kube::proxy::{Fault, Proxy};
use gatepost_testkit::servers::kube::{ADMIN, Cluster, Setup};
use gatepost_testkit::servers::relay::{Direction, Fate, Relay, is_update};
use gatepost_testkit::{Failed, Trial};
use serde_json::json;

use super::bed::{
    Controller, ZONE, addresses, addresses_in, bind, bind_with, cluster, route, trial, until, zone_comes_to,
    zone_stays, zone_stays_for,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("one of two replicas writes, and the other takes over", takes_over),
        trial("scenario 39: nothing is written from what is old, and all is well when the server is back", server_away),
        trial(
            "scenario 43: a right that is missing is named in /readyz, and what it would tell is held",
            right_missing,
        ),
        trial(
            "scenario 45: with a slow API server one of two replicas leads, and the zone is written once",
            slow_server,
        ),
        trial("scenario 47: a leader that is paused, fifty times, takes nothing back when it wakes up", paused_leader),
        trial(
            "scenario 47: an update that arrives after its leader is none any more is refused by the zone",
            late_update,
        ),
        other_clocks_trial(),
        trial("a fencing record that is removed, changed or set back is put back, and writing goes on", fence_lost),
        trial("scenario 50: nothing is left to wait for when the controller is gone", uninstalled),
        trial("scenario 52: a route that flips is written at most once a second, and holds nobody up", flipping),
        trial("scenario 93: a freeze by file or by annotation stops every write", frozen),
        trial("scenario 93: a freeze stops the embedded server as well", frozen_embedded),
        trial("scenario 86: the embedded server answers while the API server is away at start", starts_without_server),
    ]
}

/// It needs what Rust links with.
fn other_clocks_trial() -> Trial {
    let name = "scenario 48: of two replicas with wrong clocks one writes, and who is gone loses the Lease";
    if MovedClock::is_wanted() {
        return trial(name, other_clocks);
    }
    Trial::test(format!("{name} (skipped: no cc here)"), || Ok(())).with_ignored_flag(true)
}

fn takes_over() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let words = ["--policy", "sync", "--lease-duration", "6s"];
    let first = Controller::on_bind(&cluster, &zone, &[&words[..], &["--identity", "first"]].concat());
    first.says("leading");
    let second = Controller::on_bind(&cluster, &zone, &[&words[..], &["--identity", "second"]].concat());
    second.says("not leading");
    route(&cluster, "a", "a.example.org")?;
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&first, &second]);
    assert!((first.number("gatepost_leader") - 1.0).abs() < 0.1 && second.number("gatepost_leader").abs() < 0.1);
    second.is_ready();
    first.kill();
    route(&cluster, "b", "b.example.org")?;
    zone_comes_to(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], &[&second]);
    Ok(())
}

/// 24 names of three routes; the zone loses its fencing record in every way that people know.
fn fence_lost() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    for i in 0..24 {
        route(&cluster, &format!("n{i}"), &format!("n{i}.example.org"))?;
    }
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
    let names = |count: usize| addresses(&zone).len() == count;
    until("all are there", || names(24), || controller.log());
    let fence = || zone.dump(ZONE).unwrap().into_iter().find(|line| line.starts_with("_gatepost-"));
    let raised = fence().expect("the zone has a fencing record");
    let name = raised.split(' ').next().unwrap().to_owned();
    let damage = [
        vec![format!("update delete {name} TXT")],
        vec![format!("update delete {name} TXT"), format!("update add {name} 60 TXT \"by hand\"")],
        vec![format!("update delete {name} TXT"), format!("update add {name} 60 TXT \"heritage=gatepost,term=0\"")],
    ];
    for (i, lines) in damage.iter().enumerate() {
        zone.edit(ZONE, &lines.iter().map(String::as_str).collect::<Vec<_>>())?;
        route(&cluster, &format!("late{i}"), &format!("late{i}.example.org"))?;
        until("writing goes on", || names(25 + i), || format!("{:?}\n{}", zone.dump(ZONE), controller.log()));
        until("it is put back", || fence().as_ref() == Some(&raised), || controller.log());
    }
    controller.says("was removed or changed; it is written again");
    Ok(())
}

fn server_away() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    route(&cluster, "a", "a.example.org")?;
    let words = ["--policy", "sync", "--lease-duration", "6s", "--max-staleness", "5s"];
    let controller = Controller::on_bind(&cluster, &zone, &words);
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    let names = || controller.get("/api/v1/names?q=a.example.org");
    until("it is seen to be published", || !names().contains("\"health\":\"held\""), names);
    assert!(!names().contains("\"health\":\"unknown\""), "{}", names());
    cluster.kill_api();
    until("age is told", || controller.get("/readyz").contains("not heard"), || controller.get("/readyz"));
    until("it is not known any more", || names().contains("\"health\":\"unknown\""), names);
    // Somebody removes the record: without the Lease nothing is repaired, and nothing else happens.
    zone.edit("example.org", &["update delete a.example.org A"])?;
    zone_stays(&zone, &[], &[&controller]);
    cluster.run_api()?;
    route(&cluster, "b", "b.example.org")?;
    zone_comes_to(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], &[&controller]);
    Ok(())
}

/// Gives a user the rights that `gatepost rbac` says a controller needs.
pub(crate) fn give_rights(cluster: &Cluster, user: &str) -> Result<(), Failed> {
    let program = gatepost_testkit::program::Program::at(env!("CARGO_BIN_EXE_gatepost"));
    cluster.apply(&program.run(&["rbac".to_owned()], "")?.output)?;
    let binding = |kind: &str, namespace: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding\nmetadata: {{name: {user}{namespace}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: gatepost}}\n\
             subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {user}}}]\n"
        )
    };
    cluster.apply(&(binding("ClusterRole", "") + "---\n" + &binding("Role", ", namespace: gatepost")))?;
    Ok(())
}

fn right_missing() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup { users: vec!["limited"], ..Setup::default() })?, bind()?);
    let program = gatepost_testkit::program::Program::at(env!("CARGO_BIN_EXE_gatepost"));
    give_rights(&cluster, "limited")?;
    route(&cluster, "a", "a.example.org")?;
    let words = ["--policy", "sync"];
    let pre =
        ["check", "--pre", "--kubeconfig", &cluster.kubeconfig("limited").display().to_string()].map(str::to_owned);
    let answer = program.run(&pre, "")?;
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    let controller = Controller::on_bind_as(&cluster.kubeconfig("limited"), &zone, &words);
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    assert!(!controller.log().contains("forbidden"), "the roles of `gatepost rbac` are enough: {}", controller.log());
    controller.stop();
    let role = cluster.json(&["clusterrole", "gatepost"])?;
    let rules = role["rules"].as_array().unwrap();
    let kept: Vec<_> =
        rules.iter().filter(|rule| !rule["resources"].to_string().contains("\"listenersets\"")).collect();
    assert!(kept.len() < rules.len());
    let patch = serde_json::json!({"rules": kept}).to_string();
    cluster.kubectl(&["patch", "clusterrole", "gatepost", "--type=merge", "-p", &patch])?;
    let answer = program.run(&pre, "")?;
    assert_eq!(answer.exit, 1, "{}{}", answer.output, answer.errors);
    let named = "may not list listenersets of gateway.networking.k8s.io: hostnames on ListenerSets are held";
    assert!(answer.output.contains(named), "{}", answer.output);
    let controller = Controller::on_bind_as(&cluster.kubeconfig("limited"), &zone, &words);
    controller.says("cannot list resource");
    until("it is named", || controller.get("/readyz").contains("\"listenersets\""), || controller.get("/readyz"));
    cluster.delete("httproute/a", "shop")?;
    zone_stays(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    Ok(())
}

/// Pairs of replicas, each with a zone and a Lease of its own, and how often in each pair the leader is paused: fifty times in all.
const PAIRS: usize = 10;
const ROUNDS: usize = 5;

fn paused_leader() -> Result<(), Failed> {
    let zones: Vec<String> = (0..PAIRS).map(|pair| format!("z{pair}.example.org")).collect();
    let (cluster, server) = (cluster(&Setup::default())?, bind_with(&zones)?);
    std::thread::scope(|scope| {
        let pairs = zones.iter().map(|zone| scope.spawn(|| Pair::start(&cluster, &server, zone)?.rounds()));
        let pairs: Vec<_> = pairs.collect();
        pairs.into_iter().try_for_each(|pair| pair.join().unwrap())
    })
}

/// Two replicas over one zone.
struct Pair<'a> {
    cluster: &'a Cluster,
    server: &'a DnsServer,
    zone: &'a str,
    replicas: [Controller; 2],
}

impl<'a> Pair<'a> {
    fn start(cluster: &'a Cluster, server: &'a DnsServer, zone: &'a str) -> Result<Self, Failed> {
        let lease = format!("lease-{}", zone.split('.').next().unwrap());
        let words = ["--policy", "sync", "--lease-duration", "4s", "--lease", &lease, "--domain-filter", zone];
        let replicas = ["first", "second"].map(|identity| {
            let words = [&words[..], &["--identity", identity]].concat();
            Controller::at(&cluster.kubeconfig(ADMIN), server.address, zone, &words)
        });
        let pair = Pair { cluster, server, zone, replicas };
        // Without another name the last one would be held as a source that went empty.
        pair.route("k", "k")?;
        pair.route("a", "a")?;
        pair.comes_to(&["a", "k"]);
        Ok(pair)
    }

    /// A route with a name in the zone, and its name in the cluster.
    fn route(&self, name: &str, label: &str) -> Result<(), Failed> {
        route(self.cluster, &self.object(name), &format!("{label}.{}", self.zone))
    }

    fn object(&self, name: &str) -> String {
        format!("{name}-{}", self.zone.split('.').next().unwrap())
    }

    fn expected(&self, labels: &[&str]) -> Vec<String> {
        labels.iter().map(|label| format!("{label}.{} 192.0.2.1", self.zone)).collect()
    }

    fn comes_to(&self, labels: &[&str]) {
        let (expected, now) = (self.expected(labels), || addresses_in(self.server, self.zone));
        let logs = || format!("{:?}\n{}\n--\n{}", now(), self.replicas[0].log(), self.replicas[1].log());
        until(&format!("{} has {labels:?}", self.zone), || now() == expected, logs);
    }

    fn leader(&self) -> &Controller {
        let leads = |replica: &&Controller| replica.number("gatepost_leader") > 0.5;
        until("one leads", || self.replicas.iter().any(|r| leads(&r)), || self.replicas[0].log());
        self.replicas.iter().find(leads).unwrap_or(&self.replicas[0])
    }

    fn rounds(&self) -> Result<(), Failed> {
        for round in 0..ROUNDS {
            let leader = self.leader();
            // The leader gets something to delete, and is stopped at some moment of its pass; the other one finds it wanted again.
            self.cluster.delete(&format!("httproute/{}", self.object("a")), "shop")?;
            // A fixed time, another one in each round: the moment of the pass at which it is stopped is what is tried.
            std::thread::sleep(Duration::from_millis(100 + 97 * round as u64));
            leader.signal("STOP");
            self.route("a", "a")?;
            let label = format!("b{round}");
            self.route("b", &label)?;
            self.comes_to(&["a", &label, "k"]);
            // It learns that it no longer leads only after the pass within which it was stopped has ended.
            let losses = || leader.log().matches("\"message\":\"not leading\"").count();
            let before = losses();
            leader.signal("CONT");
            let expected = self.expected(&["a", &label, "k"]);
            let has_lost = || {
                assert_eq!(addresses_in(self.server, self.zone), expected, "round {round}: {}", leader.log());
                losses() > before
            };
            until("it knows that it does not lead", has_lost, || leader.log());
            assert_eq!(addresses_in(self.server, self.zone), expected, "round {round}: {}", leader.log());
        }
        Ok(())
    }
}

/// An update that is on its way when leadership changes arrives late, by itself, at the name server.
fn late_update() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let (is_held, is_caught) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (held, caught) = (is_held.clone(), is_caught.clone());
    let relay = Relay::start(zone.address, move |way, message| {
        while way == Direction::There && is_update(message) && held.load(Ordering::Relaxed) {
            caught.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
        }
        Fate::Pass
    })?;
    let words = ["--policy", "sync", "--lease-duration", "4s", "--identity"];
    route(&cluster, "a", "a.example.org")?;
    route(&cluster, "k", "k.example.org")?;
    let config = cluster.kubeconfig(ADMIN);
    let first = Controller::at(&config, relay.address, "example.org", &[&words[..], &["first"]].concat());
    zone_comes_to(&zone, &["a.example.org 192.0.2.1", "k.example.org 192.0.2.1"], &[&first]);
    is_held.store(true, Ordering::Relaxed);
    cluster.delete("httproute/a", "shop")?;
    until("the delete is on its way", || is_caught.load(Ordering::Relaxed), || first.log());
    first.signal("STOP");
    // The second one finds everything as it should be, and has nothing to write but its words.
    route(&cluster, "a", "a.example.org")?;
    let second = Controller::on_bind(&cluster, &zone, &[&words[..], &["second"]].concat());
    let fence =
        || zone.dump("example.org").unwrap_or_default().into_iter().find(|line| line.contains("heritage=gatepost"));
    until("the second has raised its fence", || fence().is_some_and(|l| l.contains("holder=second")), || second.log());
    let all = ["a.example.org 192.0.2.1", "k.example.org 192.0.2.1"];
    assert_eq!(addresses(&zone), all);
    let refusals = || zone.log().matches("prerequisite not satisfied").count();
    assert_eq!(refusals(), 0, "{}", zone.log());
    is_held.store(false, Ordering::Relaxed);
    until("the name server refuses it", || refusals() > 0, || zone.log());
    assert_eq!(addresses(&zone), all);
    Ok(())
}

fn slow_server() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    route(&cluster, "a", "a.example.org")?;
    // Each replica has a line of its own: two seconds until something comes, and 20 kB/s then.
    let lines = [Proxy::start(&cluster)?, Proxy::start(&cluster)?];
    lines.iter().for_each(|line| line.judge(|_| Fault::Slow(Duration::from_secs(2), 20_000)));
    let start = |line: &Proxy| Controller::on_bind_as(&line.kubeconfig(), &zone, &["--policy", "sync"]);
    let [first, second] = lines.each_ref().map(start);
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&first, &second]);
    route(&cluster, "b", "b.example.org")?;
    zone_comes_to(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], &[&first, &second]);
    let log = zone.log();
    let added = |name: &str| log.matches(&format!("adding an RR at '{name}")).count();
    assert_eq!((added("a.example.org' A "), added("b.example.org' A ")), (1, 1), "each is written once: {log}");
    // Whoever wrote did so in a term of its own, and each term was begun with the Lease.
    let terms = cluster.json(&["lease", "gatepost", "-n", "gatepost"])?["spec"]["leaseTransitions"].as_u64();
    assert!(terms.is_some_and(|terms| (1..=terms).contains(&(added("_gatepost-") as u64))), "{terms:?} terms: {log}");
    Ok(())
}

/// One clock is four minutes ahead and the other as much behind; with five the name server would refuse their signatures.
fn other_clocks() -> Result<(), Failed> {
    let (cluster, zone, clock) = (cluster(&Setup::default())?, bind()?, MovedClock::build()?);
    let start = |name: &str, seconds| {
        let words = ["--policy", "sync", "--lease-duration", "8s", "--identity", name];
        Controller::on_bind_in(&clock.ahead(seconds), &cluster, &zone, &words)
    };
    let ahead = start("ahead", 240);
    ahead.says("\"message\":\"leading\"");
    let behind = start("behind", -240);
    route(&cluster, "a", "a.example.org")?;
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&ahead, &behind]);
    // Who renews keeps the Lease, for longer than it lasts, and with a time that has not come yet.
    zone_stays_for(&zone, &["a.example.org 192.0.2.1"], Duration::from_secs(20));
    assert_eq!(term(&cluster)?, (1, 4), "terms, and minutes that the Lease is ahead");
    // That time does not keep it for who is paused; and who wakes up leaves it, though by its clock it is over since long.
    ahead.signal("STOP");
    route(&cluster, "b", "b.example.org")?;
    zone_comes_to(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], &[&behind]);
    ahead.signal("CONT");
    let both = ["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"];
    zone_stays_for(&zone, &both, Duration::from_secs(20));
    assert_eq!(term(&cluster)?, (2, -4), "terms, and minutes that the Lease is ahead");
    let log = zone.log();
    for (name, times) in [("a.example.org' A ", 1), ("b.example.org' A ", 1), ("_gatepost-", 2)] {
        assert_eq!(log.matches(&format!("adding an RR at '{name}")).count(), times, "{name}: {log}");
    }
    Ok(())
}

/// How often the Lease was taken, and how many minutes its last renewal is ahead of the time.
fn term(cluster: &Cluster) -> Result<(u64, i64), Failed> {
    let spec = &cluster.json(&["lease", "gatepost", "-n", "gatepost"])?["spec"];
    let seconds = |text: &str| -> Result<i64, Failed> {
        let said = Command::new("date").args(["-d", text, "+%s"]).output()?;
        Ok(String::from_utf8(said.stdout)?.trim().parse()?)
    };
    let ahead = seconds(spec["renewTime"].as_str().unwrap_or_default())? - seconds("now")?;
    Ok((spec["leaseTransitions"].as_u64().unwrap_or_default(), (ahead + 30).div_euclid(60)))
}

fn uninstalled() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    route(&cluster, "a", "a.example.org")?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync"]);
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    controller.stop();
    for words in [&["gateway", "edge", "-n", "infra"][..], &["httproute", "a", "-n", "shop"]] {
        let live = cluster.json(words)?;
        assert!(live["metadata"]["finalizers"].is_null(), "{live}");
    }
    cluster.kubectl(&["delete", "httproute", "a", "-n", "shop", "--timeout=20s"])?;
    assert_eq!(addresses(&zone), ["a.example.org 192.0.2.1"], "what is left is in the zone, with its marker");
    assert!(zone.dump("example.org")?.iter().any(|line| line.contains("heritage=external-dns")));
    Ok(())
}

/// Seconds for which a route flips; the scorecard says sixty.
const FLIPPING: u32 = 20;

fn flipping() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let text = |name: &str| super::bed::route_text(name, &format!("{name}0.example.org"));
    cluster.apply(&[text("flip"), text("other")].join("---\n"))?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync", "--status", "compute"]);
    zone_comes_to(&zone, &["flip0.example.org 192.0.2.1", "other0.example.org 192.0.2.1"], &[&controller]);
    let tenant = Proxy::start(&cluster)?;
    let (before, begun) = (zone.serial(ZONE)?, Instant::now());
    let longest = std::thread::scope(|scope| {
        let flips = scope.spawn(|| (1..=FLIPPING * 100).try_for_each(|i| flip(&tenant, i, begun)));
        let mut longest = Duration::ZERO;
        let mut i = 0;
        while !flips.is_finished() {
            i += 1;
            longest = longest.max(other_change(&tenant, &zone, i)?);
            // The load that the test is about: other changes come at this pace.
            std::thread::sleep(Duration::from_millis(100));
        }
        flips.join().map_err(|_| Failed::from("the tenant failed"))??;
        assert!(i >= 10, "only {i} changes of others");
        Ok::<_, Failed>(longest)
    })?;
    let has_last =
        || addresses(&zone).iter().filter(|line| line.starts_with("flip")).eq(["flip0.example.org 192.0.2.1"]);
    until("the last flip is followed", has_last, || controller.log());
    let (written, seconds) = (zone.serial(ZONE)? - before, begun.elapsed().as_secs());
    assert!(u64::from(written) <= seconds + 1, "the zone was written {written} times in {seconds} s");
    assert!(longest < Duration::from_secs(5), "a change of others took {longest:?}");
    Ok(())
}

/// Gives a route one name or the other.
fn give_name(tenant: &Proxy, route: &str, i: u32) -> Result<(), Failed> {
    let path = format!("/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes/{route}");
    Ok(tenant.patch(&path, &json!({"spec": {"hostnames": [format!("{route}{}.example.org", i % 2)]}}))?)
}

/// The flip of this number, a hundredth of a second after the one before.
fn flip(tenant: &Proxy, i: u32, begun: Instant) -> Result<(), Failed> {
    // The load that the test is about: a hundred flips a second.
    std::thread::sleep((begun + Duration::from_millis(10) * i).saturating_duration_since(Instant::now()));
    give_name(tenant, "flip", i)
}

/// How long it takes until the zone has what another route asks for, and nothing else of it.
fn other_change(tenant: &Proxy, zone: &DnsServer, i: u32) -> Result<Duration, Failed> {
    give_name(tenant, "other", i)?;
    let (asked, expected) = (Instant::now(), format!("other{}.example.org 192.0.2.1", i % 2));
    let others = || addresses(zone).into_iter().filter(|line| line.starts_with("other")).collect::<Vec<_>>();
    until(&format!("the zone has {expected}"), || others() == [&*expected], || format!("{:?}", others()));
    Ok(asked.elapsed())
}

/// 21 names on the embedded server; while writing is frozen none goes, none comes, and all are answered.
fn frozen_embedded() -> Result<(), Failed> {
    let cluster = cluster(&Setup::default())?;
    let name = |i: usize| format!("n{i}.example.org");
    for i in 0..21 {
        route(&cluster, &format!("n{i}"), &name(i))?;
    }
    let words = ["--provider", "embedded", "--zone", ZONE, "--policy", "sync"];
    let controller = Controller::start(&cluster.kubeconfig(ADMIN), &words);
    let server = controller.dns.unwrap();
    let all: Vec<String> = (0..21).map(name).collect();
    let is_there = |name: &str| ask(server, name) == Some((0, 1));
    until("all are answered", || all.iter().all(|name| is_there(name)), || controller.log());
    let asking = QueryLoop::start(server, &all);
    cluster.kubectl(&["annotate", "lease", "gatepost", "-n", "gatepost", "gatepost.dev/freeze=bad rollout"])?;
    until("the annotation is seen", || controller.get("/readyz").contains("bad rollout"), || controller.log());
    cluster.delete("httproute/n3", "shop")?;
    route(&cluster, "new", "new.example.org")?;
    controller.passes_again(|| assert!(!is_there("new.example.org") && is_there("n3.example.org")));
    assert!(asking.failures().is_empty(), "{:?}", asking.failures());
    drop(asking);
    cluster.kubectl(&["annotate", "lease", "gatepost", "-n", "gatepost", "gatepost.dev/freeze-"])?;
    let is_followed = || is_there("new.example.org") && !is_there("n3.example.org");
    until("what was held up is written", is_followed, || controller.log());
    Ok(())
}

/// The zones of the state directory are answered by a replica that starts while the API server is away.
fn starts_without_server() -> Result<(), Failed> {
    let cluster = cluster(&Setup::default())?;
    let name = |i: usize| format!("n{i}.example.org");
    for i in 0..21 {
        route(&cluster, &format!("n{i}"), &name(i))?;
    }
    let state = cluster.folder().join("state").display().to_string();
    let words = ["--provider", "embedded", "--zone", ZONE, "--policy", "sync", "--state-dir", &*state];
    let all: Vec<String> = (0..21).map(name).collect();
    let are_there = |controller: &Controller| all.iter().all(|name| ask(controller.dns.unwrap(), name) == Some((0, 1)));
    let first = Controller::start(&cluster.kubeconfig(ADMIN), &words);
    until("all are answered", || are_there(&first), || first.log());
    first.stop();
    cluster.kill_api();
    let second = Controller::start(&cluster.kubeconfig(ADMIN), &words);
    assert!(are_there(&second), "answered before anything is known of the cluster: {}", second.log());
    assert!(second.get("/readyz").contains("the API server has not answered yet"), "{}", second.get("/readyz"));
    cluster.run_api()?;
    route(&cluster, "new", "new.example.org")?;
    let has_new = || ask(second.dns.unwrap(), "new.example.org") == Some((0, 1));
    until("it goes on when the server is back", has_new, || second.log());
    second.is_ready();
    assert!(are_there(&second));
    Ok(())
}

fn frozen() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let file = cluster.folder().join("freeze");
    let controller =
        Controller::on_bind(&cluster, &zone, &["--policy", "sync", "--freeze-file", file.to_str().unwrap()]);
    route(&cluster, "a", "a.example.org")?;
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    std::fs::write(&file, "")?;
    controller.says("writing is frozen");
    route(&cluster, "b", "b.example.org")?;
    zone_stays(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    assert!((controller.number("gatepost_frozen") - 1.0).abs() < 0.1);
    assert!(controller.get("/readyz").contains("frozen"));
    std::fs::remove_file(&file)?;
    zone_comes_to(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], &[&controller]);
    cluster.kubectl(&["annotate", "lease", "gatepost", "-n", "gatepost", "gatepost.dev/freeze=bad rollout"])?;
    until("the annotation is seen", || controller.get("/readyz").contains("bad rollout"), || controller.log());
    route(&cluster, "c", "c.example.org")?;
    zone_stays(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], &[&controller]);
    cluster.kubectl(&["annotate", "lease", "gatepost", "-n", "gatepost", "gatepost.dev/freeze-"])?;
    zone_comes_to(
        &zone,
        &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1", "c.example.org 192.0.2.1"],
        &[&controller],
    );
    Ok(())
}
