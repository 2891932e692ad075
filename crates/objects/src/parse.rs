//! Texts become objects and diagnostics.
//!
//! Every problem is told with its place and harms only the document, object or field it is in. Objects of kinds that are not
//! ours are counted and passed over. Nothing here panics, and nothing takes longer than the text is worth: sizes are bounded
//! before anything is parsed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gatepost_core::diagnostic::{Diagnostic, FieldPath, SourcePosition};
use gatepost_core::model::{InvalidField, Key, Kind, ObjectRef, Str};
use gatepost_core::reason::{
    ALLOWED_LISTENERS_SHAPE, HOSTNAME_NOT_LOWERCASE, INVALID_FIELD, INVALID_HOSTNAME, OBJECT_INCOMPLETE,
    OBJECT_UNREADABLE, Reason, SYNTAX_ERROR, UNKNOWN_FIELD, UNKNOWN_VALUE, UNRENDERED_TEMPLATE,
};
use gatepost_core::snapshot::{Object, Origin};
use serde_json::Value;

use crate::documents::{self, Document};
use crate::fields::{Fields, MISSING, ProblemCollector, shortened};
use crate::kinds::{self, KindEntry, KindLookup};
use crate::layout::{Layout, NamespaceRole, TextRole};
use crate::locate::{FieldPart, place_all};
use crate::metadata::metadata;
use crate::placeholders;
use crate::pool::Pool;
use crate::tree::{self, Broken, Mapping, Tree};

/// How large texts may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseLimits {
    /// Bytes of one text.
    pub text: usize,
    /// Bytes of one YAML document.
    pub yaml: usize,
    /// Bytes of one JSON document; JSON is read much faster, and exports of whole clusters are one document.
    pub json: usize,
}

impl Default for ParseLimits {
    fn default() -> Self {
        ParseLimits { text: 256 << 20, yaml: 16 << 20, json: 128 << 20 }
    }
}

/// How texts are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseSettings {
    /// How large they may be.
    pub limits: ParseLimits,
    /// The namespace of objects that name none.
    pub namespace: Str,
    /// Whether somebody named that namespace, so that it is not an assumption.
    pub is_namespace_named: bool,
    /// What directories say about the texts in them.
    pub layout: Arc<Layout>,
    /// How many threads may read many documents; what they hold does not depend on it.
    pub threads: usize,
    /// What the texts hold; an object of a cluster was accepted by its API server, also if a newer version refuses it.
    pub origin: Origin,
}

impl Default for ParseSettings {
    fn default() -> Self {
        ParseSettings {
            limits: ParseLimits::default(),
            namespace: "default".into(),
            is_namespace_named: false,
            layout: Arc::default(),
            threads: 1,
            origin: Origin::Files,
        }
    }
}

/// What a text holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedText {
    /// Objects, in order.
    pub objects: Vec<Read>,
    /// What is wrong with them, each with its place.
    pub diagnostics: Vec<Diagnostic>,
    /// How many objects of other kinds there were, by `apiVersion/kind`.
    pub passed_over: BTreeMap<String, usize>,
    /// Parts of the text that hold Secrets, and so are shown to nobody.
    pub private: Vec<Range<usize>>,
    /// Secrets that objects of other controllers make in the cluster.
    pub announced_secrets: Vec<Key>,
}

impl ParsedText {
    /// Adds what stands in a later part of the same text.
    pub(crate) fn join(&mut self, later: ParsedText) {
        self.objects.extend(later.objects);
        self.diagnostics.extend(later.diagnostics);
        for (kind, count) in later.passed_over {
            *self.passed_over.entry(kind).or_default() += count;
        }
        self.private.extend(later.private);
        self.announced_secrets.extend(later.announced_secrets);
    }
}

/// One object and where it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The object.
    pub object: Object,
    /// Where it stands.
    pub origin: DocumentOrigin,
    /// Whether its real namespace is not known: its text states none, or several kustomizations give it different ones.
    pub is_namespace_assumed: bool,
    /// Whether another program completes it before it reaches a cluster: it has placeholders, or a patch changes it.
    pub is_incomplete: bool,
}

