//! The flags that say who issues certificates, and where they go.
//!
//! Without `--issuer` nothing is issued. A wrong combination ends the program with exit status 2 before anything is asked of an
//! issuer; a secret comes from a file and is never shown.

use std::fs::{DirBuilder, File, TryLockError};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use gatepost_core::model::Str;
use gatepost_dns::resolve;
use gatepost_tls::Call;
use gatepost_tls::budget::Limits;
use gatepost_tls::certifier::Certifier;
use gatepost_tls::decide::Rules;
use gatepost_tls::issuer::{Issuer, Progress};
use gatepost_tls::issuers::acme::{Acme, ExternalAccount, Settings};
use gatepost_tls::issuers::embedded_ca::EmbeddedCa;
use gatepost_tls::order::Order;
use gatepost_tls::store::{FileNotebook, FileStore, Notebook};

use super::provider::{duration, secret};
use super::{resolver_address, system_resolvers};
use crate::certificates::{Asked, Certificates, now};
use crate::cli::Failure;
use crate::verify::servers::Servers;

/// Who issues certificates.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Certificates")]
pub(in crate::cli) struct IssuingFlags {
    /// Who issues certificates [default: nobody]
    #[arg(long, value_enum, env = "GATEPOST_ISSUER")]
    issuer: Option<IssuerFlag>,
    /// Where certificates are put: DIR/NAMESPACE/SECRET/tls.crt and tls.key
    #[arg(long, value_name = "DIR", env = "GATEPOST_CERT_DIR")]
    cert_dir: Option<PathBuf>,
    /// acme: the address of the issuer's directory
    #[arg(long, value_name = "URL", env = "GATEPOST_ACME_DIRECTORY")]
    acme_directory: Option<String>,
    /// acme: a file with certificates, in PEM, of who vouches for the issuer's server, beside whom the system trusts
    #[arg(long, value_name = "FILE", env = "GATEPOST_ACME_CA_FILE")]
    acme_ca_file: Option<PathBuf>,
    /// acme: whom the issuer may write to
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
    /// How long `apply` waits for certificates; orders that are open then go on with the next run
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2m", env = "GATEPOST_ISSUER_TIMEOUT")]
    issuer_timeout: Duration,
    /// cert-manager: the issuer where no TLSPolicy names one: Issuer/NAME or ClusterIssuer/NAME
    #[arg(long, value_name = "KIND/NAME", env = "GATEPOST_ISSUER_REF")]
    issuer_ref: Option<String>,
}

/// The issuers, by name.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum IssuerFlag {
    /// An authority of this program's own
    Embedded,
    /// A server that speaks ACME, such as Let's Encrypt
    Acme,
    /// cert-manager, through its Certificate objects
    CertManager,
}

/// Where things are that a session knows.
pub(in crate::cli) struct Places<'a> {
    /// Servers of the provider, with their ports.
    pub(in crate::cli) servers: Vec<String>,
    /// Zones that the provider publishes to, where they are named.
    pub(in crate::cli) zones: Vec<Str>,
    /// Whether nobody but these servers answers for the zones.
    pub(in crate::cli) is_alone: bool,
    /// Resolvers that find the name servers of zones.
    pub(in crate::cli) resolvers: &'a [SocketAddr],
}

/// The largest file of certificates.
const LARGEST: u64 = 1 << 20;
/// How long a server is waited for that is to answer a challenge.
const PATIENCE: Duration = Duration::from_secs(3);

impl IssuingFlags {
    /// Opens the issuer and reads what is remembered; nothing where nobody issues.
    pub(in crate::cli) async fn open(&self, places: Places<'_>) -> Result<Option<Certificates>, Failure> {
        self.check()?;
        let (Some(kind), Some(directory)) = (self.issuer, &self.cert_dir) else { return Ok(None) };
        let lock = lock(directory)?;
        let notebook = notebook(directory);
        let issuer: Arc<dyn Issuer> = match kind {
            IssuerFlag::Embedded => Arc::new(EmbeddedCa::open(&*notebook, now()).await.map_err(unusable)?),
            IssuerFlag::Acme => Arc::new(Acme::new(self.acme()?, notebook.clone()).map_err(unusable)?),
            IssuerFlag::CertManager => {
                return Err(Failure::usage("--issuer cert-manager needs a cluster: use `gatepost controller`"));
            }
        };
        if let Some(root) = issuer.root() {
            export(&directory.join("ca.crt"), root)?;
        }
        let rules = Rules { limits: issuer.limits(), ..Rules::default() };
        let store = Arc::new(FileStore::new(directory));
        let certifier = Certifier::open(issuer, store, notebook, rules).await.map_err(unusable)?;
        Ok(Some(Certificates::new(certifier, self.asked(places).await?).locked(lock)))
    }

    /// Opens what is kept to look at it, where a directory of certificates is named; nothing is made or asked.
    pub(in crate::cli) async fn look(&self) -> Result<Option<Certificates>, Failure> {
        self.check()?;
        let Some(directory) = &self.cert_dir else { return Ok(None) };
        let limits = match self.issuer {
            Some(IssuerFlag::Acme) => Acme::new(self.acme()?, notebook(directory)).map_err(unusable)?.limits(),
            _ => Limits::default(),
        };
        look(directory, limits).await.map(Some)
    }

    /// How long a command that runs once waits for certificates.
    pub(in crate::cli) fn patience(&self) -> Duration {
        self.issuer_timeout
    }

