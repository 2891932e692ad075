//! `gatepost verify`: asks the authoritative servers, and compares with what ought to be.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use futures_util::future::join_all;
use gatepost_core::model::Str;
use gatepost_core::names::Hostname;
use gatepost_core::plan::Plan;
use gatepost_core::publication::{Desired, Record};
use gatepost_dns::resolve;

use super::flags::planning::PlanningFlags;
use super::flags::provider::{ProviderFlags, duration};
use super::flags::{Publishing, resolver_address, system_resolvers};
use super::once::{DecidedProviders, ProvidersOnce};
use super::session::{Flags, Session, block_on};
use super::{Ending, Failure, Format, Input};
use crate::render::{Colour, inert, verify as text};
use crate::run::{ChallengeRecords, Pipeline};
use crate::source::Objects;
use crate::verify::handshake::{Trust, shake_all};
use crate::verify::servers::Servers;
use crate::verify::{Check, Limits, ask_all, checks, fill_stored};
use crate::view::verify::VerifyView;
use crate::view::write_json;

/// Ask the authoritative servers whether names are as they should be
///
/// For every name that is to be published, or for those that are named, shows what ought to be there, what the provider has
/// and what each server says. The servers are those of --server; else those of the provider; else the name servers of each
/// zone, as a resolver finds them. A wildcard is asked by a name that nobody has. With --tls the certificates that its
/// addresses show are looked at, too. Exit status 1 where a name is not right.
#[derive(Args, Debug)]
pub(super) struct Verify {
    /// Names to look at [default: all that are to be published]
    #[arg(value_name = "HOSTNAME", value_parser = hostname)]
    hostnames: Vec<Hostname>,
    #[command(flatten)]
    input: Input,
    /// A server to ask, with or without a port; may be repeated
    #[arg(long, value_name = "ADDRESS", value_parser = resolver_address, env = "GATEPOST_SERVER", value_delimiter = ',')]
    server: Vec<SocketAddr>,
    /// Ask the name servers that a resolver finds for each zone, even where the provider names its own
    #[arg(long, conflicts_with = "server")]
    name_servers: bool,
    /// Also shake hands over TLS with every address of a name that a TLS listener serves, and look at the certificate
    #[arg(long)]
    tls: bool,
    /// With --tls: certificates must lead to one of this PEM file
    #[arg(long, value_name = "FILE", requires = "tls")]
    tls_trust: Option<PathBuf>,
    /// How long one question or handshake may take
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "3s", env = "GATEPOST_TIMEOUT")]
    timeout: Duration,
    /// Output format
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    provider: ProviderFlags,
    #[command(flatten)]
    planning: PlanningFlags,
    #[command(flatten)]
    publishing: Publishing,
}

/// What is to be compared.
struct Subject {
    checks: Vec<Check>,
    plan: Option<Plan>,
    unread: Vec<String>,
    /// How many hostnames are withheld, and are not among those that are compared.
    withheld: usize,
}

