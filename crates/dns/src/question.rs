//! One question to one server, over UDP and over TCP where the answer does not fit.
//!
//! An answer counts only if it is to this question. Nothing here follows aliases, tries twice or keeps anything.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use domain::base::MessageBuilder;
use domain::base::iana::{Class, Rtype};
use domain::base::message::Message;
use domain::base::name::ToName;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::provider::data::WireName;

/// What we say that we take over UDP; what passes every network in one piece.
const PAYLOAD: u16 = 1232;

/// A question, ready to be sent.
pub(crate) struct PreparedQuery<'a> {
    pub(crate) name: &'a WireName,
    pub(crate) kind: Rtype,
    id: u16,
    bytes: Vec<u8>,
}

impl<'a> PreparedQuery<'a> {
    /// The question for the records of a name; `recursive` asks a resolver to find them.
    pub(crate) fn new(name: &'a WireName, kind: Rtype, recursive: bool) -> Result<PreparedQuery<'a>, String> {
        let mut random = [0; 2];
        SystemRandom::new().fill(&mut random).map_err(|_| "the system has no random numbers")?;
        let id = u16::from_be_bytes(random);
        let mut builder = MessageBuilder::new_vec();
        builder.header_mut().set_id(id);
        builder.header_mut().set_rd(recursive);
        let mut builder = builder.question();
        builder.push((name, kind)).map_err(|error| error.to_string())?;
        let mut builder = builder.additional();
        let payload = |opt: &mut domain::base::message_builder::OptBuilder<'_, _>| {
            opt.set_udp_payload_size(PAYLOAD);
            Ok(())
        };
        builder.opt(payload).map_err(|error| error.to_string())?;
        Ok(PreparedQuery { name, kind, id, bytes: builder.finish() })
    }

    /// Asks a server, and waits for the answer in the form in which it is whole.
    pub(crate) async fn ask(&self, server: SocketAddr, patience: Duration) -> Result<Message<Vec<u8>>, String> {
        let late = |_| format!("no answer within {} s", patience.as_secs_f32());
        let answer = timeout(patience, self.over_udp(server)).await.map_err(late)??;
        if !answer.header().tc() {
            return Ok(answer);
        }
        timeout(patience, self.over_tcp(server)).await.map_err(late)?
    }

    async fn over_udp(&self, server: SocketAddr) -> Result<Message<Vec<u8>>, String> {
        let local: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let failed = |error: std::io::Error| error.to_string();
        let socket = UdpSocket::bind((local, 0)).await.map_err(failed)?;
        socket.connect(server).await.map_err(failed)?;
        socket.send(&self.bytes).await.map_err(failed)?;
        let mut buffer = vec![0; 65535];
        loop {
            let length = socket.recv(&mut buffer).await.map_err(failed)?;
            // Somebody else's packet is not the end of waiting.
            if let Some(answer) = self.matching(buffer[..length].to_vec()) {
                return Ok(answer);
            }
        }
    }

    async fn over_tcp(&self, server: SocketAddr) -> Result<Message<Vec<u8>>, String> {
        let failed = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(server).await.map_err(failed)?;
        let length = u16::try_from(self.bytes.len()).map_err(|error| error.to_string())?;
        stream.write_all(&[&length.to_be_bytes()[..], &self.bytes].concat()).await.map_err(failed)?;
        let length = stream.read_u16().await.map_err(failed)?;
        let mut bytes = vec![0; usize::from(length)];
        stream.read_exact(&mut bytes).await.map_err(failed)?;
        self.matching(bytes).ok_or_else(|| "the answer is to another question".to_owned())
    }

    fn matching(&self, bytes: Vec<u8>) -> Option<Message<Vec<u8>>> {
        let message = Message::from_octets(bytes).ok()?;
        let header = message.header();
        let question = message.sole_question().ok()?;
        let same =
            question.qname().name_eq(self.name) && question.qtype() == self.kind && question.qclass() == Class::IN;
        (header.qr() && header.id() == self.id && same).then_some(message)
    }
}
