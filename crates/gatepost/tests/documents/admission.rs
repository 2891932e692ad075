//! Objects of documents and examples, as a real API server judges them: each is sent as a dry run.

use std::collections::BTreeSet;

use gatepost_testkit::program::{Program, words};
use gatepost_testkit::servers::cert_manager;
use gatepost_testkit::servers::kube::{Cluster, Setup};
use gatepost_testkit::{Failed, Trial, markdown, tree};

use super::pages::{self, holds_objects};

pub(crate) fn trials(program: &Program) -> Vec<Trial> {
    let program = program.clone();
    let name = "objects of documents and examples are taken by an API server";
    vec![cert_manager::trial(name, move || taken(&program))]
}

/// Where objects stand, and their text: files of examples and blocks of pages.
fn all() -> Vec<(String, String)> {
    let root = tree::root();
    let mut found = Vec::new();
    for path in tree::files(&root.join("examples")) {
        let name = tree::below(&root, &path);
        let text = tree::text(&path).unwrap_or_default();
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml");
        if is_yaml && text.lines().any(|line| line.starts_with("apiVersion:")) {
            found.push((name, text));
        }
    }
    for path in pages::pages() {
        let name = tree::below(&root, &path);
        let blocks = markdown::blocks(&tree::text(&path).unwrap_or_default()).into_iter().filter(holds_objects);
        found.extend(blocks.map(|block| (format!("{name} at line {}", block.line + 1), block.text)));
    }
    found
}

/// The namespaces that a text speaks of.
fn namespaces(text: &str) -> BTreeSet<String> {
    let is_part = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let words = text.split("namespace: ").skip(1).map(|rest| rest.chars().take_while(is_part).collect());
    words.filter(|word: &String| !word.is_empty()).collect()
}

fn taken(program: &Program) -> Result<(), Failed> {
    let (cluster, all) = (Cluster::start(&Setup::default())?, all());
    cluster.install_text(&program.run(&words("crds"), "")?.output)?;
    cert_manager::install(&cluster)?;
    let namespaces = all.iter().flat_map(|(_, text)| namespaces(text)).collect::<BTreeSet<_>>();
    let namespace = |name: &String| format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n");
    cluster.apply(&namespaces.iter().map(namespace).collect::<Vec<_>>().join("---\n"))?;
    assert!(all.len() > 15, "{}", all.len());
    let send = |text: &str| {
        cluster.feed(&["apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-"], text)
    };
    // All at once is quicker; one by one tells where what is refused stands.
    let texts: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
    if send(&texts.join("\n---\n")).is_err() {
        let refused = all.iter().filter_map(|(name, text)| Some(format!("{name}: {}", send(text).err()?)));
        return Err(refused.collect::<Vec<_>>().join("\n").into());
    }
    Ok(())
}
