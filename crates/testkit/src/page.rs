//! The pages of `docs/diagnostics/`: each has an example that fires its reason and one that does not, and both are run.
//!
//! A block that is run is headed `yaml fires` or `yaml quiet`, with the command behind it where it is not `check`. A reason
//! that plain files cannot cause says so in a line that begins with [`NOT_FROM_FILES`] and needs no blocks.

use std::path::Path;

use gatepost_core::reason::Reason;
use libtest_mimic::Trial;
use serde_json::Value;

use crate::program::{Program, words};
use crate::tree;

/// How a page says that no example on plain files exists.
pub const NOT_FROM_FILES: &str = "Not from files: ";

/// An example of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Whether it must fire the reason.
    pub fires: bool,
    /// The command to run.
    pub command: String,
    /// The documents.
    pub documents: String,
}

/// The page of a reason.
pub fn text(reason: Reason) -> Result<String, String> {
    tree::text(&tree::root().join(format!("docs/diagnostics/{}.md", reason.name())))
}

/// The examples of a page, in order.
pub fn examples(page: &str) -> Vec<Example> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once("\n```yaml ") {
        let (head, body) = after.split_once('\n').unwrap_or((after, ""));
        let (documents, after) = body.split_once("\n```").unwrap_or((body, ""));
        let (word, command) = head.split_once(' ').unwrap_or((head, "check"));
        if matches!(word, "fires" | "quiet") {
            found.push(Example {
                fires: word == "fires",
                command: command.into(),
                documents: format!("{documents}\n"),
            });
        }
        rest = after;
    }
    found
}

/// Every example of every page, each as a test.
pub fn trials(program: &Program) -> Vec<Trial> {
    Reason::all().flat_map(|reason| page_trials(program, reason)).collect()
}

fn page_trials(program: &Program, reason: Reason) -> Vec<Trial> {
    let examples = examples(&text(reason).unwrap_or_default()).into_iter();
    let trial = |(index, example): (usize, Example)| {
        let program = program.clone();
        let word = if example.fires { "fires" } else { "quiet" };
        Trial::test(format!("{reason}::{word}_{index}"), move || Ok(judge(&program, reason, &example)?))
    };
    examples.enumerate().map(trial).collect()
}

/// Runs an example; the reason must be among what is said, or must not be.
pub fn judge(program: &Program, reason: Reason, example: &Example) -> Result<(), String> {
    let mut line = words(&example.command);
    line.extend(["-f", "-", "-o", "json"].map(str::to_owned));
    let answer = program.run_in(Path::new("."), &line, &example.documents)?;
    let said: Value = serde_json::from_str(&answer.output)
        .map_err(|error| format!("no JSON ({error}):\n{}{}", answer.output, answer.errors))?;
    if names(&said, reason.name()) == example.fires {
        return Ok(());
    }
    let wish = if example.fires { "does not fire" } else { "fires" };
    Err(format!("the example {wish} {reason}:\n{}", answer.output))
}

/// Whether any `reason` in the value has this name.
fn names(value: &Value, reason: &str) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| names(item, reason)),
        Value::Object(map) => {
            map.iter().any(|(key, value)| (key == "reason" && value == reason) || names(value, reason))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_found_by_their_heading() {
        let page = "# x\n\n```yaml fires\na: 1\n```\n\n```text\nno\n```\n\n```yaml quiet route http://a/\nb: 2\n```\n";
        let expected = [(true, "check", "a: 1\n"), (false, "route http://a/", "b: 2\n")]
            .map(|(fires, command, documents)| Example { fires, command: command.into(), documents: documents.into() });
        assert_eq!(examples(page), expected);
    }
}
