//! What directories say about the objects in their files: Kustomize, Flux and Helm assemble objects before they reach a cluster.
//!
//! A directory with a `kustomization.yaml` gives its namespace to what it lists and to what lies below it, unless another
//! kustomization does that. Where several kustomizations use a file and name different namespaces, the namespace is unknown.
//! Patches, values and the templates of charts are not objects. Nothing is rendered here, and no file is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatepost_core::diagnostic::{Diagnostic, SourcePosition};
use gatepost_core::model::Str;
use gatepost_core::reason::CHART_NOT_RENDERED;

mod facts;
mod paths;

pub use facts::TextFacts;
use facts::{Kustomization, patched_objects};
pub use paths::{folder, joined};

/// The most kustomizations that are followed from one file to those that use it.
const DEEPEST: usize = 32;

/// What is known about the texts of one command line; texts that nothing is known about are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    roles: BTreeMap<Str, TextRole>,
    /// `Chart.yaml` of every chart whose templates are among the texts.
    charts: Vec<Str>,
}

/// What a text is, and what its directories add to its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRole {
    /// Whether it holds no objects: a patch, values, or a template of a chart.
    pub is_passed_over: bool,
    /// Which namespace its objects get.
    pub namespace: NamespaceRole,
    /// The objects that kustomizations change before they reach a cluster.
    pub patched: Arc<Vec<PatchTarget>>,
    /// The kustomization that it belongs to; the same object may be in several.
    pub root: Option<Str>,
}

/// Which namespace objects of a text get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamespaceRole {
    /// The one that they state.
    Stated,
    /// This one, whatever they state.
    Set(Str),
    /// Another one for each kustomization that uses the text.
    Unknown,
}

/// Which objects a patch changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchTarget {
    /// Their kind; unset for every kind.
    pub kind: Option<String>,
    /// Their name; unset for every name.
    pub name: Option<String>,
}

impl PatchTarget {
    /// Whether it changes this object.
    pub fn concerns(&self, kind: &str, name: &str) -> bool {
        self.kind.as_deref().is_none_or(|wanted| wanted == kind)
            && self.name.as_deref().is_none_or(|wanted| wanted == name)
    }
}

impl Layout {
    /// The layout of texts, by name with what each says by itself. `read` gives the text of a patch, by its name.
    pub fn of<'t>(
        texts: impl IntoIterator<Item = (&'t str, &'t TextFacts)>,
        read: impl FnMut(&str) -> Option<Vec<u8>>,
    ) -> Layout {
        let texts: Vec<(&str, &TextFacts)> = texts.into_iter().collect();
        if texts.iter().all(|(_, facts)| facts.is_empty()) {
            return Layout::default();
        }
        Builder::new(&texts).layout(&texts, read)
    }

    /// What is known about a text.
    pub fn role(&self, text: &str) -> Option<&TextRole> {
        self.roles.get(text)
    }

    /// Notes that a text is what a program rendered: it is whole, and may hold objects that others hold, too.
    pub fn add_rendered(&mut self, text: Str) {
        let role = TextRole { root: Some(text.clone()), ..TextRole::default() };
        self.roles.insert(text, role);
    }

    /// One note about all charts whose templates are passed over.
    pub fn chart_note(&self) -> Option<Diagnostic> {
        let first = self.charts.first()?;
        let others = match self.charts.len() - 1 {
            0 => String::new(),
            1 => " and of 1 other chart".to_owned(),
            n => format!(" and of {n} other charts"),
        };
        let chart = Some(folder(first)).filter(|folder| !folder.is_empty()).unwrap_or_else(|| ".".to_owned());
        let message = format!("the templates of chart `{chart}`{others} are not read, because they are not rendered");
        let place = SourcePosition { source: first.clone(), line: 1, column: 1 };
        let note = Diagnostic::of_text(CHART_NOT_RENDERED, place, message);
        Some(note.help(format!("Render it with `--helm {chart}`, and name values with `--values FILE`.")))
    }
}

