//! The flags of the page: where it is served, and under which names.

use std::net::SocketAddr;

use clap::Args;
use gatepost_core::names::{Hostname, is_ip};
use gatepost_kube::Connection;

use crate::api::Reviews;
use crate::cli::Failure;
use crate::web::{PageAccess, PageMode};

/// Who may look at the page, and how it is reached.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "The page")]
pub(in crate::cli) struct PageFlags {
    /// Where the page and /api/v1 are served, and to whom
    #[arg(long, value_enum, value_name = "WHERE", default_value_t, env = "GATEPOST_PAGE")]
    page: PageMode,
    /// Name by which browsers ask for the page through a proxy, beside addresses and localhost; may be repeated
    #[arg(long, value_name = "HOSTNAME", value_parser = hostname, env = "GATEPOST_PAGE_HOST", value_delimiter = ',')]
    page_host: Vec<String>,
    /// Path below which a proxy serves the page, such as /gatepost
    #[arg(long, value_name = "PATH", value_parser = base_path, env = "GATEPOST_PAGE_BASE")]
    page_base: Option<String>,
}

impl PageFlags {
    /// Who may look, where a cluster can say who somebody is, and where none can.
    pub(in crate::cli) fn access(
        &self,
        listening: SocketAddr,
        connection: Option<&Connection>,
    ) -> Result<PageAccess, Failure> {
        let access = PageAccess::new(self.page, listening).at(&self.page_host, self.page_base.as_deref());
        match (self.page, connection) {
            (PageMode::Cluster, Some(connection)) => Ok(access.reviewed(Reviews::new(connection.clone()))),
            (PageMode::Cluster, None) => Err(Failure::usage(
                "--page cluster asks a cluster who somebody is, and `serve` has none: use `gatepost controller`, or --page loopback",
            )),
            _ => Ok(access),
        }
    }
}

fn hostname(text: &str) -> Result<String, String> {
    match Hostname::parse(&text.to_ascii_lowercase()) {
        Ok(name) if !is_ip(name.as_str()) && !name.as_str().starts_with('*') => Ok(name.to_string()),
        Ok(_) => Err("write one hostname, without a wildcard; addresses are served without this flag".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn base_path(text: &str) -> Result<String, String> {
    let path = text.trim_end_matches('/');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
    let is_path = path.starts_with('/') && path.chars().all(is_plain) && !path.contains("//") && !path.contains("..");
    match is_path {
        true => Ok(path.to_owned()),
        false => Err("write a path such as /gatepost".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_names_are_plain() {
        assert_eq!(base_path("/gatepost/").as_deref(), Ok("/gatepost"));
        assert_eq!(base_path("/a/b").as_deref(), Ok("/a/b"));
        for wrong in ["", "/", "gatepost", "/a//b", "/a/../b", "/a b", "//evil.example"] {
            assert!(base_path(wrong).is_err(), "{wrong}");
        }
        assert_eq!(hostname("Page.Example.org").as_deref(), Ok("page.example.org"));
        assert!(hostname("*.example.org").is_err() && hostname("a b").is_err());
    }
}
