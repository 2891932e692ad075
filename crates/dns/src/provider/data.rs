//! Record data between text and wire format.
//!
//! Text is what a zone file would say, with these habits: addresses as Rust prints them, `CNAME`, `NS`, `PTR` and `DNAME`
//! without the dot at the end, every string of a `TXT` in quotes, unknown types as RFC 3597 has it. The text gives back
//! the same bytes, the case of names included, so that a precondition names exactly what the server has.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use domain::base::iana::Rtype;
use domain::base::name::Name;
use domain::base::rdata::{ComposeRecordData, ParseRecordData};
use domain::base::scan::IterScanner;
use domain::base::zonefile_fmt::{DisplayKind, ZonefileFmt};
use domain::dep::octseq::Parser;
use domain::rdata::ZoneRecordData;

/// A domain name in wire format.
pub type WireName = Name<Vec<u8>>;

/// Text that is no data of its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not data of type {kind}: {cause}")]
pub struct DataError {
    /// The type.
    pub kind: String,
    /// The text as given.
    pub text: String,
    /// What is wrong.
    pub cause: String,
}

/// The type with this name: `A`, `TXT`, `TYPE65534`.
pub fn rtype(name: &str) -> Option<Rtype> {
    Rtype::from_str(name).ok()
}

/// A name from text, with or without a dot at its end.
pub fn name(text: &str) -> Result<WireName, String> {
    if text.is_empty() {
        return Err("the name is empty".into());
    }
    WireName::from_str(text).map_err(|error| format!("`{text}` is not a domain name: {error}"))
}

/// The text of a name, without a dot at its end; the root is `.`.
pub fn name_text(name: &WireName) -> String {
    name.to_string()
}

/// Data in wire format, names uncompressed.
pub fn to_wire(kind: Rtype, text: &str) -> Result<Vec<u8>, DataError> {
    let refuse = |cause: String| DataError { kind: kind.to_string(), text: text.to_owned(), cause };
    match kind {
        Rtype::A => Ipv4Addr::from_str(text).map(|a| a.octets().to_vec()).map_err(|e| refuse(e.to_string())),
        Rtype::AAAA => Ipv6Addr::from_str(text).map(|a| a.octets().to_vec()).map_err(|e| refuse(e.to_string())),
        Rtype::CNAME | Rtype::NS | Rtype::PTR | Rtype::DNAME => {
            name(text).map(|name| name.as_slice().to_vec()).map_err(refuse)
        }
        Rtype::TXT => strings_of(text).map(|strings| txt_wire(&strings)).map_err(refuse),
        _ => scan(kind, text).map_err(refuse),
    }
}

/// The text of data in wire format, names uncompressed; `None` where the bytes do not fit the type.
pub fn to_text(kind: Rtype, wire: &[u8]) -> Option<String> {
    match kind {
        Rtype::A => Some(Ipv4Addr::from(<[u8; 4]>::try_from(wire).ok()?).to_string()),
        Rtype::AAAA => Some(Ipv6Addr::from(<[u8; 16]>::try_from(wire).ok()?).to_string()),
        Rtype::CNAME | Rtype::NS | Rtype::PTR | Rtype::DNAME => {
            Name::from_octets(wire.to_vec()).ok().map(|name| name_text(&name))
        }
        Rtype::TXT => Some(quoted(&txt_strings(wire)?)),
        _ => match parse(kind, wire)? {
            ZoneRecordData::Unknown(_) => Some(generic(wire)),
            known => Some(known.display_zonefile(DisplayKind::Simple).to_string()),
        },
    }
}

/// A value that somebody else wrote, in our habits.
pub fn tidy(kind: &str, text: &str) -> Result<String, DataError> {
    let unknown = || DataError { kind: kind.to_owned(), text: text.to_owned(), cause: "the type is unknown".into() };
    let kind = rtype(kind).ok_or_else(unknown)?;
    to_text(kind, &to_wire(kind, text)?).ok_or_else(unknown)
}

/// The bytes of a `TXT` value, all strings put together.
pub fn txt_bytes(text: &str) -> Result<Vec<u8>, String> {
    strings_of(text).map(|strings| strings.concat())
}

/// Data of a type that nobody here knows, as RFC 3597 writes it.
pub(crate) fn generic(wire: &[u8]) -> String {
    let hex: String = wire.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\\# {} {hex}", wire.len()).trim_end().to_owned()
}

