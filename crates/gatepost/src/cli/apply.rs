//! `gatepost apply`: writes a plan, once.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;
use gatepost_core::model::Str;
use gatepost_core::reason;

use super::flags::Publishing;
use super::flags::issuing::IssuingFlags;
use super::flags::planning::PlanningFlags;
use super::flags::provider::ProviderFlags;
use super::once::{self, DecidedProviders, ProvidersOnce};
use super::plan::told;
use super::session::{Flags, Session, block_on};
use super::{Ending, Failure, Format, Input};
use crate::apply::Mode;
use crate::render::{Colour, inert, steps};
use crate::run::desired::DesiredUpdate;
use crate::run::{Decision, Pass};
use crate::source::Objects;
use crate::view::diagnostic::DiagnosticView;
use crate::view::plan::{PlanView, ProviderView};
use crate::view::write_json;

/// Write the records that ought to exist, once
///
/// Compares what ought to exist with what the provider has, and writes the difference: every change with its precondition,
/// what is new before what goes. Nothing is touched that is not provably ours. With --plan nothing is written unless the
/// plan is the one of that digest, as `gatepost plan` with the same flags showed it.
#[derive(Args, Debug)]
pub(super) struct Apply {
    #[command(flatten)]
    input: Input,
    /// Write this plan and no other: its digest, or the first eight digits
    #[arg(long, value_name = "DIGEST", value_parser = digest)]
    plan: Option<String>,
    /// Output format
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    provider: ProviderFlags,
    #[command(flatten)]
    issuing: IssuingFlags,
    #[command(flatten)]
    planning: PlanningFlags,
    #[command(flatten)]
    publishing: Publishing,
}

/// How often progress is told: seldom where it goes into a file.
const OFTEN: Duration = Duration::from_millis(200);
const SELDOM: Duration = Duration::from_secs(5);

