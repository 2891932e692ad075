//! `gatepost serve`: watches a directory and answers DNS for what it holds.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use gatepost_core::desired::Desired;
use gatepost_core::explain::{Explanation, Publication};
use gatepost_core::lint::World;
use gatepost_core::model::Str;
use gatepost_core::names::Hostname;
use gatepost_core::plan::{self, Registry, Verb};
use gatepost_dns::embedded::{Config, Name, Server};
use gatepost_dns::providers::embedded::{Authority, Embedded};
use notify_debouncer_full::notify::{EventKind, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, DebouncedEvent, new_debouncer};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::flags::Publishing;
use super::{Ending, Failure, Input};
use crate::apply::Mode;
use crate::render::{Colour, explanation, inert, plan as text};
use crate::run::{Line, Pass, derived_zones};
use crate::source::Objects;
use crate::view::plan::PlanView;
use crate::web;

/// Watch files and answer DNS for exactly the hostnames that they serve
///
/// Reads the objects, publishes every attached hostname on an authoritative DNS server of its own, says why a name is
/// not published, and follows every change of the files. `ready dns=ADDRESS http=ADDRESS` on standard error says when it
/// answers. A text that cannot be read changes nothing until it can be read again.
#[derive(Args, Debug)]
pub(super) struct Serve {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    publishing: Publishing,
    /// Where DNS is answered, over UDP and TCP; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5353", env = "GATEPOST_DNS_ADDR")]
    dns_addr: SocketAddr,
    /// Where health, metrics and the plan are told over HTTP; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8053", env = "GATEPOST_HTTP_ADDR")]
    http_addr: SocketAddr,
    /// Where the last good zones are kept, so that a restart answers at once
    #[arg(long, value_name = "DIR", env = "GATEPOST_STATE_DIR")]
    state_dir: Option<PathBuf>,
    /// A zone to serve; may be repeated [default: the last two labels of each hostname]
    #[arg(long, value_name = "NAME", env = "GATEPOST_ZONE", value_delimiter = ',')]
    zone: Vec<String>,
    /// Carry out deletes that a safety brake would hold
    #[arg(long, env = "GATEPOST_CONFIRM_DELETES")]
    confirm_deletes: bool,
}

/// How long files must be quiet before they are read again.
const QUIET: Duration = Duration::from_millis(200);

