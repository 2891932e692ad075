//! When probes run: how often, how many at once, and how evenly.

use gatepost_core::health::AddressHealth;

use super::*;

const INTERVAL: Duration = Duration::from_secs(30);

fn probe(path: &str) -> Arc<PolicyProbe> {
    let settings = ProbeSettings {
        protocol: super::super::ProbeProtocol::Http,
        port: 80,
        path: path.to_owned(),
        timeout: Duration::from_secs(5),
        statuses: Vec::new(),
        skips_verification: false,
        headers: Vec::new(),
    };
    let thresholds = ProbeThresholds { failures: 2, successes: 1 };
    Arc::new(PolicyProbe { settings: Ok(settings), thresholds, interval: INTERVAL })
}

fn subject(name: usize, address: usize) -> ProbeSubject {
    let name: Str = format!("n{name}.test").into();
    ProbeSubject { name, policy: Key::new("infra", "dns"), address: format!("192.0.2.{address}").into() }
}

fn targets(names: usize, addresses: usize) -> ProbeTargets {
    let all = (0..names).flat_map(|name| (0..addresses).map(move |address| subject(name, address)));
    let probe = probe("/");
    all.map(|subject| (subject, probe.clone())).collect()
}

fn queue(targets: &ProbeTargets, all: usize, per_address: usize, now: Instant) -> ProbeQueue {
    let mut queue = ProbeQueue::new(ProbeLimits { all, per_address });
    queue.replace(targets, &ObservedHealth::default(), now, 0);
    queue
}

/// Starts everything that is due at a time, and ends it with a result.
fn round(queue: &mut ProbeQueue, now: Instant, result: &Result<(), ProbeFailure>) -> Vec<ProbeSubject> {
    queue.advance(now, &mut || 0.5);
    let mut started = Vec::new();
    while let Some((subject, _)) = queue.start() {
        queue.finish(&subject, result.clone(), 1);
        started.push(subject);
    }
    started
}

#[test]
fn each_target_is_probed_once_in_an_interval_and_all_are_spread_over_it() {
    let now = Instant::now();
    let mut queue = queue(&targets(500, 2), 1000, 1000, now);
    let mut by_second = Vec::new();
    let mut times: BTreeMap<ProbeSubject, usize> = BTreeMap::new();
    for second in 1..=90 {
        let started = round(&mut queue, now + Duration::from_secs(second), &Ok(()));
        by_second.push(started.len());
        started.into_iter().for_each(|subject| *times.entry(subject).or_default() += 1);
    }
    assert_eq!(times.len(), 1000);
    assert!(times.values().all(|times| (2..=3).contains(times)), "{times:?}");
    // Chance moves every probe but the first of each target, so that one second has fewer where the second ones begin.
    let (least, most) = (by_second.iter().skip(31).min().unwrap(), by_second.iter().max().unwrap());
    assert!((30..=33).contains(least) && (34..=37).contains(most), "{by_second:?}");
}

#[test]
fn so_many_run_at_once_and_addresses_take_turns() {
    let now = Instant::now();
    let mut queue = queue(&targets(10, 3), 5, 2, now);
    queue.advance(now + INTERVAL * 2, &mut || 0.0);
    let begin =
        |queue: &mut ProbeQueue| std::iter::from_fn(|| queue.start()).map(|(subject, _)| subject).collect::<Vec<_>>();
    let first = begin(&mut queue);
    let of = |address: usize| first.iter().filter(|one| one.address == subject(0, address).address).count();
    assert_eq!(([of(0), of(1), of(2)], queue.numbers().running), ([2, 2, 1], 5));
    queue.finish(&first[0], Ok(()), 1);
    assert_eq!(begin(&mut queue).len(), 1);
    // Who still waits is not put into the queue a second time.
    queue.advance(now + INTERVAL * 4, &mut || 0.0);
    assert_eq!(queue.numbers().left_out, 29);
}

#[test]
fn results_count_by_the_thresholds_of_the_policy() {
    let now = Instant::now();
    let mut queue = queue(&targets(1, 1), 10, 10, now);
    let failed = || Err(ProbeFailure::Failed("status 500".to_owned()));
    let one = subject(0, 0);
    let state = |queue: &ProbeQueue| queue.observed().of(&one.name, &one.policy, &one.address).map(|known| known.state);
    assert_eq!([1, 2].map(|at| queue.finish(&one, Ok(()), at)), [ProbeNews::Calm, ProbeNews::Nothing]);
    assert_eq!(queue.finish(&one, failed(), 3), ProbeNews::Nothing);
    assert_eq!(state(&queue), Some(HealthState::Healthy));
    assert_eq!(queue.finish(&one, failed(), 4), ProbeNews::Urgent);
    assert_eq!((state(&queue), queue.numbers().changes), (Some(HealthState::Unhealthy), 1));
    assert_eq!(queue.finish(&one, Err(ProbeFailure::NotMade("no".to_owned())), 5), ProbeNews::Urgent);
    assert_eq!(state(&queue), Some(HealthState::Unknown));
    assert_eq!(queue.finish(&subject(7, 7), Ok(()), 6), ProbeNews::Nothing, "a target that is gone");
}

#[test]
fn what_was_known_goes_on_and_another_check_counts_anew() {
    let now = Instant::now();
    let one = subject(0, 0);
    let mut known = ObservedHealth::default();
    let health = AddressHealth { state: HealthState::Unhealthy, since: 3, error: "status 500".into() };
    known.set(&one.name, &one.policy, &one.address, health.clone());
    let mut queue = ProbeQueue::new(ProbeLimits { all: 1, per_address: 1 });
    queue.replace(&targets(1, 1), &known, now, 0);
    assert_eq!(*queue.observed(), known);
    let failed = || Err(ProbeFailure::Failed("status 500".to_owned()));
    assert_eq!(queue.finish(&one, Ok(()), 1), ProbeNews::Urgent);
    queue.finish(&one, failed(), 2);
    queue.replace(&vec![(one.clone(), probe("/other"))], &known, now, 3);
    assert_eq!(queue.finish(&one, failed(), 4), ProbeNews::Nothing, "each check has one failure");
    assert_eq!(queue.finish(&one, failed(), 5), ProbeNews::Urgent);
    queue.replace(&Vec::new(), &known, now, 6);
    assert_eq!((queue.observed().len(), queue.next_due()), (0, None));
}

#[test]
fn a_shorter_interval_is_not_waited_for() {
    let now = Instant::now();
    let mut queue = queue(&targets(20, 1), 100, 100, now);
    round(&mut queue, now + INTERVAL, &Ok(()));
    let short = Duration::from_secs(5);
    let shorter = Arc::new(PolicyProbe { interval: short, ..(*probe("/")).clone() });
    let again = targets(20, 1).into_iter().map(|(subject, _)| (subject, shorter.clone())).collect();
    queue.replace(&again, &ObservedHealth::default(), now + INTERVAL, 0);
    assert_eq!(round(&mut queue, now + INTERVAL + short, &Ok(())).len(), 20);
}
