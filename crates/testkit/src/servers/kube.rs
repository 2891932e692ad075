//! A real Kubernetes API server and its etcd, with the CRDs of the Gateway API and our own.
//!
//! `scripts/servers` builds the programs and fetches the CRDs; `KUBEBUILDER_ASSETS` names other programs. Tests talk to the
//! server with `kubectl`, so that what they read is what a person would read. There is no controller beside the API server:
//! nothing happens that a test does not do, and a namespace that is deleted stays in its last moments.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use super::process::Process;
use super::{Scratch, free_address, other, output};
use crate::tree;

pub mod proxy;
mod store;

/// Which CRDs of the Gateway API are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// None.
    None,
    /// The standard channel of a release such as `v1.7.0`.
    Standard(&'static str),
    /// The experimental channel of a release.
    Experimental(&'static str),
}

/// How a cluster is set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The CRDs of the Gateway API.
    pub channel: Channel,
    /// Users beside `admin`; they may do nothing until a role says so.
    pub users: Vec<&'static str>,
    /// More words for the API server.
    pub flags: Vec<String>,
}

impl Default for Setup {
    fn default() -> Self {
        Setup { channel: Channel::Standard("v1.7.0"), users: Vec::new(), flags: Vec::new() }
    }
}

/// A cluster that runs. It ends when it is dropped, and its directory goes.
#[derive(Debug)]
pub struct Cluster {
    programs: PathBuf,
    crds: PathBuf,
    address: SocketAddr,
    store: [SocketAddr; 2],
    users: Vec<&'static str>,
    flags: Vec<String>,
    // The API server goes before its store: it would wait for it for ever.
    api: Mutex<Option<Process>>,
    etcd: Mutex<Option<Process>>,
    directory: Scratch,
}

/// Who may do everything.
pub const ADMIN: &str = "admin";

/// Whether tests with a cluster are to run: always where `CI` is set, so that missing programs fail there.
pub fn is_wanted() -> bool {
    let built = places().is_ok_and(|(programs, crds)| programs.join("kube-apiserver").is_file() && crds.is_dir());
    built || std::env::var_os("CI").is_some()
}

/// A test that needs a cluster. Where there are no programs it is skipped, under a name that says so, and counted.
pub fn trial(name: &str, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    if is_wanted() {
        return Trial::test(name, test);
    }
    Trial::test(format!("{name} (skipped: scripts/servers was not run)"), || Ok(())).with_ignored_flag(true)
}

