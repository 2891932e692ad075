//! Lists that come in pages: complete, or a failure.
//!
//! Pages are counted by offset, so that a change meanwhile can hide an item or show one twice. A page that is not the one
//! asked for, an id that comes twice, a total that moves or is not reached: each is a failed read. What a removal and an
//! addition between two pages can still hide is found by the look before writing.

use std::collections::BTreeSet;

use super::client::ApiClient;
use super::incomplete;
use super::wire::{Listed, PageInfo};
use crate::provider::{ProviderError, Result};

/// The most items of one list.
const MOST: usize = 2_000_000;

/// Every item of a list. `filter` is a part of the query, with an ampersand at its end where it is not empty.
pub(super) async fn read<T: Listed>(client: &ApiClient, path: &str, filter: &str, per_page: usize) -> Result<Vec<T>> {
    let (mut items, mut total) = (Vec::<T>::new(), None);
    let mut ids = BTreeSet::<String>::new();
    for page in 1.. {
        let question = format!("{path}?{filter}page={page}&per_page={per_page}");
        let answer = client.get::<Vec<T>>(&question).await?;
        let fail =
            |cause: String| -> ProviderError { incomplete(format!("GET /{path}, page {page}: {cause}")).at(client) };
        let said = answer.page.map(|info| check(info, page, answer.result.len(), total)).transpose().map_err(fail)?;
        total = said.flatten().or(total);
        let is_empty = answer.result.is_empty();
        if let Some(twice) = answer.result.iter().find(|item| !ids.insert(item.id().to_owned())) {
            return Err(fail(format!("`{}` comes twice", twice.id())));
        }
        items.extend(answer.result);
        match total {
            Some(total) if items.len() == total => break,
            Some(total) if is_empty || items.len() > total => {
                return Err(fail(format!("{} of {total} items came", items.len())));
            }
            // Without a total the list ends with an empty page.
            None if is_empty => break,
            _ if items.len() > MOST => return Err(fail(format!("more than {MOST} items came"))),
            _ => {}
        }
    }
    Ok(items)
}

/// The total that a page names, if the page is the one that was asked for.
fn check(
    info: PageInfo,
    page: usize,
    length: usize,
    total: Option<usize>,
) -> std::result::Result<Option<usize>, String> {
    if let Some(other) = info.page.filter(|other| *other != page) {
        return Err(format!("page {other} came instead"));
    }
    if let Some(count) = info.count.filter(|count| *count != length) {
        return Err(format!("it has {length} items and says {count}"));
    }
    match (total, info.total_count) {
        (Some(before), Some(now)) if before != now => {
            Err(format!("the list changed meanwhile, from {before} items to {now}"))
        }
        (_, now) => Ok(now),
    }
}
