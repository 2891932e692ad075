//! Asks servers and reads what they say, in a form that can be compared.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use domain::base::message::RecordSection;
use domain::base::{Message, ParsedName};
use domain::rdata::AllRecordData;
use gatepost_dns::embedded::Name;

/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A question.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) id: u16,
    /// The name in wire format, in any case.
    pub(crate) name: Vec<u8>,
    pub(crate) kind: u16,
    pub(crate) recursion: bool,
    /// The payload that EDNS offers.
    pub(crate) edns: Option<u16>,
}

/// An answer: code, flags, and sections sorted.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) code: u8,
    pub(crate) flags: String,
    pub(crate) answer: Vec<String>,
    pub(crate) authority: Vec<String>,
}

impl Question {
    pub(crate) fn of(name: &str, kind: u16) -> Question {
        let name = Name::parse(name).unwrap().as_wire().to_vec();
        Question { id: 4711, name, kind, recursion: false, edns: Some(1232) }
    }

    /// The question as bytes of a message.
    pub(crate) fn packet(&self) -> Vec<u8> {
        let mut packet = self.id.to_be_bytes().to_vec();
        packet.extend([u8::from(self.recursion), 0, 0, 1, 0, 0, 0, 0, 0, u8::from(self.edns.is_some())]);
        packet.extend(&self.name);
        packet.extend(self.kind.to_be_bytes());
        packet.extend([0, 1]);
        if let Some(payload) = self.edns {
            packet.extend([0, 0, 41]);
            packet.extend(payload.to_be_bytes());
            packet.extend([0; 6]);
        }
        packet
    }

    /// Asks over UDP, a few times if nothing comes.
    pub(crate) fn ask(&self, socket: &UdpSocket, server: SocketAddr) -> Answer {
        let packet = self.packet();
        for _ in 0..4 {
            socket.send_to(&packet, server).unwrap();
            if let Some(reply) = receive(socket, self.id) {
                return Answer::read(&reply);
            }
        }
        panic!("{server} does not answer {self}");
    }

    /// Asks over a TCP connection of its own.
    pub(crate) fn ask_tcp(&self, server: SocketAddr) -> Answer {
        Answer::read(&exchange_tcp(server, &self.packet()).unwrap_or_else(|| panic!("{server} does not answer {self}")))
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = domain::base::Name::from_octets(&self.name).unwrap();
        write!(f, "{name} TYPE{} edns={:?}", self.kind, self.edns)
    }
}

impl Answer {
    pub(crate) fn read(bytes: &[u8]) -> Answer {
        let message = Message::from_octets(bytes).unwrap();
        let header = message.header();
        let named =
            [("aa", header.aa()), ("tc", header.tc()), ("rd", header.rd()), ("ra", header.ra()), ("ad", header.ad())];
        let set: Vec<_> = named.iter().filter(|(_, set)| *set).map(|(name, _)| *name).collect();
        Answer {
            code: header.rcode().to_int(),
            flags: set.join(" "),
            answer: lines(message.answer().unwrap()),
            authority: lines(message.authority().unwrap()),
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let section = |lines: &[String]| lines.iter().map(|line| format!("\n    {line}")).collect::<String>();
        write!(f, "code {} [{}]", self.code, self.flags)?;
        write!(f, "\n  answer{}\n  authority{}", section(&self.answer), section(&self.authority))
    }
}

/// A socket of a client.
pub(crate) fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// The next packet with this id.
pub(crate) fn receive(socket: &UdpSocket, id: u16) -> Option<Vec<u8>> {
    let mut reply = vec![0; 65_535];
    loop {
        let length = socket.recv(&mut reply).ok()?;
        if reply[..2] == id.to_be_bytes() {
            reply.truncate(length);
            return Some(reply);
        }
    }
}

/// Sends a message and reads one; `None` if the server closes without a word.
pub(crate) fn exchange_tcp(server: SocketAddr, packet: &[u8]) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    send_tcp(&mut stream, packet)?;
    receive_tcp(&mut stream)
}

pub(crate) fn send_tcp(stream: &mut TcpStream, packet: &[u8]) -> Option<()> {
    let length = (packet.len() as u16).to_be_bytes();
    stream.write_all(&[&length[..], packet].concat()).ok()
}

pub(crate) fn receive_tcp(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut reply = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut reply).ok()?;
    Some(reply)
}

fn lines(section: RecordSection<'_, &[u8]>) -> Vec<String> {
    let line = |record: domain::base::ParsedRecord<'_, &[u8]>| {
        let record = record.to_any_record::<AllRecordData<&[u8], ParsedName<&[u8]>>>().unwrap();
        format!("{}. {} {} {}", record.owner(), record.ttl().as_secs(), record.rtype(), record.data()).to_lowercase()
    };
    let mut lines: Vec<_> = section.map(|record| line(record.unwrap())).collect();
    lines.sort();
    lines
}
