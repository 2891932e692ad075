//! Messages about certificates that are not ready: kinds that are not visible, failed writes, requests in progress.

use gatepost_core::reason::{self, Reason};
use gatepost_kube::Error;
use gatepost_kube::mirror::MirrorVisibility;

/// Why no certificate can be issued, depending on the visibility of cert-manager's objects.
pub(super) fn unseen(sight: &MirrorVisibility) -> Option<(Reason, String)> {
    match sight {
        MirrorVisibility::Complete => None,
        MirrorVisibility::Absent => {
            let why = "cert-manager is not installed: the API server does not serve certificates.cert-manager.io/v1; install its CRDs and cert-manager";
            Some((reason::ISSUER_UNUSABLE, why.to_owned()))
        }
        MirrorVisibility::Unread => {
            Some((reason::CERTIFICATE_PENDING, "Certificate objects have not been read yet".to_owned()))
        }
        MirrorVisibility::Hidden(why) => {
            let why = format!("Certificate objects cannot be read: {why}; {ROLES}");
            Some((reason::KIND_NOT_VISIBLE, why))
        }
    }
}

const ROLES: &str = "`gatepost rbac --issuer cert-manager --certificate-namespace NAMESPACE` prints the roles it takes";

pub(super) fn soon() -> (Reason, String) {
    (reason::CERTIFICATE_PENDING, "cert-manager has not looked at it yet".to_owned())
}

pub(super) fn failed(verb: &str, error: &Error) -> (Reason, String) {
    if error.is_conflict() {
        let why = format!(
            "its Certificate object could not be {verb}: somebody else wrote it in between; it is looked at again"
        );
        return (reason::CERTIFICATE_PENDING, why);
    }
    (reason::CERTIFICATE_NOT_STORED, format!("its Certificate object could not be {verb}: {}", advised(error)))
}

/// The text of an error, with advice if a permission is missing.
pub(super) fn advised(error: &Error) -> String {
    if error.is_forbidden() { format!("{error}; {ROLES}") } else { error.to_string() }
}
