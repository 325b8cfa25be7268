//! Files with the trust anchors of a resolver.

use crate::files::FileError;
use nonesuch_resolver::trust_anchors::{AnchorFileError, MAX_FILE_OCTETS, TrustAnchors};
use nonesuch_zone::open_regular;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Why a file with trust anchors is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum TrustAnchorsError {
    #[error("{0}")]
    File(#[from] FileError),
    #[error("{}: it is no UTF-8 text", path.display())]
    NotText { path: PathBuf },
    #[error("{}: {source}", path.display())]
    Content { path: PathBuf, source: AnchorFileError },
}

/// Returns the trust anchors of a file, or those of IANA if the root servers are those of the Internet.
/// Without a file, other root servers have none. `now` is in seconds since 1970.
pub(crate) fn trust_anchors(
    file: Option<&Path>,
    has_own_hints: bool,
    now: u32,
) -> Result<TrustAnchors, TrustAnchorsError> {
    match file {
        Some(path) => read_trust_anchors(path, now.into()),
        None if has_own_hints => Ok(TrustAnchors::default()),
        None => Ok(TrustAnchors::iana()),
    }
}

/// Reads a file with DS or DNSKEY records, a `root.key` of Unbound, or `root-anchors.xml` of IANA, in
/// which the keys that are not valid at `now`, in seconds since 1970, are skipped.
fn read_trust_anchors(path: &Path, now: u64) -> Result<TrustAnchors, TrustAnchorsError> {
    let octets = read(path).map_err(|source| FileError::Read { path: path.to_path_buf(), source })?;
    let text =
        String::from_utf8(octets).map_err(|_| TrustAnchorsError::NotText { path: path.to_path_buf() })?;
    let content = |source| TrustAnchorsError::Content { path: path.to_path_buf(), source };
    TrustAnchors::read_at(&text, now).map_err(content)
}

/// Reads a file up to one octet above the maximum, which the reader of the text rejects.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    open_regular(path)?.take(MAX_FILE_OCTETS as u64 + 1).read_to_end(&mut text)?;
    Ok(text)
}
