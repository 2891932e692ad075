use super::world::*;
use crate::model::*;
use crate::routing::{GatewayRequest, RoutingOutcome, WRITTEN_PRECEDENCE};

fn open(routes: Vec<Route>) -> GatewayFixture {
    GatewayFixture { routes, ..GatewayFixture::new(vec![listener("web", "HTTP", 80, "")]) }
}

#[test]
fn paths_go_exact_first_then_longest_by_whole_segments() {
    let world = open(vec![http(
        "r",
        &[],
        vec![prefix("/", "a"), prefix("/foo/", "b"), matching(vec![by(MatchKind::Exact, "/foo")], "c")],
    )]);
    for (path, backend) in [("/foo", "c"), ("/foo/", "b"), ("/foo/x", "b"), ("/foox", "a"), ("/Foo/x", "a"), ("", "a")]
    {
        assert_eq!(end(&world.get(&format!("http://x.com{path}"))), backend, "{path}");
    }
}

#[test]
fn method_headers_and_query_break_ties_in_this_order() {
    let method = HttpMatch { method: Some("GET".into()), ..HttpMatch::default() };
    let headers = HttpMatch { headers: vec![value("X-A", "1"), value("x-b", "2")].into(), ..HttpMatch::default() };
    let query =
        HttpMatch { query: vec![value("q", "1"), value("r", "2"), value("s", "3")].into(), ..HttpMatch::default() };
    let world = open(vec![http(
        "r",
        &[],
        vec![matching(vec![query], "c"), matching(vec![headers], "b"), matching(vec![method], "a")],
    )]);
    let mut request = GatewayRequest {
        headers: vec![("x-a".into(), "1".into()), ("X-B".into(), "2".into())],
        ..get("http://x.com/?q=1&r=2&s=3")
    };
    assert_eq!(end(&world.ask(&request)), "a");
    request.method = "PUT".into();
    assert_eq!(end(&world.ask(&request)), "b");
    request.headers.pop();
    assert_eq!(end(&world.ask(&request)), "c");
    request.path = "/?Q=1&r=2&s=3".into();
    assert_eq!(world.ask(&request).outcome, RoutingOutcome::NotFound);
}

#[test]
fn of_headers_with_one_name_the_first_counts() {
    let twice = HttpMatch { headers: vec![value("x-a", "1"), value("X-A", "2")].into(), ..HttpMatch::default() };
    let world = open(vec![http("r", &[], vec![matching(vec![twice], "a")])]);
    let request = GatewayRequest { headers: vec![("x-a".into(), "1".into())], ..get("http://x.com/") };
    assert_eq!(end(&world.ask(&request)), "a");
}

#[test]
fn age_then_name_then_place_decide_among_equals() {
    let rules = || vec![prefix("/", "a"), prefix("/", "b")];
    let world = open(vec![http("b", &[], rules()), aged(http("z", &[], rules()), 5), aged(http("c", &[], rules()), 5)]);
    let answer = world.get("http://x.com/");
    assert_eq!(answer.route.map(|r| r.to_string()).as_deref(), Some("HTTPRoute/infra/c"));
    assert_eq!(answer.rule, Some(0));
}

#[test]
fn the_hostname_as_written_decides_and_the_other_reading_is_named() {
    let mut world = GatewayFixture::new(vec![listener("web", "HTTP", 80, "abc.x.com")])
        .with(aged(http("older", &["*.x.com"], vec![prefix("/p/q", "a")]), 1))
        .with(aged(http("newer", &["*.com", "abc.x.com"], vec![prefix("/p", "b")]), 2));
    let answer = world.get("http://abc.x.com/p/q/r");
    assert_eq!(end(&answer), "b");
    let other = |s: &String| s.contains("would choose HTTPRoute/infra/older rule 0");
    assert!(answer.because.iter().any(other), "{:?}", answer.because);
    assert!(!world.get("http://abc.x.com/p").because.iter().any(other));
    world.features.push(WRITTEN_PRECEDENCE.into());
    assert!(!world.get("http://abc.x.com/p/q/r").because.iter().any(other));
}

#[test]
fn what_the_better_hostname_does_not_match_falls_through() {
    let world = open(vec![
        http("precise", &["abc.x.com"], vec![prefix("/p", "a")]),
        http("wild", &["*.x.com"], vec![prefix("/q", "b")]),
        http("none", &[], vec![prefix("/", "c")]),
    ]);
    for (path, backend) in [("/p", "a"), ("/q", "b"), ("/r", "c")] {
        assert_eq!(end(&world.get(&format!("http://abc.x.com{path}"))), backend);
    }
    assert_eq!(end(&world.get("http://y.com/p")), "c");
}

