use super::world::*;
use crate::model::*;
use crate::routing::{GatewayRequest, RoutingAnswer, RoutingOutcome};

/// A world with one rule for `/p` that has these filters.
fn filtered(filters: Vec<Filter>) -> GatewayFixture {
    let rule = Rule { filters: filters.into(), ..prefix("/p", "a") };
    GatewayFixture::new(vec![listener("web", "HTTP", 8080, "")]).with(http("r", &[], vec![rule]))
}

fn ask(world: &GatewayFixture, url: &str, headers: &[(&str, &str)]) -> RoutingAnswer {
    let headers = headers.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    world.ask(&GatewayRequest { port: 8080, headers, ..get(url) })
}

fn set(name: &str, value: &str) -> HeaderChange {
    HeaderChange { set: vec![(name.into(), value.into())].into(), ..HeaderChange::default() }
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
}

#[test]
fn a_redirect_needs_no_backend() {
    let redirect = Redirect { scheme: Some("https".into()), status: Some(301), ..Redirect::default() };
    let mut world = filtered(vec![Filter::Redirect(redirect)]);
    crate::model::items(&mut world.routes[0].rules)[0].backends = Default::default();
    let answer = ask(&world, "http://X.com:31080/p/q?a=1", &[]);
    assert_eq!((answer.outcome, answer.status), (RoutingOutcome::Redirect, Some(301)));
    assert_eq!(answer.location.as_deref(), Some("https://x.com/p/q?a=1"));
}

#[test]
fn a_redirect_without_scheme_keeps_the_listeners_port() {
    let redirect = Redirect { hostname: Some("new.com".into()), ..Redirect::default() };
    let answer = ask(&filtered(vec![Filter::Redirect(redirect)]), "http://x.com/p", &[]);
    assert_eq!((answer.status, answer.location.as_deref()), (Some(302), Some("http://new.com:8080/p")));
}

#[test]
fn a_rewrite_changes_host_and_path_and_keeps_the_query() {
    let rewrite = Rewrite { hostname: Some("in.com".into()), path: Some(PathChange::Prefix("/".into())) };
    let answer = ask(&filtered(vec![Filter::Rewrite(rewrite)]), "http://x.com/p/q?a=1", &[]);
    let request = answer.request.unwrap();
    assert_eq!((request.host.as_str(), request.path.as_str()), ("in.com", "/q?a=1"));
}

#[test]
fn without_filters_a_request_goes_on_as_it_came() {
    let answer = ask(&filtered(Vec::new()), "http://x.com:99/p?a=1", &[("X-A", "1"), ("x-a", "2")]);
    let request = answer.request.unwrap();
    assert_eq!((request.host.as_str(), request.path.as_str()), ("x.com:99", "/p?a=1"));
    assert_eq!(request.headers, [("X-A".to_string(), "1,2".to_string())]);
    assert!(answer.response.is_empty());
}

#[test]
fn backends_have_filters_of_their_own() {
    let mut world = filtered(vec![Filter::RequestHeaders(set("x-rule", "r"))]);
    let mut own = to("b", 3);
    own.filters = vec![Filter::RequestHeaders(set("x-own", "b")), Filter::ResponseHeaders(set("x-out", "b"))].into();
    crate::model::push(&mut crate::model::items(&mut world.routes[0].rules)[0].backends, own);
    let answer = ask(&world, "http://x.com/p", &[]);
    assert_eq!(header(&answer.request.unwrap().headers, "x-own"), None);
    let own = answer.backends[1].request.as_ref().unwrap();
    assert_eq!((header(&own.headers, "X-Rule"), header(&own.headers, "X-Own")), (Some("r"), Some("b")));
    assert!(answer.backends[0].request.is_none() && answer.backends[0].response.is_none());
    assert_eq!(header(&answer.backends[1].response.as_ref().unwrap().headers, "x-out"), Some("b"));
}

