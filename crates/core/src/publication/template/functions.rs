//! The functions of external-dns for templates. The order of their arguments is that of external-dns. Nothing else is
//! available beyond Go's built-in functions.

use std::collections::HashMap;

use gtmpl_ng::{Func, FuncError, Template, Value};

use super::is_known_source;
use crate::model::RouteKind;
use crate::publication::RecordType;
use crate::publication::targets::record_type;

/// Registers the functions; `isSource` compares with the source of this kind.
pub(super) fn register(template: &mut Template, kind: RouteKind) {
    template.add_funcs(&FUNCTIONS);
    template.add_func("isSource", is_source_of(kind));
}

const FUNCTIONS: [(&str, Func); 11] = [
    ("contains", contains),
    ("fromJson", from_json),
    ("hasKey", has_key),
    ("index", index),
    ("isIPv4", is_ipv4),
    ("isIPv6", is_ipv6),
    ("replace", replace),
    ("toLower", to_lower),
    ("trim", trim),
    ("trimPrefix", trim_prefix),
    ("trimSuffix", trim_suffix),
];

type Answer = Result<Value, FuncError>;

fn contains(args: &[Value]) -> Answer {
    let [text, part] = texts("contains", args)?;
    Ok(text.contains(part).into())
}

fn trim_prefix(args: &[Value]) -> Answer {
    let [text, prefix] = texts("trimPrefix", args)?;
    Ok(text.strip_prefix(prefix).unwrap_or(text).into())
}

fn trim_suffix(args: &[Value]) -> Answer {
    let [text, suffix] = texts("trimSuffix", args)?;
    Ok(text.strip_suffix(suffix).unwrap_or(text).into())
}

fn trim(args: &[Value]) -> Answer {
    let [text] = texts("trim", args)?;
    Ok(text.trim().into())
}

fn to_lower(args: &[Value]) -> Answer {
    let [text] = texts("toLower", args)?;
    Ok(text.to_lowercase().into())
}

fn replace(args: &[Value]) -> Answer {
    let [old, new, text] = texts("replace", args)?;
    Ok(text.replace(old, new).into())
}

fn is_ipv4(args: &[Value]) -> Answer {
    let [text] = texts("isIPv4", args)?;
    Ok((record_type(text) == RecordType::A).into())
}

fn is_ipv6(args: &[Value]) -> Answer {
    let [text] = texts("isIPv6", args)?;
    Ok((record_type(text) == RecordType::Aaaa).into())
}

fn has_key(args: &[Value]) -> Answer {
    match args {
        [Value::Map(map) | Value::Object(map), Value::String(key)] => Ok(map.contains_key(key).into()),
        [_, _] => Err(problem("hasKey takes a map and a key")),
        _ => Err(FuncError::ExactlyXArgs("hasKey".to_owned(), 2)),
    }
}

fn from_json(args: &[Value]) -> Answer {
    let [text] = texts("fromJson", args)?;
    Ok(serde_json::from_str(text).map_or(Value::Nil, of_json))
}

/// Like Go's `index`, but an absent label or annotation gives the empty string.
fn index(args: &[Value]) -> Answer {
    match args {
        [Value::Map(map) | Value::Object(map), Value::String(key)] if !map.contains_key(key) => Ok(zero_of(map)),
        _ => gtmpl_ng::funcs::index(args),
    }
}

fn zero_of(map: &HashMap<String, Value>) -> Value {
    let is_text = map.values().all(|value| matches!(value, Value::String(_)));
    if is_text { "".into() } else { Value::NoValue }
}

/// A function pointer cannot capture values, so there is one function per route kind.
fn is_source_of(kind: RouteKind) -> Func {
    match kind {
        RouteKind::Http => |args| is_source(RouteKind::Http, args),
        RouteKind::Grpc => |args| is_source(RouteKind::Grpc, args),
        RouteKind::Tls => |args| is_source(RouteKind::Tls, args),
        RouteKind::Tcp => |args| is_source(RouteKind::Tcp, args),
        RouteKind::Udp => |args| is_source(RouteKind::Udp, args),
    }
}

fn is_source(kind: RouteKind, args: &[Value]) -> Answer {
    let [wanted] = texts("isSource", args)?;
    if !is_known_source(wanted) {
        return Err(problem(&format!("isSource: no source is called `{wanted}`")));
    }
    Ok(kind.source().eq_ignore_ascii_case(wanted).into())
}

/// The arguments of a function that takes strings.
fn texts<'a, const N: usize>(name: &str, args: &'a [Value]) -> Result<[&'a str; N], FuncError> {
    let args: &[Value; N] = args.try_into().map_err(|_| FuncError::ExactlyXArgs(name.to_owned(), N))?;
    let mut texts = [""; N];
    for (text, arg) in texts.iter_mut().zip(args) {
        let Value::String(value) = arg else { return Err(problem(&format!("{name} takes texts, not `{arg}`"))) };
        *text = value;
    }
    Ok(texts)
}

fn problem(message: &str) -> FuncError {
    FuncError::Generic(message.to_owned())
}

fn of_json(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(value) => value.into(),
        serde_json::Value::Number(number) => number.as_f64().unwrap_or_default().into(),
        serde_json::Value::String(text) => text.into(),
        serde_json::Value::Array(items) => Value::Array(items.into_iter().map(of_json).collect()),
        serde_json::Value::Object(entries) => {
            Value::Map(entries.into_iter().map(|(key, value)| (key, of_json(value))).collect())
        }
    }
}
