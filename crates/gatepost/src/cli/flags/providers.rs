//! Further providers: the key `providers` of the settings file, and which providers a command works with because of it.
//!
//! An entry has a name, a kind, zones, and the flags of that kind and of planning as keys. Environment variables and the
//! flags of the command line describe the provider `default` and no other. Nothing is asked of a provider here.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::builder::Resettable;
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use gatepost_core::model::Str;
use gatepost_core::publication::providers::{DEFAULT_PROVIDER, ProviderZones, PublishingProviders};
use gatepost_dns::provider::kind::ProviderKind;
use gatepost_dns::provider::settings::SettingKind;
use gatepost_dns::providers::{choice, find, names_where};
use serde_json::{Map, Value};

use super::planning::PlanningFlags;
use super::provider::ProviderFlags;
use crate::cli::Failure;

/// What the settings file says about providers. It is no flag that people write: the list has no short form.
#[derive(Args, Debug, Clone, Default)]
pub(in crate::cli) struct FurtherProviders {
    /// Further providers as JSON; rather write `providers` into the settings file
    #[arg(id = "providers", long, value_name = "JSON", hide = true, value_parser = parse)]
    list: Option<ProviderList>,
}

/// The providers of the settings file, in order.
#[derive(Debug, Clone, Default)]
struct ProviderList {
    /// The zones of the provider of the command line, where the file names that.
    default_zones: Option<Vec<Str>>,
    further: Vec<NamedProvider>,
}

/// One of several providers.
#[derive(Debug, Clone)]
pub(in crate::cli) struct NamedProvider {
    /// Its name, which policies write into `providerRef`.
    pub(in crate::cli) name: Str,
    /// Where it is.
    pub(in crate::cli) flags: ProviderFlags,
    /// What may be written there, and what is ours.
    pub(in crate::cli) planning: PlanningFlags,
    /// Its zones; none where it may serve any.
    pub(in crate::cli) zones: Vec<Str>,
    /// Whether it says its owner id.
    has_owner: bool,
}

/// The flags that an entry may set.
#[derive(Parser, Debug)]
#[command(no_binary_name = true)]
struct EntryFlags {
    #[command(flatten)]
    provider: ProviderFlags,
    #[command(flatten)]
    planning: PlanningFlags,
}

/// Keys that an entry cannot have, and what to do instead.
const REFUSED: [(&str, &str); 3] = [
    ("provider", "an entry names it as `kind`"),
    ("state-dir", "it is said once for all providers: write it outside of `providers`"),
    ("confirm-deletes", "it is said once for all providers: write it outside of `providers`"),
];

/// How names are divided among providers.
pub(in crate::cli) fn rule_of(named: &[NamedProvider]) -> PublishingProviders {
    let zones = named.iter().map(|provider| (provider.name.clone(), provider.zones.clone()));
    PublishingProviders::new(zones.map(|(name, zones)| ProviderZones { name, zones }).collect())
}

impl FurtherProviders {
    /// The providers by which names are divided, where no flags say more: the file knows whether there is a `default`.
    pub(in crate::cli) fn rule(&self) -> PublishingProviders {
        let Some(list) = &self.list else { return PublishingProviders::default() };
        if list.further.is_empty() {
            return PublishingProviders::default();
        }
        let default = list.default_zones.iter().map(|zones| (DEFAULT_PROVIDER.into(), zones.clone()));
        let further = list.further.iter().map(|provider| (provider.name.clone(), provider.zones.clone()));
        PublishingProviders::new(default.chain(further).map(|(name, zones)| ProviderZones { name, zones }).collect())
    }

    /// An entry that says what may be written.
    pub(in crate::cli) fn with_policy(&self) -> Option<&str> {
        let list = self.list.as_ref()?;
        list.further.iter().find(|provider| provider.planning.has_policy()).map(|provider| &*provider.name)
    }

    /// Whether there are any.
    pub(in crate::cli) fn are_any(&self) -> bool {
        self.list.as_ref().is_some_and(|list| !list.further.is_empty())
    }

