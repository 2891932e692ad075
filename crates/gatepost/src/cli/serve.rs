//! `gatepost serve`: watches a directory and publishes what it holds, on a DNS server of its own or through a provider.

use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::Args;
use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::incremental::{Delta, Engine, World};
use gatepost_core::snapshot::Change;
use gatepost_tls::certifier::IssuanceState;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::flags::Publishing;
use super::flags::issuing::IssuingFlags;
use super::flags::page::PageFlags;
use super::flags::planning::PlanningFlags;
use super::flags::probing::ProbingFlags;
use super::flags::provider::{ProviderFlags, duration};
use super::session::{Flags, Session, SeveralProviders, block_on};
use super::{Ending, Failure, Input};
use crate::api::ProgramFacts;
use crate::apply::{Mode, chance};
use crate::health::{self, Prober};
use crate::metrics::MetricSet;
use crate::render::{inert, inert_line};
use crate::run::schedule::{PassEnd, Schedule, ScheduleRules};
use crate::run::{Pass, ZoneCache, dry_run_notes, publishers};
use crate::source::file_cache::FileCache;
use crate::source::is_unreadable;
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
    /// Where the page, health and metrics are answered over HTTP; port 0 picks a free one
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
    #[command(flatten)]
    probing: ProbingFlags,
    #[command(flatten)]
    page: PageFlags,
}

/// More passes do not follow one another at once, whatever orders need.
const MOST_PASSES: usize = 4;
/// At most this many warnings are told at `/readyz`.
const WARNINGS: usize = 8;
/// No pass comes sooner after the last one than this, unless a file changed.
const SOONEST: Duration = Duration::from_secs(1);
/// Clocks may be set, so nobody sleeps for longer than an hour.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// An address that is due and could not be asked for in the last pass has to wait for this long.
const OVERDUE: Duration = Duration::from_secs(30);

/// What was not done in a pass is tried again after this long, unless the provider asks for more.
const AGAIN: Duration = Duration::from_secs(10);

/// How often the numbers of probes are told anew.
const TICK: Duration = Duration::from_secs(5);

/// How long a pass that is under way may go on when it is time to stop.
const GRACE: Duration = Duration::from_secs(5);

impl Serve {
    pub(super) fn run(mut self, out: &mut dyn Write) -> Result<Ending, Failure> {
        self.publishing.refuse_idle_resolver()?;
        if !self.publishing.further().are_any() {
            self.provider = self.provider.or_embedded();
        }
        block_on(self.serve(out))
    }

