//! `gatepost controller`: the line in a cluster, on watches.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use gatepost_core::model::Kind;
use gatepost_core::plan::Instance;
use gatepost_core::publication::settings::Profile;
use gatepost_core::reason;
use gatepost_core::snapshot::{Origin, Snapshot};
use gatepost_dns::provider::Shared;
use gatepost_dns::provider::kind::ProviderKind;
use gatepost_kube::lease::{Election, ElectionSettings};
use gatepost_kube::objects::watched_kinds;
use gatepost_kube::watch::{self, ClusterWatch};
use gatepost_kube::{Connection, Error};
use gatepost_tls::issuers::cert_manager::names::NameDelays;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::net::TcpListener;
use tracing_subscriber::EnvFilter;

use super::flags::Publishing;
use super::flags::issuer::{IssuerFlag, IssuerFlags};
use super::flags::page::PageFlags;
use super::flags::planning::PlanningFlags;
use super::flags::probing::ProbingFlags;
use super::flags::provider::{ProviderFlags, duration};
use super::flags::providers::NamedProvider;
use super::session::{Flags, Session, SeveralProviders};
use super::{Cluster, Ending, Failure};
use crate::admission::AdmissionNames;
use crate::api::ProgramFacts;
use crate::apply::Mode;
use crate::certificates::{self, now};
use crate::controller::admission::GrantParameters;
use crate::controller::cert_manager::{self, CertManager};
use crate::controller::dnsendpoint::DnsEndpoints;
use crate::controller::permit::{Guarded, Nowhere, Permit};
use crate::controller::{self, Occasion, Passes, View};
use crate::error::RunError;
use crate::health::ProbeNumbers;
use crate::run::{Pass, ZoneCache};
use crate::source::cluster::connect;
use crate::state::State;
use crate::web;

mod issuance;
mod probing;

use issuance::{Issuance, SecretSettings};
use probing::HealthChecks;

/// Follow a cluster and publish exactly the hostnames that its routes serve
///
/// Watches Gateways, ListenerSets, routes, grants, namespaces and policies, publishes every attached hostname through the
/// provider that is named, puts certificates from the issuer that is named into the Secrets of listeners, writes the
/// status of policies and Events on routes and Gateways. Writes nothing at all until
/// --policy is set. Several replicas elect one writer by a Lease; the annotation gatepost.dev/freeze on that Lease, or the
/// file of --freeze-file, stops all writes within seconds. Deletes that a safety brake holds are carried out once the
/// annotation gatepost.dev/confirm-deletes on the Lease has the word that the log and /readyz tell for them. `ready
/// http=ADDRESS` on standard error says when it answers.
#[derive(Args, Debug)]
pub(super) struct Controller {
    #[command(flatten)]
    cluster: Cluster,
    /// Namespace of the controller, where its Lease is
    #[arg(long, value_name = "NAMESPACE", default_value = "gatepost", env = "GATEPOST_CONTROLLER_NAMESPACE")]
    controller_namespace: String,
    /// Name of the Lease; replicas of one controller have the same
    #[arg(long, value_name = "NAME", default_value = "gatepost", env = "GATEPOST_LEASE")]
    lease: String,
    /// How long other replicas wait for a sign of life before one takes over
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "15s", env = "GATEPOST_LEASE_DURATION")]
    lease_duration: Duration,
    /// Name of this replica in the Lease and in Events [default: the host's name]
    #[arg(long, value_name = "NAME", env = "GATEPOST_IDENTITY")]
    identity: Option<String>,
    /// Nothing is written while this file exists
    #[arg(long, value_name = "FILE", env = "GATEPOST_FREEZE_FILE")]
    freeze_file: Option<PathBuf>,
    /// Keep the ConfigMap up to date from which the policies of `gatepost admission` read the HostnameGrants
    #[arg(long, env = "GATEPOST_ADMISSION")]
    admission: bool,
    /// Where the page, health and metrics are answered over HTTP; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8053", env = "GATEPOST_HTTP_ADDR")]
    http_addr: SocketAddr,
    /// Where DNS is answered by the embedded server, over UDP and TCP; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5353", env = "GATEPOST_DNS_ADDR")]
    dns_addr: SocketAddr,
    /// How often the provider is compared again though nothing changed
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1m", env = "GATEPOST_INTERVAL")]
    interval: Duration,
    /// How long the API server may be silent about a kind before it counts as not visible
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "3m", env = "GATEPOST_MAX_STALENESS")]
    max_staleness: Duration,
    /// How long a list is doubted that is suddenly empty or older than what was seen
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m", env = "GATEPOST_DOUBT")]
    doubt: Duration,
    /// Which lines are logged, as JSON on standard error: error, warn, info, debug
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "GATEPOST_LOG_LEVEL")]
    log_level: String,
    #[command(flatten)]
    provider: ProviderFlags,
    #[command(flatten)]
    issuer: IssuerFlags,
    #[command(flatten)]
    planning: PlanningFlags,
    #[command(flatten)]
    publishing: Publishing,
    #[command(flatten)]
    probing: ProbingFlags,
    #[command(flatten)]
    page: PageFlags,
}

