//! Documents of the project: their links lead somewhere, each page is in the index, and console blocks are run or say why not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gatepost_testkit::transcript::{self, FILE, NEEDS, NOT_RUN};
use gatepost_testkit::{markdown, tree};

/// Every Markdown file of the repository, as a path from its root, with its text.
fn pages() -> BTreeMap<String, String> {
    let pages = tree::ours().into_iter().filter(|name| name.ends_with(".md"));
    pages.filter_map(|name| Some((name.clone(), tree::text(&tree::root().join(name)).ok()?))).collect()
}

/// Where a link of a page leads, as a path from the root: `a/../b` is `b`.
fn place(page: &str, target: &str) -> String {
    let mut parts: Vec<String> = Path::new(page)
        .parent()
        .map_or_else(Vec::new, |folder| folder.iter().map(|part| part.to_string_lossy().into_owned()).collect());
    for part in target.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part.to_owned()),
        }
    }
    parts.iter().collect::<PathBuf>().to_string_lossy().into_owned()
}

/// The links of a page that stay inside the repository: line, file, anchor.
fn inside(page: &str, text: &str) -> Vec<(usize, String, Option<String>)> {
    let links = markdown::links(text).into_iter();
    let links = links.filter(|(_, target)| !target.contains("://") && !target.starts_with("mailto:"));
    let split = |(line, target): (usize, String)| {
        let (file, anchor) = match target.split_once('#') {
            Some((file, anchor)) => (file.to_owned(), Some(anchor.to_owned())),
            None => (target, None),
        };
        let file = if file.is_empty() { page.to_owned() } else { place(page, &file) };
        (line, file, anchor)
    };
    links.map(split).collect()
}

#[test]
fn links_and_anchors_lead_somewhere() {
    let pages = pages();
    let mut broken = Vec::new();
    for (page, text) in &pages {
        for (line, file, anchor) in inside(page, text) {
            let exists = tree::root().join(&file).exists();
            let has_anchor = anchor
                .as_ref()
                .is_none_or(|anchor| pages.get(&file).is_some_and(|text| markdown::anchors(text).contains(anchor)));
            if !exists || !has_anchor {
                broken.push(format!("{page}:{line}: {file}{}", anchor.map(|a| format!("#{a}")).unwrap_or_default()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_index() {
    let pages = pages();
    let index = "docs/README.md";
    let linked: BTreeSet<String> = inside(index, &pages[index]).into_iter().map(|(_, file, _)| file).collect();
    let wanted = pages.keys().filter(|page| page.starts_with("docs/") && *page != index);
    // The folder stands for the pages of the reasons.
    let wanted = wanted.filter(|page| !page.starts_with("docs/diagnostics/"));
    let missing: Vec<&String> = wanted.filter(|page| !linked.contains(*page)).collect();
    assert!(missing.is_empty() && linked.contains("docs/diagnostics"), "{index} does not name {missing:?}");
    let examples = "examples/README.md";
    let linked: BTreeSet<String> = inside(examples, &pages[examples]).into_iter().map(|(_, file, _)| file).collect();
    for folder in tree::entries(&tree::root().join("examples")).into_iter().filter(|path| path.is_dir()) {
        let folder = tree::below(&tree::root(), &folder);
        assert!(linked.contains(&folder), "{examples} does not name {folder}");
        assert!(pages.contains_key(&format!("{folder}/README.md")), "{folder} has no README.md");
    }
}

#[test]
fn the_readme_is_short() {
    let lines = pages()["README.md"].lines().count();
    assert!(lines <= 120, "README.md has {lines} lines, at most 120 are allowed");
}

#[test]
fn console_blocks_are_run_or_say_why_not() {
    let (mut run, mut excused) = (0, 0);
    for (page, text) in pages() {
        for block in markdown::blocks(&text).into_iter().filter(|block| block.language == "console") {
            let known = ["", NOT_RUN, NEEDS].iter().any(|word| match *word {
                "" => block.info.is_empty(),
                word => block.info.strip_prefix(word).is_some_and(|rest| !rest.trim().is_empty()),
            });
            let line = block.line + 1;
            assert!(known, "{page}:{line}: `{}` is neither `{NOT_RUN}REASON` nor `{NEEDS}PROGRAM…`", block.info);
            if transcript::is_run(&block) { run += 1 } else { excused += 1 }
        }
    }
    assert!(run >= 20, "only {run} console blocks are run, {excused} are not");
}

#[test]
fn files_of_pages_stay_in_their_folder() {
    for (page, text) in pages() {
        for path in markdown::blocks(&text).iter().filter_map(|block| block.info.strip_prefix(FILE)) {
            assert!(!path.starts_with('/') && !path.contains(".."), "{page} writes {path}");
        }
    }
}

/// Flags of other programs that pages speak of, and `--version`, which no help of a command lists.
const OTHER_FLAGS: [&str; 3] = ["enable-certificate-owner-ref", "from-file", "version"];

/// The words that begin with `--` in a piece of code.
fn flags(code: &str) -> Vec<String> {
    let is_part = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-';
    let words = code.split([' ', '\n', '[', '(']).filter_map(|word| word.strip_prefix("--"));
    words.map(|word| word.chars().take_while(is_part).collect::<String>()).filter(|flag| !flag.is_empty()).collect()
}

/// What a page says about our flags: inline code and commands. In tables about moving, the first column is about others.
fn our_code(page: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (_, line) in markdown::prose(text) {
        let is_of_others = page.starts_with("docs/moving/") && line.starts_with('|');
        let line = if is_of_others { line.splitn(3, '|').last().unwrap_or_default() } else { line };
        found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    for block in markdown::blocks(text) {
        let commands = block.text.replace("\\\n", " ");
        let lines = commands.lines().map(|line| line.trim_start_matches("$ "));
        found.extend(
            lines
                .filter(|line| line.starts_with("gatepost ") || line.starts_with("kubectl gatepost "))
                .map(str::to_owned),
        );
    }
    found
}

#[test]
fn flags_in_pages_are_flags_of_the_program() {
    let pages = pages();
    let reference = &pages["docs/reference/commands.md"];
    let known: BTreeSet<String> = reference.lines().flat_map(|line| flags(line.trim())).collect();
    assert!(known.contains("txt-owner-id") && known.len() > 100, "{known:?}");
    let ours = pages.iter().filter(|(page, _)| {
        ["README.md", "SECURITY.md"].contains(&page.as_str())
            || page.starts_with("docs/")
            || page.starts_with("examples/")
    });
    let mut unknown = Vec::new();
    for (page, text) in ours {
        let all = our_code(page, text).into_iter().flat_map(|code| flags(&code));
        let wrong = all.filter(|flag| !known.contains(flag) && !OTHER_FLAGS.contains(&flag.as_str()));
        unknown.extend(wrong.map(|flag| format!("{page}: --{flag}")));
    }
    assert!(unknown.is_empty(), "flags that the program does not have:\n{}", unknown.join("\n"));
}
