//! Expiration of the server's certificate (RFC 5280 section 4.1.2.5). After it, clients that verify
//! the certificate reject it.

use crate::config::{Problem, Sources, Tls};
use crate::files::read_public_text;
use data_encoding::BASE64;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use nonesuch_net::tls::PEM_OCTETS_MAX;
use std::path::Path;
use std::time::Duration;

/// Time before the expiration from which the server warns, in seconds: 14 days.
const WARNING_SECONDS: i64 = 14 * 86_400;

/// Time between two checks of the expiration.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_secs(86_400);

/// DER tags; `VERSION_TAG` is the context-specific tag 0.
const INTEGER_TAG: u8 = 0x02;
const SEQUENCE_TAG: u8 = 0x30;
const UTC_TIME_TAG: u8 = 0x17;
const GENERALIZED_TIME_TAG: u8 = 0x18;
const VERSION_TAG: u8 = 0xa0;

/// Warns of a certificate that has expired or expires soon.
pub(crate) fn warn_of_expiry(tls: &Tls) {
    if let Some(warning) = expiry_warning_now(tls) {
        tracing::warn!(name: "certificate-warning", "TLS certificate: {warning}");
    }
}

/// The same warning as a problem of the configuration.
pub(crate) fn problem(tls: &Tls, sources: &Sources) -> Option<Problem> {
    Some(sources.problem_of("tls-certificate", expiry_warning_now(tls)?))
}

fn expiry_warning_now(tls: &Tls) -> Option<String> {
    expiry_warning(tls.files()?.certificate, Timestamp::now())
}

/// A warning if the first certificate in the file at `path` has expired at `now` or expires soon.
/// Returns `None` if the file cannot be read, because the code that loads the certificate reports
/// this.
fn expiry_warning(path: &Path, now: Timestamp) -> Option<String> {
    let end = not_after(&first_certificate(&read_public_text(path, PEM_OCTETS_MAX).ok()?)?)?;
    let seconds_left = end.as_second() - now.as_second();
    let shown_path = path.display();
    if seconds_left < 0 {
        Some(format!("{shown_path}: the certificate has expired at {end}: renew it, and reload"))
    } else if seconds_left < WARNING_SECONDS {
        Some(format!(
            "{shown_path}: the certificate expires at {end}, in {} h: renew it, and reload",
            seconds_left / 3600
        ))
    } else {
        None
    }
}

/// The DER octets of the first certificate in a PEM text, which is the server's own certificate.
fn first_certificate(text: &str) -> Option<Vec<u8>> {
    let rest = text.split_once("-----BEGIN CERTIFICATE-----")?.1;
    let inner = rest.split_once("-----END CERTIFICATE-----")?.0;
    let digits: Vec<u8> = inner.bytes().filter(|octet| !octet.is_ascii_whitespace()).collect();
    BASE64.decode(&digits).ok()
}

/// The end of a certificate's validity.
fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let mut outer = take_element(&mut &*certificate, SEQUENCE_TAG)?;
    let mut fields = take_element(&mut outer, SEQUENCE_TAG)?;
    if fields.first() == Some(&VERSION_TAG) {
        take_element(&mut fields, VERSION_TAG)?;
    }
    // Serial number, signature algorithm, issuer.
    take_element(&mut fields, INTEGER_TAG)?;
    take_element(&mut fields, SEQUENCE_TAG)?;
    take_element(&mut fields, SEQUENCE_TAG)?;
    let mut validity = take_element(&mut fields, SEQUENCE_TAG)?;
    take_time(&mut validity)?;
    take_time(&mut validity)
}

/// Removes the DER element at the beginning of `rest`, and returns its contents if it has the tag
/// `tag`.
fn take_element<'d>(rest: &mut &'d [u8], tag: u8) -> Option<&'d [u8]> {
    let [found, first, tail @ ..] = *rest else { return None };
    let (length, tail) = match usize::from(*first) {
        short if short < 0x80 => (short, tail),
        long => {
            let (octets, tail) = tail.split_at_checked(long & 0x7f)?;
            let fits = (1..=4).contains(&octets.len());
            let length = octets.iter().fold(0usize, |sum, octet| sum << 8 | usize::from(*octet));
            (fits.then_some(length)?, tail)
        }
    };
    let (contents, after) = tail.split_at_checked(length)?;
    *rest = after;
    (*found == tag).then_some(contents)
}

/// Removes a UTCTime or GeneralizedTime at the beginning of `rest`, and returns the time.
fn take_time(rest: &mut &[u8]) -> Option<Timestamp> {
    let tag = *rest.first()?;
    let text = std::str::from_utf8(take_element(rest, tag)?).ok()?.strip_suffix('Z')?;
    // RFC 5280 section 4.1.2.5.1: two-digit years are from 1950 to 2049.
    let text = match tag {
        UTC_TIME_TAG if text < "50" => format!("20{text}"),
        UTC_TIME_TAG => format!("19{text}"),
        GENERALIZED_TIME_TAG => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%S", &text).ok()?;
    Offset::UTC.to_timestamp(time).ok()
}

#[cfg(test)]
mod tests;
