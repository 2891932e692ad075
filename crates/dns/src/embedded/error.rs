//! What can go wrong, in words that name the thing and the cause.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::name::Name;

/// Why the server did not start, or did not keep its state.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// An address could not be bound.
    #[error("cannot listen for DNS on {address} ({transport}): {cause}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// UDP or TCP.
        transport: &'static str,
        /// What the system said.
        cause: io::Error,
    },
    /// There is no address to listen on.
    #[error("the embedded DNS server has no address to listen on")]
    NoAddress,
    /// A secondary names a key that is not among the keys.
    #[error("the secondary {address} uses the TSIG key `{key}`, which is not configured")]
    UnknownKey {
        /// The secondary.
        address: SocketAddr,
        /// The key's name.
        key: String,
    },
    /// The system gave no thread, timer or random numbers.
    #[error("cannot start the embedded DNS server: {0}")]
    System(#[from] io::Error),
    /// The last good zones could not be written or read.
    #[error("cannot {verb} the last good zones in {path}: {cause}")]
    State {
        /// `read` or `write`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The last good zones are not what was written.
    #[error("the last good zones in {path} are damaged: {cause}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: String,
    },
}

impl ServerError {
    /// Whether the same call may succeed later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            ServerError::Listen { cause, .. } => cause.kind() == io::ErrorKind::AddrInUse,
            ServerError::System(_) | ServerError::State { .. } => true,
            ServerError::NoAddress | ServerError::UnknownKey { .. } | ServerError::Damaged { .. } => false,
        }
    }
}

/// Why records make no zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// The owner lies outside the zone.
    #[error("{name} is not in the zone {zone}")]
    Outside {
        /// The owner.
        name: Name,
        /// The zone.
        zone: Name,
    },
    /// A CNAME stands beside other records, or twice.
    #[error("{name} has a CNAME and so can have nothing else")]
    BesideCname {
        /// The owner.
        name: Name,
    },
    /// A wildcard or an apex that must not have this type.
    #[error("{name} cannot have records of type {kind}: {cause}")]
    Data {
        /// The owner.
        name: Name,
        /// The type code.
        kind: u16,
        /// What is wrong.
        cause: String,
    },
    /// A set of records does not fit into one message.
    #[error("{name} has more records of type {kind} than one message holds ({bytes} bytes)")]
    TooLarge {
        /// The owner.
        name: Name,
        /// The type code.
        kind: u16,
        /// How large the set is.
        bytes: usize,
    },
    /// A zone does not fit into the memory that is foreseen for it.
    #[error("the zone {zone} is larger than 4 GiB")]
    TooMany {
        /// The zone.
        zone: Name,
    },
    /// A zone without name servers.
    #[error("the zone {zone} has no name server")]
    NoNameServer {
        /// The zone.
        zone: Name,
    },
    /// Two zones of one name.
    #[error("the zone {zone} is given twice")]
    Twice {
        /// The zone.
        zone: Name,
    },
}

impl ZoneError {
    /// Whether the same records may make a zone later: never.
    pub fn is_transient(&self) -> bool {
        false
    }
}
