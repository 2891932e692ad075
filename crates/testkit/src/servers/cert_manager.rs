//! cert-manager's own controllers on the API server of a test, with CA and self-signed issuers.
//!
//! `scripts/servers-cert-manager` builds them and fetches their CRDs. They run as the administrator; the webhook that would check
//! objects before they are stored is not there.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};

use super::kube::{self, ADMIN, Cluster};
use super::process::Process;
use super::{other, output};
use crate::tree;

/// cert-manager that runs. It ends when it is dropped.
#[derive(Debug)]
pub struct CertManager {
    process: Process,
}

/// Where ClusterIssuers keep their Secrets.
pub const NAMESPACE: &str = "cert-manager";

/// How long it may take until it runs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A test that needs a cluster and cert-manager. Where they were not built it is skipped, under a name that says so, and counted.
pub fn trial(name: &str, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    let is_built = place().is_ok_and(|place| place.is_dir());
    if is_built || std::env::var_os("CI").is_some() {
        return kube::trial(name, test);
    }
    Trial::test(format!("{name} (skipped: scripts/servers-cert-manager was not run)"), || Ok(()))
        .with_ignored_flag(true)
}

/// Installs its CRDs and makes its namespace, as an administrator does before it runs.
pub fn install(cluster: &Cluster) -> io::Result<()> {
    let files = tree::entries(&place()?.join("crds"));
    let is_yaml = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "yaml");
    let texts = files.iter().filter(is_yaml).map(fs::read_to_string).collect::<io::Result<Vec<_>>>()?;
    if texts.is_empty() {
        return Err(other("there are no CRDs of cert-manager; run scripts/servers-cert-manager".to_owned()));
    }
    cluster.install_text(&texts.join("\n---\n"))?;
    let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n");
    cluster.apply(&namespace).map(drop)
}

impl CertManager {
    /// Starts it on a cluster that has its CRDs, and waits until its controllers run. After a failure it rests for a minute.
    pub fn start(cluster: &Cluster) -> io::Result<CertManager> {
        let words = [
            format!("--kubeconfig={}", cluster.kubeconfig(ADMIN).display()),
            format!("--namespace={NAMESPACE}"),
            "--backoff=1m".to_owned(),
        ];
        let program = place()?.join("cert-manager");
        let process = Process::start("cert-manager", &program, &words, cluster.folder())?;
        let running = CertManager { process };
        running.wait()?;
        Ok(running)
    }

    /// What it said.
    pub fn log(&self) -> String {
        self.process.log()
    }

    fn wait(&self) -> io::Result<()> {
        let end = Instant::now() + PATIENCE;
        while !self.log().lines().any(|line| line == "ready") {
            if !self.process.is_alive() || Instant::now() > end {
                return Err(other(format!("cert-manager does not run: {}", self.log())));
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

fn place() -> io::Result<PathBuf> {
    let script = tree::root().join("scripts/servers-cert-manager");
    Ok(PathBuf::from(output(Command::new(script).arg("where"))?.trim()))
}
