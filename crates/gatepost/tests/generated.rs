//! Files that the program writes itself are as it would write them now; `GATEPOST_BLESS=1` rewrites them.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use gatepost_dns::provider::settings::{Setting, SettingKind};
use gatepost_dns::providers::PROVIDERS;
use gatepost_testkit::program::Program;
use gatepost_testkit::tree;

fn say(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"));
    let answer = program.run(&words, "").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((answer.exit, answer.errors.as_str()), (0, ""), "{words:?}");
    answer.output
}

/// Holds a file to what the program says, or rewrites it.
fn current(file: &str, said: &str, command: &str) {
    let path = tree::root().join(file);
    if std::env::var_os("GATEPOST_BLESS").is_some() {
        std::fs::write(&path, said).unwrap();
    } else {
        let kept = tree::text(&path).unwrap();
        assert!(kept == said, "{file} is not as `{command}` has it; `make bless` rewrites it");
    }
}

#[test]
fn the_definitions_in_the_reference_and_the_chart_are_current() {
    let said = format!("# Written by `gatepost crds`; `make bless` writes it anew.\n{}", say(&["crds"]));
    current("docs/reference/crds.yaml", &said, "gatepost crds");
    current("charts/gatepost/files/crds.yaml", &said, "gatepost crds");
    current("deploy/kustomize/crds.yaml", &said, "gatepost crds");
}

#[test]
fn the_roles_of_the_chart_and_of_kustomize_are_current() {
    current("charts/gatepost/templates/_rules.tpl", &say(&["rbac", "-o", "helm"]), "gatepost rbac -o helm");
    let said = format!("# Written by `gatepost rbac`; `make bless` writes it anew.\n{}", say(&["rbac"]));
    current("deploy/kustomize/rbac.yaml", &said, "gatepost rbac");
}

#[test]
fn the_policies_of_the_chart_are_current() {
    let said = format!("# Written by `gatepost admission`; `make bless` writes it anew.\n{}", say(&["admission"]));
    current("charts/gatepost/files/admission.yaml", &said, "gatepost admission");
}

/// The help of every command, so that a change of a flag is a change that somebody reads.
#[test]
fn the_help_in_the_reference_is_current() {
    let all = say(&["--help"]);
    let list = all.split_once("Commands:\n").unwrap().1.split("\n\n").next().unwrap();
    let heads = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = heads.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"plan") && names.contains(&"help"), "{names:?}");
    let mut page = "# Commands\n\nWhat `gatepost COMMAND --help-all` says; `make bless` writes it anew.\n".to_owned();
    for name in names.into_iter().filter(|name| *name != "help") {
        let help: Vec<String> = say(&[name, "--help-all"]).lines().map(|line| line.trim_end().to_owned()).collect();
        page += &format!("\n## gatepost {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end());
    }
    current("docs/reference/commands.md", &page, "gatepost COMMAND --help-all");
}

#[test]
fn the_document_of_the_api_is_current() {
    let said = serde_json::to_string_pretty(&gatepost::api::openapi::document()).unwrap() + "\n";
    current("docs/reference/openapi.json", &said, "/api/v1/openapi.json");
}

#[test]
fn the_definitions_come_as_json_too() {
    let list: serde_json::Value = serde_json::from_str(&say(&["crds", "-o", "json"])).unwrap();
    let kinds: Vec<_> = list["items"].as_array().unwrap().iter().map(|item| &item["spec"]["names"]["kind"]).collect();
    assert_eq!(kinds, ["DNSPolicy", "HostnameGrant", "TLSPolicy"]);
}

/// The providers, and the secrets of theirs that must come from files, as lines of the chart's schema.
fn provider_lines() -> String {
    let names: Vec<String> = PROVIDERS.iter().map(|kind| format!("\"{}\"", kind.name)).collect();
    let is_secret = |setting: &&Setting| matches!(setting.kind, SettingKind::Secret { .. });
    let secrets = PROVIDERS.iter().flat_map(|kind| kind.settings).filter(is_secret);
    let secrets = secrets.map(|setting| format!("        \"{}\": false,\n", setting.name));
    format!("        \"provider\": {{\"enum\": [{}]}},\n{}", names.join(", "), secrets.collect::<String>())
}

#[test]
fn the_providers_in_the_schema_of_the_chart_are_current() {
    let file = "charts/gatepost/values.schema.json";
    let text = tree::text(&tree::root().join(file)).unwrap();
    let start = text.find("        \"provider\":").unwrap();
    let end = text.find("        \"issuer\":").unwrap();
    let said = format!("{}{}{}", &text[..start], provider_lines(), &text[end..]);
    current(file, &said, "the registry of providers");
}

/// The words behind each `GATEPOST_` in a text.
fn variables(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.split("GATEPOST_").skip(1).map(|rest| rest.chars().take_while(|c| is_part(*c)).collect()).collect()
}

#[test]
fn what_the_chart_sets_are_flags_of_the_controller() {
    let help = say(&["controller", "--help-all"]);
    let schema = tree::text(&tree::root().join("charts/gatepost/values.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let settings = schema["properties"]["settings"]["properties"].as_object().unwrap();
    assert!(settings.len() > 4);
    // The one key with entries of its own is no flag that people write.
    let keys = settings.keys().map(String::as_str).filter(|key| *key != "providers");
    for key in keys.chain(["http-addr", "dns-addr"]) {
        assert!(help.contains(&format!("--{key} ")), "the controller has no --{key}");
    }
    for file in ["charts/gatepost/templates/controller.yaml", "deploy/kustomize/controller.yaml"] {
        let names = variables(&tree::text(&tree::root().join(file)).unwrap());
        assert!(!names.is_empty(), "{file}");
        for name in names {
            assert!(help.contains(&format!("GATEPOST_{name}=")), "{file}: the controller knows no GATEPOST_{name}");
        }
    }
}
