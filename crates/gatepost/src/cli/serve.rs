//! `gatepost serve`: watches a directory and publishes what it holds, on a DNS server of its own or through a provider.

use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::Args;
use gatepost_core::incremental::Engine;
use gatepost_core::snapshot::Change;
use gatepost_tls::certifier::IssuanceState;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::flags::Publishing;
use super::flags::issuing::IssuingFlags;
use super::flags::planning::PlanningFlags;
use super::flags::provider::{ProviderFlags, duration};
use super::session::{Flags, Session, block_on};
use super::{Ending, Failure, Input};
use crate::apply::{Mode, chance};
use crate::metrics::MetricSet;
use crate::render::inert;
use crate::run::{Following, Pass};
use crate::source::Objects;
use crate::web;

mod screen;
mod watch;

/// Watch files and publish exactly the hostnames that they serve
///
/// Reads the objects, publishes every attached hostname on an authoritative DNS server of its own, or through the provider
/// that is named, says why a name is not published, and follows every change of the files. `ready dns=ADDRESS
/// http=ADDRESS` on standard error says when it answers. A text that cannot be read changes nothing until it can be read
/// again.
#[derive(Args, Debug)]
pub(super) struct Serve {
    #[command(flatten)]
    input: Input,
    /// Where DNS is answered by the embedded server, over UDP and TCP; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5353", env = "GATEPOST_DNS_ADDR")]
    dns_addr: SocketAddr,
    /// Where health, metrics and the plan are told over HTTP; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8053", env = "GATEPOST_HTTP_ADDR")]
    http_addr: SocketAddr,
    /// How often the provider is compared again though no file changed; never for the embedded server
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1m", env = "GATEPOST_INTERVAL")]
    interval: Duration,
    #[command(flatten)]
    provider: ProviderFlags,
    #[command(flatten)]
    issuing: IssuingFlags,
    #[command(flatten)]
    planning: PlanningFlags,
    #[command(flatten)]
    publishing: Publishing,
}

/// More passes do not follow one another at once, whatever orders need.
const MOST_PASSES: usize = 4;
/// No pass comes sooner after the last one than this, unless a file changed.
const SOONEST: Duration = Duration::from_secs(1);
/// Clocks may be set, so nobody sleeps for longer than an hour.
const LONGEST_WAIT: u64 = 3600;

/// An address that is due and could not be asked for in the last pass has to wait for this long.
const OVERDUE: Duration = Duration::from_secs(30);

/// What was not done in a pass is tried again after this long, unless the provider asks for more.
const AGAIN: Duration = Duration::from_secs(10);

/// How long a pass that is under way may go on when it is time to stop.
const GRACE: Duration = Duration::from_secs(5);

impl Serve {
    pub(super) fn run(mut self, out: &mut dyn Write) -> Result<Ending, Failure> {
        self.publishing.refuse_idle_resolver()?;
        self.provider = self.provider.or_embedded();
        block_on(self.serve(out))
    }

