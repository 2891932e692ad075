//! Values of the chart in examples and documents: the schema takes them, the chart renders with them, and every setting is a
//! flag of the controller.

use gatepost_testkit::program::Program;
use gatepost_testkit::servers::helm::{self, Helm};
use gatepost_testkit::{Failed, Trial, markdown, tree};

/// How blocks with values are headed.
const VALUES: [&str; 2] = ["values", "file values.yaml"];

pub(crate) fn trials() -> Vec<Trial> {
    all().into_iter().map(|(name, text)| trial(name, text)).collect()
}

/// Where values stand, and the values: files of examples, and YAML blocks headed `values`.
fn all() -> Vec<(String, String)> {
    let root = tree::root();
    let mut found = Vec::new();
    for path in [tree::files(&root.join("docs")), tree::files(&root.join("examples"))].concat() {
        let name = tree::below(&root, &path);
        let text = tree::text(&path).unwrap_or_default();
        if name.starts_with("examples/helm-values/") && name.ends_with(".yaml") || name.ends_with("/values.yaml") {
            found.push((name, text));
        } else if name.ends_with(".md") {
            let blocks = markdown::blocks(&text).into_iter();
            let values = blocks.filter(|block| block.language == "yaml" && VALUES.contains(&&*block.info));
            found.extend(values.map(|block| (format!("{name}::values at line {}", block.line + 1), block.text)));
        }
    }
    found
}

fn trial(name: String, text: String) -> Trial {
    if Helm::find().is_err() && std::env::var_os("CI").is_none() {
        let name = format!("{name} (skipped: scripts/servers-helm was not run)");
        return Trial::test(name, || Ok(())).with_ignored_flag(true);
    }
    Trial::test(name, move || renders(&text))
}

fn renders(values: &str) -> Result<(), Failed> {
    let helm = Helm::find()?;
    let file = helm.values("values.yaml", values)?;
    let chart = helm::chart();
    let said =
        helm.run(&["template", "gatepost", &chart, "-n", "gatepost", "--kube-version", "1.36.3", "-f", &file])?;
    let settings = said.split_once("  settings.yaml: |\n").ok_or("no settings")?.1;
    let settings: Vec<&str> = settings.lines().map_while(|line| line.strip_prefix("    ")).collect();
    assert!(settings.len() > 1, "{said}");
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"));
    let help = program.run(&["controller".to_owned(), "--help-all".to_owned()], "")?.output;
    for key in settings.iter().filter(|line| !line.starts_with([' ', '-'])).filter_map(|line| line.split(':').next()) {
        // The one key with entries of its own.
        if key == "providers" {
            continue;
        }
        assert!(help.contains(&format!("--{key} ")), "the controller has no --{key}");
    }
    Ok(())
}
