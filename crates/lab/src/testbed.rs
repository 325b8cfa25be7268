//! A resolver between a load generator and the servers of a local tree, in network namespaces of
//! their own. Therefore all of them can use port 53 and any address, and reach nothing else.
//!
//! The resolver has one CPU; load generator, authoritative servers and the simulated path have
//! another.

mod composer;
mod error;
mod network;
mod resolver;
mod servers;
mod tree_files;

pub(crate) use error::TestbedError;
pub(crate) use network::{LinkPlace, Network, PlacedLink, Site};
pub(crate) use resolver::{RecordedPeer, Resolver, ResolverOptions, RunningResolver};
pub(crate) use servers::{ServersOptions, TreeServers, UpstreamCounts, ZoneServer};
pub(crate) use tree_files::TreeFiles;

use std::os::unix::fs::MetadataExt as _;
use std::{fs, path::Path};

/// Time limit for a resolver or server to be ready.
const READY_LIMIT: std::time::Duration = std::time::Duration::from_secs(300);

/// The setting without which root does not listen on an address that a network can reach. A
/// namespace has no such network.
fn user_setting() -> &'static str {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if is_root { "user = \"root\"\n" } else { "" }
}

/// A value in a TOML file.
pub(crate) fn quoted(path: &Path) -> String {
    toml::Value::String(path.display().to_string()).to_string()
}

#[cfg(test)]
mod tests;
