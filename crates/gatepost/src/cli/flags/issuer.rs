//! The flags that say who issues certificates, wherever they are kept.
//!
//! Without `--issuer` nothing is issued. A wrong combination ends the program with exit status 2 before anything is asked of an
//! issuer; a secret comes from a file and is never shown.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use gatepost_core::model::Str;
use gatepost_core::publication::providers::PublishingProviders;
use gatepost_dns::resolve;
use gatepost_tls::budget::RateLimits;
use gatepost_tls::decide::IssuanceRules;
use gatepost_tls::issuer::Issuer;
use gatepost_tls::issuers::acme::{Acme, AcmeSettings, ExternalAccount};
use gatepost_tls::issuers::cert_manager::IssuerRef;
use gatepost_tls::issuers::embedded_ca::EmbeddedCa;
use gatepost_tls::store::StateStore;

use super::provider::duration;
use super::secret::secret;
use super::{resolver_address, system_resolvers};
use crate::certificates::{ChallengeServers, now};
use crate::cli::Failure;
use crate::verify::servers::Servers;

/// Who issues certificates.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Certificates")]
pub(in crate::cli) struct IssuerFlags {
    /// Who issues certificates [default: nobody]
    #[arg(long, value_enum, env = "GATEPOST_ISSUER")]
    issuer: Option<IssuerFlag>,
    /// acme: the address of the issuer's directory
    #[arg(long, value_name = "URL", env = "GATEPOST_ACME_DIRECTORY")]
    acme_directory: Option<String>,
    /// acme: a PEM file with CA certificates for the issuer's server, in addition to those of the system
    #[arg(long, value_name = "FILE", env = "GATEPOST_ACME_CA_FILE")]
    acme_ca_file: Option<PathBuf>,
    /// acme: e-mail address for messages from the issuer
    #[arg(long, value_name = "ADDRESS", env = "GATEPOST_ACME_EMAIL")]
    acme_email: Option<String>,
    /// acme: the kind of certificate, where the issuer has several
    #[arg(long, value_name = "NAME", env = "GATEPOST_ACME_PROFILE")]
    acme_profile: Option<String>,
    /// acme: the identifier of an account with the issuer
    #[arg(long, value_name = "ID", env = "GATEPOST_ACME_EAB_KID", requires = "acme_eab_hmac_file")]
    acme_eab_kid: Option<String>,
    /// acme: a file with the secret of that account, in base64
    #[arg(long, value_name = "FILE", env = "GATEPOST_ACME_EAB_HMAC_FILE", requires = "acme_eab_kid")]
    acme_eab_hmac_file: Option<PathBuf>,
    /// acme: a server that must answer challenges before the issuer is told; may be repeated [default: the provider's, and the name servers of the zone]
    #[arg(long, value_name = "ADDRESS", value_parser = resolver_address, env = "GATEPOST_CHALLENGE_SERVER", value_delimiter = ',')]
    challenge_server: Vec<SocketAddr>,
    /// How long the names of a certificate that serves must stay the same before it grows
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s", env = "GATEPOST_CERTIFICATE_SETTLE")]
    certificate_settle: Duration,
    /// How long names must be gone before a certificate that serves is replaced by one without them
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1h", env = "GATEPOST_CERTIFICATE_GRACE")]
    certificate_grace: Duration,
    /// cert-manager: the issuer where no TLSPolicy names one: Issuer/NAME or ClusterIssuer/NAME
    #[arg(long, value_name = "KIND/NAME", env = "GATEPOST_ISSUER_REF")]
    issuer_ref: Option<String>,
}

/// The issuers, by name.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum IssuerFlag {
    /// An authority of this program's own
    Embedded,
    /// A server that speaks ACME, such as Let's Encrypt
    Acme,
    /// cert-manager, through its Certificate objects
    CertManager,
}

/// Where things are that a session knows.
#[derive(Clone, Debug)]
pub(in crate::cli) struct ChallengeSources {
    /// Servers of the provider, with their ports.
    pub(in crate::cli) servers: Vec<String>,
    /// Zones that the provider publishes to, where they are named.
    pub(in crate::cli) zones: Vec<Str>,
    /// Whether nobody but these servers answers for the zones.
    pub(in crate::cli) is_alone: bool,
    /// Resolvers that find the name servers of zones.
    pub(in crate::cli) resolvers: Vec<SocketAddr>,
    /// The servers of each provider, where there are several, and how names are divided among them.
    pub(in crate::cli) several: Option<(PublishingProviders, BTreeMap<Str, Vec<String>>)>,
}

/// The largest file of certificates.
const LARGEST: u64 = 1 << 20;
/// How long a server is waited for that is to answer a challenge.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

impl IssuerFlags {
    /// Who issues; nothing where nobody does.
    pub(in crate::cli) fn kind(&self) -> Option<IssuerFlag> {
        self.issuer
    }

    /// The issuer of the network, where that is one; nothing is asked of it yet. What cannot work is told at once.
    pub(in crate::cli) fn acme(&self, notebook: Arc<dyn StateStore>) -> Result<Option<Acme>, Failure> {
        match self.issuer {
            Some(IssuerFlag::Acme) => Acme::new(self.settings()?, notebook).map(Some).map_err(unusable),
            _ => Ok(None),
        }
    }

    /// The issuer; an authority of our own is read, or made where there is none.
    pub(in crate::cli) async fn open(&self, notebook: Arc<dyn StateStore>) -> Result<Arc<dyn Issuer>, Failure> {
        match self.acme(notebook.clone())? {
            Some(acme) => Ok(Arc::new(acme)),
            None => Ok(Arc::new(EmbeddedCa::open(&*notebook, now()).await.map_err(unusable)?)),
        }
    }

