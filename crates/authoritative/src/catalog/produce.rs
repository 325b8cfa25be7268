//! Generates a catalog zone from a list of zones (RFC 9432 §4).

use super::{Catalog, Group, ProducedMember};
use nonesuch_proto::{Name, NameRef, Rtype, serial};
use nonesuch_zone::{Builder, ChangeSet, Contents, SourceLocation, ZoneFault};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::convert::Infallible;
use std::hash::Hasher as _;

/// The reserved name `invalid.` (RFC 2606 §2), as name server and mailbox: resolvers do not query a
/// catalog zone.
const INVALID_NAME: &[u8] = b"\x07invalid\0";
/// REFRESH, RETRY, EXPIRE and MINIMUM of the SOA record, from the example in RFC 9432, appendix A.
/// EXPIRE is about 68 years.
const SOA_TIMES: [u32; 4] = [3600, 600, 2_147_483_646, 0];
/// TTL of all records. Consumers ignore it (§4.1).
const TTL: u32 = 0;

/// Reasons why a catalog cannot be generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProduceError {
    /// A name in the catalog zone would be longer than 255 octets.
    #[error("the name of the catalog {0} is too long: use a name of at most 200 octets")]
    NameTooLong(Name),
    /// A group does not fit into a character string.
    #[error("the group of {0} has more than 255 octets: shorten it")]
    GroupTooLong(Name),
    /// The records do not form a valid zone.
    #[error("{0}")]
    Zone(ZoneFault),
}

/// Generates the catalog zone at `apex` that lists `members`. Zones in the `previous` version
/// retain their labels. The serial is `now` (seconds since 1970), or the previous serial plus 1 if
/// `now` is not greater. Returns `None` if nothing changed.
///
/// # Errors
/// Returns an error if a name or group is too long for a catalog, or if the records do not form a
/// valid zone.
pub fn produce(
    apex: &Name,
    members: &[ProducedMember],
    previous: Option<&Contents>,
    now: u32,
) -> Result<Option<Contents>, ProduceError> {
    let Some(previous) = previous else { return build_catalog(apex, members, None, now).map(Some) };
    // If the previous version is not a valid catalog, the new version does not depend on it.
    let before = Catalog::read(previous).ok();
    let old_serial = previous.soa().map_or(0, |soa| soa.serial);
    let serial = if serial::is_before(old_serial, now) { now } else { old_serial.wrapping_add(1) };
    let candidate = build_catalog(apex, members, before.as_ref(), serial)?;
    let is_same = ChangeSet::between(previous, &candidate, |rrset| rrset.rtype() != Rtype::SOA).is_empty();
    Ok((!is_same).then_some(candidate))
}

/// Builds the catalog zone. Zones in `before`, the previous version, retain their labels.
fn build_catalog(
    apex: &Name,
    members: &[ProducedMember],
    before: Option<&Catalog>,
    serial: u32,
) -> Result<Contents, ProduceError> {
    let too_long = |_| ProduceError::NameTooLong(apex.clone());
    let child_name = |label: &[u8], parent: &Name| Name::prepend(label, parent.view()).map_err(too_long);
    let mut builder = Builder::default();
    let mut soa = [INVALID_NAME, INVALID_NAME, &serial.to_be_bytes()].concat();
    SOA_TIMES.iter().for_each(|time| soa.extend_from_slice(&time.to_be_bytes()));
    push(&mut builder, apex.view(), Rtype::SOA, &soa);
    push(&mut builder, apex.view(), Rtype::NS, INVALID_NAME);
    push(&mut builder, child_name(b"version", apex)?.view(), Rtype::TXT, b"\x012");
    let zones = child_name(b"zones", apex)?;
    for member in members {
        let zone = member.zone.view().to_canonical();
        let known = before.and_then(|catalog| catalog.members.get(&zone)).map(|known| known.label.clone());
        let label = known.or_else(|| member.label.clone());
        let label = label.unwrap_or_else(|| generate_label(&zone, before.map(|_| serial)));
        let owner = child_name(&label, &zones)?;
        push(&mut builder, owner.view(), Rtype::PTR, zone.wire());
        if let Some(catalog) = &member.new_owner {
            push(&mut builder, child_name(b"coo", &owner)?.view(), Rtype::PTR, catalog.wire());
        }
        if let Some(group) = &member.group {
            let group = Group::from_octets(group.as_bytes());
            let group = group.ok_or_else(|| ProduceError::GroupTooLong(zone.clone()))?;
            push(&mut builder, child_name(b"group", &owner)?.view(), Rtype::TXT, group.rdata());
        }
    }
    let finished = builder.finish(Some(apex)).map_err(|error| ProduceError::Zone(error.fault))?;
    Ok(finished.contents)
}

/// Adds a record to the zone.
fn push(builder: &mut Builder, owner: NameRef<'_>, rtype: Rtype, rdata: &[u8]) {
    let write = |out: &mut Vec<u8>| -> Result<(), Infallible> {
        out.extend_from_slice(rdata);
        Ok(())
    };
    let Ok(()) = builder.push(owner, rtype, TTL, SourceLocation::default(), write);
}

/// Returns a label that no other zone has. In the first version of a catalog, it depends only on
/// the zone. Therefore a catalog that is generated again after a loss resets no zones (RFC 9432
/// §5.4). In later versions, it also depends on the serial. Therefore a zone that is removed and
/// added again gets a new label, and consumers reset its state.
fn generate_label(zone: &Name, serial: Option<u32>) -> Vec<u8> {
    let mut hasher = SipHasher24::new();
    if let Some(serial) = serial {
        hasher.write(&serial.to_be_bytes());
    }
    hasher.write(zone.wire());
    let hash = hasher.finish128().as_u128();
    format!("{hash:032x}").into_bytes()
}
