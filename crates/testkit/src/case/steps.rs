//! Steps of a case: objects that come, change and go between runs.
//!
//! A document of kind `CaseStep` ends what stood before it. The documents behind it are added, or replace those of the same kind,
//! namespace and name; `delete` takes others away. What a provider, an issuer or a probe has observed until a step would be
//! one more document behind it; the program does not read any yet.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// `kind: CaseStep`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseStep {
    #[allow(dead_code, reason = "read to tell a step from an object")]
    kind: String,
    /// What happens.
    title: String,
    /// Objects that go: `Kind/namespace/name`, or `Kind/name`.
    #[serde(default)]
    delete: Vec<String>,
    /// What to run, where it is not what the case runs.
    run: Option<Vec<String>>,
}

/// The documents between two changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Stage {
    /// What has happened; nothing in a case without steps.
    pub(super) title: Option<String>,
    /// What to run, where it is not what the case runs.
    pub(super) run: Option<Vec<String>>,
    documents: Vec<String>,
}

/// The stages of a case: the beginning, then one for each step.
pub(super) fn stages(documents: &[&str]) -> Result<Vec<Stage>, String> {
    let mut stages = vec![Stage::default()];
    for document in documents {
        if document.lines().any(|line| line == "kind: Step") {
            let next = stages[stages.len() - 1].after(read(document)?)?;
            stages.push(next);
        } else {
            let is_begun = stages.len() > 1;
            let last = stages.len() - 1;
            stages[last].add(document, is_begun);
        }
    }
    if stages.len() > 1 {
        stages[0].title = Some("at first".into());
    }
    Ok(stages)
}

/// A document of the test bed itself.
pub(super) fn read<T: DeserializeOwned>(document: &str) -> Result<T, String> {
    serde_saphyr::from_str(document).map_err(|error| error.to_string())
}

impl Stage {
    /// All documents as one text.
    pub(super) fn text(&self) -> String {
        self.documents.join("\n---\n")
    }

    /// The same in an order that depends on a name alone.
    pub(super) fn shuffled(&self, name: &str) -> String {
        let mut documents = self.documents.clone();
        let mut seed = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        for last in (1..documents.len()).rev() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            documents.swap(last, usize::try_from(seed >> 33).unwrap_or(0) % (last + 1));
        }
        if documents == self.documents {
            documents.reverse();
        }
        documents.join("\n---\n")
    }

    /// What is left when a step has taken its objects away.
    fn after(&self, step: CaseStep) -> Result<Stage, String> {
        let mut next = Stage { title: Some(step.title), run: step.run, documents: self.documents.clone() };
        for gone in &step.delete {
            let before = next.documents.len();
            next.documents.retain(|document| identity(document).as_ref() != Some(gone));
            if next.documents.len() == before {
                return Err(format!("a step deletes {gone}, which is not there"));
            }
        }
        Ok(next)
    }

    /// Adds a document; where things have begun to change, it replaces the one of the same name.
    fn add(&mut self, document: &str, replaces: bool) {
        let name = if replaces { identity(document) } else { None };
        let known = self.documents.iter_mut().find(|known| name.is_some() && identity(known) == name);
        match known {
            Some(known) => document.clone_into(known),
            None => self.documents.push(document.to_owned()),
        }
    }
}

/// Kind, namespace and name of a document, where it has them.
fn identity(document: &str) -> Option<String> {
    let value: Value = serde_saphyr::from_str(document).ok()?;
    let name = value["metadata"]["name"].as_str()?;
    let namespace = value["metadata"]["namespace"].as_str();
    Some([value["kind"].as_str(), namespace, Some(name)].into_iter().flatten().collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_loses_nothing() {
        let documents = ["# Rule.\na: 1", "b: 2", "c: 3", "d: 4\n"];
        let stage = &stages(&documents).unwrap()[0];
        let shuffled = stage.shuffled("some-case.yaml");
        assert_ne!(stage.text(), shuffled);
        let mut after: Vec<_> = shuffled.split("\n---\n").collect();
        after.sort_unstable();
        assert_eq!(after, documents);
    }

    #[test]
    fn steps_add_replace_and_delete() {
        let object =
            |name: &str, value: u8| format!("kind: A\nmetadata: {{namespace: ns, name: {name}}}\nspec: {value}");
        let (x, y, new_y, z) = (object("one", 1), object("two", 1), object("two", 2), object("three", 1));
        let step = "kind: Step\ntitle: later\ndelete: [A/ns/one]";
        let stages = stages(&[&x, &y, step, &new_y, &z]).unwrap();
        assert_eq!(stages[0].documents, [x, y]);
        assert_eq!(stages[1].documents, [new_y, z]);
        assert_eq!(stages[1].title.as_deref(), Some("later"));
    }

    #[test]
    fn a_step_deletes_only_what_is_there() {
        assert!(stages(&["kind: Step\ntitle: later\ndelete: [A/n/x]"]).is_err());
    }
}
