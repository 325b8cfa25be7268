//! A tree in a directory, and what resolvers must know of it.

use super::TestbedError;
use crate::peers::{RootServer, TrustAnchor};
use crate::tree::{AnchorForm, Description, Tree};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// A zone of a tree.
#[derive(Debug)]
pub(super) struct ZoneFile {
    /// The apex.
    pub(super) origin: String,
    /// Name of its zone file, and of the directory of its keys.
    pub(super) file: String,
    pub(super) server: Ipv4Addr,
}

/// A tree whose files are written.
#[derive(Debug)]
pub(crate) struct TreeFiles {
    pub(crate) directory: PathBuf,
    /// Addresses of the authoritative servers.
    pub(crate) addresses: Vec<Ipv4Addr>,
    /// Those of zones in a conservative transition.
    pub(super) transitions: Vec<Ipv4Addr>,
    pub(crate) root: RootServer,
    /// Trust anchors; none if the root zone is not signed.
    pub(crate) anchors: Vec<TrustAnchor>,
    pub(super) zones: Vec<ZoneFile>,
}

impl TreeFiles {
    /// Builds the tree and writes it to `directory`, which must be empty or missing.
    pub(crate) fn write(
        description: &Description,
        seed: u64,
        now: u32,
        directory: &Path,
    ) -> Result<Self, TestbedError> {
        let tree = Tree::build(description, seed, now)?;
        tree.write(directory)?;
        Ok(Self::of(&tree, directory))
    }

    fn of(tree: &Tree, directory: &Path) -> Self {
        let root = tree.zones.iter().find(|zone| zone.parent.is_none());
        // A tree has a root zone.
        let root = root.map_or_else(
            || RootServer { name: ".".to_owned(), address: Ipv4Addr::LOCALHOST },
            |zone| RootServer { name: zone.nameserver.to_string(), address: zone.server },
        );
        let zones = tree.zones.iter().map(|zone| ZoneFile {
            origin: zone.origin.to_string(),
            file: zone.file_name(),
            server: zone.server,
        });
        let changing = tree.zones.iter().filter(|zone| zone.successor.is_some());
        let transitions: BTreeSet<Ipv4Addr> = changing.map(|zone| zone.server).collect();
        let text = tree.anchors(AnchorForm::Ds);
        let ds = text.lines().filter_map(|line| line.split_once(" DS "));
        Self {
            directory: directory.to_owned(),
            addresses: tree.servers().into_keys().collect(),
            transitions: transitions.into_iter().collect(),
            root,
            anchors: ds.map(|(_, ds)| TrustAnchor { zone: ".".to_owned(), ds: ds.to_owned() }).collect(),
            zones: zones.collect(),
        }
    }

    /// File with the root hints.
    pub(super) fn hints(&self) -> PathBuf {
        self.directory.join("root.hints")
    }

    /// File with the trust anchors.
    pub(super) fn anchor_file(&self) -> PathBuf {
        self.directory.join("anchor.ds")
    }
}
