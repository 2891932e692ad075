//! Leadership, freezing, outages: section D of the scorecard.

use std::time::Duration;

use gatepost_testkit::servers::kube::Setup;
use gatepost_testkit::servers::kube::proxy::{Fault, Proxy};
use gatepost_testkit::{Failed, Trial};

use super::bed::{Controller, addresses, bind, cluster, route, trial, until, zone_comes_to, zone_stays};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("one of two replicas writes, and the other takes over", takes_over),
        trial("scenario 39: nothing is written from what is old, and all is well when the server is back", server_away),
        trial(
            "scenario 43: a right that is missing is named in /readyz, and what it would tell is held",
            right_missing,
        ),
        trial("scenario 45: a slow API server keeps the Lease, and the zone follows", slow_server),
        trial("scenario 47: what a paused leader sends late is refused by the zone itself", paused_leader),
        trial("scenario 48: times that another clock wrote into the Lease mean nothing", other_clocks),
        trial("scenario 50: nothing is left to wait for when the controller is gone", uninstalled),
        trial("scenario 52: a route that flips is written at most once a second", flipping),
        trial("scenario 93: a freeze by file or by annotation stops every write", frozen),
    ]
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

fn server_away() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    route(&cluster, "a", "a.example.org")?;
    let words = ["--policy", "sync", "--lease-duration", "6s", "--max-staleness", "5s"];
    let controller = Controller::on_bind(&cluster, &zone, &words);
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    cluster.kill_api();
    until("age is told", || controller.get("/readyz").contains("not heard"), || controller.get("/readyz"));
    // Somebody removes the record: without the Lease nothing is repaired, and nothing else happens.
    zone.edit("example.org", &["update delete a.example.org A"])?;
    zone_stays(&zone, &[], Duration::from_secs(8));
    cluster.run_api()?;
    route(&cluster, "b", "b.example.org")?;
    zone_comes_to(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], &[&controller]);
    Ok(())
}

fn right_missing() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup { users: vec!["limited"], ..Setup::default() })?, bind()?);
    let program = gatepost_testkit::program::Program::at(env!("CARGO_BIN_EXE_gatepost"));
    let roles = program.run(&["rbac".to_owned()], "")?.output;
    cluster.apply(&roles)?;
    let binding = |kind: &str, role: &str, namespace: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding\nmetadata: {{name: limited{namespace}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {role}}}\n\
             subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: limited}}]\n"
        )
    };
    cluster.apply(
        &(binding("ClusterRole", "gatepost", "") + "---\n" + &binding("Role", "gatepost", ", namespace: gatepost")),
    )?;
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
    zone_stays(&zone, &["a.example.org 192.0.2.1"], Duration::from_secs(8));
    Ok(())
}

fn paused_leader() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let words = ["--policy", "sync", "--lease-duration", "4s"];
    route(&cluster, "a", "a.example.org")?;
    let first = Controller::on_bind(&cluster, &zone, &[&words[..], &["--identity", "first"]].concat());
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&first]);
    let second = Controller::on_bind(&cluster, &zone, &[&words[..], &["--identity", "second"]].concat());
    for round in 0..5 {
        let (old, new) = if round % 2 == 0 { (&first, &second) } else { (&second, &first) };
        // The old leader gets something to delete, and is stopped at some moment of its pass.
        cluster.delete("httproute/a", "shop")?;
        std::thread::sleep(Duration::from_millis(150 + 60 * round));
        old.signal("STOP");
        route(&cluster, "a", "a.example.org")?;
        route(&cluster, "b", &format!("b{round}.example.org"))?;
        let all = ["a.example.org 192.0.2.1".to_owned(), format!("b{round}.example.org 192.0.2.1")];
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        zone_comes_to(&zone, &all, &[new]);
        old.signal("CONT");
        zone_stays(&zone, &all, Duration::from_secs(4));
    }
    Ok(())
}

