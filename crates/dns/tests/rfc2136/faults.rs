//! Servers that die, fall silent or lose an answer while they are written to.

use std::collections::BTreeSet;
use std::time::Duration;

use gatepost_core::plan::PlanStep;
use gatepost_dns::provider::{Provider, ProviderProblem};

use crate::bed::{Bed, MARKER, Scenario, all_ok, values};
use crate::proxy::{Fault, Proxy};

pub(crate) const ALL: &[Scenario] = &[
    Scenario::new("answer_lost_after_writing", |bed| Box::pin(lost(bed))),
    Scenario::new("write_moves_on_to_the_next_server", |bed| Box::pin(next_server(bed))),
    Scenario::new("nothing_listens", |bed| Box::pin(closed(bed))),
    Scenario::new("twin_servers_do_not_write_twice", |bed| Box::pin(twins(bed))),
    Scenario { own_server: true, ..Scenario::new("server_killed_while_writing", |bed| Box::pin(killed(bed))) },
];

async fn lost(bed: Bed<'_>) {
    let proxy = Proxy::start(bed.server.address, Fault::LoseAnswer).await;
    let provider = bed.through(&[proxy.address()]);
    let steps = [bed.create("www", "192.0.2.1"), bed.create("web", "192.0.2.2")];
    for error in provider.write(&bed.zone, &steps).await.into_iter().map(|result| result.unwrap_err()) {
        assert!(
            matches!(error.problem, ProviderProblem::Lost(_)) && error.is_transient() && error.needs_read(),
            "{error}"
        );
    }
    assert_eq!(proxy.connections(), 1);
    assert_eq!(bed.values("www", "A").await, ["192.0.2.1"]);
}

async fn next_server(bed: Bed<'_>) {
    let silent = Proxy::start(bed.server.address, Fault::Silence).await;
    let closed = gatepost_testkit::servers::free_address().unwrap().to_string();
    let provider = bed.through(&[closed, silent.address(), bed.server.address.to_string()]);
    all_ok(&provider.write(&bed.zone, &[bed.create("www", "192.0.2.1")]).await);
    all_ok(&provider.write(&bed.zone, &[bed.create("web", "192.0.2.1")]).await);
    assert_eq!(silent.connections(), 1, "the server that answered is asked first from then on");
}

async fn closed(bed: Bed<'_>) {
    let closed = gatepost_testkit::servers::free_address().unwrap().to_string();
    let provider = bed.through(std::slice::from_ref(&closed));
    let error = provider.read(&bed.zone).await.unwrap_err();
    assert!(matches!(error.problem, ProviderProblem::Unreachable(_)), "{error}");
    let results = provider.write(&bed.zone, &[bed.create("www", "192.0.2.1"), bed.create("web", "192.0.2.1")]).await;
    for error in results.into_iter().map(|result| result.unwrap_err()) {
        assert!(matches!(error.problem, ProviderProblem::Unreachable(_)), "{error}");
        assert!(error.is_transient() && error.to_string().contains(&closed), "{error}");
    }
}

/// The first way loses the answer, the second one finds the change made: that is not a hand edit.
async fn twins(bed: Bed<'_>) {
    let losing = Proxy::start(bed.server.address, Fault::LoseAnswer).await;
    let provider = bed.through(&[losing.address(), bed.server.address.to_string()]);
    let error = provider.write(&bed.zone, &[bed.create("www", "192.0.2.1")]).await.remove(0).unwrap_err();
    assert!(matches!(error.problem, ProviderProblem::Lost(_)), "{error}");
    assert_eq!(bed.values("www", "A").await, ["192.0.2.1"]);
}

async fn killed(bed: Bed<'_>) {
    let foreign: BTreeSet<String> = bed.server.dump(&bed.zone).unwrap().into_iter().collect();
    // `GATEPOST_ROUNDS=100` for a thorough run.
    let rounds = std::env::var("GATEPOST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let steps: Vec<PlanStep> = (0..100 * rounds).map(|n| bed.create(&format!("host-{n}"), "192.0.2.1")).collect();
    for round in 0..rounds {
        let provider = bed.through(&[bed.server.address.to_string()]);
        let kill = async {
            // A fixed time, another one in each round: the moment of the kill is what is tried.
            tokio::time::sleep(Duration::from_millis(3 + round as u64 * 11 % 60)).await;
            bed.server.signal("KILL");
        };
        let part: Vec<PlanStep> = steps.iter().skip(round * 100).take(100).cloned().collect();
        let write = async {
            for chunk in part.chunks(5) {
                provider.write(&bed.zone, chunk).await;
            }
        };
        tokio::join!(write, kill);
        bed.server.run().unwrap();
        let content = bed.read().await;
        for step in &steps {
            let marker = step.markers[0].name.clone();
            let (record, marker) = (values(&content, &step.name, "A"), values(&content, &marker, "TXT"));
            let whole = record == ["192.0.2.1"] && marker == [MARKER];
            assert!(whole || (record.is_empty() && marker.is_empty()), "{}: {record:?} {marker:?}", step.name);
        }
        let now: BTreeSet<String> = bed.server.dump(&bed.zone).unwrap().into_iter().collect();
        let gone: Vec<_> = foreign.difference(&now).collect();
        assert!(gone.is_empty(), "{gone:?}");
    }
}
