//! Which policy governs, by hand-built objects.

use super::*;
use crate::attachment::Scope;
use crate::objects;
use crate::publication::tests::world::*;
use crate::snapshot::Object;

fn world() -> Vec<Object> {
    let edge = gateway("infra/edge", vec![http("a", "a.test"), http("b", "b.test")]);
    let set = listener_set("infra/set", "infra/edge", vec![http("c", "c.test"), http("d", "d.test")]);
    objects![edge, set]
}

fn section(mut policy: DnsPolicy, name: &str) -> DnsPolicy {
    policy.target.section = Some(name.into());
    policy
}

fn aged(mut policy: DnsPolicy, created: i64) -> DnsPolicy {
    policy.meta.created = Some(created);
    policy
}

/// The governing policy of each listener, in order, and the reasons of refused policies.
fn evaluated(policies: Vec<DnsPolicy>) -> (Vec<String>, Vec<String>) {
    judged_in(Scope::default(), policies)
}

fn judged_in(scope: Scope, policies: Vec<DnsPolicy>) -> (Vec<String>, Vec<String>) {
    let mut snapshot = Snapshot::of(world());
    policies.into_iter().for_each(|policy| _ = snapshot.upsert(Object::DnsPolicy(policy)));
    let topology = Topology::build(&snapshot, &scope);
    let book = Policies::build(&snapshot, &topology, &Default::default()).dns;
    let name = |policy: Option<&Arc<DnsPolicy>>| policy.map_or("-".to_owned(), |p| p.meta.key.name.to_string());
    let governing = topology.listener_ids().map(|(id, _)| name(book.governing(id))).collect();
    let refused =
        book.states.values().filter_map(|s| Some(format!("{} {}", s.policy.meta.key.name, s.refused.as_ref()?.reason)));
    (governing, refused.collect())
}

fn governing(policies: Vec<DnsPolicy>) -> Vec<String> {
    evaluated(policies).0
}

#[test]
fn the_closest_policy_governs() {
    let whole = || dns("infra/whole", "Gateway", "edge");
    let set = || dns("infra/set", "ListenerSet", "set");
    let own = || section(dns("infra/own", "Gateway", "edge"), "a");
    let deep = || section(dns("infra/deep", "ListenerSet", "set"), "c");
    assert_eq!(governing(vec![]), ["-", "-", "-", "-"]);
    assert_eq!(governing(vec![whole()]), ["whole"; 4]);
    assert_eq!(governing(vec![own()]), ["own", "-", "-", "-"]);
    assert_eq!(governing(vec![set()]), ["-", "-", "set", "set"]);
    assert_eq!(governing(vec![deep(), own(), set(), whole()]), ["own", "whole", "deep", "set"]);
}

#[test]
fn among_equal_targets_the_oldest_wins_then_the_first_by_name() {
    let policy = |name: &str, created| aged(dns(name, "Gateway", "edge"), created);
    let (who, refused) = evaluated(vec![policy("infra/a", 9), policy("infra/b", 5), policy("infra/c", 5)]);
    assert_eq!(who, ["b"; 4]);
    assert_eq!(refused, ["a policy-conflicted", "c policy-conflicted"]);
}

#[test]
fn targets_that_are_not_there_are_refused() {
    let table = [
        dns("infra/x", "Gateway", "none"),
        dns("infra/x", "ListenerSet", "none"),
        dns("infra/x", "XListenerSet", "set"),
        dns("infra/x", "Service", "edge"),
        dns("other/x", "Gateway", "edge"),
        section(dns("infra/x", "Gateway", "edge"), "none"),
        section(dns("infra/x", "Gateway", "edge"), "c"),
    ];
    for policy in table {
        let shown = format!("{:?}", policy.target);
        let (who, refused) = evaluated(vec![policy]);
        assert_eq!((who, refused), (vec!["-".to_owned(); 4], vec!["x policy-target-missing".to_owned()]), "{shown}");
    }
    let others = Scope { classes: vec!["other".into()] };
    let (_, refused) = judged_in(others, vec![dns("infra/x", "Gateway", "edge"), dns("infra/y", "ListenerSet", "set")]);
    assert_eq!(refused, ["x policy-target-missing", "y policy-target-missing"]);
}

