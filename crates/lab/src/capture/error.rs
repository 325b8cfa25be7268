//! Errors of captures.

use nonesuch_zone::read::read_remedy;
use std::io;
use std::path::PathBuf;

/// Why a capture cannot be read or anonymised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum CaptureError {
    #[error("{}: cannot be opened: {source}{}", path.display(), read_remedy(source))]
    Open { path: PathBuf, source: io::Error },
    #[error("{}: octet {offset}: cannot be read: {source}", path.display())]
    Read { path: PathBuf, offset: u64, source: io::Error },
    #[error(
        "{}: is not a capture: expected a pcap, pcapng or dnstap file; decompress a compressed file first",
        path.display()
    )]
    Format { path: PathBuf },
    #[error("{}: contains frames of another type than dnstap: name a dnstap file", path.display())]
    ContentType { path: PathBuf },
    #[error(
        "{}: octet {offset}: malformed {what}: the file is damaged: to read what precedes the fault, cut the file \
        there (head -c {offset})",
        path.display()
    )]
    Malformed { path: PathBuf, offset: u64, what: &'static str },
    #[error(
        "{}: octet {offset}: a block of {octets} octets exceeds the limit of {limit} octets: the file is damaged, or \
        is not a capture of DNS traffic",
        path.display()
    )]
    TooLarge { path: PathBuf, offset: u64, octets: u64, limit: u64 },
    #[error("the cryptographic library failed to anonymise an address: report this as a bug in nonesuch")]
    Cipher,
}

/// Why a key for anonymisation cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum KeyError {
    #[error("{}: the key cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: the key cannot be created: {source}", path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error(
        "{}: is not a key: expected 64 hexadecimal digits; name another file, or a new file, which will be created",
        path.display()
    )]
    Malformed { path: PathBuf },
    #[error("{}: other users can read the key: chmod 600 {}", path.display(), path.display())]
    Exposed { path: PathBuf },
    #[error("the system returned no random octets for a key: {0}")]
    Random(getrandom::Error),
    #[error("the cryptographic library rejected the key: report this as a bug in nonesuch")]
    Cipher,
}