    async fn serve(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        if !self.input.has_files() {
            let message = "no objects given: name files or directories with -f, -k or --helm; `gatepost controller` follows a cluster";
            return Err(Failure::usage(message));
        }
        let flags = Flags { publishing: &self.publishing, provider: &self.provider, planning: &self.planning };
        let is_embedded = self.provider.is_embedded();
        let writes = self.planning.mode() == Mode::Act;
        let mut session = Session::with(flags, is_embedded.then_some(self.dns_addr), writes)?;
        session.issue(&self.issuing, flags).await?;
        session.zones = ZoneCache::new(self.interval);
        let publishers = session.publishers(flags, self.interval, |_, provider| provider)?;
        if !publishers.is_empty() {
            session.several = Some(SeveralProviders::new(publishers, self.rules(false), Box::new(|_| true)));
        }
        let (mut files, objects) = FileCache::open(&self.input)?;
        let listener = TcpListener::bind(self.http_addr)
            .await
            .map_err(|error| Failure::usage(format!("--http-addr {}: {error}", self.http_addr)))?;
        let http = listener.local_addr()?;
        let board = web::state(self.program_facts(is_embedded));
        let api = web::api_of(&board);
        let access = self.page.access(http, None)?;
        let is_open = access.is_open();
        tokio::spawn(web::serve(listener, board.clone(), access));
        let (changes, mut changed) = mpsc::unbounded_channel();
        let _watcher = watch::start(&crate::source::rendered::watched(&self.input), changes)?;
        super::warn_unreadable(&objects);
        let mut engine = session.engine(objects.snapshot().origin);
        let everything = Change::between(engine.world().snapshot(), objects.snapshot());
        let delta = engine.apply(everything);
        let mut schedule = Schedule::new(self.rules(is_embedded), Instant::now());
        schedule.began();
        let prober = self.probing.start(&session.pipeline);
        let pass = pass(&mut session, &mut engine, delta, objects.problems()).await?;
        let dns = session.local.as_ref().map(|local| local.server.address());
        let server = dns.map(|dns| dns.to_string()).or_else(|| self.provider.servers().into_iter().next());
        let of_several = flags.several()?.into_iter().map(|named| (Some(named.name), named.flags.servers()));
        let servers = of_several.filter_map(|(name, servers)| Some((name, servers.into_iter().next()?)));
        let servers = servers.chain(server.map(|server| (None, server))).collect();
        let mut screen = screen::Screen::new(&self.input, session.pipeline.mode, servers);
        let page = is_open.then_some(http);
        screen.greet(out, &session.pipeline, &objects, &pass, page)?;
        let problems = objects.problems().to_vec();
        drop(objects);
        schedule.ended(Instant::now(), PassEnd::of(&pass), wake(&session), chance());
        aim(&prober, &session, &engine, &files);
        post(&board, pass, &problems, engine.world(), &prober).await;
        let dns = dns.map(|address| format!("dns={address} ")).unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "ready {dns}http={http}");
        let mut stop = std::pin::pin!(stopped());
        let mut tick = tokio::time::interval(TICK);
        loop {
            let is_new = tokio::select! {
                _ = tick.tick() => {
                    let counts = health::count_addresses(&session.desired.shared().read());
                    let numbers = probe_metrics(&prober, counts);
                    board.write().unwrap_or_else(std::sync::PoisonError::into_inner).probe_metrics = numbers;
                    continue;
                }
                () = &mut stop => break,
                Some(()) = changed.recv() => true,
                () = prober.changed() => false,
                () = due(&schedule) => false,
                () = published(&mut session.several) => false,
                () = api.wanted() => {
                    api.copy(engine.world());
                    continue;
                }
            };
            while changed.try_recv().is_ok() {}
            schedule.began();
            let mut passes =
                FilePasses { session: &mut session, engine: &mut engine, files: &mut files, prober: &prober };
            let mut work = std::pin::pin!(passes.again(out, &board, &mut screen, is_new));
            let end = tokio::select! {
                end = &mut work => end?,
                () = &mut stop => {
                    // Whatever is left then was not written, and the next start begins with it.
                    let _ = tokio::time::timeout(GRACE, work).await;
                    break;
                }
            };
            match end {
                Some((end, wake)) => schedule.ended(Instant::now(), end, wake, chance()),
                None => schedule.repeat(Instant::now()),
            }
        }
        Ok(Ending::Done)
    }

    fn program_facts(&self, is_embedded: bool) -> ProgramFacts {
        ProgramFacts {
            command: "serve",
            provider: self.provider.kind().map(|kind| kind.name.to_owned()),
            mode: self.planning.mode(),
            interval: (!is_embedded).then_some(self.interval.as_secs()),
        }
    }

    /// When passes are due. Files are watched, and gathered by the watcher; nothing changes an embedded server's zones
    /// unnoticed.
    fn rules(&self, is_embedded: bool) -> ScheduleRules {
        let retry = if is_embedded { AGAIN } else { AGAIN.min(self.interval).max(SOONEST) };
        ScheduleRules {
            debounce: Duration::ZERO,
            change_spacing: Duration::ZERO,
            spacing: SOONEST,
            interval: (!is_embedded).then(|| self.interval.max(SOONEST)),
            after_write: None,
            first_retry: retry,
            longest_retry: retry,
            longest_wake: LONGEST_WAIT,
            spread: 0.1,
        }
    }
}

/// What follows files from pass to pass.
struct FilePasses<'a> {
    session: &'a mut Session,
    engine: &'a mut Engine,
    files: &'a mut FileCache,
    prober: &'a Prober,
}

