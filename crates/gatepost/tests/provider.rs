//! The commands that talk to a provider, as people run them, against a real BIND.
//!
//! What was written is read from the server's side, never from what the program says. Without BIND these tests are skipped,
//! and fail where `CI` is set.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[path = "provider/apply.rs"]
mod apply;
#[path = "provider/bed.rs"]
mod bed;
#[path = "provider/brakes.rs"]
mod brakes;
#[path = "provider/cloudflare.rs"]
mod cloudflare;
#[path = "provider/faults.rs"]
mod faults;
#[path = "provider/health.rs"]
mod health;
#[path = "provider/holders.rs"]
mod holders;
#[path = "provider/kills.rs"]
mod kills;
#[path = "provider/moving.rs"]
mod moving;
#[path = "provider/owners.rs"]
mod owners;
#[path = "provider/plan.rs"]
mod plan;
#[path = "provider/proxy.rs"]
mod proxy;
#[path = "provider/resolve.rs"]
mod resolve;
#[path = "provider/route53.rs"]
mod route53;
#[path = "provider/running.rs"]
mod running;
#[path = "provider/serve.rs"]
mod serve;
#[path = "provider/several.rs"]
mod several;
#[path = "provider/tls.rs"]
mod tls;
#[path = "provider/unknown.rs"]
mod unknown;
#[path = "provider/verify.rs"]
mod verify;
#[path = "provider/webhook.rs"]
mod webhook;
#[path = "provider/wildcards.rs"]
mod wildcards;
