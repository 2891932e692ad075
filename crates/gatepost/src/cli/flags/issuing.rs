//! The flags that say where certificates are kept on files, and who issues them.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use gatepost_tls::Call;
use gatepost_tls::budget::RateLimits;
use gatepost_tls::certifier::Certifier;
use gatepost_tls::decide::IssuanceRules;
use gatepost_tls::issuer::{Issuer, Progress};
use gatepost_tls::order::Order;
use gatepost_tls::store::{FileStateStore, FileStore, StateStore};

use super::issuer::{ChallengeSources, IssuerFlag, IssuerFlags, PATIENCE, unusable};
use super::provider::duration;
use crate::certificates::{Certificates, ChallengeServers};
use crate::cli::Failure;
use crate::verify::servers::Servers;

/// Who issues certificates, and where they go.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Certificates")]
pub(in crate::cli) struct IssuingFlags {
    #[command(flatten)]
    issuer: IssuerFlags,
    /// Where certificates are put: DIR/NAMESPACE/SECRET/tls.crt and tls.key
    #[arg(long, value_name = "DIR", env = "GATEPOST_CERT_DIR")]
    cert_dir: Option<PathBuf>,
    /// How long `apply` waits for certificates; orders that are open then go on with the next run
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2m", env = "GATEPOST_ISSUER_TIMEOUT")]
    issuer_timeout: Duration,
}

impl IssuingFlags {
    /// Opens the issuer and reads what is remembered; nothing where nobody issues.
    pub(in crate::cli) async fn open(&self, places: ChallengeSources) -> Result<Option<Certificates>, Failure> {
        self.check()?;
        let (Some(kind), Some(directory)) = (self.issuer.kind(), &self.cert_dir) else { return Ok(None) };
        if kind == IssuerFlag::CertManager {
            return Err(Failure::usage("--issuer cert-manager needs a cluster: use `gatepost controller`"));
        }
        let notebook = notebook(directory);
        // What cannot work is told before anything is made or kept from others.
        self.issuer.acme(notebook.clone())?;
        let lock = lock(directory)?;
        let issuer = self.issuer.open(notebook.clone()).await?;
        if let Some(root) = issuer.root() {
            export(&directory.join("ca.crt"), root)?;
        }
        let rules = self.issuer.rules(issuer.limits());
        let store = Arc::new(FileStore::new(directory));
        let certifier = Certifier::open(issuer, store, notebook, rules).await.map_err(unusable)?;
        Ok(Some(Certificates::new(certifier, self.issuer.challenge_servers(places).await?).locked(lock)))
    }

    /// Opens what is kept to look at it, where a directory of certificates is named; nothing is made or asked.
    pub(in crate::cli) async fn look(&self) -> Result<Option<Certificates>, Failure> {
        self.check()?;
        let Some(directory) = &self.cert_dir else { return Ok(None) };
        let acme = self.issuer.acme(notebook(directory))?;
        look(directory, acme.map(|acme| acme.limits()).unwrap_or_default()).await.map(Some)
    }

    /// How long a command that runs once waits for certificates.
    pub(in crate::cli) fn patience(&self) -> Duration {
        self.issuer_timeout
    }

    /// How many names one certificate may have, where an issuer is named that says so.
    pub(in crate::cli) fn most_names(&self) -> Option<usize> {
        self.issuer.most_names()
    }

    /// Refuses flags that do not go together.
    fn check(&self) -> Result<(), Failure> {
        let makes_pairs = matches!(self.issuer.kind(), Some(IssuerFlag::Embedded | IssuerFlag::Acme));
        self.issuer.check()?;
        if makes_pairs && self.cert_dir.is_none() {
            return Err(Failure::usage("--issuer needs a place for certificates: add --cert-dir DIR"));
        }
        Ok(())
    }
}

/// Opens what is kept in a directory of certificates to look at it; nothing is made or asked.
pub(in crate::cli) async fn look(directory: &Path, limits: RateLimits) -> Result<Certificates, Failure> {
    let store = Arc::new(FileStore::new(directory));
    let rules = IssuanceRules { limits: limits.clone(), ..IssuanceRules::default() };
    let certifier = Certifier::open(Arc::new(Bystander(limits)), store, notebook(directory), rules).await;
    let nobody = ChallengeServers::named(Servers::Given(Vec::new()), PATIENCE);
    Ok(Certificates::new(certifier.map_err(unusable)?, nobody))
}

/// What is remembered is kept beside the certificates.
fn notebook(directory: &Path) -> Arc<dyn StateStore> {
    Arc::new(FileStateStore::new(directory.join(".gatepost")))
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

/// Stands where an issuer would, for those who only look.
#[derive(Debug)]
pub(in crate::cli) struct Bystander(pub(in crate::cli) RateLimits);

impl Issuer for Bystander {
    fn kind(&self) -> &'static str {
        "none"
    }

    fn limits(&self) -> RateLimits {
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
