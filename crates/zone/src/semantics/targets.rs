//! Lookup of the targets of NS, MX, SRV and PTR records in the zone.

use super::hostname;
use crate::contents::{Contents, Node};
use crate::name_status::NameStatus;
use nonesuch_proto::{MAX_NAME, NameRef, Rtype, WildcardBuffer};
use std::sync::atomic::AtomicBool;

/// State of the semantic checks of a zone.
pub(super) struct Checker<'z> {
    pub(super) contents: &'z Contents,
    pub(super) statuses: Vec<NameStatus>,
    /// For each node at or below a zone cut, whether an NS record refers to it.
    pub(super) is_used_glue: Vec<AtomicBool>,
    /// Expire field of the SOA record, in seconds.
    pub(super) expire: u32,
    /// Maximum number of findings of each kind.
    pub(super) limit: usize,
}

/// Result of the lookup of a name in the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolution {
    /// The name is not in the zone.
    OutOfZone,
    /// The name has authoritative addresses.
    Address,
    /// The name has addresses at or below a zone cut, at the node with this index.
    Glue(usize),
    /// The name is at or below a zone cut, and the zone has no address for it.
    Delegated,
    /// The name has a CNAME record.
    Alias,
    /// The name is below a DNAME record.
    BelowDname,
    /// The name has neither addresses nor an alias.
    NoAddress,
}

/// Properties of a target. They are the same for all records with this target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'z> {
    pub(super) name: NameRef<'z>,
    pub(super) is_address: bool,
    pub(super) is_hostname: bool,
    pub(super) resolution: Resolution,
}

/// Cache of recent lookups. Most delegations use one of a few sets of name servers.
pub(super) struct TargetCache<'z>(Vec<Option<Target<'z>>>);

/// Number of entries of the cache.
const CACHE_ENTRIES: usize = 8192;
/// Number of nodes, from the owner of the record on, that [`Checker::find_near`] searches first.
const NEAR_NODES: usize = 4;

impl<'z> TargetCache<'z> {
    pub(super) fn new() -> Self {
        Self(vec![None; CACHE_ENTRIES])
    }

    /// Looks up `name`, a target in the records of `node`.
    pub(super) fn find(&mut self, checker: &Checker<'z>, node: Node<'z>, name: NameRef<'z>) -> Target<'z> {
        if !name.is_at_or_below(checker.contents.apex().view()) {
            return checker.target(name, Resolution::OutOfZone);
        }
        if node.index() > 0 && name.is_at_or_below(node.name()) {
            return checker.target(name, checker.resolve(name, checker.find_near(node, name)));
        }
        let hash_octet = |hash: usize, octet: &u8| hash.wrapping_mul(31).wrapping_add(usize::from(*octet));
        let entry = &mut self.0[name.wire().iter().fold(0, hash_octet) % CACHE_ENTRIES];
        match entry {
            Some(target) if target.name.wire() == name.wire() => *target,
            _ => *entry.insert(checker.target(name, checker.resolve(name, checker.contents.find(name)))),
        }
    }
}

impl<'z> Checker<'z> {
    fn target(&self, name: NameRef<'z>, resolution: Resolution) -> Target<'z> {
        let is_address = hostname::is_address(name, self.contents.apex().view());
        Target { name, is_address, is_hostname: hostname::is_hostname(name), resolution }
    }

    /// Resolves a name in the zone. `found` is its node, or the index at which it would be
    /// inserted.
    fn resolve(&self, name: NameRef<'_>, found: Result<Node<'z>, usize>) -> Resolution {
        match found {
            Ok(node) => self.resolve_node(node),
            Err(at) => self.resolve_missing(at, name),
        }
    }

    /// Finds a name below the name of `node`. The glue of a delegation usually follows its NS
    /// records directly.
    fn find_near(&self, node: Node<'z>, name: NameRef<'_>) -> Result<Node<'z>, usize> {
        let near_nodes = (node.index()..self.contents.node_count()).take(NEAR_NODES);
        let found = near_nodes.map(|index| self.contents.node(index)).find(|near| near.name() == name);
        found.map_or_else(|| self.contents.find_from(node.index(), name), Ok)
    }

    fn resolve_node(&self, node: Node<'_>) -> Resolution {
        let has_address = node.has(Rtype::A) || node.has(Rtype::AAAA);
        match self.statuses[node.index()] {
            NameStatus::BelowDname => Resolution::BelowDname,
            NameStatus::Delegation | NameStatus::BelowCut if has_address => Resolution::Glue(node.index()),
            NameStatus::Delegation | NameStatus::BelowCut => Resolution::Delegated,
            NameStatus::Authoritative if has_address => Resolution::Address,
            NameStatus::Authoritative if node.has(Rtype::CNAME) => Resolution::Alias,
            NameStatus::Authoritative => Resolution::NoAddress,
        }
    }

    /// Resolves a name without records; `at` is the index at which it would be inserted. Searches,
    /// from the apex down, for a zone cut or a DNAME record above the name, and then for the
    /// wildcard at its closest encloser (RFC 4592 §3.3.1).
    fn resolve_missing(&self, at: usize, target: NameRef<'_>) -> Resolution {
        let apex = self.contents.apex().view();
        let mut encloser = apex;
        for count in apex.label_count()..target.label_count() {
            let name = target.suffix(count);
            match self.contents.find(name).map(|node| (node, self.statuses[node.index()])) {
                Ok((_, NameStatus::Delegation | NameStatus::BelowCut)) => return Resolution::Delegated,
                Ok((_, NameStatus::BelowDname)) => return Resolution::BelowDname,
                Ok((node, NameStatus::Authoritative)) if node.has(Rtype::DNAME) => {
                    return Resolution::BelowDname;
                }
                Ok(_) => encloser = name,
                Err(at) if self.is_empty_non_terminal(at, name) => encloser = name,
                Err(_) => break,
            }
        }
        if self.is_empty_non_terminal(at, target) {
            return Resolution::NoAddress;
        }
        let mut buffer: WildcardBuffer = [0; MAX_NAME + 2];
        let wildcard = self.contents.find(encloser.write_wildcard(&mut buffer));
        wildcard.map_or(Resolution::NoAddress, |wildcard| self.resolve_node(wildcard))
    }

    /// Whether a name exists below `name`, which owns no records; `at` is the index at which `name`
    /// would be inserted.
    fn is_empty_non_terminal(&self, at: usize, name: NameRef<'_>) -> bool {
        at < self.contents.node_count() && self.contents.node(at).name().is_below(name)
    }
}
