//! One suite over every provider, each with a real server behind it: states, faults, and what becomes of a zone whose keeper
//! or server dies.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;

use gatepost_dns::providers::PROVIDERS;
use gatepost_testkit::servers::Kind;
use gatepost_testkit::{Failed, Trial};

#[path = "conformance/beds.rs"]
mod beds;
#[path = "conformance/cloudflare.rs"]
mod cloudflare;
#[path = "conformance/faults.rs"]
mod faults;
#[path = "conformance/habits.rs"]
mod habits;
#[path = "conformance/keeper.rs"]
mod keeper;
#[path = "conformance/kills.rs"]
mod kills;
#[path = "conformance/route53.rs"]
mod route53;
#[path = "conformance/states.rs"]
mod states;
#[path = "conformance/watch.rs"]
mod watch;

use beds::{BEDS, BedKind, Behind};

type Run = fn(BedKind) -> Pin<Box<dyn Future<Output = ()>>>;

/// A test of the suite.
#[derive(Clone, Copy)]
struct Test {
    name: &'static str,
    run: Run,
    fits: fn(&BedKind) -> bool,
}

const fn everywhere(name: &'static str, run: Run) -> Test {
    Test { name, run, fits: |_| true }
}

/// A test that stands between provider and server, or ends the server.
const fn over_the_wire(name: &'static str, run: Run) -> Test {
    Test { name, run, fits: |bed| bed.provider == "rfc2136" }
}

/// A test that answers instead of a webhook.
const fn by_webhook(name: &'static str, run: Run) -> Test {
    Test { name, run, fits: |bed| bed.provider == "webhook" }
}

/// A test of the API of Cloudflare.
const fn by_api(name: &'static str, run: Run) -> Test {
    Test { name, run, fits: |bed| bed.provider == "cloudflare" }
}

/// A test of the API of Route 53.
const fn by_aws(name: &'static str, run: Run) -> Test {
    Test { name, run, fits: |bed| bed.provider == "route53" }
}

const ALL: &[Test] = &[
    everywhere("moves_through_states", |bed| Box::pin(states::moves_through(bed))),
    everywhere("hand_edit_in_the_gap_stays", |bed| Box::pin(faults::hand_edit_in_the_gap(bed))),
    everywhere("twins_do_not_fight", |bed| Box::pin(faults::twins(bed))),
    everywhere("normalising_comes_to_rest", |bed| Box::pin(habits::normalising(bed))),
    by_webhook("wrong_answers", |bed| Box::pin(habits::wrong_answers(bed))),
    by_webhook("a_list_of_nothing", |bed| Box::pin(habits::empty_list(bed))),
    over_the_wire("transfer_cut_anywhere", |bed| Box::pin(faults::cut_transfer(bed))),
    over_the_wire("update_cut_anywhere", |bed| Box::pin(faults::cut_update(bed))),
    over_the_wire("wrong_key", |bed| Box::pin(faults::wrong_key(bed))),
    over_the_wire("clock_off", |bed| Box::pin(faults::clock_off(bed))),
    over_the_wire("a_zone_at_rest_is_not_written_to", |bed| Box::pin(faults::rest_is_silent(bed))),
    over_the_wire("server_dies_in_the_gap", |bed| Box::pin(kills::server_dies_in_the_gap(bed))),
    over_the_wire("server_dies_while_it_writes", |bed| Box::pin(kills::server_dies_while_it_writes(bed))),
    over_the_wire("keeper_dies_at_every_step", |bed| Box::pin(kills::keeper_dies_at_every_step(bed))),
    Test {
        name: "one_record_always_refused",
        run: |bed| Box::pin(faults::always_refused(bed)),
        // No other server can be told to refuse one name.
        fits: |bed| matches!(bed.behind, Behind::Primary(Kind::Bind) | Behind::Cloudflare | Behind::Route53),
    },
    by_api("pages_that_do_not_fit", |bed| Box::pin(cloudflare::odd_pages(bed))),
    by_api("throttled", |bed| Box::pin(cloudflare::throttled(bed))),
    by_api("token_expires", |bed| Box::pin(cloudflare::token_expires(bed))),
    by_api("zone_goes", |bed| Box::pin(cloudflare::zone_goes(bed))),
    by_api("hand_edit_after_the_look", |bed| Box::pin(cloudflare::edit_after_look(bed))),
    by_api("hand_edit_of_settings_stays", |bed| Box::pin(cloudflare::edit_of_settings(bed))),
    by_api("keeper_dies_at_every_question", |bed| Box::pin(cloudflare::dies_at_every_question(bed))),
    by_api("properties_come_to_rest", |bed| Box::pin(cloudflare::properties(bed))),
    by_api("aliases", |bed| Box::pin(cloudflare::aliases(bed))),
    by_api("limits_of_a_batch", |bed| Box::pin(cloudflare::limits(bed))),
    by_api("ten_thousand_names", |bed| Box::pin(cloudflare::many(bed))),
    by_api("the_token_is_not_shown", |bed| Box::pin(cloudflare::canary(bed))),
    by_aws("pages_that_do_not_fit", |bed| Box::pin(route53::odd_pages(bed))),
    by_aws("busy", |bed| Box::pin(route53::busy(bed))),
    by_aws("credentials_expire", |bed| Box::pin(route53::expired(bed))),
    by_aws("zone_goes", |bed| Box::pin(route53::zone_goes(bed))),
    by_aws("hand_edit_of_anything_stays", |bed| Box::pin(route53::edits(bed))),
    by_aws("keeper_dies_at_every_question", |bed| Box::pin(route53::dies_at_every_question(bed))),
    by_aws("aliases", |bed| Box::pin(route53::aliases(bed))),
    by_aws("routing_policies", |bed| Box::pin(route53::routing(bed))),
    by_aws("limits_of_a_batch", |bed| Box::pin(route53::limits(bed))),
    by_aws("ten_thousand_names", |bed| Box::pin(route53::many(bed))),
    by_aws("zones_are_chosen", |bed| Box::pin(route53::zones(bed))),
    by_aws("credentials_from_everywhere", |bed| Box::pin(route53::credentials(bed))),
    by_aws("no_key_is_shown", |bed| Box::pin(route53::canary(bed))),
];

fn main() {
    if kills::was_keeper() {
        return;
    }
    let mut trials = vec![Trial::test("every_provider_has_a_bed", every_provider_has_a_bed)];
    for bed in BEDS {
        trials.extend(ALL.iter().filter(|test| (test.fits)(bed)).map(|test| trial(*bed, *test)));
    }
    gatepost_testkit::run(trials)
}

fn trial(bed: BedKind, test: Test) -> Trial {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on((test.run)(bed));
        Ok(())
    };
    Trial::test(format!("{}::{}", bed.name(), test.name), run).with_ignored_flag(!bed.is_wanted())
}

/// A provider that is not moved through the states is not tested.
fn every_provider_has_a_bed() -> Result<(), Failed> {
    let tested: BTreeSet<&str> = BEDS.iter().map(|bed| bed.provider).collect();
    // What a cluster keeps is tested with a real API server, by the controller's tests.
    let known: BTreeSet<&str> = PROVIDERS.iter().filter(|kind| !kind.is_of_cluster()).map(|kind| kind.name).collect();
    assert_eq!(tested, known);
    Ok(())
}
