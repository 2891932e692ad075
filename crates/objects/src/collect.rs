//! Many texts become one snapshot, and every object remembers where it was written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gatepost_core::diagnostic::{Diagnostic, FieldPath, Related, SourcePosition};
use gatepost_core::model::{ObjectRef, Str};
use gatepost_core::reason::{DUPLICATE_OBJECT, OBJECT_IN_OVERLAYS};
use gatepost_core::snapshot::Snapshot;

use crate::layout::Layout;
use crate::locate::{FieldPart, Located, locate, place_all};
use crate::parse::{DocumentOrigin, ParseSettings, ParsedText, Read, join};
use crate::portions::{NamedText, read_all};

/// One text. Its debug output is only its size, for it may hold private keys.
#[derive(Clone)]
pub struct SourceText {
    bytes: Arc<Vec<u8>>,
    /// In order.
    private: Vec<Range<usize>>,
    line_starts: OnceLock<Vec<usize>>,
}

impl SourceText {
    fn new(bytes: Vec<u8>, private: Vec<Range<usize>>) -> Self {
        SourceText { bytes: Arc::new(bytes), private, line_starts: OnceLock::new() }
    }

    /// The text as it was given.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A line, counted from 1 and without its end, unless it belongs to a document with a Secret: those are shown to nobody.
    pub fn line(&self, number: u32) -> Option<Cow<'_, str>> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let starts = self.line_starts.get_or_init(|| line_starts(&self.bytes));
        let start = *starts.get(index)?;
        let end = starts.get(index + 1).copied().unwrap_or(self.bytes.len());
        let line = String::from_utf8_lossy(&self.bytes[start..end]);
        let next = self.private.partition_point(|range| range.end <= start);
        let is_private = self.private.get(next).is_some_and(|range| range.start < end);
        (!is_private).then(|| match line {
            Cow::Borrowed(line) => Cow::Borrowed(line.trim_end_matches(['\n', '\r'])),
            Cow::Owned(line) => Cow::Owned(line.trim_end_matches(['\n', '\r']).to_owned()),
        })
    }
}

impl fmt::Debug for SourceText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceText({} bytes)", self.bytes.len())
    }
}

/// Everything that was read, in one piece.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The objects.
    pub snapshot: Snapshot,
    /// What is wrong with the texts and objects, each with its place.
    pub diagnostics: Vec<Diagnostic>,
    /// How many objects of other kinds there were, by `apiVersion/kind`.
    pub passed_over: BTreeMap<String, usize>,
    origins: BTreeMap<ObjectRef, DocumentOrigin>,
    texts: BTreeMap<Str, SourceText>,
    /// Objects that stand in several kustomizations, with all their origins.
    overlaid: BTreeMap<ObjectRef, Vec<DocumentOrigin>>,
}

/// Reads texts by name, in order; of two objects with one name the later one is used.
pub fn collect(texts: impl IntoIterator<Item = (Str, Vec<u8>)>, settings: &ParseSettings) -> Loaded {
    let texts: Vec<(Str, Vec<u8>)> = texts.into_iter().collect();
    let named: Vec<NamedText<'_>> = texts.iter().map(|(name, bytes)| (&**name, &**bytes)).collect();
    let parsed = read_all(&named, settings);
    let mut loaded = Loaded::default();
    for ((name, bytes), parsed) in texts.into_iter().zip(parsed) {
        loaded.take(name, bytes, parsed, &settings.layout);
    }
    loaded.finish(&settings.layout);
    loaded
}