impl Verify {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        let session = self.session()?;
        let objects = Objects::read(&self.input)?;
        super::warn_unreadable(&objects);
        block_on(self.verify(out, &objects, session))
    }

    async fn verify(
        &self,
        out: &mut dyn Write,
        objects: &Objects,
        session: Option<Session>,
    ) -> Result<Ending, Failure> {
        if let Some(session) = &session
            && let Some(once) = ProvidersOnce::open(session, self.flags())?
        {
            return self.verify_several(out, objects, session, once).await;
        }
        let trust = self.trust()?;
        let mut subject = self.subject(objects, session).await?;
        let servers = self.servers(self.provider.servers()).await?;
        self.ask(&mut subject.checks, servers, objects, &trust).await;
        for unread in &subject.unread {
            let _ = writeln!(std::io::stderr(), "error: {}", inert(unread));
        }
        match self.output {
            Format::Json => write_json(out, &VerifyView::of(&subject.checks, &subject.unread))?,
            Format::Text => {
                text::write(out, &subject.checks, subject.plan.as_ref(), Colour::detect())?;
                text::write_withheld(out, subject.withheld)?;
            }
        }
        Ok(match subject.checks.iter().all(Check::is_right) {
            false => Ending::No,
            true if !subject.unread.is_empty() => Ending::Incomplete,
            true => Ending::Done,
        })
    }

    /// The same for several providers, each with its own servers.
    async fn verify_several(
        &self,
        out: &mut dyn Write,
        objects: &Objects,
        session: &Session,
        mut once: ProvidersOnce,
    ) -> Result<Ending, Failure> {
        let trust = self.trust()?;
        let decided = once.decide(session, objects).await;
        let unread = decided.unread();
        let mut asked = Vec::new();
        for (part, named) in decided.parts.iter().zip(self.flags().several()?) {
            let mut checks = self.checks_at(&decided, &part.name);
            fill_stored(&mut checks, &part.observed);
            asked.push((part, checks, self.servers(named.flags.servers()).await?));
        }
        let asking = asked.into_iter().map(async |(part, mut checks, servers)| {
            self.ask(&mut checks, servers, objects, &trust).await;
            (part, checks)
        });
        let asked = join_all(asking).await;
        for unread in &unread {
            let _ = writeln!(std::io::stderr(), "error: {}", inert(unread));
        }
        let are_right = asked.iter().flat_map(|(_, checks)| checks).all(Check::is_right);
        match self.output {
            Format::Json => {
                let checks: Vec<Check> = asked.into_iter().flat_map(|(_, checks)| checks).collect();
                write_json(out, &VerifyView::of(&checks, &unread))?;
            }
            Format::Text => {
                for (part, checks) in &asked {
                    writeln!(out, "provider {}:", part.name)?;
                    text::write(out, checks, Some(&part.decision.plan), Colour::detect())?;
                }
                text::write_withheld(out, self.withheld(&decided.desired))?;
            }
        }
        Ok(match are_right {
            false => Ending::No,
            true if !unread.is_empty() => Ending::Incomplete,
            true => Ending::Done,
        })
    }

    /// What ought to be at one of several providers. A name that nothing asks for is looked for at the first.
    fn checks_at(&self, decided: &DecidedProviders, name: &Str) -> Vec<Check> {
        let is_here = |record: &&Record| record.provider.as_ref() == Some(name);
        let desired = Desired {
            records: decided.desired.records.iter().filter(is_here).cloned().collect(),
            covered: decided.desired.covered.iter().filter(is_here).cloned().collect(),
            withheld: decided.desired.withheld.clone(),
            ..Desired::default()
        };
        let is_first = decided.parts.first().is_some_and(|part| part.name == *name);
        let label = format!("gatepost-verify-{:08x}", RandomState::new().hash_one(0) as u32);
        let mut checks = checks(&desired, &self.hostnames, &label);
        let everywhere = self.checks(&decided.desired);
        let is_wanted = |check: &Check| check.types.iter().any(|one| !one.wanted.is_empty());
        let is_elsewhere = |check: &Check| everywhere.iter().any(|other| other.name == check.name && is_wanted(other));
        checks.retain(|check| is_wanted(check) || (is_first && !is_elsewhere(check)));
        checks.iter_mut().for_each(|check| check.provider = Some(name.clone()));
        checks
    }

    fn trust(&self) -> Result<Trust, Failure> {
        match &self.tls_trust {
            Some(path) => Trust::file(path).map_err(|error| Failure::usage(format!("--tls-trust {error}"))),
            None => Ok(Trust::default()),
        }
    }

    /// Asks servers about names, and shakes hands where that is asked for.
    async fn ask(&self, checks: &mut [Check], mut servers: Servers, objects: &Objects, trust: &Trust) {
        let limits = Limits { patience: self.timeout.max(Duration::from_secs(1)), ..Limits::default() };
        ask_all(checks, &mut servers, limits).await;
        if self.tls {
            let topology = objects.topology(&self.publishing.scope());
            shake_all(checks, &topology, trust, limits).await;
        }
    }

    fn session(&self) -> Result<Option<Session>, Failure> {
        if !self.flags().have_provider() {
            self.provider.check()?;
            return Ok(None);
        }
        Session::open(self.flags(), false).map(Some)
    }

    fn flags(&self) -> Flags<'_> {
        Flags { publishing: &self.publishing, provider: &self.provider, planning: &self.planning }
    }

    /// What ought to be there, and what the provider has.
    async fn subject(&self, objects: &Objects, session: Option<Session>) -> Result<Subject, Failure> {
        let Some(session) = session else {
            let desired = self.desired(objects)?;
            let withheld = self.withheld(&desired);
            return Ok(Subject { checks: self.checks(&desired), plan: None, unread: Vec::new(), withheld });
        };
        let decision = session.decide(objects).await?;
        let desired = decision.desired.into_whole();
        let mut checks = self.checks(&desired);
        fill_stored(&mut checks, &decision.observed);
        let withheld = self.withheld(&desired);
        Ok(Subject { checks, plan: Some(decision.plan), unread: decision.unread, withheld })
    }

    /// How many hostnames are withheld everywhere, where all names are compared: nobody is asked about them.
    fn withheld(&self, desired: &Desired) -> usize {
        if !self.hostnames.is_empty() {
            return 0;
        }
        let published: BTreeSet<&Str> =
            desired.records.iter().chain(&desired.covered).map(|record| &record.name).collect();
        let withheld: BTreeSet<&Str> = desired.withheld.iter().map(|withheld| &withheld.hostname).collect();
        withheld.difference(&published).count()
    }

    fn checks(&self, desired: &Desired) -> Vec<Check> {
        let label = format!("gatepost-verify-{:08x}", RandomState::new().hash_one(0) as u32);
        checks(desired, &self.hostnames, &label)
    }

    fn desired(&self, objects: &Objects) -> Result<Desired, Failure> {
        let pipeline = Pipeline {
            publishing: self.publishing.settings()?,
            scope: self.publishing.scope(),
            planning: gatepost_core::plan::PlanSettings::new(gatepost_core::plan::Registry::Noop),
            confirmed: None,
            mode: crate::apply::Mode::Observe,
            resolver: None,
            health: Default::default(),
        };
        let topology = objects.topology(&pipeline.scope);
        Ok(pipeline.desired(objects.seen(&topology), &ChallengeRecords::default(), &Default::default()))
    }

    /// The servers to ask; `own` are those of the provider.
    async fn servers(&self, own: Vec<String>) -> Result<Servers, Failure> {
        let named: Vec<String> = match (&self.server[..], self.name_servers) {
            ([], false) => own,
            (some, _) => some.iter().map(ToString::to_string).collect(),
        };
        if !named.is_empty() {
            let found = Servers::named(&named).await;
            return found.map_err(|error| Failure::usage(format!("a server to ask cannot be found: {error}")));
        }
        let resolvers = match self.publishing.resolvers() {
            [] => system_resolvers()?,
            some => some.to_vec(),
        };
        let timeout = self.timeout.max(Duration::from_secs(1));
        Ok(Servers::of_zones(resolve::ResolverConfig {
            servers: resolvers,
            timeout,
            ..resolve::ResolverConfig::default()
        }))
    }
}

fn hostname(text: &str) -> Result<Hostname, String> {
    Hostname::parse(&text.to_ascii_lowercase()).map_err(|error| error.to_string())
}