impl Controller {
    pub(super) fn run(self, _out: &mut dyn Write) -> Result<Ending, Failure> {
        self.log()?;
        // The Lease is renewed, health is told and watches are read beside a pass, which may think for long.
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build()?.block_on(self.follow())
    }

    async fn follow(self) -> Result<Ending, Failure> {
        self.refuse_idle_policy()?;
        let connection = connect(&self.cluster.place()).await?;
        let mode = self.mode();
        let election = (mode == Mode::Act).then(|| self.candidacy().map(|c| c.start(&connection))).transpose()?;
        let mut passes = self.passes(&connection, &election)?;
        passes.session.pipeline.mode = mode;
        let listener = TcpListener::bind(self.http_addr)
            .await
            .map_err(|error| Failure::usage(format!("--http-addr {}: {error}", self.http_addr)))?;
        let http = listener.local_addr()?;
        let board = web::state(self.program_facts());
        let access = self.page.access(http, Some(&connection))?;
        let is_open = access.is_open();
        tokio::spawn(web::serve(listener, board.clone(), access));
        let local = passes.session.local.as_ref();
        let dns = local.map(|local| format!("dns={} ", local.server.address())).unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "ready {dns}http={http}");
        // The embedded server answers with the zones of the state directory all the while.
        web::wait(&board, "the API server has not answered yet, so nothing is read from it and nothing is written");
        passes.session.identify(self.flags(), instance(&connection).await?)?;
        passes.session.several = self.several(&passes.session, &election)?;
        let kinds = self.kinds();
        let controller = controller::Controller {
            watching: ClusterWatch::start(&connection, self.patience(&kinds)),
            view: View::new(&kinds, passes.session.engine(Origin::Cluster)),
            permit: self.permit(&election),
            election,
            identity: self.identity(),
            interval: self.interval,
            board,
            connection,
        };
        tracing::info!(mode = ?mode, page = is_open, "begun");
        controller.run(&mut passes, super::serve::stopped()).await?;
        tracing::info!("ended");
        Ok(Ending::Done)
    }

    fn program_facts(&self) -> ProgramFacts {
        ProgramFacts {
            command: "controller",
            provider: self.provider.kind().map(|kind| kind.name.to_owned()),
            mode: self.mode(),
            interval: Some(self.interval.as_secs()),
        }
    }

    /// A policy of one of several providers does not begin to write: that is said once, for all.
    fn refuse_idle_policy(&self) -> Result<(), Failure> {
        match self.publishing.further().with_policy().filter(|_| !self.planning.has_policy()) {
            Some(name) => Err(Failure::usage(format!(
                "provider `{name}` has a policy, and the controller writes nothing without --policy: set `policy` outside \
                 of `providers` too, and `dry-run: true` in the entry of each provider where nothing is to be written"
            ))),
            None => Ok(()),
        }
    }

    /// Nothing is written until somebody says what may be.
    fn mode(&self) -> Mode {
        if self.planning.has_policy() { self.planning.mode() } else { Mode::Observe }
    }

    fn log(&self) -> Result<(), Failure> {
        let filter = EnvFilter::try_new(format!("off,gatepost={}", self.log_level))
            .map_err(|_| Failure::usage(format!("--log-level {}: write error, warn, info or debug", self.log_level)))?;
        let builder = tracing_subscriber::fmt().json().flatten_event(true).with_target(false).with_env_filter(filter);
        builder.with_writer(std::io::stderr).try_init().map_err(|error| Failure::usage(error.to_string()))
    }

    /// Routes of kinds that are not asked for are not watched.
    fn kinds(&self) -> Vec<Kind> {
        let sources = self.publishing.kinds();
        let is_wanted = |kind: &Kind| kind.route().is_none() || sources.contains(kind);
        watched_kinds().into_iter().filter(is_wanted).collect()
    }

    fn patience(&self, kinds: &[Kind]) -> watch::WatchSettings {
        let idle = watch::WatchSettings::new(kinds).idle.min(self.max_staleness.max(Duration::from_secs(1)));
        watch::WatchSettings { stale: self.max_staleness, doubt: self.doubt, idle, ..watch::WatchSettings::new(kinds) }
    }

    fn permit(&self, election: &Option<Election>) -> Permit {
        let leader_state = election.as_ref().map(|election| election.leader_state.clone());
        Permit::new(leader_state, self.freeze_file.clone())
    }

    /// Whether records may be written. The embedded server is every replica's own and needs no leader; a freeze stops it.
    fn writes(&self, election: &Option<Election>) -> Permit {
        let permit = self.permit(election);
        if self.provider.is_embedded() { permit.without_leader() } else { permit }
    }

    /// No two processes have the same, not even one after the other in the same pod.
    fn candidacy(&self) -> Result<ElectionSettings, Failure> {
        let mut bytes = [0; 4];
        SystemRandom::new().fill(&mut bytes).map_err(|_| Failure::usage("the system has no random numbers"))?;
        let identity = format!("{}_{:08x}", self.identity(), u32::from_be_bytes(bytes));
        let mut candidacy = ElectionSettings::new(&self.controller_namespace, &self.lease, &identity);
        candidacy.duration = self.lease_duration.max(Duration::from_secs(3));
        candidacy.every = (candidacy.duration / 6).min(Duration::from_secs(2));
        Ok(candidacy)
    }

    fn identity(&self) -> String {
        let host = || std::fs::read_to_string("/etc/hostname").ok();
        let name = self.identity.clone().or_else(host).unwrap_or_default();
        let name = name.trim();
        if name.is_empty() { "gatepost".to_owned() } else { name.to_owned() }
    }

    /// The session, and who makes certificates beside it.
    fn passes(&self, connection: &Connection, election: &Option<Election>) -> Result<ClusterPasses, Failure> {
        let mut session = self.session(connection, election)?;
        session.zones = ZoneCache::new(self.interval);
        session.explained.settles_in = SETTLES_IN;
        if let Some(most) = self.issuer.most_names() {
            session.pipeline.publishing.certificate_names = most;
        }
        let (namespace, prefix) = (self.controller_namespace.clone(), self.lease.clone());
        let secrets =
            SecretSettings { connection: connection.clone(), namespace, prefix, permit: self.permit(election) };
        let issuance = Issuance::new(&self.issuer, session.places(self.flags()), secrets)?;
        let settings = self.cert_manager(&session)?;
        let cert_manager = CertManager::new(connection.clone(), self.permit(election), settings);
        let admission = self.grant_parameters(connection, election)?;
        let writes = self.writes(election);
        let health = HealthChecks::new(connection.clone(), self.probing.clone());
        Ok(ClusterPasses {
            session,
            writes,
            issuance,
            cert_manager,
            admission,
            health,
            later: None,
            again: None,
            could_write: false,
        })
    }

    /// What the policies of `gatepost admission` read, where that is to be kept.
    fn grant_parameters(
        &self,
        connection: &Connection,
        election: &Option<Election>,
    ) -> Result<Option<GrantParameters>, Failure> {
        let settings = self.publishing.settings()?;
        if self.admission && settings.profile == Profile::ExternalDns {
            return Err(Failure::usage("--admission: profile external-dns knows no HostnameGrants"));
        }
        let names = AdmissionNames { name: self.lease.clone(), namespace: self.controller_namespace.clone() };
        let parameters = || GrantParameters::new(connection.clone(), self.permit(election), names, settings);
        Ok(self.admission.then(parameters))
    }

    /// What is asked of cert-manager: everything where it is the issuer, otherwise what policies name it for.
    fn cert_manager(&self, session: &Session) -> Result<cert_manager::Settings, Failure> {
        let rules = self.issuer.rules(Default::default());
        Ok(cert_manager::Settings {
            is_usual: self.issuer.kind() == Some(IssuerFlag::CertManager),
            issuer: self.issuer.issuer_ref()?,
            waits: NameDelays { settle: rules.settle, grace: rules.grace },
            most_names: session.pipeline.publishing.certificate_names,
            policy: session.pipeline.planning.policy,
            only_looks: self.mode() == Mode::Observe,
        })
    }

    /// The providers, where there are several, each behind a permit of its own.
    fn several(&self, session: &Session, election: &Option<Election>) -> Result<Option<SeveralProviders>, Failure> {
        let permit = self.permit(election);
        let guard = |named: &NamedProvider, provider| -> Shared {
            let permit = permit.clone().for_provider(&named.name);
            Arc::new(Guarded::new(provider, permit, Some(named.planning.owner())))
        };
        let publishers = session.publishers(self.flags(), self.interval, guard)?;
        let may_write = move |name: &str| permit.clone().for_provider(name).refusal().is_none();
        let rules = controller::rules(self.interval);
        Ok((!publishers.is_empty()).then(|| SeveralProviders::new(publishers, rules, Box::new(may_write))))
    }

    fn flags(&self) -> Flags<'_> {
        Flags { publishing: &self.publishing, provider: &self.provider, planning: &self.planning }
    }

    /// The session, with the provider behind the permit. Its instance is named by the API server, which may be away.
    fn session(&self, connection: &Connection, election: &Option<Election>) -> Result<Session, Failure> {
        let flags = self.flags();
        let is_embedded = self.provider.is_embedded();
        let writes = self.mode() == Mode::Act;
        let state = State::open(self.provider.state_dir(), writes)?;
        let listen = is_embedded.then_some(self.dns_addr);
        let mut session = Session::of(flags, listen, writes, state, self.provider_of_cluster(connection, election))?;
        let permit = self.writes(election);
        let is_fenced = self.provider.kind().is_some_and(ProviderKind::is_of_network);
        let owner = is_fenced.then(|| self.planning.owner());
        session.provider = Arc::new(Guarded::new(session.provider.clone(), permit, owner));
        Ok(session)
    }

    /// The providers that are no server of the network.
    fn provider_of_cluster(&self, connection: &Connection, election: &Option<Election>) -> Option<Shared> {
        match self.provider.kind() {
            None => Some(Nowhere::shared()),
            Some(kind) if kind.is_of_cluster() => {
                let domains = self.publishing.domains();
                let (namespace, permit) = (&self.controller_namespace, self.permit(election));
                Some(Arc::new(DnsEndpoints::new(connection.clone(), namespace, domains, permit)))
            }
            Some(_) => None,
        }
    }
}

