//! Verifies server certificates against a file of certificates. A client accepts a certificate that
//! an authority in the file has signed, or that is in the file itself. Both must be within their
//! validity periods (RFC 5280 section 6.1.3).
//!
//! rustls does not check the validity period of the authority, and does not support trust in a
//! single server certificate. GnuTLS and OpenSSL reject an expired authority and an expired trusted
//! server certificate, and so does this module.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{ServerCertVerified, ServerCertVerifier as _};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{CertificateError, Error, OtherError, RootCertStore};

/// The certificates of a file, and the verifier for chains to them.
#[derive(Debug)]
pub(super) struct AuthorityCertVerifier {
    trusted: Vec<CertificateDer<'static>>,
    chain_verifier: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
}

impl AuthorityCertVerifier {
    /// Returns a verifier that trusts the certificates in `trusted`, which must not be empty.
    ///
    /// # Errors
    /// Returns the error of rustls if `trusted` is empty, or if a certificate in it is malformed.
    pub(super) fn new(
        trusted: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let chain_verifier = build_chain_verifier(&trusted, provider)?;
        Ok(Self { trusted, chain_verifier, provider: Arc::clone(provider) })
    }

    /// Verifies the certificate `end_entity` of a server. The parameters and the result are those
    /// of `ServerCertVerifier::verify_server_cert` in rustls.
    ///
    /// # Errors
    /// Returns the error of rustls, or [`OutdatedAuthority`] if only authorities outside their
    /// validity periods have signed the certificate.
    pub(super) fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verify_with = |verifier: &WebPkiServerVerifier| {
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        };
        match verify_with(&self.chain_verifier) {
            // A self-signed certificate, which no authority has signed, is accepted if the user's
            // file contains it.
            Err(error) if self.trusted.contains(end_entity) => {
                if is_validity_error(&error) {
                    return Err(error);
                }
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)
                    .map(|()| ServerCertVerified::assertion())
            }
            Err(error) => Err(error),
            Ok(verified) => {
                // rustls does not report the authority at the end of the chain, so check that the
                // chain also leads to an authority within its validity period.
                let (mut valid, mut outdated) = (Vec::new(), Vec::new());
                for authority in &self.trusted {
                    match self.validity_error(authority, server_name, now) {
                        None => valid.push(authority.clone()),
                        Some(fault) => outdated.push((authority, fault)),
                    }
                }
                let leads_to = |authorities: &[CertificateDer<'static>]| {
                    build_chain_verifier(authorities, &self.provider)
                        .is_ok_and(|verifier| verify_with(&verifier).is_ok())
                };
                if outdated.is_empty() || self.trusted.contains(end_entity) || leads_to(&valid) {
                    return Ok(verified);
                }
                let signer =
                    outdated.iter().find(|(authority, _)| leads_to(std::slice::from_ref(*authority)));
                Err(OutdatedAuthority::error(signer.map(|(_, fault)| fault)))
            }
        }
    }

    /// Returns the error of rustls if the certificate is outside its validity period, else `None`.
    fn validity_error(
        &self,
        certificate: &CertificateDer<'_>,
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Option<CertificateError> {
        // rustls checks the validity period first, before the purpose of the certificate.
        let verdict = self.chain_verifier.verify_server_cert(certificate, &[], server_name, &[], now);
        match verdict {
            Err(Error::InvalidCertificate(fault)) if describe_validity(&fault).is_some() => Some(fault),
            _ => None,
        }
    }
}

/// Returns a verifier for chains to the authorities in `trusted`.
///
/// # Errors
/// Fails if `trusted` is empty, or if a certificate in it is malformed.
fn build_chain_verifier(
    trusted: &[CertificateDer<'static>],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in trusted {
        roots.add(certificate.clone())?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| Error::General(error.to_string()))
}

/// Whether a certificate was rejected because it is outside its validity period.
fn is_validity_error(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(fault) if describe_validity(fault).is_some())
}

/// The authority is outside its validity period; the certificate that it signed is not.
#[derive(Debug)]
struct OutdatedAuthority {
    /// The description from [`describe_validity`].
    validity: String,
}

impl OutdatedAuthority {
    /// Returns the error for an authority with the error `fault`. `None`: the authority is unknown.
    fn error(fault: Option<&CertificateError>) -> Error {
        let validity =
            fault.and_then(describe_validity).unwrap_or_else(|| "is outside its validity period".to_owned());
        Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(Self { validity }))))
    }
}

impl fmt::Display for OutdatedAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { validity } = self;
        write!(
            f,
            "the certificate of the authority in the given file {validity}: use the file with its current certificate"
        )
    }
}

impl StdError for OutdatedAuthority {}

