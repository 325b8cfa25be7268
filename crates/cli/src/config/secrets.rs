//! Secrets: in files of their own, or in the configuration, which nobody else may read then.

use super::reader::Section;
use super::sources::Role;
use crate::files::{is_open, read_key_file};
use std::path::Path;
use zeroize::Zeroizing;

/// Reads a secret of a bounded regular file; what is wrong is reported of `key`.
pub(super) fn read_secret_file(
    section: &Section<'_, '_>,
    key: &str,
    path: &Path,
) -> Option<Zeroizing<String>> {
    section.note_file(key, path, Role::Secret);
    let text = read_key_file(path).map_err(|failure| section.fault(key, failure.to_string())).ok()?;
    warn_of_open(section, key, path);
    Some(text)
}

/// Warns of a file with a secret that everybody may read.
pub(super) fn warn_of_open(section: &Section<'_, '_>, key: &str, path: &Path) {
    if is_open(path) {
        section.warn(key, format!("{}: everybody may read this secret: chmod o= it", path.display()));
    }
}

/// Warns of a secret that stands in a configuration which everybody may read.
pub(super) fn warn_of_inline(section: &Section<'_, '_>, key: &str) {
    if is_open(section.context().path()) {
        section.warn(key, "everybody may read this file and the secret: chmod o= it, or use secret-file");
    }
}
