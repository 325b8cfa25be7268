//! Verifies server certificates against a file of certificates. A client accepts a certificate that
//! an authority in the file has signed, or that is in the file itself. Both must be within their
//! validity periods (RFC 5280 section 6.1.3).
//!
//! The path validation of the library does not check the validity period of the authority, and does
//! not support trust in a single server certificate. GnuTLS and OpenSSL reject expired certificates
//! in both cases, and so does this module.

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
    chain: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
}

impl AuthorityCertVerifier {
    /// Returns a verifier for at least one certificate.
    ///
    /// # Errors
    /// The fault that the library finds in the certificates.
    pub(super) fn new(
        trusted: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let chain = verifier(&trusted, provider)?;
        Ok(Self { trusted, chain, provider: Arc::clone(provider) })
    }

    pub(super) fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verify = |chain: &WebPkiServerVerifier| {
            chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        };
        match verify(&self.chain) {
            // No authority has signed a self-signed certificate. It is accepted if the user's file
            // contains it.
            Err(error) if self.trusted.contains(end_entity) => {
                if is_of_time(&error) {
                    return Err(error);
                }
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)
                    .map(|()| ServerCertVerified::assertion())
            }
            Err(error) => Err(error),
            Ok(verified) => {
                // The library does not report the authority at the end of the chain, so check that
                // the chain also leads to an authority within its validity period.
                let time_of =
                    |certificate: &CertificateDer<'static>| self.out_of_time(certificate, server_name, now);
                let Some(fault) = self.trusted.iter().find_map(time_of) else { return Ok(verified) };
                let valid: Vec<_> = self
                    .trusted
                    .iter()
                    .filter(|certificate| time_of(certificate).is_none())
                    .cloned()
                    .collect();
                let is_led_to = self.trusted.contains(end_entity)
                    || (!valid.is_empty() && verify(&*verifier(&valid, &self.provider)?).is_ok());
                if is_led_to { Ok(verified) } else { Err(OutdatedAuthority::error(&fault)) }
            }
        }
    }

    /// Returns the error of the library if the certificate is outside its validity period.
    fn out_of_time(
        &self,
        certificate: &CertificateDer<'_>,
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Option<CertificateError> {
        // The library checks the validity period first, before the purpose of the certificate.
        let verdict = self.chain.verify_server_cert(certificate, &[], server_name, &[], now);
        match verdict {
            Err(Error::InvalidCertificate(fault)) if validity(&fault).is_some() => Some(fault),
            _ => None,
        }
    }
}

fn verifier(
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

fn is_of_time(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(fault) if validity(fault).is_some())
}

/// The authority is outside its validity period; the certificate that it signed is not.
#[derive(Debug)]
struct OutdatedAuthority(String);

impl OutdatedAuthority {
    fn error(fault: &CertificateError) -> Error {
        let words = validity(fault).unwrap_or_default();
        Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(Self(words)))))
    }
}

impl fmt::Display for OutdatedAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(words) = self;
        write!(
            f,
            "the certificate of the authority in the given file {words}: use the file with its current certificate"
        )
    }
}

impl StdError for OutdatedAuthority {}

/// Describes a fault in the validity period, as the end of a sentence.
fn validity(fault: &CertificateError) -> Option<String> {
    let apart = |from: UnixTime, to: UnixTime| in_words(to.as_secs().saturating_sub(from.as_secs()));
    Some(match fault {
        CertificateError::Expired => "has expired".to_owned(),
        CertificateError::NotValidYet => "is not valid yet".to_owned(),
        CertificateError::ExpiredContext { time, not_after } => {
            format!("expired {} ago", apart(*not_after, *time))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            format!("becomes valid in {}", apart(*time, *not_before))
        }
        _ => return None,
    })
}

/// Formats a duration in the largest unit of which it has at least two.
fn in_words(seconds: u64) -> String {
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

/// Returns the error of the TLS library, with advice if there is any.
pub(crate) fn describe(error: &Error) -> String {
    let Error::InvalidCertificate(fault) = error else {
        return match error {
            Error::InvalidMessage(_) => format!("{error}: check that the server uses TLS on this port"),
            _ => error.to_string(),
        };
    };
    if let Some(words) = validity(fault) {
        return format!(
            "the server's certificate {words}: renew it on the server, or correct the clock of this machine"
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
            describe(&OutdatedAuthority::error(&expired(172_800))),
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
        // The text of the library comes first.
        let misnamed = Error::InvalidCertificate(CertificateError::NotValidForName);
        assert_eq!(describe(&misnamed), format!("{misnamed}: use the name in the server's certificate"));
        let other = Error::InvalidMessage(InvalidMessage::InvalidContentType);
        assert_eq!(describe(&other), format!("{other}: check that the server uses TLS on this port"));
        let general = Error::General("of the library".to_owned());
        assert_eq!(describe(&general), general.to_string());
    }
}
