//! SARIF 2.1.0, for code scanning.

use gatepost_core::diagnostic::{Diagnostic, SourcePosition};
use gatepost_core::reason::{Reason, Severity};
use serde_json::{Value, json};

/// The whole log of a run.
pub fn log(diagnostics: &[Diagnostic]) -> Value {
    let rules: Vec<_> = Reason::all().map(rule).collect();
    let results: Vec<_> = diagnostics.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "gatepost",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": "https://gatepost.dev",
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(reason: Reason) -> Value {
    let row = reason.row();
    json!({
        "id": row.code,
        "name": row.name,
        "shortDescription": {"text": row.summary},
        "help": {"text": row.help},
        "helpUri": format!("https://gatepost.dev/diagnostics/{}", row.name),
        "defaultConfiguration": {"level": level(row.severity)},
    })
}

fn result(diagnostic: &Diagnostic) -> Value {
    let text =
        super::inert(&format!("{}\n{}", super::snippet::headline(diagnostic), super::snippet::advice(diagnostic)));
    let rule = Reason::all().position(|r| r == diagnostic.reason);
    let mut result = json!({
        "ruleId": diagnostic.reason.row().code,
        "ruleIndex": rule,
        "level": level(diagnostic.severity),
        "message": {"text": text},
    });
    if let Some(place) = &diagnostic.place {
        result["locations"] = json!([location(place)]);
    }
    let related: Vec<_> = diagnostic.related.iter().filter_map(|r| Some((r.place.as_ref()?, &r.note))).collect();
    if !related.is_empty() {
        let related = related.iter().enumerate().map(|(id, (place, note))| {
            let mut location = location(place);
            location["id"] = json!(id);
            location["message"] = json!({"text": super::inert(note)});
            location
        });
        result["relatedLocations"] = Value::Array(related.collect());
    }
    result
}

fn location(place: &SourcePosition) -> Value {
    json!({"physicalLocation": {
        "artifactLocation": {"uri": &*place.source},
        "region": {"startLine": place.line, "startColumn": place.column},
    }})
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}
