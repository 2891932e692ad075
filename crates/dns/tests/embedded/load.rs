//! Swaps under load, restarts, and addresses that are taken.

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use gatepost_dns::embedded::{Data, DnsServer, ServerConfig, ZoneSet, state};
use gatepost_testkit::servers::{Scratch, free_address};
use gatepost_testkit::{Failed, Trial};

use super::ask::{Answer, Question, receive_tcp, socket};
use super::zones::{a, name, record, set, spec};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("load::100 swaps under load, no wrong answer", swaps),
        Trial::test("load::the last good zones are served after a restart", restart),
        Trial::test("load::damaged state does not stop the server", damaged_state),
        Trial::test("load::a full disk does not stop the server", unwritable_state),
        Trial::test("load::a taken address is named", taken_address),
        Trial::test("load::a stopped server frees its address", freed_address),
        Trial::test("load::several addresses, one server", several_addresses),
        Trial::test("load::questions on one connection, whole and in pieces", one_connection),
    ]
}

fn config(zones: ZoneSet) -> ServerConfig {
    ServerConfig { zones, ..ServerConfig::new("127.0.0.1:0".parse().unwrap()) }
}

/// What stays the same in every version, between names that come and go.
fn version(number: u32) -> ZoneSet {
    let mut records: Vec<_> =
        (0..500).map(|n| a(&format!("n{}.load.test", n * (1 + number % 3)), [10, 0, 0, 1])).collect();
    records.push(a("www.load.test", [192, 0, 2, (number % 250) as u8]));
    records.push(record("*.wild.load.test", Data::Cname(name("www.load.test"))));
    set(&[spec("load.test", 1, records)])
}

