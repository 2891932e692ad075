//! The flags that say where records are published: which provider, and how it is reached.
//!
//! Names and meaning as in external-dns, so that a command line carries over. A flag that does not go with the provider is
//! refused with what to do; a secret comes from a flag, a variable or a file, and is never shown.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use gatepost_core::model::Str;
use gatepost_core::publication::annotations::ttl;
use gatepost_dns::embedded::{self, Name, Server};
use gatepost_dns::provider::Shared;
use gatepost_dns::providers::embedded::{Authority, Embedded};
use gatepost_dns::providers::{self, rfc2136, webhook};

use crate::cli::Failure;

/// Where records are published.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Where records are published")]
pub(in crate::cli) struct ProviderFlags {
    /// Who publishes records
    #[arg(long, value_enum, env = "GATEPOST_PROVIDER")]
    provider: Option<ProviderFlag>,
    /// How long one question to the provider may take: `10s`, `1m` [default: 10s; webhook 15s]
    #[arg(long, value_name = "DURATION", value_parser = duration, env = "GATEPOST_PROVIDER_TIMEOUT")]
    provider_timeout: Option<Duration>,
    /// rfc2136: a server, with or without a port; may be repeated, they are tried in order
    #[arg(long, value_name = "HOST", env = "GATEPOST_RFC2136_HOST", value_delimiter = ',')]
    rfc2136_host: Vec<String>,
    /// rfc2136: the port of hosts that name none [default: 53; with TLS 853]
    #[arg(long, value_name = "PORT", env = "GATEPOST_RFC2136_PORT")]
    rfc2136_port: Option<u16>,
    /// rfc2136: a zone; may be repeated
    #[arg(long, value_name = "ZONE", env = "GATEPOST_RFC2136_ZONE", value_delimiter = ',')]
    rfc2136_zone: Vec<String>,
    /// rfc2136: the name of the TSIG key
    #[arg(long, value_name = "NAME", env = "GATEPOST_RFC2136_TSIG_KEYNAME")]
    rfc2136_tsig_keyname: Option<String>,
    /// rfc2136: the secret of the TSIG key in base64; others on this machine see it here, so rather use the file
    #[arg(long, value_name = "SECRET", value_parser = Secret::parse, env = "GATEPOST_RFC2136_TSIG_SECRET", hide_env_values = true, hide_default_value = true)]
    rfc2136_tsig_secret: Option<Secret>,
    /// rfc2136: a file with the secret of the TSIG key in base64
    #[arg(long, value_name = "FILE", env = "GATEPOST_RFC2136_TSIG_SECRET_FILE")]
    rfc2136_tsig_secret_file: Option<PathBuf>,
    /// rfc2136: hmac-sha256, hmac-sha384, hmac-sha512, or hmac-sha1 for old servers [default: hmac-sha256]
    #[arg(long, value_name = "ALGORITHM", env = "GATEPOST_RFC2136_TSIG_SECRET_ALG")]
    rfc2136_tsig_secret_alg: Option<String>,
    /// rfc2136: read zones by transfer; taken for the sake of external-dns command lines, it is always so
    #[arg(long, env = "GATEPOST_RFC2136_AXFR")]
    rfc2136_axfr: bool,
    /// rfc2136: talk without a key
    #[arg(long, env = "GATEPOST_RFC2136_INSECURE")]
    rfc2136_insecure: bool,
    /// rfc2136: talk over TLS
    #[arg(long, env = "GATEPOST_RFC2136_USE_TLS")]
    rfc2136_use_tls: bool,
    /// rfc2136: no record is written with a lower TTL: `300`, `5m`
    #[arg(long, value_name = "DURATION", value_parser = duration, env = "GATEPOST_RFC2136_MIN_TTL")]
    rfc2136_min_ttl: Option<Duration>,
    /// A file with the certificates, in PEM, of who vouches for the server [default: whom the system trusts]
    #[arg(long, value_name = "FILE", env = "GATEPOST_TLS_CA")]
    tls_ca: Option<PathBuf>,
    /// webhook: its address [default: http://localhost:8888]
    #[arg(long, value_name = "URL", env = "GATEPOST_WEBHOOK_PROVIDER_URL")]
    webhook_provider_url: Option<String>,
    /// Where runs remember what they wrote, and the embedded server keeps its zones
    #[arg(long, value_name = "DIR", env = "GATEPOST_STATE_DIR")]
    state_dir: Option<PathBuf>,
    /// embedded: a zone; may be repeated [default: the last two labels of each hostname]
    #[arg(long, value_name = "NAME", env = "GATEPOST_ZONE", value_delimiter = ',')]
    zone: Vec<String>,
}

