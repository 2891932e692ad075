//! A way to the API server that fails as told: lists without items, pages that fail, lines that break off, refusals.
//!
//! `kubectl proxy` speaks TLS and shows the credentials; what stands before it here is plain HTTP, one request per
//! connection, so that an answer can be changed as a whole or cut anywhere.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::other;
use super::{ADMIN, Cluster};

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It goes through.
    Pass,
    /// The answer has no items.
    Empty,
    /// It is answered with this status, and with `Retry-After` in seconds where given.
    Refuse(u16, Option<u32>),
    /// The connection breaks after so many bytes of the answer.
    Cut(usize),
    /// These bytes come instead of the answer's body, and the connection ends.
    Say(String),
    /// It goes through after a while.
    Late(Duration),
    /// It goes through after a while, and the answer comes at so many bytes a second; all answers share those.
    Slow(Duration, u32),
    /// Nothing comes, and the connection stays.
    Hang,
}

/// Decides on the path of a request, query included.
pub type Judge = Box<dyn FnMut(&str) -> Fault + Send>;

/// A proxy that runs. It ends when it is dropped.
pub struct Proxy {
    address: SocketAddr,
    /// Where `kubectl proxy` answers.
    upstream: SocketAddr,
    kubeconfig: PathBuf,
    judge: Arc<Mutex<Judge>>,
    asked: Arc<Mutex<Vec<String>>>,
    ended: Arc<AtomicBool>,
    kubectl: std::process::Child,
}

impl Proxy {
    /// Starts one; everything goes through at first.
    pub fn start(cluster: &Cluster) -> io::Result<Proxy> {
        let mut command = cluster.command(ADMIN);
        command.args(["proxy", "--port=0", "--accept-hosts=.*"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut kubectl = command.stdin(Stdio::null()).spawn()?;
        let mut line = String::new();
        let said = kubectl.stdout.take().ok_or_else(|| other("kubectl says nothing".to_owned()))?;
        BufReader::new(said).read_line(&mut line)?;
        let upstream = line.trim().rsplit(' ').next().and_then(|word| word.parse().ok());
        let upstream: SocketAddr = upstream.ok_or_else(|| other(format!("kubectl proxy says {line}")))?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let kubeconfig = cluster.folder().join(format!("proxy-{}.kubeconfig", address.port()));
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test", "users": [{"name": "x", "user": {}}],
            "clusters": [{"name": "test", "cluster": {"server": format!("http://{address}")}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "x"}}],
        });
        std::fs::write(&kubeconfig, config.to_string())?;
        let judge: Arc<Mutex<Judge>> = Arc::new(Mutex::new(Box::new(|_: &str| Fault::Pass)));
        let (asked, ended) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let state =
            ProxyState { upstream, judge: judge.clone(), asked: asked.clone(), free: Mutex::new(Instant::now()) };
        let is_over = ended.clone();
        thread::spawn(move || accept(&listener, &Arc::new(state), &is_over));
        Ok(Proxy { address, upstream, kubeconfig, judge, asked, ended, kubectl })
    }

    /// A kubeconfig that leads through it.
    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.clone()
    }

    /// From now on this decides.
    pub fn judge(&self, judge: impl FnMut(&str) -> Fault + Send + 'static) {
        *self.judge.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(judge);
    }

    /// Changes fields of an object, as a client does who is faster than a start of `kubectl`. Nothing stands in its way.
    pub fn patch(&self, path: &str, body: &Value) -> io::Result<()> {
        let mut server = TcpStream::connect(self.upstream)?;
        let (kind, body) = ("application/merge-patch+json", body.to_string());
        let length = body.len();
        write!(server, "PATCH {path} HTTP/1.0\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}")?;
        let mut answer = String::new();
        server.read_to_string(&mut answer)?;
        let is_done = answer.split(' ').nth(1) == Some("200");
        is_done.then_some(()).ok_or_else(|| other(format!("PATCH {path}: {answer}")))
    }

    /// The paths that were asked for so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the loop up, so that it sees the end.
        let _ = TcpStream::connect(self.address);
        let _ = self.kubectl.kill();
        let _ = self.kubectl.wait();
    }
}

