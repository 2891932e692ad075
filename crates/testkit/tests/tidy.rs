//! Rules of the house that a compiler does not know: arrows between crates, sizes, documents, reasons for dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use gatepost_core::reason::Reason;
use gatepost_testkit::{page, tree};

mod tidy {
    mod names;
    mod reliability;
}

/// A file has at most this many lines, tests not counted.
const MAX_LINES: usize = 800;

/// How many choices there are where the documents leave one.
const CHOICES: usize = 26;

fn read(path: &str) -> String {
    tree::text(&tree::root().join(path)).unwrap_or_else(|error| panic!("{error}"))
}

fn sources() -> Vec<String> {
    tree::ours().into_iter().filter(|name| name.starts_with("crates/") && name.ends_with(".rs")).collect()
}

/// Tests may be as long as they must.
fn is_test(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("/tests.rs")
}

/// The entries of a section of a Cargo.toml: everything up to the next heading.
fn section<'t>(manifest: &'t str, heading: &str) -> &'t str {
    let body = manifest.split_once(&format!("[{heading}]\n")).map_or("", |(_, body)| body);
    body.split("\n[").next().unwrap_or_default()
}

/// The crates of this workspace that a section names, by their folder.
fn siblings(section: &str) -> BTreeSet<String> {
    let names = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    let ours = names.filter(|name| *name == "gatepost" || name.starts_with("gatepost-"));
    ours.map(|name| name.trim_start_matches("gatepost-").to_owned()).collect()
}

/// The table "crate, may use" of ARCHITECTURE.md.
fn allowed_arrows() -> BTreeMap<String, BTreeSet<String>> {
    let page = read("ARCHITECTURE.md");
    let rows = page.split_once("| crate | may use |").expect("ARCHITECTURE.md has the table of arrows").1;
    let rows = rows.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let names = |cell: &str| {
        cell.split([',', ' ']).filter(|name| !name.is_empty() && *name != "nothing").map(str::to_owned).collect()
    };
    rows.map(cells).map(|row| (row[1].clone(), names(&row[2]))).collect()
}

#[test]
fn crates_use_only_what_the_architecture_draws() {
    let allowed = allowed_arrows();
    for folder in tree::entries(&tree::root().join("crates")) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        let used = siblings(section(&manifest, "dependencies"));
        let may = allowed.get(&name).unwrap_or_else(|| panic!("ARCHITECTURE.md does not draw the crate `{name}`"));
        assert!(used.is_subset(may), "crates/{name} uses {used:?}, and ARCHITECTURE.md allows {may:?}");
        let tested_with = siblings(section(&manifest, "dev-dependencies"));
        let may_test_with = may.union(&BTreeSet::from(["testkit".to_owned()])).cloned().collect();
        assert!(tested_with.is_subset(&may_test_with), "the tests of crates/{name} use {tested_with:?}");
    }
}

#[test]
fn files_are_short_enough_to_read() {
    for name in sources().iter().filter(|name| !is_test(name)) {
        let text = read(name);
        let without_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = without_tests.lines().count();
        assert!(lines <= MAX_LINES, "{name} has {lines} lines, at most {MAX_LINES} are allowed");
    }
}

#[test]
fn modules_are_named_after_what_they_are() {
    for name in sources() {
        assert!(!name.ends_with("/mod.rs"), "{name}: write `foo.rs` beside `foo/`");
        for word in ["util", "helper", "manager", "handler"] {
            // cert-manager is somebody's name.
            let stem = Path::new(&name).file_stem().unwrap_or_default().to_string_lossy().replace("cert_manager", "");
            assert!(!stem.contains(word), "{name}: `{word}` says nothing");
        }
    }
}

#[test]
fn modules_say_what_they_are_for() {
    for name in sources().into_iter().filter(|name| !is_test(name)) {
        assert!(read(&name).starts_with("//! "), "{name} begins with no module documentation");
    }
}

