//! `gatepost plan`: what ought to exist, what is withheld and why, and with a provider the difference to what exists.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gatepost_core::attachment::Topology;
use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::model::Str;
use gatepost_core::publication::change::Change;
use gatepost_core::publication::settings::Profile;
use gatepost_core::publication::{self, Desired};
use gatepost_core::reason::Severity;
use gatepost_tls::budget::Forecast;

use super::flags::Publishing;
use super::flags::issuing::IssuingFlags;
use super::flags::planning::PlanningFlags;
use super::flags::provider::ProviderFlags;
use super::once::ProvidersOnce;
use super::session::{Flags, Session, block_on};
use super::{Ending, Failure, Input};
use crate::certificates::Certificates;
use crate::render::{Colour, chart, inert, markdown, plan, steps, zonefile};
use crate::run::Decision;
use crate::source::Objects;
use crate::view::diagnostic::DiagnosticView;
use crate::view::plan::{PlanView, ProviderView};
use crate::view::write_json;

/// Show which records and certificates ought to exist, and which hostnames get nothing and why
///
/// Every attached hostname resolves to all addresses of its Gateway; a certificate holds exactly the names that its
/// listeners serve. With --provider, what would be written there, what is held back and why, and a digest that `apply
/// --plan` takes; nothing is written. With --diff, what changes against another set of files: names gained, lost, moved
/// between Gateways, and the records and certificates that follow.
#[derive(Args, Debug)]
pub(super) struct Plan {
    #[command(flatten)]
    input: Input,
    /// Compare with the objects of another file or directory, such as the main branch
    #[arg(long, value_name = "OLD_PATH")]
    diff: Option<PathBuf>,
    /// Exit status 1 if --diff or --provider finds a difference
    #[arg(long)]
    expect_no_changes: bool,
    /// Output format
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    output: PlanFormat,
    #[command(flatten)]
    provider: ProviderFlags,
    #[command(flatten)]
    issuing: IssuingFlags,
    #[command(flatten)]
    planning: PlanningFlags,
    #[command(flatten)]
    publishing: Publishing,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum PlanFormat {
    /// For people: one line per record and certificate
    #[default]
    Text,
    /// For programs
    Json,
    /// For a pull request comment
    Markdown,
    /// Records as lines of a zone file
    Zonefile,
    /// Which routes get which records and certificates, as a Mermaid flowchart
    Mermaid,
}

/// Everything that a plan shows.
struct Shown {
    desired: Desired,
    change: Option<Change>,
    plan: Option<gatepost_core::plan::Plan>,
    unread: Vec<String>,
    orders: Option<Forecast>,
    /// In profile external-dns: the names that profile strict would publish other records for.
    under_strict: Option<BTreeSet<Str>>,
    /// The plans of the providers, where there are several.
    providers: Vec<(Str, gatepost_core::plan::Plan)>,
}

impl Plan {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        let mut settings = self.publishing.settings()?;
        let mut session = self.session()?;
        if let Some(session) = &session {
            settings.providers = session.pipeline.publishing.providers.clone();
        }
        if let Some(most) = self.issuing.most_names() {
            settings.certificate_names = most;
            if let Some(session) = &mut session {
                session.pipeline.publishing.certificate_names = most;
            }
        }
        if self.expect_no_changes && self.diff.is_none() && session.is_none() {
            return Err(Failure::usage(
                "--expect-no-changes needs something to compare with: add --diff or --provider",
            ));
        }
        let objects = Objects::read_for(&self.input, self.publishing.namespace())?;
        let shown = self.look(&objects, &settings, session)?;
        self.write(out, &objects, &shown)?;
        for unread in &shown.unread {
            let _ = writeln!(std::io::stderr(), "error: {}", inert(unread));
        }
        Ok(self.ending(&shown))
    }

    /// The provider, if one is named. Flags that need one are refused without it.
    fn session(&self) -> Result<Option<Session>, Failure> {
        self.publishing.refuse_idle_resolver()?;
        if !self.flags().have_provider() {
            self.provider.check()?;
            return Ok(None);
        }
        Session::open(self.flags(), false).map(Some)
    }

