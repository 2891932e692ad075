//! `gatepost explain HOSTNAME`: what becomes of a name; `explain KIND/NAMESPACE/NAME`: of every name that an object asks
//! for; `explain REASON`: the page of a reason.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::explain::{Explanation, NameVerdict, Publication, asked_names};
use gatepost_core::lint::{LintContext, closest};
use gatepost_core::model::{Key, Kind, ObjectRef, RouteKind};
use gatepost_core::names::{Hostname, host_of};
use gatepost_core::publication::settings::Profile;
use gatepost_core::publication::{self, Desired, PresentState};
use gatepost_core::reason::Reason;
use gatepost_tls::certifier::IssuanceState;

use super::flags::Publishing;
use super::{Ending, Failure, Input};
use crate::certificates::{cert_manager, now};
use crate::render::chart::ChartInput;
use crate::render::{Colour, certificates, explanation, inert, inert_line};
use crate::source::{self, Objects};
use crate::state;
use crate::view::explain::{ExplainView, ObjectNamesView};
use crate::view::write_json;

/// Say what becomes of a hostname and why, of all names of an object, or what a reason means
///
/// `gatepost explain shop.example.com -f manifests/` says whether the name is attached, published and served, and which field to
/// edit if it is not. `gatepost explain HTTPRoute/web/storefront` does so for every name that the object asks for.
/// `gatepost explain GP0204` and `gatepost explain namespace-not-allowed` print what a reason means.
/// Exit status 1 if a name does not work.
#[derive(Args, Debug)]
pub(super) struct Explain {
    /// A hostname or URL, an object as KIND/NAMESPACE/NAME, or a reason such as GP0204
    subject: String,
    #[command(flatten)]
    input: Input,
    /// Where `serve` and `apply` put certificates, to show what is there and how far orders are
    #[arg(long, value_name = "DIR", env = "GATEPOST_CERT_DIR")]
    cert_dir: Option<PathBuf>,
    /// Where `serve` remembers the health of addresses, to show which are left out because of it
    #[arg(long, value_name = "DIR", env = "GATEPOST_STATE_DIR")]
    state_dir: Option<PathBuf>,
    #[command(flatten)]
    publishing: Publishing,
    /// Output format
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    output: ExplainFormat,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum ExplainFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// The chains of a hostname as a Mermaid flowchart, for tickets and pull requests
    Mermaid,
    /// The same as a picture
    Svg,
}

/// What is asked about.
enum Subject {
    Reason(Reason),
    Name(Hostname),
    Object(ObjectRef),
}

/// Everything that explanations are made from.
struct ExplainInput<'a> {
    objects: &'a Objects,
    context: LintContext<'a>,
    desired: &'a Desired,
    /// Whether HostnameGrants count: not in profile external-dns.
    has_grants: bool,
}

/// The explanation of one name.
struct Explained {
    explanation: Explanation,
    published: Publication,
    states: Vec<IssuanceState>,
}

