//! The flags that say where records are published: which provider, and how it is reached.
//!
//! Names and meaning as in external-dns, so that a command line carries over. The flags of each provider come from the registry
//! in `gatepost_dns::providers`; a flag that does not go with the provider is refused with what to do.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use gatepost_core::model::Str;
use gatepost_core::publication::annotations::ttl;
use gatepost_dns::embedded::{self, DnsServer, Name};
use gatepost_dns::provider::Shared;
use gatepost_dns::provider::kind::ProviderKind;
use gatepost_dns::provider::settings::{ProviderSettings, SecretText, SettingValue};
use gatepost_dns::providers::embedded::{Authority, Embedded};
use gatepost_dns::providers::{self, choice, names_where};

use super::secret::secret;
use crate::cli::Failure;

mod arguments;

pub(in crate::cli) use arguments::named_kind;
use arguments::{GivenSetting, GivenValue};

/// Where records are published.
#[derive(Debug, Clone)]
pub(in crate::cli) struct ProviderFlags {
    kind: Option<&'static ProviderKind>,
    timeout: Option<Duration>,
    state_dir: Option<PathBuf>,
    given: Vec<GivenSetting>,
}

impl Args for ProviderFlags {
    fn augment_args(command: Command) -> Command {
        let provider = Arg::new("provider").long("provider").value_name("PROVIDER").env("GATEPOST_PROVIDER");
        let timeout = Arg::new("provider_timeout").long("provider-timeout").value_name("DURATION");
        let state_dir = Arg::new("state_dir").long("state-dir").value_name("DIR").env("GATEPOST_STATE_DIR");
        command
            .next_help_heading("Where records are published")
            .arg(provider.help("Who publishes records").value_parser(arguments::described_kind()))
            .arg(timeout.help(arguments::timeout_help()).value_parser(duration).env("GATEPOST_PROVIDER_TIMEOUT"))
            .args(arguments::declared(ProviderKind::is_of_network))
            .arg(state_dir.help(STATE_DIR_HELP).value_parser(value_parser!(PathBuf)))
            .args(arguments::declared(|kind| !kind.is_of_network()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        ProviderFlags::augment_args(command)
    }
}

impl FromArgMatches for ProviderFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ProviderFlags, clap::Error> {
        Ok(ProviderFlags {
            kind: matches.get_one("provider").copied(),
            timeout: matches.get_one("provider_timeout").copied(),
            state_dir: matches.get_one("state_dir").cloned(),
            given: arguments::given(matches),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ProviderFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

const STATE_DIR_HELP: &str = "Where runs remember what they wrote, and the embedded server keeps its zones";

impl ProviderFlags {
    /// Which kind of provider, if one is named.
    pub(in crate::cli) fn kind(&self) -> Option<&'static ProviderKind> {
        self.kind
    }

    /// Whether the provider is the embedded server.
    pub(in crate::cli) fn is_embedded(&self) -> bool {
        self.kind.is_some_and(ProviderKind::is_of_process)
    }

    /// The same flags for a command that runs the embedded server where no provider is named.
    pub(in crate::cli) fn or_embedded(mut self) -> Self {
        self.kind.get_or_insert(&providers::embedded::KIND);
        self
    }

    /// Where state is kept.
    pub(in crate::cli) fn state_dir(&self) -> Option<&Path> {
        self.state_dir.as_deref()
    }

    /// The zones that are named for the provider.
    pub(in crate::cli) fn zones(&self) -> Vec<Str> {
        let Some(setting) = self.kind.and_then(|kind| kind.zones) else { return Vec::new() };
        let settings = self.plain_settings();
        settings.list(&setting).iter().map(|zone| zone.trim_end_matches('.').to_ascii_lowercase().into()).collect()
    }

    /// The servers that are named for the provider, with the ports where they answer questions without TLS.
    pub(in crate::cli) fn servers(&self) -> Vec<String> {
        self.kind.map(|kind| (kind.name_servers)(&self.plain_settings())).unwrap_or_default()
    }

    /// Refuses flags that do not go with the provider.
    pub(in crate::cli) fn check(&self) -> Result<(), Failure> {
        let is_stray = |given: &&GivenSetting| self.kind.is_none_or(|kind| kind.name != given.kind.name);
        let Some(stray) = self.given.iter().find(is_stray) else { return Ok(()) };
        let (flag, name) = (stray.flag(), stray.kind.name);
        let fix = match self.kind {
            Some(other) => format!("and the provider is {}: leave it out, or set --provider {name}", other.name),
            None => format!("and no provider is named: add --provider {name}"),
        };
        Err(Failure::usage(format!("{flag} is a flag of the provider {name}, {fix}")))
    }

    /// The provider of the network that is named; nothing is asked of it yet. `domains` are those of `--domain-filter`.
    pub(in crate::cli) fn open(&self, domains: &[String]) -> Result<Shared, Failure> {
        self.check()?;
        let Some(kind) = self.kind else {
            let names = choice(&names_where(ProviderKind::is_of_network));
            return Err(Failure::usage(format!("--provider must be {names}")));
        };
        let mut settings = self.settings()?;
        settings.domains = domains.to_vec();
        providers::open(kind, &settings).map_err(|error| Failure::usage(error.to_string()))
    }

    /// The embedded server as it would be started with what it kept; `listen` is where it answers.
    pub(in crate::cli) fn embedded(&self, listen: SocketAddr, keeps: bool) -> Result<Arc<DnsServer>, Failure> {
        self.check()?;
        let mut config = embedded::ServerConfig::new(listen);
        match &self.state_dir {
            Some(directory) if keeps => config.state_directory = Some(directory.clone()),
            Some(directory) => {
                let kept = embedded::state::load(directory);
                config.zones = kept.map_err(|error| Failure::Unreadable(anyhow::anyhow!(error)))?.unwrap_or_default();
            }
            None => {}
        }
        let server = DnsServer::start(config);
        server.map(Arc::new).map_err(|error| Failure::usage(format!("--dns-addr {listen}: {error}")))
    }

    /// What was given, without secrets: they may have to be read from files.
    fn plain_settings(&self) -> ProviderSettings {
        let mut settings = ProviderSettings::default();
        settings.timeout = self.timeout;
        for given in &self.given {
            if let GivenValue::Plain(value) = &given.value {
                settings.set(given.setting, value.clone());
            }
        }
        settings
    }

    fn settings(&self) -> Result<ProviderSettings, Failure> {
        let mut settings = self.plain_settings();
        for given in &self.given {
            let GivenValue::Secret { text, file } = &given.value else { continue };
            if let Some(bytes) = secret(&format!("--{}", given.setting.name), text, file)? {
                let text = String::from_utf8_lossy(&bytes);
                let text =
                    file.as_ref().map_or_else(|| SecretText::new(&*text), |file| SecretText::of_file(&*text, file));
                settings.set(given.setting, SettingValue::Secret(text));
            }
        }
        Ok(settings)
    }
}

/// What to do where a command needs a provider and none is named; `controller` alone has those of a cluster.
pub(in crate::cli) fn unnamed() -> Failure {
    let names = [names_where(ProviderKind::is_of_network), names_where(ProviderKind::is_of_process)].concat();
    Failure::usage(format!("no provider is named: add --provider {}", choice(&names)))
}

/// What every zone of the embedded server says of itself.
pub(in crate::cli) fn through(server: &Arc<DnsServer>) -> Result<Embedded, Failure> {
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
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct ProviderCli {
        #[command(flatten)]
        provider: ProviderFlags,
    }

    fn flags(words: &[&str]) -> ProviderFlags {
        let matches = <ProviderCli as clap::CommandFactory>::command().no_binary_name(true).get_matches_from(words);
        ProviderCli::from_arg_matches(&matches).unwrap().provider
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
    fn durations_are_seconds_or_as_go_writes_them() {
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert!(duration("soon").is_err() && duration("-1s").is_err());
    }
}
