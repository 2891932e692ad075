//! Many texts are read by several threads; what comes out is as if one had read them one after the other.
//!
//! A portion is a run of whole documents. Threads take portions as they get on, and the results are joined in the order of
//! the texts. Each thread shares values among the objects that it reads, so that only what objects cost depends on it.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::documents::{self, Document};
use crate::parse::{ParseSettings, ParsedText, TextReader, refused};
use crate::pool::Pool;

/// So many bytes are worth the time of taking them from a list.
const PORTION: usize = 128 << 10;

/// A text with its name.
pub type NamedText<'t> = (&'t str, &'t [u8]);

/// A run of documents of one text.
struct Portion {
    text: usize,
    documents: Vec<Document>,
}

/// Reads texts, and gives what each of them holds.
pub fn read_all(texts: &[NamedText<'_>], settings: &ParseSettings) -> Vec<ParsedText> {
    let mut parsed: Vec<ParsedText> = Vec::with_capacity(texts.len());
    let mut portions = Vec::new();
    for (at, (name, text)) in texts.iter().enumerate() {
        match refused(name, text, settings) {
            Some(refused) => parsed.push(refused),
            None => {
                parsed.push(ParsedText::default());
                portions.extend(cut(documents::split(text)).map(|documents| Portion { text: at, documents }));
            }
        }
    }
    join(&mut parsed, &portions, read_portions(texts, &portions, settings));
    parsed
}

/// Joins what stands in portions with what stands in their texts. Room is made once: to grow lists of many objects takes as
/// long as a sixth of reading them.
fn join(parsed: &mut [ParsedText], portions: &[Portion], parts: Vec<(usize, ParsedText)>) {
    let mut objects = vec![0; parsed.len()];
    for (at, part) in &parts {
        objects[portions[*at].text] += part.objects.len();
    }
    for (parsed, objects) in parsed.iter_mut().zip(objects) {
        parsed.objects.reserve_exact(objects);
    }
    for (at, part) in parts {
        parsed[portions[at].text].join(part);
    }
}

/// Cuts the documents of a text into portions.
fn cut(documents: Vec<Document>) -> impl Iterator<Item = Vec<Document>> {
    let mut documents = documents.into_iter().peekable();
    std::iter::from_fn(move || {
        let start = documents.peek()?.bytes.start;
        let mut portion = Vec::new();
        while let Some(next) = documents.next_if(|next| portion.is_empty() || next.bytes.end - start <= PORTION) {
            portion.push(next);
        }
        Some(portion)
    })
}

/// What stands in each portion, in order.
fn read_portions(texts: &[NamedText<'_>], portions: &[Portion], settings: &ParseSettings) -> Vec<(usize, ParsedText)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut pool, mut read) = (Pool::new(), Vec::new());
        while let Some((at, portion)) = taken(portions, &next) {
            let (name, text) = texts[portion.text];
            read.push((at, TextReader::new(name, text, settings, &mut pool).documents(&portion.documents)));
        }
        read
    };
    let bytes: usize = portions.iter().map(|portion| extent(portion).len()).sum();
    let others = settings.threads.min(bytes / PORTION).saturating_sub(1);
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|(at, _)| *at);
    all
}

fn taken<'p>(portions: &'p [Portion], next: &AtomicUsize) -> Option<(usize, &'p Portion)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    Some((at, portions.get(at)?))
}

fn extent(portion: &Portion) -> Range<usize> {
    let start = portion.documents.first().map_or(0, |document| document.bytes.start);
    start..portion.documents.last().map_or(start, |document| document.bytes.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::read;

    /// Texts with good documents, bad ones, foreign ones and Secrets, larger than several portions.
    fn texts() -> Vec<(String, Vec<u8>)> {
        let document = |text: usize, n: usize| match n % 7 {
            0 => format!(
                "---\n{{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {{\"name\": \"s-{n}\"}}}}\n"
            ),
            1 => "---\na: [\n".to_owned(),
            2 => format!("---\napiVersion: x/v{n}\nkind: Foreign\nmetadata: {{name: a}}\n"),
            3 => format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: n-{text}-{n}, labels: {{a: 1}}}}\n"),
            _ => format!(
                "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n\
                 metadata: {{name: r-{text}-{n}, namespace: a}}\nspec:\n  hostname: [r{n}.example]\n"
            ),
        };
        // Comments make documents large and are read quickly.
        let comment = format!("# {}\n", "x".repeat(4000));
        let text =
            |at: usize, most: usize| (0..most).flat_map(|n| [document(at, n), comment.clone()]).collect::<String>();
        let sizes = [0, 20, 200, 1, 100];
        let mut texts: Vec<_> =
            sizes.iter().enumerate().map(|(at, n)| (format!("{at}.yaml"), text(at, *n).into_bytes())).collect();
        texts.push(("utf-16".to_owned(), b"\xFF\xFEa".to_vec()));
        texts
    }

    #[test]
    fn threads_read_what_one_reads() {
        let texts = texts();
        let named: Vec<NamedText<'_>> = texts.iter().map(|(name, text)| (&**name, &**text)).collect();
        let one_by_one: Vec<ParsedText> =
            named.iter().map(|(name, text)| read(name, text, &ParseSettings::default())).collect();
        assert!(cut(documents::split(named[2].1)).count() > 4, "several portions");
        for threads in [1, 2, 5] {
            let settings = ParseSettings { threads, ..ParseSettings::default() };
            assert!(read_all(&named, &settings) == one_by_one, "{threads} threads");
        }
    }
}