#[test]
fn every_reason_has_its_page() {
    for reason in Reason::all() {
        let row = reason.row();
        let page = page::text(reason).unwrap_or_else(|error| panic!("no page: {error}"));
        let head = format!("# {}\n\n{}, {}", row.name, row.code, row.severity);
        assert!(page.starts_with(&head), "docs/diagnostics/{}.md must begin with\n{head}", row.name);
        let examples = page::examples(&page);
        let both = examples.iter().any(|e| e.fires) && examples.iter().any(|e| !e.fires);
        let excused = page.lines().any(|line| line.starts_with(page::NOT_FROM_FILES));
        assert!(both != excused, "{}.md: a firing and a quiet example, or `{}why`", row.name, page::NOT_FROM_FILES);
        assert!(page.contains("\n## What to do\n"), "{}.md does not say what to do", row.name);
    }
}

/// Where the documents leave a choice it has a number, and at least one golden case shows it.
/// `core` reads no files, so the test that runs these seeds names each.
#[test]
fn every_seed_of_ownership_is_run() {
    let test = read("crates/core/tests/seeds.rs");
    let seeds: Vec<String> =
        tree::ours().into_iter().filter(|name| name.starts_with("fuzz/seeds/ownership/")).collect();
    assert!(seeds.len() >= 5);
    for seed in seeds {
        assert!(test.contains(&seed), "{seed} is run by no test");
    }
}

#[test]
fn every_choice_has_its_case() {
    let cases = tree::ours().into_iter().filter(|name| name.starts_with("tests/cases/") && name.ends_with(".yaml"));
    let rule = |name: String| read(&name).lines().take_while(|line| line.starts_with('#')).collect::<String>();
    let rules = cases.map(rule).collect::<Vec<_>>().join(" ");
    let words: BTreeSet<&str> = rules.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let missing: Vec<_> = (1..=CHOICES).map(|number| format!("D{number}")).filter(|d| !words.contains(&**d)).collect();
    assert!(missing.is_empty(), "no case of tests/cases shows {missing:?}");
}

#[test]
fn every_page_has_its_reason() {
    for path in tree::files(&tree::root().join("docs/diagnostics")) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let known =
            path.extension().is_some_and(|e| e == "md") && Reason::find(&name).is_some_and(|r| r.name() == name);
        assert!(known, "{} belongs to no reason of the catalog", path.display());
    }
}

#[test]
fn every_dependency_has_a_reason() {
    let manifest = read("Cargo.toml");
    let mut explained = false;
    for line in section(&manifest, "workspace.dependencies").lines() {
        match line {
            "" => explained = false,
            comment if comment.starts_with("# ") => explained = true,
            ours if ours.contains("path = \"crates/") => {}
            other => assert!(explained, "Cargo.toml does not say what `{other}` is for"),
        }
    }
}

#[test]
fn every_crate_takes_its_versions_from_the_workspace() {
    for folder in tree::entries(&tree::root().join("crates")) {
        let manifest = tree::text(&folder.join("Cargo.toml")).unwrap_or_default();
        for heading in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for line in section(&manifest, heading).lines().filter(|line| line.contains('=')) {
                let taken = line.contains(".workspace = true") || line.contains("workspace = true");
                assert!(taken, "{}: `{line}` belongs into the root Cargo.toml", folder.display());
            }
        }
        assert!(manifest.contains("[lints]\nworkspace = true"), "{} has lints of its own", folder.display());
    }
}

#[test]
fn dependencies_come_from_the_public_registry() {
    let public = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    for line in read("Cargo.lock").lines().filter(|line| line.starts_with("source")) {
        assert_eq!(line, public);
    }
}

#[test]
fn the_papers_are_there() {
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "LICENSE",
        "Makefile",
        ".ci/run",
    ] {
        assert!(!read(name).trim().is_empty(), "{name} is empty");
    }
}

#[test]
fn no_file_knows_a_machine() {
    let homes = ["home", "root", "Users", "work"].map(|name| format!("/{name}/"));
    for name in tree::ours() {
        let text = fs::read(tree::root().join(&name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        for home in &homes {
            let starts = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || "./-_}".contains(c));
            let found = text.match_indices(home.as_str()).any(|(at, _)| starts(at));
            assert!(!found, "{name} holds a path of somebody's machine (`{home}`)");
        }
    }
}