/// What follows a cluster: the line, and certificates beside it.
struct ClusterPasses {
    session: Session,
    /// Whether records may be written.
    writes: Permit,
    /// Where certificates are made; nothing where nobody issues any.
    issuance: Option<Issuance>,
    /// Who makes the others.
    cert_manager: CertManager,
    /// What the policies of `gatepost admission` read.
    admission: Option<GrantParameters>,
    /// What is done about health checks.
    health: HealthChecks,
    /// When that is to be looked at again, in seconds since 1970.
    later: Option<i64>,
    /// When the health of addresses is asked for again where it could not be read, or HostnameGrants are written again.
    again: Option<i64>,
    /// Whether we could write at the last pass.
    could_write: bool,
}

impl ClusterPasses {
    /// Brings cert-manager's objects to what they ought to be. Who does not lead leaves that to who does.
    async fn ask_cert_manager(&mut self, snapshot: &Snapshot, may_write: bool, pass: &mut Pass) {
        self.later = None;
        if !may_write && self.session.pipeline.mode == Mode::Act {
            return;
        }
        let asked = self.cert_manager.asked(&pass.desired.read());
        let round = self.cert_manager.round(&asked, &pass.plan.unknown_names(), snapshot, now()).await;
        (pass.issuing, self.later) = (round.states, round.wake);
        pass.news.extend(round.events);
    }
}

