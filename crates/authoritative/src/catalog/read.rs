//! Reads a catalog zone (RFC 9432 §4).

use super::{Catalog, Group, Member};
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::{Contents, Node};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The supported schema version (§4.2.1), as the RDATA of a TXT record.
const VERSION: &[u8] = b"\x012";

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
        let zones = below(b"zones", apex)?;
        let mut nodes: BTreeMap<Vec<u8>, Properties<'_>> = BTreeMap::new();
        for node in contents.nodes().filter(|node| node.name().is_below(zones.view())) {
            gather(node, zones.view().label_count(), &mut nodes)?;
        }
        let mut catalog = Self { apex: apex.view().to_canonical(), members: BTreeMap::new() };
        for (label, properties) in nodes {
            let Some(zone) = properties.zone else { continue };
            let new_owner = properties.new_owner.map(NameRef::to_canonical);
            let member = Member { label, groups: properties.groups, new_owner };
            match catalog.members.entry(zone.to_canonical()) {
                Entry::Vacant(place) => drop(place.insert(member)),
                // §4.1: two member nodes with the same PTR value make the catalog broken. The
                // consumer cannot determine which of them has the state of the zone (§5.4).
                Entry::Occupied(place) => {
                    let nodes = [below(&place.get().label, &zones)?, below(&member.label, &zones)?];
                    return Err(CatalogError::SeveralNodes { zone: place.key().clone(), nodes });
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

/// Collects the properties in a node below `zones`: a member, or a property of a member.
fn gather<'c>(
    node: Node<'c>,
    depth: usize,
    nodes: &mut BTreeMap<Vec<u8>, Properties<'c>>,
) -> Result<(), CatalogError> {
    let labels: Vec<Vec<u8>> = node.name().labels().map(<[u8]>::to_ascii_lowercase).collect();
    let Some(above) = labels.len().checked_sub(depth) else { return Ok(()) };
    match &labels[..above] {
        [label] => {
            if let Some(zone) = pointer(node)? {
                nodes.entry(label.clone()).or_default().zone = Some(zone);
            }
        }
        [property, label] if property == b"coo" => {
            let new_owner = pointer(node)?;
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

/// Returns the single PTR record of a node, if it has one.
fn pointer(node: Node<'_>) -> Result<Option<NameRef<'_>>, CatalogError> {
    let Some(rrset) = node.rrset(Rtype::PTR) else { return Ok(None) };
    if rrset.count() > 1 {
        return Err(CatalogError::SeveralPointers(node.name().to_name()));
    }
    Ok(rrset.rdatas().next().and_then(|rdata| NameRef::from_wire(rdata).ok()))
}

fn check_version(contents: &Contents) -> Result<(), CatalogError> {
    let name = below(b"version", contents.apex())?;
    let rrset = contents.find(name.view()).ok().and_then(|node| node.rrset(Rtype::TXT));
    let Some(rrset) = rrset else { return Err(CatalogError::NoVersion(name)) };
    if rrset.count() > 1 {
        return Err(CatalogError::SeveralVersions(name));
    }
    if rrset.rdatas().next() != Some(VERSION) {
        return Err(CatalogError::OtherVersion(name));
    }
    Ok(())
}

fn below(label: &[u8], apex: &Name) -> Result<Name, CatalogError> {
    Name::prepend(label, apex.view()).map_err(|_| CatalogError::NameTooLong(apex.clone()))
}