    fn flags(&self) -> Flags<'_> {
        Flags { publishing: &self.publishing, provider: &self.provider, planning: &self.planning }
    }

    /// What ought to exist against what the provider has, or each of several.
    fn decision(
        &self,
        session: &Session,
        objects: &Objects,
    ) -> Result<(Decision, Vec<(Str, gatepost_core::plan::Plan)>), Failure> {
        let Some(mut once) = ProvidersOnce::open(session, self.flags())? else {
            return Ok((block_on(session.decide(objects))?, Vec::new()));
        };
        let decided = block_on(async { Ok(once.decide(session, objects).await) })?;
        let plans = decided.parts.iter().map(|part| (part.name.clone(), part.decision.plan.clone())).collect();
        let unread = decided.unread();
        Ok((Decision { unread, ..decided.into_decision() }, plans))
    }

    /// What is shown. In profile external-dns what profile strict would publish is decided on another core meanwhile: it is as
    /// much work as the plan itself.
    fn look(
        &self,
        objects: &Objects,
        settings: &publication::PublicationSettings,
        session: Option<Session>,
    ) -> Result<Shown, Failure> {
        let tells_strict = matches!(self.output, PlanFormat::Json | PlanFormat::Text);
        let strict = publication::PublicationSettings { profile: Profile::Strict, ..settings.clone() };
        std::thread::scope(|scope| {
            let other = (settings.profile == Profile::ExternalDns && tells_strict)
                .then(|| scope.spawn(|| self.desired(objects, &strict)));
            let mut shown = self.look_in_profile(objects, settings, session)?;
            shown.under_strict = other.map(|other| {
                let strict = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                Change::between(&shown.desired, &strict).names_of_records()
            });
            Ok(shown)
        })
    }

    fn look_in_profile(
        &self,
        objects: &Objects,
        settings: &publication::PublicationSettings,
        mut session: Option<Session>,
    ) -> Result<Shown, Failure> {
        let certificates = block_on(self.issuing.look())?;
        if let (Some(session), Some(certificates)) = (&mut session, &certificates) {
            session.challenge_records = certificates.challenge_records();
        }
        let (decision, providers) = match &session {
            Some(session) => {
                let (decision, providers) = self.decision(session, objects)?;
                (Some(decision), providers)
            }
            None => (None, Vec::new()),
        };
        let (desired, plan, unread) = match decision {
            Some(Decision { desired, plan, unread, notes, .. }) => {
                for note in &notes {
                    let _ = writeln!(std::io::stderr(), "note: {}", inert(note));
                }
                (desired.into_whole(), Some(plan), unread)
            }
            None => (self.desired(objects, settings), None, Vec::new()),
        };
        let desired = told(objects, desired);
        let change = match &self.diff {
            Some(path) => {
                let old = Objects::read(&Input {
                    files: vec![path.clone()],
                    kustomize: Vec::new(),
                    helm: Vec::new(),
                    cluster: Default::default(),
                    ..self.input.clone()
                })?;
                Some(Change::between(&self.desired(&old, settings), &desired))
            }
            None => None,
        };
        let orders = match &certificates {
            Some(certificates) => Some(block_on(forecast(certificates, objects, &desired))?),
            None => None,
        };
        Ok(Shown { desired, change, plan, unread, orders, under_strict: None, providers })
    }

    fn desired(&self, objects: &Objects, settings: &publication::PublicationSettings) -> Desired {
        // The profile of external-dns has rules of its own for what attaches where.
        let topology = match settings.profile {
            Profile::Strict => Topology::build(objects.snapshot(), &self.publishing.scope()),
            Profile::ExternalDns => Topology::default(),
        };
        publication::build(objects.snapshot(), &topology, settings)
    }

    fn write(&self, out: &mut dyn Write, objects: &Objects, shown: &Shown) -> Result<(), Failure> {
        let Shown { desired, change, plan: decided, orders, under_strict, .. } = shown;
        match self.output {
            PlanFormat::Json => {
                let diagnostics = desired.diagnostics.iter().map(DiagnosticView::of).collect();
                let view = PlanView::of(desired, change.as_ref(), diagnostics).with(decided.as_ref(), None);
                let view = view.with_orders(orders.as_ref()).with_changed_under_strict(under_strict.as_ref());
                let providers = shown.providers.iter().map(|(name, plan)| ProviderView::planned(name, plan, None));
                write_json(out, &view.with_providers(providers))?;
            }
            PlanFormat::Text => {
                let one = decided.as_ref().filter(|_| shown.providers.is_empty());
                plan::write(out, desired, change.as_ref(), one, objects, Colour::detect())?;
                if let Some(names) = under_strict {
                    writeln!(out, "{}", inert(&plan::under_strict(names)))?;
                }
                for (name, plan) in &shown.providers {
                    writeln!(out, "provider {name}: {}", steps::summary(plan))?;
                    steps::write(out, plan, None, Colour::detect())?;
                }
                if let Some(orders) = orders.as_ref().filter(|orders| orders.orders > 0) {
                    writeln!(out, "certificates: {}", inert(&orders.to_string()))?;
                }
                if let Some(decided) = decided.as_ref().filter(|decided| !decided.steps.is_empty()) {
                    writeln!(out, "write it with `gatepost apply --plan {}` and the same flags", decided.digest)?;
                }
            }
            PlanFormat::Markdown => markdown::write(out, desired, change.as_ref(), decided.as_ref())?,
            PlanFormat::Zonefile => zonefile::write(out, desired)?,
            PlanFormat::Mermaid => write!(out, "{}", chart::of_plan(desired, decided.as_ref()))?,
        }
        Ok(())
    }

    fn ending(&self, shown: &Shown) -> Ending {
        let is_changed = shown.change.as_ref().is_some_and(|change| !change.is_empty());
        let differs = shown.plan.as_ref().is_some_and(|plan| !plan.steps.is_empty() || plan.is_braked());
        if !shown.unread.is_empty() {
            Ending::Incomplete
        } else if self.expect_no_changes && (is_changed || differs) {
            Ending::No
        } else {
            Ending::Done
        }
    }
}

/// What it takes to have all certificates.
async fn forecast(certificates: &Certificates, objects: &Objects, desired: &Desired) -> Result<Forecast, Failure> {
    let forecast = certificates.forecast(desired, objects.snapshot(), crate::certificates::now()).await;
    forecast.map_err(|error| Failure::usage(error.to_string()))
}

/// Adds what was odd about reading the objects, worst first, with positions.
pub(super) fn told(objects: &Objects, mut desired: Desired) -> Desired {
    let told: BTreeSet<_> = desired.diagnostics.iter().map(|d| (d.object.clone(), d.field.to_string())).collect();
    let is_new = |d: &&Diagnostic| !told.contains(&(d.object.clone(), d.field.to_string()));
    let unread = objects.problems().iter().filter(|d| d.severity <= Severity::Warning).filter(is_new).cloned();
    desired.diagnostics.extend(unread);
    desired.diagnostics.sort_by(|a, b| a.rank().cmp(&b.rank()));
    desired.diagnostics = objects.placed(std::mem::take(&mut desired.diagnostics));
    desired
}
