//! Making a catalog zone of a list of zones (RFC 9432 §4).

use super::{Catalog, Group, ProducedMember};
use nonesuch_proto::{Name, NameRef, Rtype, serial};
use nonesuch_zone::{Builder, ChangeSet, Contents, SourceLocation, ZoneFault};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::convert::Infallible;
use std::hash::Hasher as _;

/// The name that nobody has (RFC 2606 §2), as server and mailbox of a zone that nobody asks.
const INVALID: &[u8] = b"\x07invalid\0";
/// REFRESH, RETRY, EXPIRE and MINIMUM of the SOA record: those of the example of RFC 9432, appendix A. The list of zones does not
/// expire for years.
const TIMES: [u32; 4] = [3600, 600, 2_147_483_646, 0];
/// TTL of all records: it has no meaning (§4.1).
const TTL: u32 = 0;

/// Why no catalog can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProduceError {
    /// The names below the catalog's would have more than 255 octets.
    #[error("the name of the catalog {0} is too long: give it one of at most 200 octets")]
    NameTooLong(Name),
    /// A group does not fit a character string.
    #[error("the group of {0} has more than 255 octets: shorten it")]
    GroupTooLong(Name),
    /// The records are no zone.
    #[error("{0}")]
    Zone(ZoneFault),
}

/// Makes the catalog zone at `apex` that lists `members`. Zones that are in the `previous` version keep
/// their labels. The serial is `now` (seconds since 1970), or the one after the previous one where that is not less. `None`
/// where nothing has changed.
///
/// # Errors
/// What does not fit the form of a catalog.
pub fn produce(
    apex: &Name,
    members: &[ProducedMember],
    previous: Option<&Contents>,
    now: u32,
) -> Result<Option<Contents>, ProduceError> {
    let Some(previous) = previous else { return build(apex, members, None, now).map(Some) };
    // What cannot be read as a catalog is replaced as a whole.
    let before = Catalog::read(previous).ok();
    let old_serial = previous.soa().map_or(0, |soa| soa.serial);
    let serial = if serial::is_before(old_serial, now) { now } else { old_serial.wrapping_add(1) };
    let candidate = build(apex, members, before.as_ref(), serial)?;
    let is_same = ChangeSet::between(previous, &candidate, |rrset| rrset.rtype() != Rtype::SOA).is_empty();
    Ok((!is_same).then_some(candidate))
}

fn build(
    apex: &Name,
    members: &[ProducedMember],
    before: Option<&Catalog>,
    serial: u32,
) -> Result<Contents, ProduceError> {
    let too_long = |_| ProduceError::NameTooLong(apex.clone());
    let below = |label: &[u8], parent: &Name| Name::prepend(label, parent.view()).map_err(too_long);
    let mut builder = Builder::default();
    let mut soa = [INVALID, INVALID, &serial.to_be_bytes()].concat();
    TIMES.iter().for_each(|time| soa.extend_from_slice(&time.to_be_bytes()));
    push(&mut builder, apex.view(), Rtype::SOA, &soa);
    push(&mut builder, apex.view(), Rtype::NS, INVALID);
    push(&mut builder, below(b"version", apex)?.view(), Rtype::TXT, b"\x012");
    let zones = below(b"zones", apex)?;
    for listed in members {
        let zone = listed.zone.view().to_canonical();
        let known = before.and_then(|catalog| catalog.members.get(&zone)).map(|member| member.label.clone());
        let label = known.or_else(|| listed.label.clone());
        let label = label.unwrap_or_else(|| make_label(&zone, before.map(|_| serial)));
        let owner = below(&label, &zones)?;
        push(&mut builder, owner.view(), Rtype::PTR, zone.wire());
        if let Some(catalog) = &listed.new_owner {
            push(&mut builder, below(b"coo", &owner)?.view(), Rtype::PTR, catalog.wire());
        }
        if let Some(group) = &listed.group {
            let group = Group::from_string(group.as_bytes());
            let group = group.ok_or_else(|| ProduceError::GroupTooLong(zone.clone()))?;
            push(&mut builder, below(b"group", &owner)?.view(), Rtype::TXT, group.rdata());
        }
    }
    let finished = builder.finish(Some(apex)).map_err(|error| ProduceError::Zone(error.fault))?;
    Ok(finished.contents)
}

fn push(builder: &mut Builder, owner: NameRef<'_>, rtype: Rtype, rdata: &[u8]) {
    let write = |out: &mut Vec<u8>| -> Result<(), Infallible> {
        out.extend_from_slice(rdata);
        Ok(())
    };
    let Ok(()) = builder.push(owner, rtype, TTL, SourceLocation::default(), write);
}

/// A label that no other zone has. In a first version it depends on the zone alone: one that is made anew, since the last one
/// was lost, resets no zone (RFC 9432 §5.4). Later it depends on the serial too: a zone that is taken out and put in again gets
/// another one, and its state is reset.
fn make_label(zone: &Name, serial: Option<u32>) -> Vec<u8> {
    let mut hasher = SipHasher24::new();
    if let Some(serial) = serial {
        hasher.write(&serial.to_be_bytes());
    }
    hasher.write(zone.wire());
    let hash = hasher.finish128().as_u128();
    format!("{hash:032x}").into_bytes()
}
