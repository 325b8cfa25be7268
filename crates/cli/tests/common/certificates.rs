//! Certificates for tests of TLS, generated for each test.
#![allow(dead_code, unreachable_pub)] // each test program uses its own part

use std::fs;
use std::path::{Path, PathBuf};

/// The name of the [`Certificates::server`] certificate.
pub const HOST: &str = "ns.example";

/// An authority, its certificate for [`HOST`] with the key, an expired certificate of the same key,
/// and an authority that has signed nothing.
#[derive(Clone)]
pub struct Certificates {
    pub authority: PathBuf,
    pub server: PathBuf,
    pub key: PathBuf,
    pub expired: PathBuf,
    pub stranger: PathBuf,
}

impl Certificates {
    /// Generates the certificates in `folder`.
    pub fn make(folder: &Path) -> Self {
        let (authority, stranger) = (make_authority("ours"), make_authority("another"));
        let key = rcgen::KeyPair::generate().expect("a key");
        let parameters = rcgen::CertificateParams::new(vec![HOST.to_owned()]).expect("parameters");
        let server = parameters.signed_by(&key, &authority).expect("signed");
        let mut expired = parameters;
        (expired.not_before, expired.not_after) =
            (rcgen::date_time_ymd(2001, 1, 1), rcgen::date_time_ymd(2002, 1, 1));
        let expired = expired.signed_by(&key, &authority).expect("signed");
        let write = |name: &str, text: &str| {
            fs::write(folder.join(name), text).expect("written");
            folder.join(name)
        };
        Self {
            authority: write("authority.pem", &authority.pem()),
            server: write("server.pem", &server.pem()),
            expired: write("expired.pem", &expired.pem()),
            key: write("server.key", &key.serialize_pem()),
            stranger: write("stranger.pem", &stranger.pem()),
        }
    }
}

fn make_authority(name: &str) -> rcgen::CertifiedIssuer<'static, rcgen::KeyPair> {
    let mut parameters = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
    let key = rcgen::KeyPair::generate().expect("a key");
    rcgen::CertifiedIssuer::self_signed(parameters, key).expect("an authority")
}
