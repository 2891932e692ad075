//! The test bed: golden cases, seeded faults and the examples of the documentation, all found by looking, none listed.
//!
//! Every file becomes a test with a name of its own, so that it is counted, chosen and reported like any other. Nothing
//! here knows the rules of the Gateway API: the program is run as people run it, and only what it says is judged.

pub mod browser;
pub mod case;
pub mod clock;
pub mod fault;
pub mod handshake;
pub mod markdown;
pub mod page;
pub mod program;
pub mod query_loop;
pub mod repository;
pub mod scratch;
pub mod servers;
pub mod transcript;
pub mod tree;

mod compact;
mod reduce;

pub use gatepost_worlds as world;
pub use libtest_mimic::{Arguments, Failed, Trial};

/// Runs tests as `cargo test` expects it of a program, and ends the process.
pub fn run(trials: Vec<Trial>) -> ! {
    libtest_mimic::run(&Arguments::from_args(), trials).exit()
}