/// Where an object stands in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentOrigin {
    /// The text's name.
    pub source: Str,
    /// The document in the text.
    pub bytes: Range<usize>,
    /// The line that the document begins on, counted from 1.
    pub line: u32,
    /// The column that the document begins at, counted from 1.
    pub column: u32,
    /// The way to the object inside the document: `items[3]` in a List, else nothing.
    pub prefix: FieldPath,
}

/// What one tree of values turns out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)]
pub enum Interpreted {
    /// An object, and what is wrong with it.
    Object(Object, Vec<Diagnostic>),
    /// Something that was meant to be an object of ours and is none; the field to correct and why.
    Unreadable(FieldPath, String),
    /// An object of another kind, as `apiVersion/kind`, and perhaps a hint that it was meant to be one of ours.
    PassedOver(String, Option<String>),
}

/// Reads a text that may hold any number of YAML or JSON documents.
pub fn read(source: &str, text: &[u8], settings: &ParseSettings) -> ParsedText {
    read_with(source, text, settings, &mut Pool::new())
}

/// Reads a text whose objects share what they have in common with those that were read with the same pool.
pub fn read_with(source: &str, text: &[u8], settings: &ParseSettings, pool: &mut Pool) -> ParsedText {
    refused(source, text, settings)
        .unwrap_or_else(|| TextReader::new(source, text, settings, pool).documents(&documents::split(text)))
}

/// What is told about a text that is not even split into documents.
pub(crate) fn refused(source: &str, text: &[u8], settings: &ParseSettings) -> Option<ParsedText> {
    let (line, message) = refusal(text, settings)?;
    let place = SourcePosition { source: source.into(), line, column: 1 };
    let diagnostics = vec![Diagnostic::of_text(SYNTAX_ERROR, place, message)];
    Some(ParsedText { diagnostics, ..ParsedText::default() })
}

/// Reads one object from a tree of values.
pub fn interpret(value: &Value, settings: &ParseSettings) -> Interpreted {
    interpret_with(value, settings, &mut Pool::new())
}

/// Reads one object from a tree of values, such as a watch delivers. It shares what it has in common with those that were
/// read with the same pool, which a watch keeps for as long as it lives.
pub fn interpret_with(value: &Value, settings: &ParseSettings, pool: &mut Pool) -> Interpreted {
    interpret_tree(&value.into(), Namespaces::of(settings, None), pool)
}

/// The namespaces of the objects of one text.
#[derive(Clone, Copy)]
struct Namespaces<'a> {
    /// Of objects that state none.
    default: &'a Str,
    /// Of all objects, whatever they state.
    set: Option<&'a Str>,
}

impl<'a> Namespaces<'a> {
    fn of(settings: &'a ParseSettings, role: Option<&'a TextRole>) -> Self {
        let set = role.and_then(|role| match &role.namespace {
            NamespaceRole::Set(name) => Some(name),
            NamespaceRole::Stated | NamespaceRole::Unknown => None,
        });
        Namespaces { default: &settings.namespace, set }
    }

