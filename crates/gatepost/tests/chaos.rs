//! Faults at random: two replicas over BIND and one controller with the embedded server follow one cluster, while objects are
//! edited, statuses blink, and processes, connections, clocks and servers fail.
//!
//! What must hold at every moment is checked from the outside, in zone transfers, DNS answers, `/proc` and the logs; see
//! `chaos/observer.rs`. The seed is printed first, and `GATEPOST_CHAOS_SEED` repeats its sequence of actions. `make test` runs a
//! short sequence of a fixed seed, `make chaos` half an hour of a new one with 2,000 routes.
// A test ends where something is not as it must be.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[allow(dead_code, reason = "shared with other tests")]
#[path = "controller/bed.rs"]
mod bed;
mod chaos {
    pub(crate) mod actions;
    pub(crate) mod observer;
    pub(crate) mod world;
}
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../../dns/tests/embedded/dice.rs"]
mod dice;

use std::time::{Duration, Instant};

use gatepost_testkit::Failed;

use bed::trial;
use chaos::actions::{Driver, whole_deck};
use chaos::world::World;

/// How long a run is and how many routes there are.
struct Size {
    seed: u64,
    routes: usize,
    /// Actions, or as many as fit into the time.
    actions: usize,
    time: Option<Duration>,
}

impl Size {
    fn of_environment() -> Size {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let time = number("GATEPOST_CHAOS_MINUTES").map(|minutes| Duration::from_secs(60 * minutes));
        let new = || std::time::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_secs());
        let seed = number("GATEPOST_CHAOS_SEED").unwrap_or_else(|| if time.is_some() { new() } else { 7 });
        let routes =
            number("GATEPOST_CHAOS_ROUTES").map_or(if time.is_some() { 2000 } else { 90 }, |count| count as usize);
        Size { seed, routes, actions: whole_deck(), time }
    }
}

fn main() {
    gatepost_testkit::run(vec![trial(
        "scenario 94: faults at random take nothing away, and all is well in the end",
        run,
    )])
}

fn run() -> Result<(), Failed> {
    let size = Size::of_environment();
    eprintln!("chaos: GATEPOST_CHAOS_SEED={} with {} routes", size.seed, size.routes);
    let world = World::start(size.routes)?;
    let observer = chaos::observer::Observer::start(&world);
    let mut driver = Driver::new(size.seed, &world);
    let begun = Instant::now();
    let mut done = 0;
    while size.time.map_or(done < size.actions, |time| begun.elapsed() < time) {
        driver.act()?;
        observer.is_content(&driver.told());
        done += 1;
        if size.time.is_some() && done % 50 == 0 {
            eprintln!("chaos: {done} actions in {} s; {}", begun.elapsed().as_secs(), world.figures());
        }
    }
    driver.heal_everything()?;
    world.comes_to(driver.wanted());
    observer.is_content(&driver.told());
    let seen = observer.end();
    world.is_sound();
    eprintln!("chaos: {done} actions ({}); {seen}; {}", driver.counts(), world.figures());
    Ok(())
}