#[test]
fn a_rule_is_chosen_before_its_backends_are_looked_at() {
    let world = open(vec![http("r", &[], vec![prefix("/", "missing"), prefix("/", "a")])]);
    let answer = world.get("http://x.com/");
    assert_eq!((answer.outcome, answer.status, answer.rule), (RoutingOutcome::BackendError, Some(500), Some(0)));
    assert_eq!(answer.unavailable[0].reason.name(), "backend-missing");
}

#[test]
fn weights_are_shares_and_zero_is_nothing() {
    let mut rule = prefix("/", "a");
    rule.backends = vec![to("c", 0), to("missing", 9), to("b", 7), to("a", 1)].into();
    let answer = open(vec![http("r", &[], vec![rule.clone()])]).get("http://x.com/");
    let shares: Vec<_> = answer.backends.iter().map(|s| (s.backend.to_string(), s.weight)).collect();
    assert_eq!(shares, [("infra/b".to_string(), 7), ("infra/a".to_string(), 1)]);
    assert_eq!(answer.unavailable.len(), 1);
    rule.backends = vec![to("a", 0)].into();
    assert_eq!(open(vec![http("r", &[], vec![rule])]).get("http://x.com/").outcome, RoutingOutcome::BackendError);
}

#[test]
fn grpc_routes_see_calls_only_and_see_them_first() {
    let world = open(vec![
        route(RouteKind::Grpc, "g", &["x.com"], vec![call(Some("s.S"), None, "a"), call(Some("s.S"), Some("M"), "b")]),
        http("h", &[], vec![prefix("/", "c")]),
    ]);
    let ask = |path: &str, grpc| world.ask(&GatewayRequest { grpc, ..get(&format!("http://x.com{path}")) });
    assert_eq!(end(&ask("/s.S/M", true)), "b");
    assert_eq!(end(&ask("/s.S/N", true)), "a");
    assert_eq!(end(&ask("/t.T/M", true)), "c");
    assert_eq!(end(&ask("/s.S/M", false)), "c");
}

#[test]
fn a_grpc_rule_without_matches_takes_every_call() {
    let rule =
        Rule { matches: Matches::Grpc(Default::default()), backends: vec![to("a", 1)].into(), ..Rule::default() };
    let world = open(vec![route(RouteKind::Grpc, "g", &[], vec![rule])]);
    assert_eq!(end(&world.ask(&GatewayRequest { grpc: true, ..get("http://x.com/a/b") })), "a");
    assert_eq!(end(&world.get("http://x.com/a/b")), "not-found");
}

#[test]
fn an_expression_matches_the_whole_value_or_nothing() {
    let rules = vec![
        matching(vec![by(MatchKind::Regex, "/v[0-9]+/a|/b")], "a"),
        matching(vec![by(MatchKind::Regex, "/open(")], "b"),
        matching(vec![by(MatchKind::Regex, "a)|(b")], "b"),
        matching(vec![by(MatchKind::Regex, "(a{1000}){1000}{1000}")], "b"),
        matching(vec![by(MatchKind::Other("Glob".into()), "/*")], "b"),
    ];
    let world = open(vec![http("r", &[], rules)]);
    for (path, backend) in
        [("/v12/a", "a"), ("/b", "a"), ("/v1/a/b", "not-found"), ("/x/b", "not-found"), ("/open(", "not-found")]
    {
        assert_eq!(end(&world.get(&format!("http://x.com{path}"))), backend, "{path}");
    }
}

#[test]
fn an_expression_ranks_by_length_among_prefixes() {
    let rules = vec![matching(vec![by(MatchKind::Regex, "/a.*")], "a"), prefix("/abc", "b"), prefix("/abcd", "c")];
    let world = open(vec![http("r", &[], rules)]);
    for (path, backend) in [("/ab", "a"), ("/abc", "b"), ("/abcd", "c")] {
        assert_eq!(end(&world.get(&format!("http://x.com{path}"))), backend, "{path}");
    }
}

#[test]
fn the_way_is_told_in_order() {
    let world = open(vec![
        aged(http("old", &[], vec![prefix("/", "a")]), 1),
        aged(http("young", &[], vec![prefix("/", "b")]), 2),
        http("elsewhere", &["x.com"], vec![prefix("/nowhere", "b")]),
    ]);
    assert_eq!(
        world.get("http://x.com/p").because,
        [
            "Gateway/infra/edge/web takes it: its unset hostname matches the Host `x.com`",
            "HTTPRoute/infra/elsewhere does not fit: it asks for path prefix `/nowhere`",
            "HTTPRoute/infra/young rule 0 fits too: its route is younger",
            "HTTPRoute/infra/old rule 0 serves it: no hostname, path prefix `/`",
        ]
    );
}
