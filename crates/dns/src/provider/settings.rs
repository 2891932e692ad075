//! The settings of a provider as data: what it declares, and the values that it is opened with.
//!
//! Flags, environment variables, settings-file keys, help and documentation are made from the declarations elsewhere. Nothing
//! here parses a command line, reads a file, or knows a provider.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One declared setting: a flag, an environment variable and a settings-file key of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The flag without its dashes, such as `rfc2136-host`; no two providers declare the same.
    pub name: &'static str,
    /// What stands for the value in help; empty for a switch.
    pub value_name: &'static str,
    /// What it is for, in one line, without the default.
    pub help: &'static str,
    /// What holds where it is not given, as help shows it.
    pub default: Option<&'static str>,
    /// What it takes.
    pub kind: SettingKind,
}

/// What a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// Nothing: it is on or off.
    Switch,
    /// A text.
    Text,
    /// Several texts, by repetition or with commas between them.
    List,
    /// The number of a port.
    Port,
    /// Seconds, or a duration as Go writes it.
    Duration,
    /// The path of a file.
    File,
    /// A text that is never shown. A second flag, with `-file` at its end, takes the path of a file that holds it.
    Secret {
        /// What the second flag is for, in one line.
        file_help: &'static str,
    },
}

impl Setting {
    const fn new(name: &'static str, value_name: &'static str, help: &'static str, kind: SettingKind) -> Setting {
        Setting { name, value_name, help, default: None, kind }
    }

    /// On or off.
    pub const fn switch(name: &'static str, help: &'static str) -> Setting {
        Setting::new(name, "", help, SettingKind::Switch)
    }

    /// A text.
    pub const fn text(name: &'static str, value_name: &'static str, help: &'static str) -> Setting {
        Setting::new(name, value_name, help, SettingKind::Text)
    }

    /// Several texts.
    pub const fn list(name: &'static str, value_name: &'static str, help: &'static str) -> Setting {
        Setting::new(name, value_name, help, SettingKind::List)
    }

    /// The number of a port.
    pub const fn port(name: &'static str, help: &'static str) -> Setting {
        Setting::new(name, "PORT", help, SettingKind::Port)
    }

    /// A duration.
    pub const fn duration(name: &'static str, help: &'static str) -> Setting {
        Setting::new(name, "DURATION", help, SettingKind::Duration)
    }

    /// The path of a file.
    pub const fn file(name: &'static str, help: &'static str) -> Setting {
        Setting::new(name, "FILE", help, SettingKind::File)
    }

    /// A secret, as it is or in a file.
    pub const fn secret(name: &'static str, help: &'static str, file_help: &'static str) -> Setting {
        Setting::new(name, "SECRET", help, SettingKind::Secret { file_help })
    }

    /// The same setting, with what help shows as its default.
    pub const fn with_default(mut self, default: &'static str) -> Setting {
        self.default = Some(default);
        self
    }
}

/// The values that a provider is opened with; a setting that is not given has none.
#[derive(Clone, Debug, Default)]
pub struct ProviderSettings {
    /// How long one question to the provider may take, where that is said.
    pub timeout: Option<Duration>,
    /// The domains that publication is limited to.
    pub domains: Vec<String>,
    values: BTreeMap<&'static str, SettingValue>,
}

/// The value of one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingValue {
    /// A switch that is on.
    On,
    /// A text.
    Text(String),
    /// Several texts.
    List(Vec<String>),
    /// The number of a port.
    Port(u16),
    /// A duration.
    Duration(Duration),
    /// The path of a file.
    File(PathBuf),
    /// A secret.
    Secret(SecretText),
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText {
    text: String,
    /// The file that it was read from.
    file: Option<PathBuf>,
}

impl ProviderSettings {
    /// Gives a setting its value.
    pub fn set(&mut self, setting: &Setting, value: SettingValue) {
        self.values.insert(setting.name, value);
    }

    /// Whether a switch is on.
    pub fn is_on(&self, setting: &Setting) -> bool {
        matches!(self.values.get(setting.name), Some(SettingValue::On))
    }

    /// The value of a text.
    pub fn text(&self, setting: &Setting) -> Option<&str> {
        match self.values.get(setting.name) {
            Some(SettingValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The values of a list.
    pub fn list(&self, setting: &Setting) -> &[String] {
        match self.values.get(setting.name) {
            Some(SettingValue::List(texts)) => texts,
            _ => &[],
        }
    }

    /// The number of a port.
    pub fn port(&self, setting: &Setting) -> Option<u16> {
        match self.values.get(setting.name) {
            Some(SettingValue::Port(port)) => Some(*port),
            _ => None,
        }
    }

    /// The value of a duration.
    pub fn duration(&self, setting: &Setting) -> Option<Duration> {
        match self.values.get(setting.name) {
            Some(SettingValue::Duration(duration)) => Some(*duration),
            _ => None,
        }
    }

    /// The path of a file.
    pub fn file(&self, setting: &Setting) -> Option<&Path> {
        match self.values.get(setting.name) {
            Some(SettingValue::File(path)) => Some(path),
            _ => None,
        }
    }

    /// The value of a secret.
    pub fn secret(&self, setting: &Setting) -> Option<&SecretText> {
        match self.values.get(setting.name) {
            Some(SettingValue::Secret(text)) => Some(text),
            _ => None,
        }
    }
}

impl SecretText {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> SecretText {
        SecretText { text: text.into(), file: None }
    }

    /// A text that was read from a file, which messages may name.
    pub fn of_file(text: impl Into<String>, file: &Path) -> SecretText {
        SecretText { file: Some(file.to_owned()), ..SecretText::new(text) }
    }

    /// A part of the text, from the same place.
    pub fn part(&self, text: &str) -> SecretText {
        SecretText { text: text.to_owned(), file: self.file.clone() }
    }

    /// The flag by which a setting got it, with the path of the file, for messages.
    pub fn flag(&self, setting: &str) -> String {
        match &self.file {
            Some(file) => format!("--{setting}-file {}", file.display()),
            None => format!("--{setting}"),
        }
    }

    /// The text itself, for who signs with it.
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
