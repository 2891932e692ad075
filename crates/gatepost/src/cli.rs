//! The command line: one file per command, one row per command here.
//!
//! Exit status: 0 done, 1 the answer is no, 2 usage or settings, 3 refused by a safety brake, 4 could not read or applied in
//! part. The same in every output format.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use gatepost_core::snapshot::Origin;

use crate::error::RunError;

mod admission;
mod apply;
mod bench_data;
mod check;
mod completions;
mod controller;
mod crds;
mod environment;
mod explain;
mod flags;
mod help;
mod man;
mod once;
mod plan;
mod rbac;
mod report;
mod route;
mod serve;
mod session;
mod settings;
mod status;
mod verify;
mod webhook_server;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Done.
    Done,
    /// The answer is no.
    No,
    /// A safety brake holds something that was to be done.
    Refused,
    /// Something could not be read, or only a part was done.
    Incomplete,
}

/// A failure with the exit status it leads to.
#[derive(Debug)]
pub enum Failure {
    /// Wrong usage or settings.
    Usage(anyhow::Error),
    /// Something could not be read.
    Unreadable(anyhow::Error),
    /// Nobody reads the answer to its end, which is nobody's failure.
    Unheard,
}

/// DNS and certificates for exactly the hostnames that your Gateway API objects serve.
///
/// Gatepost reads GatewayClasses, Gateways, ListenerSets and routes from files or a cluster, works out which routes attach to which
/// listeners under which hostnames, and says why a name does not work.
#[derive(Parser, Debug)]
#[command(name = "gatepost", version, max_term_width = 80, after_help = AFTER_HELP)]
pub struct Cli {
    /// YAML file with flags as keys; the command line and GATEPOST_… variables win over it
    #[arg(long, global = true, value_name = "FILE", env = "GATEPOST_SETTINGS")]
    settings: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Try it:
  gatepost check -f manifests/                         what is wrong, with file and line
  gatepost explain shop.example.com -f manifests/      why a name does not work, and what to change
  gatepost route https://shop.example.com/cart -f …    who serves a request

Exit status: 0 done, 1 the answer is no, 2 usage, 3 refused by a safety brake, 4 could not read, or done in part.";

#[derive(Subcommand, Debug)]
enum Command {
    Check(check::Check),
    Status(status::StatusCommand),
    Route(route::Route),
    Explain(explain::Explain),
    Plan(plan::Plan),
    Apply(apply::Apply),
    Verify(verify::Verify),
    Report(report::ReportFile),
    Serve(serve::Serve),
    Controller(controller::Controller),
    WebhookServer(webhook_server::WebhookServer),
    Completions(completions::Completions),
    Man(man::Man),
    Crds(crds::Crds),
    Rbac(rbac::Rbac),
    Admission(admission::Admission),
    #[command(hide = true)]
    BenchData(bench_data::BenchData),
}

/// The formats of commands that answer people and programs.
#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// Where objects come from.
#[derive(Args, Debug, Clone, Default)]
pub struct Input {
    /// File, directory (read recursively: .yaml, .yml, .json) or `-` for standard input; may be repeated
    #[arg(short = 'f', long = "filename", value_name = "PATH", env = "GATEPOST_FILENAME", value_delimiter = ',')]
    pub files: Vec<PathBuf>,
    /// Directory that `kustomize` or `kubectl kustomize` renders, one of which must be installed; may be repeated
    #[arg(short = 'k', long = "kustomize", value_name = "DIR", env = "GATEPOST_KUSTOMIZE", value_delimiter = ',')]
    pub kustomize: Vec<PathBuf>,
    /// Directory with a chart that `helm` renders, which must be installed; may be repeated
    #[arg(long, value_name = "DIR", env = "GATEPOST_HELM", value_delimiter = ',')]
    pub helm: Vec<PathBuf>,
    /// File with values for --helm; may be repeated, later files win
    #[arg(long, value_name = "FILE", requires = "helm", env = "GATEPOST_VALUES", value_delimiter = ',')]
    pub values: Vec<PathBuf>,
    /// Treat the files as everything that a cluster holds, as `kubectl get -o json` writes it: an object that is not in them does not exist
    #[arg(long, requires = "files", env = "GATEPOST_AS_CLUSTER")]
    pub as_cluster: bool,
    /// Namespace of objects in files that state none [default: default]
    #[arg(long, value_name = "NAMESPACE", env = "GATEPOST_DEFAULT_NAMESPACE")]
    pub default_namespace: Option<String>,
    /// Or which cluster.
    #[command(flatten)]
    pub cluster: Cluster,
}

/// Which cluster, as kubectl has it.
#[derive(Args, Debug, Clone, Default)]
pub struct Cluster {
    /// Kubeconfig file of a cluster to read instead of files [default: KUBECONFIG, ~/.kube/config, or the account of the pod]
    #[arg(long, value_name = "FILE", env = "GATEPOST_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME", env = "GATEPOST_CONTEXT")]
    pub context: Option<String>,
}

impl Input {
    /// Whether objects come from files, as they are or rendered.
    pub fn has_files(&self) -> bool {
        [&self.files, &self.kustomize, &self.helm].iter().any(|paths| !paths.is_empty())
    }

