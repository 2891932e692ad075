//! Providers with bad habits, in front of a real server: answers that are none, and records that are kept otherwise than they
//! were written.

use std::sync::Arc;

use gatepost_core::model::Str;
use gatepost_core::plan::{PlanStep, SetChange, ZoneContent};
use gatepost_core::publication::{Record, RecordType};
use gatepost_core::reason;
use gatepost_dns::provider::{Call, Capabilities, Provider, Result, Shared};
use gatepost_dns::providers::webhook::MEDIA_TYPE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::beds::{BedKind, behind_webhook, webhook_at};
use crate::faults::Stage;
use crate::keeper::Keeper;
use crate::states::{full, precise};

/// What comes instead of an answer to one kind of question.
#[derive(Clone, Copy)]
struct Habit {
    title: &'static str,
    method: &'static str,
    status: &'static str,
    kind: &'static str,
    body: &'static str,
    /// Bytes that are promised and do not come.
    missing: usize,
}

const HALF: &str = r#"[{"dnsName":"host-0.habit.test","recordType":"A","targets":["192.0.2.0"]},{"dnsNa"#;

const NO_READS: &[Habit] = &[
    Habit { title: "a login page", method: "GET", status: "200 OK", kind: "text/html", body: "<html>", missing: 0 },
    Habit { title: "a list of no type", method: "GET", status: "200 OK", kind: "text/plain", body: "[]", missing: 0 },
    Habit { title: "half a list", method: "GET", status: "200 OK", kind: MEDIA_TYPE, body: HALF, missing: 0 },
    Habit { title: "a body cut off", method: "GET", status: "200 OK", kind: MEDIA_TYPE, body: HALF, missing: 99 },
    Habit { title: "an object", method: "GET", status: "200 OK", kind: MEDIA_TYPE, body: "{}", missing: 0 },
    Habit { title: "an error", method: "GET", status: "500 X", kind: MEDIA_TYPE, body: "[]", missing: 0 },
    Habit { title: "busy", method: "GET", status: "503 X", kind: MEDIA_TYPE, body: "", missing: 0 },
];

const EMPTY: Habit =
    Habit { title: "nothing", method: "GET", status: "200 OK", kind: MEDIA_TYPE, body: "[]", missing: 0 };

const NO_WRITES: &[Habit] = &[
    Habit { title: "an error", method: "POST", status: "500 X", kind: MEDIA_TYPE, body: "", missing: 0 },
    Habit { title: "a login page", method: "POST", status: "200 OK", kind: "text/html", body: "<html>", missing: 0 },
    Habit { title: "moved", method: "POST", status: "302 X", kind: MEDIA_TYPE, body: "", missing: 0 },
];

/// A webhook that answers to reading with anything but the records: nothing is planned, and nothing goes.
pub(crate) async fn wrong_answers(kind: BedKind) {
    let mut stage = Stage::set(kind, "habit.test").await;
    let upstream = stage.bed.webhook.clone().unwrap();
    for habit in NO_READS {
        stage.keeper.through(webhook_at(&tampered(&upstream, *habit).await, "habit.test"));
        let plan = stage.keeper.plan(&stage.wish).await;
        let reasons: Vec<_> = plan.held.iter().map(|held| held.reason).collect();
        assert!(plan.steps.is_empty() && reasons == [reason::ZONE_UNREADABLE], "{}: {plan:?}", habit.title);
    }
    for habit in NO_WRITES {
        stage.keeper.through(webhook_at(&tampered(&upstream, *habit).await, "habit.test"));
        let pass = stage.keeper.pass(&stage.wish).await;
        assert!(!pass.results.is_empty() && pass.results.iter().all(Result::is_err), "{}", habit.title);
        assert_eq!(stage.bed.dump(), stage.before, "{}", habit.title);
    }
    stage.converges(kind).await;
}

/// A list of nothing is an empty zone: everything is made anew, which the real zone refuses, and nothing goes.
pub(crate) async fn empty_list(kind: BedKind) {
    let mut stage = Stage::set(kind, "habit.test").await;
    let upstream = stage.bed.webhook.clone().unwrap();
    stage.keeper.through(webhook_at(&tampered(&upstream, EMPTY).await, "habit.test"));
    stage.keeper.pass(&stage.wish).await;
    let now = stage.bed.dump();
    let gone: Vec<_> = stage.before.iter().filter(|line| !now.contains(line)).collect();
    assert!(gone.is_empty(), "{gone:?}");
    stage.converges(kind).await;
}