impl Explain {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        let subject = Subject::parse(&self.subject)?;
        if let Subject::Reason(reason) = subject {
            return self.reason(out, reason);
        }
        let settings = self.publishing.settings()?;
        let objects = Objects::read_for(&self.input, self.publishing.namespace())?;
        super::warn_unreadable(&objects);
        let topology = objects.topology(&self.publishing.scope());
        let context = LintContext { snapshot: objects.snapshot(), topology: &topology };
        let health = self.state_dir.as_deref().map(state::kept_health).transpose()?.unwrap_or_default();
        let beside = PresentState { names: &[], observed: &Default::default(), health: &health };
        let desired = publication::build_beside(objects.snapshot(), &topology, &settings, beside);
        let has_grants = settings.profile == Profile::Strict;
        let world = ExplainInput { objects: &objects, context, desired: &desired, has_grants };
        match subject {
            Subject::Object(object) => self.object(out, &world, &object),
            Subject::Name(hostname) => self.name(out, &world, &hostname),
            Subject::Reason(reason) => self.reason(out, reason),
        }
    }

    fn name(&self, out: &mut dyn Write, world: &ExplainInput<'_>, hostname: &Hostname) -> Result<Ending, Failure> {
        let found = self.explained(world, hostname)?;
        match self.output {
            ExplainFormat::Json => write_json(out, &found.view())?,
            ExplainFormat::Mermaid => write!(out, "{}", found.chart()?.mermaid())?,
            ExplainFormat::Svg => write!(out, "{}", found.chart()?.svg())?,
            ExplainFormat::Text => {
                write!(out, "{}", explanation::render(&found.explanation, &found.published, Colour::detect()))?;
                for line in found.states.iter().flat_map(|state| certificates::walk(state, hostname.as_str())) {
                    writeln!(out, "{line}")?;
                }
            }
        }
        Ok(found.ending())
    }

    /// Every name that an object asks for, with its verdict and first cause.
    fn object(&self, out: &mut dyn Write, world: &ExplainInput<'_>, object: &ObjectRef) -> Result<Ending, Failure> {
        if !world.has(object) {
            return Err(world.no_such_object(object));
        }
        self.refuse_picture("an object")?;
        let names = asked_names(world.context.snapshot, world.desired, object);
        let found: Result<Vec<Explained>, Failure> = names.iter().map(|name| self.explained(world, name)).collect();
        let found = found?;
        let unreadable = world.unreadable(object);
        match self.output {
            ExplainFormat::Json => {
                let names = found.iter().map(Explained::view).collect();
                write_json(out, &ObjectNamesView { object: object.to_string(), names })?;
            }
            _ => {
                let counted = if found.len() == 1 { "1 name".to_owned() } else { format!("{} names", found.len()) };
                writeln!(out, "{}", inert_line(&format!("{object} asks for {counted}")))?;
                for one in &found {
                    write!(out, "{}", explanation::summary(&one.explanation, &one.published, Colour::detect()))?;
                }
                for problem in &unreadable {
                    writeln!(out, "✗ {}", inert_line(&crate::render::snippet::headline(problem)))?;
                }
            }
        }
        let all_work = !found.is_empty() && found.iter().all(|one| one.ending() == Ending::Done);
        Ok(if all_work && unreadable.is_empty() { Ending::Done } else { Ending::No })
    }

    fn explained(&self, world: &ExplainInput<'_>, hostname: &Hostname) -> Result<Explained, Failure> {
        let mut explanation = Explanation::of(world.context, hostname);
        explanation.grant = explanation.grant.filter(|_| world.has_grants);
        let mut published = Publication::of(world.context, world.desired, &mut explanation);
        let states = self.states(hostname, world.desired, world.objects, &mut published)?;
        place(world.objects, &mut explanation, &mut published);
        Ok(Explained { explanation, published, states })
    }

    /// What is known of the certificates that the hostname's listeners use, where a directory of certificates is named.
    fn states(
        &self,
        hostname: &Hostname,
        desired: &Desired,
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
        crate::certificates::overlay(published, &states, hostname.as_str());
        Ok(states)
    }

    /// The same of certificates that are asked of cert-manager, where the objects come from a cluster.
    fn asked_elsewhere(&self, desired: &Desired, objects: &Objects, published: &Publication) -> Vec<IssuanceState> {
        let secrets: Vec<Key> = published.certificates.iter().map(|walk| walk.secret.clone()).collect();
        if self.input.has_files() || secrets.is_empty() {
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

    /// Only a hostname has chains to be drawn.
    fn refuse_picture(&self, what: &str) -> Result<(), Failure> {
        match self.output {
            ExplainFormat::Mermaid | ExplainFormat::Svg => Err(Failure::usage(format!(
                "-o mermaid and -o svg draw the chains of one hostname, and `{}` is {what}",
                self.subject
            ))),
            ExplainFormat::Text | ExplainFormat::Json => Ok(()),
        }
    }

    fn reason(&self, out: &mut dyn Write, reason: Reason) -> Result<Ending, Failure> {
        self.refuse_picture("a reason")?;
        match self.output {
            ExplainFormat::Json => write_json(out, &crate::view::explain::ReasonView::of(reason))?,
            _ => write!(out, "{}", crate::render::reason::page(reason))?,
        }
        Ok(Ending::Done)
    }
}

impl Explained {
    fn chart(&self) -> Result<ChartInput, Failure> {
        let value = serde_json::to_value(self.view());
        value.and_then(serde_json::from_value).map_err(|error| Failure::usage(error.to_string()))
    }

    fn view(&self) -> ExplainView {
        ExplainView::of(&self.explanation, &self.published).with_issuing(&self.states)
    }

    fn ending(&self) -> Ending {
        let works = self.published.verdict(&self.explanation) == NameVerdict::Works;
        if works { Ending::Done } else { Ending::No }
    }
}

impl Subject {
    fn parse(text: &str) -> Result<Subject, Failure> {
        if let Some(reason) = Reason::find(text) {
            return Ok(Subject::Reason(reason));
        }
        if let Some(object) = object(text) {
            return Ok(Subject::Object(object));
        }
        if let Some(why) = no_such_kind(text) {
            return Err(Failure::usage(format!("`explain {text}`: {why}")));
        }
        let host = match text.split_once("://") {
            Some((_, rest)) => host_of(rest.split(['/', '?', '#']).next().unwrap_or_default()),
            None => text.to_ascii_lowercase(),
        };
        let host = host.strip_suffix('.').unwrap_or(&host);
        let looks_like_reason = !host.contains('.') && (host.contains('-') || host.starts_with("gp"));
        if looks_like_reason {
            return Err(no_such_reason(text));
        }
        let name = Hostname::parse(host).map_err(|error| {
            let kinds = "a hostname, a URL, an object such as HTTPRoute/web/storefront, or a reason such as GP0204";
            Failure::usage(format!("`{text}` {error}; `explain` takes {kinds}"))
        })?;
        Ok(Subject::Name(name))
    }
}

/// The reason that was probably meant.
fn no_such_reason(text: &str) -> Failure {
    let names = || Reason::all().map(Reason::name);
    let codes = || Reason::all().map(|reason| reason.row().code);
    let is_code = text.to_ascii_lowercase().starts_with("gp") && !text.contains('-');
    let near = if is_code { closest(&text.to_ascii_uppercase(), codes()) } else { closest(text, names()) };
    match near {
        Some(near) => Failure::usage(format!("there is no reason `{text}`: did you mean `{near}`?")),
        None => Failure::usage(format!("there is no reason `{text}`; docs/diagnostics lists all of them")),
    }
}

/// The kinds of objects that have hostnames.
fn kinds() -> impl Iterator<Item = Kind> {
    [Kind::Gateway, Kind::ListenerSet, Kind::XListenerSet].into_iter().chain(RouteKind::ALL.map(Kind::Route))
}

/// `KIND/NAMESPACE/NAME`, the kind in any case.
fn object(text: &str) -> Option<ObjectRef> {
    let [kind, namespace, name] = three_parts(text)?;
    let kind = kinds().find(|known| known.as_str().eq_ignore_ascii_case(kind))?;
    Some(ObjectRef::new(kind, namespace, name))
}

fn three_parts(text: &str) -> Option<[&str; 3]> {
    let parts: Vec<&str> = text.split('/').collect();
    <[&str; 3]>::try_from(parts).ok().filter(|[_, _, name]| !name.is_empty())
}

/// Why there is nothing to explain about an object of another kind; `None` for what is no object, such as a host with a path.
fn no_such_kind(text: &str) -> Option<String> {
    let [kind, ..] = three_parts(text)?;
    let known = Kind::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(kind));
    let looks_like_kind = kind.starts_with(|first: char| first.is_ascii_uppercase()) && !kind.contains(['.', ':']);
    let listed = kinds().map(|kind| kind.to_string()).collect::<Vec<_>>().join(", ");
    let why = match known {
        Some(Kind::DnsPolicy | Kind::TlsPolicy) => "a policy asks for no names; `gatepost status` shows it".to_owned(),
        Some(known) => format!("a {known} asks for no names"),
        None if looks_like_kind => format!("there is no kind `{kind}` here"),
        None => return None,
    };
    Some(format!("{why}. KIND/NAMESPACE/NAME is for the kinds {listed}"))
}