    async fn serve(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        if self.input.files.is_empty() {
            let message =
                "no objects given: name files or directories with -f; `gatepost controller` follows a cluster";
            return Err(Failure::usage(message));
        }
        let flags = Flags { publishing: &self.publishing, provider: &self.provider, planning: &self.planning };
        let is_embedded = self.provider.is_embedded();
        let writes = self.planning.mode() == Mode::Act;
        let mut session = Session::with(flags, is_embedded.then_some(self.dns_addr), writes)?;
        session.issue(&self.issuing, flags).await?;
        session.following = Following::new(self.interval);
        let objects = Objects::read(&self.input)?;
        let listener = TcpListener::bind(self.http_addr)
            .await
            .map_err(|error| Failure::usage(format!("--http-addr {}: {error}", self.http_addr)))?;
        let http = listener.local_addr()?;
        let board = web::SharedHttpState::default();
        tokio::spawn(web::serve(listener, board.clone()));
        let (changes, mut changed) = mpsc::unbounded_channel();
        let _watcher = watch::start(&self.input.files, changes)?;
        super::warn_unreadable(&objects);
        let mut engine = session.engine(objects.snapshot().origin);
        let pass = pass(&mut session, &mut engine, &objects).await?;
        let dns = session.local.as_ref().map(|local| local.server.address());
        let mut screen = screen::Screen::new(&self.input, session.line.mode);
        let server = dns.map(|dns| dns.to_string()).or_else(|| self.provider.servers().into_iter().next());
        screen.greet(out, &session.line, &objects, &pass, server.as_deref())?;
        let mut wait = pause(&pass, is_embedded, self.interval);
        post(&board, pass).await;
        let dns = dns.map(|address| format!("dns={address} ")).unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "ready {dns}http={http}");
        let mut stop = std::pin::pin!(stopped());
        loop {
            let is_new = tokio::select! {
                () = &mut stop => break,
                Some(()) = changed.recv() => true,
                () = due(&session, wait) => false,
            };
            while changed.try_recv().is_ok() {}
            let mut work = std::pin::pin!(self.again(out, &mut session, &mut engine, &board, &mut screen, is_new));
            let next = tokio::select! {
                next = &mut work => next?,
                () = &mut stop => {
                    // Whatever is left then was not written, and the next start begins with it.
                    let _ = tokio::time::timeout(GRACE, work).await;
                    break;
                }
            };
            wait = next.unwrap_or(wait);
        }
        Ok(Ending::Done)
    }

    /// Reads again, and publishes what changed; says how long to wait then. What cannot be read leaves everything as it is.
    async fn again(
        &self,
        out: &mut dyn Write,
        session: &mut Session,
        engine: &mut Engine,
        board: &web::SharedHttpState,
        screen: &mut screen::Screen,
        is_new: bool,
    ) -> Result<Option<Option<Duration>>, Failure> {
        let read = Objects::read(&self.input);
        if let (Ok(objects), true) = (&read, is_new) {
            super::warn_unreadable(objects);
        }
        let pass = match read {
            Ok(objects) => pass(session, engine, &objects).await,
            Err(failure) => Err(failure.into()),
        };
        match pass {
            Ok(pass) => {
                screen.tell(out, &pass, is_new)?;
                let wait = pause(&pass, session.local.is_some(), self.interval);
                post(board, pass).await;
                Ok(Some(wait))
            }
            Err(Failure::Unheard) => Err(Failure::Unheard),
            Err(Failure::Unreadable(error) | Failure::Usage(error)) => {
                writeln!(out, "! nothing changed: {}", inert(&format!("{error:#}")))?;
                out.flush()?;
                Ok(None)
            }
        }
    }
}

/// One pass over the line.
///
/// Orders that need other TXT values than before have them published at once, by further passes.
async fn pass(session: &mut Session, engine: &mut Engine, objects: &Objects) -> Result<Pass, Failure> {
    let mut changed = engine.apply(Change::between(engine.world().snapshot(), objects.snapshot())).names;
    let world = engine.world();
    let mut last: Option<Pass> = None;
    for _ in 0..MOST_PASSES {
        let decision = session.follow(world, std::mem::take(&mut changed), objects.problems()).await?;
        let (mut pass, kept) = session.write(decision, &mut |_, _| ()).await;
        let unkept = kept.err().map(|error| format!("--state-dir: this would not survive a restart: {error}"));
        pass.notes.extend(unkept);
        let again = session.certify(objects.snapshot(), &mut pass).await;
        pass.notes.extend(pass.news.iter().map(|news| format!("certificate {}: {}", news.secret, news.text)));
        if let Err(error) = &again {
            pass.notes.push(format!("certificates: {error}"));
        }
        let pass = match last.take() {
            Some(last) => last.followed_by(pass),
            None => pass,
        };
        if !matches!(again, Ok(true)) {
            return Ok(pass);
        }
        last = Some(pass);
    }
    last.ok_or_else(|| Failure::usage("no pass was made"))
}

/// How long to wait after a pass until the provider is compared again; for ever where nothing can have changed.
fn pause(pass: &Pass, is_embedded: bool, interval: Duration) -> Option<Duration> {
    let asked = pass.outcome.failed.values().filter_map(|error| error.retry_after()).max().unwrap_or_default();
    let is_whole = pass.unread.is_empty() && pass.outcome.failed.is_empty();
    match (is_whole, is_embedded) {
        (true, true) => None,
        (true, false) => Some(interval.max(SOONEST)),
        (false, true) => Some(AGAIN.max(asked)),
        (false, false) => Some(AGAIN.min(interval).max(SOONEST).max(asked)),
    }
}