/// Wire format of data that may hold compressed names, read out of a message.
pub(crate) fn flatten<N>(data: &ZoneRecordData<&[u8], N>) -> Vec<u8>
where
    N: domain::base::name::ToName,
{
    let mut wire = Vec::new();
    // Appending to a vector cannot fail.
    let _ = data.compose_rdata(&mut wire);
    wire
}

fn parse(kind: Rtype, wire: &[u8]) -> Option<ZoneRecordData<&[u8], domain::base::name::ParsedName<&[u8]>>> {
    let mut parser = Parser::from_ref(wire);
    let data = ZoneRecordData::parse_rdata(kind, &mut parser).ok()??;
    (parser.remaining() == 0).then_some(data)
}

fn scan(kind: Rtype, text: &str) -> Result<Vec<u8>, String> {
    let tokens = tokens(text)?;
    if tokens.first().is_some_and(|token| token == "\\#") {
        return from_generic(&tokens[1..])
            .filter(|wire| parse(kind, wire).is_some())
            .ok_or_else(|| "wrong bytes".into());
    }
    let mut scanner = IterScanner::<_, Vec<u8>>::new(tokens);
    let data: ZoneRecordData<Vec<u8>, WireName> =
        ZoneRecordData::scan(kind, &mut scanner).map_err(|error| error.to_string())?;
    if !scanner.is_exhausted() {
        return Err("there is something behind it".into());
    }
    let mut wire = Vec::new();
    let _ = data.compose_rdata(&mut wire);
    Ok(wire)
}

/// The bytes of RFC 3597: their number, then hexadecimal digits in any pieces.
fn from_generic(tokens: &[String]) -> Option<Vec<u8>> {
    let (length, pieces) = tokens.split_first()?;
    let digits = pieces.concat();
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    let wire: Option<Vec<u8>> = pairs.map(|pair| u8::from_str_radix(pair.filter(|p| p.len() == 2)?, 16).ok()).collect();
    wire.filter(|wire| length.parse() == Ok(wire.len()))
}

/// Splits at spaces outside of quotes; escapes stay as they are.
fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = text.trim_start_matches(' ');
    while !rest.is_empty() {
        let (token, tail) = if let Some(inner) = rest.strip_prefix('"') {
            let end = closing_quote(inner).ok_or("a quote is not closed")?;
            (&inner[..end], &inner[end + 1..])
        } else {
            rest.split_at(rest.find(' ').unwrap_or(rest.len()))
        };
        if !tail.is_empty() && !tail.starts_with(' ') {
            return Err("there is no space behind a closing quote".into());
        }
        found.push(token.to_owned());
        rest = tail.trim_start_matches(' ');
    }
    Ok(found)
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

/// The strings of a `TXT`: as in a zone file where it begins with a quote, otherwise the text itself in pieces.
fn strings_of(text: &str) -> Result<Vec<Vec<u8>>, String> {
    if !text.starts_with('"') {
        return Ok(pieces(text.as_bytes()));
    }
    let tokens = tokens(text)?;
    let strings: Result<Vec<_>, _> = tokens.iter().map(|token| unescape(token)).collect();
    let strings = strings?;
    match strings.iter().find(|string| string.len() > 255) {
        // A long string in one pair of quotes is how most people write it.
        Some(_) if strings.len() == 1 => Ok(pieces(&strings[0])),
        Some(_) => Err("a string of a text is at most 255 bytes long".into()),
        None => Ok(strings),
    }
}

fn pieces(bytes: &[u8]) -> Vec<Vec<u8>> {
    if bytes.is_empty() { vec![Vec::new()] } else { bytes.chunks(255).map(<[u8]>::to_vec).collect() }
}

fn unescape(token: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(token.len());
    let mut bytes = token.bytes();
    while let Some(byte) = bytes.next() {
        out.push(if byte == b'\\' { escaped(&mut bytes)? } else { byte });
    }
    Ok(out)
}

fn escaped(bytes: &mut std::str::Bytes<'_>) -> Result<u8, String> {
    let first = bytes.next().ok_or("it ends in a backslash")?;
    if !first.is_ascii_digit() {
        return Ok(first);
    }
    let digits = [first, bytes.next().unwrap_or_default(), bytes.next().unwrap_or_default()];
    let number = std::str::from_utf8(&digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    number
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| "a backslash and digits need three of them, up to 255".into())
}

