//! The shapes that texts of the Gateway API have: what the patterns and lengths of its schema accept.
//!
//! Each shape tells in one clause what is wrong with a text. Everything here is linear in the text.

/// What a text should look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The name of an object that is referred to: 1 to 253 characters.
    ObjectName,
    /// A DNS subdomain: labels of lower-case letters, digits and `-`, joined by dots.
    Subdomain,
    /// A DNS label, as namespaces are.
    Label,
    /// A kind: letters, digits and `-`.
    Kind,
    /// An API group: empty or a DNS subdomain.
    Group,
    /// A controller: `domain/path`.
    DomainPath,
    /// A protocol: one word or `domain/word`.
    Protocol,
    /// The name of a header or query parameter.
    HeaderName,
    /// The value of a header: printable, with single spaces.
    HeaderValue,
    /// A text of 1 to so many characters.
    Text(usize),
    /// A text of at most so many characters.
    Short(usize),
    /// A duration: `1h30m`.
    Duration,
    /// A path of RFC 3986 characters.
    UrlPath,
    /// An origin: `https://*.example.com:8443`, or `*`.
    Origin,
    /// A fully qualified gRPC service.
    GrpcService,
    /// A gRPC method.
    GrpcMethod,
}

impl Shape {
    /// What is wrong with a text, if anything.
    pub(crate) fn complaint(self, text: &str) -> Option<String> {
        let (longest, holds) = self.demands(text);
        let length = text.chars().count();
        if length == 0 && self.may_be_empty() {
            return None;
        }
        if length == 0 {
            return Some("it must not be empty".to_owned());
        }
        if length > longest {
            return Some(format!("it has {length} characters, at most {longest} are allowed"));
        }
        (!holds).then(|| self.description().to_owned())
    }

    fn may_be_empty(self) -> bool {
        matches!(self, Shape::Group | Shape::Short(_) | Shape::GrpcService | Shape::GrpcMethod)
    }

    fn demands(self, text: &str) -> (usize, bool) {
        match self {
            Shape::ObjectName => (253, true),
            Shape::Subdomain | Shape::Group => (253, is_subdomain(text)),
            Shape::Label => (63, is_label(text)),
            Shape::Kind => (63, is_kind(text)),
            Shape::DomainPath => (253, is_domain_path(text)),
            Shape::Protocol => (255, is_protocol(text)),
            Shape::HeaderName => (256, text.bytes().all(is_token)),
            Shape::HeaderValue => (4096, is_header_value(text)),
            Shape::Text(longest) | Shape::Short(longest) => (longest, true),
            Shape::Duration => (32, is_duration(text)),
            Shape::UrlPath => (1024, is_url_path(text)),
            Shape::Origin => (253, is_origin(text)),
            Shape::GrpcService => (1024, text.strip_prefix('.').unwrap_or(text).split('.').all(is_identifier)),
            Shape::GrpcMethod => (1024, is_identifier(text)),
        }
    }

    fn description(self) -> &'static str {
        match self {
            Shape::Subdomain => "labels of lower-case letters, digits and `-`, joined by dots, are expected",
            Shape::Label => {
                "lower-case letters, digits and `-` are expected, beginning and ending with a letter or digit"
            }
            Shape::Kind => "a kind has letters, digits and `-`, and begins with a letter",
            Shape::Group => "an API group is empty or a DNS name such as `gateway.networking.k8s.io`",
            Shape::DomainPath => "a domain, a `/` and a path are expected, such as `example.com/gateway-controller`",
            Shape::Protocol => "one word such as `HTTPS`, or `domain/word`, is expected",
            Shape::HeaderName => "letters, digits and the characters !#$%&'*+-.^_`|~ are expected",
            Shape::HeaderValue => "printable ASCII with single spaces inside is expected",
            Shape::Duration => "a duration such as `500ms`, `10s` or `1h30m` is expected",
            Shape::UrlPath => "only characters of a URL path are allowed; write others as %XX",
            Shape::Origin => "an origin such as `https://www.example.com`, `https://*.example.com` or `*` is expected",
            Shape::GrpcService => "a service such as `shop.v1.Cart` is expected",
            Shape::GrpcMethod => "a method such as `AddItem` is expected",
            Shape::ObjectName | Shape::Text(_) | Shape::Short(_) => "it is too long",
        }
    }
}

/// Whether a text is one DNS label of lower-case letters, digits and `-`.
pub(crate) fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Whether a text is a DNS subdomain.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// Whether a text is a key of a label or annotation: an optional DNS prefix and a name of at most 63 characters.
pub(crate) fn is_qualified_name(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(|p| is_subdomain(p) && p.len() < 253)
        && name.len() <= 63
        && !name.is_empty()
        && is_label_value(name)
}

/// Whether a text can be the value of a label, apart from its length.
pub(crate) fn is_label_value(text: &str) -> bool {
    let ends = |b: Option<u8>| b.is_none_or(|b| b.is_ascii_alphanumeric());
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    text.bytes().all(inner) && ends(text.bytes().next()) && ends(text.bytes().last())
}

