//! The providers, one file each, and the table by which settings find them.
//!
//! A new provider is a new file and a new row. Nothing here knows what a provider is used for.

use crate::provider::{Error, Result, Shared};

pub mod embedded;
pub mod rfc2136;
pub mod webhook;

/// A kind of provider.
#[derive(Clone, Copy, Debug)]
pub struct ProviderKind {
    /// The value of `--provider`.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Its page in the documentation.
    pub page: &'static str,
    /// Makes one from settings; nothing is asked of the network.
    pub open: fn(&Settings) -> Result<Shared>,
}

/// The settings of every provider; each reads its own.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `--rfc2136-…`
    pub rfc2136: rfc2136::Config,
    /// `--webhook-…`
    pub webhook: webhook::Config,
}

/// Every provider that is reached over the network, by name.
pub static PROVIDERS: &[ProviderKind] = &[
    ProviderKind {
        name: "rfc2136",
        summary: "a DNS server that takes dynamic updates: BIND, Knot, PowerDNS, Windows",
        page: "docs/providers/rfc2136.md",
        open: |settings| Ok(std::sync::Arc::new(rfc2136::Rfc2136::new(settings.rfc2136.clone())?)),
    },
    ProviderKind {
        name: "webhook",
        summary: "any provider that speaks the webhook protocol of external-dns",
        page: "docs/providers/webhook.md",
        open: |settings| Ok(std::sync::Arc::new(webhook::Webhook::new(settings.webhook.clone())?)),
    },
];

/// The provider of this name with these settings.
pub fn open(name: &str, settings: &Settings) -> Result<Shared> {
    let kind = PROVIDERS.iter().find(|kind| kind.name == name);
    let names: Vec<_> = PROVIDERS.iter().map(|kind| kind.name).collect();
    let unknown = || Error::settings(format!("there is no provider `{name}`; there are {}", names.join(", ")));
    (kind.ok_or_else(unknown)?.open)(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_sorted_and_have_a_page() {
        assert!(PROVIDERS.is_sorted_by(|a, b| a.name < b.name));
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for kind in PROVIDERS {
            let text = std::fs::read_to_string(root.join(kind.page)).unwrap();
            assert!(text.starts_with(&format!("# {}\n", kind.name)), "{}", kind.page);
        }
    }

    #[test]
    fn a_provider_is_found_by_name() {
        assert!(open("nowhere", &Settings::default()).unwrap_err().to_string().contains("rfc2136, webhook"));
        assert!(open("rfc2136", &Settings::default()).unwrap_err().to_string().contains("--rfc2136-host"));
        assert!(open("webhook", &Settings::default()).is_ok());
    }
}
