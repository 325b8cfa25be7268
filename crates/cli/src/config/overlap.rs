//! Detects paths that would damage files: operator files in the directory of stored zones, and a
//! file at the path of the control socket that is not a socket.

use super::section::Diagnostics;
use super::sources::FileRole;
use nonesuch_authoritative::service::StateDirectory;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};

/// Rejects two kinds of paths before anything is served: operator files in the directory of stored
/// zones, because the server would overwrite them, and another kind of file at the path of the
/// control socket.
pub(super) fn check(diagnostics: &Diagnostics, state_dir: Option<&Path>) {
    let mut paths = ResolvedPaths::default();
    let stored_zones = state_dir.map(|dir| (dir, paths.resolve(&StateDirectory::zones_directory(dir))));
    for file in diagnostics.files().iter() {
        let fault = |message: String| diagnostics.report_fault(&file.location, message);
        let shown = file.path.display();
        if let Some((dir, stored_zones)) = stored_zones.as_ref().filter(|_| file.role.is_input())
            && paths.resolve(&file.path).starts_with(stored_zones)
        {
            let dir = dir.display();
            fault(format!(
                "{shown}: is in the directory of the server's stored versions ({dir}/zones), where the \
                    server would overwrite or remove it: move it to another directory"
            ));
        }
        if file.role == FileRole::Control
            && fs::symlink_metadata(&file.path).is_ok_and(|found| !found.file_type().is_socket())
        {
            fault(format!("{shown}: exists and is not a socket: name another path, or move the file"));
        }
    }
}

/// Resolves symbolic links in paths as far as the paths exist. Each directory is resolved only
/// once.
#[derive(Debug, Default)]
struct ResolvedPaths(HashMap<PathBuf, PathBuf>);

impl ResolvedPaths {
    fn resolve(&mut self, path: &Path) -> PathBuf {
        let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_symlink());
        let (Some(directory), Some(name), false) = (path.parent(), path.file_name(), is_link) else {
            return resolve(path);
        };
        if let Some(known) = self.0.get(directory) {
            return known.join(name);
        }
        let known = resolve(directory);
        self.0.insert(directory.to_path_buf(), known.clone());
        known.join(name)
    }
}

/// The absolute path of `path`. Links are resolved in the part of the path that exists. The missing
/// part stays as written, except that `..` removes the component before it.
fn resolve(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut missing = Vec::new();
    let mut existing = path.as_path();
    let mut resolved = loop {
        match (fs::canonicalize(existing), existing.parent()) {
            (Ok(found), _) => break found,
            (Err(_), Some(parent)) => {
                missing.extend(existing.components().next_back());
                existing = parent;
            }
            (Err(_), None) => break existing.to_path_buf(),
        }
    };
    for component in missing.into_iter().rev() {
        match component {
            Component::ParentDir => drop(resolved.pop()),
            other => resolved.push(other),
        }
    }
    resolved
}

#[cfg(test)]
mod tests;
