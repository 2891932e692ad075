//! Binds addresses: for each one TCP listener and as many UDP sockets as there are workers, all on one port.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::super::error::ServerError;

/// How often a worker without packets looks whether it is to stop.
const WAKE: Duration = Duration::from_millis(100);

/// The buffer asked for on each UDP socket; the system may give less.
const BUFFER: usize = 4 << 20;

/// How often a free port is looked for that is free for both protocols.
const ATTEMPTS: usize = 20;

/// One address with its sockets.
pub(super) struct Bound {
    pub(super) address: SocketAddr,
    pub(super) udp: Vec<UdpSocket>,
    pub(super) tcp: TcpListener,
}

/// The number of workers: as asked, or one per core.
pub(super) fn workers(asked: usize) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from).min(16);
    if asked == 0 { cores() } else { asked }
}

/// Binds every address.
pub(super) fn bind(addresses: &[SocketAddr], workers: usize) -> Result<Vec<Bound>, ServerError> {
    if addresses.is_empty() {
        return Err(ServerError::NoAddress);
    }
    let only_v6 = addresses.iter().any(SocketAddr::is_ipv4);
    addresses.iter().map(|address| bind_one(*address, workers, only_v6)).collect()
}

/// With port 0 the system picks one for TCP, which may be taken for UDP: then another is tried.
fn bind_one(address: SocketAddr, workers: usize, only_v6: bool) -> Result<Bound, ServerError> {
    let attempts = if address.port() == 0 { ATTEMPTS } else { 1 };
    let mut last = Err(ServerError::NoAddress);
    for _ in 0..attempts {
        last = bind_both(address, workers, only_v6);
        if last.is_ok() {
            break;
        }
    }
    last
}

/// TCP comes first, and is bound by nobody else: two servers on one address would share its UDP packets unnoticed.
fn bind_both(asked: SocketAddr, workers: usize, only_v6: bool) -> Result<Bound, ServerError> {
    let failed = |transport| move |cause| ServerError::Listen { address: asked, transport, cause };
    let tcp = listen_tcp(asked, only_v6).map_err(failed("TCP"))?;
    let address = tcp.local_addr().map_err(failed("TCP"))?;
    drop(udp_socket(address, only_v6, false).map_err(failed("UDP"))?);
    let sockets = (0..workers).map(|_| udp_socket(address, only_v6, workers > 1));
    let udp = sockets.collect::<io::Result<_>>().map_err(failed("UDP"))?;
    Ok(Bound { address, udp, tcp })
}

fn listen_tcp(address: SocketAddr, only_v6: bool) -> io::Result<TcpListener> {
    let socket = socket(address, only_v6, Type::STREAM, Protocol::TCP)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    Ok(socket.into())
}

fn udp_socket(address: SocketAddr, only_v6: bool, shared: bool) -> io::Result<UdpSocket> {
    let socket = socket(address, only_v6, Type::DGRAM, Protocol::UDP)?;
    socket.set_reuse_port(shared)?;
    // The system's own limit is good enough where it refuses more.
    let _ = socket.set_recv_buffer_size(BUFFER);
    let _ = socket.set_send_buffer_size(BUFFER);
    socket.set_read_timeout(Some(WAKE))?;
    socket.set_write_timeout(Some(WAKE))?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

fn socket(address: SocketAddr, only_v6: bool, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() && only_v6 {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}
