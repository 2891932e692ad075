//! What must hold for any input. Shared by the fuzz targets and an ordinary test that runs the seeds.
#![allow(dead_code)]

use gatepost_core::diagnostic::{Diagnostic, FieldPath};
use gatepost_core::names::{Hostname, HostnameLint, PreciseHostname, host_of};
use gatepost_core::reason::INVALID_FIELD;
use gatepost_objects::{ParseSettings, ParsedText, Read, collect, locate, read};

/// Reads bytes as objects: nothing panics, every problem has a place in the text, and reading twice gives the same.
pub(crate) fn parse(bytes: &[u8]) {
    let settings = ParseSettings::default();
    let reading = read("input", bytes, &settings);
    assert_eq!(read("input", bytes, &settings), reading, "reading is not repeatable");
    problems_have_places(bytes, &reading);
    reading.objects.iter().for_each(|object| object_is_found_again(bytes, object));
    let loaded = collect([("input".into(), bytes.to_vec())], &settings);
    let object = |read: &Read| read.object.object();
    let tell = |read: &Read| Diagnostic::new(INVALID_FIELD, &object(read), FieldPath::of("spec.rules[0].name"), "x");
    let mut told: Vec<Diagnostic> = reading.objects.iter().map(tell).collect();
    loaded.fill_places(&mut told);
    assert!(told.iter().all(|diagnostic| diagnostic.place.is_some()));
    let _ = format!("{loaded:?}");
}

fn problems_have_places(bytes: &[u8], reading: &ParsedText) {
    let lines = 2 + bytes.iter().filter(|b| matches!(b, b'\n' | b'\r')).count();
    for diagnostic in &reading.diagnostics {
        let place = diagnostic.place.as_ref().expect("a problem without a place");
        assert!((1..=lines).contains(&(place.line as usize)) && place.column >= 1, "{place:?}");
        assert!(diagnostic.message.len() < 20_000, "a message that nobody reads");
    }
}

fn object_is_found_again(bytes: &[u8], read: &Read) {
    let origin = &read.origin;
    assert!(origin.bytes.start < origin.bytes.end && origin.bytes.end <= bytes.len());
    for field in ["", "metadata.name", "spec.listeners[0].hostname", "spec.hostnames[1]"] {
        if let Some(found) = locate(bytes, origin, &FieldPath::of(field)) {
            let span = found.best();
            assert!(span.line >= origin.line && span.column >= 1);
            assert!(
                origin.bytes.start <= span.bytes.start && span.bytes.end <= origin.bytes.end,
                "{span:?} {origin:?}"
            );
        }
    }
}

/// Reads lines as hostnames: what is valid stays valid, and intersection keeps its laws for every pair of neighbours.
pub(crate) fn hostname(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = host_of(&text);
    let names: Vec<Hostname> = text.lines().take(8).filter_map(one_hostname).chain([Hostname::any()]).collect();
    for a in &names {
        for b in &names {
            pair(a, b);
        }
    }
}

fn one_hostname(text: &str) -> Option<Hostname> {
    let _ = (HostnameLint::of(text), PreciseHostname::parse(text).is_ok());
    let name = match Hostname::parse(text) {
        Ok(name) => name,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    assert_eq!(Hostname::parse(name.as_str()).as_ref(), Ok(&name), "a valid name must be read as itself");
    assert!(name.as_str().len() <= 253 && !name.is_any());
    assert_eq!(name.is_precise(), name.precise().is_some());
    assert_eq!(name.is_wildcard(), !name.is_precise());
    Some(name)
}

fn pair(a: &Hostname, b: &Hostname) {
    let common = a.intersect(b);
    assert_eq!(common, b.intersect(a), "{a} {b}");
    if let Some(common) = &common {
        assert!(a.contains(common) && b.contains(common), "{a} {b} {common}");
        assert!(common == a || common == b);
    }
    assert_eq!(a.contains(b), common.as_ref() == Some(b));
    if b.is_precise() {
        assert_eq!(a.matches(b.as_str()), common.as_ref() == Some(b), "{a} {b}");
    }
    if a.contains(b) && b.is_precise() && !a.is_any() && a.covers_in_certificate(b.as_str()) {
        assert!(a.matches(b.as_str()));
    }
}