impl ExplainInput<'_> {
    fn has(&self, object: &ObjectRef) -> bool {
        self.known(object.kind).contains(object)
    }

    /// The objects of a kind.
    fn known(&self, kind: Kind) -> Vec<ObjectRef> {
        let snapshot = self.context.snapshot;
        match kind {
            Kind::Gateway => snapshot.gateways.keys().map(|key| ObjectRef { kind, key: key.clone() }).collect(),
            Kind::Route(_) => snapshot.routes.keys().filter(|object| object.kind == kind).cloned().collect(),
            _ => snapshot.listener_sets.keys().filter(|object| object.kind == kind).cloned().collect(),
        }
    }

    fn no_such_object(&self, object: &ObjectRef) -> Failure {
        let known: Vec<String> = self.known(object.kind).iter().map(ToString::to_string).collect();
        match closest(&object.to_string(), known.iter().map(|name| &**name)) {
            Some(near) => Failure::usage(format!("there is no {object} in the input: did you mean {near}?")),
            None => Failure::usage(format!("there is no {object} in the input")),
        }
    }

    /// Hostnames of a route that are none.
    fn unreadable(&self, object: &ObjectRef) -> Vec<Diagnostic> {
        let problems = self.objects.problems().iter();
        let is_its = |d: &&Diagnostic| d.object.as_ref() == Some(object) && d.field.to_string().contains("hostname");
        problems.filter(is_its).cloned().collect()
    }
}

/// Adds the positions in the files to everything that is said about objects.
pub(super) fn place(objects: &Objects, explained: &mut Explanation, published: &mut Publication) {
    let placed = |diagnostic: &mut Diagnostic| {
        if let Some(found) = objects.placed(vec![diagnostic.clone()]).pop() {
            *diagnostic = found;
        }
    };
    for chain in &mut explained.chains {
        chain.broken.iter_mut().chain(&mut chain.notes).for_each(placed);
    }
    published.requests.iter_mut().flat_map(|outcome| &mut outcome.cause).for_each(placed);
    published.certificates.iter_mut().flat_map(|walk| &mut walk.finding).for_each(placed);
    published.losing.iter_mut().chain(published.unsecured.iter_mut().map(|(_, problem)| problem)).for_each(placed);
}
