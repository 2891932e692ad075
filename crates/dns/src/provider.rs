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
pub(crate) mod http;
pub(crate) mod isolate;
pub mod kind;
pub(crate) mod look;
pub mod settings;
mod units;
pub(crate) mod zone;

pub use error::{ProviderError, ProviderProblem, Result};
pub(crate) use units::{Unit, units};

/// A boxed future, so that the trait can be a trait object.
pub type Call<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A DNS provider: reads zones completely, and writes steps with their preconditions.
pub trait Provider: Send + Sync + fmt::Debug {
    /// What this provider can do.
    fn capabilities(&self) -> Capabilities;

    /// The zones that may be read and written, without a dot at the end.
    fn zones(&self) -> Call<'_, Result<Vec<Str>>>;

    /// Everything in a zone. A read that is not complete is an error, never a shorter list. SOA and what a signer makes by
    /// itself are left out.
    fn read<'a>(&'a self, zone: &'a str) -> Call<'a, Result<ZoneContent>>;

    /// The changes of a zone since the state with this epoch was read. They are complete, or unknown.
    fn since<'a>(&'a self, _zone: &'a str, _epoch: &'a str) -> Call<'a, Result<ChangesSince>> {
        Box::pin(async { Ok(ChangesSince::Unknown) })
    }

    /// Carries out steps of one zone in their order, and says for each how it went.
    ///
    /// Steps of one group are done together or not at all where [`plan::Capabilities::is_atomic`] says so. A failed step
    /// does not stop the others: who has steps that wait for one another gives them in separate calls.
    fn write<'a>(&'a self, zone: &'a str, steps: &'a [PlanStep]) -> Call<'a, Vec<Result<()>>>;

    /// Whether [`Provider::adjust`] changes records. A provider that does has no [`Provider::since`] either.
    fn adjusts(&self) -> bool {
        false
    }

    /// The records as this provider would keep them, so that what it changes by itself is no difference.
    fn adjust(&self, records: Vec<Record>) -> Call<'_, Result<Vec<Record>>> {
        Box::pin(async move { Ok(records) })
    }
}

/// The changes of a zone since it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangesSince {
    /// There are none.
    Same,
    /// These, in order.
    Changed(Vec<ZoneChange>),
    /// The server sent the whole zone instead.
    Whole(ZoneContent),
    /// The provider cannot say: the zone must be read.
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
