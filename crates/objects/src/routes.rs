//! Routes: five wire shapes become one type.

mod common;
mod filters;
mod grpc;
mod http;
mod plain;
mod retry;

pub(crate) use filters::external_auth;
pub(crate) use grpc::read as grpc;
pub(crate) use http::read as http;
pub(crate) use plain::{tcp, tls, udp};
