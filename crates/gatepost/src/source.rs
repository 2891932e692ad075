//! Where objects come from: files, or a cluster, which fills the same values.
//!
//! Only this module and its children read files. They never judge what they read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gatepost_core::attachment::{Scope, Topology};
use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::lint::LintContext;
use gatepost_core::policy::Policies;
use gatepost_core::reason::{OBJECT_UNREADABLE, SYNTAX_ERROR};
use gatepost_core::snapshot::{Origin, Snapshot};
use gatepost_objects::ParseSettings;

use crate::cli::Input;
use crate::error::RunError;
use crate::run::ReadObjects;

pub mod cluster;
pub mod file;
pub mod file_cache;

/// Texts that positions refer to.
pub trait Sources {
    /// A line of a source, counted from 1, if it is at hand and may be shown.
    fn line(&self, source: &str, number: u32) -> Option<Cow<'_, str>>;
}

/// Objects, what was odd about reading them, and where they stand.
pub struct Objects {
    loaded: gatepost_objects::Loaded,
}

impl Objects {
    /// Reads what the command line names.
    pub fn read(input: &Input) -> Result<Objects, RunError> {
        Objects::read_for(input, None)
    }

    /// The same for somebody who asks about a namespace and may see no more than that of a cluster.
    pub fn read_for(input: &Input, namespace: Option<&str>) -> Result<Objects, RunError> {
        if input.files.is_empty() {
            return Ok(Objects { loaded: cluster::read(&input.cluster.place(), namespace)? });
        }
        if input.cluster.is_named() {
            return Err(RunError::usage(
                "objects come from files or from a cluster: leave out -f, or --kubeconfig and --context",
            ));
        }
        let texts = file::texts(&input.files)?.into_iter().map(|text| (text.name.into(), text.bytes));
        let mut loaded = gatepost_objects::collect(texts, &ParseSettings::default());
        if input.as_cluster {
            loaded.snapshot.origin = Origin::Cluster;
        }
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

    /// Judges the objects.
    pub fn topology(&self, scope: &Scope) -> Topology {
        Topology::build(self.snapshot(), scope)
    }

    /// The objects and what was decided about them, as the line takes them.
    pub fn seen<'a>(&'a self, topology: &'a Topology) -> ReadObjects<'a> {
        ReadObjects { snapshot: self.snapshot(), topology, problems: self.problems() }
    }

    /// What was odd about reading them.
    pub fn problems(&self) -> &[Diagnostic] {
        &self.loaded.diagnostics
    }

    /// Kinds that were passed over, with how many of each.
    pub fn passed_over(&self) -> &BTreeMap<String, usize> {
        &self.loaded.passed_over
    }

    /// Everything there is to say about them, worst first, with positions.
    pub fn diagnostics(&self, topology: &Topology) -> Vec<Diagnostic> {
        let mut all = self.problems().to_vec();
        all.extend(LintContext { snapshot: self.snapshot(), topology }.diagnostics());
        let policies = Policies::build(self.snapshot(), topology).diagnostics();
        let is_told = |d: &Diagnostic| all.iter().any(|told| told.object == d.object && told.field == d.field);
        let untold: Vec<_> = policies.into_iter().filter(|d| !is_told(d)).collect();
        all.extend(untold);
        all.sort_by(|a, b| a.rank().cmp(&b.rank()));
        self.placed(all)
    }

    /// The same diagnostics with positions, as far as they can be found.
    pub fn placed(&self, mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
        self.loaded.fill_places(&mut diagnostics);
        diagnostics
    }
}

/// Whether a problem says that an object, or a text, could not be read and is left out.
pub fn is_unreadable(problem: &Diagnostic) -> bool {
    [SYNTAX_ERROR, OBJECT_UNREADABLE].contains(&problem.reason)
}

impl Sources for Objects {
    fn line(&self, source: &str, number: u32) -> Option<Cow<'_, str>> {
        self.loaded.text(source)?.line(number)
    }
}
