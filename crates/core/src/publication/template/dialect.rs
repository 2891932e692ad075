//! Rewrites Go syntax that the template engine parses differently: string escapes, raw strings, characters, `else
//! with`.
//!
//! Only text between `{{` and `}}` is changed. Strings keep the few escapes that the engine supports, characters become
//! numbers. Everything else is unchanged, so that the engine reports errors in it.

/// Rewrites a template for the engine.
pub(super) fn rewrite(template: &str) -> Result<String, String> {
    let mut writer = Writer { out: String::with_capacity(template.len() + 16), open: Vec::new() };
    let mut rest = template;
    while let Some((before, action)) = rest.split_once("{{") {
        writer.out.push_str(before);
        let Some((body, after)) = body(action)? else {
            writer.out.push_str("{{");
            rest = action;
            break;
        };
        writer.action(&body);
        rest = after;
    }
    writer.out.push_str(rest);
    Ok(writer.out)
}

struct Writer {
    out: String,
    /// For each open block, the number of additional `end`s to write.
    open: Vec<usize>,
}

impl Writer {
    fn action(&mut self, body: &str) {
        let (left, inner, right) = trim_marks(body);
        let mut words = inner.split_whitespace();
        match (words.next(), words.next()) {
            (Some("else"), Some("with")) if !self.open.is_empty() => self.else_with(left, inner, right),
            (Some("if" | "range" | "with" | "block" | "define"), _) => {
                self.open.push(0);
                self.plain(body);
            }
            (Some("end"), None) => self.end(left, body, right),
            _ => self.plain(body),
        }
    }

    fn plain(&mut self, body: &str) {
        self.out.extend(["{{", body, "}}"]);
    }

    fn else_with(&mut self, left: &str, inner: &str, right: &str) {
        let with = inner.trim_start().strip_prefix("else").unwrap_or(inner).trim_start();
        self.out.extend(["{{", left, "else}}{{", with, right, "}}"]);
        if let Some(ends) = self.open.last_mut() {
            *ends += 1;
        }
    }

    fn end(&mut self, left: &str, body: &str, right: &str) {
        match self.open.pop() {
            None | Some(0) => self.plain(body),
            Some(more) => {
                self.out.extend(["{{", left, "end}}"]);
                self.out.push_str(&"{{end}}".repeat(more - 1));
                self.out.extend(["{{end", right, "}}"]);
            }
        }
    }
}

/// The trim markers at both ends of an action, and the text between them.
fn trim_marks(body: &str) -> (&'static str, &str, &'static str) {
    let is_blank = |c: char| c.is_ascii_whitespace();
    let inner = body.strip_prefix('-').filter(|rest| rest.starts_with(is_blank));
    let (left, inner) = inner.map_or(("", body), |inner| ("- ", inner));
    let outer = inner.strip_suffix('-').filter(|rest| rest.ends_with(is_blank));
    let (inner, right) = outer.map_or((inner, ""), |outer| (outer, " -"));
    (left, inner, right)
}

/// The body of an action with its literals rewritten, and the text after its `}}`. `None` if it is not closed.
fn body(action: &str) -> Result<Option<(String, &str)>, String> {
    if let Some(comment) = comment(action) {
        return Ok(Some(comment));
    }
    let mut body = String::new();
    let mut rest = action;
    while let Some(at) = rest.find(['"', '`', '\'', '}']) {
        body.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("}}") {
            return Ok(Some((body, after)));
        }
        let Some((literal, after)) = literal(rest)? else { return Ok(None) };
        body.push_str(&literal);
        rest = after;
    }
    Ok(None)
}

/// A comment, which is kept unchanged.
fn comment(action: &str) -> Option<(String, &str)> {
    let inner = action.strip_prefix('-').map_or(action, str::trim_start);
    let end = inner.strip_prefix("/*")?.find("*/")? + "/**/".len();
    let (close, after) = inner[end..].split_once("}}")?;
    let length = action.len() - inner.len() + end + close.len();
    Some((action[..length].to_owned(), after))
}

/// A literal at the start of a text, rewritten, and the text after it; `None` if it is not closed.
fn literal(text: &str) -> Result<Option<(String, &str)>, String> {
    match text.as_bytes().first() {
        Some(b'`') => {
            let Some((raw, after)) = text[1..].split_once('`') else { return Ok(None) };
            Ok(Some((quoted(raw)?, after)))
        }
        Some(b'"') => {
            let Some((inner, after)) = closed(&text[1..], '"') else { return Ok(None) };
            Ok(Some((quoted(&decoded(inner, '"')?)?, after)))
        }
        Some(b'\'') => {
            let Some((inner, after)) = closed(&text[1..], '\'') else { return Ok(None) };
            Ok(Some((character(inner)?, after)))
        }
        _ => Ok(Some(("}".to_owned(), &text[1..]))),
    }
}

/// The text before a closing quote on the same line, and the text after it.
fn closed(text: &str, quote: char) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

/// A character literal as a number.
fn character(inner: &str) -> Result<String, String> {
    let decoded = decoded(inner, '\'')?;
    let mut chars = decoded.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(u32::from(c).to_string()),
        _ => Err(format!("`'{inner}'` is not one character")),
    }
}

