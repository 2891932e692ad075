//! `gatepost serve` as a user runs it: a folder, a real socket, changes on disk.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

mod serve {
    mod api;
    mod openapi;
}

const WORLD: &str = "\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: standard
  addresses: [{value: 192.0.2.7}]
  listeners:
  - {name: http, port: 80, protocol: HTTP, hostname: '*.example.org'}
";

/// A running `serve` with a folder of its own; both go when it is dropped.
struct Served {
    folder: PathBuf,
    process: Child,
    dns: SocketAddr,
    http: SocketAddr,
}

impl Served {
    fn start(name: &str, arguments: &[&str]) -> Served {
        Served::start_with(name, arguments, |folder| write_route(folder, "www.example.org"))
    }

    fn start_without_routes(name: &str, arguments: &[&str]) -> Served {
        Served::start_with(name, arguments, |_| ())
    }

    fn start_with(name: &str, arguments: &[&str], fill: impl FnOnce(&Path)) -> Served {
        Served::start_in(&Served::folder(name), arguments, |folder| {
            std::fs::write(folder.join("gateway.yaml"), WORLD).unwrap();
            fill(folder);
        })
    }

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("gatepost-serve-{name}-{}", std::process::id()))
    }

    fn start_in(folder: &Path, arguments: &[&str], fill: impl FnOnce(&Path)) -> Served {
        let folder = folder.to_owned();
        std::fs::create_dir_all(&folder).unwrap();
        fill(&folder);
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
        command.args(["serve", "--dns-addr", "127.0.0.1:0", "-f"]).arg(&folder);
        if !arguments.contains(&"--http-addr") {
            command.args(["--http-addr", "127.0.0.1:0"]);
        }
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut errors = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("ready ") {
            line.clear();
            assert!(errors.read_line(&mut line).unwrap() > 0, "serve ended before it was ready");
        }
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        let address = |key: &str| {
            let word = line.split_whitespace().find_map(|word| word.strip_prefix(key));
            word.unwrap().parse().unwrap()
        };
        Served { folder, process, dns: address("dns="), http: address("http=") }
    }

    /// Response code and number of answers.
    fn ask(&self, name: &str) -> (u8, u8) {
        let mut question = vec![0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            question.push(u8::try_from(label.len()).unwrap());
            question.extend(label.as_bytes());
        }
        question.extend([0, 0, 1, 0, 1]);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.send_to(&question, self.dns).unwrap();
        let mut answer = [0; 1500];
        socket.recv(&mut answer).unwrap();
        (answer[3] & 15, answer[7])
    }

    fn comes_to(&self, name: &str, expected: (u8, u8)) {
        let end = Instant::now() + Duration::from_secs(30);
        while self.ask(name) != expected {
            assert!(Instant::now() < end, "{name}: {:?}, expected {expected:?}", self.ask(name));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a page contains some words.
    fn tells(&self, path: &str, words: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        let page = || self.get(path, "localhost");
        while !page().contains(words) {
            assert!(Instant::now() < end, "{path} does not tell {words}: {}", page());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn get(&self, path: &str, host: &str) -> String {
        self.ask_http(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n"))
    }

    fn ask_http(&self, head: &str) -> String {
        let mut stream = TcpStream::connect(self.http).unwrap();
        write!(stream, "{head}\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn write_route(folder: &Path, hostname: &str) {
    let route = format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{namespace: infra, name: web}}\n\
         spec: {{parentRefs: [{{name: edge}}], hostnames: [{hostname}]}}\n"
    );
    std::fs::write(folder.join("route.yaml"), route).unwrap();
}

const FOUND: (u8, u8) = (0, 1);
const NXDOMAIN: (u8, u8) = (3, 0);
const REFUSED: (u8, u8) = (5, 0);

#[test]
fn names_are_answered_and_follow_the_files() {
    let served = Served::start("follow", &[]);
    served.comes_to("www.example.org", FOUND);
    served.comes_to("other.example.org", NXDOMAIN);
    served.comes_to("www.example.com", REFUSED);
    write_route(&served.folder, "shop.example.org");
    served.comes_to("shop.example.org", FOUND);
    served.comes_to("www.example.org", NXDOMAIN);
}

#[test]
fn a_text_that_cannot_be_read_takes_nothing_away() {
    let served = Served::start("hold", &[]);
    served.comes_to("www.example.org", FOUND);
    std::fs::write(served.folder.join("route.yaml"), "apiVersion: [").unwrap();
    std::fs::write(served.folder.join("more.yaml"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: infra}\n")
        .unwrap();
    served.tells("/plan.json", "syntax-error");
    served.tells("/readyz", "warning: ");
    assert_eq!(served.ask("www.example.org"), FOUND);
    write_route(&served.folder, "shop.example.org");
    served.comes_to("shop.example.org", FOUND);
    served.comes_to("www.example.org", NXDOMAIN);
}

/// Of a route with a hostname that is none it is not known what it will ask for, also where it has no other (D30).
#[test]
fn a_hostname_that_is_none_takes_nothing_away() {
    let served = Served::start("typo", &[]);
    served.comes_to("www.example.org", FOUND);
    let others = |names: &str| {
        let route = format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{namespace: infra, name: others}}\n\
             spec: {{parentRefs: [{{name: edge}}], hostnames: [{names}]}}\n"
        );
        std::fs::write(served.folder.join("others.yaml"), route).unwrap();
    };
    for (round, typo) in ["https://www.example.org/", "www_.example.org", "-www.example.org"].into_iter().enumerate() {
        write_route(&served.folder, &format!("\"{typo}\""));
        // What is written after it is published, so the typo has been decided about.
        others(&format!("kept.example.org, next{round}.example.org"));
        served.comes_to(&format!("next{round}.example.org"), FOUND);
        served.tells("/plan.json", &format!("`{typo}`"));
        assert_eq!((served.ask("www.example.org"), served.ask("kept.example.org")), (FOUND, FOUND), "{typo}");
    }
    write_route(&served.folder, "shop.example.org");
    served.comes_to("shop.example.org", FOUND);
    served.comes_to("www.example.org", NXDOMAIN);
}

#[test]
fn health_and_plan_are_told_to_who_asks_by_address() {
    let served = Served::start("http", &[]);
    let address = served.http.to_string();
    assert!(served.get("/healthz", &address).ends_with("ok\n"));
    assert!(served.get("/plan.json", "localhost").contains("www.example.org"));
    assert!(served.get("/metrics", &address).contains("gatepost_records 1"));
    assert!(served.get("/plan.json", "evil.example").starts_with("HTTP/1.1 403"));
}

#[test]
fn the_last_good_zone_is_kept_for_a_restart() {
    let state = std::env::temp_dir().join(format!("gatepost-state-{}", std::process::id()));
    let served = Served::start("state", &["--state-dir", state.to_str().unwrap()]);
    served.comes_to("www.example.org", FOUND);
    assert!(std::fs::read_to_string(state.join("zones.json")).unwrap().contains("example"));
    drop(served);
    let _ = std::fs::remove_dir_all(&state);
}

/// A file that is removed while it is followed is a cause, also for the last name.
#[test]
fn the_last_name_goes_with_its_file() {
    let served = Served::start("last", &[]);
    served.comes_to("www.example.org", FOUND);
    std::fs::remove_file(served.folder.join("route.yaml")).unwrap();
    served.comes_to("www.example.org", NXDOMAIN);
    write_route(&served.folder, "www.example.org");
    served.comes_to("www.example.org", FOUND);
}

/// A restart over an empty folder finds the zone of before, and does not take it for something that nobody wants.
#[test]
fn an_emptied_folder_takes_nothing_away_across_a_restart() {
    let state = std::env::temp_dir().join(format!("gatepost-emptied-{}", std::process::id()));
    let arguments = ["--state-dir", state.to_str().unwrap()];
    let served = Served::start("emptied", &arguments);
    served.comes_to("www.example.org", FOUND);
    drop(served);
    let served = Served::start_without_routes("emptied-again", &arguments);
    served.comes_to("www.example.org", FOUND);
    drop(served);
    let confirmed = [&arguments[..], &["--confirm-deletes"]].concat();
    let served = Served::start_without_routes("emptied-confirmed", &confirmed);
    served.comes_to("www.example.org", NXDOMAIN);
    drop(served);
    let _ = std::fs::remove_dir_all(&state);
}

/// A directory stands where the file would be written: nothing can be kept, and everything is answered all the same.
#[test]
fn a_disk_that_takes_nothing_does_not_keep_names_from_being_answered() {
    let state = std::env::temp_dir().join(format!("gatepost-unkept-{}", std::process::id()));
    std::fs::create_dir_all(state.join("zones.json.new")).unwrap();
    let served = Served::start("unkept", &["--state-dir", state.to_str().unwrap()]);
    served.comes_to("www.example.org", FOUND);
    write_route(&served.folder, "shop.example.org");
    served.comes_to("shop.example.org", FOUND);
    drop(served);
    let _ = std::fs::remove_dir_all(&state);
}
