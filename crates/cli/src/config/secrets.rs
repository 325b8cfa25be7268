//! Secrets: in files of their own, or in the configuration, which nobody else may read then.

use super::reader::Section;
use super::sources::Role;
use crate::files::read_key_file;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use zeroize::Zeroizing;

/// Bit of the permissions of a file: those may read it who are neither its owner nor of its group.
const OTHERS_READ: u32 = 0o004;

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

fn is_open(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & OTHERS_READ != 0)
}
