//! The running server: sockets, threads, and the zones they answer from.
//!
//! UDP is answered by plain threads, one socket each; TCP and announcements share one thread. Nothing that happens on TCP
//! slows UDP down. A new set of zones is taken by every worker with its next packet.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::{mpsc, watch};

use super::error::ServerError;
use super::limits::{Limiter, RateLimit};
use super::metrics::{Counters, Metrics, sum};
use super::name::Name;
use super::notify::{Announcer, NotifyTarget};
use super::prefix::Prefix;
use super::respond::Responder;
use super::signing::{Key, Keys};
use super::state;
use super::store::ZoneSet;
use super::zone::Zone;

mod batch;
mod sockets;
mod tcp;
mod udp;

/// How the server runs. Every field has a default but the address.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where to answer, over UDP and TCP; port 0 picks a free one. On a machine with several addresses name each of them:
    /// the system chooses which one an answer from an unspecified address comes from.
    pub listen: Vec<SocketAddr>,
    /// How many threads answer UDP; 0 is one per core.
    pub workers: usize,
    /// What to answer from at first.
    pub zones: ZoneSet,
    /// Where the last good zones are kept; `None` keeps them nowhere.
    pub state_directory: Option<PathBuf>,
    /// Who knows one of these secrets may transfer zones.
    pub keys: Vec<Key>,
    /// Who comes from one of these addresses may transfer zones without a key.
    pub may_transfer: Vec<Prefix>,
    /// Who is told of every change.
    pub secondaries: Vec<Secondary>,
    /// How many answers a source gets over UDP; `None` is without limit.
    pub rate_limit: Option<RateLimit>,
    /// The secret of DNS cookies, where several servers share an address; else a random one.
    pub cookie_secret: Option<[u8; 16]>,
    /// The largest answer over UDP.
    pub udp_payload: u16,
    /// Bounds of TCP.
    pub tcp: TcpLimits,
}

/// A server that copies our zones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secondary {
    /// Where it listens.
    pub address: SocketAddr,
    /// The name of the key that signs announcements to it.
    pub key: Option<Name>,
}

/// Bounds of TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpLimits {
    /// Connections at a time; one more closes the one that was idle longest.
    pub connections: usize,
    /// How long a connection may be idle, and a message may take.
    pub idle: Duration,
    /// How long a connection may live; a transfer that has begun is finished.
    pub lifetime: Duration,
}

impl Default for TcpLimits {
    fn default() -> TcpLimits {
        TcpLimits { connections: 500, idle: Duration::from_secs(10), lifetime: Duration::from_secs(120) }
    }
}

impl ServerConfig {
    /// The defaults, on one address.
    pub fn new(listen: SocketAddr) -> ServerConfig {
        ServerConfig {
            listen: vec![listen],
            workers: 0,
            zones: ZoneSet::default(),
            state_directory: None,
            keys: Vec::new(),
            may_transfer: Vec::new(),
            secondaries: Vec::new(),
            rate_limit: Some(RateLimit::default()),
            cookie_secret: None,
            udp_payload: 1232,
            tcp: TcpLimits::default(),
        }
    }
}

/// A server that answers until it is stopped or dropped.
pub struct DnsServer {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    /// Whether the disk holds what is served; held while a new set comes into service.
    swapping: Mutex<bool>,
    changes: mpsc::UnboundedSender<Vec<Arc<Zone>>>,
    stopping: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
    restored: Result<bool, ServerError>,
}

/// What became of a new set of zones.
#[derive(Debug)]
pub struct Swapped {
    /// Zones that are new or changed, with the serials they got.
    pub changed: Vec<(Name, u32)>,
    /// Whether the set is safe on disk; if not, it is served all the same.
    pub saved: Result<(), ServerError>,
}

/// What all threads see.
pub(super) struct Shared {
    pub(super) zones: ArcSwap<ZoneSet>,
    pub(super) responder: Responder,
    pub(super) limiter: Option<Limiter>,
    pub(super) tcp: TcpLimits,
    pub(super) stopping: AtomicBool,
    workers: Vec<Arc<Counters>>,
    state_directory: Option<PathBuf>,
}

impl DnsServer {
    /// Starts to answer. When this returns, the addresses are bound and queries are taken.
    pub fn start(config: ServerConfig) -> Result<DnsServer, ServerError> {
        let (zones, restored) = first_zones(&config);
        let targets = targets(&config)?;
        let workers = sockets::workers(config.workers);
        let bound = sockets::bind(&config.listen, workers)?;
        let shared = Arc::new(Shared::new(&config, zones, workers * bound.len())?);
        let (changes, announced) = mpsc::unbounded_channel();
        let (stopping, stopped) = watch::channel(false);
        let addresses = bound.iter().map(|one| one.address).collect();
        let (udp, tcp): (Vec<_>, Vec<_>) = bound.into_iter().map(|one| (one.udp, one.tcp)).unzip();
        let mut server = DnsServer {
            addresses,
            shared,
            swapping: Mutex::new(false),
            changes,
            stopping,
            threads: Vec::new(),
            restored,
        };
        server.spawn_udp(udp.into_iter().flatten())?;
        let announcer = Announcer::new(targets, server.addresses.clone(), server.shared.slow_counters());
        server.threads.push(tcp::spawn(tcp, server.shared.clone(), announcer, announced, stopped)?);
        server.announce(server.zones().zones().to_vec());
        Ok(server)
    }