    /// The namespace of an object that states this one, or none.
    fn of_object(self, stated: Option<&'a str>) -> &'a str {
        self.set.map(|name| &**name).or(stated).unwrap_or(self.default)
    }
}

fn interpret_tree(value: &Tree<'_>, namespaces: Namespaces<'_>, pool: &mut Pool) -> Interpreted {
    let Tree::Mapping(map) = value else {
        return Interpreted::Unreadable(
            FieldPath::root(),
            format!("a document must be an object with `apiVersion` and `kind`, and this one is {}", type_of(value)),
        );
    };
    typed(map, (text_of(map, "apiVersion"), text_of(map, "kind")), namespaces, pool)
}

/// Reads one object as what it says, or its list says, that it is.
fn typed(
    map: &Mapping<'_>,
    (version, kind): (Option<&str>, Option<&str>),
    namespaces: Namespaces<'_>,
    pool: &mut Pool,
) -> Interpreted {
    let (Some(version), Some(kind)) = (version, kind) else {
        return without_type(kind);
    };
    let (group, version_word) = version.rsplit_once('/').unwrap_or(("", version));
    let name = || format!("{}/{}", shortened(version), shortened(kind));
    match kinds::find(group, kind) {
        KindLookup::Known(row) => object(map, (row, version_word), None, namespaces, pool),
        KindLookup::DraftListenerSet(row) => object(map, (row, version_word), Some(DRAFT), namespaces, pool),
        KindLookup::Misspelt(right) => {
            Interpreted::PassedOver(name(), Some(format!("`kind` is `{kind}`; did you mean `{right}`?")))
        }
        KindLookup::Foreign => Interpreted::PassedOver(name(), None),
    }
}

const DRAFT: &str = "is the group of a draft of ListenerSet; it is read as an XListenerSet. \
                     The released kind is `ListenerSet` of `gateway.networking.k8s.io/v1`";

fn text_of<'v>(map: &'v Mapping<'v>, key: &str) -> Option<&'v str> {
    map.get(key)?.as_text().filter(|text| !text.is_empty())
}

/// A mapping without `apiVersion` or `kind`: an error where it was clearly meant to be one of ours.
fn without_type(kind: Option<&str>) -> Interpreted {
    match kind {
        Some(kind) if kinds::is_known_name(kind) => Interpreted::Unreadable(
            FieldPath::of("apiVersion"),
            format!("`apiVersion` is missing; a {kind} cannot be read without it"),
        ),
        _ => Interpreted::PassedOver("without apiVersion and kind".to_owned(), None),
    }
}

fn object(
    map: &Mapping<'_>,
    (row, version): (&KindEntry, &str),
    draft: Option<&str>,
    namespaces: Namespaces<'_>,
    pool: &mut Pool,
) -> Interpreted {
    let kind = row.kind;
    let key = match key(map, kind, namespaces, pool) {
        Ok(key) => key,
        Err((field, message)) => return Interpreted::Unreadable(field, message),
    };
    let collector = ProblemCollector::with_pool(ObjectRef { kind, key: key.clone() }, std::mem::take(pool));
    let root = Fields::root(map, &collector, row.strictness);
    root.ignore(&["apiVersion", "kind"]);
    if let Some(note) = draft {
        root.tell(UNKNOWN_VALUE, "apiVersion", note);
    } else if !row.versions.contains(&version) {
        let (newest, group) = (row.versions.first().copied().unwrap_or_default(), kind.group());
        let right = if group.is_empty() { newest.to_owned() } else { format!("{group}/{newest}") };
        let message = format!("has the version `{}`, which {kind} does not have; use `{right}`", shortened(version));
        root.tell(UNKNOWN_VALUE, "apiVersion", message);
    }
    let object = (row.read)(metadata(&root, key), &root, version);
    root.finish();
    let (diagnostics, filled) = collector.into_parts();
    *pool = filled;
    Interpreted::Object(object, diagnostics)
}

/// Namespace and name; without them nothing can be said about an object.
fn key(map: &Mapping<'_>, kind: Kind, namespaces: Namespaces<'_>, pool: &mut Pool) -> Result<Key, (FieldPath, String)> {
    let metadata = map.get("metadata").and_then(Tree::as_mapping);
    let part = |field| metadata.and_then(|metadata| identity_part(metadata, kind, field).transpose()).transpose();
    let (name, namespace) = (part("name")?, namespaces.of_object(part("namespace")?));
    let Some(name) = name else {
        let is_generated = metadata.is_some_and(|metadata| metadata.contains_key("generateName"));
        let hint = if is_generated { "; `generateName` only works in a cluster" } else { "" };
        return Err((FieldPath::of("metadata.name"), format!("`metadata.name` of a {kind} is missing{hint}")));
    };
    // Kustomize gives its namespace to a Namespace as its name.
    let name = namespaces.set.filter(|_| kind == Kind::Namespace).map_or(name, |set| &**set);
    let namespace = if kind.is_cluster_scoped() { "" } else { namespace };
    Ok(Key::new(pool.text(namespace), name))
}

/// The name or namespace, where one is set. Of another type it is an error, and never an absent one: the object would
/// be taken for one of the default namespace.
fn identity_part<'v>(
    metadata: &'v Mapping<'v>,
    kind: Kind,
    field: &str,
) -> Result<Option<&'v str>, (FieldPath, String)> {
    let message = match metadata.get(field) {
        None | Some(Tree::Null) => return Ok(None),
        Some(Tree::Text(text)) => return Ok(Some(&**text).filter(|text| !text.is_empty())),
        Some(value @ (Tree::Flag(_) | Tree::Number(_))) => {
            format!("`metadata.{field}` of a {kind} is {}, text is expected; put it in quotes", type_of(value))
        }
        Some(value) => format!("`metadata.{field}` of a {kind} is {}, text is expected", type_of(value)),
    };
    Err((FieldPath::of("metadata").key(field), message))
}

