//! Limit on open files.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Number of open files that a server needs in addition to its connections: sockets, zone files,
/// log.
const OTHER_FILES: u64 = 512;
/// Minimum of the limit on open files that the server requests. It covers the temporary files of
/// many zones, which [`OTHER_FILES`] does not include.
const MIN_REQUESTED_LIMIT: u64 = 65_536;

/// Raises the limit on open files to the number that `connections` require, as far as the system
/// allows.
pub(crate) fn raise_open_files(connections: u64) {
    let needed = connections.saturating_add(OTHER_FILES);
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let raised = new_soft_limit(needed, soft, hard);
    if raised <= soft && soft >= needed {
        return;
    }
    if setrlimit(Resource::RLIMIT_NOFILE, raised, hard).is_err() || raised < needed {
        tracing::warn!(
            name: "open-files-limit",
            "open files: limit {raised} is too low, {connections} connections need {needed}: raise the \
                limit (LimitNOFILE=), or lower tcp-connections"
        );
    }
}

/// The new soft limit for a server that needs `needed` open files, from the current limits.
fn new_soft_limit(needed: u64, soft: u64, hard: u64) -> u64 {
    needed.max(MIN_REQUESTED_LIMIT).min(hard).max(soft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_open_files_is_raised_as_far_as_the_system_allows() {
        for (needed, soft, hard, expected) in [
            (8_704, 1_024, 524_288, 65_536),
            (100_000, 1_024, 524_288, 100_000),
            (8_704, 1_024, 4_096, 4_096),
            (8_704, 200_000, 524_288, 200_000),
            (8_704, 524_288, 524_288, 524_288),
        ] {
            assert_eq!(new_soft_limit(needed, soft, hard), expected, "{needed} {soft} {hard}");
        }
    }
}
