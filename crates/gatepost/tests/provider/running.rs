//! A command that keeps running: started, waited for until it is ready, ended with the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gatepost_testkit::program::words;

/// A running command.
pub(crate) struct Running {
    process: Child,
    ready: String,
    said: Arc<Mutex<String>>,
}

impl Running {
    /// Starts it and waits for the line that begins with `ready`.
    pub(crate) fn start(line: &str) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
        command.args(words(line)).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut errors = BufReader::new(process.stderr.take().unwrap());
        let mut output = process.stdout.take().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let heard = said.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                heard.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..length]));
            }
        });
        let (mut ready, mut before) = (String::new(), String::new());
        while !ready.starts_with("ready ") {
            before += &ready;
            ready.clear();
            assert!(errors.read_line(&mut ready).unwrap() > 0, "{line} ended before it was ready: {before}");
        }
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        Running { process, ready, said }
    }

    /// An address of the line that says it is ready.
    pub(crate) fn address(&self, key: &str) -> SocketAddr {
        let word = self.ready.split_whitespace().find_map(|word| word.strip_prefix(&format!("{key}=")));
        word.unwrap_or_else(|| panic!("no {key} in {}", self.ready)).parse().unwrap()
    }

    /// What it wrote to standard output.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Asks it to stop, as a service manager would; its exit status.
    pub(crate) fn stop(mut self) -> Option<i32> {
        let _ = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status();
        let end = Instant::now() + Duration::from_secs(30);
        while Instant::now() < end {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The answer to a request, with its head.
pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Waits until something is so.
pub(crate) fn comes_true(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
