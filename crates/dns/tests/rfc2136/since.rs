//! What changed since a zone was read: the same as reading it again, or an error.

use gatepost_core::plan::follow::PartialPlanner;
use gatepost_core::plan::{Observed, PlanSettings, Registry, ZoneContent, ZoneState};
use gatepost_dns::provider::{ChangesSince, Provider};
use gatepost_testkit::servers::Kind;

use crate::bed::{Bed, Scenario};
use crate::proxy::{Fault, Proxy};

pub(crate) const ALL: &[Scenario] = &[
    Scenario { filling: 300, ..Scenario::new("changes_lead_to_what_a_read_finds", |bed| Box::pin(follows(bed))) },
    Scenario::new("nothing_changed_is_said_so", |bed| Box::pin(same(bed))),
    Scenario { filling: 300, ..Scenario::new("changes_cut_anywhere_fail", |bed| Box::pin(cut(bed))) },
    Scenario { filling: 300, ..Scenario::new("changes_with_a_changed_byte_fail", |bed| Box::pin(forged(bed))) },
    Scenario { filling: 300, ..Scenario::new("an_unknown_state_has_no_changes", |bed| Box::pin(unknown(bed))) },
];

fn observed(zone: &str, content: ZoneContent) -> Observed {
    let mut observed = Observed::default();
    observed.insert(zone, ZoneState::Read(content));
    observed
}

/// Takes in what became of a zone; says whether it came as changes.
async fn advance(bed: &Bed<'_>, follower: &mut PartialPlanner, settings: &PlanSettings) -> bool {
    let provider = bed.provider();
    let epoch = follower.epochs().next().unwrap().1.unwrap().clone();
    match provider.since(&bed.zone, &epoch).await.unwrap() {
        ChangesSince::Changed(changes) => {
            follower.advance(&bed.zone, changes).expect("the changes fit what was read");
            true
        }
        ChangesSince::Whole(content) => {
            *follower = PartialPlanner::new(observed(&bed.zone, content), settings);
            false
        }
        other => panic!("{other:?}"),
    }
}

async fn follows(bed: Bed<'_>) {
    let settings = PlanSettings::new(Registry::WholeZone);
    let mut follower = PartialPlanner::new(observed(&bed.zone, bed.read().await), &settings);
    let zone = &bed.zone;
    let rounds: [&[&str]; 5] = [
        &["update add new.Z 60 A 192.0.2.90", "update add new.Z 60 TXT \"a b\" \"c\""],
        &["update add hand.Z 120 A 192.0.2.9", "update delete hand.Z A 192.0.2.7"],
        // Another TTL, and one name that changes its type.
        &[
            "update delete new.Z A",
            "update add new.Z 30 A 192.0.2.90",
            "update delete mail.Z A",
            "update add mail.Z 60 CNAME hand.Z.",
        ],
        &["update delete *.wild.Z A", "update add *.wild.Z 60 AAAA 2001:db8::1", "update delete new.Z"],
        &["update add Z 300 TXT \"second\"", "update delete long.Z TXT"],
    ];
    let mut told = 0;
    for (number, lines) in rounds.iter().enumerate() {
        let lines: Vec<String> = lines.iter().map(|line| line.replace('Z', zone)).collect();
        // From the third round on two updates are told at once.
        bed.server.edit(zone, &lines.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        if number == 2 {
            continue;
        }
        told += usize::from(advance(&bed, &mut follower, &settings).await);
        assert_eq!(follower.clone().into_everything(), observed(zone, bed.read().await), "round {number}");
    }
    // PowerDNS keeps no differences and sends the zone.
    let keeps = bed.server.kind != Kind::Pdns;
    assert_eq!(told, if keeps { 4 } else { 0 });
}

async fn same(bed: Bed<'_>) {
    let epoch = bed.read().await.epoch;
    assert_eq!(bed.provider().since(&bed.zone, &epoch).await.unwrap(), ChangesSince::Same);
}

/// Many updates, so that an answer is long.
fn fill(bed: &Bed<'_>) {
    for number in 0..40 {
        let line = format!("update add added-{number}.{} 60 TXT \"{}\"", bed.zone, "y".repeat(200));
        bed.server.edit(&bed.zone, &[&line]).unwrap();
    }
}

async fn cut(bed: Bed<'_>) {
    let epoch = bed.read().await.epoch;
    fill(&bed);
    for bytes in [0, 1, 2, 30, 500, 5_000] {
        let proxy = Proxy::start(bed.server.address, Fault::CutAfter(bytes)).await;
        let error = bed.through(&[proxy.address()]).since(&bed.zone, &epoch).await.unwrap_err();
        assert!(error.is_transient() && error.to_string().contains(&bed.zone), "{bytes}: {error}");
    }
}

async fn forged(bed: Bed<'_>) {
    let epoch = bed.read().await.epoch;
    fill(&bed);
    for byte in [60, 700, 4_000] {
        let proxy = Proxy::start(bed.server.address, Fault::FlipByte(byte)).await;
        let asked = bed.through(&[proxy.address()]).since(&bed.zone, &epoch).await;
        assert!(asked.is_err(), "byte {byte}: {asked:?}");
    }
}

/// A state that the server does not have, or that no server could have.
async fn unknown(bed: Bed<'_>) {
    let content = bed.read().await;
    let provider = bed.provider();
    for epoch in ["4000000000", "x", ""] {
        match provider.since(&bed.zone, epoch).await.unwrap() {
            ChangesSince::Unknown => {}
            ChangesSince::Whole(whole) => assert_eq!(whole, content),
            other => panic!("{epoch}: {other:?}"),
        }
    }
}