impl Serve {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.serve(out))
    }

    async fn serve(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        let line = self.line()?;
        let objects = Objects::read(&self.input)?;
        let server = Arc::new(self.start()?);
        let embedded = Embedded::new(server.clone(), authority()?);
        let listener = TcpListener::bind(self.http_addr)
            .await
            .map_err(|error| Failure::usage(format!("--http-addr {}: {error}", self.http_addr)))?;
        let http = listener.local_addr()?;
        let board = web::Shared::default();
        tokio::spawn(web::serve(listener, board.clone()));
        let (changes, mut changed) = mpsc::unbounded_channel();
        let _watcher = self.watch(changes)?;
        let pass = self.pass(&line, &objects, &embedded).await?;
        self.greet(out, &line, &objects, &pass, &server)?;
        self.post(&board, &pass, &server);
        let _ = writeln!(std::io::stderr(), "ready dns={} http={http}", server.address());
        loop {
            tokio::select! {
                () = stopped() => break,
                Some(()) = changed.recv() => {
                    while changed.try_recv().is_ok() {}
                    self.again(out, &line, &embedded, &board, &server).await?;
                }
            }
        }
        Ok(Ending::Done)
    }

    fn line(&self) -> Result<Line, Failure> {
        let mut planning = plan::Settings::new(Registry::WholeZone);
        planning.confirm_deletes = self.confirm_deletes;
        planning.capabilities.is_atomic = true;
        let publishing = self.publishing.settings()?;
        Ok(Line { publishing, scope: self.publishing.scope(), planning, mode: Mode::Act })
    }

    fn start(&self) -> Result<Server, Failure> {
        let mut config = Config::new(self.dns_addr);
        config.state_directory = self.state_dir.clone();
        Server::start(config).map_err(|error| Failure::usage(format!("--dns-addr {}: {error}", self.dns_addr)))
    }

    /// One pass over the line, after the zones are there.
    async fn pass(&self, line: &Line, objects: &Objects, embedded: &Embedded) -> Result<Pass, Failure> {
        let desired = line.desired(objects);
        embedded.serve(&self.zones(&desired, embedded).await).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(line.pass(objects, desired, embedded).await)
    }

    /// The zones that are named, or those of the hostnames; a zone that was served once stays.
    async fn zones(&self, desired: &Desired, embedded: &Embedded) -> Vec<Str> {
        use gatepost_dns::provider::Provider;
        if !self.zone.is_empty() {
            return self.zone.iter().map(|zone| zone.trim_end_matches('.').to_ascii_lowercase().into()).collect();
        }
        let mut zones = embedded.zones().await.unwrap_or_default();
        zones.extend(derived_zones(desired));
        zones.sort();
        zones.dedup();
        zones
    }

    /// Reads again, and publishes what changed. What cannot be read leaves everything as it is.
    async fn again(
        &self,
        out: &mut dyn Write,
        line: &Line,
        embedded: &Embedded,
        board: &web::Shared,
        server: &Server,
    ) -> Result<(), Failure> {
        let objects = match Objects::read(&self.input) {
            Ok(objects) => objects,
            Err(Failure::Unheard) => return Err(Failure::Unheard),
            Err(Failure::Unreadable(error) | Failure::Usage(error)) => {
                writeln!(out, "! nothing changed: {}", inert(&format!("{error:#}")))?;
                out.flush()?;
                return Ok(());
            }
        };
        super::warn_unreadable(&objects);
        let pass = self.pass(line, &objects, embedded).await?;
        write_steps(out, &pass)?;
        writeln!(out, "{}", text::summary(&pass.desired))?;
        out.flush()?;
        self.post(board, &pass, server);
        Ok(())
    }

    fn watch(&self, changes: mpsc::UnboundedSender<()>) -> Result<impl Sized + use<>, Failure> {
        // A folder that is watched for the sake of one file tells of its neighbours, too.
        let files: Vec<PathBuf> = self.input.files.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let concerns = move |path: &PathBuf| files.iter().any(|file| path.starts_with(file));
        let tell = move |result: DebounceEventResult| {
            let matters = |event: &DebouncedEvent| {
                !matches!(event.kind, EventKind::Access(_)) && event.paths.iter().any(&concerns)
            };
            if result.map_or(true, |events| events.iter().any(matters)) {
                let _ = changes.send(());
            }
        };
        let mut watcher = new_debouncer(QUIET, None, tell).map_err(|error| Failure::usage(error.to_string()))?;
        for path in self.input.files.iter().filter_map(|path| path.canonicalize().ok()) {
            let (path, mode) = if path.is_dir() {
                (path.as_path(), RecursiveMode::Recursive)
            } else {
                (
                    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(".".as_ref()),
                    RecursiveMode::NonRecursive,
                )
            };
            watcher.watch(path, mode).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        }
        Ok(watcher)
    }

    /// What a newcomer sees: what is served, what is not and why, and what to try next.
    fn greet(
        &self,
        out: &mut dyn Write,
        line: &Line,
        objects: &Objects,
        pass: &Pass,
        server: &Server,
    ) -> Result<(), Failure> {
        super::warn_unreadable(objects);
        write_steps(out, pass)?;
        writeln!(out, "{}", text::summary(&pass.desired))?;
        let topology = objects.topology(&line.scope);
        let world = World { snapshot: objects.snapshot(), topology: &topology };
        let mut shown = std::collections::BTreeSet::new();
        for withheld in
            pass.desired.withheld.iter().filter(|w| w.reason.row().severity <= gatepost_core::reason::Severity::Warning)
        {
            let Ok(name) = Hostname::parse(&withheld.hostname) else { continue };
            if shown.len() < 5 && shown.insert(name.clone()) {
                let mut explained = Explanation::of(world, &name);
                super::explain::place(objects, &mut explained);
                let published = Publication::of(world, &pass.desired, &explained);
                write!(out, "\n{}", explanation::render(&explained, &published, Colour::detect()))?;
            }
        }
        writeln!(out, "\ntry:")?;
        let (ip, port) = (server.address().ip(), server.address().port());
        if let Some(record) = pass.desired.records.first() {
            writeln!(out, "  dig @{ip} -p {port} {} {}", inert(&record.name), record.kind)?;
        }
        let files: Vec<_> = self.input.files.iter().map(|path| format!("-f {}", path.display())).collect();
        if let Some(name) = shown.first() {
            writeln!(out, "  gatepost explain {name} {}", files.join(" "))?;
        }
        writeln!(out, "  edit a file below {} and watch this screen", files.join(" ").replace("-f ", ""))?;
        out.flush()?;
        Ok(())
    }

    fn post(&self, board: &web::Shared, pass: &Pass, server: &Server) {
        let plan = serde_json::to_string_pretty(&PlanView::of(&pass.desired, None, Vec::new())).unwrap_or_default();
        let failed = pass.outcome.failed.first().map(|(_, error)| error.to_string());
        let metrics = metrics(pass, server);
        *board.write().unwrap_or_else(std::sync::PoisonError::into_inner) =
            web::Board { unready: failed, plan, metrics };
    }
}

fn metrics(pass: &Pass, server: &Server) -> String {
    let counts = [
        ("records", pass.desired.records.len()),
        ("withheld", pass.desired.withheld.len()),
        ("held", pass.plan.held.len()),
        ("zones", server.zones().zones().len()),
    ];
    let mut text = String::new();
    for (name, count) in counts {
        text.push_str(&format!("# TYPE gatepost_{name} gauge\ngatepost_{name} {count}\n"));
    }
    text.push_str("# EOF\n");
    text
}

/// What was written and what is held, one line each.
fn write_steps(out: &mut dyn Write, pass: &Pass) -> std::io::Result<()> {
    for (i, step) in pass.plan.steps.iter().enumerate() {
        let glyph = match step.verb {
            Verb::Create => "+",
            Verb::Update => "~",
            Verb::Delete => "-",
        };
        for change in &step.changes {
            let values = change.new.as_ref().or(change.old.as_ref()).map(|c| c.values.join(" ")).unwrap_or_default();
            let failed = pass.outcome.failed.iter().find(|(failed, _)| *failed == i);
            let end =
                failed.map_or_else(|| format!("because {}", step.because), |(_, error)| format!("FAILED: {error}"));
            writeln!(out, "{glyph} {}", inert(&format!("{} {} {values}  {end}", change.name, change.kind)))?;
        }
    }
    for held in &pass.plan.held {
        let row = held.reason.row();
        writeln!(out, "! {}", inert(&format!("{} {} [{} {}]", held.name, held.message, row.code, row.name)))?;
    }
    Ok(())
}

fn authority() -> Result<Authority, Failure> {
    let name = |text| Name::parse(text).map_err(|error| Failure::usage(error.to_string()));
    Ok(Authority {
        server: name("ns.gatepost.invalid")?,
        mailbox: name("hostmaster.gatepost.invalid")?,
        negative_ttl: 30,
    })
}

/// Ends when somebody asks the program to stop.
async fn stopped() {
    let mut terminate = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(signal) => signal,
        Err(_) => return std::future::pending().await,
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
