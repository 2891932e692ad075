//! A relay between a client and a DNS server over TCP, message by message: what becomes of each, the test decides.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the server.
    There,
    /// To the client.
    Back,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Pass,
    /// This many bytes of it arrive, its length included; then the connection ends both ways.
    Cut(usize),
}

/// Decides what becomes of a message, which comes without its length.
type Judge = Arc<dyn Fn(Direction, &[u8]) -> Fate + Send + Sync>;

/// A relay that runs until it is dropped.
#[derive(Debug)]
pub struct Relay {
    /// Where it listens.
    pub address: SocketAddr,
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts to pass messages on to a server.
    pub fn start(
        server: SocketAddr,
        judge: impl Fn(Direction, &[u8]) -> Fate + Send + Sync + 'static,
    ) -> io::Result<Relay> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let (is_stopping, judge) = (Arc::new(AtomicBool::new(false)), Arc::new(judge) as Judge);
        let stop = is_stopping.clone();
        let thread = thread::spawn(move || {
            for client in listener.incoming().take_while(|_| !stop.load(Ordering::Relaxed)).flatten() {
                // A server that is gone is a connection that ends.
                let Ok(server) = TcpStream::connect_timeout(&server, Duration::from_secs(5)) else { continue };
                connect(client, server, &judge);
            }
        });
        Ok(Relay { address, is_stopping, thread: Some(thread) })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        // Wakes the thread, which waits for a connection.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        self.thread.take().map(JoinHandle::join);
    }
}

/// Whether a message, without its length, is an UPDATE.
pub fn is_update(message: &[u8]) -> bool {
    message.get(2).is_some_and(|byte| (byte >> 3) & 0x0f == 5)
}

fn connect(client: TcpStream, server: TcpStream, judge: &Judge) {
    let Ok((their_client, their_server)) = client.try_clone().and_then(|one| Ok((one, server.try_clone()?))) else {
        return;
    };
    let (there, back) = (judge.clone(), judge.clone());
    thread::spawn(move || pass(client, server, Direction::There, &there));
    thread::spawn(move || pass(their_server, their_client, Direction::Back, &back));
}

/// Passes messages on until one is cut or an end hangs up.
fn pass(mut from: TcpStream, mut to: TcpStream, way: Direction, judge: &Judge) {
    while let Ok(message) = message(&mut from) {
        let fate = judge(way, &message[2..]);
        let length = if let Fate::Cut(length) = fate { length.min(message.len()) } else { message.len() };
        if to.write_all(&message[..length]).is_err() || fate != Fate::Pass {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// One message with its length in front.
fn message(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 2];
    stream.read_exact(&mut bytes)?;
    let length = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
    bytes.resize(2 + length, 0);
    stream.read_exact(&mut bytes[2..])?;
    Ok(bytes)
}