impl Apply {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        self.publishing.refuse_idle_resolver()?;
        let flags = Flags { publishing: &self.publishing, provider: &self.provider, planning: &self.planning };
        let mut session = Session::open(flags, self.planning.mode() == Mode::Act)?;
        block_on(session.issue(&self.issuing, flags))?;
        let objects = Objects::read_for(&self.input, self.publishing.namespace())?;
        super::warn_unreadable(&objects);
        if let Some(once) = ProvidersOnce::open(&session, flags)? {
            return self.write_several(out, &mut session, once, &objects);
        }
        let decision = block_on(session.decide(&objects))?;
        for note in &decision.notes {
            let _ = writeln!(std::io::stderr(), "note: {}", inert(note));
        }
        if let Some(asked) = &self.plan
            && let Err(stale) = decision.plan.check(asked)
        {
            return self.refuse(out, &objects, decision, &stale);
        }
        if let Some(note) = self.planning.shared_owner_note() {
            let _ = writeln!(std::io::stderr(), "note: {note}");
        }
        let digest = decision.plan.digest.clone();
        let mut progress = Progress::new();
        let (pass, kept) =
            block_on(async { Ok(session.write(decision, &mut |done, all| progress.tell(done, all)).await) })?;
        progress.end();
        let (mut pass, missing) = block_on(self.certify(&mut session, &objects, pass))?;
        // What `plan` showed, whatever followed from it.
        pass.plan.digest = digest;
        self.show(out, &objects, &pass)?;
        if let Err(error) = kept {
            return Err(Failure::Unreadable(anyhow::anyhow!("--state-dir: what was done could not be kept: {error}")));
        }
        Ok(self.end(&pass, &missing))
    }

    /// The same to several providers, each with its own plan.
    fn write_several(
        &self,
        out: &mut dyn Write,
        session: &mut Session,
        mut once: ProvidersOnce,
        objects: &Objects,
    ) -> Result<Ending, Failure> {
        let decided = block_on(async { Ok(once.decide(session, objects).await) })?;
        if let Some(asked) = &self.plan
            && let Err(stale) = decided.plan().check(asked)
        {
            return self.refuse(out, objects, decided.into_decision(), &stale);
        }
        let digest = decided.plan().digest;
        let digests: Vec<String> = decided.parts.iter().map(|part| part.decision.plan.digest.clone()).collect();
        let (mut pass, mut parts, missing) = block_on(self.certify_several(session, &mut once, objects, decided))?;
        pass.outcome = once.outcome(&parts);
        // What `plan` showed, whatever followed from it.
        pass.plan.digest = digest;
        parts.iter_mut().zip(digests).for_each(|((_, part), digest)| part.plan.digest = digest);
        self.show_several(out, objects, &pass, &parts, &once)?;
        Ok(self.end(&pass, &missing))
    }

    /// Writes, and goes on until every certificate is there or nothing more comes of waiting.
    async fn certify_several(
        &self,
        session: &mut Session,
        once: &mut ProvidersOnce,
        objects: &Objects,
        mut decided: DecidedProviders,
    ) -> Result<(Pass, Vec<(Str, Pass)>, Vec<String>), Failure> {
        let end = Instant::now() + self.issuing.patience();
        let mut parts: Vec<(Str, Pass)> = Vec::new();
        loop {
            let update = DesiredUpdate::Whole(Box::new(decided.desired.clone()));
            let (mut pass, _) = session.write(Decision::of(update, Default::default()), &mut |_, _| ()).await;
            let next = once.write(session, decided).await;
            parts = match parts.is_empty() {
                true => next,
                false => parts.into_iter().zip(next).map(|((name, a), (_, b))| (name, a.followed_by(b))).collect(),
            };
            let all = once::merged(parts.iter());
            (pass.plan, pass.outcome, pass.unread, pass.notes) = (all.plan, all.outcome, all.unread, all.notes);
            let again = match session.certify(objects.snapshot(), &mut pass).await {
                Ok(again) => again,
                Err(error) => return Ok((pass, parts, vec![format!("certificates: {error}")])),
            };
            let Some(certificates) = &session.certificates else { return Ok((pass, parts, Vec::new())) };
            let wait = certificates.pause().filter(|wait| !again && Instant::now() + *wait < end);
            if Instant::now() > end || (!again && wait.is_none()) {
                let missing = certificates.missing();
                return Ok((pass, parts, missing));
            }
            tokio::time::sleep(wait.unwrap_or_default()).await;
            decided = once.decide(session, objects).await;
        }
    }

    /// Says what is left, and how the command ends.
    fn end(&self, pass: &Pass, missing: &[String]) -> Ending {
        let left = pass.outcome.failed.len() + pass.outcome.skipped.len();
        if left > 0 && self.planning.mode() == Mode::Act {
            let what = if left == 1 { "1 name was".to_owned() } else { format!("{left} names were") };
            let advice = "fix what the messages name and run the command again: the next plan takes what is there now into account";
            let _ = writeln!(std::io::stderr(), "error: {what} not written; {advice}");
        }
        if pass.plan.is_braked() {
            let _ = writeln!(std::io::stderr(), "refused: {}", inert(&refusal(&pass.plan)));
        }
        for line in missing {
            let _ = writeln!(std::io::stderr(), "error: {}", inert(line));
        }
        match self.ending(pass) {
            Ending::Done if !missing.is_empty() => Ending::Incomplete,
            ending => ending,
        }
    }

    /// Goes on until every certificate is there or nothing more comes of waiting; says which names have none, and why.
    async fn certify(
        &self,
        session: &mut Session,
        objects: &Objects,
        mut pass: Pass,
    ) -> Result<(Pass, Vec<String>), Failure> {
        let end = Instant::now() + self.issuing.patience();
        loop {
            let again = match session.certify(objects.snapshot(), &mut pass).await {
                Ok(again) => again,
                Err(error) => return Ok((pass, vec![format!("certificates: {error}")])),
            };
            let Some(certificates) = &session.certificates else { return Ok((pass, Vec::new())) };
            let wait = certificates.pause().filter(|wait| !again && Instant::now() + *wait < end);
            if Instant::now() > end || (!again && wait.is_none()) {
                return Ok((pass, certificates.missing()));
            }
            tokio::time::sleep(wait.unwrap_or_default()).await;
            let decision = session.decide(objects).await?;
            let (mut next, kept) = session.write(decision, &mut |_, _| ()).await;
            next.notes.extend(kept.err().map(|error| format!("--state-dir: what was done could not be kept: {error}")));
            pass = pass.followed_by(next);
        }
    }

    /// The plan is not the one that was asked for: it is shown, and nothing is written.
    fn refuse(
        &self,
        out: &mut dyn Write,
        objects: &Objects,
        decision: Decision,
        stale: &gatepost_core::plan::Stale,
    ) -> Result<Ending, Failure> {
        let row = reason::PLAN_STALE.row();
        let message = format!(
            "nothing was written: --plan asks for {}, and the plan of this moment is {} [{} {}]",
            stale.expected, stale.found, row.code, row.name
        );
        match self.output {
            Format::Json => {
                let desired = told(objects, decision.desired.into_whole());
                let diagnostics = desired.diagnostics.iter().map(DiagnosticView::of).collect();
                let view = PlanView::of(&desired, None, diagnostics).with(Some(&decision.plan), None);
                write_json(out, &view.refused(reason::PLAN_STALE, message.clone()))?;
            }
            Format::Text => {
                writeln!(out, "{}", steps::summary(&decision.plan))?;
                steps::write(out, &decision.plan, None, Colour::detect())?;
            }
        }
        let _ = writeln!(std::io::stderr(), "error: {}\n  help: {}", inert(&message), row.help);
        Ok(Ending::Refused)
    }

    fn show_several(
        &self,
        out: &mut dyn Write,
        objects: &Objects,
        pass: &Pass,
        parts: &[(Str, Pass)],
        once: &ProvidersOnce,
    ) -> Result<(), Failure> {
        let acts = self.planning.mode() == Mode::Act;
        let outcome = |name: &str, part: &Pass| (acts && !once.only_looks(name)).then(|| part.outcome.clone());
        for note in &pass.notes {
            let _ = writeln!(std::io::stderr(), "note: {}", inert(note));
        }
        for unread in &pass.unread {
            let _ = writeln!(std::io::stderr(), "error: {}", inert(unread));
        }
        let desired = told(objects, pass.desired.read().clone());
        if let Format::Json = self.output {
            let diagnostics = desired.diagnostics.iter().map(DiagnosticView::of).collect();
            let views =
                parts.iter().map(|(name, part)| ProviderView::planned(name, &part.plan, outcome(name, part).as_ref()));
            let outcome = acts.then(|| pass.outcome.clone());
            let view = PlanView::of(&desired, None, diagnostics).with(Some(&pass.plan), outcome.as_ref());
            write_json(out, &view.with_providers(views))?;
            return Ok(());
        }
        for (name, part) in parts {
            let outcome = outcome(name, part);
            let summary = match &outcome {
                Some(outcome) => steps::written(&part.plan, outcome),
                None if acts => {
                    format!("{}; nothing was written (dry-run of this provider)", steps::summary(&part.plan))
                }
                None => format!("{}; nothing was written (--dry-run)", steps::summary(&part.plan)),
            };
            writeln!(out, "provider {name}: {summary}")?;
            steps::write(out, &part.plan, outcome.as_ref(), Colour::detect())?;
        }
        for withheld in &desired.withheld {
            let line = crate::render::plan::withheld_line(withheld);
            writeln!(out, "  {} {}", Colour::detect().paint("33", "withheld"), crate::render::inert_line(&line))?;
        }
        Ok(())
    }

    fn show(&self, out: &mut dyn Write, objects: &Objects, pass: &Pass) -> Result<(), Failure> {
        for unread in &pass.unread {
            let _ = writeln!(std::io::stderr(), "error: {}", inert(unread));
        }
        let outcome = (self.planning.mode() == Mode::Act).then_some(&pass.outcome);
        if let Format::Json = self.output {
            let desired = told(objects, pass.desired.read().clone());
            let diagnostics = desired.diagnostics.iter().map(DiagnosticView::of).collect();
            write_json(out, &PlanView::of(&desired, None, diagnostics).with(Some(&pass.plan), outcome))?;
            return Ok(());
        }
        steps::write(out, &pass.plan, outcome, Colour::detect())?;
        for withheld in &pass.desired.read().withheld {
            let line = crate::render::plan::withheld_line(withheld);
            writeln!(out, "  {} {}", Colour::detect().paint("33", "withheld"), crate::render::inert_line(&line))?;
        }
        match outcome {
            Some(outcome) => writeln!(out, "{}", steps::written(&pass.plan, outcome))?,
            None => writeln!(out, "{}; nothing was written (--dry-run)", steps::summary(&pass.plan))?,
        }
        Ok(())
    }

    fn ending(&self, pass: &Pass) -> Ending {
        let is_partial = self.planning.mode() == Mode::Act && !pass.outcome.is_complete();
        if !pass.unread.is_empty() || is_partial {
            Ending::Incomplete
        } else if pass.plan.is_braked() {
            Ending::Refused
        } else {
            Ending::Done
        }
    }
}

