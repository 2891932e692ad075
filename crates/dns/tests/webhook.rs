//! The webhook protocol: our client against our server, and against servers that misbehave.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use gatepost_core::plan::{Content, PlanStep, Precondition, SetChange};
use gatepost_core::publication::{NameSource, Record, RecordType};
use gatepost_dns::provider::{Provider, ProviderError, ProviderProblem};
use gatepost_dns::providers::webhook::server::{RequestLimits, WebhookService};
use gatepost_dns::providers::webhook::{Webhook, WebhookConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[path = "webhook/memory.rs"]
mod memory;
#[path = "webhook/stub.rs"]
mod stub;

use memory::Memory;
use stub::{JSON, Stub, reply, typed};

const ZONE: &str = "example.com";

fn client(url: &str) -> Webhook {
    Webhook::new(WebhookConfig { url: url.to_owned(), timeout: Duration::from_secs(5), ..WebhookConfig::default() })
        .unwrap()
}

/// Our server over a provider in memory, and its address.
async fn served(memory: &Memory) -> String {
    serve(WebhookService::new(memory.shared())).await
}

async fn serve(server: WebhookService) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(server.serve(listener));
    url
}

fn content(values: &[&str]) -> Content {
    Content { ttl: Some(60), values: values.iter().map(|value| (*value).into()).collect(), properties: Vec::new() }
}

fn change(name: &str, kind: RecordType, old: Option<&[&str]>, new: Option<&[&str]>) -> SetChange {
    SetChange { name: name.into(), kind, set_identifier: None, old: old.map(content), new: new.map(content) }
}

fn step(group: usize, change: SetChange) -> PlanStep {
    PlanStep {
        zone: ZONE.into(),
        name: change.name.clone(),
        verb: change.verb(),
        changes: vec![change],
        markers: Vec::new(),
        guards: Vec::new(),
        because: String::new(),
        routes: Vec::new(),
        group,
        after: Vec::new(),
    }
}

fn creates(names: impl IntoIterator<Item = String>) -> Vec<PlanStep> {
    let one = |(at, name): (usize, String)| step(at, change(&name, RecordType::A, None, Some(&["192.0.2.1"])));
    names.into_iter().enumerate().map(one).collect()
}

fn record(name: &str, ttl: u32) -> Record {
    Record {
        name: name.into(),
        kind: RecordType::A,
        targets: ["192.0.2.1".into()].into(),
        ttl: Some(ttl),
        set_identifier: None,
        provider_specific: vec![("alias".into(), "true".into())],
        routes: Default::default(),
        listeners: Default::default(),
        source: NameSource::Annotation,
        provider: None,
    }
}

#[tokio::test]
async fn our_client_talks_to_our_server() {
    let memory =
        Memory::new(ZONE, &[("hand.example.com", "A", "192.0.2.7"), ("example.com", "MX", "10 mail.example.com.")]);
    let client = client(&served(&memory).await);
    assert_eq!(client.zones().await.unwrap(), [ZONE.into()]);
    let before = client.read(ZONE).await.unwrap();
    assert_eq!(before.sets(), memory.content().sets());
    let marker = change("a-www.example.com", RecordType::Txt, None, Some(&["\"heritage=external-dns\""]));
    let mut make = step(0, change("www.example.com", RecordType::A, None, Some(&["192.0.2.1", "192.0.2.2"])));
    make.markers.push(marker);
    assert_eq!(client.write(ZONE, &[make]).await, [Ok(())]);
    let between = client.read(ZONE).await.unwrap();
    assert_eq!(between.sets().len(), 4);
    assert_ne!(between.epoch, before.epoch);
    let update = change("www.example.com", RecordType::A, Some(&["192.0.2.2", "192.0.2.1"]), Some(&["192.0.2.3"]));
    assert_eq!(client.write(ZONE, &[step(0, update)]).await, [Ok(())]);
    let gone = step(0, change("www.example.com", RecordType::A, Some(&["192.0.2.3"]), None));
    let marker = step(1, change("a-www.example.com", RecordType::Txt, Some(&["\"heritage=external-dns\""]), None));
    assert_eq!(client.write(ZONE, &[gone, marker]).await, [Ok(()), Ok(())]);
    assert_eq!(client.read(ZONE).await.unwrap(), before);
}

#[tokio::test]
async fn what_changed_meanwhile_is_not_written() {
    let memory = Memory::new(ZONE, &[("hand.example.com", "A", "192.0.2.7")]);
    let client = client(&served(&memory).await);
    let before = memory.content();
    let unused = PlanStep {
        guards: vec![Precondition::Unused { name: "hand.example.com".into() }],
        ..step(3, change("hand.example.com", RecordType::Cname, None, Some(&["edge.example.net"])))
    };
    let steps = [
        step(0, change("hand.example.com", RecordType::A, None, Some(&["192.0.2.1"]))),
        step(1, change("hand.example.com", RecordType::A, Some(&["192.0.2.6"]), Some(&["192.0.2.1"]))),
        step(2, change("gone.example.com", RecordType::A, Some(&["192.0.2.6"]), None)),
        unused,
    ];
    for result in client.write(ZONE, &steps).await {
        let error = result.unwrap_err();
        assert!(matches!(error.problem, ProviderProblem::Stale(_)) && error.needs_read(), "{error}");
    }
    assert_eq!(memory.content(), before);
    let outside = step(0, change("www.example.org", RecordType::A, None, Some(&["192.0.2.1"])));
    let error = client.write(ZONE, &[outside]).await.remove(0).unwrap_err();
    assert!(matches!(error.problem, ProviderProblem::Unwritable(_)), "{error}");
}