    /// How many names one certificate may have, where an issuer is named that says so.
    pub(in crate::cli) fn most_names(&self) -> Option<usize> {
        let directory = self.acme_directory.as_deref().unwrap_or_default();
        let is_known = directory.contains("//acme-v02.api.letsencrypt.org/");
        is_known.then(|| Limits::lets_encrypt(self.acme_profile.as_deref()).names)
    }

    /// Whom to ask whether challenges are answered.
    async fn asked(&self, places: Places<'_>) -> Result<Asked, Failure> {
        let (named, is_all) = match &self.challenge_server[..] {
            [] => (places.servers, places.is_alone),
            some => (some.iter().map(ToString::to_string).collect(), true),
        };
        let servers = Servers::named(&named).await;
        let servers = servers.map_err(|error| Failure::usage(format!("a server to ask cannot be found: {error}")))?;
        let asked = Asked::named(servers, PATIENCE);
        if is_all {
            return Ok(asked);
        }
        let resolvers = match places.resolvers {
            // Whoever has none still has the servers that were named.
            [] => system_resolvers().unwrap_or_default(),
            some => some.to_vec(),
        };
        let config = resolve::Config { servers: resolvers, rounds: 1, ..resolve::Config::default() };
        Ok(asked.and_found(config, places.zones))
    }

    /// Refuses flags that do not go together.
    fn check(&self) -> Result<(), Failure> {
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
        let makes_pairs = matches!(self.issuer, Some(IssuerFlag::Embedded | IssuerFlag::Acme));
        if makes_pairs && self.cert_dir.is_none() {
            return Err(Failure::usage("--issuer needs a place for certificates: add --cert-dir DIR"));
        }
        if self.issuer == Some(IssuerFlag::Acme) && self.acme_directory.is_none() {
            let example = gatepost_tls::issuers::acme::LETS_ENCRYPT;
            return Err(Failure::usage(format!("--issuer acme needs --acme-directory, for example {example}")));
        }
        Ok(())
    }

    fn acme(&self) -> Result<Settings, Failure> {
        let external = match (&self.acme_eab_kid, secret("--acme-eab-hmac", &None, &self.acme_eab_hmac_file)?) {
            (Some(id), Some(bytes)) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                Some(ExternalAccount::new(id, &text).map_err(unusable)?)
            }
            _ => None,
        };
        Ok(Settings {
            authority: self.acme_ca_file.as_deref().map(authority).transpose()?,
            email: self.acme_email.clone(),
            profile: self.acme_profile.clone(),
            external,
            ..Settings::new(self.acme_directory.clone().unwrap_or_default())
        })
    }
}

/// Opens what is kept in a directory of certificates to look at it; nothing is made or asked.
pub(in crate::cli) async fn look(directory: &Path, limits: Limits) -> Result<Certificates, Failure> {
    let store = Arc::new(FileStore::new(directory));
    let rules = Rules { limits: limits.clone(), ..Rules::default() };
    let certifier = Certifier::open(Arc::new(Bystander(limits)), store, notebook(directory), rules).await;
    let nobody = Asked::named(Servers::Named(Vec::new()), PATIENCE);
    Ok(Certificates::new(certifier.map_err(unusable)?, nobody))
}

/// What is remembered is kept beside the certificates.
fn notebook(directory: &Path) -> Arc<dyn Notebook> {
    Arc::new(FileNotebook::new(directory.join(".gatepost")))
}

/// Keeps others out: two that work on the same certificates would order twice and forget what the other wrote down.
fn lock(directory: &Path) -> Result<File, Failure> {
    let folder = directory.join(".gatepost");
    let path = folder.join("lock");
    let failed = |error: std::io::Error| Failure::usage(format!("--cert-dir: {}: {error}", path.display()));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    let file = made.and_then(|()| File::options().write(true).create(true).truncate(false).mode(0o600).open(&path));
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = format!("--cert-dir {}: another run of gatepost works on it", directory.display());
            Err(Failure::usage(message))
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Puts the root of our own authority where people find it; everybody may read it.
fn export(path: &Path, root: &str) -> Result<(), Failure> {
    if std::fs::read_to_string(path).is_ok_and(|text| text == root) {
        return Ok(());
    }
    let failed = |error: std::io::Error| Failure::usage(format!("--cert-dir: {}: {error}", path.display()));
    std::fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
    std::fs::write(path, root).map_err(failed)
}

fn authority(path: &Path) -> Result<String, Failure> {
    let failed = |error: String| Failure::usage(format!("--acme-ca-file {}: {error}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
    if size > LARGEST {
        return Err(failed("is larger than 1 MiB".to_owned()));
    }
    std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))
}

fn unusable(error: gatepost_tls::Error) -> Failure {
    Failure::usage(error.to_string())
}

/// Stands where an issuer would, for those who only look.
#[derive(Debug)]
struct Bystander(Limits);

impl Issuer for Bystander {
    fn kind(&self) -> &'static str {
        "none"
    }

    fn limits(&self) -> Limits {
        self.0.clone()
    }

    fn advance<'a>(
        &'a self,
        _order: &'a mut Order,
        _published: bool,
        _now: i64,
    ) -> Call<'a, gatepost_tls::Result<Progress>> {
        Box::pin(async { Err(gatepost_tls::Error::settings("nobody issues here")) })
    }
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