/// What a brake holds, and what releases it.
fn refusal(plan: &gatepost_core::plan::Plan) -> String {
    let count = steps::braked(plan);
    let what = if count == 1 {
        "a safety brake holds 1 change".to_owned()
    } else {
        format!("safety brakes hold {count} changes")
    };
    let is_confirmable = plan.held.iter().filter(|held| held.is_brake()).all(|held| held.is_confirmable());
    match is_confirmable {
        true => format!("{what}; look at them, and carry them out with --confirm-deletes if they are meant"),
        false => format!("{what}; the reasons above say what to do"),
    }
}

/// A line on standard error that says how far the work is.
struct Progress {
    is_terminal: bool,
    told: Option<Instant>,
    begun: Instant,
}

impl Progress {
    fn new() -> Self {
        Progress { is_terminal: std::io::stderr().is_terminal(), told: None, begun: Instant::now() }
    }

    fn tell(&mut self, done: usize, all: usize) {
        let pause = if self.is_terminal { OFTEN } else { SELDOM };
        if self.told.unwrap_or(self.begun).elapsed() < pause {
            return;
        }
        self.told = Some(Instant::now());
        let (before, after) = if self.is_terminal { ("\r", "\x1b[K") } else { ("", "\n") };
        let _ = write!(std::io::stderr(), "{before}{done} of {all} changes{after}");
    }

    /// Takes the line away.
    fn end(&self) {
        if self.is_terminal && self.told.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn digest(text: &str) -> Result<String, String> {
    let is_digest = text.len() >= 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let wrong = || "write the digest that `gatepost plan` shows, at least eight of its digits".to_owned();
    is_digest.then(|| text.to_owned()).ok_or_else(wrong)
}
