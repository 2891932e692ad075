//! The page: built files that are part of the program, and the headers that keep anything else out of it.

use hyper::header::HeaderValue;
use hyper::{HeaderMap, Response, StatusCode};
use include_dir::{Dir, include_dir};

use super::{Body, text};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../page/dist");

/// Only files of this server are loaded, scripts in the document never run, and no other page may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The text of a built file of the page.
pub fn built_file(name: &str) -> Option<&'static str> {
    FILES.get_file(name)?.contents_utf8()
}

/// A file of the page; nothing where there is none at this path.
pub(super) fn answer(path: &str) -> Option<Response<Body>> {
    let name = if path == "/" { "index.html" } else { path.trim_start_matches('/') };
    let kind = match name.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        _ => return None,
    };
    let mut response = text(StatusCode::OK, FILES.get_file(name)?.contents(), kind);
    protect(response.headers_mut());
    Some(response)
}

fn protect(headers: &mut HeaderMap) {
    headers.insert("content-security-policy", HeaderValue::from_static(POLICY));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_file_is_served_under_a_strict_policy() {
        for path in ["/", "/index.html", "/page.js", "/page.css", "/icon.svg", "/preact.txt"] {
            let answer = answer(path).unwrap();
            let policy = answer.headers()["content-security-policy"].to_str().unwrap();
            assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe-"), "{path}");
        }
        for path in ["/nothing.js", "/../Cargo.toml", "/favicon.ico", "/metrics.html/"] {
            assert!(answer(path).is_none(), "{path}");
        }
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere_and_little_in_all() {
        let mut compressed = 0;
        for file in FILES.files() {
            let text = file.contents_utf8().unwrap();
            let is_html = file.path().extension().is_some_and(|extension| extension == "html");
            assert!(!is_html || (!text.contains("http") && !text.contains("<style")), "{}", file.path().display());
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            std::io::Write::write_all(&mut encoder, file.contents()).unwrap();
            compressed += encoder.finish().unwrap().len();
        }
        assert!(compressed < 150 * 1024, "{compressed} bytes");
    }
}