#[test]
fn an_invalid_policy_keeps_its_place() {
    let bad = |policy: DnsPolicy| DnsPolicy { exclude_addresses: vec!["x/y".into()], ..policy };
    let whole = || aged(dns("infra/whole", "Gateway", "edge"), 9);
    let (who, refused) = evaluated(vec![whole(), bad(section(dns("infra/own", "Gateway", "edge"), "a"))]);
    let own = ["own", "whole", "whole", "whole"].map(str::to_owned).to_vec();
    assert_eq!((who, refused), (own, vec!["own policy-invalid".to_owned()]));
    let (who, refused) = evaluated(vec![whole(), bad(aged(dns("infra/old", "Gateway", "edge"), 1))]);
    let both = vec!["old policy-invalid".to_owned(), "whole policy-conflicted".to_owned()];
    assert_eq!((who, refused), (vec!["old".to_owned(); 4], both));
}

#[test]
fn values_that_cannot_be_carried_out_are_invalid() {
    let base = || dns("infra/x", "Gateway", "edge");
    let check = || HealthCheck {
        protocol: "HTTP".into(),
        port: 80,
        path: "/".into(),
        interval: 60,
        timeout: 5,
        failure_threshold: 1,
        success_threshold: 1,
        expected_statuses: vec![],
        skips_verification: false,
        headers: None,
    };
    let with = |check| Some(DnsPolicy { health_check: Some(check), ..base() }.problem()?.0.to_string());
    assert_eq!(with(check()), None);
    assert_eq!(with(HealthCheck { protocol: "TCP".into(), ..check() }), None);
    assert_eq!(with(HealthCheck { protocol: "UDP".into(), ..check() }).as_deref(), Some("spec.healthCheck.protocol"));
    assert_eq!(with(HealthCheck { port: 0, ..check() }).as_deref(), Some("spec.healthCheck.port"));
    assert_eq!(with(HealthCheck { path: "x".into(), ..check() }).as_deref(), Some("spec.healthCheck.path"));
    assert_eq!(with(HealthCheck { interval: 4, ..check() }).as_deref(), Some("spec.healthCheck.interval"));
    assert_eq!(with(HealthCheck { timeout: 0, ..check() }).as_deref(), Some("spec.healthCheck.timeout"));
    let successes = HealthCheck { success_threshold: 0, ..check() };
    assert_eq!(with(successes).as_deref(), Some("spec.healthCheck.successThreshold"));
    for (range, is_valid) in
        [((200, 399), true), ((204, 204), true), ((300, 200), false), ((99, 200), false), ((200, 600), false)]
    {
        let found = with(HealthCheck { expected_statuses: vec![range], ..check() });
        assert_eq!(found.as_deref(), (!is_valid).then_some("spec.healthCheck.expectedStatuses[0]"), "{range:?}");
    }
    let ttl = |ttl| DnsPolicy { ttl: Some(ttl), ..base() }.problem().is_some();
    assert_eq!([ttl(0), ttl(1), ttl(i32::MAX as u32), ttl(u32::MAX)], [true, false, false, true]);
    let renews =
        |before| TlsPolicy { duration: Some(100), renew_before: Some(before), ..tls("infra/x", "Gateway", "edge") };
    assert_eq!([renews(99).problem().is_some(), renews(100).problem().is_some()], [false, true]);
}

#[test]
fn a_policy_that_decides_nothing_says_so() {
    let mut objects = world();
    let whole = |name: &str, kind: &str, target: &str| Object::DnsPolicy(dns(name, kind, target));
    objects.push(whole("infra/whole", "Gateway", "edge"));
    objects.push(whole("infra/set", "ListenerSet", "set"));
    for name in ["a", "b"] {
        objects.push(Object::DnsPolicy(section(dns(&format!("infra/{name}"), "Gateway", "edge"), name)));
    }
    let snapshot = Snapshot::of(objects);
    let topology = Topology::build(&snapshot, &Scope::default());
    let diagnostics = Policies::build(&snapshot, &topology, &Default::default()).diagnostics();
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].reason, reason::POLICY_OVERRIDDEN);
}
