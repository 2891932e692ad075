//! What one text says about others: a kustomization, Kustomization objects of Flux, or that a chart begins here.

use gatepost_core::model::Str;

use super::PatchTarget;
use crate::documents;
use crate::parse::{ParseLimits, list_items, readable};
use crate::tree::{self, Tree};

/// What a text says about others; most say nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextFacts {
    pub(super) kustomization: Option<Kustomization>,
    pub(super) flux: Vec<FluxKustomization>,
    pub(super) is_chart: bool,
}

/// A `kustomization.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kustomization {
    pub(super) namespace: Option<Str>,
    /// Files and directories with objects.
    pub(super) listed: Vec<String>,
    /// Patches that name what they change themselves.
    pub(super) patch_files: Vec<String>,
    /// Patches whose target stands in the kustomization.
    pub(super) targeted_patch_files: Vec<String>,
    /// Other files that hold no objects.
    pub(super) other_files: Vec<String>,
    /// What inline patches and replacements change.
    pub(super) patched: Vec<PatchTarget>,
}

/// A Kustomization object of Flux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FluxKustomization {
    /// Seen from the top of the repository.
    pub(super) path: String,
    pub(super) namespace: Option<Str>,
    pub(super) patched: Vec<PatchTarget>,
}

/// The names of a kustomization.
const KUSTOMIZATION: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The group of Flux's Kustomization objects.
const FLUX: &str = "kustomize.toolkit.fluxcd.io/";

impl TextFacts {
    /// What a text says, by its name and contents.
    pub fn of(name: &str, text: &[u8]) -> TextFacts {
        let file = name.rsplit('/').next().unwrap_or(name);
        let mut facts = TextFacts { is_chart: file == "Chart.yaml", ..TextFacts::default() };
        if KUSTOMIZATION.contains(&file) {
            let mut found = Kustomization::default();
            each_value(text, |value| found.read(value));
            facts.kustomization = Some(found);
        } else if memchr::memmem::find(text, FLUX.as_bytes()).is_some() {
            each_value(text, |value| facts.flux.extend(FluxKustomization::of(value)));
        }
        facts
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.kustomization.is_none() && self.flux.is_empty() && !self.is_chart
    }

    /// The other directories and files that a kustomization uses, seen from its own.
    pub fn listed(&self) -> &[String] {
        self.kustomization.as_ref().map_or(&[], |found| &found.listed)
    }
}

impl Kustomization {
    fn read(&mut self, value: &Tree<'_>) {
        self.namespace = text(value, &["namespace"]).filter(|name| !name.is_empty()).map(Str::from);
        for key in ["resources", "bases", "components"] {
            self.listed.extend(texts(value, key));
        }
        for key in ["transformers", "generators", "validators", "configurations", "crds"] {
            self.other_files.extend(texts(value, key));
        }
        for patch in texts(value, "patchesStrategicMerge") {
            match patch.contains('\n') {
                true => self.patched.extend(patched_objects(patch.as_bytes())),
                false => self.patch_files.push(patch),
            }
        }
        for patch in items(value, "patches").iter().chain(items(value, "patchesJson6902")) {
            self.patch(patch);
        }
        for replacement in items(value, "replacements") {
            self.other_files.extend(text(replacement, &["path"]).map(str::to_owned));
            let targets = items(replacement, "targets").iter().filter_map(|target| target.get("select"));
            self.patched.extend(targets.map(PatchTarget::of));
        }
        for chart in items(value, "helmCharts") {
            self.other_files.extend(text(chart, &["valuesFile"]).map(str::to_owned));
        }
    }

    fn patch(&mut self, patch: &Tree<'_>) {
        let target = patch.get("target").map(PatchTarget::of);
        let path = text(patch, &["path"]).map(str::to_owned);
        match (&target, path) {
            (Some(_), Some(path)) => self.targeted_patch_files.push(path),
            (None, Some(path)) => self.patch_files.push(path),
            (None, None) => {
                self.patched
                    .extend(text(patch, &["patch"]).map(|text| patched_objects(text.as_bytes())).unwrap_or_default());
            }
            (Some(_), None) => {}
        }
        self.patched.extend(target);
    }
}

impl PatchTarget {
    /// What a selector means. Its name is a regular expression; one that is not a plain name stands for any.
    fn of(selector: &Tree<'_>) -> PatchTarget {
        let is_plain = |name: &&str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
        PatchTarget {
            kind: text(selector, &["kind"]).filter(is_plain).map(str::to_owned),
            name: text(selector, &["name"]).filter(is_plain).map(str::to_owned),
        }
    }
}

impl FluxKustomization {
    fn of(value: &Tree<'_>) -> Option<FluxKustomization> {
        let is_meant = text(value, &["apiVersion"])?.starts_with(FLUX) && text(value, &["kind"])? == "Kustomization";
        let spec = value.get("spec").filter(|_| is_meant)?;
        let mut inner = Kustomization::default();
        for patch in items(spec, "patches") {
            inner.patch(patch);
        }
        Some(FluxKustomization {
            path: text(spec, &["path"]).unwrap_or("./").to_owned(),
            namespace: text(spec, &["targetNamespace"]).filter(|name| !name.is_empty()).map(Str::from),
            patched: inner.patched,
        })
    }
}

/// The objects that a patch names.
pub(super) fn patched_objects(patch: &[u8]) -> Vec<PatchTarget> {
    let mut found = Vec::new();
    each_value(patch, |value| {
        let kind = text(value, &["kind"]).map(str::to_owned);
        let name = text(value, &["metadata", "name"]).map(str::to_owned);
        if kind.is_some() || name.is_some() {
            found.push(PatchTarget { kind, name });
        }
    });
    found
}

/// Hands on the values of all documents, and those in Lists. What cannot be read is reported where objects are read.
fn each_value(text: &[u8], mut take: impl FnMut(&Tree<'_>)) {
    for document in documents::split(text) {
        let Ok(text) = readable(&text[document.bytes], &ParseLimits::default()) else { continue };
        tree::grow(text, |grown| match list_items(&grown.value) {
            Some((items, _)) => items.iter().for_each(&mut take),
            None => take(&grown.value),
        });
    }
}

fn text<'v>(value: &'v Tree<'v>, keys: &[&str]) -> Option<&'v str> {
    value.at(keys)?.as_text()
}

fn items<'v>(value: &'v Tree<'v>, key: &str) -> &'v [Tree<'v>] {
    value.get(key).and_then(Tree::as_list).unwrap_or_default()
}

fn texts(value: &Tree<'_>, key: &str) -> Vec<String> {
    items(value, key).iter().filter_map(Tree::as_text).map(str::to_owned).collect()
}