/// The providers, by name.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum ProviderFlag {
    /// An authoritative DNS server inside this program
    Embedded,
    /// A DNS server that takes dynamic updates: BIND, Knot, PowerDNS, Windows
    Rfc2136,
    /// Any provider that speaks the webhook protocol of external-dns
    Webhook,
    /// DNSEndpoint objects for external-dns to carry on; only for `controller`
    Dnsendpoint,
}

/// A text that is never shown.
#[derive(Clone)]
pub(in crate::cli) struct Secret(String);

/// The largest file with a secret.
const LARGEST: u64 = 64 << 10;

/// The port of DNS over TLS.
const TLS_PORT: u16 = 853;

impl ProviderFlags {
    /// Which provider, if one is named.
    pub(in crate::cli) fn provider(&self) -> Option<ProviderFlag> {
        self.provider
    }

    /// The same flags for a command that has a provider of its own where none is named.
    pub(in crate::cli) fn or(mut self, provider: ProviderFlag) -> Self {
        self.provider.get_or_insert(provider);
        self
    }

    /// Where state is kept.
    pub(in crate::cli) fn state_dir(&self) -> Option<&Path> {
        self.state_dir.as_deref()
    }

    /// The zones that are named for the embedded server.
    pub(in crate::cli) fn zones(&self) -> Vec<Str> {
        self.zone.iter().map(|zone| zone.trim_end_matches('.').to_ascii_lowercase().into()).collect()
    }

    /// The zones that are named for rfc2136.
    pub(in crate::cli) fn rfc2136_zones(&self) -> Vec<Str> {
        self.rfc2136_zone.iter().map(|zone| zone.trim_end_matches('.').to_ascii_lowercase().into()).collect()
    }

    /// The servers that are named for rfc2136, with the ports where they answer questions without TLS.
    pub(in crate::cli) fn servers(&self) -> Vec<String> {
        let port = if self.rfc2136_use_tls { rfc2136::DEFAULT_PORT } else { self.port() };
        self.rfc2136_host.iter().map(|host| rfc2136::with_port(host, port)).collect()
    }

    /// Refuses flags that do not go with the provider.
    pub(in crate::cli) fn check(&self) -> Result<(), Failure> {
        for (flag, owner, is_given) in self.owners() {
            if is_given && self.provider != Some(owner) {
                let (name, other) = (owner.name(), self.provider.map(ProviderFlag::name));
                let fix = match other {
                    Some(other) => format!("and the provider is {other}: leave it out, or set --provider {name}"),
                    None => format!("and no provider is named: add --provider {name}"),
                };
                return Err(Failure::usage(format!("{flag} is a flag of the provider {name}, {fix}")));
            }
        }
        if self.tls_ca.is_some() && !self.rfc2136_use_tls {
            return Err(Failure::usage("--tls-ca says who vouches for a server over TLS: add --rfc2136-use-tls"));
        }
        Ok(())
    }

    /// The provider of the network that is named; nothing is asked of it yet. `domains` are those of `--domain-filter`.
    pub(in crate::cli) fn open(&self, domains: &[String]) -> Result<Shared, Failure> {
        self.check()?;
        let name = match self.provider {
            Some(ProviderFlag::Rfc2136) => "rfc2136",
            Some(ProviderFlag::Webhook) => "webhook",
            Some(ProviderFlag::Dnsendpoint) => {
                return Err(Failure::usage(
                    "--provider dnsendpoint writes objects of a cluster: only `controller` has it",
                ));
            }
            Some(ProviderFlag::Embedded) | None => return Err(Failure::usage("--provider must be rfc2136 or webhook")),
        };
        let settings = providers::Settings { rfc2136: self.rfc2136()?, webhook: self.webhook(domains) };
        providers::open(name, &settings).map_err(|error| Failure::usage(error.to_string()))
    }

    /// The embedded server as it would be started with what it kept; `listen` is where it answers.
    pub(in crate::cli) fn embedded(&self, listen: SocketAddr, keeps: bool) -> Result<Arc<Server>, Failure> {
        self.check()?;
        let mut config = embedded::Config::new(listen);
        match &self.state_dir {
            Some(directory) if keeps => config.state_directory = Some(directory.clone()),
            Some(directory) => {
                let kept = embedded::state::load(directory);
                config.zones = kept.map_err(|error| Failure::Unreadable(anyhow::anyhow!(error)))?.unwrap_or_default();
            }
            None => {}
        }
        let server = Server::start(config);
        server.map(Arc::new).map_err(|error| Failure::usage(format!("--dns-addr {listen}: {error}")))
    }

