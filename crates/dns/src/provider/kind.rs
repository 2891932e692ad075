//! A kind of provider as data: its name, its settings, and how one is opened.
//!
//! Each provider declares its kind in its own file. Nothing here knows which kinds there are.

use std::time::Duration;

use super::settings::{ProviderSettings, Setting};
use super::{Result, Shared};

/// How long one question to a provider may take, where neither the settings nor the kind says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// A kind of provider.
#[derive(Clone, Copy, Debug)]
pub struct ProviderKind {
    /// The value of `--provider`, and the name of its page in `docs/providers`.
    pub name: &'static str,
    /// What it is, in one line, as help shows it.
    pub summary: &'static str,
    /// The settings that only this kind takes, in the order of help.
    pub settings: &'static [Setting],
    /// The setting that lists its zones, where it has one.
    pub zones: Option<Setting>,
    /// The servers that answer DNS without TLS, with their ports, as far as settings name them.
    pub name_servers: fn(&ProviderSettings) -> Vec<String>,
    /// Whether nobody else writes there, so that records need no TXT record that names their owner.
    pub is_sole_writer: bool,
    /// Where records are published, and how that is opened.
    pub access: ProviderAccess,
}

/// Where a provider publishes records.
#[derive(Clone, Copy, Debug)]
pub enum ProviderAccess {
    /// A server of the network.
    Network {
        /// Makes a provider from settings; nothing is asked of the network.
        open: fn(&ProviderSettings) -> Result<Shared>,
        /// How long one question may take, where settings do not say.
        timeout: Duration,
    },
    /// The server inside this process, which the commands start themselves.
    Process,
    /// Objects of a cluster, which only `controller` reaches.
    Cluster,
}

impl ProviderKind {
    /// A kind with this name, without settings and without servers of its own.
    pub const fn new(name: &'static str, summary: &'static str, access: ProviderAccess) -> ProviderKind {
        let (settings, zones) = (&[], None);
        ProviderKind { name, summary, settings, zones, name_servers: |_| Vec::new(), is_sole_writer: false, access }
    }

    /// Whether it is a server of the network.
    pub fn is_of_network(&self) -> bool {
        matches!(self.access, ProviderAccess::Network { .. })
    }

    /// Whether it is the server inside this process.
    pub fn is_of_process(&self) -> bool {
        matches!(self.access, ProviderAccess::Process)
    }

    /// Whether it writes objects of a cluster.
    pub fn is_of_cluster(&self) -> bool {
        matches!(self.access, ProviderAccess::Cluster)
    }
}
