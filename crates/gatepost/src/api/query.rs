//! The query of a URL: names and values, percent-encoded as forms send them.

use std::str::FromStr;

/// More characters of a query are not read.
pub(super) const LONGEST: usize = 8 * 1024;

/// The values of a query, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(text: &str) -> Query {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let decoded = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(&name.replace('+', " ")), decode(&value.replace('+', " ")))
        });
        Query(decoded.collect())
    }

    /// The first value of a name that is not empty.
    pub(super) fn one(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| &**value)
    }

    /// All values of a name that are not empty.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, value)| key == name && !value.is_empty()).map(|(_, value)| &**value)
    }

    /// A value of some type; what is wrong with it names the parameter.
    pub(super) fn value<T: FromStr>(&self, name: &str, kind: &str) -> Result<Option<T>, String> {
        let Some(text) = self.one(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("{name}={text}: write {kind}"))
    }

    /// Refuses a parameter that nobody reads.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), String> {
        match self.0.iter().find(|(name, _)| !known.contains(&&**name)) {
            Some((name, _)) => Err(format!("there is no parameter `{name}` here; there are {}", known.join(", "))),
            None => Ok(()),
        }
    }
}

/// Takes percent-encoding off; what is no UTF-8 then has replacement characters.
pub(super) fn decode(text: &str) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let (bytes, mut decoded, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let pair = (*byte == b'%').then(|| Some((digit(bytes.get(at + 1))?, digit(bytes.get(at + 2))?))).flatten();
        match pair {
            Some((high, low)) => {
                decoded.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                at += 3;
            }
            None => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_unknown_names_refused() {
        let query = Query::parse("q=a%20b+c&health=wrong&health=held&empty=&bad=%zz%e2%82%ac%4");
        assert_eq!(query.one("q"), Some("a b c"));
        assert_eq!(query.all("health").collect::<Vec<_>>(), ["wrong", "held"]);
        assert_eq!((query.one("empty"), query.one("bad")), (None, Some("%zz€%4")));
        assert!(query.only(&["q", "health", "empty", "bad"]).is_ok());
        assert!(query.only(&["q"]).unwrap_err().contains("`health`"));
        assert!(query.value::<usize>("q", "a number").unwrap_err().starts_with("q=a b c: write"));
    }
}
