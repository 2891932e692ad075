//! Which provider publishes a record, where there are several.
//!
//! The policy that governs a listener may name the provider; otherwise it is the first whose zones contain the name. Two
//! providers may serve zones of one name, such as a public and a private view: a name then goes only to those that
//! policies name for it. Nothing here knows what a provider is, or whether it can be reached.

use crate::model::Str;

/// The provider that the flags of the command line describe.
pub const DEFAULT_PROVIDER: &str = "default";

/// The providers among which policies choose, in order; none where there is only the one of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishingProviders(Vec<ProviderZones>);

/// A provider, and the zones that it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderZones {
    /// Its name.
    pub name: Str,
    /// Its zones, in lower case without a trailing dot; none where it may serve any.
    pub zones: Vec<Str>,
}

impl PublishingProviders {
    /// Several providers, in order.
    pub fn new(providers: Vec<ProviderZones>) -> Self {
        PublishingProviders(providers)
    }

    /// Whether there are several.
    pub fn are_several(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether there is a provider of this name.
    pub fn has(&self, name: &str) -> bool {
        match &self.0[..] {
            [] => name == DEFAULT_PROVIDER,
            some => some.iter().any(|provider| &*provider.name == name),
        }
    }

    /// The provider that publishes a name: the one that a policy names, else the first whose zones contain it, else the
    /// first, which says that it does not serve the name. `None` where there is only one.
    pub fn of(&self, name: &str, named: Option<&Str>) -> Option<&Str> {
        let is_named = |provider: &&ProviderZones| named == Some(&provider.name);
        let by_policy = self.0.iter().find(is_named);
        let by_zone = || self.0.iter().find(|provider| provider.contains(name));
        Some(&by_policy.or_else(by_zone).or(self.0.first())?.name)
    }

    /// The names of the providers.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let default = self.0.is_empty().then_some(DEFAULT_PROVIDER);
        default.into_iter().chain(self.0.iter().map(|provider| &*provider.name))
    }

    /// A clause that lists the providers.
    pub(crate) fn stated(&self) -> String {
        match &self.0[..] {
            [] => format!(
                "no settings file that lists `providers` was given (`--settings FILE`), so the only provider is \
                 `{DEFAULT_PROVIDER}`"
            ),
            [one] => format!("the only provider is `{}`", one.name),
            _ => format!("the providers are `{}`", self.names().collect::<Vec<_>>().join("`, `")),
        }
    }
}

impl ProviderZones {
    fn contains(&self, name: &str) -> bool {
        let is_in = |zone: &Str| name.strip_suffix(&**zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        self.zones.is_empty() || self.zones.iter().any(is_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn several() -> PublishingProviders {
        let provider = |name: &str, zones: &[&str]| ProviderZones {
            name: name.into(),
            zones: zones.iter().map(|zone| Str::from(*zone)).collect(),
        };
        PublishingProviders::new(vec![
            provider("public", &["example.com", "example.net"]),
            provider("private", &["example.com", "internal"]),
        ])
    }

    #[test]
    fn a_policy_decides_then_the_first_whose_zones_contain_the_name() {
        for (name, named, expected) in [
            ("www.example.com", None, "public"),
            ("example.com", None, "public"),
            ("*.example.com", None, "public"),
            ("www.example.com", Some("private"), "private"),
            ("db.internal", None, "private"),
            ("www.myexample.com", None, "public"),
            // Whether a provider serves the zone at all is found out when it is read.
            ("www.example.net", Some("private"), "private"),
            ("www.example.org", None, "public"),
            ("db.internal", Some("nobody"), "private"),
        ] {
            let named = named.map(Str::from);
            assert_eq!(several().of(name, named.as_ref()).map(|name| &**name), Some(expected), "{name} {named:?}");
        }
    }

    #[test]
    fn one_provider_has_no_name_to_choose() {
        let one = PublishingProviders::default();
        assert_eq!(one.of("www.example.com", Some(&"default".into())), None);
        assert!(one.has("default") && !one.has("public") && !one.are_several());
        assert!(several().has("public") && !several().has("default") && several().are_several());
    }
}
