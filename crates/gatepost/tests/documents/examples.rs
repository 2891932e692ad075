//! Examples: `check --strict` ends as the table says, and `plan.txt` is what `plan` says.

use std::fs;

use gatepost_testkit::program::{Program, words};
use gatepost_testkit::{Failed, Trial, tree};

/// An example: its folder, where its objects are below it, and what `check --strict` ends with.
const EXAMPLES: [(&str, &str, i32); 7] = [
    // Holds a mistake for `explain` to find.
    ("quickstart", ".", 1),
    ("page", ".", 0),
    ("https-with-cert-manager", "manifests", 0),
    ("acme-dns01", "manifests", 0),
    ("three-teams", ".", 0),
    ("ci-github", "manifests", 0),
    ("ci-gitlab", "manifests", 0),
];

/// Examples without objects.
const OTHERS: [&str; 1] = ["helm-values"];

/// Examples with several providers: no server is asked, so `plan.txt` is what `explain` says about these hostnames.
const EXPLAINED: [(&str, &str, &[&str]); 1] =
    [("split-horizon", "manifests", &["www.example.org", "admin.example.org"])];

pub(crate) fn trials(program: &Program) -> Vec<Trial> {
    let mut trials = vec![Trial::test("examples::every folder is a row of the table", every_folder_is_tested)];
    for (name, objects, exit) in EXAMPLES {
        let checked = program.clone();
        trials.push(Trial::test(format!("examples::{name}::check"), move || check(&checked, name, objects, exit)));
        let planned = program.clone();
        trials.push(Trial::test(format!("examples::{name}::plan"), move || plan(&planned, name, objects)));
    }
    for (name, objects, hostnames) in EXPLAINED {
        let program = program.clone();
        trials.push(Trial::test(format!("examples::{name}"), move || explain(&program, name, objects, hostnames)));
    }
    trials
}

fn explain(program: &Program, name: &str, objects: &str, hostnames: &[&str]) -> Result<(), Failed> {
    let rest = format!("--settings examples/{name}/settings.yaml -f {}", folder(name, objects));
    let checked = program.run_in(&tree::root(), &words(&format!("check --strict {rest}")), "")?;
    assert_eq!(checked.exit, 0, "{}{}", checked.output, checked.errors);
    let mut all = String::new();
    for hostname in hostnames {
        let answer = program.run_in(&tree::root(), &words(&format!("explain {hostname} {rest}")), "")?;
        assert_eq!((answer.exit, answer.errors.as_str()), (0, ""), "{}", answer.output);
        all += &answer.output;
    }
    compare(name, all)
}

fn every_folder_is_tested() -> Result<(), Failed> {
    let root = tree::root().join("examples");
    for folder in tree::entries(&root).into_iter().filter(|path| path.is_dir()) {
        let name = tree::below(&root, &folder);
        let known = EXAMPLES.iter().any(|(example, ..)| *example == name)
            || EXPLAINED.iter().any(|(example, ..)| *example == name)
            || OTHERS.contains(&&*name);
        assert!(known, "examples/{name} is in no table of this test");
    }
    Ok(())
}

/// Where the objects of an example are, as seen from the root.
fn folder(name: &str, objects: &str) -> String {
    format!("examples/{name}/{objects}").trim_end_matches("/.").to_owned()
}

fn check(program: &Program, name: &str, objects: &str, exit: i32) -> Result<(), Failed> {
    let line = words(&format!("check --strict -f {}", folder(name, objects)));
    let answer = program.run_in(&tree::root(), &line, "")?;
    assert_eq!(answer.exit, exit, "{}{}", answer.output, answer.errors);
    Ok(())
}

fn plan(program: &Program, name: &str, objects: &str) -> Result<(), Failed> {
    let answer = program.run_in(&tree::root(), &words(&format!("plan -f {}", folder(name, objects))), "")?;
    assert_eq!((answer.exit, answer.errors.as_str()), (0, ""), "{}", answer.output);
    compare(name, answer.output)
}

fn compare(name: &str, output: String) -> Result<(), Failed> {
    let path = tree::root().join(format!("examples/{name}/plan.txt"));
    if std::env::var_os("GATEPOST_BLESS").is_some() {
        return Ok(fs::write(path, output)?);
    }
    let kept = tree::text(&path)?;
    let what = path.display();
    assert!(kept == output, "{what} is not as `gatepost` has it (GATEPOST_BLESS=1)\n{output}");
    Ok(())
}
