//! What `rfc2136` declares: its flags, and how the values given become its configuration.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Authority, Clock, DEFAULT_PORT, KeyConfig, Rfc2136, system_time, with_port};
use crate::provider::kind::{DEFAULT_TIMEOUT, ProviderAccess, ProviderKind};
use crate::provider::settings::{ProviderSettings, Setting};
use crate::provider::{ProviderError, Result};

/// The port of DNS over TLS.
const TLS_PORT: u16 = 853;

const HOST: Setting = Setting::list(
    "rfc2136-host",
    "HOST",
    "rfc2136: a server, with or without a port; may be repeated, they are tried in order",
);
const PORT: Setting =
    Setting::port("rfc2136-port", "rfc2136: the port of hosts that name none").with_default("53; with TLS 853");
const ZONE: Setting = Setting::list("rfc2136-zone", "ZONE", "rfc2136: a zone; may be repeated");
const TSIG_KEYNAME: Setting = Setting::text("rfc2136-tsig-keyname", "NAME", "rfc2136: the name of the TSIG key");
const TSIG_SECRET: Setting = Setting::secret(
    super::key::TSIG_SECRET,
    "rfc2136: the secret of the TSIG key in base64; others on this machine see it here, so rather use the file",
    "rfc2136: a file with the secret of the TSIG key in base64, or a key file of BIND with its name and algorithm",
);
const TSIG_SECRET_ALG: Setting = Setting::text(
    "rfc2136-tsig-secret-alg",
    "ALGORITHM",
    "rfc2136: hmac-sha256, hmac-sha384, hmac-sha512, or hmac-sha1 for old servers",
)
.with_default("hmac-sha256");
const AXFR: Setting = Setting::switch(
    "rfc2136-axfr",
    "rfc2136: accepted for compatibility with external-dns; zones are always read by transfer",
);
const INSECURE: Setting = Setting::switch("rfc2136-insecure", "rfc2136: talk without a key");
const USE_TLS: Setting = Setting::switch("rfc2136-use-tls", "rfc2136: talk over TLS");
const MIN_TTL: Setting =
    Setting::duration("rfc2136-min-ttl", "rfc2136: no record is written with a lower TTL: `300`, `5m`");
const TLS_CA: Setting =
    Setting::file("tls-ca", "A PEM file with the CA certificates that the server's certificate must chain to")
        .with_default("the CA certificates of the system");

/// The kind, for the registry.
pub const KIND: ProviderKind = ProviderKind {
    settings: &[HOST, PORT, ZONE, TSIG_KEYNAME, TSIG_SECRET, TSIG_SECRET_ALG, AXFR, INSECURE, USE_TLS, MIN_TTL, TLS_CA],
    zones: Some(ZONE),
    name_servers,
    ..ProviderKind::new(
        "rfc2136",
        "A DNS server that takes dynamic updates: BIND, Knot, PowerDNS, Windows",
        ProviderAccess::Network {
            open: |settings| Ok(Arc::new(Rfc2136::new(Rfc2136Config::from_settings(settings)?)?)),
            timeout: DEFAULT_TIMEOUT,
        },
    )
};

/// The settings of this provider.
#[derive(Clone)]
pub struct Rfc2136Config {
    /// Servers in the order in which they are tried: names or addresses, with or without a port.
    pub hosts: Vec<String>,
    /// The port of hosts that name none.
    pub port: u16,
    /// The zones.
    pub zones: Vec<String>,
    /// The key that signs.
    pub key: Option<KeyConfig>,
    /// Whether to talk without a key.
    pub insecure: bool,
    /// No record is written with a lower TTL.
    pub min_ttl: u32,
    /// Whether to use TLS, and the authorities that are trusted then.
    pub tls: Option<Authority>,
    /// How long a connection, or one message of an answer, may take.
    pub timeout: Duration,
    /// The clock for signatures.
    pub clock: Clock,
}

impl Default for Rfc2136Config {
    fn default() -> Self {
        Rfc2136Config {
            hosts: Vec::new(),
            port: DEFAULT_PORT,
            zones: Vec::new(),
            key: None,
            insecure: false,
            min_ttl: 0,
            tls: None,
            timeout: DEFAULT_TIMEOUT,
            clock: Arc::new(system_time),
        }
    }
}

impl Rfc2136Config {
    /// The configuration that settings amount to; what does not go together is refused with the flag to set.
    fn from_settings(settings: &ProviderSettings) -> Result<Rfc2136Config> {
        let min_ttl = settings.duration(&MIN_TTL).unwrap_or_default();
        Ok(Rfc2136Config {
            tls: authority(settings)?,
            hosts: settings.list(&HOST).to_vec(),
            port: port(settings),
            zones: settings.list(&ZONE).to_vec(),
            key: key(settings)?,
            insecure: settings.is_on(&INSECURE),
            min_ttl: u32::try_from(min_ttl.as_secs()).unwrap_or(u32::MAX),
            timeout: settings.timeout.unwrap_or(DEFAULT_TIMEOUT),
            clock: Arc::new(system_time),
        })
    }
}

impl fmt::Debug for Rfc2136Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Rfc2136Config");
        shown.field("hosts", &self.hosts).field("port", &self.port).field("zones", &self.zones).field("key", &self.key);
        shown.field("insecure", &self.insecure).field("min_ttl", &self.min_ttl);
        shown.field("tls", &self.tls).field("timeout", &self.timeout);
        shown.finish_non_exhaustive()
    }
}