fn txt_wire(strings: &[Vec<u8>]) -> Vec<u8> {
    // Every string is at most 255 bytes long: `strings_of` makes no others.
    strings.iter().flat_map(|string| std::iter::once(string.len() as u8).chain(string.iter().copied())).collect()
}

fn txt_strings(mut wire: &[u8]) -> Option<Vec<&[u8]>> {
    let mut strings = Vec::new();
    while let Some((&length, rest)) = wire.split_first() {
        let (string, rest) = rest.split_at_checked(usize::from(length))?;
        strings.push(string);
        wire = rest;
    }
    (!strings.is_empty()).then_some(strings)
}

fn quoted(strings: &[&[u8]]) -> String {
    let one = |string: &&[u8]| {
        let inner: String = string.iter().map(|&byte| escape(byte)).collect();
        format!("\"{inner}\"")
    };
    strings.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn escape(byte: u8) -> String {
    match byte {
        b'"' | b'\\' => format!("\\{}", byte as char),
        0x20..=0x7e => (byte as char).to_string(),
        _ => format!("\\{byte:03}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_have_one_form() {
        let rows = [
            ("A", "192.0.2.1", "192.0.2.1"),
            ("AAAA", "2001:DB8:0::1", "2001:db8::1"),
            ("CNAME", "WWW.Example.com.", "WWW.Example.com"),
            ("NS", "ns1.example", "ns1.example"),
            ("MX", "10 Mail.example", "10 Mail.example."),
            ("SRV", "1 2 443 Web.example.", "1 2 443 Web.example."),
            ("TXT", "\"a b\" \"c\"", "\"a b\" \"c\""),
            ("TXT", "heritage=x;y", "\"heritage=x;y\""),
            ("TXT", "\"\\065\\\"\"", "\"A\\\"\""),
            ("TXT", "", "\"\""),
            ("CAA", "0 issue \"ca.example\"", "0 issue \"ca.example\""),
            ("TYPE65534", "\\# 3 010203", "\\# 3 010203"),
        ];
        for (kind, text, expected) in rows {
            assert_eq!(tidy(kind, text).as_deref(), Ok(expected), "{kind} {text}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "x".repeat(300);
        let expected = format!("\"{}\" \"{}\"", "x".repeat(255), "x".repeat(45));
        assert_eq!(tidy("TXT", &long), Ok(expected.clone()));
        assert_eq!(tidy("TXT", &format!("\"{long}\"")), Ok(expected));
    }

    #[test]
    fn broken_values_are_refused() {
        let rows = [
            ("A", "2001:db8::1"),
            ("A", "192.0.2"),
            ("AAAA", "x"),
            ("CNAME", "a..b"),
            ("CNAME", ""),
            ("MX", "mail.example"),
            ("MX", "10 mail.example extra"),
            ("TXT", "\"open"),
            ("TXT", "\"a\"b\""),
            ("TXT", "\"\\3\""),
            ("TXT", "\"\\999\""),
            ("NOPE", "x"),
        ];
        for (kind, text) in rows {
            assert!(tidy(kind, text).is_err(), "{kind} {text}");
        }
    }

    proptest! {
        #[test]
        fn text_survives_the_wire(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let wire = txt_wire(&pieces(&bytes));
            let text = to_text(Rtype::TXT, &wire).unwrap();
            prop_assert_eq!(to_wire(Rtype::TXT, &text).unwrap(), wire);
            prop_assert_eq!(txt_bytes(&text).unwrap(), bytes);
        }

        #[test]
        fn no_text_panics(kind in "A|AAAA|CNAME|MX|SRV|TXT|CAA|SVCB|NAPTR|TYPE300", text in ".{0,80}") {
            if let Ok(once) = tidy(&kind, &text) {
                prop_assert_eq!(tidy(&kind, &once), Ok(once.clone()));
            }
        }

        #[test]
        fn no_bytes_panic(kind in any::<u16>(), bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let kind = Rtype::from_int(kind);
            if let Some(text) = to_text(kind, &bytes) {
                let _ = to_wire(kind, &text);
            }
        }
    }
}
