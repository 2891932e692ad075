//! Answers TCP, sends zones, and carries the announcements: one thread with all connections.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::super::metrics::Counters;
use super::super::notify::Announcer;
use super::super::respond::{Act, Arrival, Transport};
use super::super::transfer::Transfer;
use super::super::zone::Zone;
use super::{Shared, now};

/// How long to wait after the system refused a connection, for want of file descriptors most likely.
const PAUSE: Duration = Duration::from_millis(50);

/// How much is read at a time.
const CHUNK: usize = 2048;

/// Starts the thread.
pub(super) fn spawn(
    listeners: Vec<TcpListener>,
    shared: Arc<Shared>,
    announcer: Announcer,
    changes: mpsc::UnboundedReceiver<Vec<Arc<Zone>>>,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listeners = {
        let _inside = runtime.enter();
        listeners.into_iter().map(tokio::net::TcpListener::from_std).collect::<io::Result<Vec<_>>>()?
    };
    Builder::new().name("dns-tcp".into()).spawn(move || {
        runtime.block_on(async move {
            let all = Arc::new(TcpConnections { counters: shared.slow_counters(), shared, open: Mutex::default() });
            for listener in listeners {
                tokio::spawn(accept(listener, all.clone()));
            }
            tokio::spawn(announcer.run(changes));
            // The sender goes away when the server does, which is a reason to stop as well.
            let _ = stopped.changed().await;
        });
    })
}

/// All connections, and what they answer from.
struct TcpConnections {
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    open: Mutex<OpenConnections>,
}

/// The connections that are open, by an id that is never used again.
#[derive(Default)]
struct OpenConnections {
    next: u64,
    connections: BTreeMap<u64, ConnectionState>,
}

/// What decides which connection is closed to let another in: the one that is not busy and was active longest ago.
struct ConnectionState {
    active: Instant,
    busy: bool,
    task: AbortHandle,
}

async fn accept(listener: tokio::net::TcpListener, all: Arc<TcpConnections>) {
    loop {
        match listener.accept().await {
            Ok((stream, source)) => all.clone().admit(stream, source),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

impl TcpConnections {
    /// Lets a connection in, closing the one that was idle longest if there are too many.
    fn admit(self: Arc<Self>, stream: TcpStream, source: SocketAddr) {
        let mut open = self.open();
        if open.connections.len() >= self.shared.tcp.connections && !self.close_idlest(&mut open) {
            return self.counters.tcp_refused.one();
        }
        self.counters.tcp_connections.one();
        let id = open.next;
        open.next += 1;
        let guard = ConnectionGuard { all: self.clone(), id };
        let connection = TcpConnection { stream, source: source.ip(), guard, unread: Vec::new() };
        let task = tokio::spawn(connection.run()).abort_handle();
        open.connections.insert(id, ConnectionState { active: Instant::now(), busy: false, task });
    }

    fn close_idlest(&self, open: &mut OpenConnections) -> bool {
        let idle = open.connections.iter().filter(|(_, entry)| !entry.busy);
        let Some(id) = idle.min_by_key(|(_, entry)| entry.active).map(|(id, _)| *id) else { return false };
        if let Some(entry) = open.connections.remove(&id) {
            entry.task.abort();
        }
        self.counters.tcp_evicted.one();
        true
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a connection from the open ones when it is dropped.
struct ConnectionGuard {
    all: Arc<TcpConnections>,
    id: u64,
}

impl ConnectionGuard {
    fn mark(&self, busy: bool) {
        if let Some(entry) = self.all.open().connections.get_mut(&self.id) {
            entry.active = Instant::now();
            entry.busy = busy;
        }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.all.open().connections.remove(&self.id);
    }
}

struct TcpConnection {
    stream: TcpStream,
    source: IpAddr,
    guard: ConnectionGuard,
    unread: Vec<u8>,
}

impl TcpConnection {
    /// Answers one message after the other until the client goes or its time is up.
    async fn run(mut self) {
        let limits = self.guard.all.shared.tcp;
        let end = Instant::now() + limits.lifetime;
        let _ = self.stream.set_nodelay(true);
        while Instant::now() < end {
            match timeout(limits.idle, self.read_message()).await {
                Ok(Ok(Some(message))) => match self.answer(&message).await {
                    Ok(true) => {}
                    Ok(false) | Err(_) => return,
                },
                Ok(Ok(None) | Err(_)) => return,
                Err(_) => break,
            }
        }
        self.guard.all.counters.tcp_timeouts.one();
    }

    /// The next whole message; `None` when the client has closed.
    async fn read_message(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut chunk = [0; CHUNK];
        loop {
            if let Some((length, rest)) = self.unread.split_first_chunk::<2>()
                && let Some(message) = rest.get(..usize::from(u16::from_be_bytes(*length)))
            {
                let message = message.to_vec();
                self.unread.drain(..2 + message.len());
                return Ok(Some(message));
            }
            match self.stream.read(&mut chunk).await? {
                0 => return Ok(None),
                length => self.unread.extend_from_slice(&chunk[..length]),
            }
        }
    }

    /// Answers a message, and says whether the connection goes on.
    async fn answer(&mut self, message: &[u8]) -> io::Result<bool> {
        let all = self.guard.all.clone();
        all.counters.tcp_queries.one();
        self.guard.mark(false);
        let arrival = Arrival { source: self.source, transport: Transport::Tcp, now: now() };
        let mut reply = Vec::new();
        let zones = all.shared.zones.load_full();
        match all.shared.responder.respond(&zones, message, arrival, &mut reply) {
            Act::Silence => {
                all.counters.ignored.one();
                return Ok(false);
            }
            Act::Reply(summary) => {
                all.counters.reply(summary.code, summary.truncated);
                self.send(&reply).await?;
            }
            Act::Transfer(transfer) => self.transfer(*transfer).await?,
        }
        Ok(true)
    }

    /// Sends a whole zone. Meanwhile the connection is not idle.
    async fn transfer(&mut self, mut transfer: Transfer) -> io::Result<()> {
        let counters = self.guard.all.counters.clone();
        self.guard.mark(true);
        while let Some(message) = transfer.next_message(now()) {
            if let Err(error) = self.send(&message).await {
                counters.transfers_failed.one();
                return Err(error);
            }
        }
        self.guard.mark(false);
        match transfer.is_whole() {
            true => counters.transfers.one(),
            false => return Err(io::Error::other("a message of the transfer could not be written")),
        }
        Ok(())
    }

    async fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let length = u16::try_from(message.len()).map_err(io::Error::other)?;
        let framed = [&length.to_be_bytes(), message].concat();
        timeout(self.guard.all.shared.tcp.idle, self.stream.write_all(&framed)).await?
    }
}
