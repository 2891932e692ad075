use super::*;
use crate::history::{MINUTE, RenewalWindow, WantedSince};
use crate::key::PrivateKey;

const NOW: i64 = 1_800_000_000;

fn names(text: &str) -> Vec<Str> {
    text.split_whitespace().map(Str::from).collect()
}

fn leaf(text: &str, age: i64) -> Leaf {
    Leaf {
        names: names(text),
        not_before: NOW - age * DAY,
        not_after: NOW + (90 - age) * DAY,
        serial: "07".into(),
        renewal_id: Some("id".into()),
        algorithm: Some(KeyAlgorithm::P256),
        ..Leaf::default()
    }
}

struct DecisionFixture {
    want: WantedCertificate,
    held: HeldCertificate,
    open: Option<Order>,
    history: IssuanceHistory,
    rules: IssuanceRules,
}

impl DecisionFixture {
    fn new(wanted: &str, held: HeldCertificate) -> DecisionFixture {
        let want = WantedCertificate { names: names(wanted), ..WantedCertificate::default() };
        let mut history = IssuanceHistory::default();
        history.wanted.insert("a/s".to_owned(), WantedSince { at: NOW - DAY, ..WantedSince::default() });
        DecisionFixture { want, held, open: None, history, rules: IssuanceRules::default() }
    }

    fn fails(mut self, name: &str, rest: i64) -> DecisionFixture {
        let failure = FailureBackoff {
            count: 1,
            at: NOW,
            until: NOW + rest,
            why: format!("{name} fails"),
            reason: "certificate-order-failed".to_owned(),
        };
        self.history.names.insert(name.to_owned(), failure);
        self
    }

    fn decide(&self) -> String {
        let secret = Key::new("a", "s");
        match decide(&secret, &self.want, &self.held, self.open.as_ref(), &self.history, &self.rules, NOW) {
            IssuanceDecision::Keep { until } => format!("keep {}", (until - NOW) / DAY),
            IssuanceDecision::Wait { until, reason, why } => format!("wait {} {}: {why}", until - NOW, reason.name()),
            IssuanceDecision::Order { request, because } => {
                let replaces = if request.replaces.is_some() { " replacing" } else { "" };
                format!("order {}{replaces}: {because}", request.names.join(" "))
            }
            IssuanceDecision::Continue => "continue".to_owned(),
            IssuanceDecision::Abandon { because } => format!("abandon: {because}"),
        }
    }
}

#[test]
fn what_is_not_there_is_ordered_at_once() {
    assert_eq!(
        DecisionFixture::new("x.test", HeldCertificate::Nothing).decide(),
        "order x.test: the Secret holds no certificate yet"
    );
    let hostile = HeldCertificate::Unusable("no certificate".to_owned());
    assert_eq!(
        DecisionFixture::new("x.test", hostile).decide(),
        "order x.test: what is there cannot serve: no certificate"
    );
    let expired = HeldCertificate::Pair(leaf("x.test", 91));
    assert_eq!(DecisionFixture::new("x.test", expired).decide(), "order x.test: what is there has expired");
    assert_eq!(DecisionFixture::new("", HeldCertificate::Nothing).decide(), "keep 1");
}

#[test]
fn what_is_somebody_elses_is_left_alone_and_its_names_count() {
    let theirs = |held| HeldCertificate::Foreign("theirs".to_owned(), held);
    assert_eq!(DecisionFixture::new("x.test", theirs(Ok(leaf("x.test y.test", 80)))).decide(), "keep 10");
    let other = DecisionFixture::new("x.test z.test", theirs(Ok(leaf("x.test", 10))));
    assert_eq!(other.decide(), "wait 60 certificate-foreign: `z.test` is not in it, and theirs");
    let odd = DecisionFixture::new("x.test", theirs(Err("odd".to_owned())));
    assert_eq!(odd.decide(), "wait 60 certificate-foreign: `x.test` is not in it, and theirs");
    let key = PrivateKey::generate(Default::default()).unwrap();
    let request = OrderRequest { names: names("x.test"), ..OrderRequest::default() };
    let open = Some(Order::new(&Key::new("a", "s"), &request, &key, NOW));
    assert_eq!(DecisionFixture { open, ..odd }.decide(), "abandon: somebody else looks after it");
}

#[test]
fn what_serves_is_kept_until_a_third_is_left() {
    let keep = DecisionFixture::new("x.test", HeldCertificate::Pair(leaf("x.test", 10))).decide();
    assert!(["keep 48", "keep 49", "keep 50"].contains(&&*keep), "{keep}");
    assert_eq!(
        DecisionFixture::new("x.test", HeldCertificate::Pair(leaf("x.test", 61))).decide(),
        "order x.test replacing: it is to be renewed"
    );
}

