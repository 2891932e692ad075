//! The command-line arguments of providers, made from the registry, and the values read back from them.
//!
//! A declared setting becomes a flag, a `GATEPOST_…` variable and, through the flag's id, a key of the settings file. Nothing here
//! knows a provider by name.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use gatepost_dns::provider::kind::{DEFAULT_TIMEOUT, ProviderAccess, ProviderKind};
use gatepost_dns::provider::settings::{Setting, SettingKind, SettingValue};
use gatepost_dns::providers::{PROVIDERS, find};

use super::super::secret::SecretFlag;
use super::duration;

/// A setting that was given, with the kind of provider that declares it.
#[derive(Clone, Debug)]
pub(super) struct GivenSetting {
    /// Which kind takes it.
    pub(super) kind: &'static ProviderKind,
    /// What was declared.
    pub(super) setting: &'static Setting,
    /// What was given.
    pub(super) value: GivenValue,
}

/// What was given for a setting.
#[derive(Clone, Debug)]
pub(super) enum GivenValue {
    /// A value that is used as it is.
    Plain(SettingValue),
    /// A secret: itself, or the file that holds it. At least one is there.
    Secret {
        /// The secret itself.
        text: Option<SecretFlag>,
        /// The file.
        file: Option<PathBuf>,
    },
}

impl GivenSetting {
    /// The flag that was given.
    pub(super) fn flag(&self) -> String {
        match &self.value {
            GivenValue::Secret { text: None, .. } => format!("--{}-file", self.setting.name),
            _ => format!("--{}", self.setting.name),
        }
    }
}

/// The value of `--provider`: a name of the registry, shown with what it is.
pub(in crate::cli) fn described_kind() -> impl TypedValueParser<Value = &'static ProviderKind> {
    kind_parser(|kind| PossibleValue::new(kind.name).help(kind.summary))
}

/// The same, shown by name only.
pub(in crate::cli) fn named_kind() -> impl TypedValueParser<Value = &'static ProviderKind> {
    kind_parser(|kind| PossibleValue::new(kind.name))
}

fn kind_parser(shown: fn(&ProviderKind) -> PossibleValue) -> impl TypedValueParser<Value = &'static ProviderKind> {
    let names = PossibleValuesParser::new(PROVIDERS.iter().map(|kind| shown(kind)));
    names.try_map(|name| find(&name).ok_or_else(|| format!("there is no provider `{name}`")))
}

/// What `--provider-timeout` is for, with the defaults of all kinds.
pub(super) fn timeout_help() -> String {
    let seconds = |timeout: Duration| format!("{}s", timeout.as_secs());
    let mut defaults = vec![seconds(DEFAULT_TIMEOUT)];
    defaults.extend(PROVIDERS.iter().filter_map(|kind| match kind.access {
        ProviderAccess::Network { timeout, .. } if timeout != DEFAULT_TIMEOUT => {
            Some(format!("{} {}", kind.name, seconds(timeout)))
        }
        _ => None,
    }));
    format!("How long one question to the provider may take: `10s`, `1m` [default: {}]", defaults.join("; "))
}

/// The arguments that the kinds declare for which a question holds.
pub(super) fn declared(holds: fn(&ProviderKind) -> bool) -> Vec<Arg> {
    let kinds = PROVIDERS.iter().filter(|kind| holds(kind));
    kinds.flat_map(|kind| kind.settings).flat_map(arguments).collect()
}

/// What was given of all that the kinds declare.
pub(super) fn given(matches: &ArgMatches) -> Vec<GivenSetting> {
    let declared = PROVIDERS.iter().flat_map(|kind| kind.settings.iter().map(move |setting| (*kind, setting)));
    let given = declared.filter_map(|(kind, setting)| {
        let value = value(setting, matches)?;
        Some(GivenSetting { kind, setting, value })
    });
    given.collect()
}

fn arguments(setting: &Setting) -> Vec<Arg> {
    let help = match setting.default {
        Some(default) => format!("{} [default: {default}]", setting.help),
        None => setting.help.to_owned(),
    };
    let valued = || argument(setting.name.to_owned(), help.clone()).value_name(setting.value_name);
    match setting.kind {
        SettingKind::Switch => vec![argument(setting.name.to_owned(), help).action(ArgAction::SetTrue)],
        SettingKind::Text => vec![valued()],
        SettingKind::List => vec![valued().action(ArgAction::Append).value_delimiter(',')],
        SettingKind::Port => vec![valued().value_parser(value_parser!(u16))],
        SettingKind::Duration => vec![valued().value_parser(duration)],
        SettingKind::File => vec![valued().value_parser(value_parser!(PathBuf))],
        SettingKind::Secret { file_help } => {
            let secret = valued().value_parser(SecretFlag::parse).hide_env_values(true).hide_default_value(true);
            let file = argument(file_name(setting), file_help.to_owned()).value_name("FILE");
            vec![secret, file.value_parser(value_parser!(PathBuf))]
        }
    }
}

fn argument(name: String, help: String) -> Arg {
    let variable = format!("GATEPOST_{}", id(&name).to_ascii_uppercase());
    Arg::new(id(&name)).long(name).help(help).env(variable)
}

fn value(setting: &Setting, matches: &ArgMatches) -> Option<GivenValue> {
    let id = id(setting.name);
    let plain = match setting.kind {
        SettingKind::Switch => matches.get_flag(&id).then_some(SettingValue::On)?,
        SettingKind::Text => SettingValue::Text(matches.get_one::<String>(&id)?.clone()),
        SettingKind::List => SettingValue::List(matches.get_many::<String>(&id)?.cloned().collect()),
        SettingKind::Port => SettingValue::Port(*matches.get_one(&id)?),
        SettingKind::Duration => SettingValue::Duration(*matches.get_one(&id)?),
        SettingKind::File => SettingValue::File(matches.get_one::<PathBuf>(&id)?.clone()),
        SettingKind::Secret { .. } => {
            let text = matches.get_one::<SecretFlag>(&id).cloned();
            let file = matches.get_one::<PathBuf>(&self::id(&file_name(setting))).cloned();
            return (text.is_some() || file.is_some()).then_some(GivenValue::Secret { text, file });
        }
    };
    Some(GivenValue::Plain(plain))
}

fn file_name(setting: &Setting) -> String {
    format!("{}-file", setting.name)
}

/// The id of a flag, by which the settings file finds it.
fn id(name: &str) -> String {
    name.replace('-', "_")
}
