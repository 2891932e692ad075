//! A server that answers every question with bytes somebody chose.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub(crate) const JSON: &str = "application/external.dns.webhook+json;version=1";

pub(crate) struct Stub {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

type Answer = Arc<dyn Fn(&str, &str) -> Vec<u8> + Send + Sync>;

impl Stub {
    /// Answers by method and path, and closes the connection.
    pub(crate) async fn start(answer: impl Fn(&str, &str) -> Vec<u8> + Send + Sync + 'static) -> Stub {
        Stub::listen(Arc::new(answer), None).await
    }

    /// Names its domain, and then sends a list without end.
    pub(crate) async fn flooding(head: String) -> Stub {
        let domains =
            |_: &str, path: &str| if path == "/" { typed(200, r#"{"include":["example.com"]}"#) } else { Vec::new() };
        Stub::listen(Arc::new(domains), Some(head)).await
    }

    async fn listen(answer: Answer, flood: Option<String>) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, answer.clone(), flood.clone(), log.clone()));
            }
        });
        Stub { url, seen, task }
    }

    /// How many questions began with this method.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|line| line.starts_with(method)).count()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn converse(mut stream: TcpStream, answer: Answer, flood: Option<String>, log: Arc<Mutex<Vec<String>>>) {
    let Some(line) = question(&mut stream).await else { return };
    log.lock().unwrap().push(line.clone());
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let bytes = answer(method, path);
    match flood.filter(|_| bytes.is_empty()) {
        None => drop(stream.write_all(&bytes).await),
        Some(head) => {
            let _ = stream.write_all(head.as_bytes()).await;
            let spaces = vec![b' '; 1 << 20];
            while stream.write_all(&spaces).await.is_ok() {}
        }
    }
}

/// The first line of a question, which is read to its end.
async fn question(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut piece = [0; 65536];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return head.lines().next().map(str::to_owned);
            }
        }
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend(&piece[..count]),
        }
    }
}

pub(crate) fn typed(status: u16, body: &str) -> Vec<u8> {
    reply(status, JSON, body)
}

pub(crate) fn reply(status: u16, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