impl FilePasses<'_> {
    /// Reads what changed, and publishes it; says how that ended and when something goes on by itself. What cannot be read leaves everything as it is.
    async fn again(
        &mut self,
        out: &mut dyn Write,
        board: &web::SharedHttpState,
        screen: &mut screen::Screen,
        is_new: bool,
    ) -> Result<Option<(PassEnd, Option<Duration>)>, Failure> {
        let mut problems = Vec::new();
        let mut changed = Vec::new();
        let mut unkept = None;
        if let Some(health) = self.prober.take_news() {
            if self.session.pipeline.mode == Mode::Act {
                unkept = self.session.state.keep_health(&health).err();
            }
            self.session.pipeline.health = health;
        }
        let pass = match self.files.refresh() {
            Ok(refreshed) => {
                (problems, changed) = (refreshed.problems, refreshed.files);
                if is_new {
                    super::warn_unreadable(&self.files.unreadable());
                }
                let delta = self.engine.apply(refreshed.changes);
                pass(self.session, self.engine, delta, &problems).await
            }
            Err(failure) => Err(failure.into()),
        };
        match pass {
            Ok(mut pass) => {
                let unkept =
                    unkept.map(|error| format!("--state-dir: the health of addresses cannot be kept: {error}"));
                pass.notes.extend(unkept);
                screen.tell(out, &pass, is_new, Some(&changed))?;
                let end = PassEnd::of(&pass);
                aim(self.prober, self.session, self.engine, self.files);
                post(board, pass, &problems, self.engine.world(), self.prober).await;
                Ok(Some((end, wake(self.session))))
            }
            Err(Failure::Unheard) => Err(Failure::Unheard),
            Err(Failure::Unreadable(error) | Failure::Usage(error)) => {
                let why = format!("{error:#}");
                web::note(board, vec![format!("warning: nothing changed: {}", inert(&why))]);
                screen.fail(out, &why)?;
                web::api_of(board).fail(why);
                Ok(None)
            }
        }
    }
}

