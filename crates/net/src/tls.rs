//! TLS for connections (RFC 7858, RFC 8310): the identity of a server (its certificates and private
//! key), and the verification of servers by a client.
//!
//! Supports TLS 1.3 and 1.2 with the ALPN protocol `dot`. Zone transfers require TLS 1.3. Sessions
//! are resumed with tickets that only this process can decrypt. Early data (0-RTT) can be replayed,
//! so it is neither sent nor accepted.

mod server_cert_verifier;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, InconsistentKeys, ServerConfig,
    SignatureScheme, SupportedProtocolVersion,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use zeroize::Zeroizing;

use crate::error::TlsError;
use server_cert_verifier::AuthorityCertVerifier;
pub(crate) use server_cert_verifier::{certificate_names, describe};

/// The ALPN protocol of DNS over TLS.
const ALPN: &[u8] = b"dot";
/// Versions of TLS for queries. RFC 9325 §3.1.1: 1.3 if both sides support it, else 1.2, and no
/// older version.
const VERSIONS: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];
/// Versions of TLS for a client that transfers zones (RFC 9103 §7.2).
const TRANSFER_VERSIONS: &[&SupportedProtocolVersion] = &[&TLS13];

/// Maximum size of a file with certificates or a private key, in octets.
pub const PEM_OCTETS_MAX: usize = 1 << 20;

/// The certificates and the private key of a server.
#[derive(Clone)]
pub struct ServerIdentity {
    configuration: Arc<ServerConfig>,
}

impl fmt::Debug for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerIdentity")
    }
}

impl ServerIdentity {
    /// Reads PEM files: `certificates` has the certificate chain, with the certificate of the
    /// server first; `key` has the private key.
    ///
    /// # Errors
    /// Fails if a file cannot be read or is invalid, or if the key does not belong to the first
    /// certificate. [`TlsError`] contains the file and advice.
    pub fn load(certificates: &Path, key: &Path) -> Result<Self, TlsError> {
        let chain = read_certificates(certificates)?;
        let octets = read_pem(key)?;
        let private =
            PrivateKeyDer::from_pem_slice(&octets).map_err(|_| TlsError::NoKey { path: key.to_owned() })?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let certified = CertifiedKey::from_der(chain, private, &provider).map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                TlsError::KeyMismatch { certificates: certificates.to_owned(), key: key.to_owned() }
            }
            source @ Error::InvalidCertificate(_) => {
                TlsError::Certificate { path: certificates.to_owned(), source }
            }
            source => TlsError::Key { path: key.to_owned(), source },
        })?;
        Self::new(certified, provider)
    }

    fn new(certified: CertifiedKey, provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let mut configuration = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(VERSIONS)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        configuration.alpn_protocols = vec![ALPN.to_vec()];
        configuration.ticketer = aws_lc_rs::Ticketer::new()?;
        // A client needs one ticket to resume a session. A second one would only serve parallel
        // connections.
        configuration.send_tls13_tickets = 1;
        configuration.max_early_data_size = 0;
        Ok(Self { configuration: Arc::new(configuration) })
    }
}

/// A slot with the identity for new connections. The identity can be replaced while a server runs.
/// Clones share the same slot.
#[derive(Clone, Debug)]
pub struct IdentitySlot(Arc<RwLock<ServerIdentity>>);

impl IdentitySlot {
    /// Returns a slot with `identity`.
    #[must_use]
    pub fn new(identity: ServerIdentity) -> Self {
        Self(Arc::new(RwLock::new(identity)))
    }

    /// Replaces the identity for new connections. Open connections keep the identity with which
    /// they began.
    pub fn replace(&self, identity: ServerIdentity) {
        // No code panics while the lock is held, and the value is always complete.
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = identity;
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let identity = self.0.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&identity.configuration))
    }
}

/// TLS settings of a client, including the verification of servers.
#[derive(Clone)]
pub struct ClientTls {
    configuration: Arc<ClientConfig>,
    /// The name for which the certificate must be valid. `None`: it must be valid for the address
    /// of the server.
    server_name: Option<ServerName<'static>>,
    /// Whether the client verifies the certificate of the server.
    authenticated: bool,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls")
            .field("server_name", &self.server_name)
            .field("authenticated", &self.authenticated)
            .finish()
    }
}

impl ClientTls {
    /// Returns settings that accept a server with a certificate for `hostname`, or for the server's
    /// address if `hostname` is `None`. `authorities` is a PEM file. An authority in it must have
    /// signed the certificate, or the file must contain the certificate itself (the strict profile
    /// of RFC 8310 section 5). The certificate and the authority must be within their validity
    /// periods.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is invalid, or if `hostname` is not a valid host name.
    /// [`TlsError`] contains the file and advice.
    pub fn authenticated(authorities: &Path, hostname: Option<&str>) -> Result<Self, TlsError> {
        Self::new(Some(authorities), hostname, VERSIONS)
    }