    fn owners(&self) -> Vec<(&'static str, ProviderFlag, bool)> {
        use ProviderFlag::{Embedded, Rfc2136, Webhook};
        vec![
            ("--rfc2136-host", Rfc2136, !self.rfc2136_host.is_empty()),
            ("--rfc2136-port", Rfc2136, self.rfc2136_port.is_some()),
            ("--rfc2136-zone", Rfc2136, !self.rfc2136_zone.is_empty()),
            ("--rfc2136-tsig-keyname", Rfc2136, self.rfc2136_tsig_keyname.is_some()),
            ("--rfc2136-tsig-secret", Rfc2136, self.rfc2136_tsig_secret.is_some()),
            ("--rfc2136-tsig-secret-file", Rfc2136, self.rfc2136_tsig_secret_file.is_some()),
            ("--rfc2136-tsig-secret-alg", Rfc2136, self.rfc2136_tsig_secret_alg.is_some()),
            ("--rfc2136-axfr", Rfc2136, self.rfc2136_axfr),
            ("--rfc2136-insecure", Rfc2136, self.rfc2136_insecure),
            ("--rfc2136-use-tls", Rfc2136, self.rfc2136_use_tls),
            ("--rfc2136-min-ttl", Rfc2136, self.rfc2136_min_ttl.is_some()),
            ("--tls-ca", Rfc2136, self.tls_ca.is_some()),
            ("--webhook-provider-url", Webhook, self.webhook_provider_url.is_some()),
            ("--zone", Embedded, !self.zone.is_empty()),
        ]
    }

    fn rfc2136(&self) -> Result<rfc2136::Config, Failure> {
        let usual = rfc2136::Config::default();
        let authority = || match &self.tls_ca {
            Some(path) => rfc2136::Authority::File(path.clone()),
            None => rfc2136::Authority::System,
        };
        Ok(rfc2136::Config {
            hosts: self.rfc2136_host.clone(),
            port: self.port(),
            zones: self.rfc2136_zone.clone(),
            key: self.key()?,
            insecure: self.rfc2136_insecure,
            min_ttl: self.rfc2136_min_ttl.map_or(0, |ttl| u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX)),
            tls: self.rfc2136_use_tls.then(authority),
            timeout: self.provider_timeout.unwrap_or(usual.timeout),
            ..usual
        })
    }

    fn port(&self) -> u16 {
        self.rfc2136_port.unwrap_or(if self.rfc2136_use_tls { TLS_PORT } else { rfc2136::DEFAULT_PORT })
    }

    fn key(&self) -> Result<Option<rfc2136::KeyConfig>, Failure> {
        let secret = secret("--rfc2136-tsig-secret", &self.rfc2136_tsig_secret, &self.rfc2136_tsig_secret_file)?;
        match (&self.rfc2136_tsig_keyname, secret) {
            (Some(name), Some(secret)) => {
                let algorithm = self.rfc2136_tsig_secret_alg.as_deref().unwrap_or_default();
                let text = String::from_utf8_lossy(&secret);
                Ok(Some(rfc2136::KeyConfig::new(name, text.trim(), algorithm)))
            }
            (Some(_), None) => Err(Failure::usage(
                "--rfc2136-tsig-keyname needs the secret of the key: add --rfc2136-tsig-secret-file",
            )),
            (None, Some(_)) => {
                Err(Failure::usage("--rfc2136-tsig-secret needs the name of the key: add --rfc2136-tsig-keyname"))
            }
            (None, None) if self.rfc2136_tsig_secret_alg.is_some() => Err(Failure::usage(
                "--rfc2136-tsig-secret-alg needs a key: add --rfc2136-tsig-keyname and --rfc2136-tsig-secret-file",
            )),
            (None, None) => Ok(None),
        }
    }

    fn webhook(&self, domains: &[String]) -> webhook::Config {
        let usual = webhook::Config::default();
        webhook::Config {
            url: self.webhook_provider_url.clone().unwrap_or(usual.url),
            zones: domains.to_vec(),
            timeout: self.provider_timeout.unwrap_or(usual.timeout),
        }
    }
}

impl ProviderFlag {
    /// As it is written.
    pub(in crate::cli) fn name(self) -> &'static str {
        match self {
            ProviderFlag::Embedded => "embedded",
            ProviderFlag::Rfc2136 => "rfc2136",
            ProviderFlag::Webhook => "webhook",
            ProviderFlag::Dnsendpoint => "dnsendpoint",
        }
    }
}

