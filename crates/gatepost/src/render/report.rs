//! The page and its data in one file, which shows the same from a disk, and lets nothing else run or load.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::web::built_file;

/// The document of a report; nothing where the page is not part of the program.
pub fn document(title: &str, answers: &Value) -> Option<String> {
    let (script, style) = (built_file("page.js")?.trim(), built_file("page.css")?.trim());
    // A script must not end its own element; the built page has no such text.
    if script.contains("</script") || script.contains("<!--") || style.contains("</style") {
        return None;
    }
    let title = escaped(title);
    // A `<` in the data could end the element or begin a comment.
    let data = answers.to_string().replace('<', "\\u003c");
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        hash(script),
        hash(style)
    );
    Some(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n\
         <div id=\"page\"><noscript>This report needs JavaScript.</noscript></div>\n\
         <script type=\"application/json\" id=\"report-data\">{data}</script>\n\
         <script type=\"module\">{script}</script>\n</body>\n</html>\n"
    ))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// A source expression of a Content-Security-Policy.
fn hash(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    format!("sha256-{}", STANDARD.encode(digest.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_leave_its_element_and_nothing_unsafe_is_allowed() {
        let text = document("a < b", &serde_json::json!({"x": "</script><script>alert(1)</script><!--"})).unwrap();
        assert_eq!(text.matches("</script").count(), 2);
        assert_eq!(text.matches("<script").count(), 2);
        let policy = text.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'sha256-") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert!(text.contains("<title>a &lt; b</title>"));
    }
}