/// Describes an error of the validity period as a predicate, for example `expired 2 days ago`.
/// Returns `None` for other errors.
fn describe_validity(fault: &CertificateError) -> Option<String> {
    let between = |from: UnixTime, to: UnixTime| format_duration(to.as_secs().saturating_sub(from.as_secs()));
    Some(match fault {
        CertificateError::Expired => "has expired".to_owned(),
        CertificateError::NotValidYet => "is not valid yet".to_owned(),
        CertificateError::ExpiredContext { time, not_after } => {
            format!("expired {} ago", between(*not_after, *time))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            format!("becomes valid in {}", between(*time, *not_before))
        }
        _ => return None,
    })
}

/// Formats a duration in the largest unit, up to days, of which it contains at least two.
fn format_duration(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    if count == 1 { format!("{count} {unit}") } else { format!("{count} {unit}s") }
}

/// Returns the names in a certificate that is not valid for the requested name; none for other
/// faults. The library has them in the form `DnsName("ns.example")` or `IpAddress(192.0.2.1)`.
pub(crate) fn certificate_names(fault: &CertificateError) -> impl Iterator<Item = &str> {
    let presented = match fault {
        CertificateError::NotValidForNameContext { presented, .. } => presented.as_slice(),
        _ => &[],
    };
    presented.iter().map(|name| {
        let value = name.split_once('(').and_then(|(_, value)| value.strip_suffix(')'));
        value.map_or(name.as_str(), |value| value.trim_matches('"'))
    })
}

/// Describes an error of rustls, with advice if there is any.
pub(crate) fn describe(error: &Error) -> String {
    let Error::InvalidCertificate(fault) = error else {
        return match error {
            Error::InvalidMessage(_) => format!("{error}: check that the server uses TLS on this port"),
            _ => error.to_string(),
        };
    };
    if let Some(validity) = describe_validity(fault) {
        return format!(
            "the server's certificate {validity}: renew it on the server, or correct the clock of this machine"
        );
    }
    match fault {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the server's certificate is not signed by an authority in the given file: use the file of the \
              authority that signed it"
                .to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } if !presented.is_empty() => {
            let names: Vec<&str> = certificate_names(fault).collect();
            format!(
                "the server's certificate is for {}, not {}: use the name in the certificate",
                names.join(", "),
                expected.to_str()
            )
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("{error}: use the name in the server's certificate")
        }
        CertificateError::Other(other) => match other.0.downcast_ref::<OutdatedAuthority>() {
            Some(outdated) => outdated.to_string(),
            None => error.to_string(),
        },
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio_rustls::rustls::InvalidMessage;

    fn at(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn descriptions_of_errors_end_with_advice() {
        let renew = "renew it on the server, or correct the clock of this machine";
        let sign =
            "is not signed by an authority in the given file: use the file of the authority that signed it";
        let expired = |seconds: u64| CertificateError::ExpiredContext {
            time: at(1_000_000 + seconds),
            not_after: at(1_000_000),
        };
        let early =
            |seconds: u64| CertificateError::NotValidYetContext { time: at(5), not_before: at(5 + seconds) };
        for (fault, expected) in [
            (expired(1), format!("expired 1 second ago: {renew}")),
            (expired(119), format!("expired 119 seconds ago: {renew}")),
            (expired(7_199), format!("expired 119 minutes ago: {renew}")),
            (expired(7_200), format!("expired 2 hours ago: {renew}")),
            (expired(172_800), format!("expired 2 days ago: {renew}")),
            (early(120), format!("becomes valid in 2 minutes: {renew}")),
            (CertificateError::Expired, format!("has expired: {renew}")),
            (CertificateError::NotValidYet, format!("is not valid yet: {renew}")),
            (CertificateError::UnknownIssuer, sign.to_owned()),
            (CertificateError::BadSignature, sign.to_owned()),
        ] {
            let error = Error::InvalidCertificate(fault);
            assert_eq!(describe(&error), format!("the server's certificate {expected}"));
        }
        assert_eq!(
            describe(&OutdatedAuthority::error(Some(&expired(172_800)))),
            "the certificate of the authority in the given file expired 2 days ago: use the file with its current \
             certificate"
        );
        let other_name = CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("other.example").expect("a name"),
            presented: vec!["DnsName(\"ns.example\")".to_owned(), "IpAddress(192.0.2.1)".to_owned()],
        };
        assert_eq!(
            describe(&Error::InvalidCertificate(other_name)),
            "the server's certificate is for ns.example, 192.0.2.1, not other.example: use the name in the certificate"
        );
        // Other errors have the text of rustls, with advice after it.
        let misnamed = Error::InvalidCertificate(CertificateError::NotValidForName);
        assert_eq!(describe(&misnamed), format!("{misnamed}: use the name in the server's certificate"));
        let other = Error::InvalidMessage(InvalidMessage::InvalidContentType);
        assert_eq!(describe(&other), format!("{other}: check that the server uses TLS on this port"));
        let general = Error::General("of the library".to_owned());
        assert_eq!(describe(&general), general.to_string());
    }
}