impl Passes for ClusterPasses {
    async fn pass(&mut self, occasion: Occasion<'_>) -> Result<Pass, RunError> {
        let Occasion { engine, delta, problems, may_write, confirmed } = occasion;
        let session = &mut self.session;
        session.pipeline.confirmed = confirmed;
        // Another leader may have written since: who begins to write compares everything.
        if may_write && !self.could_write {
            session.zones.forget();
        }
        self.could_write = may_write;
        if let Some(issuance) = &mut self.issuance {
            issuance.prepare(session).await;
        }
        let leads = may_write && session.pipeline.mode == Mode::Act;
        let prepared = self.health.prepare(&mut session.pipeline, engine.world().snapshot(), leads).await;
        let decision = session.follow(engine, delta, problems).await?;
        let snapshot = engine.world().snapshot();
        let mode = session.pipeline.mode;
        if let Err(error) = &prepared {
            tracing::warn!(error = %error, "the health of addresses is not known, so nothing is written");
        }
        if self.writes.refusal().is_some() || prepared.is_err() {
            session.pipeline.mode = Mode::Observe;
        }
        let (mut pass, kept) = session.write(decision, &mut |_, _| ()).await;
        session.pipeline.mode = mode;
        if let Err(error) = kept {
            tracing::error!(error = %error, "--state-dir: what was written could not be kept");
        }
        self.ask_cert_manager(snapshot, may_write, &mut pass).await;
        match &mut self.issuance {
            Some(issuance) => issuance.certify(&mut self.session, snapshot, &mut pass).await,
            None => {
                let known = &pass.issuing;
                let withhold = |desired: &mut _| {
                    certificates::withhold(desired, snapshot, known, reason::ISSUER_UNUSABLE, NOBODY);
                };
                pass.touched.policies.extend(self.session.desired.reflect(withhold));
            }
        }
        self.health.aim(&pass.desired, snapshot).await;
        let is_kept = match &mut self.admission {
            Some(admission) if leads => admission.keep(snapshot).await,
            _ => true,
        };
        self.again = (prepared.is_err() || !is_kept).then(|| now() + AGAIN);
        Ok(pass)
    }