fn type_of(value: &Tree<'_>) -> String {
    match value {
        Tree::Null => "empty".to_owned(),
        Tree::Flag(flag) => format!("the boolean {flag}"),
        Tree::Number(number) => format!("the number {number}"),
        Tree::Text(_) => "a text".to_owned(),
        Tree::List(_) => "a list".to_owned(),
        Tree::Mapping(_) => "a mapping".to_owned(),
    }
}

/// Why a text is not even split into documents.
fn refusal(text: &[u8], settings: &ParseSettings) -> Option<(u32, String)> {
    if text.len() > settings.limits.text {
        let message = format!("the text has {} bytes, at most {} are read", text.len(), settings.limits.text);
        return Some((1, message));
    }
    let utf16 = text.starts_with(b"\xFF\xFE") || text.starts_with(b"\xFE\xFF");
    utf16.then(|| (1, "the text is UTF-16; save it as UTF-8".to_owned()))
}

/// Reads documents of one text, one after the other.
pub(crate) struct TextReader<'a> {
    source: Str,
    role: Option<&'a TextRole>,
    text: &'a [u8],
    settings: &'a ParseSettings,
    pool: &'a mut Pool,
    reading: ParsedText,
}

impl<'a> TextReader<'a> {
    pub(crate) fn new(source: &str, text: &'a [u8], settings: &'a ParseSettings, pool: &'a mut Pool) -> Self {
        let role = settings.layout.role(source);
        TextReader { source: source.into(), role, text, settings, pool, reading: ParsedText::default() }
    }

    /// What stands in documents of the text.
    pub(crate) fn documents(mut self, documents: &[Document]) -> ParsedText {
        if self.role.is_none_or(|role| !role.is_passed_over) {
            documents.iter().for_each(|document| self.document(document));
        }
        self.reading
    }

    fn document(&mut self, document: &Document) {
        let bytes = &self.text[document.bytes.clone()];
        let text = match readable(bytes, &self.settings.limits) {
            Ok(text) => text,
            Err(broken) => {
                return self.broken(SYNTAX_ERROR, document.line + broken.line - 1, broken.column, broken.message);
            }
        };
        let mut at = Position { byte: 0, line: document.line, column: 1 };
        let mut secret = false;
        let broken = tree::grow(text, |grown| {
            secret |= holds_secret(&grown.value);
            at.advance(text, grown.start);
            let origin = DocumentOrigin {
                source: self.source.clone(),
                bytes: document.bytes.start + grown.start..document.bytes.start + grown.end,
                line: at.line,
                column: at.column,
                prefix: FieldPath::root(),
            };
            self.value(&grown.value, &origin, &text[grown.start..grown.end]);
        });
        if secret || (broken.is_some() && text.contains("Secret")) {
            self.reading.private.push(document.bytes.clone());
        }
        if let Some(Broken { message, line, column }) = broken {
            let line = document.line + line - 1;
            match placeholders::template(text) {
                Some(at) => {
                    let message = format!("the text is a template that is not rendered: {message}");
                    self.broken(UNRENDERED_TEMPLATE, document.line + at, 1, message);
                }
                None => self.broken(SYNTAX_ERROR, line, column, message),
            }
        }
    }

