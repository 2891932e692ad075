//! Packets by the handful: all that are waiting are taken with one call to the system, and their answers go out with one.
//!
//! Under load this saves most of the calls; a packet that comes alone is answered alone, and never waits for others. Elsewhere
//! than on Linux a handful is one packet. It knows nothing of what is in a packet.

use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Requests are short; of a longer packet only this much is looked at.
const LONGEST: usize = 4096;

/// The most packets that are taken at once: enough to save calls, few enough to stay in the cache.
const MOST: usize = 32;

/// Packets that came, and the answers to some of them.
pub(super) struct Batch {
    system: system::Calls,
    packets: Vec<u8>,
    /// Length and source of each packet.
    arrived: Vec<(usize, SocketAddr)>,
    /// Answers; only the first ones are in use, so that their memory is used again.
    replies: Vec<Vec<u8>>,
    /// Where each of them goes.
    receivers: Vec<SocketAddr>,
}

/// What became of the answers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SendOutcome {
    pub(super) bytes: usize,
    /// Answers that the system would not send.
    pub(super) failures: usize,
}

impl Batch {
    pub(super) fn new() -> Self {
        Batch {
            system: system::Calls::new(),
            packets: vec![0; MOST * LONGEST],
            arrived: Vec::with_capacity(MOST),
            replies: Vec::new(),
            receivers: Vec::with_capacity(MOST),
        }
    }

    /// Waits for a packet, and takes what else is there. What was here before is forgotten.
    pub(super) fn receive(&mut self, socket: &UdpSocket) -> io::Result<()> {
        self.arrived.clear();
        self.receivers.clear();
        self.system.receive(socket, &mut self.packets, &mut self.arrived)
    }

    /// Lets each packet be answered. An answer that is not wanted is not sent.
    pub(super) fn answer(&mut self, mut respond: impl FnMut(&[u8], SocketAddr, &mut Vec<u8>) -> bool) {
        for (packet, (length, source)) in self.packets.chunks(LONGEST).zip(&self.arrived) {
            let place = self.receivers.len();
            if self.replies.len() == place {
                self.replies.push(Vec::with_capacity(LONGEST));
            }
            if respond(&packet[..*length], *source, &mut self.replies[place]) {
                self.receivers.push(*source);
            }
        }
    }

    /// Sends the answers.
    pub(super) fn send(&mut self, socket: &UdpSocket) -> SendOutcome {
        let mut sent = SendOutcome::default();
        let mut next = 0;
        while next < self.receivers.len() {
            let (replies, receivers) = (&self.replies[next..self.receivers.len()], &self.receivers[next..]);
            match self.system.send(socket, replies, receivers) {
                // Nothing sent is no failure by itself, but nothing can be expected of the next call either.
                Ok(0) | Err(_) => {
                    sent.failures += 1;
                    next += 1;
                }
                Ok(count) => {
                    sent.bytes += replies[..count].iter().map(Vec::len).sum::<usize>();
                    next += count;
                }
            }
        }
        sent
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io::{self, IoSlice, IoSliceMut};
    use std::net::{SocketAddr, UdpSocket};
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg};

    use super::{LONGEST, MOST};

    /// Room for what the system wants to be told.
    pub(super) struct Calls {
        coming: MultiHeaders<SockaddrStorage>,
        going: MultiHeaders<SockaddrStorage>,
    }

    impl Calls {
        pub(super) fn new() -> Self {
            Calls { coming: MultiHeaders::preallocate(MOST, None), going: MultiHeaders::preallocate(MOST, None) }
        }

        pub(super) fn receive(
            &mut self,
            socket: &UdpSocket,
            packets: &mut [u8],
            arrived: &mut Vec<(usize, SocketAddr)>,
        ) -> io::Result<()> {
            let mut rooms: Vec<[IoSliceMut<'_>; 1]> =
                packets.chunks_mut(LONGEST).map(|room| [IoSliceMut::new(room)]).collect();
            let taken = recvmmsg(socket.as_raw_fd(), &mut self.coming, &mut rooms, MsgFlags::MSG_WAITFORONE, None)?;
            arrived.extend(taken.map(|packet| (packet.bytes, packet.address.and_then(address).unwrap_or(NOBODY))));
            Ok(())
        }

        /// Gives how many were sent; the one behind them was not taken.
        pub(super) fn send(
            &mut self,
            socket: &UdpSocket,
            replies: &[Vec<u8>],
            receivers: &[SocketAddr],
        ) -> io::Result<usize> {
            let texts: Vec<[IoSlice<'_>; 1]> = replies.iter().map(|reply| [IoSlice::new(reply)]).collect();
            let receivers: Vec<Option<SockaddrStorage>> = receivers.iter().map(|one| Some((*one).into())).collect();
            let flags = MsgFlags::empty();
            Ok(sendmmsg(socket.as_raw_fd(), &mut self.going, &texts, &receivers, [], flags)?.count())
        }
    }

    /// A packet without a source cannot be answered: sending there fails.
    const NOBODY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);