impl Secret {
    /// Takes any text.
    pub(super) fn parse(text: &str) -> Result<Secret, String> {
        Ok(Secret(text.to_owned()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A secret from its flag or from a file; both at once is an error.
pub(super) fn secret(flag: &str, text: &Option<Secret>, file: &Option<PathBuf>) -> Result<Option<Vec<u8>>, Failure> {
    match (text, file) {
        (Some(_), Some(_)) => Err(Failure::usage(format!("{flag} and {flag}-file exclude each other: keep one"))),
        (Some(Secret(text)), None) => Ok(Some(text.clone().into_bytes())),
        (None, Some(path)) => {
            let failed = |error: String| Failure::usage(format!("{flag}-file {}: {error}", path.display()));
            let size = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
            if size > LARGEST {
                return Err(failed("is larger than 64 KiB, so it is no secret".to_owned()));
            }
            std::fs::read(path).map(Some).map_err(|error| failed(error.to_string()))
        }
        (None, None) => Ok(None),
    }
}

/// What every zone of the embedded server says of itself.
pub(in crate::cli) fn through(server: &Arc<Server>) -> Result<Embedded, Failure> {
    let name = |text| Name::parse(text).map_err(|error| Failure::usage(error.to_string()));
    let authority = Authority {
        server: name("ns.gatepost.invalid")?,
        mailbox: name("hostmaster.gatepost.invalid")?,
        negative_ttl: 30,
    };
    Ok(Embedded::new(server.clone(), authority))
}

/// Seconds, or a duration as Go writes it.
pub(in crate::cli) fn duration(text: &str) -> Result<Duration, String> {
    if matches!(text, "0" | "0s" | "0m" | "0h") {
        return Ok(Duration::ZERO);
    }
    ttl(text)
        .map(|seconds| Duration::from_secs(seconds.into()))
        .map_err(|_| "write seconds (`10`) or a duration (`10s`, `1m30s`), at least one second".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::{FromArgMatches, Parser};

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        provider: ProviderFlags,
    }

    fn flags(words: &[&str]) -> ProviderFlags {
        let matches = <Line as clap::CommandFactory>::command().no_binary_name(true).get_matches_from(words);
        Line::from_arg_matches(&matches).unwrap().provider
    }

    fn refused(words: &[&str]) -> String {
        flags(words).open(&[]).map_or_else(|failure| format!("{failure:?}"), |provider| format!("opened {provider:?}"))
    }

    const SERVER: [&str; 6] = ["--provider", "rfc2136", "--rfc2136-host", "192.0.2.1", "--rfc2136-zone", "example.com"];

    #[test]
    fn what_does_not_go_together_names_the_flag_and_the_fix() {
        let rows: [(&[&str], &str); 11] = [
            (&["--rfc2136-host", "ns1"], "add --provider rfc2136"),
            (&["--provider", "webhook", "--rfc2136-zone", "a"], "set --provider rfc2136"),
            (&["--provider", "rfc2136", "--webhook-provider-url", "http://x"], "set --provider webhook"),
            (&["--provider", "rfc2136"], "--rfc2136-host"),
            (&["--provider", "rfc2136", "--rfc2136-host", "a"], "--rfc2136-zone"),
            (&SERVER, "--rfc2136-insecure"),
            (&[&SERVER[..], &["--rfc2136-tsig-keyname", "k"]].concat(), "--rfc2136-tsig-secret-file"),
            (&[&SERVER[..], &["--rfc2136-tsig-secret", "c2VjcmV0"]].concat(), "--rfc2136-tsig-keyname"),
            (&[&SERVER[..], &["--rfc2136-tsig-secret-alg", "hmac-sha1"]].concat(), "--rfc2136-tsig-keyname"),
            (&[&SERVER[..], &["--rfc2136-insecure", "--tls-ca", "x"]].concat(), "--rfc2136-use-tls"),
            (&["--provider", "webhook", "--webhook-provider-url", "https://x"], "--webhook-provider-url"),
        ];
        for (words, named) in rows {
            let error = refused(words);
            assert!(error.starts_with("Usage") && error.contains(named), "{words:?}: {error}");
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        let key = ["--rfc2136-tsig-keyname", "k", "--rfc2136-tsig-secret"];
        for secret in ["canary, no base64", "Y2FuYXJ5"] {
            let words = [&SERVER[..], &key, &[secret]].concat();
            let shown = format!("{:?} {}", flags(&words), refused(&words));
            assert!(!shown.contains(secret), "{shown}");
        }
    }

    #[test]
    fn ports_follow_the_transport() {
        let hosts = |words: &[&str]| flags(words).servers();
        assert_eq!(hosts(&["--rfc2136-host", "ns1,ns2:54"]), ["ns1:53", "ns2:54"]);
        assert_eq!(hosts(&["--rfc2136-host", "ns1", "--rfc2136-use-tls"]), ["ns1:53"]);
        assert_eq!(flags(&["--rfc2136-host", "ns1", "--rfc2136-use-tls"]).port(), 853);
        assert_eq!(hosts(&["--rfc2136-host", "ns1", "--rfc2136-port", "5353"]), ["ns1:5353"]);
    }

    #[test]
    fn durations_are_seconds_or_as_go_writes_them() {
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert!(duration("soon").is_err() && duration("-1s").is_err());
    }
}
