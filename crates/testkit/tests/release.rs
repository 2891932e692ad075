//! Files of a release come from one place: archives, packages, manifests, and the home of the project.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::fs;
use std::path::Path;
use std::process::Command;

use gatepost_testkit::scratch::Scratch;
use gatepost_testkit::{servers, tree};

const TARGETS: [&str; 3] = ["x86_64-unknown-linux-musl", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"];

/// Stands for the program: the script only asks for its manual and completions.
const PROGRAM: &str = "#!/bin/sh\n[ \"$1\" != --help ] || printf 'Commands:\\n  check  x\\n         y\\n  help   z\\n\\n'\necho \"said $*\"\n";

fn release(folder: &Path, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new(tree::root().join("scripts/release"));
    command.args(words).env("CARGO_TARGET_DIR", folder.join("target"));
    let done = command.env("REPOSITORY", "https://git.example.org/team/gatepost").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
}

/// The value of a key in the root Cargo.toml.
fn manifest(key: &str) -> String {
    let text = tree::text(&tree::root().join("Cargo.toml")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{key} = \""))).unwrap();
    line.trim_end_matches('"').to_owned()
}

#[test]
fn manifests_name_the_archives_that_were_packed() {
    let scratch = Scratch::new().unwrap();
    let (folder, version) = (scratch.path(), manifest("version"));
    let out = folder.join("dist");
    let out_word = out.to_string_lossy().into_owned();
    for target in TARGETS {
        let suffix = if target.contains("windows") { ".exe" } else { "" };
        let program = scratch.file(&format!("target/{target}/release/gatepost{suffix}"), PROGRAM).unwrap();
        let made = Command::new("chmod").args(["+x", &program]).status().unwrap();
        assert!(made.success());
        release(folder, &["pack", target, &out_word]).unwrap();
    }
    if servers::find("dpkg-deb").is_some() {
        release(folder, &["debian", &out_word]).unwrap();
        let package = out.join(format!("gatepost_{version}_amd64.deb"));
        let list = Command::new("dpkg-deb").arg("--contents").arg(package).output().unwrap();
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        for file in ["./usr/bin/gatepost\n", "kubectl-gatepost -> gatepost", "man1/gatepost-check.1.gz", "/_gatepost\n"]
        {
            assert!(list.contains(file), "no {file} in\n{list}");
        }
        assert!(!list.contains("gatepost-help"), "{list}");
    }
    release(folder, &["manifests", &out_word]).unwrap();
    release(folder, &["checksums", &out_word]).unwrap();
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let (krew, brew, sums) = (read("krew.yaml"), read("gatepost.rb"), read("SHA256SUMS"));
    for target in TARGETS {
        let archive = format!("gatepost-{version}-{target}.tar.gz");
        let sum = sums.lines().find_map(|line| line.strip_suffix(&format!("  {archive}"))).unwrap();
        let address = format!("https://git.example.org/team/gatepost/releases/download/v{version}/{archive}");
        assert!(krew.contains(&format!("uri: {address}\n    sha256: {sum}\n")), "{krew}");
        let is_in_brew = brew.contains(&format!("url \"{address}\"\n      sha256 \"{sum}\"\n"));
        assert_eq!(is_in_brew, !target.contains("windows"), "{brew}");
    }
    let again = folder.join("again");
    release(folder, &["pack", TARGETS[0], &again.to_string_lossy()]).unwrap();
    let archive = format!("gatepost-{version}-{}.tar.gz", TARGETS[0]);
    assert!(
        fs::read(again.join(&archive)).unwrap() == fs::read(out.join(&archive)).unwrap(),
        "packed twice, two archives"
    );
}

#[test]
fn a_tag_of_another_version_is_refused() {
    let scratch = Scratch::new().unwrap();
    let said = release(scratch.path(), &["version", "v99.0.0"]).unwrap_err();
    assert!(said.contains("the tag is v99.0.0, and Cargo.toml has version"), "{said}");
}

/// Where the project lives stands in Cargo.toml; a copy elsewhere says the same.
#[test]
fn the_home_stands_in_one_place() {
    let home = manifest("repository");
    let chart = tree::text(&tree::root().join("charts/gatepost/Chart.yaml")).unwrap();
    assert!(chart.contains(&format!("\nhome: {home}\n")), "the chart has another home than Cargo.toml");
    let version = manifest("version");
    for key in ["version", "appVersion"] {
        assert!(chart.contains(&format!("\n{key}: {version}\n")), "the chart has another {key} than Cargo.toml");
    }
    let documents = ["docs", "examples", ".github", "action.yml", "README.md", "SECURITY.md", "scripts"];
    for path in documents.iter().flat_map(|name| {
        let path = tree::root().join(name);
        if path.is_dir() { tree::files(&path) } else { vec![path] }
    }) {
        let text = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains(&home), "{} names {home}; Cargo.toml is the one place for it", path.display());
    }
}
