//! Signatures of AWS, version 4, over the few parts that our requests have.
//!
//! The time is a parameter. Nothing here sends, and no key is shown.

use jiff::Timestamp;
use ring::{digest, hmac};

use super::credentials::Credentials;

/// The algorithm, as it is named in every signature.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// For whom a signature is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SigningScope {
    /// The region whose signatures the endpoint takes.
    pub(super) region: String,
    /// `route53`, `sts`.
    pub(super) service: &'static str,
}

/// The parts of a request that are signed.
pub(super) struct SignedParts<'a> {
    pub(super) method: &'a str,
    pub(super) host: &'a str,
    pub(super) path: &'a str,
    /// Keys and values, which are not escaped yet.
    pub(super) query: &'a [(&'a str, &'a str)],
    pub(super) body: &'a [u8],
}

/// The headers that carry a signature, beside `host`.
pub(super) fn headers(
    parts: &SignedParts<'_>,
    scope: &SigningScope,
    credentials: &Credentials,
    now: Timestamp,
) -> Vec<(&'static str, String)> {
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let day = &time[..8];
    let token = credentials.token.as_ref().map(|token| token.reveal());
    let mut signed = vec![("host", parts.host), ("x-amz-date", &time)];
    signed.extend(token.map(|token| ("x-amz-security-token", token)));
    let lines: String = signed.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let request = format!(
        "{}\n{}\n{}\n{lines}\n{names}\n{}",
        parts.method,
        parts.path,
        query_text(parts.query),
        hex(digest::digest(&digest::SHA256, parts.body).as_ref())
    );
    let place = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
    let digest = hex(digest::digest(&digest::SHA256, request.as_bytes()).as_ref());
    let text = format!("{ALGORITHM}\n{time}\n{place}\n{digest}");
    let first = format!("AWS4{}", credentials.secret.reveal());
    let key = [day, &scope.region, scope.service, "aws4_request"]
        .iter()
        .fold(first.into_bytes(), |key, part| mac(&key, part.as_bytes()));
    let signature = hex(&mac(&key, text.as_bytes()));
    let authorization =
        format!("{ALGORITHM} Credential={}/{place}, SignedHeaders={names}, Signature={signature}", credentials.key_id);
    let mut headers = vec![("x-amz-date", time.clone()), ("authorization", authorization)];
    headers.extend(token.map(|token| ("x-amz-security-token", token.to_owned())));
    headers
}

/// A query as it is sent and signed: sorted, escaped.
pub(super) fn query_text(query: &[(&str, &str)]) -> String {
    let mut parts: Vec<String> =
        query.iter().map(|(key, value)| format!("{}={}", escaped(key), escaped(value))).collect();
    parts.sort();
    parts.join("&")
}

/// A text with everything escaped that has a meaning somewhere in an address.
pub(super) fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::settings::SecretText;

    /// The example `get-vanilla-query-order-key-case` of the suite that AWS publishes.
    #[test]
    fn the_signature_of_a_published_example() {
        let credentials = Credentials {
            key_id: "AKIDEXAMPLE".to_owned(),
            secret: SecretText::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            token: None,
            expires: None,
        };
        let parts = SignedParts {
            method: "GET",
            host: "example.amazonaws.com",
            path: "/",
            query: &[("Param2", "value2"), ("Param1", "value1")],
            body: b"",
        };
        let scope = SigningScope { region: "us-east-1".to_owned(), service: "service" };
        let now: Timestamp = "2015-08-30T12:36:00Z".parse().unwrap();
        let headers = headers(&parts, &scope, &credentials, now);
        assert_eq!(headers[0], ("x-amz-date", "20150830T123600Z".to_owned()));
        assert_eq!(
            headers[1].1,
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, \
             Signature=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
        );
    }

    #[test]
    fn what_a_name_in_a_query_looks_like() {
        assert_eq!(query_text(&[("type", "A"), ("name", "\\052.example.com.")]), "name=%5C052.example.com.&type=A");
        assert_eq!(escaped("a b/ü~"), "a%20b%2F%C3%BC~");
    }
}
