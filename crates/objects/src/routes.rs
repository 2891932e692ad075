//! Routes: five wire shapes become one type.

mod filters;
mod grpc;
mod http;
mod parts;
mod plain;
mod retry;
mod tcp;
mod tls;
mod udp;

pub(crate) use filters::external_auth;
pub(crate) use grpc::read as grpc;
pub(crate) use http::read as http;
pub(crate) use tcp::read as tcp;
pub(crate) use tls::read as tls;
pub(crate) use udp::read as udp;