/// What all connections through the proxy share.
struct ProxyState {
    upstream: SocketAddr,
    judge: Arc<Mutex<Judge>>,
    asked: Arc<Mutex<Vec<String>>>,
    /// When the next byte may come over it, where it is slow.
    free: Mutex<Instant>,
}

fn accept(listener: &TcpListener, state: &Arc<ProxyState>, ended: &AtomicBool) {
    for client in listener.incoming().flatten() {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let state = state.clone();
        thread::spawn(move || {
            // A connection that breaks is what tests of faults are about.
            let _ = serve(client, &state);
        });
    }
}

fn serve(mut client: TcpStream, state: &ProxyState) -> io::Result<()> {
    let (head, body) = request(&mut client)?;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    state.asked.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
    let fault = state.judge.lock().unwrap_or_else(PoisonError::into_inner)(&path);
    let ok = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n";
    match fault {
        Fault::Hang => {
            let mut rest = [0; 1];
            return client.read(&mut rest).map(drop);
        }
        Fault::Refuse(code, pause) => {
            let pause = pause.map(|seconds| format!("Retry-After: {seconds}\r\n")).unwrap_or_default();
            let body = json!({"kind": "Status", "code": code, "message": "refused by the test"}).to_string();
            return write!(client, "HTTP/1.0 {code} Refused\r\n{pause}Content-Type: application/json\r\n\r\n{body}");
        }
        Fault::Say(text) => return write!(client, "{ok}{text}"),
        Fault::Late(time) | Fault::Slow(time, _) => thread::sleep(time),
        Fault::Pass | Fault::Empty | Fault::Cut(_) => {}
    }
    let mut server = TcpStream::connect(state.upstream)?;
    server.write_all(forwarded(&head).as_bytes())?;
    server.write_all(&body)?;
    match fault {
        Fault::Empty => {
            let mut answer = String::new();
            server.read_to_string(&mut answer)?;
            let (_, body) = answer.split_once("\r\n\r\n").unwrap_or(("", "{}"));
            let mut list: Value = serde_json::from_str(body).map_err(io::Error::other)?;
            list["items"] = json!([]);
            write!(client, "{ok}{list}")
        }
        Fault::Cut(bytes) => io::copy(&mut server.take(bytes as u64), &mut client).map(drop),
        Fault::Slow(_, speed) => state.trickle(&mut server, &mut client, speed),
        _ => io::copy(&mut server, &mut client).map(drop),
    }
}

impl ProxyState {
    /// Copies piece by piece, each when the connection has had the time for it.
    fn trickle(&self, from: &mut TcpStream, to: &mut TcpStream, speed: u32) -> io::Result<()> {
        let mut piece = [0; 1000];
        loop {
            let length = from.read(&mut piece)?;
            if length == 0 {
                return Ok(());
            }
            thread::sleep(self.takes(length, speed));
            to.write_all(&piece[..length])?;
        }
    }

    /// How long it is until so many bytes are over, behind all that came before.
    fn takes(&self, length: usize, speed: u32) -> Duration {
        let now = Instant::now();
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = now.max(*free) + Duration::from_secs_f64(length as f64 / f64::from(speed));
        free.duration_since(now)
    }
}

/// Head and body of a request.
fn request(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Err(other("a request that breaks off".to_owned()));
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok((head, body))
}

/// The head as HTTP/1.0, so that the answer comes in one piece and ends with the connection.
fn forwarded(head: &str) -> String {
    let keeps = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        !["connection", "accept-encoding"].contains(&name.as_str())
    };
    let lines: Vec<&str> = head.trim_end().lines().filter(keeps).collect();
    format!("{}\r\n\r\n", lines.join("\r\n").replacen("HTTP/1.1", "HTTP/1.0", 1))
}