/// A provider that keeps TTLs and cases of its own, and says so when asked: no pass after the first changes anything.
pub(crate) async fn normalising(kind: BedKind) {
    let bed = kind.start("normal.test").await;
    let (webhook, _) = behind_webhook(Arc::new(Normalising(bed.provider.clone())), "normal.test").await;
    let mut keeper = Keeper::new("normal.test", webhook);
    for state in [full(), precise(), full()] {
        let wish = state.wish("normal.test");
        keeper.settle(&wish).await;
        let dump = bed.dump();
        assert!(dump.iter().any(|line| line.starts_with("host-0.normal.test. 120 ")), "{dump:?}");
        assert!(!dump.iter().any(|line| line.contains("host-0.normal.test. 60 ")), "{dump:?}");
        for _ in 0..3 {
            assert!(keeper.pass(&wish).await.plan.steps.is_empty());
        }
        assert_eq!(bed.dump(), dump);
    }
}

/// Keeps no TTL below two minutes, and writes the targets of aliases in capitals.
#[derive(Debug)]
struct Normalising(Shared);

fn kept(ttl: Option<u32>) -> Option<u32> {
    ttl.map(|ttl| ttl.max(120))
}

fn capitals(kind: RecordType, values: &[Str]) -> Vec<Str> {
    let one = |value: &Str| if kind == RecordType::Cname { value.to_ascii_uppercase().into() } else { value.clone() };
    values.iter().map(one).collect()
}

impl Provider for Normalising {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn zones(&self) -> Call<'_, Result<Vec<Str>>> {
        self.0.zones()
    }

    fn read<'a>(&'a self, zone: &'a str) -> Call<'a, Result<ZoneContent>> {
        self.0.read(zone)
    }

    fn write<'a>(&'a self, zone: &'a str, steps: &'a [PlanStep]) -> Call<'a, Vec<Result<()>>> {
        Box::pin(async move {
            let mut steps = steps.to_vec();
            for step in &mut steps {
                step.changes.iter_mut().chain(&mut step.markers).for_each(normalise);
            }
            self.0.write(zone, &steps).await
        })
    }

    fn adjusts(&self) -> bool {
        true
    }

    fn adjust(&self, mut records: Vec<Record>) -> Call<'_, Result<Vec<Record>>> {
        for record in &mut records {
            record.ttl = kept(record.ttl);
            record.targets = capitals(record.kind, &record.targets).into();
        }
        Box::pin(async move { Ok(records) })
    }
}

fn normalise(change: &mut SetChange) {
    if let Some(new) = &mut change.new {
        new.ttl = kept(new.ttl);
        new.values = capitals(change.kind, &new.values);
    }
}

/// A way to a webhook on which the records are read, or written, with this result; the rest arrives.
async fn tampered(upstream: &str, habit: Habit) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let upstream = upstream.trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, upstream.clone(), habit));
        }
    });
    url
}

async fn answer(mut stream: TcpStream, upstream: String, habit: Habit) -> Option<()> {
    let request = request(&mut stream).await?;
    let start = format!("{} /records ", habit.method);
    let reply = if request.starts_with(start.as_bytes()) {
        let length = habit.body.len() + habit.missing;
        let head = format!("HTTP/1.1 {}\r\ncontent-type: {}\r\ncontent-length: {length}", habit.status, habit.kind);
        format!("{head}\r\nconnection: close\r\n\r\n{}", habit.body).into_bytes()
    } else {
        let mut server = TcpStream::connect(upstream).await.ok()?;
        server.write_all(&closing(&request)).await.ok()?;
        let mut reply = Vec::new();
        server.read_to_end(&mut reply).await.ok()?;
        reply
    };
    stream.write_all(&reply).await.ok()
}

/// The same request, which asks for the connection to be closed.
fn closing(request: &[u8]) -> Vec<u8> {
    let at = request.windows(2).position(|pair| pair == b"\r\n").unwrap_or_default();
    [&request[..at], b"\r\nconnection: close", &request[at..]].concat()
}

/// A request with its body.
async fn request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 65536];
    loop {
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
            if bytes.len() >= head.len() + 4 + length.unwrap_or(0) {
                return Some(bytes);
            }
        }
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend(&piece[..count]),
        }
    }
}