impl Loaded {
    /// Adds one more text that was parsed already.
    pub fn take(&mut self, name: Str, bytes: Vec<u8>, reading: ParsedText, layout: &Layout) {
        self.texts.insert(name, SourceText::new(bytes, reading.private));
        self.diagnostics.extend(reading.diagnostics);
        for (kind, count) in reading.passed_over {
            *self.passed_over.entry(kind).or_default() += count;
        }
        self.snapshot.file_facts.announced_secrets.extend(reading.announced_secrets);
        let pairs: Vec<DuplicateObjects> = reading.objects.into_iter().filter_map(|read| self.object(read)).collect();
        let root = |origin: &DocumentOrigin| layout.role(&origin.source).and_then(|role| role.root.as_ref());
        let is_overlaid = |pair: &DuplicateObjects| {
            root(&pair.first) != root(&pair.second) && root(&pair.first).is_some() && root(&pair.second).is_some()
        };
        let (overlaid, pairs): (Vec<_>, Vec<_>) = pairs.into_iter().partition(is_overlaid);
        for pair in overlaid {
            let origins = self.overlaid.entry(pair.object).or_insert_with(|| vec![pair.first]);
            origins.push(pair.second);
        }
        self.report_duplicates(&pairs);
    }

    /// Notes what is only known when all texts are taken.
    pub fn finish(&mut self, layout: &Layout) {
        self.diagnostics.extend(layout.chart_note());
        let overlaid = std::mem::take(&mut self.overlaid);
        let notes: Vec<Diagnostic> =
            overlaid.iter().map(|(object, origins)| self.overlaid_note(object, origins)).collect();
        self.diagnostics.extend(notes);
    }

    fn overlaid_note(&self, object: &ObjectRef, origins: &[DocumentOrigin]) -> Diagnostic {
        let field = FieldPath::of("metadata.name");
        let message =
            format!("{object} stands in {} kustomizations; the last one is used for this answer", origins.len());
        let mut note = Diagnostic::new(OBJECT_IN_OVERLAYS, object, field.clone(), message);
        let mut places: Vec<Option<SourcePosition>> = vec![None; origins.len()];
        let requests = origins.iter().zip(&mut places).map(|(origin, place)| PlaceRequest::for_name(origin, place));
        self.grant(requests.collect());
        note.place = places.pop().flatten();
        note.related = places
            .into_iter()
            .map(|place| Related {
                object: object.clone(),
                field: field.clone(),
                note: "another one".to_owned(),
                place,
            })
            .collect();
        note
    }

    /// Where an object was read.
    pub fn origin(&self, object: &ObjectRef) -> Option<&DocumentOrigin> {
        self.origins.get(object)
    }

    /// A text by its name.
    pub fn text(&self, source: &str) -> Option<&SourceText> {
        self.texts.get(source)
    }

    /// Finds a field of an object, with its extent.
    pub fn locate(&self, object: &ObjectRef, field: &FieldPath) -> Option<Located> {
        let origin = self.origins.get(object)?;
        locate(self.texts.get(&origin.source)?.as_bytes(), origin, field)
    }

    /// The place of a field of an object, or of the nearest thing above it that exists.
    pub fn place(&self, object: &ObjectRef, field: &FieldPath) -> Option<SourcePosition> {
        let origin = self.origins.get(object)?;
        let found = self.locate(object, field);
        let at = found.as_ref().map_or((origin.line, origin.column), |l| (l.best().line, l.best().column));
        Some(SourcePosition { source: origin.source.clone(), line: at.0, column: at.1 })
    }

    /// Gives every diagnostic its place, and those of related objects; each document is walked once.
    pub fn fill_places(&self, diagnostics: &mut [Diagnostic]) {
        let mut requests = Vec::new();
        for diagnostic in diagnostics {
            let mark = FieldPart::of(diagnostic.reason);
            let main =
                diagnostic.object.as_ref().map(|object| (object, &diagnostic.field, &mut diagnostic.place, mark));
            let others = diagnostic.related.iter_mut().map(|r| (&r.object, &r.field, &mut r.place, FieldPart::Value));
            for (object, field, place, mark) in
                main.into_iter().chain(others).filter(|(_, _, place, _)| place.is_none())
            {
                if let Some(origin) = self.origins.get(object) {
                    requests.push(PlaceRequest { origin, path: join(&origin.prefix, field), mark, place });
                }
            }
        }
        self.grant(requests);
    }