fn slow_server() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    route(&cluster, "a", "a.example.org")?;
    let proxy = Proxy::start(&cluster)?;
    proxy.judge(|_| Fault::Late(Duration::from_secs(1)));
    let words = ["--policy", "sync"];
    let controller = Controller::on_bind_as(&proxy.kubeconfig(), &zone, &words);
    zone_comes_to(&zone, &["a.example.org 192.0.2.1"], &[&controller]);
    route(&cluster, "b", "b.example.org")?;
    zone_comes_to(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], &[&controller]);
    assert_eq!(controller.log().matches("\"message\":\"leading\"").count(), 1, "{}", controller.log());
    Ok(())
}

fn other_clocks() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    let words = ["--policy", "sync", "--lease-duration", "4s"];
    let first = Controller::on_bind(&cluster, &zone, &[&words[..], &["--identity", "first"]].concat());
    first.says("\"message\":\"leading\"");
    let second = Controller::on_bind(&cluster, &zone, &[&words[..], &["--identity", "second"]].concat());
    // Somebody's clock is years behind, then years ahead: who renews keeps the Lease all the same.
    for time in ["2020-01-01T00:00:00.000000Z", "2040-01-01T00:00:00.000000Z"] {
        let patch = format!("{{\"spec\":{{\"renewTime\":\"{time}\",\"acquireTime\":\"{time}\"}}}}");
        for _ in 0..4 {
            cluster.kubectl(&["patch", "lease", "gatepost", "-n", "gatepost", "--type=merge", "-p", &patch])?;
            std::thread::sleep(Duration::from_millis(1500));
        }
    }
    assert!(!second.log().contains("\"message\":\"leading\""), "{}", second.log());
    // A time in the future does not keep the Lease for who is gone.
    first.kill();
    second.says("\"message\":\"leading\"");
    Ok(())
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

fn flipping() -> Result<(), Failed> {
    let (cluster, zone) = (cluster(&Setup::default())?, bind()?);
    route(&cluster, "quiet", "quiet.example.org")?;
    let controller = Controller::on_bind(&cluster, &zone, &["--policy", "sync", "--status", "compute"]);
    zone_comes_to(&zone, &["quiet.example.org 192.0.2.1"], &[&controller]);
    let serial = || zone.log().matches("updating zone").count();
    let (before, begun) = (serial(), std::time::Instant::now());
    for i in 0..40 {
        cluster.apply(&super::bed::route_text("flip", &format!("flip{}.example.org", i % 2)))?;
    }
    route(&cluster, "last", "last.example.org")?;
    // So many deletes within an hour may have become too many; who comes late is published all the same.
    let has = |name: &str| addresses(&zone).contains(&format!("{name}.example.org 192.0.2.1"));
    until("the others are there", || has("last") && has("quiet") && has("flip1"), || controller.log());
    let seconds = begun.elapsed().as_secs() as usize + 1;
    // One pass is an update or two: what is made, and what goes after it was seen.
    assert!(serial() - before <= 2 * 3 * seconds, "{} updates in {seconds} s", serial() - before);
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
    zone_stays(&zone, &["a.example.org 192.0.2.1"], Duration::from_secs(6));
    assert!((controller.number("gatepost_frozen") - 1.0).abs() < 0.1);
    assert!(controller.get("/readyz").contains("frozen"));
    std::fs::remove_file(&file)?;
    zone_comes_to(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], &[&controller]);
    cluster.kubectl(&["annotate", "lease", "gatepost", "-n", "gatepost", "gatepost.dev/freeze=bad rollout"])?;
    until("the annotation is seen", || controller.get("/readyz").contains("bad rollout"), || controller.log());
    route(&cluster, "c", "c.example.org")?;
    zone_stays(&zone, &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1"], Duration::from_secs(6));
    cluster.kubectl(&["annotate", "lease", "gatepost", "-n", "gatepost", "gatepost.dev/freeze-"])?;
    zone_comes_to(
        &zone,
        &["a.example.org 192.0.2.1", "b.example.org 192.0.2.1", "c.example.org 192.0.2.1"],
        &[&controller],
    );
    Ok(())
}