    /// How the files are read.
    pub fn parse_settings(&self) -> gatepost_objects::ParseSettings {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut settings = gatepost_objects::ParseSettings { threads, ..Default::default() };
        if let Some(namespace) = &self.default_namespace {
            settings.namespace = namespace.as_str().into();
            settings.is_namespace_named = true;
        }
        if self.as_cluster {
            settings.origin = Origin::Cluster;
        }
        settings
    }

    /// Adds what the flags say about all files to what was read.
    pub fn complete(&self, loaded: &mut gatepost_objects::Loaded) {
        if self.as_cluster {
            loaded.snapshot.origin = Origin::Cluster;
        }
    }
}

impl Cluster {
    /// Whether a cluster is named.
    pub fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// The cluster that is meant.
    pub fn place(&self) -> gatepost_kube::ClusterChoice {
        gatepost_kube::ClusterChoice { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() }
    }
}

/// Runs a command line and says how it ended.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match parse(&arguments) {
        Ok(Ok(cli)) => cli,
        Ok(Err(error)) => {
            let _ = error.print();
            if let Some(advice) = provider_advice(&error) {
                let _ = writeln!(std::io::stderr(), "{advice}");
            }
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
        Err(failure) => return report(&failure),
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let result = run(cli, &mut out);
    // A closed pipe downstream is nobody's failure.
    let _ = out.flush();
    match result {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::No) => ExitCode::from(1),
        Ok(Ending::Refused) => ExitCode::from(3),
        Ok(Ending::Incomplete) => ExitCode::from(4),
        Err(failure) => report(&failure),
    }
}

/// What to do about a provider that does not exist here: others have webhooks.
fn provider_advice(error: &clap::Error) -> Option<&'static str> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let argument = error.get(ContextKind::InvalidArg).map(ContextValue::to_string)?;
    let is_meant = error.kind() == ErrorKind::InvalidValue && argument.starts_with("--provider ");
    is_meant.then_some(
        "For other DNS providers run their external-dns webhook, and use\n`--provider webhook --webhook-provider-url URL`.",
    )
}

/// Reads the command line over the settings file, if there is one.
fn parse(arguments: &[OsString]) -> Result<Result<Cli, clap::Error>, Failure> {
    let mut command = help::arranged(Cli::command());
    if !arguments.iter().any(|argument| argument == "--help-all") {
        command = help::without_variables(command);
    }
    if let Some(path) = settings::named(arguments) {
        command = settings::applied(command, &path)?;
    }
    environment::warn_misspelt(&command);
    let matches = command.try_get_matches_from(arguments);
    Ok(matches.and_then(|matches| Cli::from_arg_matches(&matches)))
}

fn run(cli: Cli, out: &mut dyn Write) -> Result<Ending, Failure> {
    match cli.command {
        Command::Check(command) => command.run(out),
        Command::Status(command) => command.run(out),
        Command::Route(command) => command.run(out),
        Command::Explain(command) => command.run(out),
        Command::Plan(command) => command.run(out),
        Command::Apply(command) => command.run(out),
        Command::Verify(command) => command.run(out),
        Command::Report(command) => command.run(out),
        Command::Serve(command) => command.run(out),
        Command::Controller(command) => command.run(out),
        Command::WebhookServer(command) => command.run(),
        Command::Completions(command) => command.run(out),
        Command::Man(command) => command.run(out),
        Command::Crds(command) => command.run(out),
        Command::Rbac(command) => command.run(out),
        Command::Admission(command) => command.run(out),
        Command::BenchData(command) => command.run(out),
    }
}

fn report(failure: &Failure) -> ExitCode {
    let (error, code) = match failure {
        Failure::Unheard => return ExitCode::SUCCESS,
        Failure::Usage(error) => (error, 2),
        Failure::Unreadable(error) => (error, 4),
    };
    let text = crate::render::inert(&format!("{error:#}"));
    let _ = writeln!(std::io::stderr(), "error: {text}");
    ExitCode::from(code)
}

/// Says on standard error which texts could not be read, charts included; they are left out of the answer.
fn warn_unreadable(objects: &crate::source::Objects) {
    let is_told = |d: &&gatepost_core::diagnostic::Diagnostic| {
        crate::source::is_unreadable(d) || d.reason == gatepost_core::reason::CHART_NOT_RENDERED
    };
    let problems = objects.problems().iter().filter(is_told).cloned().collect();
    for problem in objects.placed(problems) {
        let text = crate::render::snippet::render(&problem, objects, crate::render::Colour::Off);
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Usage(error) => Failure::Usage(error),
            RunError::Unreadable(error) => Failure::Unreadable(error),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::Unheard,
            _ => Failure::Unreadable(error.into()),
        }
    }
}

impl Failure {
    /// Wrong usage, in one sentence.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure::Usage(anyhow::anyhow!(message.into()))
    }
}