#[test]
fn a_filter_that_is_not_known_is_never_skipped() {
    let target = Reference { group: "example.com".into(), kind: "Limit".into(), namespace: None, name: "l".into() };
    for filter in [Filter::Other("Teleport".into()), Filter::Extension(target), Filter::ExternalAuth(to("a", 1))] {
        let answer = ask(&filtered(vec![filter.clone()]), "http://x.com/p", &[]);
        assert_eq!(answer.status, Some(500), "{filter:?}");
        let mut world = filtered(Vec::new());
        crate::model::items(&mut crate::model::items(&mut world.routes[0].rules)[0].backends)[0].filters =
            vec![filter].into();
        crate::model::push(&mut crate::model::items(&mut world.routes[0].rules)[0].backends, to("b", 1));
        let answer = ask(&world, "http://x.com/p", &[]);
        assert_eq!((end(&answer), answer.unavailable[0].reason.name()), ("b", "filter-unsupported"));
    }
}

#[test]
fn a_mirror_changes_nothing_and_is_mentioned() {
    let answer = ask(&filtered(vec![Filter::Mirror(to("b", 1)), Filter::Mirror(to("gone", 1))]), "http://x.com/p", &[]);
    assert_eq!(end(&answer), "a");
    assert!(answer.because.iter().any(|s| s.contains("a copy goes to Service b")));
    assert!(answer.because.iter().any(|s| s.contains("filter 1") && s.contains("backend-missing")));
}

fn cors() -> Filter {
    Filter::Cors(Cors {
        origins: vec!["https://www.foo.com".into(), "https://*.bar.com".into()].into(),
        credentials: true,
        methods: vec!["GET".into(), "PUT".into()].into(),
        headers: vec!["*".into()].into(),
        expose: vec!["x-3".into(), "x-4".into()].into(),
        max_age: 3600,
    })
}

fn preflight(world: &GatewayFixture, origin: &str) -> RoutingAnswer {
    let headers =
        [("Origin", origin), ("Access-Control-Request-Method", "PUT"), ("access-control-request-headers", "x-1, x-2")];
    let headers = headers.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    world.ask(&GatewayRequest { port: 8080, method: "OPTIONS".into(), headers, ..get("http://x.com/p") })
}

#[test]
fn a_preflight_is_answered_by_the_gateway() {
    let answer = preflight(&filtered(vec![cors()]), "https://a.b.bar.com");
    assert_eq!((answer.outcome, answer.status), (RoutingOutcome::Preflight, Some(204)));
    let headers = &answer.response.headers;
    let expected = [
        ("access-control-allow-origin", "https://a.b.bar.com"),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-methods", "GET, PUT"),
        ("access-control-allow-headers", "x-1, x-2"),
        ("access-control-expose-headers", "x-3, x-4"),
        ("access-control-max-age", "3600"),
    ];
    for (name, value) in expected {
        assert_eq!(header(headers, name), Some(value), "{name}");
    }
    assert!(answer.backends.is_empty() && answer.response.appended.is_empty());
}

#[test]
fn a_foreign_origin_gets_no_headers() {
    let answer = preflight(&filtered(vec![cors()]), "https://foobar.com");
    assert_eq!((answer.outcome, answer.response.is_empty()), (RoutingOutcome::Preflight, true));
    let answer = ask(&filtered(vec![cors()]), "http://x.com/p", &[("origin", "https://foobar.com")]);
    assert_eq!((answer.outcome, answer.response.is_empty()), (RoutingOutcome::Forward, true));
    let answer = ask(&filtered(vec![cors()]), "http://x.com/p", &[("origin", "https://www.foo.com")]);
    assert_eq!(header(&answer.response.headers, "access-control-allow-origin"), Some("https://www.foo.com"));
    assert_eq!(header(&answer.response.headers, "access-control-max-age"), None);
}

#[test]
fn options_without_a_question_is_an_ordinary_request() {
    let world = filtered(vec![cors()]);
    let request = GatewayRequest { port: 8080, method: "OPTIONS".into(), ..get("http://x.com/p") };
    assert_eq!(world.ask(&request).outcome, RoutingOutcome::Forward);
    assert_eq!(preflight(&filtered(Vec::new()), "https://www.foo.com").outcome, RoutingOutcome::Forward);
}