#[test]
fn the_window_of_the_issuer_counts_for_its_certificate_alone() {
    let mut bed = DecisionFixture::new("x.test", HeldCertificate::Pair(leaf("x.test", 10)));
    let window =
        |id: &str| RenewalWindow { id: id.to_owned(), window: Some((NOW - DAY, NOW - HOUR)), again: NOW + DAY };
    bed.history.windows.insert("a/s".to_owned(), window("another"));
    assert!(bed.decide().starts_with("keep"));
    bed.history.windows.insert("a/s".to_owned(), window("id"));
    assert_eq!(bed.decide(), "order x.test replacing: it is to be renewed");
}

#[test]
fn names_that_come_and_go_are_waited_for() {
    let mut bed = DecisionFixture::new("x.test y.test", HeldCertificate::Pair(leaf("x.test", 10)));
    assert_eq!(bed.decide(), "order x.test y.test replacing: `y.test` is not in it");
    bed.history.wanted.insert("a/s".to_owned(), WantedSince { at: NOW - 5, ..WantedSince::default() });
    assert_eq!(bed.decide(), "wait 25 certificate-pending: the names changed a moment ago");
    bed.want.names = names("");
    bed.want.names = names("x.test");
    bed.held = HeldCertificate::Pair(leaf("x.test y.test", 10));
    assert_eq!(bed.decide(), "wait 3595 certificate-pending: names went a moment ago");
    bed.history.wanted.insert("a/s".to_owned(), WantedSince { at: NOW - HOUR, ..WantedSince::default() });
    assert_eq!(bed.decide(), "order x.test replacing: names in it are no longer wanted");
    bed.held = HeldCertificate::Nothing;
    bed.history.wanted.insert("a/s".to_owned(), WantedSince { at: NOW, ..WantedSince::default() });
    assert_eq!(
        bed.decide(),
        "order x.test: the Secret holds no certificate yet",
        "nobody is served, so nothing is waited for"
    );
}

#[test]
fn a_wildcard_that_nobody_wants_is_not_waited_for() {
    let mut bed = DecisionFixture::new("x.test y.test", HeldCertificate::Pair(leaf("*.test y.test", 10)));
    bed.history.wanted.insert("a/s".to_owned(), WantedSince { at: NOW, ..WantedSince::default() });
    assert_eq!(bed.decide(), "order x.test y.test replacing: names in it are no longer wanted");
    bed.want.names = names("x.test y.test z.w.test");
    let with_what_comes = "order x.test y.test z.w.test replacing: `z.w.test` is not in it";
    assert_eq!(bed.decide(), with_what_comes, "one order for both");
    bed.want = WantedCertificate {
        kept: names("*.test"),
        ..WantedCertificate { names: names("y.test"), ..WantedCertificate::default() }
    };
    assert!(bed.decide().starts_with("keep"), "it is not known that no policy allows it");
}

#[test]
fn another_key_is_ordered_once_it_is_asked_for() {
    let mut bed = DecisionFixture::new("x.test", HeldCertificate::Pair(leaf("x.test", 10)));
    bed.want.algorithm = Some(KeyAlgorithm::P256);
    assert!(bed.decide().starts_with("keep"), "it has that key");
    bed.want.algorithm = Some(KeyAlgorithm::Rsa(3072));
    assert_eq!(bed.decide(), "order x.test replacing: its key is to be RSA 3072");
    bed.history.wanted.insert("a/s".to_owned(), WantedSince { at: NOW - 5, ..WantedSince::default() });
    assert_eq!(bed.decide(), "wait 25 certificate-pending: another key was asked for a moment ago");
    bed.history.wanted.insert("a/s".to_owned(), WantedSince { at: NOW - HOUR, ..WantedSince::default() });
    let bed = bed.fails("x.test", MINUTE);
    assert_eq!(bed.decide(), "wait 60 certificate-order-failed: x.test fails", "what serves is not risked");
    let mut bed = DecisionFixture { history: IssuanceHistory::default(), ..bed };
    bed.history.issued.push(crate::history::IssuedCertificate {
        at: NOW - 9,
        names: vec!["x.test".to_owned()],
        replaces: false,
    });
    assert!(bed.decide().starts_with("order"), "what was made a moment ago has another key");
    bed.rules.limits = RateLimits { orders: Some(0), ..RateLimits::default() };
    assert!(bed.decide().starts_with("wait 3600 issuer-rate-limited"), "{}", bed.decide());
    bed.want.algorithm = None;
    assert!(bed.decide().starts_with("keep"), "nobody asks for another");
}