    async fn woken(&mut self) {
        tokio::select! {
            () = self.cert_manager.changed() => {}
            () = super::serve::published(&mut self.session.several) => {}
            () = self.health.changed() => {}
        }
    }

    fn wake(&self) -> Option<i64> {
        let issuance = self.issuance.as_ref().and_then(Issuance::wake);
        [issuance, self.later, self.again].into_iter().flatten().min()
    }

    fn probes(&self) -> ProbeNumbers {
        self.health.numbers()
    }

    fn mode(&self) -> Mode {
        self.session.pipeline.mode
    }
}

/// The seconds after which is done again what failed beside a pass.
const AGAIN: i64 = 5;

/// An object that was deleted may have gone with its CRD, which discovery notices after some rounds of ten seconds.
const SETTLES_IN: Duration = Duration::from_secs(30);

/// What is in the way of every certificate where nobody issues.
const NOBODY: &str = "nobody issues certificates: start the controller with --issuer";

/// The instance of a cluster: all replicas in it, now and after any restart, are the same one.
async fn instance(connection: &Connection) -> Result<Instance, Failure> {
    let path = "/api/v1/namespaces/kube-system";
    let mut pause = Duration::from_millis(500);
    loop {
        match connection.get(path).await {
            Ok(namespace) => {
                let uid = namespace.pointer("/metadata/uid").and_then(serde_json::Value::as_str).unwrap_or_default();
                return Ok(Instance::new(&format!("cluster {uid}")));
            }
            Err(error) if error.is_transient() => {
                tracing::warn!(error = %error, "waiting for the API server");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(10));
            }
            Err(error) => return Err(unnamed(&error)),
        }
    }
}

fn unnamed(error: &Error) -> Failure {
    Failure::Unreadable(anyhow::anyhow!(
        "{error}; the namespace kube-system tells clusters apart that share a zone: grant `get` on namespaces"
    ))
}