fn swaps() -> Result<(), Failed> {
    let server = DnsServer::start(config(version(0)))?;
    let (done, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let wrong = thread::scope(|scope| {
        let asking: Vec<_> = (0..3).map(|_| scope.spawn(|| ask_until(&done, &asked, server.address()))).collect();
        let mut serial = 1;
        for number in 1..=100 {
            let swapped = server.swap(version(number));
            serial += 1;
            assert_eq!(swapped.changed, [(name("load.test"), serial)]);
            // A fixed time: questions are to be asked between two versions, as well as while they change.
            thread::sleep(Duration::from_millis(5));
        }
        done.store(true, Ordering::Relaxed);
        asking.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(wrong.is_empty(), "{} wrong: {:?}", wrong.len(), wrong.first());
    assert!(asked.load(Ordering::Relaxed) > 300, "{asked:?} questions are no load");
    assert_eq!(server.metrics().nxdomain, 0);
    Ok(())
}

fn ask_until(done: &AtomicBool, asked: &AtomicUsize, server: SocketAddr) -> Vec<String> {
    let client = socket();
    let mut wrong = Vec::new();
    while !done.load(Ordering::Relaxed) {
        for (owner, count) in [("www.load.test", 1), ("x.wild.load.test", 2), ("n0.load.test", 1)] {
            let said = Question::of(owner, 1).ask(&client, server);
            if said.code != 0 || said.answer.len() != count {
                wrong.push(format!("{owner}: {said:?}"));
            }
            asked.fetch_add(1, Ordering::Relaxed);
        }
    }
    wrong
}

fn restart() -> Result<(), Failed> {
    let scratch = Scratch::new("restart")?;
    let mut settings = config(version(1));
    settings.state_directory = Some(scratch.path().join("state"));
    let server = DnsServer::start(settings.clone())?;
    assert!(!server.restored().unwrap(), "there was nothing to restore");
    let swapped = server.swap(version(2));
    swapped.saved?;
    drop(server);
    settings.zones = ZoneSet::default();
    let server = DnsServer::start(settings.clone())?;
    let said = Question::of("www.load.test", 1).ask(&socket(), server.address());
    assert!(server.restored().unwrap());
    assert_eq!(said.answer, ["www.load.test. 60 a 192.0.2.2"]);
    assert_eq!(server.zones().zones()[0].soa().serial, 2);
    assert_eq!(server.swap(version(3)).changed, [(name("load.test"), 3)], "serials go on where they were");
    drop(server);
    settings.zones = version(4);
    assert_eq!(DnsServer::start(settings)?.zones().zones()[0].soa().serial, 4, "also with zones given at the start");
    Ok(())
}

fn damaged_state() -> Result<(), Failed> {
    let scratch = Scratch::new("damaged")?;
    state::save(scratch.path(), &version(1))?;
    let file = scratch.path().join("zones.json");
    let text = std::fs::read(&file)?;
    std::fs::write(&file, &text[..text.len() - 10])?;
    let mut settings = config(version(5));
    settings.state_directory = Some(scratch.path().to_owned());
    let server = DnsServer::start(settings)?;
    let error = server.restored().unwrap_err().to_string();
    assert!(error.contains("zones.json") && error.contains("damaged"), "{error}");
    assert_eq!(Question::of("www.load.test", 1).ask(&socket(), server.address()).answer.len(), 1);
    server.swap(version(6)).saved?;
    std::fs::remove_file(&file)?;
    server.swap(version(6)).saved?;
    assert!(!file.exists(), "nothing changed, so nothing is written");
    server.swap(version(7)).saved?;
    assert!(state::load(scratch.path())?.is_some(), "the next good zones replace it");
    Ok(())
}

fn unwritable_state() -> Result<(), Failed> {
    let mut settings = config(version(1));
    settings.state_directory = Some("/dev/null/state".into());
    let server = DnsServer::start(settings)?;
    let saved = server.swap(version(2)).saved.unwrap_err();
    assert!(saved.to_string().contains("/dev/null/state"), "{saved}");
    let said = Question::of("www.load.test", 1).ask(&socket(), server.address());
    assert_eq!(said.answer, ["www.load.test. 60 a 192.0.2.2"]);
    Ok(())
}

fn taken_address() -> Result<(), Failed> {
    let ours = DnsServer::start(config(version(1)))?;
    let tcp = TcpListener::bind("127.0.0.1:0")?;
    let udp = UdpSocket::bind(free_address()?)?;
    let taken = [(ours.address(), "TCP"), (tcp.local_addr()?, "TCP"), (udp.local_addr()?, "UDP")];
    for (address, transport) in taken {
        let error = DnsServer::start(ServerConfig::new(address)).err().expect("two on one address");
        let text = error.to_string();
        assert!(text.contains(&address.to_string()) && text.contains(transport) && text.contains("in use"), "{text}");
        assert!(error.is_transient());
    }
    assert!(DnsServer::start(ServerConfig::new("192.0.2.1:0".parse()?)).is_err(), "an address of somebody else");
    Ok(())
}

fn freed_address() -> Result<(), Failed> {
    let server = DnsServer::start(config(version(1)))?;
    let address = server.address();
    Question::of("www.load.test", 1).ask_tcp(address);
    server.stop();
    let again = DnsServer::start(ServerConfig { zones: version(2), ..ServerConfig::new(address) })?;
    assert_eq!(Question::of("www.load.test", 1).ask(&socket(), again.address()).answer.len(), 1);
    Ok(())
}

fn several_addresses() -> Result<(), Failed> {
    let mut settings = config(version(1));
    settings.listen = vec!["127.0.0.1:0".parse()?, "127.0.0.2:0".parse()?];
    // Not every machine has IPv6.
    if UdpSocket::bind("[::1]:0").is_ok() {
        settings.listen.push("[::1]:0".parse()?);
    }
    let server = DnsServer::start(settings.clone())?;
    assert_eq!(server.addresses().len(), settings.listen.len());
    for address in server.addresses() {
        let client = UdpSocket::bind(SocketAddr::new(address.ip(), 0))?;
        client.set_read_timeout(Some(Duration::from_secs(5)))?;
        assert_eq!(Question::of("www.load.test", 1).ask(&client, *address).answer.len(), 1);
        assert_eq!(Question::of("www.load.test", 1).ask_tcp(*address).answer.len(), 1);
    }
    Ok(())
}

fn one_connection() -> Result<(), Failed> {
    let server = DnsServer::start(config(version(1)))?;
    let mut stream = TcpStream::connect(server.address())?;
    let packets: Vec<Vec<u8>> =
        (0..50).map(|id| Question { id, ..Question::of("www.load.test", 1) }.packet()).collect();
    let bytes: Vec<u8> = packets.iter().flat_map(|one| [&(one.len() as u16).to_be_bytes()[..], one].concat()).collect();
    for piece in bytes.chunks(37) {
        std::io::Write::write_all(&mut stream, piece)?;
    }
    for packet in &packets {
        let reply = receive_tcp(&mut stream).expect("an answer");
        assert_eq!(reply[..2], packet[..2], "answers come in the order of questions");
        assert_eq!(Answer::read(&reply).answer.len(), 1);
    }
    assert_eq!(server.metrics().tcp_connections, 1);
    Ok(())
}
