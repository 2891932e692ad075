//! What publishes records: the trait of a DNS provider, what it can do, and how it fails.
//!
//! A provider reads a zone completely or fails, and writes steps with their preconditions, one result per step. It never
//! compares, never decides who owns a record, never orders, never retries and keeps no budget: those who call it do.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use gatepost_core::model::Str;
use gatepost_core::publication::{Record, RecordType};

use gatepost_core::plan::{self, PlanStep, ZoneChange, ZoneContent};

pub mod data;
mod error;
pub(crate) mod isolate;
pub mod kind;
pub mod settings;
mod units;

pub use error::{ProviderError, ProviderProblem, Result};
pub(crate) use units::{Unit, units};

/// An answer that is still to come.
pub type Call<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A place where records are published.
pub trait Provider: Send + Sync + fmt::Debug {
    /// What this provider can do.
    fn capabilities(&self) -> Capabilities;

    /// The zones that may be read and written, without a dot at the end.
    fn zones(&self) -> Call<'_, Result<Vec<Str>>>;

    /// Everything in a zone. A read that is not complete is an error, never a shorter list. SOA and what a signer makes by
    /// itself are left out.
    fn read<'a>(&'a self, zone: &'a str) -> Call<'a, Result<ZoneContent>>;

    /// What became of a zone since a state that was read, which its epoch tells. Who cannot say so says that; nothing may be
    /// left out of what is said.
    fn since<'a>(&'a self, _zone: &'a str, _epoch: &'a str) -> Call<'a, Result<ChangesSince>> {
        Box::pin(async { Ok(ChangesSince::Unknown) })
    }

    /// Carries out steps of one zone in their order, and says for each how it went.
    ///
    /// Steps of one group are done together or not at all where [`plan::Capabilities::is_atomic`] says so. A failed step
    /// does not stop the others: who has steps that wait for one another gives them in separate calls.
    fn write<'a>(&'a self, zone: &'a str, steps: &'a [PlanStep]) -> Call<'a, Vec<Result<()>>>;

    /// Whether [`Provider::adjust`] has anything to say. Who adjusts records does not tell changes either.
    fn adjusts(&self) -> bool {
        false
    }

    /// The records as this provider would keep them, so that what it changes by itself is no difference.
    fn adjust(&self, records: Vec<Record>) -> Call<'_, Result<Vec<Record>>> {
        Box::pin(async move { Ok(records) })
    }
}

/// What became of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangesSince {
    /// Nothing: it is as it was.
    Same,
    /// These changes, one after the other.
    Changed(Vec<ZoneChange>),
    /// What changed is not told, but this is all of it now.
    Whole(ZoneContent),
    /// It is not known; the zone is to be read.
    Unknown,
}

/// A provider that is shared.
pub type Shared = Arc<dyn Provider>;

/// What a provider can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What the planner has to know.
    pub plan: plan::Capabilities,
    /// The server itself checks that nothing changed since it was read; otherwise there is only a look before writing.
    pub preconditions: bool,
    /// The types of records that can be written.
    pub types: &'static [RecordType],
}
