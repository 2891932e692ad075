//! Checks signatures of AWS, version 4, over whatever headers a client signed.

use ring::{digest, hmac};

use super::account::AwsAccount;
use super::answers::AwsAnswer;
use super::{AwsCall, KEY_ID, SECRET, issuing};

/// Whether a question is signed with a key that is known.
pub(super) fn check(call: &AwsCall, account: &AwsAccount) -> Result<(), AwsAnswer> {
    let missing = || AwsAnswer::error(403, "MissingAuthenticationToken", "Missing Authentication Token");
    let header = call.header("authorization").ok_or_else(missing)?;
    let part = |key: &str| header.split([' ', ',']).find_map(|part| part.strip_prefix(key)).ok_or_else(missing);
    let (credential, names, signature) = (part("Credential=")?, part("SignedHeaders=")?, part("Signature=")?);
    let scope: Vec<&str> = credential.split('/').collect();
    let [key_id, day, region, service, "aws4_request"] = scope[..] else { return Err(missing()) };
    let is_of_service = if call.path == "/" { service == "sts" } else { (service, region) == ("route53", "us-east-1") };
    if !is_of_service {
        let message = format!("Credential should be scoped to another service or region than {service} {region}");
        return Err(AwsAnswer::error(403, "SignatureDoesNotMatch", &message));
    }
    let secret = match (key_id, call.header("x-amz-security-token")) {
        (KEY_ID, None) => SECRET,
        (issuing::ROLE_KEY, Some(issuing::ROLE_TOKEN)) => issuing::ROLE_SECRET,
        _ => {
            let message = "The security token included in the request is invalid.";
            return Err(AwsAnswer::error(403, "InvalidClientTokenId", message));
        }
    };
    if account.is_expired {
        let message = "The security token included in the request is expired";
        return Err(AwsAnswer::error(403, "ExpiredToken", message));
    }
    let time = call.header("x-amz-date").filter(|time| time.starts_with(day)).ok_or_else(missing)?;
    let lines: String =
        names.split(';').map(|name| format!("{name}:{}\n", call.header(name).unwrap_or_default().trim())).collect();
    let mut query: Vec<&str> = call.raw_query.split('&').filter(|part| !part.is_empty()).collect();
    query.sort_unstable();
    let canonical = format!(
        "{}\n{}\n{}\n{lines}\n{names}\n{}",
        call.method,
        call.path,
        query.join("&"),
        hex(digest::digest(&digest::SHA256, call.body.as_bytes()).as_ref())
    );
    let digest = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{day}/{region}/{service}/aws4_request\n{digest}");
    let first = format!("AWS4{secret}").into_bytes();
    let key = [day, region, service, "aws4_request"].iter().fold(first, |key, part| mac(&key, part.as_bytes()));
    if hex(&mac(&key, text.as_bytes())) == signature {
        return Ok(());
    }
    // The service repeats what it was sent.
    let message = format!("The request signature we calculated does not match the signature you provided. {canonical}");
    Err(AwsAnswer::error(403, "SignatureDoesNotMatch", &message))
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