impl Default for TextRole {
    fn default() -> Self {
        TextRole { is_passed_over: false, namespace: NamespaceRole::Stated, patched: Arc::default(), root: None }
    }
}

/// One kustomization, or a Kustomization object of Flux, which is one around a directory.
struct KustomizationNode<'t> {
    /// Its directory; of a Flux object none, for it lists what it applies.
    folder: Option<String>,
    namespace: Option<&'t Str>,
    /// The directories and files that it lists.
    listed: Vec<String>,
    kustomization: Option<&'t Kustomization>,
    patched: Vec<PatchTarget>,
}

struct Builder<'t> {
    nodes: Vec<KustomizationNode<'t>>,
    /// The kustomization of a directory.
    by_folder: BTreeMap<String, usize>,
    /// The kustomizations that list a path.
    users: BTreeMap<String, Vec<usize>>,
    charts: BTreeMap<String, Str>,
}

impl<'t> Builder<'t> {
    fn new(texts: &[(&'t str, &'t TextFacts)]) -> Self {
        let folders: BTreeSet<String> = texts.iter().flat_map(|(name, _)| paths::ancestors(name)).collect();
        let mut builder =
            Builder { nodes: Vec::new(), by_folder: BTreeMap::new(), users: BTreeMap::new(), charts: BTreeMap::new() };
        for (name, facts) in texts {
            if let Some(kustomization) = &facts.kustomization {
                builder.kustomization(folder(name), kustomization);
            }
            if facts.is_chart {
                builder.charts.insert(folder(name), (*name).into());
            }
        }
        for (name, facts) in texts {
            for flux in &facts.flux {
                if let Some(applied) = paths::found_below(name, &flux.path, &folders) {
                    builder.flux(applied, flux.namespace.as_ref(), flux.patched.clone());
                }
            }
        }
        builder
    }

    fn kustomization(&mut self, folder: String, kustomization: &'t Kustomization) {
        let listed = kustomization.listed.iter().filter_map(|path| joined(&folder, path)).collect();
        self.by_folder.entry(folder.clone()).or_insert(self.nodes.len());
        self.node(KustomizationNode {
            folder: Some(folder),
            namespace: kustomization.namespace.as_ref(),
            listed,
            kustomization: Some(kustomization),
            patched: kustomization.patched.clone(),
        });
    }

    /// Flux applies a directory; where this has no kustomization, Flux makes one of all that lies in it.
    fn flux(&mut self, applied: String, namespace: Option<&'t Str>, patched: Vec<PatchTarget>) {
        if !self.by_folder.contains_key(&applied) {
            self.by_folder.insert(applied.clone(), self.nodes.len());
            let folder = Some(applied.clone());
            self.node(KustomizationNode {
                folder,
                namespace: None,
                listed: Vec::new(),
                kustomization: None,
                patched: Vec::new(),
            });
        }
        let listed = vec![applied];
        self.node(KustomizationNode { folder: None, namespace, listed, kustomization: None, patched });
    }

    fn node(&mut self, node: KustomizationNode<'t>) {
        for path in &node.listed {
            self.users.entry(path.clone()).or_default().push(self.nodes.len());
        }
        self.nodes.push(node);
    }

