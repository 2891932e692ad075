//! Sources of objects: files, or a cluster, which provide the same values.
//!
//! Only this module and its children read files. They never evaluate what they read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gatepost_core::attachment::{Scope, Topology};
use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::lint::LintContext;
use gatepost_core::policy::Policies;
use gatepost_core::publication::providers::PublishingProviders;
use gatepost_core::reason::{OBJECT_UNREADABLE, SYNTAX_ERROR, UNRENDERED_TEMPLATE};
use gatepost_core::snapshot::Snapshot;

use crate::cli::Input;
use crate::error::RunError;
use crate::progress::LongWork;
use crate::run::ReadObjects;

pub mod cluster;
pub mod file;
pub mod file_cache;
pub mod rendered;

/// The texts that positions of diagnostics refer to.
pub trait Sources {
    /// A line of a source, counted from 1, if it is available and may be shown.
    fn line(&self, source: &str, number: u32) -> Option<Cow<'_, str>>;
}

/// Objects, problems found while reading them, and their positions.
pub struct Objects {
    loaded: gatepost_objects::Loaded,
}

impl Objects {
    /// Reads the input of the command line.
    pub fn read(input: &Input) -> Result<Objects, RunError> {
        Objects::read_for(input, None)
    }

    /// Like [`Objects::read`]; of kinds that may not be listed in the whole cluster, reads one namespace.
    pub fn read_for(input: &Input, namespace: Option<&str>) -> Result<Objects, RunError> {
        let _work = LongWork::begin("reading the objects");
        if !input.has_files() {
            return Ok(Objects { loaded: cluster::read(&input.cluster.place(), namespace)? });
        }
        if input.cluster.is_named() {
            return Err(RunError::usage(
                "objects come from files or from a cluster: leave out -f, -k and --helm, or --kubeconfig and --context",
            ));
        }
        let mut texts = file::texts(&input.files)?;
        let layout = rendered::read(input, &mut texts)?;
        let texts = texts.into_iter().map(|text| (text.name.into(), text.bytes));
        let settings = gatepost_objects::ParseSettings { layout: layout.into(), ..input.parse_settings() };
        let mut loaded = gatepost_objects::collect(texts, &settings);
        input.complete(&mut loaded);
        Ok(Objects { loaded })
    }

    /// The objects.
    pub fn snapshot(&self) -> &Snapshot {
        &self.loaded.snapshot
    }

    /// How many objects there are.
    pub fn count(&self) -> usize {
        self.snapshot().len()
    }

    /// Evaluates the objects.
    pub fn topology(&self, scope: &Scope) -> Topology {
        Topology::build(self.snapshot(), scope)
    }

    /// The objects and their topology, as input of a pass.
    pub fn seen<'a>(&'a self, topology: &'a Topology) -> ReadObjects<'a> {
        ReadObjects { snapshot: self.snapshot(), topology, problems: self.problems() }
    }

    /// Problems found while reading the objects.
    pub fn problems(&self) -> &[Diagnostic] {
        &self.loaded.diagnostics
    }

    /// Unsupported kinds, with the number of objects of each.
    pub fn passed_over(&self) -> &BTreeMap<String, usize> {
        &self.loaded.passed_over
    }

    /// All diagnostics of the objects, most severe first, with positions.
    pub fn diagnostics(&self, topology: &Topology, providers: &PublishingProviders) -> Vec<Diagnostic> {
        let mut all = self.problems().to_vec();
        all.extend(LintContext { snapshot: self.snapshot(), topology }.diagnostics());
        let policies = Policies::build(self.snapshot(), topology, providers);
        let context = LintContext { snapshot: self.snapshot(), topology };
        all.extend(context.health_checks(&policies));
        let is_reported =
            |d: &Diagnostic| all.iter().any(|other| other.object == d.object && d.field.is_within(&other.field));
        let is_told = |d: &Diagnostic| !is_reported(d) && context.is_certain(d);
        let unreported: Vec<_> = policies.diagnostics().into_iter().filter(is_told).collect();
        all.extend(unreported);
        all.sort_by(|a, b| a.rank().cmp(&b.rank()));
        self.placed(all)
    }

    /// The same diagnostics with positions, as far as these are known.
    pub fn placed(&self, mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
        self.loaded.fill_places(&mut diagnostics);
        diagnostics
    }
}

/// Whether a problem means that an object, or a text, could not be read and is omitted.
pub fn is_unreadable(problem: &Diagnostic) -> bool {
    [SYNTAX_ERROR, OBJECT_UNREADABLE, UNRENDERED_TEMPLATE].contains(&problem.reason)
}

impl Sources for Objects {
    fn line(&self, source: &str, number: u32) -> Option<Cow<'_, str>> {
        self.loaded.text(source)?.line(number)
    }
}
