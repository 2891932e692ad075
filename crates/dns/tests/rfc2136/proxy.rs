//! A proxy that stands between provider and server, and misbehaves on the way back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The connection ends after this many bytes of the answer.
    CutAfter(usize),
    /// The last message of the answer never comes.
    WithoutLastMessage,
    /// One byte of the answer is another.
    FlipByte(usize),
    /// Nothing is passed on, in either direction.
    Silence,
    /// The question is passed on, the answer is not.
    LoseAnswer,
}

pub(crate) struct Proxy {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(upstream: SocketAddr, fault: Fault) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(client, upstream, fault));
            }
        });
        Proxy { address, connections, task }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut client: TcpStream, upstream: SocketAddr, fault: Fault) {
    if matches!(fault, Fault::Silence) {
        // Longer than any client waits; it ends with the test.
        tokio::time::sleep(Duration::from_secs(30)).await;
        return;
    }
    let Some(question) = message(&mut client).await else { return };
    let mut server = TcpStream::connect(upstream).await.unwrap();
    server.write_all(&question).await.unwrap();
    let answer = drain(&mut server).await;
    // The client may have gone away meanwhile.
    let _ = client.write_all(&spoil(answer, fault)).await;
}

/// The messages of an answer, until nothing more comes.
async fn drain(server: &mut TcpStream) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let patience = Duration::from_millis(150);
    while let Some(next) = if messages.is_empty() {
        message(server).await
    } else {
        tokio::time::timeout(patience, message(server)).await.ok().flatten()
    } {
        messages.push(next);
    }
    messages
}

fn spoil(mut messages: Vec<Vec<u8>>, fault: Fault) -> Vec<u8> {
    if matches!(fault, Fault::WithoutLastMessage) {
        messages.pop();
    }
    let mut bytes = messages.concat();
    match fault {
        Fault::CutAfter(length) => bytes.truncate(length),
        Fault::FlipByte(at) => {
            let at = at.min(bytes.len() / 2);
            bytes[at] ^= 1;
        }
        Fault::LoseAnswer => bytes.clear(),
        _ => {}
    }
    bytes
}

/// One message with its length in front.
async fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let length = stream.read_u16().await.ok()?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.resize(2 + usize::from(length), 0);
    stream.read_exact(&mut bytes[2..]).await.ok()?;
    Some(bytes)
}