    /// All providers, that of the command line first; none where there is only that.
    pub(in crate::cli) fn with(
        &self,
        flags: &ProviderFlags,
        planning: &PlanningFlags,
    ) -> Result<Vec<NamedProvider>, Failure> {
        let Some(list) = self.list.as_ref().filter(|_| self.are_any()) else { return Ok(Vec::new()) };
        flags.check()?;
        let mut all = Vec::new();
        if let Some(kind) = flags.kind() {
            if !kind.is_of_network() {
                return Err(Failure::usage(format!(
                    "--provider {} cannot be one of several providers: use it alone, or leave `providers` out of the settings file",
                    kind.name
                )));
            }
            let name = DEFAULT_PROVIDER.into();
            let (flags, planning, zones) = (flags.clone(), planning.clone(), flags.zones());
            all.push(NamedProvider { name, flags, planning, zones, has_owner: true });
        }
        for provider in &list.further {
            let mut provider = provider.clone();
            provider.planning.inherit(planning, (!provider.has_owner).then_some(&*provider.name));
            all.push(provider);
        }
        Ok(all)
    }
}

/// The value of the settings key as the hidden flag takes it; `default` are the zones of the provider that the file names
/// outside of the list.
pub(in crate::cli) fn as_flag(list: &Value, file: &Map<String, Value>) -> Result<OsString, String> {
    let key = |name: &str| file.iter().find(|(key, _)| key.replace('_', "-") == name).map(|(_, value)| value);
    let kind = key("provider").and_then(Value::as_str).and_then(find);
    let zones = kind.map(|kind| kind.zones.and_then(|zones| key(zones.name)).map_or_else(Vec::new, words));
    let text = serde_json::json!({"default": zones, "further": list}).to_string();
    parse(&text)?;
    Ok(text.into())
}

fn parse(text: &str) -> Result<ProviderList, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let default_zones = value["default"].as_array().map(|_| lower(words(&value["default"])));
    let entries = value["further"].as_array().ok_or("takes a list of providers, each with `name` and `kind`")?;
    let further = entries.iter().enumerate().map(|(i, entry)| provider(i, entry)).collect::<Result<Vec<_>, _>>()?;
    let mut names = BTreeSet::new();
    if let Some(twice) = further.iter().find(|provider| !names.insert(&provider.name)) {
        return Err(format!("names `{}` twice: give each provider a name of its own", twice.name));
    }
    Ok(ProviderList { default_zones, further })
}

fn provider(i: usize, entry: &Value) -> Result<NamedProvider, String> {
    let entry = entry.as_object().ok_or_else(|| format!("[{i}] is not a mapping: write `name`, `kind` and flags"))?;
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let name = text("name").ok_or_else(|| format!("[{i}] has no name: add `name`"))?;
    if !is_name(name) {
        return Err(format!("[{i}] has the name `{name}`: write up to 63 lower-case letters, digits and dashes"));
    }
    if name == DEFAULT_PROVIDER {
        return Err(format!("[{i}] has the name `{name}`, which the provider of the other flags has: choose another"));
    }
    let of_entry = |why: String| format!("`{name}`: {why}");
    let known = choice(&names_where(ProviderKind::is_of_network));
    let kind = text("kind").ok_or_else(|| of_entry(format!("`kind` is missing: write {known}")))?;
    let kind = find(kind).filter(|kind| kind.is_of_network());
    let kind = kind.ok_or_else(|| of_entry(format!("`kind` must be {known}: others cannot be one of several")))?;
    let zones = zones_of(kind, entry).map_err(of_entry)?;
    let mut arguments = vec![format!("--provider={}", kind.name)];
    if let Some(setting) = kind.zones.filter(|_| !zones.is_empty()) {
        arguments.push(format!("--{}={}", setting.name, zones.join(",")));
    }
    for (key, value) in entry.iter().filter(|(key, _)| !["name", "kind", "zones"].contains(&key.as_str())) {
        arguments.extend(argument(kind, key, value).map_err(&of_entry)?);
    }
    let command = EntryFlags::command().mut_args(|argument| argument.env(Resettable::Reset));
    let matches = command.try_get_matches_from(&arguments).map_err(|error| of_entry(plain(&error)))?;
    let EntryFlags { provider: flags, planning } =
        EntryFlags::from_arg_matches(&matches).map_err(|error| of_entry(plain(&error)))?;
    if let Err(Failure::Usage(error)) = flags.check() {
        return Err(of_entry(error.to_string()));
    }
    let zones = if zones.is_empty() { flags.zones() } else { lower(zones) };
    let has_owner = entry.keys().any(|key| key.replace('_', "-") == "txt-owner-id");
    Ok(NamedProvider { name: name.into(), flags, planning, zones, has_owner })
}

