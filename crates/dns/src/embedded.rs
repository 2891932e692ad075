//! The embedded authoritative DNS server.
//!
//! Plain values become a [`Zone`], zones a [`ZoneSet`], and [`DnsServer::start`] answers from the set over UDP and TCP. A new
//! set replaces the old one whole while queries run. Real secondaries (BIND, Knot, NSD) may transfer the zones.
//!
//! ```text
//! packet ─▶ wire ─▶ respond ─▶ lookup ─▶ reply ─▶ packet
//!                      │          ▲
//!                   signing     store (zones, swapped whole)
//! ```
//!
//! It never resolves names for others, never takes updates from the network, and never answers an answer.

mod cookies;
mod error;
mod limits;
mod lookup;
mod metrics;
mod name;
mod notify;
mod prefix;
mod record;
mod reply;
mod respond;
mod rrset;
mod server;
mod signing;
pub mod state;
mod store;
mod transfer;
mod wire;
mod zone;

pub use error::{ServerError, ZoneError};
pub use limits::RateLimit;
pub use metrics::Metrics;
pub use name::{Name, NameError};
pub use prefix::{Prefix, PrefixError};
pub use record::{Data, Record, Soa, kind};
pub use respond::{Act, Arrival, ReplySummary, Responder, Transport};
pub use server::{DnsServer, Secondary, ServerConfig, Swapped, TcpLimits};
pub use signing::{Key, KeyError, TsigAlgorithm};
pub use store::ZoneSet;
pub use transfer::Transfer;
pub use zone::{Zone, ZoneSpec};
