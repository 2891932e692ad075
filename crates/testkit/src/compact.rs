//! A short YAML form for expected outputs: what fits on a line stands on a line.

use serde_json::Value;

/// Lines are filled up to this many characters.
const WIDTH: usize = 120;

/// A value with its entries in the order in which they are to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompactNode {
    /// One word or sentence.
    Text(String),
    /// Items.
    List(Vec<CompactNode>),
    /// Named entries.
    Map(Vec<(String, CompactNode)>),
    /// A text with a remark behind it, which YAML takes for a comment and a test compares all the same.
    Noted(String, String),
    /// Lines as they are.
    Block(String),
}

impl CompactNode {
    /// A text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        CompactNode::Text(text.into())
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            CompactNode::Text(text) | CompactNode::Noted(text, _) | CompactNode::Block(text) => text.is_empty(),
            CompactNode::List(items) => items.is_empty(),
            CompactNode::Map(entries) => entries.is_empty(),
        }
    }

    /// Any JSON value, without its empty parts.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => CompactNode::text(""),
            Value::String(text) => CompactNode::text(text),
            Value::Array(items) => CompactNode::List(items.iter().map(CompactNode::of).collect()),
            Value::Object(map) => CompactNode::Map(
                map.iter()
                    .map(|(key, value)| (key.clone(), CompactNode::of(value)))
                    .filter(|e| !e.1.is_empty())
                    .collect(),
            ),
            other => CompactNode::text(other.to_string()),
        }
    }

    /// The value as lines of YAML.
    pub(crate) fn render(&self) -> String {
        let mut out = String::new();
        self.block(0, &mut out);
        out
    }

    fn block(&self, indent: usize, out: &mut String) {
        let margin = " ".repeat(indent);
        match self {
            CompactNode::Map(entries) => {
                for (key, value) in entries {
                    out.push_str(&format!("{margin}{}:", scalar(key)));
                    value.tail(indent, scalar(key).len() + 1, out);
                }
            }
            CompactNode::List(items) => {
                for item in items {
                    item.item(indent, out);
                }
            }
            CompactNode::Block(text) => {
                for line in text.lines() {
                    out.push_str(format!("{margin}{line}").trim_end());
                    out.push('\n');
                }
            }
            CompactNode::Text(_) | CompactNode::Noted(..) => out.push_str(&format!("{margin}{}\n", self.flow())),
        }
    }

    /// Whether it can stand on one line; behind a remark nothing can.
    fn is_inline(&self) -> bool {
        match self {
            CompactNode::Text(_) => true,
            CompactNode::Noted(..) | CompactNode::Block(_) => false,
            CompactNode::List(items) => items.iter().all(CompactNode::is_inline),
            CompactNode::Map(entries) => entries.iter().all(|(_, value)| value.is_inline()),
        }
    }

    /// Whether it stands on one line of this much room.
    fn fits(&self, room: usize) -> bool {
        match self {
            CompactNode::Text(_) | CompactNode::Noted(..) => true,
            _ => self.is_inline() && self.flow().len() <= room,
        }
    }

    /// An item of a list; where it does not fit behind its dash, its first line still stands there.
    fn item(&self, indent: usize, out: &mut String) {
        let margin = " ".repeat(indent);
        if self.fits(WIDTH.saturating_sub(indent + 2)) {
            out.push_str(&format!("{margin}- {}\n", self.flow()));
            return;
        }
        let mut below = String::new();
        self.block(indent + 2, &mut below);
        out.push_str(&format!("{margin}- {}", below.trim_start()));
    }

    /// The value behind a key: on the same line if it fits there, else below.
    fn tail(&self, indent: usize, used: usize, out: &mut String) {
        let room = if indent > 0 { WIDTH.saturating_sub(indent + used + 1) } else { 0 };
        if self.is_empty() || self.fits(room) {
            out.push_str(&format!(" {}\n", self.flow()));
        } else if let CompactNode::Block(_) = self {
            out.push_str(" |\n");
            self.block(indent + 2, out);
        } else {
            out.push('\n');
            self.block(indent + 2, out);
        }
    }

    fn flow(&self) -> String {
        match self {
            CompactNode::Text(text) | CompactNode::Block(text) => scalar(text),
            CompactNode::Noted(text, note) if note.is_empty() => scalar(text),
            CompactNode::Noted(text, note) => format!("{}  # {note}", scalar(text)),
            CompactNode::List(items) => {
                format!("[{}]", items.iter().map(CompactNode::flow).collect::<Vec<_>>().join(", "))
            }
            CompactNode::Map(entries) => {
                let entry = |(key, value): &(String, CompactNode)| format!("{}: {}", scalar(key), value.flow());
                format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// A text as YAML reads it back, quoted only where it must be.
fn scalar(text: &str) -> String {
    let odd_start = !text.starts_with(|c: char| c.is_alphanumeric() || "/._(".contains(c));
    let odd_inside =
        text.contains(": ") || text.contains(" #") || text.contains([',', '{', '}', '"', '\n', '\t', '\\']);
    if odd_start || odd_inside || text.ends_with([':', ' ']) {
        Value::String(text.to_owned()).to_string()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn empty_parts_are_left_out_and_short_parts_share_a_line() {
        let node = CompactNode::of(&json!({"a": {"b": [1, 2], "c": [], "d": null}, "e": "*.x: y"}));
        assert_eq!(node.render(), "a:\n  b: [1, 2]\ne: \"*.x: y\"\n");
    }

    #[test]
    fn remarks_end_a_line_and_blocks_keep_theirs() {
        let noted = CompactNode::Noted("*.a A 192.0.2.1".into(), "because".into());
        let node = CompactNode::Map(vec![
            ("a".into(), CompactNode::Map(vec![("b".into(), CompactNode::List(vec![noted]))])),
            ("c".into(), CompactNode::Block("x: y\n\n| z |\n".into())),
        ]);
        let expected = "a:\n  b:\n    - \"*.a A 192.0.2.1\"  # because\nc: |\n  x: y\n\n  | z |\n";
        assert_eq!(node.render(), expected);
    }

    #[test]
    fn what_does_not_fit_goes_below() {
        let long = "x".repeat(70);
        let node = CompactNode::of(&json!({"a": {"b": [long, long]}}));
        assert_eq!(node.render(), format!("a:\n  b:\n    - {long}\n    - {long}\n"));
    }
}