    /// What holds for all certificates of an issuer.
    pub(in crate::cli) fn rules(&self, limits: RateLimits) -> IssuanceRules {
        let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        IssuanceRules {
            limits,
            settle: seconds(self.certificate_settle),
            grace: seconds(self.certificate_grace),
            ..IssuanceRules::default()
        }
    }

    /// The issuer of cert-manager where no policy names one.
    pub(in crate::cli) fn issuer_ref(&self) -> Result<Option<IssuerRef>, Failure> {
        self.issuer_ref.as_deref().map(IssuerRef::parse).transpose().map_err(unusable)
    }

    /// How many names one certificate may have, where an issuer is named that says so.
    pub(in crate::cli) fn most_names(&self) -> Option<usize> {
        let directory = self.acme_directory.as_deref().unwrap_or_default();
        let is_known = directory.contains("//acme-v02.api.letsencrypt.org/");
        is_known.then(|| RateLimits::lets_encrypt(self.acme_profile.as_deref()).names)
    }

    /// Whom to ask whether challenges are answered.
    pub(in crate::cli) async fn challenge_servers(
        &self,
        places: ChallengeSources,
    ) -> Result<ChallengeServers, Failure> {
        let (named, is_all) = match &self.challenge_server[..] {
            [] if places.several.is_some() => (Vec::new(), false),
            [] => (places.servers, places.is_alone),
            some => (some.iter().map(ToString::to_string).collect(), true),
        };
        let servers = Servers::named(&named).await;
        let servers = servers.map_err(|error| Failure::usage(format!("a server to ask cannot be found: {error}")))?;
        let mut servers = ChallengeServers::named(servers, PATIENCE);
        if is_all {
            return Ok(servers);
        }
        if let Some((rule, named)) = places.several {
            let mut by_provider = BTreeMap::new();
            for (name, named) in named {
                let found = Servers::named(&named).await;
                let found = found.map_err(|error| {
                    Failure::usage(format!("a server of the provider `{name}` cannot be found: {error}"))
                })?;
                by_provider.insert(name, found);
            }
            servers = servers.of_providers(rule, by_provider);
        }
        let resolvers = match places.resolvers.is_empty() {
            // Whoever has none still has the servers that were named.
            true => system_resolvers().unwrap_or_default(),
            false => places.resolvers,
        };
        let config = resolve::ResolverConfig { servers: resolvers, rounds: 1, ..resolve::ResolverConfig::default() };
        Ok(servers.and_found(config, places.zones))
    }

    /// Refuses flags that do not go together.
    pub(in crate::cli) fn check(&self) -> Result<(), Failure> {
        let acme = [
            ("--acme-directory", self.acme_directory.is_some()),
            ("--acme-ca-file", self.acme_ca_file.is_some()),
            ("--acme-email", self.acme_email.is_some()),
            ("--acme-profile", self.acme_profile.is_some()),
            ("--acme-eab-kid", self.acme_eab_kid.is_some()),
            ("--challenge-server", !self.challenge_server.is_empty()),
        ];
        let is_stray = |(_, is_given): &&(&str, bool)| *is_given && self.issuer != Some(IssuerFlag::Acme);
        if let Some((flag, _)) = acme.iter().find(is_stray) {
            return Err(Failure::usage(format!("{flag} is a flag of the issuer acme: add --issuer acme")));
        }
        if self.issuer_ref.is_some() && self.issuer != Some(IssuerFlag::CertManager) {
            return Err(Failure::usage("--issuer-ref is a flag of the issuer cert-manager: add --issuer cert-manager"));
        }
        if self.issuer == Some(IssuerFlag::Acme) && self.acme_directory.is_none() {
            let example = gatepost_tls::issuers::acme::LETS_ENCRYPT;
            return Err(Failure::usage(format!("--issuer acme needs --acme-directory, for example {example}")));
        }
        Ok(())
    }

    fn settings(&self) -> Result<AcmeSettings, Failure> {
        let external = match (&self.acme_eab_kid, secret("--acme-eab-hmac", &None, &self.acme_eab_hmac_file)?) {
            (Some(id), Some(bytes)) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                Some(ExternalAccount::new(id, &text).map_err(unusable)?)
            }
            _ => None,
        };
        Ok(AcmeSettings {
            authority: self.acme_ca_file.as_deref().map(authority).transpose()?,
            email: self.acme_email.clone(),
            profile: self.acme_profile.clone(),
            external,
            ..AcmeSettings::new(self.acme_directory.clone().unwrap_or_default())
        })
    }
}

fn authority(path: &Path) -> Result<String, Failure> {
    let failed = |error: String| Failure::usage(format!("--acme-ca-file {}: {error}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
    if size > LARGEST {
        return Err(failed("is larger than 1 MiB".to_owned()));
    }
    std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))
}

pub(in crate::cli) fn unusable(error: gatepost_tls::Error) -> Failure {
    Failure::usage(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_name_every_issuer() {
        let mut flags: Vec<String> = IssuerFlag::value_variants()
            .iter()
            .filter_map(|flag| flag.to_possible_value().map(|value| value.get_name().to_owned()))
            .collect();
        flags.sort();
        let rows: Vec<&str> = gatepost_tls::issuers::ISSUERS.iter().map(|row| row.name).collect();
        assert_eq!(flags, rows);
    }
}
