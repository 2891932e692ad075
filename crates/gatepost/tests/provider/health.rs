//! Health checks of `serve`: HTTP servers at several loopback addresses, a BIND, and queries beside it all.

use std::net::{IpAddr, Ipv4Addr};

use gatepost_testkit::query_loop::QueryLoop;
use gatepost_testkit::servers::backend::{Backend, BackendAnswer};

use super::bed::Bed;
use super::running::{Running, comes_true, get};

const NAME: &str = "shop.example.org";
const BAD: BackendAnswer = BackendAnswer::Status(500);

fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

/// A Gateway with two addresses, a route, and a policy with a health check if there is a port to probe.
fn world(port: Option<u16>) -> String {
    let check = port.map(|port| {
        format!("\n  healthCheck: {{protocol: HTTP, port: {port}, interval: 5s, timeout: 2s, failureThreshold: 2, additionalHeadersRef: {{name: headers}}}}")
    });
    format!(
        "\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{namespace: infra, name: edge}}
spec:
  gatewayClassName: standard
  listeners: [{{name: web, port: 80, protocol: HTTP, hostname: \"*.example.org\"}}]
status: {{addresses: [{{type: IPAddress, value: {}}}, {{type: IPAddress, value: {}}}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{namespace: infra, name: shop}}
spec: {{parentRefs: [{{name: edge}}], hostnames: [{NAME}]}}
---
apiVersion: v1
kind: Secret
metadata: {{namespace: infra, name: headers}}
stringData: {{x-probe: from the Secret}}
---
apiVersion: gatepost.dev/v1alpha1
kind: DNSPolicy
metadata: {{namespace: infra, name: dns}}
spec:
  targetRef: {{group: gateway.networking.k8s.io, kind: Gateway, name: edge}}
  allowWildcardHosts: false{}
",
        address(21),
        address(22),
        check.unwrap_or_default(),
    )
}

#[test]
fn an_address_that_fails_leaves_and_returns_and_the_last_one_stays() {
    let Some(bed) = Bed::new() else { return };
    let one = Backend::start(address(21), 0, BackendAnswer::Status(200)).unwrap();
    let port = one.address.port();
    let two = Backend::start(address(22), port, BackendAnswer::Status(200)).unwrap();
    bed.folder.file("objects/all.yaml", &world(Some(port))).unwrap();
    let (objects, state) = (bed.folder.path().join("objects"), bed.folder.path().join("state"));
    let line = format!(
        "serve -f '{}' --http-addr 127.0.0.1:0 --allow-inward-targets --state-dir '{}' {}",
        objects.display(),
        state.display(),
        bed.flags()
    );
    let published = || bed.addresses(NAME);
    let (both, first, second) = (["127.0.0.21", "127.0.0.22"], ["127.0.0.21"], ["127.0.0.22"]);
    let served = Running::start(&line);
    assert_eq!(published(), both, "nothing is waited for");
    let queries = QueryLoop::start(bed.server.address, &[NAME.to_owned()]);
    let plan = |served: &Running| get(served.address("http"), "/plan.json");
    comes_true("both are healthy", || plan(&served).contains("AllHealthy"));
    let heads = one.requests();
    assert!(heads.iter().all(|head| head.contains("x-probe: from the Secret\r\n")), "{heads:?}");

    one.answer(BAD);
    comes_true("the first leaves", || published() == second);
    assert_eq!(one.answered(&BAD), 2, "after exactly as many failures as the threshold says");
    comes_true("it is told", || plan(&served).contains("status 500, expected 200-399"));
    let metrics = get(served.address("http"), "/metrics");
    assert!(metrics.contains("gatepost_probe_changes_total 1\n"), "{metrics}");
    assert_eq!(served.stop(), Some(0));

    let served = Running::start(&line);
    assert_eq!(published(), second, "what was known survives a restart");
    two.answer(BackendAnswer::Closed);
    comes_true("all are unhealthy", || plan(&served).contains("AllUnhealthy"));
    assert_eq!(published(), second, "the last one stays");
    let page = || get(served.address("http"), &format!("/api/v1/names/{NAME}")).replace(' ', "");
    comes_true("the page calls it wrong", || page().contains("\"health\":\"wrong\""));
    assert!(page().contains("everyaddressof`"), "{}", page());
    one.answer(BackendAnswer::Status(204));
    comes_true("the first returns, and the second leaves", || published() == first);
    two.answer(BackendAnswer::Status(200));
    comes_true("both are back", || published() == both);

    one.answer(BAD);
    comes_true("the first leaves again", || published() == second);
    bed.folder.file("objects/all.yaml", &world(None)).unwrap();
    comes_true("without a check nothing is left out", || published() == both);
    assert_eq!(queries.failures(), [] as [&str; 0], "a query was not answered with an address");
    assert_eq!(served.stop(), Some(0));
}