/// A key of an entry as it stands on a command line.
fn argument(kind: &ProviderKind, key: &str, value: &Value) -> Result<Vec<String>, String> {
    let flag = key.replace('_', "-");
    if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == flag) {
        return Err(format!("`{key}` cannot stand in an entry: {why}"));
    }
    let command = EntryFlags::command();
    let known = command.get_arguments().find(|argument| argument.get_long() == Some(&flag));
    let known = known.ok_or_else(|| {
        format!("`{key}` is not a key of an entry: neither providers nor planning have a flag --{flag}")
    })?;
    let is_switch = !known.get_action().takes_values();
    if is_switch != value.is_boolean() {
        let takes = if is_switch { "true or false" } else { "a text, a number, or a list of these" };
        return Err(format!("`{key}` takes {takes}"));
    }
    let is_secret = kind.settings.iter().any(|s| s.name == flag && matches!(s.kind, SettingKind::Secret { .. }));
    if is_secret || flag == "txt-encrypt-aes-key" {
        return Err(format!("`{key}` would be a secret in a settings file: name a file with `{flag}-file`"));
    }
    match value {
        Value::Bool(true) => Ok(vec![format!("--{flag}")]),
        Value::Bool(false) => Ok(Vec::new()),
        Value::Array(_) | Value::String(_) | Value::Number(_) => {
            Ok(words(value).iter().map(|word| format!("--{flag}={word}")).collect())
        }
        Value::Null | Value::Object(_) => Err(format!("`{key}` takes a text, a number, or a list of these")),
    }
}

/// The key `zones` of an entry.
fn zones_of(kind: &ProviderKind, entry: &Map<String, Value>) -> Result<Vec<String>, String> {
    let Some(value) = entry.get("zones") else { return Ok(Vec::new()) };
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
    if !is_text(value) && !value.as_array().is_some_and(|zones| zones.iter().all(is_text)) {
        return Err("`zones` takes the names of zones, as a list".to_owned());
    }
    let own = kind.zones.map(|setting| setting.name);
    match entry.keys().find(|key| own == Some(&*key.replace('_', "-"))) {
        Some(twice) => Err(format!("`zones` and `{twice}` say the same: keep `zones`")),
        None => Ok(words(value)),
    }
}

fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.split(',').map(|word| word.trim().to_owned()).collect(),
        Value::Number(number) => vec![number.to_string()],
        Value::Array(items) => items.iter().flat_map(words).collect(),
        Value::Bool(flag) => vec![flag.to_string()],
        Value::Null | Value::Object(_) => Vec::new(),
    }
}

fn lower(zones: Vec<String>) -> Vec<Str> {
    zones.iter().map(|zone| zone.trim_end_matches('.').to_ascii_lowercase().into()).collect()
}