/// One pass over the line.
///
/// Orders that need other TXT values than before have them published at once, by further passes.
async fn pass(
    session: &mut Session,
    engine: &mut Engine,
    mut delta: Delta,
    problems: &[Diagnostic],
) -> Result<Pass, Failure> {
    let mut last: Option<Pass> = None;
    for _ in 0..MOST_PASSES {
        let decision = session.follow(engine, std::mem::take(&mut delta), problems).await?;
        let (mut pass, kept) = session.write(decision, &mut |_, _| ()).await;
        let unkept = kept.err().map(|error| format!("--state-dir: this would not survive a restart: {error}"));
        pass.notes.extend(unkept);
        let again = session.certify(engine.world().snapshot(), &mut pass).await;
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

/// How long until an order goes on, or an address behind a name may have changed.
fn wake(session: &Session) -> Option<Duration> {
    let resolving = session.pipeline.resolver.as_ref().and_then(|resolver| resolver.next_due());
    let resolving = resolving.map(|due| match due.saturating_duration_since(Instant::now()) {
        Duration::ZERO => OVERDUE,
        wait => wait,
    });
    let ordering = session.certificates.as_ref().and_then(|certificates| certificates.round().wake);
    [resolving, ordering.map(crate::certificates::until)].into_iter().flatten().min()
}

/// Has the addresses probed that policies with a health check report now.
fn aim(prober: &Prober, session: &Session, engine: &Engine, files: &FileCache) {
    let snapshot = engine.world().snapshot();
    let headers = health::header_secrets(snapshot).map(|secret| {
        let headers = files.secret_headers(&secret);
        (secret, headers)
    });
    prober.aim(health::targets(&session.desired.shared().read(), snapshot, &headers.collect()));
}

/// Completes when a pass of one of several providers ended.
pub(super) async fn published(several: &mut Option<SeveralProviders>) {
    match several {
        Some(several) => several.set.changed().await,
        None => std::future::pending().await,
    }
}

/// Ends when a pass is due.
async fn due(schedule: &Schedule) {
    match schedule.wait(Instant::now()) {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

/// Tells over HTTP what a pass came to.
async fn post(board: &web::SharedHttpState, pass: Pass, problems: &[Diagnostic], world: &World, prober: &Prober) {
    let unready = pass.trouble();
    let (metrics, counts) = (metrics(&pass), health::count_addresses(&pass.desired.read()));
    {
        let mut board = board.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        (board.unready, board.metrics, board.notes) = (unready, metrics, warnings(&pass, problems));
        board.probe_metrics = probe_metrics(prober, counts);
    }
    web::tell(board, pass, problems, world).await;
}

/// What is to be known though names are answered: files that cannot be read, changes that are held back, and notes.
fn warnings(pass: &Pass, problems: &[Diagnostic]) -> Vec<String> {
    let unreadable = problems.iter().filter(|problem| is_unreadable(problem)).map(|problem| {
        let place = problem.place.as_ref().map(|place| format!("{}:{}: ", place.source, place.line));
        format!("{}{}", place.unwrap_or_default(), problem.message)
    });
    let held = pass.plan.held.iter().map(|held| format!("held back: {}", held.message));
    let notes = dry_run_notes(&pass.providers).chain(pass.notes.iter().cloned());
    let all: Vec<String> = unreadable.chain(held).chain(notes).collect();
    let more = all.len().saturating_sub(WARNINGS);
    let shown = all.iter().take(WARNINGS).map(|text| format!("warning: {}", inert_line(text)));
    shown.chain((more > 0).then(|| format!("warning: and {more} more"))).collect()
}

fn probe_metrics(prober: &Prober, counts: health::AddressCounts) -> String {
    let mut metrics = MetricSet::default();
    health::add_metrics(&mut metrics, prober.numbers(), counts);
    metrics.into_text()
}

/// How many names wait for a certificate.
fn missing(pass: &Pass) -> usize {
    let waits = |state: &IssuanceState| state.wanted.iter().filter(|name| !state.serves(name)).count();
    pass.issuing.iter().map(waits).sum()
}

fn metrics(pass: &Pass) -> String {
    let desired = pass.desired.read();
    let mut metrics = MetricSet::default();
    metrics.gauge("records", "Record sets that ought to exist.", desired.records.len());
    metrics.gauge("withheld", "Hostnames that get nothing.", desired.withheld.len());
    metrics.gauge("held", "Changes that are held back.", pass.plan.held.len());
    metrics.gauge("zones", "Zones that were read.", pass.plan.epochs.len());
    metrics.gauge("unreadable", "Zones that could not be read.", pass.unread.len());
    metrics.gauge("failed", "Changes that failed in the last pass.", pass.outcome.failed.len());
    metrics.gauge("certificates", "Certificates that ought to exist.", desired.certificates.len());
    metrics.gauge("certificate_names_missing", "Names that wait for a certificate.", missing(pass));
    publishers::add_metrics(&mut metrics, &pass.providers);
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
    use clap::Parser;
    use gatepost_dns::provider::{ProviderError as Error, ProviderProblem as Problem};

    #[derive(Parser)]
    struct ServeLine {
        #[command(flatten)]
        serve: Serve,
    }

    fn after(failure: Option<Option<Duration>>, unread: &[&str]) -> Pass {
        let mut pass = Pass {
            desired: Default::default(),
            touched: Default::default(),
            plan: Default::default(),
            outcome: Default::default(),
            unread: unread.iter().map(|text| (*text).to_owned()).collect(),
            retry_after: None,
            notes: Vec::new(),
            issuing: Vec::new(),
            news: Vec::new(),
            confirmed: None,
            providers: Vec::new(),
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
            let interval = format!("--interval={}s", interval.as_secs());
            let serve = ServeLine::try_parse_from(["serve", "-f", "x", &interval]).unwrap().serve;
            let now = Instant::now();
            let mut schedule = Schedule::new(serve.rules(is_embedded), now);
            schedule.began();
            schedule.ended(now, PassEnd::of(&pass), None, 0.0);
            assert_eq!(schedule.wait(now), expected, "row {i}");
        }
    }
}
