//! Recognises the denial mechanism of a zone from the responses of its server.

use super::StopReason;
use super::client::{Client, records_of};
use super::hash_chain::span_share;
use super::labels::RandomLabels;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::{nsec3, nsec5};
use nonesuch_proto::message::{Message, Rcode};
use nonesuch_proto::{Name, NameRef, Rtype};

/// Share of all hashes below which the span of an NSEC3 record cannot be that of a chain: a chain
/// with such a span would have 2^64 names.
const LIE_SHARE: f64 = 1.0 / (1u64 << 63) as f64 / 2.0;

/// What the responses show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// Denials have no records: the zone is unsigned.
    Unsigned,
    /// The zone is signed, and its denials have no records that deny.
    SignedWithoutDenial,
    /// Denials have the records of this mechanism.
    Mechanism(Mechanism),
}

impl Recognised {
    /// The mechanism.
    #[must_use]
    pub const fn mechanism(self) -> Option<Mechanism> {
        match self {
            Self::Mechanism(mechanism) => Some(mechanism),
            Self::Unsigned | Self::SignedWithoutDenial => None,
        }
    }
}

/// Sends one or two queries for random names and determines the mechanism.
///
/// # Errors
/// A limit is reached, or the server does not answer.
pub(super) fn recognise(
    client: &mut Client,
    zone: &Name,
    labels: &mut RandomLabels,
) -> Result<Recognised, StopReason> {
    let label = labels.next();
    let name = below(&label, zone)?;
    let response = denial(client, &name)?;
    let apex = zone.view();
    let records = |rtype| records_of(&response, apex, rtype);
    if let Some((_, rdata)) = records(Rtype::NSEC5).next() {
        let opts_out =
            nsec5::Nsec5::parse(rdata).is_some_and(|fields| fields.flags & nsec5::OPT_OUT_FLAG != 0);
        return Ok(Recognised::Mechanism(if opts_out { Mechanism::Nsec5OptOut } else { Mechanism::Nsec5 }));
    }
    if records(Rtype::NSEC3).next().is_some() {
        return Ok(Recognised::Mechanism(nsec3_mechanism(&response, apex)));
    }
    if records(Rtype::NSEC).next().is_none() {
        let is_signed = response.records.iter().any(|record| record.rtype == Rtype::RRSIG);
        return Ok(if is_signed { Recognised::SignedWithoutDenial } else { Recognised::Unsigned });
    }
    // RFC 9824 §3.1: the owner is the query name.
    if records(Rtype::NSEC).any(|(owner, _)| owner == name.view()) {
        return Ok(Recognised::Mechanism(Mechanism::Compact));
    }
    let first = covering_span(&response, apex, name.view()).ok_or(StopReason::NotCovered(name))?;
    // The name follows the first one directly. In a chain, the same record covers both, unless the zone
    // has names with the same random label.
    let neighbour = below(&[label.as_slice(), b"0"].concat(), zone)?;
    let response = denial(client, &neighbour)?;
    let second = covering_span(&response, apex, neighbour.view());
    Ok(Recognised::Mechanism(if second == Some(first) { Mechanism::Nsec } else { Mechanism::MinimalNsec }))
}

/// Returns the name of a label below the zone.
pub(super) fn below(label: &[u8], zone: &Name) -> Result<Name, StopReason> {
    // The caller has checked that labels fit below the zone.
    Name::prepend(label, zone.view()).map_err(|_| StopReason::NotCovered(zone.clone()))
}

/// Sends a query for a name that does not exist.
pub(super) fn denial(client: &mut Client, name: &Name) -> Result<Message, StopReason> {
    let response = client.query(name.view(), Rtype::A)?;
    match response.rcode() {
        Rcode::NOERROR | Rcode::NXDOMAIN => Ok(response),
        rcode => Err(StopReason::Rcode { name: name.clone(), rtype: Rtype::A, rcode }),
    }
}

/// White lies (RFC 7129, appendix B) or a chain, with or without opt-out.
fn nsec3_mechanism(response: &Message, apex: NameRef<'_>) -> Mechanism {
    let (mut is_chain, mut opts_out) = (false, false);
    for (owner, rdata) in records_of(response, apex, Rtype::NSEC3) {
        let (Some(fields), Some(owner)) = (nsec3::Nsec3::parse(rdata), nsec3::decode_owner(owner, apex))
        else {
            continue;
        };
        let Ok(next) = fields.next.try_into() else { continue };
        is_chain |= span_share(&owner, &next) > LIE_SHARE;
        opts_out |= fields.flags & nsec3::OPT_OUT_FLAG != 0;
    }
    match (is_chain, opts_out) {
        (false, _) => Mechanism::WhiteLies,
        (true, false) => Mechanism::Nsec3,
        (true, true) => Mechanism::Nsec3OptOut,
    }
}

/// Owner and next name of the NSEC record that covers `name`.
pub(super) fn covering_span(
    response: &Message,
    apex: NameRef<'_>,
    name: NameRef<'_>,
) -> Option<(Name, Name)> {
    records_of(response, apex, Rtype::NSEC).find_map(|(owner, rdata)| {
        let (next, _) = NameRef::split_from(rdata).ok()?;
        let covers = owner < name && (next == apex || name < next);
        covers.then(|| (owner.to_name(), next.to_name()))
    })
}

/// Returns a sentence with the data that an attacker can learn from a zone.
#[must_use]
pub const fn lesson(recognised: Recognised) -> &'static str {
    match recognised {
        Recognised::Unsigned => {
            "unsigned: denials reveal no names; names can be guessed online, one query for each, and every \
                answer can be forged"
        }
        Recognised::SignedWithoutDenial => {
            "signed, but the denial has no NSEC, NSEC3 or NSEC5 record: validators reject it (RFC 4035 \
                section 5.4)"
        }
        Recognised::Mechanism(mechanism) => match mechanism {
            Mechanism::Nsec => "all names: each NSEC record has the next name (zone walking)",
            Mechanism::Nsec3 => {
                "the number of names, and every name that a dictionary has: its hash can be tested offline \
                    (RFC 5155 section 12.1.1)"
            }
            Mechanism::Nsec3OptOut => {
                "as NSEC3; insecure delegations are not in the chain, so only their guesses online reveal them"
            }
            Mechanism::Nsec5 | Mechanism::Nsec5OptOut => {
                "the number of names: only the holder of the VRF key can compute hashes; names can be guessed \
                    online, one query for each"
            }
            Mechanism::MinimalNsec => {
                "no names: the server generates a record for each denied name (RFC 4470); names can be guessed \
                    online, one query for each; who steals the server has a signing key"
            }
            Mechanism::Compact => {
                "no names: the server generates a record at each denied name (RFC 9824); names can be guessed \
                    online, one query for each; who steals the server has a signing key"
            }
            Mechanism::WhiteLies => {
                "no names: each NSEC3 record covers only the hash of the denied name (RFC 7129 appendix B); names \
                    can be guessed online, one query for each; who steals the server has a signing key"
            }
            _ => "unknown mechanism",
        },
    }
}