    fn layout(mut self, texts: &[(&str, &TextFacts)], mut read: impl FnMut(&str) -> Option<Vec<u8>>) -> Layout {
        let names: BTreeMap<String, &str> = texts.iter().map(|(name, _)| (paths::normal(name), *name)).collect();
        let mut passed_over: BTreeSet<String> = BTreeSet::new();
        for node in &mut self.nodes {
            let (Some(folder), Some(kustomization)) = (&node.folder, node.kustomization) else { continue };
            let paths = |list: &[String]| list.iter().filter_map(|path| joined(folder, path)).collect::<Vec<_>>();
            passed_over.extend(paths(&kustomization.other_files));
            for path in paths(&kustomization.patch_files) {
                let text = names.get(&path).and_then(|name| read(name));
                node.patched.extend(text.map(|text| patched_objects(&text)).unwrap_or_default());
                passed_over.insert(path);
            }
            passed_over.extend(paths(&kustomization.targeted_patch_files));
        }
        let mut layout = Layout::default();
        let mut used = BTreeSet::new();
        for (name, facts) in texts {
            let path = paths::normal(name);
            let chart = self.chart_of_template(&path);
            used.extend(chart.clone());
            let is_passed_over = chart.is_some() || passed_over.contains(&path) || facts.kustomization.is_some();
            let role = self.role(&path, is_passed_over);
            if role != TextRole::default() {
                layout.roles.insert((*name).into(), role);
            }
        }
        layout.charts = used.into_iter().collect();
        layout
    }

    /// The chart that a file is a template of.
    fn chart_of_template(&self, path: &str) -> Option<Str> {
        let mut folders = paths::ancestors(path).into_iter();
        folders.find_map(|above| {
            let chart = self.charts.get(above.strip_suffix("/templates").or((above == "templates").then_some(""))?)?;
            Some(chart.clone())
        })
    }

    fn role(&self, path: &str, is_passed_over: bool) -> TextRole {
        let mut owners: Vec<usize> = self.users.get(path).cloned().unwrap_or_default();
        if owners.is_empty() {
            owners.extend(paths::ancestors(path).iter().find_map(|folder| self.by_folder.get(folder)));
        }
        let root = owners.first().and_then(|owner| self.nodes[*owner].folder.as_deref()).map(Str::from);
        let mut reach = Reach::default();
        for owner in owners {
            self.climb(owner, None, 0, &mut reach);
        }
        let namespace = match reach.namespaces.len() {
            0 => NamespaceRole::Stated,
            1 => reach
                .namespaces
                .pop_first()
                .flatten()
                .map_or(NamespaceRole::Stated, |name| NamespaceRole::Set(name.clone())),
            _ => NamespaceRole::Unknown,
        };
        let nodes: BTreeSet<usize> = reach.seen.iter().map(|(node, _)| *node).collect();
        let patched = nodes.iter().flat_map(|node| self.nodes[*node].patched.iter().cloned());
        TextRole { is_passed_over, namespace, patched: Arc::new(patched.collect()), root }
    }

    /// Follows a kustomization to those that use it. The outermost namespace is the one that counts.
    fn climb(&self, at: usize, inner: Option<&'t Str>, depth: usize, reach: &mut Reach<'t>) {
        let node = &self.nodes[at];
        let namespace = node.namespace.or(inner);
        if !reach.seen.insert((at, namespace)) {
            return;
        }
        let users = node.folder.as_deref().and_then(|folder| self.users.get(folder)).map_or(&[][..], Vec::as_slice);
        let above = match (users.is_empty(), &node.folder) {
            (true, Some(folder)) => paths::ancestors(&format!("{folder}/"))
                .into_iter()
                .filter(|above| above != folder)
                .find_map(|above| self.by_folder.get(&above)),
            _ => None,
        };
        // A kustomization that nobody lists takes the namespace of one around it only if it has none itself.
        let above = above.filter(|_| namespace.is_none());
        if depth >= DEEPEST || (users.is_empty() && above.is_none()) {
            reach.namespaces.insert(namespace);
            return;
        }
        for user in users.iter().chain(above) {
            self.climb(*user, namespace, depth + 1, reach);
        }
    }
}

/// The kustomizations that use a text, and the namespaces that it gets from them.
#[derive(Default)]
struct Reach<'t> {
    /// Each with the namespace that it gives; kustomizations may list each other.
    seen: BTreeSet<(usize, Option<&'t Str>)>,
    namespaces: BTreeSet<Option<&'t Str>>,
}

#[cfg(test)]
mod tests;
