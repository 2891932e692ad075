//! The border of Gatepost: texts in, objects of `gatepost-core` and diagnostics out.
//!
//! [`read`] takes a text apart into documents and objects, [`collect`] joins many texts into one snapshot, [`locate`] finds
//! the line of a field again when somebody wants to see it. Broken input harms only the document or field that is broken.
//! This crate never opens a file, never looks at a clock or the environment, never prints, and never keeps a private key.

mod certificates;
mod collect;
mod conditions;
pub mod crds;
mod documents;
mod fields;
mod gateway;
mod gateway_class;
mod hostnames;
mod kinds;
pub mod layout;
mod listener;
mod listener_set;
mod locate;
mod metadata;
mod parse;
pub mod pem;
mod placeholders;
mod policies;
mod pool;
mod portions;
mod reference_grant;
mod references;
pub mod render;
mod routes;
mod rules;
mod shapes;
mod support;
mod times;
mod tree;

pub use collect::{Loaded, SourceText, collect};
pub use kinds::versions;
pub use locate::{Located, Span, locate, locate_all};
pub use parse::{
    DocumentOrigin, Interpreted, ParseLimits, ParseSettings, ParsedText, Read, interpret, interpret_with, read,
    read_with,
};
pub use pool::Pool;
pub use portions::{NamedText, read_all};
pub use times::{rfc3339, rfc3339_millis, timestamp, timestamp_millis};
pub use tree::mapping;