/// A string literal for the engine. The engine treats a quote after two backslashes as escaped, and processes escapes
/// between back quotes.
fn quoted(text: &str) -> Result<String, String> {
    let escaped = text.replace('\\', r"\\").replace('\n', r"\n").replace('\r', r"\r");
    if !text.ends_with('\\') {
        return Ok(format!("\"{}\"", escaped.replace('"', r#"\""#)));
    }
    if text.contains('`') {
        return Err(format!("a text with a back quote cannot end with a backslash: {text:?}"));
    }
    Ok(format!("`{escaped}`"))
}

/// Decodes a string with Go escapes.
fn decoded(inner: &str, quote: char) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((before, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let bad = || format!("`\\{}` is not an escape", escape.chars().take(4).collect::<String>());
        let length = escape_into(&mut bytes, escape, quote).ok_or_else(bad)?;
        rest = &escape[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).map_err(|_| format!("`{inner}` is not UTF-8"))
}

/// Decodes one escape without its backslash; returns its length.
fn escape_into(bytes: &mut Vec<u8>, escape: &str, quote: char) -> Option<usize> {
    let first = escape.chars().next()?;
    let simple = match first {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        '"' | '\'' if first == quote => first as u8,
        _ => return numeric_into(bytes, escape, first),
    };
    bytes.push(simple);
    Some(1)
}

fn numeric_into(bytes: &mut Vec<u8>, escape: &str, first: char) -> Option<usize> {
    let (start, end, radix) = match first {
        'x' => (1, 3, 16),
        'u' => (1, 5, 16),
        'U' => (1, 9, 16),
        '0'..='7' => (0, 3, 8),
        _ => return None,
    };
    let digits = escape.get(start..end).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let number = u32::from_str_radix(digits, radix).ok()?;
    if matches!(first, 'u' | 'U') {
        let mut buffer = [0; 4];
        bytes.extend_from_slice(char::from_u32(number)?.encode_utf8(&mut buffer).as_bytes());
    } else {
        bytes.push(u8::try_from(number).ok()?);
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_come_out_plain() {
        let table = [
            ("no action \"\\x\"", "no action \"\\x\""),
            ("{{.Name}}.test", "{{.Name}}.test"),
            (r#"{{"a\x41\u00e9\101\U0001F600"}}"#, "{{\"aAéA😀\"}}"),
            (r#"{{"\"\\\n"}}"#, r#"{{"\"\\\n"}}"#),
            (r#"{{"a\\"}}{{`\`}}"#, r"{{`a\\`}}{{`\\`}}"),
            (r"{{`a\.b`}}", r#"{{"a\\.b"}}"#),
            ("{{`a\nb`}}", r#"{{"a\nb"}}"#),
            ("{{'a'}}{{'\\n'}}{{'\\''}}", "{{97}}{{10}}{{39}}"),
            ("{{\"}}\"}}x", "{{\"}}\"}}x"),
            ("{{/* \"\\x */}}y", "{{/* \"\\x */}}y"),
            ("{{- /* a */ -}} z", "{{- /* a */ -}} z"),
            ("{{\"open", "{{\"open"),
            ("{{.Name}", "{{.Name}"),
            ("a{{b}c}}", "a{{b}c}}"),
        ];
        for (template, expected) in table {
            assert_eq!(rewrite(template).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn bad_escapes_are_refused() {
        for template in [
            r#"{{"\x"}}"#,
            r#"{{"\u00"}}"#,
            r#"{{"\xé"}}"#,
            r#"{{"\q"}}"#,
            r#"{{"\'"}}"#,
            r#"{{"\xff"}}"#,
            "{{'ab'}}",
            "{{''}}",
            r#"{{"\400"}}"#,
            r#"{{"\x+1"}}"#,
        ] {
            assert!(rewrite(template).is_err(), "{template}");
        }
    }

    #[test]
    fn else_with_becomes_a_block_of_its_own() {
        let table = [
            ("{{with .A}}a{{else with .B}}b{{end}}", "{{with .A}}a{{else}}{{with .B}}b{{end}}{{end}}"),
            (
                "{{with .A}}{{else with .B}}{{else with .C}}{{else}}d{{end}}x",
                "{{with .A}}{{else}}{{with .B}}{{else}}{{with .C}}{{else}}d{{end}}{{end}}{{end}}x",
            ),
            ("{{with .A}} {{- else with .B -}} {{- end -}}", "{{with .A}} {{- else}}{{with .B  -}} {{- end}}{{end -}}"),
            (
                "{{with .A}}{{if .X}}{{end}}{{else with .B}}{{end}}",
                "{{with .A}}{{if .X}}{{end}}{{else}}{{with .B}}{{end}}{{end}}",
            ),
            ("{{if .A}}{{else if .B}}{{end}}", "{{if .A}}{{else if .B}}{{end}}"),
            ("{{else with .B}}{{end}}", "{{else with .B}}{{end}}"),
        ];
        for (template, expected) in table {
            assert_eq!(rewrite(template).as_deref(), Ok(expected), "{template}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_template_is_too_odd(template in "([{}\"'`\\\\\\-xu0-9aé/*\\n ]|\\{\\{|\\}\\}|end|else with ){0,30}") {
            let _ = rewrite(&template);
        }
    }
}