    /// Fills the places that are wanted, document by document.
    fn grant(&self, requests: Vec<PlaceRequest<'_>>) {
        let mut documents: BTreeMap<(Str, usize), Vec<PlaceRequest<'_>>> = BTreeMap::new();
        for wish in requests {
            documents.entry((wish.origin.source.clone(), wish.origin.bytes.start)).or_default().push(wish);
        }
        documents.into_values().for_each(|requests| self.grant_in_one(requests));
    }

    fn grant_in_one(&self, requests: Vec<PlaceRequest<'_>>) {
        let Some(origin) = requests.first().map(|wish| wish.origin) else { return };
        let text = self.texts.get(&origin.source).and_then(|text| text.as_bytes().get(origin.bytes.clone()));
        let document = text.and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
        let wanted: Vec<(FieldPath, FieldPart)> = requests.iter().map(|wish| (wish.path.clone(), wish.mark)).collect();
        for (wish, place) in requests.into_iter().zip(place_all(document, origin, &wanted)) {
            *wish.place = Some(place);
        }
    }

    /// Takes an object; gives the two origins where its name was taken already.
    fn object(&mut self, read: Read) -> Option<DuplicateObjects> {
        let Read { object, origin, is_namespace_assumed, is_incomplete } = read;
        let key = object.object();
        if is_namespace_assumed {
            self.snapshot.file_facts.without_namespace.insert(key.clone());
        }
        if is_incomplete {
            self.snapshot.file_facts.incomplete.insert(key.clone());
        }
        let earlier = self.origins.insert(key.clone(), origin.clone());
        self.snapshot.upsert(object);
        earlier.map(|earlier| DuplicateObjects { object: key, first: earlier, second: origin })
    }

    /// Tells about objects with one name, at both places.
    fn report_duplicates(&mut self, pairs: &[DuplicateObjects]) {
        let mut places: Vec<[Option<SourcePosition>; 2]> = vec![[None, None]; pairs.len()];
        let mut requests = Vec::new();
        for (pair, [first, second]) in pairs.iter().zip(&mut places) {
            requests.push(PlaceRequest::for_name(&pair.first, first));
            requests.push(PlaceRequest::for_name(&pair.second, second));
        }
        self.grant(requests);
        let told = pairs.iter().zip(places).flat_map(|(pair, [first, second])| duplicates(&pair.object, first, second));
        self.diagnostics.extend(told);
    }
}

/// Two objects with the same kind, namespace and name.
struct DuplicateObjects {
    object: ObjectRef,
    first: DocumentOrigin,
    second: DocumentOrigin,
}

/// A field whose line and column are to be found.
struct PlaceRequest<'a> {
    origin: &'a DocumentOrigin,
    path: FieldPath,
    mark: FieldPart,
    place: &'a mut Option<SourcePosition>,
}

impl<'a> PlaceRequest<'a> {
    fn for_name(origin: &'a DocumentOrigin, place: &'a mut Option<SourcePosition>) -> Self {
        let path = join(&origin.prefix, &FieldPath::of("metadata.name"));
        PlaceRequest { origin, path, mark: FieldPart::Value, place }
    }
}

/// Tells about two objects with one name, at both places.
fn duplicates(object: &ObjectRef, first: Option<SourcePosition>, second: Option<SourcePosition>) -> [Diagnostic; 2] {
    let field = FieldPath::of("metadata.name");
    let tell = |message: String, place: &Option<SourcePosition>, other: &Option<SourcePosition>, note: &str| {
        let diagnostic = Diagnostic::new(DUPLICATE_OBJECT, object, field.clone(), message);
        let related =
            Related { object: object.clone(), field: field.clone(), note: note.to_owned(), place: other.clone() };
        Diagnostic { place: place.clone(), related: vec![related], ..diagnostic }
    };
    [
        tell(format!("{object} is described again later, and that one is used"), &first, &second, "the later one"),
        tell(format!("{object} was described before; this later one is used"), &second, &first, "the earlier one"),
    ]
}

fn line_starts(bytes: &[u8]) -> Vec<usize> {
    std::iter::once(0).chain(memchr::memchr_iter(b'\n', bytes).map(|at| at + 1)).collect()
}
