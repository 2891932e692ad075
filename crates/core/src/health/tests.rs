//! Thresholds by a second count of the results, and what holds of the published addresses whatever the results are.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn thresholds(failures: u32, successes: u32) -> ProbeThresholds {
    ProbeThresholds { failures, successes }
}

fn result(is_success: bool) -> Result<(), &'static str> {
    if is_success { Ok(()) } else { Err("status 500") }
}

/// The state after each result.
fn states(results: &[bool], thresholds: ProbeThresholds) -> Vec<HealthState> {
    let mut history = ProbeHistory::new(0);
    let state = |(at, is_success): (usize, &bool)| {
        history.observe(result(*is_success), thresholds, at as i64);
        history.health().state
    };
    results.iter().enumerate().map(state).collect()
}

/// The same, by looking at the end of the list only: so many equal results in a row.
fn expected(results: &[bool], thresholds: ProbeThresholds) -> HealthState {
    let Some((last, before)) = results.split_last() else { return HealthState::Unknown };
    let in_a_row = results.iter().rev().take_while(|result| *result == last).count();
    match (expected(before, thresholds), last) {
        (HealthState::Unknown, true) => HealthState::Healthy,
        (HealthState::Unhealthy, true) if in_a_row >= thresholds.successes as usize => HealthState::Healthy,
        (_, false) if in_a_row >= thresholds.failures as usize => HealthState::Unhealthy,
        (state, _) => state,
    }
}

#[test]
fn an_address_leaves_and_returns_exactly_at_the_thresholds() {
    use HealthState::*;
    let found = states(&[true, false, false, true, false, false, false, true, true], thresholds(3, 2));
    assert_eq!(found, [Healthy, Healthy, Healthy, Healthy, Healthy, Healthy, Unhealthy, Unhealthy, Healthy]);
    let found = states(&[false, false, false, true], thresholds(3, 1));
    assert_eq!(found, [Unknown, Unknown, Unhealthy, Healthy]);
}

#[test]
fn a_state_survives_and_the_count_begins_anew() {
    let known = AddressHealth { state: HealthState::Unhealthy, since: 7, error: "status 500".into() };
    let mut history = ProbeHistory::resuming(known.clone());
    assert!(!history.observe(Ok(()), thresholds(3, 2), 10));
    assert_eq!(*history.health(), known);
    history.restart();
    assert!(!history.observe(Ok(()), thresholds(3, 2), 11));
    assert!(history.observe(Ok(()), thresholds(3, 2), 12));
    assert_eq!(*history.health(), AddressHealth { state: HealthState::Healthy, since: 12, error: "".into() });
}

#[test]
fn another_error_of_an_unhealthy_address_is_told_once_in_a_minute() {
    let mut history = ProbeHistory::new(0);
    assert!(history.observe(Err("a"), thresholds(2, 1), 1), "the first failure is told, because nothing else is known");
    assert!(history.observe(Err("b"), thresholds(2, 1), 2));
    assert!(!history.observe(Err("c"), thresholds(2, 1), 3));
    assert!(history.observe(Err("c"), thresholds(2, 1), 2 + ERROR_SPACING));
    assert!(!history.observe(Err("c"), thresholds(2, 1), 3 + 2 * ERROR_SPACING));
    assert_eq!((&*history.health().error, history.health().since), ("c", 2));
    assert!(history.observe(Ok(()), thresholds(2, 1), 4));
    assert_eq!(&*history.health().error, "");
    assert!(!history.observe(Err("d"), thresholds(2, 1), 5), "a single failure of a healthy address is no news");
}

#[test]
fn the_last_that_failed_stay() {
    use AddressPublication::*;
    assert_eq!(decide(&[None, Some(1)]), [Published, Removed]);
    assert_eq!(decide(&[Some(2), Some(1)]), [Kept, Removed]);
    assert_eq!(decide(&[Some(2), Some(2)]), [Kept, Kept]);
    assert_eq!(decide(&[]), []);
}

#[test]
fn who_has_nothing_against_an_address_keeps_it() {
    let unhealthy = |since| AddressHealth { state: HealthState::Unhealthy, since, error: "x".into() };
    let healthy = AddressHealth { state: HealthState::Healthy, since: 3, error: "".into() };
    let (one, two) = (unhealthy(1), unhealthy(2));
    assert_eq!(unhealthy_since([Some(&two), Some(&one)]), Some(2));
    assert_eq!(unhealthy_since([Some(&one), None]), None);
    assert_eq!(unhealthy_since([Some(&one), Some(&healthy)]), None);
    assert_eq!(unhealthy_since([]), None);
}