    fn broken(&mut self, reason: Reason, line: u32, column: u32, message: String) {
        let place = SourcePosition { source: self.source.clone(), line, column };
        self.reading.diagnostics.push(Diagnostic::of_text(reason, place, message));
    }

    /// Reads a document's value; all its problems are located in one go.
    fn value(&mut self, value: &Tree<'_>, origin: &DocumentOrigin, text: &str) {
        let mut told = Vec::new();
        self.items(value, origin, &mut told);
        let wanted: Vec<(FieldPath, FieldPart)> =
            told.iter().map(|(prefix, d)| (join(prefix, &d.field), FieldPart::of(d.reason))).collect();
        let places = place_all(text, origin, &wanted);
        for ((_, mut diagnostic), place) in told.into_iter().zip(places) {
            diagnostic.place = Some(place);
            self.reading.diagnostics.push(diagnostic);
        }
    }

    /// Reads an object, or every object of a List.
    fn items(&mut self, value: &Tree<'_>, origin: &DocumentOrigin, told: &mut Vec<(FieldPath, Diagnostic)>) {
        let Some((items, inherited)) = list_items(value) else {
            return self.item(value, origin, told);
        };
        for (i, item) in items.iter().enumerate() {
            let origin = DocumentOrigin { prefix: origin.prefix.key("items").index(i), ..origin.clone() };
            match heir(item, inherited) {
                Some((map, (version, kind))) => {
                    let found = typed(map, (version, Some(kind)), self.namespaces(), self.pool);
                    self.keep(found, item, &origin, told);
                }
                None => self.items(item, &origin, told),
            }
        }
    }

    fn item(&mut self, value: &Tree<'_>, origin: &DocumentOrigin, told: &mut Vec<(FieldPath, Diagnostic)>) {
        if !value.is_null() {
            let found = interpret_tree(value, self.namespaces(), self.pool);
            self.keep(found, value, origin, told);
        }
    }

    fn keep(
        &mut self,
        found: Interpreted,
        value: &Tree<'_>,
        origin: &DocumentOrigin,
        told: &mut Vec<(FieldPath, Diagnostic)>,
    ) {
        let prefix = &origin.prefix;
        match found {
            Interpreted::Object(mut object, mut diagnostics) => {
                let is_from_files = self.settings.origin == Origin::Files;
                let invalid = diagnostics.iter().find(|diagnostic| is_from_files && is_refused(diagnostic));
                let invalid = invalid.map(|d| InvalidField {
                    reason: INVALID_FIELD,
                    field: d.field.clone(),
                    message: d.message.clone(),
                });
                object.meta_mut().invalid = invalid.map(Box::new);
                drop_misspelt(&mut diagnostics);
                let is_incomplete = is_from_files && self.is_completed_elsewhere(&object, value, &mut diagnostics);
                if is_incomplete {
                    object.meta_mut().invalid.get_or_insert_with(|| Box::new(completed_elsewhere()));
                }
                told.extend(diagnostics.into_iter().map(|d| (prefix.clone(), d)));
                let is_namespace_assumed = !object.object().kind.is_cluster_scoped() && self.is_namespace_open(value);
                self.reading.objects.push(Read { object, origin: origin.clone(), is_namespace_assumed, is_incomplete });
            }
            Interpreted::Unreadable(field, message) => {
                told.push((prefix.clone(), self.of_text(OBJECT_UNREADABLE, field, message)))
            }
            Interpreted::PassedOver(name, hint) => {
                self.reading.announced_secrets.extend(announced_secret(value, self.namespaces()));
                *self.reading.passed_over.entry(name).or_default() += 1;
                told.extend(
                    hint.map(|hint| (prefix.clone(), self.of_text(UNKNOWN_VALUE, FieldPath::of("kind"), hint))),
                );
            }
        }
    }

