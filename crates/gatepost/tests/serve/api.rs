//! `/api/v1` over a real `serve`: the same answers as the commands give, and nothing for those who may not look.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use gatepost_testkit::program::Program;
use gatepost_testkit::tree;
use serde_json::Value;

use crate::{Served, write_route};

impl Served {
    /// The answer to a path below `/api/v1/`.
    pub(super) fn api(&self, path: &str) -> Value {
        let text = self.get(&format!("/api/v1/{path}"), "localhost");
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {text}");
        serde_json::from_str(body).unwrap()
    }

    /// Waits until an answer is as it should be.
    fn api_comes_to(&self, path: &str, is_right: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let answer = self.api(path);
            if is_right(&answer) {
                return answer;
            }
            assert!(Instant::now() < end, "{path}: {answer:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What a command says about the files of a server.
fn say(words: &[&str], folder: &Path) -> Value {
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    words.extend(["-f".to_owned(), folder.display().to_string(), "-o".to_owned(), "json".to_owned()]);
    let said = Program::at(env!("CARGO_BIN_EXE_gatepost")).run(&words, "").unwrap();
    serde_json::from_str(&said.output).unwrap_or_else(|error| panic!("{words:?}: {error}\n{}", said.errors))
}

/// Takes positions in files out, which only commands know.
fn without_places(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_kept = |(key, _): &(String, Value)| !["file", "line", "column"].contains(&&**key);
            Value::Object(fields.into_iter().filter(is_kept).map(|(key, v)| (key, without_places(v))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_places).collect()),
        other => other,
    }
}

fn copy_quickstart(folder: &Path) {
    for file in tree::files(&tree::root().join("examples/quickstart")) {
        std::fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
    }
}

/// Routes of many shapes: wildcards, none, several, refused ones, and names that others take.
pub(super) fn write_many(folder: &Path) {
    copy_quickstart(folder);
    let route = |name: &str, hostnames: &str, backend: &str| {
        format!(
            "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{namespace: shop, name: {name}}}\n\
             spec:\n  parentRefs: [{{name: edge, namespace: infra}}]\n  hostnames: {hostnames}\n  \
             rules: [{{backendRefs: [{{name: {backend}, port: 8080}}]}}]\n"
        )
    };
    let routes = [
        route("wide", "['*.example.org', '*.wide.example.org']", "web"),
        route("several", "[a.example.org, a.b.example.org, other.example.com]", "web"),
        route("upper", "[UPPER.example.org]", "web"),
        route("open", "[]", "web"),
        route("lost", "[lost.example.org]", "nowhere"),
        route("again", "[www.example.org]", "web"),
    ];
    std::fs::write(folder.join("many.yaml"), routes.concat()).unwrap();
}

#[test]
fn every_name_is_explained_as_the_command_explains_it() {
    let served = Served::start_in(&Served::folder("api-names"), &[], write_many);
    let names = served.api("names?sort=name");
    let rows = names["items"].as_array().unwrap();
    assert!(rows.len() >= 10, "{names:#}");
    for row in rows {
        let hostname = row["hostname"].as_str().unwrap();
        let said = without_places(say(&["explain", hostname], &served.folder));
        let shown = without_places(served.api(&format!("names/{hostname}")));
        for (field, value) in said.as_object().unwrap() {
            assert_eq!(&shown[field], value, "{hostname}: {field}");
        }
        assert_eq!(row["verdict"], said["verdict"], "{hostname}");
        assert_eq!(row["health"], if said["verdict"] == "works" { "right" } else { "wrong" }, "{hostname}");
        for set in shown["recordSets"].as_array().unwrap() {
            assert_eq!(set["wanted"], set["stored"], "{hostname}");
        }
    }
    let verdicts: Vec<&str> = rows.iter().map(|row| row["verdict"].as_str().unwrap()).collect();
    for verdict in ["works", "requests-fail", "not-attached"] {
        assert!(verdicts.contains(&verdict), "{verdicts:?}");
    }
}

#[test]
fn routes_plans_objects_and_reasons_are_those_of_the_commands() {
    let served = Served::start_in(&Served::folder("api-same"), &[], write_many);
    let said = say(&["route", "-H", "x-team: a", "http://www.example.org/cart"], &served.folder);
    let path = "route?url=http%3A%2F%2Fwww.example.org%2Fcart&header=x-team%3A+a&gateway=infra%2Fedge";
    assert_eq!(served.api(path), said);
    let statuses = say(&["status", "--at", "2026-01-01T00:00:00Z"], &served.folder);
    let objects = served.api("objects?limit=500");
    let names = |all: &Value| -> Vec<String> {
        let items = all["items"].as_array().unwrap().iter();
        items.map(|item| format!("{}/{}", item["kind"], item["metadata"]["name"])).collect()
    };
    assert_eq!(names(&objects), names(&statuses));
    let object = served.api("objects/HTTPRoute/blog/pages");
    assert_eq!(object["problems"][0]["reason"], "namespace-not-allowed");
    assert_eq!(object["names"][0]["hostname"], "blog.example.org");
    let plan = served.api("plan");
    assert_eq!(plan["steps"].as_array().unwrap().iter().filter(|step| step["outcome"] != "written").count(), 0);
    assert!(served.api("reasons/GP0204")["page"].as_str().unwrap().contains("## What to do"));
    assert_eq!(served.api("zones")["provider"], "embedded");
    assert!(!served.api("activity?name=www.example.org")["items"].as_array().unwrap().is_empty());
}

#[test]
fn names_are_filtered_sorted_and_cut_by_the_server() {
    let served = Served::start_in(&Served::folder("api-filter"), &[], write_many);
    let all = served.api("names");
    let total = all["total"].as_u64().unwrap();
    let of = |path: &str| -> Vec<String> {
        let items = served.api(path)["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["hostname"].as_str().unwrap().to_owned()).collect()
    };
    let by_name = of("names?sort=name");
    assert!(by_name.is_sorted() && by_name.len() as u64 == total);
    assert_eq!(of("names?sort=name&order=down&limit=2"), by_name.iter().rev().take(2).cloned().collect::<Vec<_>>());
    assert_eq!(of("names?sort=name&offset=3&limit=1"), [by_name[3].clone()]);
    assert_eq!(of("names?namespace=blog"), ["blog.example.org"]);
    assert_eq!(of("names?reason=GP0204"), of("names?reason=namespace-not-allowed"));
    assert_eq!(of("names?q=TLSROUTE%2Fshop"), ["vault.example.org"]);
    assert_eq!(of("names?zone=example.net"), ["sale.example.net"]);
    let wrong = served.api("names?health=wrong");
    assert_eq!(wrong["matching"], all["counts"]["wrong"]);
    assert!(of("names")[0] == of("names?health=wrong")[0], "what is wrong comes first");
    for (path, word) in [("names?helth=wrong", "helth"), ("names?health=bad", "health=bad"), ("nope", "/api/v1/names")]
    {
        let answer = served.get(&format!("/api/v1/{path}"), "localhost");
        assert!(answer.starts_with("HTTP/1.1 40") && answer.contains(word), "{answer}");
    }
}

#[test]
fn what_a_reader_has_already_is_not_sent_again() {
    let served = Served::start("api-etag", &[]);
    let answer = served.get("/api/v1/names", "localhost");
    let tag = answer.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    let ask = || served.ask_http(&format!("GET /api/v1/names HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {tag}\r\n"));
    assert!(ask().starts_with("HTTP/1.1 304"), "{}", ask());
    write_route(&served.folder, "shop.example.org");
    served.api_comes_to("names?q=shop.example.org", |names| names["matching"] == 1);
    assert!(ask().starts_with("HTTP/1.1 200"));
}

#[test]
fn an_edited_file_is_told_on_the_event_stream() {
    let served = Served::start("api-events", &[]);
    let mut events = BufReader::new(open_stream(&served));
    let end = Instant::now() + Duration::from_secs(30);
    let mut next = |words: &str| {
        let mut line = String::new();
        while !line.starts_with(words) {
            line.clear();
            assert!(Instant::now() < end, "no {words}");
            assert!(events.read_line(&mut line).unwrap() > 0, "the stream ended");
        }
        line
    };
    write_route(&served.folder, "shop.example.org");
    next("event: changed");
    assert_ne!(next("data: ").trim(), "data: 1");
    let row = served.api_comes_to("names?q=shop.example.org", |names| names["matching"] == 1);
    assert_eq!(row["items"][0]["records"][0], "A 192.0.2.7");
    let gone = served.api("activity?name=www.example.org");
    assert!(gone["items"][0]["text"].as_str().unwrap().starts_with('-'), "{gone:#}");
}

/// A folder that cannot be read any more: what is known stays, and is known to be old.
#[test]
fn what_cannot_be_read_is_not_current() {
    let served = Served::start("api-old", &[]);
    assert_eq!(served.api("overview")["isCurrent"], true);
    let away = served.folder.with_extension("away");
    std::fs::rename(&served.folder, &away).unwrap();
    let overview = served.api_comes_to("overview", |overview| overview["isCurrent"] == false);
    assert!(!overview["troubles"].as_array().unwrap().is_empty(), "{overview:#}");
    assert_eq!(overview["names"], 1);
    std::fs::remove_dir_all(away).unwrap();
}

#[test]
fn nothing_is_shown_to_other_origins_and_by_other_names() {
    let served = Served::start("api-refused", &[]);
    let ask = |more: &str| served.ask_http(&format!("GET /api/v1/overview HTTP/1.1\r\n{more}"));
    assert!(ask("Host: localhost\r\n").starts_with("HTTP/1.1 200"));
    let own = served.http;
    assert!(ask(&format!("Host: {own}\r\nOrigin: http://{own}\r\n")).starts_with("HTTP/1.1 200"));
    for refused in [
        "Host: evil.example\r\n",
        "Host: localhost.evil.example\r\n",
        "Host: localhost\r\nOrigin: http://evil.example\r\n",
        "Host: localhost\r\nOrigin: null\r\n",
    ] {
        let answer = ask(refused);
        assert!(answer.starts_with("HTTP/1.1 403") && !answer.contains("counts"), "{refused}: {answer}");
    }
    let answer = served.ask_http("POST /api/v1/overview HTTP/1.1\r\nHost: localhost\r\n");
    assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("allow: GET, HEAD"), "{answer}");
}

#[test]
fn names_are_not_shown_to_a_network_unless_asked_for() {
    let refuses = |served: &Served, words: &str| {
        for path in ["/api/v1/names", "/api/v1/events", "/"] {
            let answer = served.get(path, "localhost");
            assert!(answer.starts_with("HTTP/1.1 403") && answer.contains(words), "{answer}");
        }
        assert!(served.get("/healthz", "localhost").starts_with("HTTP/1.1 200"));
    };
    refuses(&Served::start("api-network", &["--http-addr", "0.0.0.0:0"]), "--page any");
    refuses(&Served::start("api-none", &["--page", "none"]), "--page none");
    let open = Served::start("api-any", &["--http-addr", "0.0.0.0:0", "--page", "any"]);
    assert_eq!(open.api("overview")["names"], 1);
}

/// The newest streams go on, the others were closed to make room, and every request is answered at once.
#[test]
fn a_thousand_idle_streams_leave_health_alone() {
    let served = Served::start("api-streams", &[]);
    let mut streams: Vec<TcpStream> = Vec::new();
    for _ in 0..1000 {
        streams.push(open_stream(&served));
    }
    for _ in 0..5 {
        assert!(served.get("/healthz", "localhost").ends_with("ok\n"));
        assert_eq!(served.api("overview")["names"], 1);
    }
    let is_open = |stream: &mut TcpStream| {
        stream.set_nonblocking(true).unwrap();
        matches!(stream.read(&mut [0; 1]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    };
    assert_eq!(streams.iter_mut().map(is_open).filter(|is_open| *is_open).count(), 64);
}

/// An event stream whose first event has arrived.
fn open_stream(served: &Served) -> TcpStream {
    let mut stream = TcpStream::connect(served.http).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut text = Vec::new();
    while !text.ends_with(b"data: 1\n\n\r\n") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&text));
        text.push(byte[0]);
    }
    stream
}
