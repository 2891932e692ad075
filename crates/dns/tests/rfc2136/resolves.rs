//! Names resolved through a real server, refreshed by TTL, and kept when it is gone.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use gatepost_core::plan::Verb;
use gatepost_core::publication::RecordType;
use gatepost_dns::resolve::{Resolution, Resolver, ResolverConfig};

use crate::bed::{Bed, Scenario, all_ok};

pub(crate) const ALL: &[Scenario] = &[
    Scenario::new("resolves_chains_and_long_answers", |bed| Box::pin(resolves(bed))),
    Scenario {
        own_server: true,
        ..Scenario::new("resolved_addresses_outlive_the_server", |bed| Box::pin(outlives(bed)))
    },
];

fn resolver(servers: Vec<SocketAddr>) -> Resolver {
    Resolver::new(ResolverConfig { servers, timeout: Duration::from_secs(15), rounds: 1, ..ResolverConfig::default() })
}

async fn resolves(bed: Bed<'_>) {
    let six: Vec<String> = (0..90).map(|n| format!("2001:db8::{n:x}")).collect();
    let six: Vec<&str> = six.iter().map(String::as_str).collect();
    let targets = [bed.name("middle"), bed.name("edge")];
    let changes = [
        bed.change("alias", RecordType::Cname, None, Some(&[&targets[0]])),
        bed.change("middle", RecordType::Cname, None, Some(&[&targets[1]])),
        bed.change("edge", RecordType::A, None, Some(&["192.0.2.2", "192.0.2.1"])),
        bed.change("edge", RecordType::Aaaa, None, Some(&six[..1])),
        bed.change("many", RecordType::Aaaa, None, Some(&six)),
    ];
    all_ok(&bed.write(&changes.map(|change| bed.step(Verb::Create, vec![change], Vec::new()))).await);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let resolver = resolver(vec![silent.local_addr().unwrap(), bed.server.address]);
    let names = ["alias", "many", "hand", "missing", "long"].map(|label| bed.name(label).into());
    let found = resolver.resolve(&names.iter().cloned().collect(), Instant::now()).await;
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    let known = |addresses| Resolution::Known { addresses, stale: None };
    assert_eq!(found[&names[0]], known(vec![address("192.0.2.1"), address("192.0.2.2"), address("2001:db8::")]));
    assert!(matches!(&found[&names[1]], Resolution::Known { addresses, .. } if addresses.len() == 64), "{found:?}");
    assert_eq!(found[&names[2]], known(vec![address("192.0.2.7"), address("192.0.2.8")]));
    assert!(matches!(&found[&names[3]], Resolution::Unknown(why) if why.contains("NXDOMAIN")), "{found:?}");
    assert!(matches!(&found[&names[4]], Resolution::Unknown(why) if why.contains("no addresses")), "{found:?}");
}

async fn outlives(bed: Bed<'_>) {
    let resolver = resolver(vec![bed.server.address]);
    let names = [bed.name("hand").into()].into();
    let start = Instant::now();
    let first = resolver.resolve(&names, start).await;
    bed.server.kill();
    assert_eq!(resolver.resolve(&names, start + Duration::from_secs(119)).await, first, "not due yet");
    let later = resolver.resolve(&names, start + Duration::from_secs(121)).await;
    let addresses: Vec<IpAddr> = ["192.0.2.7", "192.0.2.8"].map(|text| text.parse().unwrap()).into();
    let name = bed.name("hand");
    assert!(
        matches!(&later[&*name], Resolution::Known { addresses: kept, stale: Some(_) } if *kept == addresses),
        "{later:?}"
    );
    assert!(resolver.resolve(&Default::default(), start).await.is_empty());
    assert_eq!(resolver.next_due(), None);
}
