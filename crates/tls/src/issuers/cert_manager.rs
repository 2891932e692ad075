//! `cert-manager`: Certificate objects that cert-manager turns into Secrets.
