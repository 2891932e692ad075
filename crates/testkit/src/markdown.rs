//! Markdown as documents of this project use it: fenced blocks, headings with their anchors, and links.
//!
//! Only the shapes that occur are known; a page that needs another shape is written in one of these.

use std::collections::BTreeMap;

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The line of its opening fence, from 0.
    pub line: usize,
    /// How far it is indented, such as within a list.
    pub indent: usize,
    /// The first word behind the fence.
    pub language: String,
    /// What stands behind that word.
    pub info: String,
    /// Its text without the fences and the indentation.
    pub text: String,
}

/// The fenced blocks of a page, in order; one that is not closed ends with the page.
pub fn blocks(page: &str) -> Vec<Block> {
    split(page).1
}

/// The lines of a page that stand in no fenced block, with their numbers from 0.
pub fn prose(page: &str) -> Vec<(usize, &str)> {
    split(page).0
}

fn split(page: &str) -> (Vec<(usize, &str)>, Vec<Block>) {
    let (mut prose, mut blocks) = (Vec::new(), Vec::<Block>::new());
    let mut fence = 0;
    for (line, text) in page.lines().enumerate() {
        let bare = text.trim_start();
        let ticks = bare.chars().take_while(|c| *c == '`').count();
        match blocks.last_mut().filter(|_| fence > 0) {
            Some(_) if ticks >= fence && bare.trim_end().len() == ticks => fence = 0,
            Some(block) => {
                let spaces = text.chars().take_while(|c| *c == ' ').count();
                block.text += &text[spaces.min(block.indent)..];
                block.text.push('\n');
            }
            None if ticks >= 3 => {
                fence = ticks;
                let head = bare[ticks..].trim();
                let (language, info) = head.split_once(' ').unwrap_or((head, ""));
                let indent = text.len() - bare.len();
                blocks.push(Block { line, indent, language: language.into(), info: info.into(), text: String::new() });
            }
            None => prose.push((line, text)),
        }
    }
    (prose, blocks)
}

/// The anchors of a page's headings, as GitHub makes them: the second heading of one name gets `-1`.
pub fn anchors(page: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let heading = |line: &str| line.trim_start_matches('#').strip_prefix(' ').map(str::to_owned);
    let lines = prose(page).into_iter().filter(|(_, line)| line.starts_with('#'));
    let slugs = lines.filter_map(|(_, line)| heading(line)).map(|title| slug(&title));
    let mut numbered = |slug: String| {
        let count = seen.entry(slug.clone()).or_default();
        *count += 1;
        if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
    };
    slugs.map(&mut numbered).collect()
}

fn slug(title: &str) -> String {
    let title = unlinked(title);
    let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

/// A title with the text of its links in place of the links.
fn unlinked(title: &str) -> String {
    let mut parts = title.split("](");
    let mut text = parts.next().unwrap_or_default().replace('[', "");
    for part in parts {
        text += &part.split_once(')').unwrap_or((part, "")).1.replace('[', "");
    }
    text
}

/// The targets of a page's links and pictures, outside of code, with the number of their line from 1.
pub fn links(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in prose(page) {
        let text = without_code(text);
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        found.extend(targets.map(|target| (line + 1, target.to_owned())));
    }
    found
}

/// A line without its inline code.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_parted_from_prose() {
        let page = "a\n```yaml file x.yaml\nb: 1\n```\n1. c\n\n   ```console\n   $ d\n     e\n   ```\nf\n";
        let found = blocks(page);
        assert_eq!(found.len(), 2);
        let yaml = (&*found[0].language, &*found[0].info, &*found[0].text, found[0].line);
        assert_eq!(yaml, ("yaml", "file x.yaml", "b: 1\n", 1));
        assert_eq!((&*found[1].text, found[1].indent), ("$ d\n  e\n", 3));
        assert_eq!(prose(page), [(0, "a"), (4, "1. c"), (5, ""), (10, "f")]);
    }

    #[test]
    fn anchors_are_those_of_github() {
        let page = "# To change … open …\n## `a-b` and [C](d.md)\n## x\n```\n# no\n```\n## x\n#no\n";
        assert_eq!(anchors(page), ["to-change--open-", "a-b-and-c", "x", "x-1"]);
    }

    #[test]
    fn links_in_code_are_none() {
        let page = "[a](b.md#c) and `[d](e)` ![f](g.svg \"title\")\n```\n[h](i)\n```\n[`j`](k)\n";
        let expected = [(1, "b.md#c"), (1, "g.svg"), (5, "k")].map(|(line, target)| (line, target.to_owned()));
        assert_eq!(links(page), expected);
    }
}
