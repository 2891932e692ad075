//! Something between a client and a server of HTTP that misbehaves: some requests are answered by itself, all others passed on.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request that is answered wrongly.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// How the request begins.
    request: &'static str,
    /// What is answered.
    answer: Reply,
    /// How often; always where unset.
    times: Option<usize>,
}

/// How a request is answered wrongly.
#[derive(Clone, Debug)]
enum Reply {
    /// Wholly by the proxy.
    Own(String),
    /// By the server, and one text becomes another of the same length.
    Altered(&'static str, &'static str),
}

/// The proxy; it ends with the test.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Fault {
    /// The first such request is answered so.
    pub(crate) fn once(request: &'static str, status: &str, headers: &str, body: &str) -> Fault {
        Fault { times: Some(1), ..Fault::always(request, status, headers, body) }
    }

    /// Every such request is answered so.
    pub(crate) fn always(request: &'static str, status: &str, headers: &str, body: &str) -> Fault {
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        Fault { request, answer: Reply::Own(answer), times: None }
    }

    /// In the answers to all such requests one text becomes another of the same length.
    pub(crate) fn altered(request: &'static str, from: &'static str, to: &'static str) -> Fault {
        assert_eq!(from.len(), to.len());
        Fault { request, answer: Reply::Altered(from, to), times: None }
    }
}

impl Proxy {
    /// Passes requests on to a server, but for some.
    pub(crate) fn start(upstream: SocketAddr, mut faults: Vec<Fault>) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let heard = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = stream;
                let Some(request) = request(&mut stream) else { continue };
                let text = String::from_utf8_lossy(&request).into_owned();
                heard.lock().unwrap().push(text.lines().next().unwrap_or_default().to_owned());
                let fault = faults.iter_mut().find(|f| text.starts_with(f.request) && f.times != Some(0));
                let answer = match fault {
                    Some(fault) => {
                        fault.times = fault.times.map(|times| times - 1);
                        match &fault.answer {
                            Reply::Own(answer) => answer.clone().into_bytes(),
                            Reply::Altered(from, to) => {
                                let answer = passed_on(upstream, &request);
                                String::from_utf8_lossy(&answer).replace(from, to).into_bytes()
                            }
                        }
                    }
                    None => passed_on(upstream, &request),
                };
                let _ = stream.write_all(&answer);
            }
        });
        Proxy { address, seen }
    }

    /// How many requests began so.
    pub(crate) fn count(&self, request: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|line| line.starts_with(request)).count()
    }
}

/// A whole request: its head, and as much of a body as it says.
fn request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let (mut bytes, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        let length = stream.read(&mut buffer).ok().filter(|length| *length > 0)?;
        bytes.extend_from_slice(&buffer[..length]);
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
        let size = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
        if bytes.len() >= head.len() + 4 + size.unwrap_or(0) {
            return Some(bytes);
        }
    }
}

fn passed_on(upstream: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(upstream).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    // The head ends with an empty line, before which one more header fits: then the answer ends with the connection.
    let end = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(request.len());
    let whole = [&request[..end], b"\r\nConnection: close", &request[end..]].concat();
    stream.write_all(&whole).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}
