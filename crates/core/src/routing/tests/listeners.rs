use super::world::*;
use crate::model::*;
use crate::routing::{GatewayRequest, RoutingAnswer, RoutingOutcome};

fn section(answer: &RoutingAnswer) -> Option<&str> {
    answer.listener.as_ref().map(|key| &*key.section)
}

fn isolated() -> GatewayFixture {
    GatewayFixture::new(vec![
        listener("any", "HTTP", 80, ""),
        listener("wild", "HTTP", 80, "*.x.com"),
        listener("precise", "HTTP", 80, "a.x.com"),
    ])
    .with(at(http("r-any", &[], vec![prefix("/any", "a")]), "any"))
    .with(at(http("r-wild", &[], vec![prefix("/wild", "b")]), "wild"))
}

#[test]
fn one_listener_owns_a_name_even_without_a_route() {
    let world = isolated();
    assert_eq!(end(&world.get("http://b.x.com/wild")), "b");
    assert_eq!(end(&world.get("http://b.x.com/any")), "not-found");
    assert_eq!(end(&world.get("http://y.com/any")), "a");
    let answer = world.get("http://a.x.com:8080/wild");
    assert_eq!((answer.status, section(&answer)), (Some(404), Some("precise")));
    assert!(answer.because.iter().any(|s| s.contains("HTTPRoute/infra/r-wild would serve it")), "{:?}", answer.because);
}

#[test]
fn a_port_nobody_listens_on_refuses() {
    let mut request = get("http://a.x.com/");
    request.port = 81;
    let answer = isolated().ask(&request);
    assert_eq!((answer.outcome, answer.status), (RoutingOutcome::Rejected, None));
    assert_eq!(isolated().get("https://a.x.com/").outcome, RoutingOutcome::Rejected);
}

#[test]
fn a_host_that_is_no_name_goes_to_the_unset_hostname() {
    let world = isolated();
    for host in ["192.0.2.1", "[2001:db8::1]:80", ""] {
        assert_eq!(section(&world.get(&format!("http://{host}/any"))), Some("any"), "{host}");
    }
}

fn secure() -> GatewayFixture {
    GatewayFixture::new(vec![
        listener("a", "HTTPS", 443, "a.com"),
        listener("wild", "HTTPS", 443, "*.w.com"),
        listener("b", "HTTPS", 443, "b.w.com"),
    ])
    .with(http("r", &[], vec![prefix("/", "a")]))
}

fn shake(sni: &str, host: &str) -> GatewayRequest {
    GatewayRequest { sni: Some(sni.into()), ..get(&format!("https://{host}/")) }
}

#[test]
fn the_handshake_and_the_host_must_choose_one_listener() {
    let rows = [
        ("a.com", "a.com", RoutingOutcome::Forward),
        ("c.w.com", "d.w.com:8443", RoutingOutcome::Forward),
        ("a.com", "b.w.com", RoutingOutcome::Misdirected),
        ("c.w.com", "b.w.com", RoutingOutcome::Misdirected),
        ("a.com", "other.com", RoutingOutcome::NotFound),
        ("other.com", "a.com", RoutingOutcome::Rejected),
        ("192.0.2.1", "a.com", RoutingOutcome::Rejected),
    ];
    for (sni, host, outcome) in rows {
        assert_eq!(secure().ask(&shake(sni, host)).outcome, outcome, "{sni} {host}");
    }
}

#[test]
fn https_and_tls_listeners_of_a_port_share_the_names() {
    let mut world =
        GatewayFixture::new(vec![listener("https", "HTTPS", 443, "*.x.com"), listener("tls", "TLS", 443, "t.x.com")]);
    world = world.with(at(http("web", &[], vec![prefix("/", "a")]), "https"));
    world = world.with(at(route(RouteKind::Tls, "raw", &["*.x.com"], vec![everything("b")]), "tls"));
    assert_eq!(end(&world.get("https://w.x.com/")), "a");
    let through = world.get("https://t.x.com/");
    assert_eq!((end(&through), &through.request), ("b", &None));
    assert_eq!(end(&world.get("tls://t.x.com")), "b");
    assert_eq!(end(&world.get("tls://w.x.com")), "rejected");
}

#[test]
fn tls_routes_go_before_tcp_routes_where_tls_ends() {
    let world = GatewayFixture::new(vec![listener("tls", "TLS", 443, "")])
        .with(aged(route(RouteKind::Tcp, "tcp", &[], vec![everything("a")]), 1))
        .with(aged(route(RouteKind::Tls, "tls", &["*.x.com"], vec![everything("b")]), 2));
    assert_eq!(end(&world.get("tls://w.x.com")), "b");
    assert_eq!(end(&world.get("tls://w.y.com")), "a");
}

#[test]
fn the_oldest_takes_all_of_a_port() {
    let world = GatewayFixture::new(vec![listener("tcp", "TCP", 9000, ""), listener("udp", "UDP", 9000, "")])
        .with(aged(route(RouteKind::Tcp, "young", &[], vec![everything("a")]), 2))
        .with(aged(route(RouteKind::Tcp, "old", &[], vec![everything("b")]), 1))
        .with(route(RouteKind::Udp, "gone", &[], vec![everything("missing")]));
    assert_eq!(end(&world.get("tcp://10.0.0.1")), "b");
    let refused = world.get("udp://10.0.0.1");
    assert_eq!((refused.outcome, refused.unavailable.len()), (RoutingOutcome::Rejected, 1));
}

#[test]
fn conflicted_listeners_are_named() {
    let world = GatewayFixture::new(vec![
        listener("one", "HTTP", 80, "a.com"),
        listener("two", "HTTP", 80, "a.com"),
        listener("ok", "HTTP", 80, "b.com"),
    ]);
    let answer = world.get("http://a.com/");
    assert_eq!(answer.outcome, RoutingOutcome::NotFound);
    assert!(answer.because.iter().any(|s| s.contains("edge/one") && s.contains("conflict")), "{:?}", answer.because);
}

#[test]
fn a_route_that_is_not_attached_is_named() {
    let mut stranger = http("stranger", &["a.com"], vec![prefix("/", "a")]);
    stranger.meta.key = Key::new("shop", "stranger");
    crate::model::items(&mut stranger.parents)[0].target.namespace = Some("infra".into());
    let world = GatewayFixture::new(vec![listener("web", "HTTP", 80, "")]).with(stranger);
    let answer = world.get("http://a.com/");
    let named = |s: &String| s.contains("HTTPRoute/shop/stranger") && s.contains("namespace-not-allowed");
    assert!(answer.because.iter().any(named), "{:?}", answer.because);
}

#[test]
fn filters_of_a_listener_are_mentioned() {
    let mut web = listener("web", "HTTP", 80, "");
    web.has_filters = true;
    let world = GatewayFixture::new(vec![web]).with(http("r", &[], vec![prefix("/", "a")]));
    assert!(world.get("http://a.com/").because.iter().any(|s| s.contains("run before a rule is chosen")));
}
