//! The issuers there are: one row each.

pub mod acme;
pub mod cert_manager;
pub mod embedded_ca;

/// An issuer by its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuerEntry {
    /// `--issuer NAME`.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Whether it makes key pairs itself; otherwise somebody else does, for objects that we write.
    pub makes_pairs: bool,
}

/// Every issuer, sorted by name.
pub const ISSUERS: &[IssuerEntry] = &[
    IssuerEntry { name: "acme", summary: "a server that speaks ACME, such as Let's Encrypt", makes_pairs: true },
    IssuerEntry { name: "cert-manager", summary: "cert-manager, through its Certificate objects", makes_pairs: false },
    IssuerEntry { name: "embedded", summary: "an authority of this program's own", makes_pairs: true },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted() {
        assert!(ISSUERS.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn every_issuer_has_its_page() {
        for row in ISSUERS {
            let page = gatepost_testkit::tree::root().join(format!("docs/issuers/{}.md", row.name));
            let text = std::fs::read_to_string(&page).unwrap();
            assert!(text.starts_with(&format!("# {}\n", row.name)), "{}", page.display());
        }
    }
}