    fn namespaces(&self) -> Namespaces<'a> {
        Namespaces::of(self.settings, self.role)
    }

    /// Whether the real namespace of an object is not known.
    fn is_namespace_open(&self, value: &Tree<'_>) -> bool {
        match self.role.map_or(&NamespaceRole::Stated, |role| &role.namespace) {
            NamespaceRole::Set(_) => false,
            NamespaceRole::Unknown => true,
            NamespaceRole::Stated => !self.settings.is_namespace_named && stated_namespace(value).is_none(),
        }
    }

    /// Whether another program completes an object. What it changes is then not wrong yet, and is not told.
    fn is_completed_elsewhere(&self, object: &Object, value: &Tree<'_>, diagnostics: &mut Vec<Diagnostic>) -> bool {
        let id = object.object();
        let patches = self.role.map_or(&[][..], |role| &role.patched);
        let is_patched = patches.iter().any(|target| target.concerns(id.kind.as_str(), id.name()));
        let before = diagnostics.len();
        let is_open = |d: &Diagnostic| is_refused(d) && (is_patched || placeholders::is_at(value, &d.field));
        diagnostics.retain(|diagnostic| !is_open(diagnostic));
        is_patched || diagnostics.len() < before
    }

    /// A diagnostic on something that has no name; its place is filled in later.
    fn of_text(&self, reason: gatepost_core::reason::Reason, field: FieldPath, message: String) -> Diagnostic {
        let place = SourcePosition { source: self.source.clone(), line: 1, column: 1 };
        Diagnostic { field, ..Diagnostic::of_text(reason, place, message) }
    }
}

/// Why an object that patches change counts as one that is not known.
fn completed_elsewhere() -> InvalidField {
    let message = "a kustomization patches this object, so it is not known what it will be; render it with `-k DIR`";
    InvalidField { reason: OBJECT_INCOMPLETE, field: FieldPath::root(), message: message.to_owned() }
}

/// Drops what is said about missing fields that are there in another spelling, which is reported.
fn drop_misspelt(diagnostics: &mut Vec<Diagnostic>) {
    let meant = |d: &Diagnostic| {
        let (_, rest) = d.message.split_once("; did you mean `").filter(|_| d.reason == UNKNOWN_FIELD)?;
        let (_, above) = d.field.segments().split_last()?;
        Some(FieldPath::from(above).key(rest.trim_end_matches("`?")))
    };
    let meant: Vec<FieldPath> = diagnostics.iter().filter_map(meant).collect();
    let is_missing = |d: &Diagnostic| d.reason == INVALID_FIELD && d.message.ends_with(MISSING);
    diagnostics.retain(|d| !(is_missing(d) && meant.contains(&d.field)));
}

/// Reasons for which an API server would refuse the whole object. Values that a newer API may know are not among them.
const REFUSED: [Reason; 4] = [INVALID_FIELD, INVALID_HOSTNAME, HOSTNAME_NOT_LOWERCASE, ALLOWED_LISTENERS_SHAPE];

/// Whether an API server would refuse the object because of a field. It takes selectors as they are.
fn is_refused(diagnostic: &Diagnostic) -> bool {
    let is_in_selector = || diagnostic.field.to_string().contains(".selector.match");
    REFUSED.contains(&diagnostic.reason) && !is_in_selector()
}

/// The namespace that an object states itself.
fn stated_namespace<'v>(value: &'v Tree<'v>) -> Option<&'v str> {
    text_of(value.get("metadata")?.as_mapping()?, "namespace")
}

/// The Secret that an object of cert-manager, External Secrets or Sealed Secrets makes in the cluster.
fn announced_secret(value: &Tree<'_>, namespaces: Namespaces<'_>) -> Option<Key> {
    let map = value.as_mapping()?;
    let group = text_of(map, "apiVersion")?.split_once('/')?.0;
    let written = match (group, text_of(map, "kind")?) {
        ("cert-manager.io", "Certificate") => value.at(&["spec", "secretName"]),
        ("external-secrets.io", "ExternalSecret") => value.at(&["spec", "target", "name"]),
        ("bitnami.com", "SealedSecret") => value.at(&["spec", "template", "metadata", "name"]),
        _ => return None,
    };
    let own_name = || value.at(&["metadata", "name"])?.as_text();
    let name = written.and_then(Tree::as_text).filter(|name| !name.is_empty()).or_else(own_name)?;
    Some(Key::new(namespaces.of_object(stated_namespace(value)), name))
}