/// The first line of what clap says, without its prefix.
fn plain(error: &clap::Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

fn is_name(name: &str) -> bool {
    let is_plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    is_plain && (1..=63).contains(&name.len()) && !name.starts_with('-') && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(further: Value) -> Result<ProviderList, String> {
        parse(&serde_json::json!({"default": null, "further": further}).to_string())
    }

    #[test]
    fn an_entry_is_a_provider_with_flags_of_its_own() {
        let further = serde_json::json!([
            {"name": "public", "kind": "rfc2136", "zones": ["Example.com."], "rfc2136-host": ["192.0.2.1"]},
            {"name": "private", "kind": "rfc2136", "rfc2136-zone": "example.com,internal", "rfc2136-host": "192.0.2.2",
             "rfc2136-insecure": true, "txt-owner-id": "own"},
        ]);
        let list = list(further).unwrap();
        let zones: Vec<_> = list.further.iter().map(|provider| provider.zones.join(" ")).collect();
        assert_eq!(zones, ["example.com", "example.com internal"]);
        let further = FurtherProviders { list: Some(list) };
        let all = further.with(&all_flags(&[]).provider, &all_flags(&["--txt-owner-id", "east"]).planning).unwrap();
        let owners: Vec<_> = all.iter().map(|provider| provider.planning.owner().to_owned()).collect();
        assert_eq!(owners, ["east-public", "own"], "no two have one owner id unless somebody says so");
        let words = ["--provider", "rfc2136", "--rfc2136-host", "a", "--rfc2136-zone", "example.net"];
        let all = further.with(&all_flags(&words).provider, &all_flags(&[]).planning).unwrap();
        assert_eq!(all.iter().map(|provider| &*provider.name).collect::<Vec<_>>(), ["default", "public", "private"]);
        let embedded = all_flags(&["--provider", "embedded"]).provider;
        assert!(further.with(&embedded, &all_flags(&[]).planning).is_err());
    }

    fn all_flags(words: &[&str]) -> EntryFlags {
        EntryFlags::try_parse_from(words).unwrap()
    }

    #[test]
    fn what_cannot_be_acted_upon_is_refused_with_the_entry_and_the_fix() {
        let rows = [
            (serde_json::json!({}), "list of providers"),
            (serde_json::json!([1]), "[0] is not a mapping"),
            (serde_json::json!([{"kind": "rfc2136"}]), "add `name`"),
            (serde_json::json!([{"name": "A b", "kind": "rfc2136"}]), "lower-case letters"),
            (serde_json::json!([{"name": "default", "kind": "rfc2136"}]), "choose another"),
            (serde_json::json!([{"name": "a"}]), "`a`: `kind` is missing"),
            (serde_json::json!([{"name": "a", "kind": "embedded"}]), "`a`: `kind` must be"),
            (serde_json::json!([{"name": "a", "kind": "webhook"}, {"name": "a", "kind": "webhook"}]), "`a` twice"),
            (serde_json::json!([{"name": "a", "kind": "rfc2136", "state-dir": "x"}]), "once for all providers"),
            (serde_json::json!([{"name": "a", "kind": "rfc2136", "rfc2136-hots": "x"}]), "--rfc2136-hots"),
            (serde_json::json!([{"name": "a", "kind": "rfc2136", "rfc2136-host": {}}]), "takes a text"),
            (serde_json::json!([{"name": "a", "kind": "rfc2136", "rfc2136-hots": false}]), "--rfc2136-hots"),
            (serde_json::json!([{"name": "a", "kind": "rfc2136", "rfc2136-hots": []}]), "--rfc2136-hots"),
            (serde_json::json!([{"name": "a", "kind": "rfc2136", "txt-prefix": false}]), "takes a text"),
            (serde_json::json!([{"name": "a", "kind": "rfc2136", "dry-run": "yes"}]), "takes true or false"),
            (serde_json::json!([{"name": "a", "kind": "rfc2136", "confirm-deletes": true}]), "once for all providers"),
            (serde_json::json!([{"name": "a", "kind": "rfc2136", "provider": "webhook"}]), "as `kind`"),
            (serde_json::json!([{"name": "a", "kind": "rfc2136", "zones": {}}]), "names of zones"),
            (
                serde_json::json!([{"name": "a", "kind": "rfc2136", "zones": ["b"], "rfc2136-zone": "c"}]),
                "keep `zones`",
            ),
            (
                serde_json::json!([{"name": "a", "kind": "webhook", "rfc2136-host": "c"}]),
                "flag of the provider rfc2136",
            ),
        ];
        for (further, named) in rows {
            let error = list(further.clone()).unwrap_err();
            assert!(error.contains(named), "{further}: {error}");
        }
        let secret = serde_json::json!([{"name": "a", "kind": "rfc2136", "rfc2136-tsig-secret": "canary"}]);
        let error = list(secret).unwrap_err();
        assert!(error.contains("rfc2136-tsig-secret-file") && !error.contains("canary"), "{error}");
    }
}
