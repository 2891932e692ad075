//! `gatepost explain HOSTNAME`: the whole chain and its first broken link; `explain REASON`: the page of a reason.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gatepost_core::explain::{Explanation, Publication};
use gatepost_core::lint::LintContext;
use gatepost_core::model::Key;
use gatepost_core::names::Hostname;
use gatepost_core::publication;
use gatepost_core::reason::Reason;
use gatepost_tls::certifier::IssuanceState;

use super::flags::Publishing;
use super::{Ending, Failure, Format, Input};
use crate::certificates::{cert_manager, now};
use crate::render::{Colour, certificates, explanation, inert};
use crate::source::{self, Objects};
use crate::view::explain::ExplainView;
use crate::view::write_json;

/// Explain a hostname: the whole chain and its first broken link; or a reason, by name or number
///
/// `gatepost explain shop.example.com -f manifests/` walks from the GatewayClass to the hostname and names the field to edit.
/// `gatepost explain GP0204` and `gatepost explain namespace-not-allowed` print what a reason means.
/// Exit status 1 if the name does not work.
#[derive(Args, Debug)]
pub(super) struct Explain {
    /// A hostname, or a reason such as GP0204 or namespace-not-allowed
    subject: String,
    #[command(flatten)]
    input: Input,
    /// Where `serve` and `apply` put certificates, to show what is there and how far orders are
    #[arg(long, value_name = "DIR", env = "GATEPOST_CERT_DIR")]
    cert_dir: Option<PathBuf>,
    #[command(flatten)]
    publishing: Publishing,
    /// Output format
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    output: Format,
}

impl Explain {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        if let Some(reason) = Reason::find(&self.subject) {
            return self.reason(out, reason);
        }
        let hostname = Hostname::parse(&self.subject).map_err(|error| {
            Failure::usage(format!("`{}` {error}; nor is it a reason, as in `gatepost explain GP0204`", self.subject))
        })?;
        let settings = self.publishing.settings()?;
        let objects = Objects::read_for(&self.input, self.publishing.namespace())?;
        super::warn_unreadable(&objects);
        let topology = objects.topology(&self.publishing.scope());
        let world = LintContext { snapshot: objects.snapshot(), topology: &topology };
        let mut explained = Explanation::of(world, &hostname);
        let desired = publication::build(objects.snapshot(), &topology, &settings);
        let mut published = Publication::of(world, &desired, &explained);
        let states = self.states(&desired, &objects, &mut published)?;
        place(&objects, &mut explained);
        match self.output {
            Format::Json => write_json(out, &ExplainView::of(&explained, &published).with_issuing(&states))?,
            Format::Text => {
                write!(out, "{}", explanation::render(&explained, &published, Colour::detect()))?;
                for line in states.iter().flat_map(|state| certificates::walk(state, hostname.as_str())) {
                    writeln!(out, "{line}")?;
                }
            }
        }
        let right = explained.works() && published.is_published();
        Ok(if right { Ending::Done } else { Ending::No })
    }

    /// What is known of the certificates that the hostname's listeners use, where a directory of certificates is named.
    fn states(
        &self,
        desired: &publication::Desired,
        objects: &Objects,
        published: &mut Publication,
    ) -> Result<Vec<IssuanceState>, Failure> {
        let Some(directory) = &self.cert_dir else { return Ok(self.asked_elsewhere(desired, objects, published)) };
        let states = super::session::block_on(async {
            let mut kept = super::flags::issuing::look(directory, Default::default()).await?;
            let states = kept.look(desired, objects.snapshot(), crate::certificates::now()).await;
            states.map(<[IssuanceState]>::to_vec).map_err(|error| Failure::usage(error.to_string()))
        })?;
        let is_used = |state: &IssuanceState| published.certificates.iter().any(|walk| walk.secret == state.secret);
        let states: Vec<IssuanceState> = states.into_iter().filter(is_used).collect();
        crate::certificates::overlay(published, &states, &self.subject.to_ascii_lowercase());
        Ok(states)
    }

    /// The same of certificates that are asked of cert-manager, where the objects come from a cluster.
    fn asked_elsewhere(
        &self,
        desired: &publication::Desired,
        objects: &Objects,
        published: &Publication,
    ) -> Vec<IssuanceState> {
        let secrets: Vec<Key> = published.certificates.iter().map(|walk| walk.secret.clone()).collect();
        if !self.input.files.is_empty() || secrets.is_empty() {
            return Vec::new();
        }
        let namespaces = secrets.iter().map(|secret| secret.namespace.clone()).collect();
        match source::cluster::certificates(&self.input.cluster.place(), &namespaces) {
            Ok(None) => Vec::new(),
            Ok(Some(found)) => cert_manager::states(&secrets, desired, objects.snapshot(), &found, now()),
            Err(why) => {
                let _ = writeln!(std::io::stderr(), "warning: Certificate objects could not be read: {}", inert(&why));
                Vec::new()
            }
        }
    }

    fn reason(&self, out: &mut dyn Write, reason: Reason) -> Result<Ending, Failure> {
        match self.output {
            Format::Json => write_json(out, &crate::view::explain::ReasonView::of(reason))?,
            Format::Text => write!(out, "{}", crate::render::reason::page(reason))?,
        }
        Ok(Ending::Done)
    }
}

pub(super) fn place(objects: &Objects, explained: &mut Explanation) {
    for chain in &mut explained.chains {
        chain.broken = chain.broken.take().and_then(|d| objects.placed(vec![d]).pop());
        chain.notes = objects.placed(std::mem::take(&mut chain.notes));
    }
}
