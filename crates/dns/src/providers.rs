//! The providers, one file each, and the registry of their kinds.
//!
//! A new provider is a new file and a new row. Flags, environment variables, settings-file keys, help, error messages, the
//! chart's schema and the checks of the documentation are made from the rows. Nothing here knows what a provider is used for.

use crate::provider::kind::{ProviderAccess, ProviderKind};
use crate::provider::settings::ProviderSettings;
use crate::provider::{ProviderError, Result, Shared};

pub mod cloudflare;
pub mod dnsendpoint;
pub mod embedded;
pub mod rfc2136;
pub mod route53;
pub mod webhook;

/// Every kind of provider, in the order of help.
pub static PROVIDERS: &[&ProviderKind] =
    &[&embedded::KIND, &rfc2136::KIND, &cloudflare::KIND, &route53::KIND, &webhook::KIND, &dnsendpoint::KIND];

/// The kind of this name.
pub fn find(name: &str) -> Option<&'static ProviderKind> {
    PROVIDERS.iter().copied().find(|kind| kind.name == name)
}

/// The names of the kinds that a question holds for, in the order of the registry.
pub fn names_where(holds: impl Fn(&ProviderKind) -> bool) -> Vec<&'static str> {
    PROVIDERS.iter().filter(|kind| holds(kind)).map(|kind| kind.name).collect()
}

/// Names as a sentence offers them: `a, b or c`.
pub fn choice(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, front)) => format!("{} or {last}", front.join(", ")),
        None => String::new(),
    }
}

/// Opens a provider of the network; nothing is asked of it yet.
pub fn open(kind: &ProviderKind, settings: &ProviderSettings) -> Result<Shared> {
    match kind.access {
        ProviderAccess::Network { open, .. } => open(settings),
        ProviderAccess::Cluster => Err(ProviderError::settings(format!(
            "--provider {} writes objects of a cluster: only `controller` has it",
            kind.name
        ))),
        ProviderAccess::Process => {
            let names = choice(&names_where(ProviderKind::is_of_network));
            Err(ProviderError::settings(format!("--provider must be {names}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::provider::settings::SettingKind;

    #[test]
    fn every_provider_has_a_page_with_its_flags() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/providers");
        for kind in PROVIDERS {
            let text = std::fs::read_to_string(root.join(format!("{}.md", kind.name))).unwrap();
            assert!(text.starts_with(&format!("# {}\n", kind.name)), "{}", kind.name);
            for setting in kind.settings {
                assert!(text.contains(&format!("`--{}`", setting.name)), "{}.md lacks --{}", kind.name, setting.name);
                let file = format!("`--{}-file`", setting.name);
                let is_secret = matches!(setting.kind, SettingKind::Secret { .. });
                assert!(!is_secret || text.contains(&file), "{}.md lacks {file}", kind.name);
            }
        }
    }

    #[test]
    fn every_page_is_of_a_provider() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/providers");
        for entry in std::fs::read_dir(root).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(find(&name).is_some(), "{} is about no provider", path.display());
        }
    }

    #[test]
    fn names_of_providers_and_settings_are_unique() {
        let kinds: BTreeSet<_> = PROVIDERS.iter().map(|kind| kind.name).collect();
        assert_eq!(kinds.len(), PROVIDERS.len());
        let settings: Vec<_> = PROVIDERS.iter().flat_map(|kind| kind.settings).map(|setting| setting.name).collect();
        assert_eq!(settings.iter().collect::<BTreeSet<_>>().len(), settings.len(), "{settings:?}");
        for kind in PROVIDERS {
            assert!(kind.zones.is_none_or(|zones| kind.settings.contains(&zones)), "{}", kind.name);
        }
    }

    #[test]
    fn a_provider_is_found_by_name_and_opened_by_its_access() {
        let refused = |name| open(find(name).unwrap(), &ProviderSettings::default()).unwrap_err().to_string();
        assert!(find("nowhere").is_none());
        assert!(refused("rfc2136").contains("--rfc2136-host"));
        assert!(
            refused("embedded").ends_with("must be rfc2136, cloudflare, route53 or webhook"),
            "{}",
            refused("embedded")
        );
        assert!(refused("dnsendpoint").contains("only `controller`"));
        assert!(open(&webhook::KIND, &ProviderSettings::default()).is_ok());
    }
}
