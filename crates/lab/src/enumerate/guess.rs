//! Guesses names online: one query for each.

use super::StopReason;
use super::client::{Client, records_of};
use super::labels::RandomLabels;
use super::mechanism::{below, covering_span, denial};
use nonesuch_dnssec::denial::{nsec3, nsec5};
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_proto::message::{Message, Rcode, Section};
use nonesuch_proto::{Name, NameRef, Rtype, bitmap};
use serde::Serialize;

/// The outcome of guesses online.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GuessReport {
    /// Number of names that were tested.
    pub tested: u64,
    /// Number of them that exist.
    pub found: u64,
    /// Number of names of the plan.
    pub planned: u64,
}

/// Tests the names below the zone, and calls `on_name` for each that exists.
///
/// # Errors
/// A limit is reached, the server does not answer, or a wildcard answers every name.
pub(super) fn guess(
    client: &mut Client,
    zone: &Name,
    labels: &mut RandomLabels,
    candidates: impl Iterator<Item = Vec<u8>>,
    report: &mut GuessReport,
    mut on_name: impl FnMut(Name),
) -> Result<(), StopReason> {
    let random = below(&labels.next(), zone)?;
    if exists(&denial(client, &random)?, zone.view(), random.view()) {
        return Err(StopReason::Wildcard);
    }
    let apex = zone.view().to_canonical();
    for prefix in candidates {
        let wire = [prefix.as_slice(), apex.wire()].concat();
        let Ok(name) = NameRef::from_wire(&wire) else { continue };
        let name = name.to_name();
        let response = denial(client, &name)?;
        report.tested += 1;
        if exists(&response, apex.view(), name.view()) {
            report.found += 1;
            on_name(name);
        }
    }
    Ok(())
}

/// Whether a response to a query for `name` shows that it exists.
fn exists(response: &Message, apex: NameRef<'_>, name: NameRef<'_>) -> bool {
    if response.rcode() == Rcode::NXDOMAIN {
        return false;
    }
    // RFC 9824 §3.1.
    let is_nxname = records_of(response, apex, Rtype::NSEC).any(|(owner, rdata)| {
        owner == name && NameRef::split_from(rdata).is_ok_and(|(_, map)| bitmap::contains(map, Rtype::NXNAME))
    });
    !is_nxname && !is_expanded(response, name) && !is_covered(response, apex, name)
}

/// Whether a signature shows that the answer is that of a wildcard (RFC 4035 §5.3.4).
fn is_expanded(response: &Message, name: NameRef<'_>) -> bool {
    response.section(Section::Answer).any(|record| {
        record.rtype == Rtype::RRSIG
            && record.owner.view() == name
            && Rrsig::parse(&record.rdata).is_some_and(|fields| fields.labels < name.rrsig_labels())
    })
}

/// Whether a denial record covers the name: the response is that of a wildcard.
fn is_covered(response: &Message, apex: NameRef<'_>, name: NameRef<'_>) -> bool {
    let by_nsec = covering_span(response, apex, name).is_some_and(|(_, next)| !next.view().is_below(name));
    let by_nsec3 = records_of(response, apex, Rtype::NSEC3).any(|(owner, rdata)| {
        let (Some(fields), Some(owner)) = (nsec3::Nsec3::parse(rdata), nsec3::decode_owner(owner, apex))
        else {
            return false;
        };
        let hash = nonesuch_crypto::nsec3_hash(name.to_canonical().wire(), fields.salt, fields.iterations);
        // Opt-out: an insecure delegation may exist in the span.
        let is_opt_out = fields.flags & nsec3::OPT_OUT_FLAG != 0;
        let is_covered =
            fields.next.try_into().is_ok_and(|next| super::hash_chain::is_between(&hash, &owner, &next));
        is_covered && !is_opt_out
    });
    by_nsec || by_nsec3 || denies_with_nsec5(response, apex, name)
}

/// Whether NSEC5 records deny the name itself: without a referral, a record without the proof of a
/// match, that is, an NSEC5PROOF record of the name whose hash no record has.
fn denies_with_nsec5(response: &Message, apex: NameRef<'_>, name: NameRef<'_>) -> bool {
    let hash = super::nsec5_size::proved_hash(response, apex, name, None);
    let is_owner = |hash: &[u8; 32]| {
        records_of(response, apex, Rtype::NSEC5).any(|(owner, rdata)| {
            nsec5::decode_owner(owner, apex).as_ref() == Some(hash)
                || nsec5::Nsec5::parse(rdata).is_some_and(|fields| fields.flags & nsec5::OPT_OUT_FLAG != 0)
        })
    };
    hash.is_some_and(|hash| !is_owner(&hash))
}