#[tokio::test]
async fn one_bad_record_does_not_stop_the_others() {
    let memory = Memory::new(ZONE, &[]).refusing("host-77.example.com");
    let client = client(&served(&memory).await);
    let steps = creates((0..200).map(|n| format!("host-{n}.example.com")));
    let results = client.write(ZONE, &steps).await;
    let failed: Vec<usize> = (0..200).filter(|at| results[*at].is_err()).collect();
    assert_eq!(failed, [77]);
    let error = results[77].as_ref().unwrap_err();
    assert!(error.to_string().contains("host-77.example.com") && error.to_string().contains("500"), "{error}");
    assert_eq!(memory.content().sets().len(), 199);
}

#[tokio::test]
async fn the_provider_says_how_it_would_keep_records() {
    let memory = Memory::new(ZONE, &[]).with_min_ttl(120);
    let client = client(&served(&memory).await);
    let adjusted = client.adjust(vec![record("a.example.com", 60), record("b.example.com", 300)]).await.unwrap();
    let found: Vec<_> = adjusted.iter().map(|one| (&*one.name, one.ttl, one.provider_specific.len())).collect();
    assert_eq!(found, [("a.example.com", Some(120), 0), ("b.example.com", Some(300), 0)]);
}

/// A read from a server that gives this answer to `GET /records`.
async fn read_from(answer: Vec<u8>) -> ProviderError {
    let stub = Stub::start(
        move |_, path| if path == "/" { typed(200, r#"{"include":["example.com"]}"#) } else { answer.clone() },
    )
    .await;
    client(&stub.url).read(ZONE).await.unwrap_err()
}

#[tokio::test]
async fn an_answer_that_is_none_is_a_failed_read() {
    let half = r#"[{"dnsName":"a.example.com","recordType":"A","targets":["192.0.2.1"]},{"dnsNa"#;
    let cut = format!("HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\ncontent-length: 900\r\n\r\n{half}");
    let answers = [
        ("html", reply(200, "text/html", "<html>login</html>")),
        ("html in disguise", typed(200, "<html>login</html>")),
        ("empty list without type", reply(200, "text/plain; charset=utf-8", "[]")),
        ("no type", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]".to_vec()),
        ("half a list", typed(200, half)),
        ("cut body", cut.into_bytes()),
        (
            "cut chunks",
            format!("HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\ntransfer-encoding: chunked\r\n\r\n2\r\n[]\r\n")
                .into_bytes(),
        ),
        ("empty body", typed(200, "")),
        ("object", typed(200, "{}")),
        ("nameless", typed(200, r#"[{"recordType":"A"}]"#)),
        ("created", typed(201, "[]")),
        ("no content", typed(204, "")),
        ("redirect", typed(302, "[]")),
        ("not found", typed(404, "[]")),
        ("error", typed(500, "[]")),
        ("nothing", Vec::new()),
        ("noise", b"\x16\x03\x01 what".to_vec()),
    ];
    for (name, answer) in answers {
        let error = read_from(answer).await;
        assert!(error.to_string().contains("http://127.0.0.1"), "{name}: {error}");
        let expected = match name {
            "error" => matches!(error.problem, ProviderProblem::Failed { .. }) && error.is_transient(),
            "not found" => matches!(error.problem, ProviderProblem::Refused { .. }) && !error.is_transient(),
            _ => matches!(
                error.problem,
                ProviderProblem::Incomplete(_) | ProviderProblem::Protocol(_) | ProviderProblem::Lost(_)
            ),
        };
        assert!(expected, "{name}: {error}");
    }
}

#[tokio::test]
async fn an_empty_list_is_an_empty_zone() {
    for body in ["[]", "null"] {
        let stub =
            Stub::start(move |_, path| typed(200, if path == "/" { r#"{"include":["example.com"]}"# } else { body }))
                .await;
        assert!(client(&stub.url).read(ZONE).await.unwrap().sets().is_empty());
    }
}

#[tokio::test]
async fn the_negotiation_is_exact() {
    let rows = [
        ("plain json", reply(200, "application/json", "{}"), false),
        ("other version", reply(200, "application/external.dns.webhook+json;version=2", "{}"), false),
        ("server error", typed(503, "{}"), true),
        ("broken", typed(200, "{"), false),
        ("both", typed(200, r#"{"include":["a"],"regexInclude":"b"}"#), false),
    ];
    for (name, answer, transient) in rows {
        let stub = Stub::start(move |_, _| answer.clone()).await;
        let error = client(&stub.url).zones().await.unwrap_err();
        assert!(!transient || error.is_transient(), "{name}: {error}");
    }
    let open = Stub::start(|_, _| typed(200, "{}")).await;
    let error = client(&open.url).zones().await.unwrap_err().to_string();
    assert!(error.contains("--domain-filter"), "{error}");
    let config =
        WebhookConfig { url: open.url.clone(), zones: vec!["Example.com.".into()], ..WebhookConfig::default() };
    assert_eq!(Webhook::new(config).unwrap().zones().await.unwrap(), [ZONE.into()]);
}

#[tokio::test]
async fn an_endless_answer_is_cut() {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\n\r\n[");
    let stub = Stub::flooding(head).await;
    let error = client(&stub.url).read(ZONE).await.unwrap_err();
    assert!(error.to_string().contains("larger than") || error.to_string().contains("within"), "{error}");
}

#[tokio::test]
async fn a_server_that_asks_for_rest_is_not_pressed() {
    let busy = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 17\r\ncontent-length: 0\r\n\r\n".as_bytes().to_vec();
    let stub = Stub::start(move |method, path| match (method, path) {
        (_, "/") => typed(200, r#"{"include":["example.com"]}"#),
        ("GET", _) => typed(200, "[]"),
        _ => busy.clone(),
    })
    .await;
    let results = client(&stub.url).write(ZONE, &creates(["a.example.com".into(), "b.example.com".into()])).await;
    for error in results.into_iter().map(|result| result.unwrap_err()) {
        assert_eq!(error.retry_after(), Some(Duration::from_secs(17)));
        assert!(error.is_transient(), "{error}");
    }
    assert_eq!(stub.count("POST"), 1);
}

#[tokio::test]
async fn a_server_that_fails_at_everything_is_not_asked_for_ever() {
    let stub = Stub::start(|method, path| match (method, path) {
        (_, "/") => typed(200, r#"{"include":["example.com"]}"#),
        ("GET", _) => typed(200, "[]"),
        _ => typed(500, ""),
    })
    .await;
    let steps = creates((0..500).map(|n| format!("host-{n}.example.com")));
    let results = client(&stub.url).write(ZONE, &steps).await;
    assert!(results.iter().all(|result| result.as_ref().is_err_and(ProviderError::is_transient)));
    assert!(stub.count("POST") < 40, "{}", stub.count("POST"));
}

#[tokio::test]
async fn a_write_without_answer_may_have_happened() {
    for answer in [Vec::new(), typed(200, ""), b"HTTP/1.1 2".to_vec()] {
        let stub = Stub::start(move |method, path| match (method, path) {
            (_, "/") => typed(200, r#"{"include":["example.com"]}"#),
            ("GET", _) => typed(200, "[]"),
            _ => answer.clone(),
        })
        .await;
        let error = client(&stub.url).write(ZONE, &creates(["a.example.com".into()])).await.remove(0).unwrap_err();
        assert!(matches!(error.problem, ProviderProblem::Lost(_)) && error.needs_read(), "{error}");
    }
}

/// Sends raw bytes to our server and gives back what it says.
async fn raw(url: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn our_server_takes_only_what_it_should() {
    let memory = Memory::new(ZONE, &[]);
    let limits = RequestLimits {
        body: 1000,
        headers: Duration::from_millis(300),
        reading: Duration::from_millis(300),
        ..RequestLimits::default()
    };
    let url = serve(WebhookService::new(memory.shared()).with_limits(limits)).await;
    let post = |path: &str, kind: &str, length: usize, body: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    };
    let rows = [
        ("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".to_owned(), "200 OK"),
        ("GET /x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".to_owned(), "404"),
        ("DELETE /records HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".to_owned(), "405"),
        (post("/records", "text/plain", 2, "{}"), "415"),
        (post("/records", JSON, 2, "{}"), "204"),
        (post("/records", JSON, 1, "{"), "400"),
        (post("/records", JSON, 2000, &"x".repeat(2000)), "413"),
        (post("/records", JSON, 500, "{"), "408"),
        (post("/adjustendpoints", JSON, 2, "[]"), "200"),
        (post("/adjustendpoints", JSON, 4, "[{}]"), "400"),
    ];
    for (request, expected) in rows {
        let answer = raw(&url, &request).await;
        assert!(answer.split("\r\n").next().unwrap_or_default().contains(expected), "{request}\n{answer}");
    }
    // Whoever says nothing is sent away.
    assert!(!raw(&url, "GET / HT").await.contains("200 OK"));
}

#[tokio::test]
async fn a_failed_read_is_a_500_without_records() {
    let memory = Memory::new(ZONE, &[("www.example.com", "A", "192.0.2.1")]).unreadable();
    let url = served(&memory).await;
    let answer = raw(&url, "GET /records HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    assert!(client(&url).read(ZONE).await.unwrap_err().is_transient());
}
