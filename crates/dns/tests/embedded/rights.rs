//! Who may do what: transfers for those who know a key, updates and announcements for nobody.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use domain::base::iana::{Class, Opcode, Rcode, Rtype};
use domain::base::rdata::UnknownRecordData;
use domain::base::{Message, MessageBuilder, ParsedName, Ttl};
use domain::rdata::AllRecordData;
use domain::rdata::tsig::Time48;
use domain::tsig::{self, ClientSequence, ClientTransaction, KeyName, ValidationError};
use gatepost_dns::embedded::{Data, DnsServer, ServerConfig, Soa, kind};
use gatepost_testkit::{Failed, Trial};

use super::ask::{exchange_tcp, receive, receive_tcp, send_tcp, socket};
use super::secondaries::key;
use super::zones::{a, name, record, set, spec};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("rights::without a key nothing is transferred or changed", nothing_without_a_key),
        Trial::test("rights::an allowed address may transfer", allowed_address),
        Trial::test("rights::a whole zone, signed in every message", whole_zone),
        Trial::test("rights::wrong keys are told apart", wrong_keys),
        Trial::test("rights::a signed question gets a signed answer", signed_question),
        Trial::test("rights::a current copy gets one record", current_copy),
    ]
}

type TsigKey = Arc<tsig::Key>;

fn server(config: impl FnOnce(&mut ServerConfig)) -> DnsServer {
    let mut records: Vec<_> =
        (0..2000u32).map(|n| a(&format!("h{n}.rights.test"), [10, 0, (n >> 8) as u8, n as u8])).collect();
    records.push(record("long.rights.test", Data::text("x".repeat(40_000))));
    let mut settings = ServerConfig::new("127.0.0.1:0".parse().unwrap());
    settings.zones = set(&[spec("rights.test", 7, records)]);
    settings.keys = vec![key()];
    config(&mut settings);
    DnsServer::start(settings).unwrap()
}

fn tsig_key(name: &str, secret: &[u8]) -> TsigKey {
    let name: KeyName = name.parse().unwrap();
    Arc::new(tsig::Key::new(tsig::Algorithm::Sha256, secret, name, None, None).unwrap())
}

fn right_key() -> TsigKey {
    tsig_key("gatepost", b"secret of the test bed, 32 bytes")
}

type Builder = domain::base::message_builder::AdditionalBuilder<Vec<u8>>;

/// A request about the zone.
fn request(opcode: Opcode, kind: u16) -> Builder {
    let mut builder = MessageBuilder::new_vec();
    builder.header_mut().set_id(99);
    builder.header_mut().set_opcode(opcode);
    let mut builder = builder.question();
    let zone: domain::base::Name<Vec<u8>> = "rights.test".parse().unwrap();
    builder.push((zone, Rtype::from_int(kind))).unwrap();
    builder.additional()
}

/// A request for what came after a serial.
fn ixfr(serial: u32) -> Builder {
    let mut builder = request(Opcode::QUERY, kind::IXFR).authority();
    let zone: domain::base::Name<Vec<u8>> = "rights.test".parse().unwrap();
    let soa = Soa::new(name("ns1.rights.test"), name("x.rights.test"), serial);
    let mut data = [soa.primary.as_wire(), soa.mailbox.as_wire()].concat();
    for number in [serial, 1, 1, 1, 1] {
        data.extend(number.to_be_bytes());
    }
    let data = UnknownRecordData::from_octets(Rtype::SOA, data).unwrap();
    builder.push((zone, Class::IN, Ttl::from_secs(0), data)).unwrap();
    builder.additional()
}

fn code(reply: &[u8]) -> Rcode {
    Message::from_octets(reply).unwrap().header().rcode()
}

fn udp(server: SocketAddr, packet: &[u8]) -> Vec<u8> {
    let socket = socket();
    socket.send_to(packet, server).unwrap();
    receive(&socket, 99).expect("an answer")
}

fn nothing_without_a_key() -> Result<(), Failed> {
    let server = server(|_| {});
    let requests = [
        (Opcode::QUERY, kind::AXFR),
        (Opcode::QUERY, kind::IXFR),
        (Opcode::UPDATE, kind::SOA),
        (Opcode::NOTIFY, kind::SOA),
    ];
    for (opcode, kind) in requests {
        let packet = request(opcode, kind).finish();
        assert_eq!(code(&udp(server.address(), &packet)), Rcode::REFUSED, "UDP {opcode} {kind}");
        let reply = exchange_tcp(server.address(), &packet).expect("an answer");
        assert_eq!(code(&reply), Rcode::REFUSED, "TCP {opcode} {kind}");
    }
    let mut signed = request(Opcode::UPDATE, kind::SOA);
    let check = ClientTransaction::request(right_key(), &mut signed, Time48::now()).unwrap();
    let mut reply = Message::from_octets(exchange_tcp(server.address(), &signed.finish()).unwrap()).unwrap();
    check.answer(&mut reply, Time48::now()).unwrap();
    assert_eq!(reply.header().rcode(), Rcode::REFUSED, "an update, however well signed");
    assert_eq!(server.metrics().transfers, 0);
    Ok(())
}