/// Ends when the provider is to be compared again, or when an address behind a name may have changed.
async fn due(session: &Session, comparing: Option<Duration>) {
    let resolving = session.line.resolver.as_ref().and_then(|resolver| resolver.next_due());
    let resolving = resolving.map(|due| match due.saturating_duration_since(Instant::now()) {
        Duration::ZERO => OVERDUE,
        wait => wait.max(SOONEST),
    });
    let ordering = session.certificates.as_ref().and_then(|certificates| certificates.round().wake);
    let ordering = ordering.map(|wake| {
        let wait = u64::try_from(wake.saturating_sub(crate::certificates::now())).unwrap_or(0);
        Duration::from_secs(wait.min(LONGEST_WAIT)).max(SOONEST)
    });
    match [resolving, comparing, ordering].into_iter().flatten().min() {
        // Up to a tenth more, so that many that were started at once do not come at once for ever.
        Some(wait) => tokio::time::sleep(wait + wait.mul_f64(chance() / 10.0)).await,
        None => std::future::pending().await,
    }
}

/// Tells over HTTP what a pass came to.
async fn post(board: &web::SharedHttpState, pass: Pass) {
    let failed = pass.outcome.failed.values().next().map(|error| error.to_string());
    let unready = pass.unread.first().cloned().or(failed);
    let metrics = metrics(&pass);
    web::tell(board, pass).await;
    let mut board = board.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    (board.unready, board.metrics) = (unready, metrics);
}

/// How many names wait for a certificate.
fn missing(pass: &Pass) -> usize {
    let waits = |state: &IssuanceState| state.wanted.iter().filter(|name| !state.serves(name)).count();
    pass.issuing.iter().map(waits).sum()
}

fn metrics(pass: &Pass) -> String {
    let mut metrics = MetricSet::default();
    metrics.gauge("records", "Record sets that ought to exist.", pass.desired.records.len());
    metrics.gauge("withheld", "Hostnames that get nothing.", pass.desired.withheld.len());
    metrics.gauge("held", "Changes that are held back.", pass.plan.held.len());
    metrics.gauge("zones", "Zones that were read.", pass.plan.epochs.len());
    metrics.gauge("unreadable", "Zones that could not be read.", pass.unread.len());
    metrics.gauge("failed", "Changes that failed in the last pass.", pass.outcome.failed.len());
    metrics.gauge("certificates", "Certificates that ought to exist.", pass.desired.certificates.len());
    metrics.gauge("certificate_names_missing", "Names that wait for a certificate.", missing(pass));
    metrics.into_text()
}

/// Ends when somebody asks the program to stop.
pub(super) async fn stopped() {
    let mut terminate = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(signal) => signal,
        Err(_) => return std::future::pending().await,
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_dns::provider::{ProviderError as Error, ProviderProblem as Problem};

    fn after(failure: Option<Option<Duration>>, unread: &[&str]) -> Pass {
        let mut pass = Pass {
            desired: Default::default(),
            plan: Default::default(),
            outcome: Default::default(),
            unread: unread.iter().map(|text| (*text).to_owned()).collect(),
            notes: Vec::new(),
            issuing: Vec::new(),
            news: Vec::new(),
            confirmed: None,
        };
        let error = |retry_after| Error { retry_after, ..Error::new(Problem::Stale("x".to_owned())) };
        pass.outcome.failed.extend(failure.map(|wait| (0, error(wait))));
        pass
    }

    #[test]
    fn what_was_not_done_is_tried_again_soon_but_not_before_it_is_welcome() {
        let (minute, second) = (Duration::from_secs(60), Duration::from_secs(1));
        let rows = [
            (after(None, &[]), true, minute, None),
            (after(None, &[]), false, minute, Some(minute)),
            (after(None, &["zone"]), false, minute, Some(AGAIN)),
            (after(Some(None), &[]), true, minute, Some(AGAIN)),
            (after(Some(None), &[]), false, second, Some(second)),
            (after(Some(Some(minute * 5)), &[]), false, minute, Some(minute * 5)),
        ];
        for (i, (pass, is_embedded, interval, expected)) in rows.into_iter().enumerate() {
            assert_eq!(pause(&pass, is_embedded, interval), expected, "row {i}");
        }
    }
}
