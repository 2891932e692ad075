//! `webhook-server`: our providers behind the protocol, used by our own client of it.

use super::bed::{Bed, run, world};
use super::proxy::{Fault, Proxy};
use super::running::{Running, get};

/// An embedded server behind the protocol.
fn embedded() -> Running {
    Running::start(
        "webhook-server --webhook-addr 127.0.0.1:0 --provider embedded --dns-addr 127.0.0.1:0 --zone example.org",
    )
}

#[test]
fn a_server_of_updates_is_reached_through_the_protocol() {
    let Some(bed) = Bed::new() else { return };
    let (_, flags) = bed.flags().split_once("--provider").map(|(_, rest)| ((), format!("--provider{rest}"))).unwrap();
    let flags = flags.replace(" --txt-owner-id me", "");
    let server = Running::start(&format!("webhook-server --webhook-addr 127.0.0.1:0 {flags}"));
    let address = server.address("webhook");
    assert!(get(address, "/healthz").ends_with("ok\n"));
    assert!(get(address, "/").contains("\"include\":[\"example.org\"]"));
    let client = format!("--provider webhook --webhook-provider-url http://{address} --txt-owner-id me");
    let before = bed.zone();
    let first = world("192.0.2.10", &["www.example.org", "old.example.org"]);
    let answer = run(&format!("apply {client}"), &first);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert_eq!(bed.addresses("www.example.org"), ["192.0.2.10"]);
    assert_eq!(run(&format!("plan --expect-no-changes {client}"), &first).exit, 0);
    assert_eq!(run(&format!("apply {client}"), &world("192.0.2.11", &["www.example.org"])).exit, 0);
    assert_eq!(bed.addresses("www.example.org"), ["192.0.2.11"]);
    assert!(bed.addresses("old.example.org").is_empty());
    let after = bed.zone();
    assert!(before.iter().all(|line| after.contains(line)), "what others wrote stays: {after:?}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn the_embedded_server_answers_for_what_comes_through_the_protocol() {
    let server = embedded();
    let (address, dns) = (server.address("webhook"), server.address("dns"));
    let client = format!("--provider webhook --webhook-provider-url http://{address}");
    let world = world("192.0.2.10", &["www.example.org"]);
    let answer = run(&format!("apply {client}"), &world);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    let answer = run(&format!("verify {client} --server {dns}"), &world);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert_eq!(server.stop(), Some(0));
}

/// The status line of an answer.
fn status(address: std::net::SocketAddr, request: &str, headers: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "{request} HTTP/1.1\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.lines().next().unwrap_or_default().replace("HTTP/1.1 ", "")
}

/// A page of `evil.example` whose name leads to 127.0.0.1 may read and write nothing.
#[test]
fn a_browser_that_was_led_here_is_refused() {
    let server = embedded();
    let address = server.address("webhook");
    for host in ["evil.example", "evil.example:8888", "127.0.0.1.evil.example"] {
        for request in ["GET /records", "GET /", "POST /records", "POST /adjustendpoints"] {
            assert_eq!(status(address, request, &format!("Host: {host}\r\n")), "403 Forbidden", "{request} {host}");
        }
    }
    for host in ["127.0.0.1:8888", "localhost", "[::1]:8888"] {
        assert_eq!(status(address, "GET /records", &format!("Host: {host}\r\n")), "200 OK", "{host}");
    }
    assert_eq!(status(address, "GET /healthz", "Host: pod.example\r\n"), "200 OK");
}

#[test]
fn who_can_be_reached_by_others_asks_for_a_token() {
    let line = "webhook-server --provider embedded --dns-addr 127.0.0.1:0 --zone example.org";
    let program = gatepost_testkit::program::Program::at(env!("CARGO_BIN_EXE_gatepost"));
    let open = gatepost_testkit::program::words(&format!("{line} --webhook-addr 0.0.0.0:0"));
    let refused = program.run(&open, "").unwrap();
    assert_eq!(refused.exit, 2);
    assert!(refused.errors.contains("--webhook-token-file"), "{}", refused.errors);
    let folder = gatepost_testkit::scratch::Scratch::new().unwrap();
    let token = folder.file("token", "0123456789abcdef\n").unwrap();
    let server = Running::start(&format!("{line} --webhook-addr 0.0.0.0:0 --webhook-token-file {token}"));
    let address = (std::net::Ipv4Addr::LOCALHOST, server.address("webhook").port()).into();
    for headers in ["Host: localhost\r\n", "Host: x\r\nAuthorization: Bearer 0123456789abcdeF\r\n"] {
        assert_eq!(status(address, "GET /records", headers), "401 Unauthorized", "{headers}");
    }
    let known = "Host: dns.example\r\nAuthorization: Bearer 0123456789abcdef\r\n";
    assert_eq!(status(address, "GET /records", known), "200 OK");
    assert_eq!(status(address, "GET /healthz", "Host: x\r\n"), "200 OK");
}

/// The server is there, and something between us and it misbehaves.
#[test]
fn a_webhook_that_is_busy_is_waited_for() {
    let server = embedded();
    let busy = Fault::once("POST /records", "429 Too Many Requests", "Retry-After: 1\r\n", "busy");
    let proxy = Proxy::start(server.address("webhook"), vec![busy]);
    let world = world("192.0.2.10", &["a.example.org", "b.example.org"]);
    let client = format!("--provider webhook --webhook-provider-url http://{}", proxy.address);
    let answer = run(&format!("apply {client}"), &world);
    assert_eq!(answer.exit, 0, "{}{}", answer.output, answer.errors);
    assert_eq!(proxy.count("POST /records"), 2, "once in vain, once more after the pause");
    assert_eq!(run(&format!("plan --expect-no-changes {client}"), &world).exit, 0);
}

#[test]
fn an_answer_that_is_none_is_no_empty_zone() {
    let server = embedded();
    let world_of = |hostnames: &[&str]| world("192.0.2.10", hostnames);
    let before = world_of(&["a.example.org"]);
    let direct = format!("--provider webhook --webhook-provider-url http://{}", server.address("webhook"));
    assert_eq!(run(&format!("apply {direct}"), &before).exit, 0);
    let faults = [
        Fault::always("GET /records", "200 OK", "Content-Type: text/html\r\n", "<html>sign in</html>"),
        Fault::always("GET /records", "500 Internal Server Error", "", "broken"),
        Fault::always("GET / ", "404 Not Found", "", "nobody"),
        Fault::always("POST /adjustendpoints", "500 Internal Server Error", "", "broken"),
        Fault::always("POST /adjustendpoints", "200 OK", "Content-Type: application/json\r\n", "[{"),
    ];
    for fault in faults {
        let what = format!("{fault:?}");
        let proxy = Proxy::start(server.address("webhook"), vec![fault]);
        let client = format!("--provider webhook --webhook-provider-url http://{}", proxy.address);
        let answer = run(&format!("apply --confirm-deletes {client}"), &world_of(&["b.example.org"]));
        assert_eq!(answer.exit, 4, "{what}: {}{}", answer.output, answer.errors);
        assert_eq!(proxy.count("POST /records"), 0, "{what}");
    }
    assert_eq!(run(&format!("plan --expect-no-changes {direct}"), &before).exit, 0);
}

/// Scenario 26: a provider keeps a TTL of its own and does not say so.
#[test]
fn scenario_26_what_a_provider_alters_is_rewritten_twice_and_then_told() {
    let server = embedded();
    let altered = Fault::altered("GET /records", "\"recordTTL\":120", "\"recordTTL\":900");
    let proxy = Proxy::start(server.address("webhook"), vec![altered]);
    let state = gatepost_testkit::scratch::Scratch::new().unwrap();
    let client = format!(
        "--provider webhook --webhook-provider-url http://{} --state-dir '{}'",
        proxy.address,
        state.path().display()
    );
    let ttl = "annotations: {external-dns.alpha.kubernetes.io/ttl: \"120\"}, name: route-0";
    let world = world("192.0.2.10", &["www.example.org"]).replace("name: route-0", ttl);
    let answers: Vec<_> = (0..6).map(|_| run(&format!("apply {client}"), &world)).collect();
    assert_eq!(proxy.count("POST /records"), 3, "made once, rewritten twice: {}", answers[5].output);
    assert!(answers[2].output.contains("written"), "{}", answers[2].output);
    for part in ["record-put-back", "TTL 900 where TTL 120 was written"] {
        assert!(answers[3].output.contains(part), "no {part} in {}{}", answers[3].output, answers[3].errors);
    }
    assert_eq!(answers[3].output, answers[5].output, "it is told the same way each time");
    let verified = run(&format!("verify {client} --server {}", server.address("dns")), &world);
    assert_eq!(verified.exit, 0, "the name goes on resolving: {}", verified.output);
}

#[test]
fn what_is_missing_is_named() {
    use gatepost_testkit::program::{Program, words};
    let rows = [
        ("webhook-server", "--provider"),
        ("webhook-server --provider embedded --dns-addr 127.0.0.1:0", "--zone"),
        ("webhook-server --provider rfc2136", "--rfc2136-host"),
        ("webhook-server --provider webhook --webhook-addr 192.0.2.1:1", "--webhook-addr"),
    ];
    for (line, named) in rows {
        let answer = Program::at(env!("CARGO_BIN_EXE_gatepost")).run(&words(line), "").unwrap();
        assert_eq!(answer.exit, 2, "{line}: {}", answer.errors);
        assert!(answer.errors.contains(named), "{line}: {}", answer.errors);
    }
}