impl Cluster {
    /// The one that the tests of a program share; started by whoever is first.
    pub fn shared() -> &'static Cluster {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| {
            Cluster::start(&Setup::default()).unwrap_or_else(|error| panic!("no cluster for tests: {error}"))
        })
    }

    /// Starts one and waits until it answers and the CRDs are established.
    pub fn start(setup: &Setup) -> io::Result<Cluster> {
        let (programs, crds) = places()?;
        if !programs.join("kube-apiserver").is_file() {
            return Err(other(format!("{} has no kube-apiserver; run scripts/servers", programs.display())));
        }
        // A port that was free a moment ago may be somebody else's now.
        let mut last = other("not tried".to_owned());
        for _ in 0..3 {
            match Cluster::try_start(setup, &programs, &crds) {
                Ok(cluster) => return Ok(cluster),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn try_start(setup: &Setup, programs: &Path, crds: &Path) -> io::Result<Cluster> {
        let cluster = Cluster {
            programs: programs.to_owned(),
            crds: crds.to_owned(),
            address: free_address()?,
            store: [free_address()?, free_address()?],
            users: setup.users.clone(),
            flags: setup.flags.clone(),
            api: Mutex::default(),
            etcd: Mutex::default(),
            directory: Scratch::new("cluster")?,
        };
        cluster.prepare()?;
        cluster.run_store()?;
        cluster.run_api()?;
        cluster.install(setup.channel)?;
        Ok(cluster)
    }

    /// Where the API server answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The kubeconfig of a user.
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.directory.path().join(format!("{user}.kubeconfig"))
    }

    /// A folder that goes with the cluster.
    pub fn folder(&self) -> &Path {
        self.directory.path()
    }

    /// Installs the CRDs of a channel of the Gateway API, over what is there, and waits for them.
    pub fn install(&self, channel: Channel) -> io::Result<()> {
        let folder = match channel {
            Channel::None => return Ok(()),
            Channel::Standard(version) => self.crds.join(version).join("standard"),
            Channel::Experimental(version) => self.crds.join(version).join("experimental"),
        };
        let files = tree::entries(&folder);
        // Beside the CRDs stands a policy that refuses to go from one channel to the other.
        let texts = files.iter().map(fs::read_to_string).collect::<io::Result<Vec<_>>>()?;
        let is_crd = |text: &&String| text.contains("kind: CustomResourceDefinition");
        let text: String = texts.iter().filter(is_crd).map(|text| format!("\n---\n{text}")).collect();
        if text.is_empty() {
            return Err(other(format!("{} has no CRDs; run scripts/servers", folder.display())));
        }
        self.install_text(&text)
    }

    /// Installs CRDs and waits for them.
    pub fn install_text(&self, crds: &str) -> io::Result<()> {
        self.apply(crds)?;
        let words = ["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"];
        self.kubectl(&words).map(drop)
    }

    /// Runs `kubectl` as the administrator; a failure has what it said.
    pub fn kubectl(&self, words: &[&str]) -> io::Result<String> {
        output(self.command(ADMIN).args(words))
    }

    /// Creates or changes objects by server-side apply.
    pub fn apply(&self, objects: &str) -> io::Result<String> {
        self.feed(&["apply", "--server-side", "--force-conflicts", "-f", "-"], objects)
    }

    /// Replaces the status of an object.
    pub fn set_status(&self, object: &str, namespace: &str, status: &Value) -> io::Result<String> {
        let patch = serde_json::json!({ "status": status }).to_string();
        self.kubectl(&["patch", object, "-n", namespace, "--subresource=status", "--type=merge", "-p", &patch])
    }

    /// Deletes objects without waiting for finalizers.
    pub fn delete(&self, object: &str, namespace: &str) -> io::Result<String> {
        self.kubectl(&["delete", object, "-n", namespace, "--wait=false"])
    }

    /// Objects as JSON.
    pub fn json(&self, words: &[&str]) -> io::Result<Value> {
        let text = self.kubectl(&[&["get", "-o", "json"], words].concat())?;
        serde_json::from_str(&text).map_err(|error| other(error.to_string()))
    }

    /// Runs `kubectl` with a text on standard input.
    pub fn feed(&self, words: &[&str], input: &str) -> io::Result<String> {
        let mut command = self.command(ADMIN);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let mut pipe = child.stdin.take().ok_or_else(|| other("kubectl has no standard input".to_owned()))?;
        let text = input.to_owned();
        let writer = std::thread::spawn(move || pipe.write_all(text.as_bytes()));
        let done = child.wait_with_output()?;
        let _ = writer.join();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        if done.status.success() {
            return Ok(said);
        }
        Err(other(format!("kubectl {words:?}: {said}{}", String::from_utf8_lossy(&done.stderr))))
    }

    /// Where `kubectl` is.
    pub fn kubectl_program(&self) -> PathBuf {
        self.programs.join("kubectl")
    }

    /// `kubectl` as a user, to be given words.
    pub fn command(&self, user: &str) -> Command {
        let mut command = Command::new(self.kubectl_program());
        command.arg("--kubeconfig").arg(self.kubeconfig(user)).env("HOME", self.directory.path());
        command
    }

    /// Sends a signal to the API server by its name: `STOP`, `CONT`.
    pub fn signal_api(&self, name: &str) {
        if let Some(process) = &*lock(&self.api) {
            process.signal(name);
        }
    }

    /// Ends the API server as a crash would.
    pub fn kill_api(&self) {
        lock(&self.api).take();
    }

    /// Starts the API server on its address, and waits until it answers.
    pub fn run_api(&self) -> io::Result<()> {
        self.kill_api();
        let directory = self.directory.path();
        *lock(&self.api) =
            Some(Process::start("api", &self.programs.join("kube-apiserver"), &self.api_words(), directory)?);
        self.wait("the API server", || {
            self.write_kubeconfigs()?;
            self.kubectl(&["get", "--raw", "/readyz"]).map(drop)
        })
    }

    /// Ends etcd as a crash would.
    pub fn kill_store(&self) {
        lock(&self.etcd).take();
    }

    /// Starts etcd on its address and data.
    pub fn run_store(&self) -> io::Result<()> {
        self.kill_store();
        let directory = self.directory.path();
        let process = Process::start("etcd", &self.programs.join("etcd"), &self.store_words(), directory)?;
        *lock(&self.etcd) = Some(process);
        self.wait("etcd", || std::net::TcpStream::connect(self.store[0]).map(drop))
    }

    /// Forgets all revisions but the newest, so that watches from older ones are told 410.
    pub fn compact(&self) -> io::Result<()> {
        let revision = self.etcd("/v3/kv/range", r#"{"key":"AA=="}"#)?["header"]["revision"].clone();
        let revision = revision.as_str().unwrap_or_default().to_owned();
        self.etcd("/v3/kv/compaction", &format!(r#"{{"revision":"{revision}","physical":true}}"#)).map(drop)
    }

    /// Keeps the data of this moment, to come back to with [`Cluster::restore`]; the cluster is away meanwhile.
    pub fn keep(&self) -> io::Result<()> {
        self.kill_api();
        self.kill_store();
        let _ = fs::remove_dir_all(self.directory.path().join("kept"));
        output(Command::new("cp").args(["-r", "etcd", "kept"]).current_dir(self.directory.path()))?;
        self.run_store()?;
        self.run_api()
    }

    /// Goes back to the data that were kept.
    pub fn restore(&self) -> io::Result<()> {
        self.kill_api();
        self.kill_store();
        fs::remove_dir_all(self.directory.path().join("etcd"))?;
        output(Command::new("cp").args(["-r", "kept", "etcd"]).current_dir(self.directory.path()))?;
        self.run_store()?;
        self.run_api()
    }

    /// What the API server was asked to do, one entry per request that is no read: verb, user and path.
    pub fn writes(&self) -> Vec<(String, String, String)> {
        let text = fs::read_to_string(self.directory.path().join("audit.log")).unwrap_or_default();
        let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let word =
            |entry: &Value, path: &str| entry.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        entries.map(|e| (word(&e, "/verb"), word(&e, "/user/username"), word(&e, "/requestURI"))).collect()
    }

    fn etcd(&self, path: &str, body: &str) -> io::Result<Value> {
        use std::io::Read;
        let mut stream = std::net::TcpStream::connect(self.store[0])?;
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).map_err(|error| other(format!("{answer}: {error}")))
    }

    /// Keys and tokens that are there before the servers.
    fn prepare(&self) -> io::Result<()> {
        let directory = self.directory.path();
        let key = rcgen::KeyPair::generate().map_err(|error| other(error.to_string()))?;
        fs::write(directory.join("accounts.key"), key.serialize_pem())?;
        fs::write(directory.join("accounts.pub"), key.public_key_pem())?;
        let mut tokens = format!("token-{ADMIN},{ADMIN},{ADMIN},system:masters\n");
        for user in &self.users {
            tokens += &format!("token-{user},{user},{user}\n");
        }
        fs::write(directory.join("tokens.csv"), tokens)?;
        let policy = serde_json::json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [{"level": "None", "verbs": ["get", "list", "watch"]}, {"level": "Metadata"}],
        });
        fs::write(directory.join("audit.yaml"), policy.to_string())
    }

    fn write_kubeconfigs(&self) -> io::Result<()> {
        let directory = self.directory.path();
        // The server makes its certificate itself, when it first starts.
        let certificate = directory.join("certs/apiserver.crt");
        fs::metadata(&certificate)?;
        for user in self.users.iter().chain([&ADMIN]) {
            let cluster = serde_json::json!({
                "server": format!("https://{}", self.address), "certificate-authority": certificate,
            });
            let config = serde_json::json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "test",
                "clusters": [{"name": "test", "cluster": cluster}],
                "users": [{"name": user, "user": {"token": format!("token-{user}")}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            });
            fs::write(self.kubeconfig(user), config.to_string())?;
        }
        Ok(())
    }

    fn store_words(&self) -> Vec<String> {
        let [client, peer] = self.store.map(|address| format!("http://{address}"));
        let words = [
            "--data-dir=etcd".to_owned(),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        words.to_vec()
    }

    fn api_words(&self) -> Vec<String> {
        let fixed = [
            "--bind-address=127.0.0.1",
            "--cert-dir=certs",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=accounts.pub",
            "--service-account-signing-key-file=accounts.key",
            "--token-auth-file=tokens.csv",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--disable-admission-plugins=ServiceAccount",
            "--audit-policy-file=audit.yaml",
            "--audit-log-path=audit.log",
        ];
        let mut words: Vec<String> = fixed.map(str::to_owned).to_vec();
        words.push(format!("--etcd-servers=http://{}", self.store[0]));
        words.push(format!("--secure-port={}", self.address.port()));
        words.extend(self.flags.iter().cloned());
        words
    }

    /// Tries until it works, the server is gone, or two minutes have passed.
    fn wait(&self, what: &str, mut attempt: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            let Err(error) = attempt() else { return Ok(()) };
            let running = |process: &Option<Process>| process.as_ref().is_none_or(Process::is_alive);
            let alive = running(&lock(&self.api)) && running(&lock(&self.etcd));
            if !alive || Instant::now() > end {
                return Err(other(format!("{what} does not answer: {error}\n{}", self.last_words())));
            }
            sleep(Duration::from_millis(100));
        }
    }

    fn last_words(&self) -> String {
        let logs = [&self.etcd, &self.api].map(|process| lock(process).as_ref().map(Process::log).unwrap_or_default());
        let tail = |log: &String| {
            log.lines().rev().take(15).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
        };
        logs.iter().map(tail).collect::<Vec<_>>().join("\n")
    }
}

fn lock(process: &Mutex<Option<Process>>) -> MutexGuard<'_, Option<Process>> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where programs and CRDs are.
/// The directory of `kubectl` and the other programs.
pub fn programs() -> io::Result<PathBuf> {
    places().map(|(programs, _)| programs)
}

fn places() -> io::Result<(PathBuf, PathBuf)> {
    let said = output(Command::new(tree::root().join("scripts/servers")).arg("where"))?;
    let mut lines = said.lines().map(PathBuf::from);
    lines.next().zip(lines.next()).ok_or_else(|| other("scripts/servers names no places".to_owned()))
}