#[test]
fn names_of_which_nothing_is_known_stay() {
    let mut bed = DecisionFixture::new("x.test", HeldCertificate::Pair(leaf("x.test y.test", 10)));
    bed.want.kept = names("y.test z.test");
    assert!(bed.decide().starts_with("keep"), "{}", bed.decide());
    bed.held = HeldCertificate::Pair(leaf("x.test y.test", 61));
    assert_eq!(bed.decide(), "order x.test y.test replacing: it is to be renewed");
}

#[test]
fn a_wildcard_that_covers_a_name_is_enough_but_goes_when_it_is_not_wanted() {
    let bed = DecisionFixture::new("*.test", HeldCertificate::Pair(leaf("*.test", 10)));
    assert!(bed.decide().starts_with("keep"));
    let bed = DecisionFixture::new("x.test", HeldCertificate::Pair(leaf("*.test", 10)));
    assert_eq!(bed.decide(), "order x.test: names in it are no longer wanted");
}

#[test]
fn a_new_name_that_fails_does_not_stop_the_others() {
    let bed = DecisionFixture::new("x.test y.test z.test", HeldCertificate::Nothing).fails("y.test", HOUR);
    assert_eq!(bed.decide(), "order x.test z.test: the Secret holds no certificate yet");
    let bed = DecisionFixture::new("x.test y.test", HeldCertificate::Pair(leaf("x.test", 10))).fails("y.test", HOUR);
    assert_eq!(bed.decide(), "wait 3600 certificate-order-failed: y.test fails");
    let bed = DecisionFixture::new("y.test", HeldCertificate::Nothing).fails("y.test", HOUR);
    assert_eq!(bed.decide(), "wait 3600 certificate-order-failed: y.test fails");
    let bed = DecisionFixture::new("y.test", HeldCertificate::Nothing).fails("y.test", 0);
    assert_eq!(bed.decide(), "order y.test: the Secret holds no certificate yet", "it has rested");
}

#[test]
fn a_name_that_serves_is_given_up_only_when_it_ends_anyway() {
    let bed =
        DecisionFixture::new("x.test y.test", HeldCertificate::Pair(leaf("x.test y.test", 61))).fails("y.test", HOUR);
    assert_eq!(bed.decide(), "wait 3600 certificate-order-failed: y.test fails");
    let bed =
        DecisionFixture::new("x.test y.test", HeldCertificate::Pair(leaf("x.test y.test", 80))).fails("y.test", HOUR);
    assert_eq!(bed.decide(), "order x.test replacing: it is to be renewed");
}

#[test]
fn what_failed_rests_and_so_does_an_issuer_that_asks_for_it() {
    let failure = |rest| FailureBackoff {
        count: 1,
        at: NOW,
        until: NOW + rest,
        why: "no".to_owned(),
        reason: "issuer-rate-limited".to_owned(),
    };
    let mut bed = DecisionFixture::new("x.test", HeldCertificate::Nothing);
    bed.history.failures.insert("a/s".to_owned(), failure(MINUTE));
    assert_eq!(bed.decide(), "wait 60 issuer-rate-limited: no");
    bed.history.pause = Some(failure(HOUR));
    assert_eq!(bed.decide(), "wait 3600 issuer-rate-limited: no");
    bed.history.failures.insert("a/t".to_owned(), failure(DAY));
    assert_eq!(bed.decide(), "wait 3600 issuer-rate-limited: no", "another Secret's failure is its own");
}

#[test]
fn no_order_is_placed_that_the_issuer_would_refuse() {
    let mut bed = DecisionFixture::new("x.example.com", HeldCertificate::Nothing);
    bed.rules.limits = RateLimits { per_domain: Some(0), ..RateLimits::default() };
    assert_eq!(bed.decide(), "wait 3600 issuer-rate-limited: no order is left this week for example.com");
    bed.held = HeldCertificate::Pair(leaf("x.example.com", 61));
    assert_eq!(bed.decide(), "order x.example.com replacing: it is to be renewed", "a replacement does not count");
}

#[test]
fn what_was_made_a_moment_ago_is_not_made_again() {
    let mut bed = DecisionFixture::new("x.test", HeldCertificate::Pair(leaf("x.test", 80)));
    bed.history.issued.push(crate::history::IssuedCertificate {
        at: NOW - HOUR,
        names: vec!["x.test".to_owned()],
        replaces: false,
    });
    assert!(bed.decide().starts_with("wait 82800 certificate-pending: it was made a moment ago"), "{}", bed.decide());
    bed.want.names = names("x.test y.test");
    assert!(bed.decide().starts_with("order x.test y.test"), "another name is another matter");
}