fn port(settings: &ProviderSettings) -> u16 {
    let default = if settings.is_on(&USE_TLS) { TLS_PORT } else { DEFAULT_PORT };
    settings.port(&PORT).unwrap_or(default)
}

/// The servers, with the ports where they answer questions without TLS.
fn name_servers(settings: &ProviderSettings) -> Vec<String> {
    let port = if settings.is_on(&USE_TLS) { DEFAULT_PORT } else { port(settings) };
    settings.list(&HOST).iter().map(|host| with_port(host, port)).collect()
}

fn authority(settings: &ProviderSettings) -> Result<Option<Authority>> {
    match (settings.is_on(&USE_TLS), settings.file(&TLS_CA)) {
        (false, Some(_)) => {
            Err(ProviderError::settings("--tls-ca has an effect only with TLS to the server: add --rfc2136-use-tls"))
        }
        (false, None) => Ok(None),
        (true, Some(path)) => Ok(Some(Authority::File(path.to_owned()))),
        (true, None) => Ok(Some(Authority::System)),
    }
}

fn key(settings: &ProviderSettings) -> Result<Option<KeyConfig>> {
    let algorithm = settings.text(&TSIG_SECRET_ALG);
    let file = settings.secret(&TSIG_SECRET).and_then(KeyConfig::of_key_file);
    if let Some(file) = file {
        return of_key_file(file, settings.text(&TSIG_KEYNAME), algorithm).map(Some);
    }
    match (settings.text(&TSIG_KEYNAME), settings.secret(&TSIG_SECRET)) {
        (Some(name), Some(secret)) => {
            let key = KeyConfig::new(name, "", algorithm.unwrap_or_default());
            Ok(Some(KeyConfig { secret: secret.part(secret.reveal().trim()), ..key }))
        }
        (Some(_), None) => Err(ProviderError::settings(
            "--rfc2136-tsig-keyname needs the secret of the key: add --rfc2136-tsig-secret-file",
        )),
        (None, Some(secret)) => {
            let flag = secret.flag(TSIG_SECRET.name);
            Err(ProviderError::settings(format!("{flag} needs the name of the key: add --rfc2136-tsig-keyname")))
        }
        (None, None) if algorithm.is_some() => Err(ProviderError::settings(
            "--rfc2136-tsig-secret-alg needs a key: add --rfc2136-tsig-keyname and --rfc2136-tsig-secret-file",
        )),
        (None, None) => Ok(None),
    }
}

/// The key of a key file; flags beside it must say the same.
fn of_key_file(file: KeyConfig, name: Option<&str>, algorithm: Option<&str>) -> Result<KeyConfig> {
    let same = |given: &str, own: &str| given.trim_end_matches('.').eq_ignore_ascii_case(own.trim_end_matches('.'));
    if let Some(name) = name.filter(|name| !same(name, &file.name)) {
        let own = &file.name;
        return Err(ProviderError::settings(format!(
            "--rfc2136-tsig-keyname is `{name}`, and the key in --rfc2136-tsig-secret-file is `{own}`: leave the flag out"
        )));
    }
    match algorithm.filter(|algorithm| !same(algorithm, &file.algorithm)) {
        Some(algorithm) if !file.algorithm.is_empty() => Err(ProviderError::settings(format!(
            "--rfc2136-tsig-secret-alg is `{algorithm}`, and the key in --rfc2136-tsig-secret-file has `{}`: leave the \
             flag out",
            file.algorithm
        ))),
        Some(algorithm) => Ok(KeyConfig { algorithm: algorithm.to_owned(), ..file }),
        None => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::settings::{SecretText, SettingValue};

    fn settings(values: &[(Setting, SettingValue)]) -> ProviderSettings {
        let mut settings = ProviderSettings::default();
        values.iter().for_each(|(setting, value)| settings.set(setting, value.clone()));
        settings
    }

    #[test]
    fn a_key_file_brings_name_and_algorithm() {
        let secret = SecretText::new("key gatepost { algorithm hmac-sha512; secret \"c2VjcmV0\"; };");
        let file = || (TSIG_SECRET, SettingValue::Secret(secret.clone()));
        let text = |setting: Setting, text: &str| (setting, SettingValue::Text(text.to_owned()));
        let found = key(&settings(&[file(), text(TSIG_KEYNAME, "gatepost.")])).unwrap().unwrap();
        assert_eq!((&*found.name, &*found.algorithm), ("gatepost", "hmac-sha512"));
        let table = [(TSIG_KEYNAME, "other"), (TSIG_SECRET_ALG, "hmac-sha256")];
        for (setting, value) in table {
            let error = key(&settings(&[file(), text(setting, value)])).unwrap_err().to_string();
            assert!(error.contains(value) && error.contains("--rfc2136-tsig-secret-file"), "{error}");
        }
    }

    #[test]
    fn ports_follow_the_transport() {
        let hosts = |names: &[&str]| (HOST, SettingValue::List(names.iter().map(|name| (*name).to_owned()).collect()));
        let (tls, odd) = ((USE_TLS, SettingValue::On), (PORT, SettingValue::Port(5353)));
        assert_eq!(name_servers(&settings(&[hosts(&["ns1", "ns2:54"])])), ["ns1:53", "ns2:54"]);
        assert_eq!(name_servers(&settings(&[hosts(&["ns1"]), tls.clone()])), ["ns1:53"]);
        assert_eq!(port(&settings(&[hosts(&["ns1"]), tls])), 853);
        assert_eq!(name_servers(&settings(&[hosts(&["ns1"]), odd])), ["ns1:5353"]);
    }
}