    fn address(storage: SockaddrStorage) -> Option<SocketAddr> {
        let v4 = storage.as_sockaddr_in().map(|one| SocketAddr::V4((*one).into()));
        v4.or_else(|| storage.as_sockaddr_in6().map(|one| SocketAddr::V6((*one).into())))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;
    use std::net::{SocketAddr, UdpSocket};

    use super::LONGEST;

    pub(super) struct Calls;

    impl Calls {
        pub(super) fn new() -> Self {
            Calls
        }

        pub(super) fn receive(
            &mut self,
            socket: &UdpSocket,
            packets: &mut [u8],
            arrived: &mut Vec<(usize, SocketAddr)>,
        ) -> io::Result<()> {
            arrived.push(socket.recv_from(&mut packets[..LONGEST])?);
            Ok(())
        }

        pub(super) fn send(
            &mut self,
            socket: &UdpSocket,
            replies: &[Vec<u8>],
            receivers: &[SocketAddr],
        ) -> io::Result<usize> {
            socket.send_to(&replies[0], receivers[0]).map(|_| 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes packets until so many came; answers those that do not begin with `-` with themselves, twice.
    fn echo(batch: &mut Batch, socket: &UdpSocket, packets: usize) -> (usize, SendOutcome) {
        let (mut seen, mut handfuls, mut all) = (0, 0, SendOutcome::default());
        while seen < packets {
            batch.receive(socket).unwrap();
            batch.answer(|packet, _, reply| {
                seen += 1;
                reply.clear();
                reply.extend([packet, packet].concat());
                !packet.starts_with(b"-")
            });
            let sent = batch.send(socket);
            handfuls += 1;
            (all.bytes, all.failures) = (all.bytes + sent.bytes, all.failures + sent.failures);
        }
        (handfuls, all)
    }

    fn pair(address: &str) -> (UdpSocket, UdpSocket) {
        let bind = || UdpSocket::bind(address).unwrap();
        let (server, client) = (bind(), bind());
        client.connect(server.local_addr().unwrap()).unwrap();
        client.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
        (server, client)
    }

    #[test]
    fn each_packet_has_its_own_answer() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (server, client) = pair(address);
            let mut batch = Batch::new();
            let packets: Vec<String> = (0..100).map(|n| if n % 7 == 3 { "-".into() } else { format!("{n}") }).collect();
            packets.iter().for_each(|packet| _ = client.send(packet.as_bytes()).unwrap());
            let (handfuls, sent) = echo(&mut batch, &server, packets.len());
            assert!(handfuls >= packets.len().div_ceil(MOST), "{handfuls}");
            let wanted: Vec<String> = packets.iter().filter(|packet| **packet != "-").map(|p| p.repeat(2)).collect();
            assert_eq!(sent, SendOutcome { bytes: wanted.iter().map(String::len).sum(), failures: 0 });
            for wanted in wanted {
                let mut room = [0; 16];
                let length = client.recv(&mut room).unwrap();
                assert_eq!(room[..length], *wanted.as_bytes());
            }
        }
    }

    #[test]
    fn an_answer_that_cannot_be_sent_costs_no_other() {
        let (server, client) = pair("127.0.0.1:0");
        let mut batch = Batch::new();
        ["1", "2", "3"].iter().for_each(|packet| _ = client.send(packet.as_bytes()).unwrap());
        let mut seen = 0;
        while seen < 3 {
            batch.receive(&server).unwrap();
            batch.answer(|packet, _, reply| {
                seen += 1;
                // No datagram is as long as this.
                *reply = if packet == b"2" { vec![0; 70_000] } else { packet.to_vec() };
                true
            });
            let sent = batch.send(&server);
            assert!(sent.failures <= 1 && sent.bytes <= 2, "{sent:?}");
        }
        let mut room = [0; 16];
        let mut heard = || client.recv(&mut room).map(|length| room[..length].to_vec());
        assert_eq!((heard().unwrap(), heard().unwrap()), (b"1".to_vec(), b"3".to_vec()));
    }

    #[test]
    fn nobody_there_is_an_idle_error() {
        let (server, _) = pair("127.0.0.1:0");
        server.set_read_timeout(Some(std::time::Duration::from_millis(5))).unwrap();
        let error = Batch::new().receive(&server).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error:?}");
    }
}