    /// Returns settings for zone transfers (RFC 9103): only TLS 1.3. With a file of `authorities`,
    /// the client verifies the server like [`authenticated`](Self::authenticated). Without one, it
    /// accepts every server like [`opportunistic`](Self::opportunistic).
    ///
    /// # Errors
    /// The errors of these functions.
    pub fn for_transfers(authorities: Option<&Path>, hostname: Option<&str>) -> Result<Self, TlsError> {
        Self::new(authorities, hostname, TRANSFER_VERSIONS)
    }

    /// Returns settings that accept every server. TLS then protects only against passive observers
    /// (the opportunistic profile of RFC 8310 section 5). `hostname` is the server name that the
    /// client sends.
    ///
    /// # Errors
    /// Fails if `hostname` is not a valid host name.
    pub fn opportunistic(hostname: Option<&str>) -> Result<Self, TlsError> {
        Self::new(None, hostname, VERSIONS)
    }

    /// Whether the client verifies the certificate of the server.
    #[must_use]
    pub const fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    fn new(
        authorities: Option<&Path>,
        hostname: Option<&str>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<Self, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = authorities.map(|path| read_authorities(path, &provider)).transpose()?;
        let authenticated = verifier.is_some();
        let verification = ServerVerification { verifier, provider: Arc::clone(&provider) };
        let mut configuration = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verification))
            .with_no_client_auth();
        configuration.alpn_protocols = vec![ALPN.to_vec()];
        configuration.enable_early_data = false;
        let server_name = hostname.map(read_hostname).transpose()?;
        Ok(Self { configuration: Arc::new(configuration), server_name, authenticated })
    }

    pub(crate) fn connector(&self) -> TlsConnector {
        TlsConnector::from(Arc::clone(&self.configuration))
    }

    /// Returns a new connection to `server`.
    pub(crate) fn client(&self, server: IpAddr) -> Result<ClientConnection, Error> {
        ClientConnection::new(Arc::clone(&self.configuration), self.server_name(server))
    }

    pub(crate) fn server_name(&self, server: IpAddr) -> ServerName<'static> {
        self.server_name.clone().unwrap_or_else(|| ServerName::from(server))
    }
}

fn read_authorities(path: &Path, provider: &Arc<CryptoProvider>) -> Result<AuthorityCertVerifier, TlsError> {
    let trusted = read_certificates(path)?;
    AuthorityCertVerifier::new(trusted, provider)
        .map_err(|source| TlsError::Certificate { path: path.to_owned(), source })
}

/// Reads a host name in the form that certificates contain: without the final dot.
fn read_hostname(text: &str) -> Result<ServerName<'static>, TlsError> {
    let name = text.strip_suffix('.').unwrap_or(text);
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Hostname { text: text.to_owned() })
}

/// Reads a regular file of at most [`PEM_OCTETS_MAX`] octets, which are wiped from memory when
/// dropped.
fn read_pem(path: &Path) -> Result<Zeroizing<Vec<u8>>, TlsError> {
    let failed = |source| TlsError::Read { path: path.to_owned(), source };
    let check = |metadata: io::Result<fs::Metadata>| {
        let is_file = metadata.map_err(failed)?.is_file();
        if is_file { Ok(()) } else { Err(TlsError::NoRegularFile { path: path.to_owned() }) }
    };
    // Opening a device may have side effects.
    check(fs::metadata(path))?;
    // A pipe that has replaced the file meanwhile must not block.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(failed)?;
    check(file.metadata())?;
    // Reserve the full size: a growing vector leaves copies that are not wiped.
    let mut octets = Zeroizing::new(Vec::with_capacity(PEM_OCTETS_MAX + 1));
    file.take(PEM_OCTETS_MAX as u64 + 1).read_to_end(&mut octets).map_err(failed)?;
    if octets.len() > PEM_OCTETS_MAX {
        return Err(TlsError::TooLong { path: path.to_owned(), octets: PEM_OCTETS_MAX });
    }
    Ok(octets)
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let octets = read_pem(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&octets).collect();
    let certificates = certificates.map_err(|source| TlsError::Pem { path: path.to_owned(), source })?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate { path: path.to_owned() });
    }
    Ok(certificates)
}

/// Decides which certificates a client accepts. The signature in the handshake is always verified.
#[derive(Debug)]
struct ServerVerification {
    /// Decides about the certificate. `None`: the client accepts every certificate.
    verifier: Option<AuthorityCertVerifier>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ServerVerification {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(verifier) = &self.verifier else { return Ok(ServerCertVerified::assertion()) };
        verifier.verify(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