#[test]
fn an_open_order_goes_on_unless_a_name_of_it_goes() {
    let key = PrivateKey::generate(KeyAlgorithm::P256).unwrap();
    let request = OrderRequest { names: names("x.test y.test"), ..OrderRequest::default() };
    let mut bed = DecisionFixture::new("x.test y.test z.test", HeldCertificate::Nothing);
    bed.open = Some(Order::new(&Key::new("a", "s"), &request, &key, NOW));
    assert_eq!(bed.decide(), "continue", "what came since is for the next one");
    bed.want.names = names("x.test z.test");
    assert_eq!(bed.decide(), "abandon: `y.test` is no longer wanted");
}

mod laws {
    use proptest::prelude::*;
    use proptest::sample::subsequence;

    use super::*;
    use crate::history::IssuedCertificate;

    const NAMES: [&str; 6] = ["*.w.test", "a.test", "b.test", "c.test", "d.test", "x.w.test"];

    fn some() -> impl Strategy<Value = Vec<Str>> {
        subsequence(NAMES.to_vec(), 0..=NAMES.len()).prop_map(|names| names.into_iter().map(Str::from).collect())
    }

    fn failure() -> impl Strategy<Value = FailureBackoff> {
        (1_u32..9, -DAY..DAY, -DAY..10 * DAY).prop_map(|(count, at, until)| FailureBackoff {
            count,
            at: NOW + at,
            until: NOW + until,
            why: "no".to_owned(),
            reason: "certificate-order-failed".to_owned(),
        })
    }

    fn holdings() -> impl Strategy<Value = HeldCertificate> {
        let pair = (some(), -10_i64..120).prop_map(|(names, age)| HeldCertificate::Pair(leaf(&names.join(" "), age)));
        prop_oneof![Just(HeldCertificate::Nothing), Just(HeldCertificate::Unusable("odd".to_owned())), pair]
    }

    fn histories() -> impl Strategy<Value = IssuanceHistory> {
        let failing = subsequence(NAMES.to_vec(), 0..3).prop_flat_map(|names| {
            let count = names.len();
            (Just(names), proptest::collection::vec(failure(), count))
        });
        let parts =
            (failing, proptest::option::of(failure()), proptest::option::of(failure()), -DAY..DAY, some(), -DAY..DAY);
        parts.prop_map(|((names, failures), pause, secret, since, issued, at)| {
            let mut history = IssuanceHistory { pause, ..IssuanceHistory::default() };
            history.names = names.into_iter().map(str::to_owned).zip(failures).collect();
            history.failures = secret.map(|failure| ("a/s".to_owned(), failure)).into_iter().collect();
            history.wanted.insert("a/s".to_owned(), WantedSince { at: NOW + since, ..WantedSince::default() });
            let names = issued.iter().map(|name| name.to_string()).collect();
            history.issued.push(IssuedCertificate { at: NOW + at, names, replaces: false });
            history
        })
    }

    proptest! {
        #[test]
        fn orders_are_for_what_is_wanted_and_give_up_nothing_that_serves(
            wanted in some(), kept in some(), held in holdings(), history in histories(),
            algorithm in proptest::sample::select(vec![None, Some(KeyAlgorithm::P256), Some(KeyAlgorithm::Rsa(2048))]),
        ) {
            let want = WantedCertificate { names: wanted.clone(), kept: kept.clone(), algorithm, ..WantedCertificate::default() };
            let rules = IssuanceRules::default();
            let decision = decide(&Key::new("a", "s"), &want, &held, None, &history, &rules, NOW);
            let serving = match &held {
                HeldCertificate::Pair(leaf) if leaf.not_after > NOW => Some(leaf),
                _ => None,
            };
            match decision {
                IssuanceDecision::Order { request, .. } => {
                    let may = |name: &Str| wanted.contains(name)
                        || (kept.contains(name) && matches!(&held, HeldCertificate::Pair(leaf) if leaf.names.contains(name)));
                    prop_assert!(!request.names.is_empty() && request.names.iter().all(may), "{:?}", request);
                    prop_assert!(!history.pause.as_ref().is_some_and(|pause| pause.rests(NOW)));
                    if let Some(leaf) = serving.filter(|leaf| renewal::last_call(leaf) > NOW) {
                        let lost = wanted.iter().find(|name| leaf.covers(name) && !request.names.contains(name));
                        prop_assert!(lost.is_none(), "{:?} is given up: {:?}", lost, request);
                    }
                }
                // Nothing is to be done, and not before some time has passed.
                IssuanceDecision::Keep { until } | IssuanceDecision::Wait { until, .. } => prop_assert!(until > NOW),
                other => prop_assert!(false, "there is no order: {:?}", other),
            }
        }
    }
}