/// Whether every character may stand in a URL path as it is.
pub(crate) fn is_url_path(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        let escaped =
            b == b'%' && [bytes.next(), bytes.next()].iter().all(|h| h.is_some_and(|h| h.is_ascii_hexdigit()));
        let plain = b.is_ascii_alphanumeric() || b"-/._~!$&'()*+,;=:@".contains(&b);
        if !escaped && !plain {
            return false;
        }
    }
    true
}

fn is_kind(text: &str) -> bool {
    let inner = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    inner && text.starts_with(|c: char| c.is_ascii_alphabetic()) && !text.ends_with('-')
}

fn is_domain_path(text: &str) -> bool {
    let path =
        |p: &str| !p.is_empty() && p.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b));
    text.split_once('/').is_some_and(|(domain, rest)| is_subdomain(domain) && path(rest))
}

fn is_protocol(text: &str) -> bool {
    let word = |w: &str| {
        !w.is_empty()
            && w.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !w.starts_with('-')
            && !w.ends_with('-')
    };
    match text.split_once('/') {
        None => word(text),
        Some((domain, rest)) => {
            is_subdomain(domain) && !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric())
        }
    }
}

fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

fn is_header_value(text: &str) -> bool {
    let space = |b: u8| b == b' ' || b == b'\t';
    let bytes = text.as_bytes();
    let printable = bytes.iter().all(|b| b.is_ascii_graphic() || space(*b));
    let single = !bytes.windows(2).any(|pair| space(pair[0]) && space(pair[1]));
    printable && single && !bytes.first().copied().is_some_and(space) && !bytes.last().copied().is_some_and(space)
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn is_duration(text: &str) -> bool {
    let mut rest = text;
    for parts in 0.. {
        if rest.is_empty() {
            return (1..=4).contains(&parts);
        }
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit = ["ms", "h", "m", "s"].into_iter().find(|unit| rest[digits..].starts_with(unit));
        let (1..=5, Some(unit)) = (digits, unit) else { return false };
        rest = &rest[digits + unit.len()..];
    }
    false
}

fn is_origin(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return text == "*";
    };
    let (host, port) = rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)));
    let label = |l: &str| !l.is_empty() && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let port_ok = port.is_none_or(|p| (1..=5).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_digit()));
    port_ok && (host == "*" || host.strip_prefix("*.").unwrap_or(host).split('.').all(label))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shape: Shape, good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(shape.complaint(text), None, "{shape:?} {text:?}");
        }
        for text in bad {
            assert!(shape.complaint(text).is_some(), "{shape:?} {text:?}");
        }
    }

    #[test]
    fn names() {
        check(Shape::Subdomain, &["a", "a-b.c", "0.1"], &["", "A", "-a", "a-", "a..b", "a.", "a_b", "ä"]);
        check(Shape::Label, &["a", "a-1"], &["", "a.b", "-", &"a".repeat(64)]);
        check(Shape::Kind, &["Gateway", "x-1"], &["", "1a", "a-", "a.b"]);
        check(Shape::Group, &["", "a.b"], &["A", "a/b"]);
        check(Shape::ObjectName, &["anything goes"], &["", &"a".repeat(254)]);
        check(Shape::DomainPath, &["a.b/c", "a/b/c"], &["a", "a/", "/b", "A/b"]);
        check(Shape::Protocol, &["HTTP", "HTTP-2", "a.b/foo"], &["", "a b", "-x", "a/b-c", "a/"]);
    }

    #[test]
    fn texts_of_requests() {
        check(Shape::HeaderName, &["X-A", "`~"], &["", "a b", "a:", "ü"]);
        check(Shape::HeaderValue, &["a", "a b", "a\tb"], &["", " a", "a ", "a  b", "ä", "a\n"]);
        check(Shape::UrlPath, &["/a%2B", "x"], &["/a%2", "/a b", "/%zz", "?"]);
        check(
            Shape::Origin,
            &["*", "https://*", "http://a.b:80", "https://*.a"],
            &["", "a", "https://", "ftp://a", "https://a:"],
        );
        check(Shape::GrpcService, &["a.B_1", ".a"], &["a..b", "1a"]);
        check(Shape::GrpcMethod, &["Foo"], &["a.b", "1"]);
        check(Shape::Duration, &["1h", "1h2m3s4ms", "99999s"], &["", "1", "h", "1d", "100000s", "1h1h1h1h1h", "1.5s"]);
    }

    #[test]
    fn keys_of_labels() {
        for good in ["a", "a.io/b", "A_b.c-d"] {
            assert!(is_qualified_name(good), "{good}");
        }
        for bad in ["", "/a", "a/", "a/b/c", "-a", "A.io/b", &"a".repeat(64)] {
            assert!(!is_qualified_name(bad), "{bad}");
        }
    }
}
