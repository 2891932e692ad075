//! `retry`, `timeouts` and `sessionPersistence`: checked, then forgotten, for no rule of ours depends on them.

use crate::fields::Fields;
use crate::rules;
use crate::shapes::Shape;
use crate::times::duration;
use crate::tree::Tree;

/// Checks what else an HTTPRoute's rule may hold.
pub(super) fn check(f: &Fields<'_>) {
    f.mapping("timeouts", timeouts);
    f.mapping("retry", retry);
    session_persistence(f);
}

/// Checks `sessionPersistence`.
pub(super) fn session_persistence(f: &Fields<'_>) {
    f.mapping("sessionPersistence", persistence);
}

/// A duration, which is often written without its unit.
fn time(f: &Fields<'_>, key: &'static str) -> Option<f64> {
    if let Some(Tree::Number(number)) = f.node(key).map(|node| node.value()) {
        f.invalid(key, format!("is the number {number}, and a duration has a unit; write `{number}s`"));
        return None;
    }
    f.shaped(key, Shape::Duration).and_then(|text| duration(&text))
}

fn timeouts(f: &Fields<'_>) {
    let request = time(f, "request");
    let backend = time(f, "backendRequest");
    if let (Some(request), Some(backend)) = (request, backend)
        && request > 0.0
        && backend > request
    {
        f.invalid("backendRequest", "is longer than `request`; one attempt cannot take longer than all of them");
    }
}

fn retry(f: &Fields<'_>) {
    f.number_in("attempts", "a number of attempts", 0, i64::from(i32::MAX));
    f.shaped("backoff", Shape::Duration);
    let codes = f.list("codes", |node| {
        let code = node.number()?;
        if !(400..=599).contains(&code) {
            node.invalid(format!("is {code}; a status that is tried again is 400 to 599"));
        }
        Some(code)
    });
    rules::unique(f, "codes", None, codes.iter(), "status");
}

/// Accepts the field names of 1.7 and those it replaced.
fn persistence(f: &Fields<'_>) {
    f.ignore(&["sessionName", "idleTimeout", "cookieConfig"]);
    let absolute = f.shaped("absoluteTimeout", Shape::Duration);
    let kind = rules::word(f, "type", &["Cookie", "Header"]).unwrap_or_else(|| "Cookie".into());
    let permanent = f.mapping("cookie", |f| {
        f.ignore(&["path"]);
        f.shaped("name", Shape::HeaderName);
        rules::word(f, "lifetimeType", &["Permanent", "Session"]).as_deref() == Some("Permanent")
    });
    if permanent == Some(true) && absolute.is_none() {
        f.invalid("absoluteTimeout", "is missing; a permanent cookie needs it");
    }
    if &*kind != "Cookie" && permanent.is_some() {
        f.invalid("cookie", format!("must be left out where `type` is {kind}"));
    }
    let header = f.mapping("header", |f| f.required("name", Shape::HeaderName)).is_some();
    if &*kind != "Header" && header {
        f.invalid("header", format!("must be left out where `type` is {kind}"));
    }
}
