//! HTTP and TLS servers that answer well or badly, as a test says, one thread per connection.
//!
//! What they send is written by hand, because half of it is wrong on purpose.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What a server does with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendAnswer {
    /// A complete answer with this status.
    Status(u16),
    /// A redirect to this address.
    Redirect(String),
    /// Nothing, for as long as the client waits.
    Hung,
    /// Headers that announce more than is sent.
    HalfBody,
    /// A part of the headers.
    HalfHeaders,
    /// A complete answer, one byte after the other.
    Slow,
    /// Status 200, and a body without an end.
    Endless,
    /// Headers without an end.
    EndlessHeaders,
    /// What is no HTTP.
    Garbage,
    /// The connection is closed at once.
    Closed,
}

/// A running server; it ends when it is dropped.
#[derive(Debug)]
pub struct Backend {
    /// Where it answers.
    pub address: SocketAddr,
    shared: Arc<SharedBackend>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct SharedBackend {
    answer: Mutex<BackendAnswer>,
    requests: Mutex<Vec<String>>,
    answered: Mutex<Vec<BackendAnswer>>,
    connections: AtomicUsize,
    open: AtomicUsize,
    is_over: AtomicBool,
    tls: Option<Arc<ServerConfig>>,
}

/// A connection whose client is silent ends after this long.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time between two bytes of a slow answer.
const SLOW: Duration = Duration::from_millis(100);

impl Backend {
    /// A server without TLS; port 0 picks a free one.
    pub fn start(ip: IpAddr, port: u16, answer: BackendAnswer) -> io::Result<Backend> {
        Backend::with(ip, port, answer, None)
    }

    /// A server with TLS that presents a certificate, in PEM.
    pub fn start_tls(ip: IpAddr, port: u16, answer: BackendAnswer, chain: &str, key: &str) -> io::Result<Backend> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(io::Error::other)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(io::Error::other)?.with_no_client_auth();
        let config = builder.with_single_cert(chain.map_err(io::Error::other)?, key).map_err(io::Error::other)?;
        Backend::with(ip, port, answer, Some(Arc::new(config)))
    }

    fn with(ip: IpAddr, port: u16, answer: BackendAnswer, tls: Option<Arc<ServerConfig>>) -> io::Result<Backend> {
        let listener = TcpListener::bind((ip, port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(SharedBackend {
            answer: Mutex::new(answer),
            requests: Mutex::default(),
            answered: Mutex::default(),
            connections: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            tls,
        });
        let of_thread = shared.clone();
        let thread = std::thread::spawn(move || of_thread.accept(&listener));
        Ok(Backend { address, shared, thread: Some(thread) })
    }

    /// Changes what it answers from now on.
    pub fn answer(&self, answer: BackendAnswer) {
        *self.shared.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    /// The heads of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often it gave an answer.
    pub fn answered(&self, answer: &BackendAnswer) -> usize {
        let answered = self.shared.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.iter().filter(|given| *given == answer).count()
    }

    /// How many connections there were, and how many are open.
    pub fn connections(&self) -> (usize, usize) {
        (self.shared.connections.load(Ordering::Relaxed), self.shared.open.load(Ordering::Relaxed))
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl SharedBackend {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming().flatten() {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            self.connections.fetch_add(1, Ordering::Relaxed);
            self.open.fetch_add(1, Ordering::Relaxed);
            let shared = self.clone();
            std::thread::spawn(move || {
                let _ = stream.set_read_timeout(Some(PATIENCE));
                let _ = shared.serve(stream);
                shared.open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        match &self.tls {
            None => self.converse(stream),
            Some(config) => {
                let connection = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
                self.converse(StreamOwned::new(connection, stream))
            }
        }
    }

    fn converse(&self, mut stream: impl Read + Write) -> io::Result<()> {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read(&mut byte)? == 0 || head.len() > 64 << 10 {
                return Ok(());
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(head);
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).push(answer.clone());
        send(&mut stream, answer)?;
        stream.flush()
    }
}

fn send(stream: &mut (impl Read + Write), answer: BackendAnswer) -> io::Result<()> {
    let whole = |status: u16| format!("HTTP/1.1 {status} x\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
    match answer {
        BackendAnswer::Status(status) => stream.write_all(whole(status).as_bytes()),
        BackendAnswer::Redirect(to) => {
            write!(stream, "HTTP/1.1 301 x\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
        }
        BackendAnswer::Hung => {
            let mut rest = [0; 16];
            while stream.read(&mut rest)? > 0 {}
            Ok(())
        }
        BackendAnswer::HalfBody => stream.write_all(b"HTTP/1.1 200 x\r\ncontent-length: 100\r\n\r\nhalf"),
        BackendAnswer::HalfHeaders => stream.write_all(b"HTTP/1.1 200 x\r\ncontent-le"),
        BackendAnswer::Slow => {
            for byte in whole(200).into_bytes() {
                stream.write_all(&[byte])?;
                stream.flush()?;
                std::thread::sleep(SLOW);
            }
            Ok(())
        }
        BackendAnswer::Endless => {
            stream.write_all(b"HTTP/1.1 200 x\r\n\r\n")?;
            loop {
                stream.write_all(&[b'x'; 4096])?;
            }
        }
        BackendAnswer::EndlessHeaders => {
            stream.write_all(b"HTTP/1.1 200 x\r\n")?;
            loop {
                stream.write_all(b"x-more: and more\r\n")?;
            }
        }
        BackendAnswer::Garbage => stream.write_all(b"220 mail.example.org ESMTP\r\n"),
        BackendAnswer::Closed => Ok(()),
    }
}

/// A listener that takes no connection any more, because nobody accepts those that wait.
#[derive(Debug)]
pub struct BlackHole {
    /// Where connections are begun and never made.
    pub address: SocketAddr,
    _listener: socket2::Socket,
    _waiting: Vec<socket2::Socket>,
}

impl BlackHole {
    /// A listener on a free port, with as many connections as wait at most.
    pub fn start() -> io::Result<BlackHole> {
        let socket = || socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let listener = socket()?;
        listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        listener.listen(0)?;
        let address = listener.local_addr()?.as_socket().ok_or_else(|| io::Error::other("no address"))?;
        let mut waiting = Vec::new();
        for _ in 0..4 {
            let client = socket()?;
            client.set_nonblocking(true)?;
            // It is under way, or waits for ever.
            let _ = client.connect(&address.into());
            waiting.push(client);
        }
        Ok(BlackHole { address, _listener: listener, _waiting: waiting })
    }
}