/// A position that moves forward through a document.
struct Position {
    byte: usize,
    line: u32,
    column: u32,
}

impl Position {
    fn advance(&mut self, text: &str, to: usize) {
        let between = &text[self.byte..to];
        self.byte = to;
        match between.rsplit_once('\n') {
            None => self.column = self.column.saturating_add(count(between.chars().count())),
            Some((before, line)) => {
                self.line = self.line.saturating_add(1 + count(before.matches('\n').count()));
                self.column = 1 + count(line.chars().count());
            }
        }
    }
}

/// The text of a document, unless it is too large or no text.
pub(crate) fn readable<'t>(bytes: &'t [u8], limits: &ParseLimits) -> Result<&'t str, Broken> {
    let at_start = |message: String| Broken { message, line: 1, column: 1 };
    if bytes.len() > limits.yaml.max(limits.json) {
        return Err(at_start(too_large(bytes.len(), limits.yaml.max(limits.json))));
    }
    if let Some(at) = memchr::memchr(0, bytes) {
        return Err(broken_at(bytes, at, "holds a NUL byte; is it a binary file?"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| broken_at(bytes, error.valid_up_to(), "is not UTF-8"))?;
    if bytes.len() > limits.yaml && !tree::looks_like_flow(text) {
        return Err(at_start(too_large(bytes.len(), limits.yaml)));
    }
    Ok(text)
}

fn too_large(found: usize, most: usize) -> String {
    format!("the document has {found} bytes, at most {most} are read; split it up")
}

fn broken_at(bytes: &[u8], at: usize, what: &str) -> Broken {
    let before = &bytes[..at];
    let line = 1 + memchr::memchr_iter(b'\n', before).count();
    let column = 1 + at - memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    Broken { message: format!("the text {what}"), line: count(line), column: count(column) }
}

/// Whether a value is a Secret or a List that has one.
fn holds_secret(value: &Tree<'_>) -> bool {
    let is_secret =
        |value: &Tree<'_>| value.get("kind").and_then(Tree::as_text).is_some_and(|kind| kind.starts_with("Secret"));
    is_secret(value) || list_items(value).is_some_and(|(items, _)| items.iter().any(holds_secret))
}

/// `apiVersion`, where the list has one, and `kind` that the items of a typed list have without saying so.
pub(crate) type Inherited<'v> = (Option<&'v str>, &'v str);

/// The items of a List, and the type that items without one have.
pub(crate) fn list_items<'v>(value: &'v Tree<'v>) -> Option<(&'v [Tree<'v>], Option<Inherited<'v>>)> {
    let map = value.as_mapping()?;
    let kind = text_of(map, "kind")?.strip_suffix("List")?;
    let items = map.get("items")?.as_list()?;
    let inherited = (!kind.is_empty()).then(|| (text_of(map, "apiVersion"), kind));
    Some((items, inherited))
}

/// An item that has no type of its own, with the one it inherits from its list.
fn heir<'v>(item: &'v Tree<'v>, inherited: Option<Inherited<'v>>) -> Option<(&'v Mapping<'v>, Inherited<'v>)> {
    let map = item.as_mapping().filter(|map| !map.contains_key("kind"))?;
    Some((map, inherited?))
}

/// One path behind another.
pub(crate) fn join(prefix: &FieldPath, field: &FieldPath) -> FieldPath {
    use gatepost_core::diagnostic::Segment;
    field.segments().iter().fold(prefix.clone(), |path, segment| match segment {
        Segment::Key(key) => path.key(key.clone()),
        Segment::Index(index) => path.index(*index),
    })
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
