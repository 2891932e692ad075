//! Repositories as teams have them (`tests/repositories`): sound ones are quiet, rendered ones have full answers, and a mistake
//! is named first.

use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use serde::Deserialize;

use crate::fault::unfolded;
use crate::program::{Program, words};
use crate::scratch::Scratch;
use crate::servers::{helm, kube};
use crate::tree;

/// One mistake in the repository `teams`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    /// What is wrong.
    fault: String,
    edits: Vec<Edit>,
    /// The object and the field that the first finding names.
    names: String,
    /// A name that does not work because of it.
    #[serde(default)]
    breaks: Option<String>,
}

/// A change of one file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    file: PathBuf,
    find: String,
    put: String,
}

/// What is read with `-f`, and the notes on it.
const QUIET: [(&str, &[&str]); 5] = [
    ("-f teams", &[]),
    ("-f flux", &["object-incomplete"]),
    ("-f overlays", &["object-incomplete", "namespace-assumed"]),
    ("-f umbrella", &["chart-not-rendered"]),
    ("-f doubled", &["object-in-overlays"]),
];

/// What the rendered repositories serve: how they are rendered, where their Gateway is, and names that work.
const RENDERED: [(&str, &str, &[&str]); 4] = [
    ("-k overlays/staging", "web-staging/web", &["web.staging.example.com"]),
    ("-k overlays/production", "web-production/web", &["web.example.com"]),
    ("--helm umbrella", "default/public", &["shop.example.com", "blog.example.com"]),
    ("--helm umbrella --values umbrella/staging.yaml", "default/public", &["shop.staging.example.com"]),
];

/// Every repository and every mistake, each as a test.
pub fn trials(program: &Program) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (objects, notes) in QUIET {
        let program = program.clone();
        trials.push(Trial::test(format!("{objects} is quiet"), move || Ok(is_quiet(&program, objects, notes)?)));
    }
    let teams = program.clone();
    trials.push(Trial::test("names of teams work", move || Ok(names_work(&teams)?)));
    for (rendering, gateway, names) in RENDERED {
        let program = program.clone();
        let test = move || rendered(&program, rendering, gateway, names);
        let name = format!("{rendering} has full answers");
        trials.push(match rendering.starts_with("-k") {
            true => kube::trial(&name, test),
            false => helm::program_trial(&name, test),
        });
    }
    trials.extend(faults().into_iter().map(|fault| {
        let program = program.clone();
        Trial::test(fault.fault.clone(), move || Ok(is_named(&program, &fault)?))
    }));
    trials
}

fn repositories() -> PathBuf {
    tree::root().join("tests/repositories")
}

/// No error and no warning, and exactly these notes.
fn is_quiet(program: &Program, objects: &str, notes: &[&str]) -> Result<(), String> {
    let answer = program.run_in(&repositories(), &words(&format!("check --strict {objects}")), "")?;
    let starts = answer.output.lines().filter_map(|line| line.strip_prefix("info[")?.split_once("]:"));
    let said: Vec<&str> = starts.map(|(reason, _)| reason).collect();
    match answer.exit == 0 && said == notes {
        true => Ok(()),
        false => Err(format!("{}: {said:?}\n{}{}", answer.exit, answer.output, answer.errors)),
    }
}

fn names_work(program: &Program) -> Result<(), String> {
    let names = ["shop.example.com", "www.example.com", "api.example.com", "grpc.example.com"];
    for name in names.into_iter().chain(["media.example.org", "stream.example.org"]) {
        let answer = program.run_in(&repositories(), &words(&format!("explain {name} -f teams")), "")?;
        if answer.exit != 0 {
            return Err(format!("{name}: {}{}", answer.output, answer.errors));
        }
    }
    Ok(())
}

fn rendered(program: &Program, rendering: &str, gateway: &str, names: &[&str]) -> Result<(), Failed> {
    let folder = if rendering.starts_with("-k") { kube::programs()? } else { helm::programs()? };
    let home = Scratch::new()?;
    let program = program.clone().with("PATH", &folder.to_string_lossy());
    let program = program.with("HOME", &home.path().to_string_lossy());
    let check = program.run_in(&repositories(), &words(&format!("check --strict {rendering}")), "")?;
    if check.exit != 0 {
        return Err(format!("{}{}", check.output, check.errors).into());
    }
    for name in names {
        let line = format!("explain {name} {rendering} --gateway-address {gateway}=203.0.113.1");
        let answer = program.run_in(&repositories(), &words(&line), "")?;
        if answer.exit != 0 {
            return Err(format!("{line}: {}{}", answer.output, answer.errors).into());
        }
    }
    Ok(())
}

fn faults() -> Vec<Fault> {
    let text = tree::text(&repositories().join("teams.faults.yaml")).unwrap_or_default();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("teams.faults.yaml: {error}"))
}

/// Plants a fault in a copy of the repository, and asks what is wrong.
fn is_named(program: &Program, fault: &Fault) -> Result<(), String> {
    let copy = Scratch::new()?;
    let repository = repositories().join("teams");
    for file in tree::files(&repository) {
        let name = tree::below(&repository, &file);
        let mut text = tree::text(&file)?;
        for edit in fault.edits.iter().filter(|edit| edit.file == Path::new(&name)) {
            if text.matches(&edit.find).count() != 1 {
                return Err(format!("{name}: {:?} does not stand there exactly once", edit.find));
            }
            text = text.replace(&edit.find, &edit.put);
        }
        copy.file(&name, &text)?;
    }
    let check = program.run_in(copy.path(), &words("check --strict -f ."), "")?;
    let first = unfolded(&check.output).into_iter().next().unwrap_or_default();
    if check.exit != 1 || !first.contains(&format!("{}:", fault.names)) {
        return Err(format!("{fault:?}: ended with {}\n{}{}", check.exit, check.output, check.errors));
    }
    if let Some(name) = &fault.breaks {
        let explained = program.run_in(copy.path(), &words(&format!("explain {name} -f .")), "")?;
        if explained.exit != 1 {
            return Err(format!("explain {name}: {}{}", explained.output, explained.errors));
        }
    }
    Ok(())
}
