//! Certificates for tests of TLS, made for the test.
#![allow(dead_code, unreachable_pub)] // each test program uses its own part

use std::fs;
use std::path::{Path, PathBuf};

/// The name that [`Certificates::server`] is for.
pub const HOST: &str = "ns.example";

/// An authority, a certificate by it for [`HOST`] with its key, and an authority that has signed nothing.
pub struct Certificates {
    pub authority: PathBuf,
    pub server: PathBuf,
    pub key: PathBuf,
    pub stranger: PathBuf,
}

impl Certificates {
    /// Makes them in `folder`.
    pub fn make(folder: &Path) -> Self {
        let (authority, stranger) = (make_authority("ours"), make_authority("another"));
        let key = rcgen::KeyPair::generate().expect("a key");
        let server = rcgen::CertificateParams::new(vec![HOST.to_owned()]).expect("parameters");
        let server = server.signed_by(&key, &authority).expect("signed");
        let write = |name: &str, text: &str| {
            fs::write(folder.join(name), text).expect("written");
            folder.join(name)
        };
        Self {
            authority: write("authority.pem", &authority.pem()),
            server: write("server.pem", &server.pem()),
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