#[test]
fn the_condition_tells_what_probes_found() {
    let report = |hostname: &str, address: &str, state| AddressReport {
        hostname: hostname.into(),
        address: address.into(),
        state,
        since: None,
        error: "".into(),
        publication: AddressPublication::Published,
    };
    use HealthState::*;
    let (a1, a2) = (|state| report("a.test", "192.0.2.1", state), |state| report("a.test", "192.0.2.2", state));
    let b1 = |state| report("b.test", "192.0.2.1", state);
    let table = [
        (vec![], "Unknown Unknown there is no address to probe"),
        (vec![a1(Healthy), a2(Unknown)], "Unknown Unknown 1 of 2 addresses were not probed yet"),
        (vec![a1(Healthy), a2(Healthy)], "True AllHealthy all 2 addresses answer their probes"),
        (
            vec![a1(Healthy), a2(Unhealthy), b1(Unknown)],
            "False SomeUnhealthy 1 of 3 addresses fail their probes: `192.0.2.2 of a.test`",
        ),
        (
            vec![a1(Unhealthy), a2(Unhealthy), b1(Healthy)],
            "False AllUnhealthy every address of `a.test` fails its probes, so what was published last stays",
        ),
    ];
    for (addresses, expected) in table {
        let found = condition(&addresses, &[]);
        assert_eq!(format!("{} {} {}", found.status, found.reason, found.message), expected);
    }
    let wild: Str = "*.test".into();
    assert!(condition(&[], &[&wild]).message.ends_with("are not probed: `*.test`"));
}

/// Results of several addresses, each at a time of its own, as pairs of address and success.
fn results() -> impl Strategy<Value = (usize, Vec<(usize, bool)>)> {
    (1..5usize).prop_flat_map(|count| (Just(count), vec((0..count, any::<bool>()), 0..60)))
}

proptest! {
    #[test]
    fn thresholds_are_met_exactly(results in vec(any::<bool>(), 0..40), failures in 1..5u32, successes in 1..4u32) {
        let thresholds = thresholds(failures, successes);
        for (i, state) in states(&results, thresholds).into_iter().enumerate() {
            prop_assert_eq!(state, expected(&results[..=i], thresholds), "after {:?}", &results[..=i]);
        }
    }

    #[test]
    fn an_address_that_alternates_changes_at_most_once_per_threshold(
        probes in 1..50usize, failures in 1..6u32, successes in 1..4u32, begins in any::<bool>()
    ) {
        let results: Vec<bool> = (0..probes).map(|i| (i % 2 == 0) == begins).collect();
        let states = states(&results, thresholds(failures, successes));
        let changes = states.windows(2).filter(|pair| pair[0] != pair[1]).count();
        prop_assert!(changes <= probes / failures as usize + 1, "{changes} changes in {probes} probes");
    }

    #[test]
    fn something_stays_published_and_only_what_failed_leaves(
        (count, results) in results(), failures in 1..4u32, successes in 1..3u32
    ) {
        let thresholds = thresholds(failures, successes);
        let mut histories = vec![ProbeHistory::new(0); count];
        for (at, (address, is_success)) in results.iter().enumerate() {
            histories[*address].observe(result(*is_success), thresholds, at as i64 + 1);
            let since: Vec<_> = histories.iter().map(|history| unhealthy_since([Some(history.health())])).collect();
            let published = decide(&since);
            let is_left = |publication: &AddressPublication| *publication != AddressPublication::Removed;
            prop_assert!(published.iter().any(is_left));
            for (history, publication) in histories.iter().zip(&published) {
                let is_unhealthy = history.health().state == HealthState::Unhealthy;
                prop_assert_eq!(is_unhealthy, *publication != AddressPublication::Published);
            }
        }
    }

    /// Each address is probed for itself: it makes no difference whose results come first, as long as each has its time.
    #[test]
    fn the_order_of_results_of_different_addresses_does_not_matter(
        (count, results) in results(), failures in 1..4u32, successes in 1..3u32
    ) {
        let thresholds = thresholds(failures, successes);
        let published = |results: &[(i64, usize, bool)]| {
            let mut histories = vec![ProbeHistory::new(0); count];
            for (at, address, is_success) in results {
                histories[*address].observe(result(*is_success), thresholds, *at);
            }
            let since: Vec<_> = histories.iter().map(|history| unhealthy_since([Some(history.health())])).collect();
            decide(&since)
        };
        let timed = results.iter().enumerate().map(|(at, (address, is_success))| (at as i64 + 1, *address, *is_success));
        let mut timed: Vec<_> = timed.collect();
        let in_time = published(&timed);
        timed.sort_by_key(|(at, address, _)| (*address, *at));
        prop_assert_eq!(&in_time, &published(&timed));
        timed.sort_by_key(|(at, address, _)| (std::cmp::Reverse(*address), *at));
        prop_assert_eq!(in_time, published(&timed));
    }

    /// An address that is removed while another one stays is never put back by failures alone.
    #[test]
    fn failures_alone_remove_and_never_return(
        (count, results) in results(), failures in 1..4u32
    ) {
        let thresholds = thresholds(failures, 1);
        let mut histories = vec![ProbeHistory::new(0); count];
        let mut removed = BTreeSet::new();
        for (at, (address, _)) in results.iter().enumerate() {
            histories[*address].observe(Err("refused"), thresholds, at as i64 + 1);
            let since: Vec<_> = histories.iter().map(|history| unhealthy_since([Some(history.health())])).collect();
            let gone = decide(&since).into_iter().enumerate();
            let gone = gone.filter(|(_, publication)| *publication == AddressPublication::Removed).map(|(i, _)| i);
            let gone: BTreeSet<usize> = gone.collect();
            prop_assert!(removed.is_subset(&gone), "{removed:?} before, {gone:?} after");
            removed = gone;
        }
    }
}
