//! What must hold for any packet that reaches the embedded DNS server. Shared by the fuzz target and an ordinary test.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::OnceLock;

use gatepost_dns::embedded::{
    Act, Arrival, Data, Key, Name, Record, Responder, ServerConfig, Soa, Transport, TsigAlgorithm, Zone, ZoneSet,
    ZoneSpec,
};

/// Answers a packet: nothing panics, an answer is well-formed and not too large, belongs to its question, is the same every
/// time, and gets no answer itself.
pub(crate) fn query(bytes: &[u8]) {
    for transport in [Transport::Udp, Transport::Tcp] {
        for source in [Ipv4Addr::LOCALHOST, Ipv4Addr::new(192, 0, 2, 1)] {
            let arrival = Arrival { source: source.into(), transport, now: 1_700_000_000 };
            one(bytes, arrival);
        }
    }
}

fn one(bytes: &[u8], arrival: Arrival) {
    let (responder, zones) = desk();
    let mut reply = Vec::new();
    match responder.respond(zones, bytes, arrival, &mut reply) {
        Act::Silence => {}
        Act::Reply(_) => {
            is_answer_to(bytes, &reply, arrival.transport);
            let mut again = Vec::new();
            assert!(matches!(responder.respond(zones, bytes, arrival, &mut again), Act::Reply(_)));
            assert_eq!(reply, again, "another answer to the same packet");
            assert!(matches!(responder.respond(zones, &reply, arrival, &mut again), Act::Silence), "it answers itself");
        }
        Act::Transfer(mut transfer) => {
            assert!(arrival.transport == Transport::Tcp, "a zone over UDP");
            assert!(arrival.source == IpAddr::from(Ipv4Addr::LOCALHOST), "a zone for a stranger");
            while let Some(message) = transfer.next_message(arrival.now) {
                is_answer_to(bytes, &message, arrival.transport);
            }
            assert!(transfer.is_whole());
        }
    }
}

fn is_answer_to(request: &[u8], reply: &[u8], transport: Transport) {
    let largest = if transport == Transport::Udp { 1232 } else { 65_535 };
    assert!((12..=largest).contains(&reply.len()), "{} bytes", reply.len());
    assert_eq!(reply[..2], request[..2], "another id");
    assert_eq!(reply[2] & 0xf8, 0x80 | request[2] & 0x78, "no answer, or another operation");
    let counts = [4, 6, 8, 10].map(|at| u16::from_be_bytes([reply[at], reply[at + 1]]));
    let mut at = 12;
    for _ in 0..counts[0] {
        at = after_name(reply, at) + 4;
    }
    for _ in 0..counts[1..].iter().map(|count| u32::from(*count)).sum() {
        at = after_name(reply, at) + 10;
        at += usize::from(u16::from_be_bytes([reply[at - 2], reply[at - 1]]));
    }
    assert_eq!(at, reply.len(), "sections do not fill the message");
}

/// Where a name ends; a pointer leads back into the message and to the end of a name.
fn after_name(message: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        match message[at] {
            0 => return at + 1,
            length @ 1..=63 => at += 1 + usize::from(length),
            high => {
                let target = usize::from(u16::from_be_bytes([high & 0x3f, message[at + 1]]));
                assert!(high >= 0xc0 && (12..at).contains(&target), "a pointer to nowhere");
                after_name(message, target);
                return at + 2;
            }
        }
    }
}

fn desk() -> &'static (Responder, ZoneSet) {
    static DESK: OnceLock<(Responder, ZoneSet)> = OnceLock::new();
    DESK.get_or_init(|| {
        let mut config = ServerConfig::new("127.0.0.1:0".parse().expect("an address"));
        config.cookie_secret = Some([7; 16]);
        config.may_transfer = vec![IpAddr::from(Ipv4Addr::LOCALHOST).into()];
        config.keys = vec![Key::new("key", TsigAlgorithm::Sha256, "c2VjcmV0").expect("a key")];
        (Responder::new(&config).expect("a responder"), zones())
    })
}

fn zones() -> ZoneSet {
    let name = |text: &str| Name::parse(text).expect("a name");
    let records = [
        ("www.fuzz.test", Data::A([192, 0, 2, 1].into())),
        ("*.fuzz.test", Data::Cname(name("www.fuzz.test"))),
        ("a.b.c.fuzz.test", Data::Aaaa(1.into())),
        ("loop.fuzz.test", Data::Cname(name("x.loop2.fuzz.test"))),
        ("*.loop2.fuzz.test", Data::Cname(name("loop.fuzz.test"))),
        ("out.fuzz.test", Data::Cname(name("elsewhere.invalid"))),
        ("mail.fuzz.test", Data::Mx(1, name("www.fuzz.test"))),
        ("big.fuzz.test", Data::text(vec![b'x'; 3000])),
        ("sub.fuzz.test", Data::Ns(name("ns.sub.fuzz.test"))),
        ("ns.sub.fuzz.test", Data::A([192, 0, 2, 2].into())),
    ];
    let records = records.into_iter().map(|(owner, data)| Record::new(owner, 60, data).expect("a record")).collect();
    let soa = Soa::new(name("ns.fuzz.test"), name("root.fuzz.test"), 1);
    let spec = ZoneSpec { name: name("fuzz.test"), soa, servers: vec![name("ns.test")], servers_ttl: 60, records };
    ZoneSet::new([Zone::build(&spec).expect("a zone")]).expect("zones")
}
