//! The rules of Gatepost: objects in, decisions out.
//!
//! One straight line: [`snapshot`] → [`attachment`] → [`publication`] → [`plan`] → [`report`]. Each stage is a function from values to
//! values. This crate never reads a clock, a file, the environment or a socket, never prints, never serializes, and so
//! cannot fail: broken input yields a value and diagnostics.

pub mod attachment;
pub mod diagnostic;
pub mod explain;
pub mod external_dns;
pub mod health;
pub mod incremental;
pub mod lint;
pub mod model;
pub mod names;
pub mod plan;
pub mod policy;
pub mod publication;
pub mod reason;
pub mod report;
pub mod routing;
pub mod selector;
pub mod snapshot;