    /// Where UDP and TCP are answered, one for each address asked for.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where UDP and TCP are answered: the first address.
    pub fn address(&self) -> SocketAddr {
        // A server is never started without an address.
        self.addresses[0]
    }

    /// Whether the last good zones were found at the start; an error says why they could not be used.
    pub fn restored(&self) -> Result<bool, &ServerError> {
        self.restored.as_ref().copied()
    }

    /// The zones being served.
    pub fn zones(&self) -> Arc<ZoneSet> {
        self.shared.zones.load_full()
    }

    /// Puts a new set of zones into service, all at once. Zones that changed get a later serial than before, and
    /// secondaries are told of them.
    pub fn swap(&self, zones: ZoneSet) -> Swapped {
        let mut on_disk = self.swapping.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.zones();
        let after = Arc::new(zones.after(&before));
        self.shared.zones.store(after.clone());
        self.shared.slow_counters().swaps.one();
        let changed = after.changed_since(&before);
        let list = changed.iter().map(|zone| (zone.name().clone(), zone.soa().serial)).collect();
        let same = changed.is_empty() && after.zones().len() == before.zones().len();
        self.announce(changed);
        let saved = if same && *on_disk { Ok(()) } else { self.shared.save(&after) };
        *on_disk = saved.is_ok();
        Swapped { changed: list, saved }
    }

    /// What happened since the start.
    pub fn metrics(&self) -> Metrics {
        sum(&self.shared.workers)
    }

    /// Stops answering, and returns when all threads have ended.
    pub fn stop(mut self) {
        self.end();
    }

    fn announce(&self, zones: Vec<Arc<Zone>>) {
        // Without the thread there is nobody to announce to: the server is ending.
        let _ = self.changes.send(zones);
    }

    fn spawn_udp(&mut self, sockets: impl Iterator<Item = std::net::UdpSocket>) -> Result<(), ServerError> {
        for (worker, socket) in sockets.enumerate() {
            let counters = self.shared.workers[worker].clone();
            self.threads.push(udp::spawn(worker, socket, self.shared.clone(), counters)?);
        }
        Ok(())
    }

    fn end(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        let _ = self.stopping.send(true);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn new(config: &ServerConfig, zones: ZoneSet, workers: usize) -> Result<Shared, ServerError> {
        Ok(Shared {
            zones: ArcSwap::from_pointee(zones),
            responder: Responder::new(config)?,
            limiter: config.rate_limit.clone().map(Limiter::new),
            tcp: config.tcp,
            stopping: AtomicBool::new(false),
            workers: std::iter::repeat_with(Arc::default).take(workers + 1).collect(),
            state_directory: config.state_directory.clone(),
        })
    }

    /// The counters of everything but UDP. There is always one more than there are UDP workers.
    pub(super) fn slow_counters(&self) -> Arc<Counters> {
        self.workers.last().cloned().unwrap_or_default()
    }

    fn save(&self, zones: &ZoneSet) -> Result<(), ServerError> {
        self.state_directory.as_deref().map_or(Ok(()), |directory| state::save(directory, zones))
    }
}

/// The zones given, after those that were served last; without any given, the latter.
fn first_zones(config: &ServerConfig) -> (ZoneSet, Result<bool, ServerError>) {
    let last = match config.state_directory.as_deref().map(state::load) {
        None | Some(Ok(None)) => return (config.zones.clone(), Ok(false)),
        Some(Err(error)) => return (config.zones.clone(), Err(error)),
        Some(Ok(Some(last))) => last,
    };
    if config.zones.zones().is_empty() { (last, Ok(true)) } else { (config.zones.after(&last), Ok(true)) }
}

/// The secondaries with their keys.
fn targets(config: &ServerConfig) -> Result<Vec<NotifyTarget>, ServerError> {
    let keys = Keys::new(&config.keys);
    let target = |secondary: &Secondary| {
        let unknown = |name: &Name| ServerError::UnknownKey { address: secondary.address, key: name.to_string() };
        let key =
            secondary.key.as_ref().map(|name| keys.find(name).cloned().ok_or_else(|| unknown(name))).transpose()?;
        Ok(NotifyTarget { address: secondary.address, key })
    };
    config.secondaries.iter().map(target).collect()
}

/// Random bytes from the system.
pub(super) fn random<const N: usize>() -> Result<[u8; N], ServerError> {
    let mut bytes = [0; N];
    let failed = |_| ServerError::System(std::io::Error::other("the system has no random numbers"));
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
