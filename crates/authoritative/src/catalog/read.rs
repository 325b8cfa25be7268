//! Reads a catalog zone (RFC 9432 §4).

use super::{Catalog, Group, Member};
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::{Contents, Node};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The supported schema version (§4.2.1), as the RDATA of a TXT record.
const VERSION_RDATA: &[u8] = b"\x012";

/// Reasons why a catalog zone is broken. A consumer must not process it (§4.1, §4.2): it neither
/// removes nor reconfigures the member zones of the last valid version until it receives a valid
/// version (§5.1).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The zone has no SOA record.
    #[error("the catalog {0} has no SOA record")]
    NoSoa(Name),
    /// The version record is missing.
    #[error("the catalog has no TXT record at {0}: this record must contain the catalog version, \"2\"")]
    NoVersion(Name),
    /// The zone has several version records.
    #[error("the catalog has several TXT records at {0}: exactly one is permitted, \"2\"")]
    SeveralVersions(Name),
    /// The version is not supported.
    #[error("the catalog version in the TXT record at {0} is not \"2\": only version 2 is supported")]
    OtherVersion(Name),
    /// A member or its `coo` property has several PTR records.
    #[error("the catalog has several PTR records at {0}: exactly one is permitted")]
    SeveralPointers(Name),
    /// Two member nodes contain the same zone (§4.1).
    #[error("the catalog lists the zone {zone} at two member nodes, {} and {}: remove one of them", nodes[0], nodes[1])]
    SeveralNodes {
        /// The member zone.
        zone: Name,
        /// The owner names of both PTR records.
        nodes: [Name; 2],
    },
    /// The name of the catalog is too long for the names below it.
    #[error("the name of the catalog {0} is too long for the names below it")]
    NameTooLong(Name),
}

impl Catalog {
    /// Reads a catalog zone. Ignores records that this version does not define (§3).
    ///
    /// # Errors
    /// Returns the reason why the catalog is broken.
    pub fn read(contents: &Contents) -> Result<Self, CatalogError> {
        let apex = contents.apex();
        contents.soa().ok_or_else(|| CatalogError::NoSoa(apex.clone()))?;
        check_version(contents)?;
        let zones = child_name(b"zones", apex)?;
        let mut nodes: BTreeMap<Vec<u8>, Properties<'_>> = BTreeMap::new();
        for node in contents.nodes().filter(|node| node.name().is_below(zones.view())) {
            collect_properties(node, zones.view().label_count(), &mut nodes)?;
        }
        let mut catalog = Self { apex: apex.view().to_canonical(), members: BTreeMap::new() };
        for (label, properties) in nodes {
            let Some(zone) = properties.zone else { continue };
            let new_owner = properties.new_owner.map(NameRef::to_canonical);
            let member = Member { label, groups: properties.groups, new_owner };
            match catalog.members.entry(zone.to_canonical()) {
                Entry::Vacant(entry) => drop(entry.insert(member)),
                // §4.1: two member nodes with the same PTR value make the catalog broken. The
                // consumer cannot determine which of them has the state of the zone (§5.4).
                Entry::Occupied(entry) => {
                    let nodes = [child_name(&entry.get().label, &zones)?, child_name(&member.label, &zones)?];
                    return Err(CatalogError::SeveralNodes { zone: entry.key().clone(), nodes });
                }
            }
        }
        Ok(catalog)
    }
}

/// Properties of a unique label.
#[derive(Default)]
struct Properties<'c> {
    zone: Option<NameRef<'c>>,
    groups: Vec<Group>,
    new_owner: Option<NameRef<'c>>,
}

/// Adds the properties in `node` to those of its unique label in `nodes`. The node is a member node
/// or a property of a member. `depth` is the number of labels of the name `zones.<apex>`.
fn collect_properties<'c>(
    node: Node<'c>,
    depth: usize,
    nodes: &mut BTreeMap<Vec<u8>, Properties<'c>>,
) -> Result<(), CatalogError> {
    let labels: Vec<Vec<u8>> = node.name().labels().map(<[u8]>::to_ascii_lowercase).collect();
    let Some(label_count) = labels.len().checked_sub(depth) else { return Ok(()) };
    match &labels[..label_count] {
        [label] => {
            if let Some(zone) = single_ptr(node)? {
                nodes.entry(label.clone()).or_default().zone = Some(zone);
            }
        }
        [property, label] if property == b"coo" => {
            let new_owner = single_ptr(node)?;
            nodes.entry(label.clone()).or_default().new_owner = new_owner;
        }
        [property, label] if property == b"group" => {
            let texts = node.rrset(Rtype::TXT).into_iter().flat_map(|rrset| rrset.rdatas());
            nodes.entry(label.clone()).or_default().groups = texts.map(Group::from_rdata).collect();
        }
        _ => {}
    }
    Ok(())
}

/// Returns the target of the single PTR record of a node, if it has one.
fn single_ptr(node: Node<'_>) -> Result<Option<NameRef<'_>>, CatalogError> {
    let Some(rrset) = node.rrset(Rtype::PTR) else { return Ok(None) };
    if rrset.count() > 1 {
        return Err(CatalogError::SeveralPointers(node.name().to_name()));
    }
    Ok(rrset.rdatas().next().and_then(|rdata| NameRef::from_wire(rdata).ok()))
}

/// Checks the version record (§4.2.1).
fn check_version(contents: &Contents) -> Result<(), CatalogError> {
    let name = child_name(b"version", contents.apex())?;
    let rrset = contents.find(name.view()).ok().and_then(|node| node.rrset(Rtype::TXT));
    let Some(rrset) = rrset else { return Err(CatalogError::NoVersion(name)) };
    if rrset.count() > 1 {
        return Err(CatalogError::SeveralVersions(name));
    }
    if rrset.rdatas().next() != Some(VERSION_RDATA) {
        return Err(CatalogError::OtherVersion(name));
    }
    Ok(())
}

/// Returns the name that consists of `label` and `apex`.
fn child_name(label: &[u8], apex: &Name) -> Result<Name, CatalogError> {
    Name::prepend(label, apex.view()).map_err(|_| CatalogError::NameTooLong(apex.clone()))
}