fn allowed_address() -> Result<(), Failed> {
    let server = server(|config| config.may_transfer = vec!["127.0.0.0/8".parse().unwrap()]);
    let (records, _) = transfer(server.address(), request(Opcode::QUERY, kind::AXFR), None);
    assert_eq!(records.len(), 1 + server.zones().zones()[0].count());
    Ok(())
}

fn whole_zone() -> Result<(), Failed> {
    let server = server(|_| {});
    let (records, messages) = transfer(server.address(), request(Opcode::QUERY, kind::AXFR), Some(right_key()));
    assert!(messages > 3, "{messages}");
    assert_eq!(records.len(), 1 + server.zones().zones()[0].count());
    assert_eq!(records.first(), records.last());
    assert!(records.iter().any(|line| line.starts_with("h1999.rights.test 60 A 10.0.7.207")), "{:?}", &records[..3]);
    Ok(())
}

/// All records of a transfer, as text, and the number of messages.
fn transfer(server: SocketAddr, mut request: Builder, key: Option<TsigKey>) -> (Vec<String>, usize) {
    let mut check = key.map(|key| ClientSequence::request(key, &mut request, Time48::now()).unwrap());
    let mut stream = TcpStream::connect(server).unwrap();
    send_tcp(&mut stream, &request.finish()).unwrap();
    let mut lines: Vec<String> = Vec::new();
    let mut messages = 0;
    while lines.len() < 2 || lines.first() != lines.last() {
        let mut message = Message::from_octets(receive_tcp(&mut stream).expect("a message")).unwrap();
        if let Some(check) = &mut check {
            check.answer(&mut message, Time48::now()).unwrap();
        }
        assert_eq!(message.header().rcode(), Rcode::NOERROR);
        for record in message.answer().unwrap() {
            let record = record.unwrap().into_record::<AllRecordData<_, ParsedName<_>>>().unwrap().unwrap();
            lines.push(format!("{} {} {} {}", record.owner(), record.ttl().as_secs(), record.rtype(), record.data()));
        }
        messages += 1;
    }
    if let Some(check) = check {
        check.done().unwrap();
    }
    (lines, messages)
}

fn wrong_keys() -> Result<(), Failed> {
    let server = server(|_| {});
    let long_ago = Time48::from_u64(1_000_000_000);
    let wrong = [
        (tsig_key("gatepost", b"another secret"), Time48::now(), ValidationError::ServerBadSig),
        (tsig_key("stranger", b"another secret"), Time48::now(), ValidationError::ServerBadKey),
    ];
    for (key, now, expected) in wrong {
        let mut packet = request(Opcode::QUERY, kind::AXFR);
        let check = ClientTransaction::request(key, &mut packet, now).unwrap();
        let reply = exchange_tcp(server.address(), &packet.finish()).unwrap();
        assert_eq!(code(&reply), Rcode::NOTAUTH);
        let said = check.answer(&mut Message::from_octets(reply).unwrap(), now);
        assert_eq!(format!("{said:?}"), format!("{:?}", Err::<(), _>(expected)));
    }
    let mut packet = request(Opcode::QUERY, kind::AXFR);
    let check = ClientTransaction::request(right_key(), &mut packet, long_ago).unwrap();
    let mut reply = Message::from_octets(exchange_tcp(server.address(), &packet.finish()).unwrap()).unwrap();
    let said = check.answer(&mut reply, long_ago);
    assert!(matches!(said, Err(ValidationError::ServerBadTime { .. })), "{said:?}");
    Ok(())
}

fn signed_question() -> Result<(), Failed> {
    let server = server(|_| {});
    for kind in [kind::SOA, kind::NS, kind::A] {
        let mut packet = request(Opcode::QUERY, kind);
        let check = ClientTransaction::request(right_key(), &mut packet, Time48::now()).unwrap();
        let packet = packet.finish();
        for reply in [udp(server.address(), &packet), exchange_tcp(server.address(), &packet).unwrap()] {
            let mut reply = Message::from_octets(reply).unwrap();
            check.answer(&mut reply, Time48::now()).unwrap();
            assert_eq!((reply.header().rcode(), reply.header().aa()), (Rcode::NOERROR, true));
        }
    }
    Ok(())
}

fn current_copy() -> Result<(), Failed> {
    let server = server(|config| config.may_transfer = vec!["127.0.0.1".parse().unwrap()]);
    let count = |reply: &[u8]| Message::from_octets(reply).unwrap().header_counts().ancount();
    for serial in [7, 8] {
        assert_eq!(count(&exchange_tcp(server.address(), &ixfr(serial).finish()).unwrap()), 1, "{serial}");
    }
    assert_eq!(count(&udp(server.address(), &ixfr(3).finish())), 1, "too much for UDP");
    let (records, _) = transfer(server.address(), ixfr(3), Some(right_key()));
    assert_eq!(records.len(), 1 + server.zones().zones()[0].count());
    Ok(())
}
