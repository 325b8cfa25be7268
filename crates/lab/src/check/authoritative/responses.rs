//! Questions about responses that several items have.

use super::super::Response;
use super::Fault;
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_dnssec::validate::ProvedAnswer;
use nonesuch_proto::message::{HEADER, Message, Rcode, Record, Section, flags};
use nonesuch_proto::{Class, Name, Rtype, rdata};

/// The records of the answer section with this owner and type.
pub(super) fn answers<'m>(
    message: &'m Message,
    owner: &'m Name,
    rtype: Rtype,
) -> impl Iterator<Item = &'m Record> {
    records(message, Section::Answer, rtype).filter(move |record| record.owner == *owner)
}

/// The records of a section with this type.
pub(super) fn records(message: &Message, section: Section, rtype: Rtype) -> impl Iterator<Item = &Record> {
    message.section(section).filter(move |record| record.rtype == rtype && record.class == Class::IN)
}

/// Checks the response code.
pub(super) fn expect_rcode(response: &Response, expected: &[Rcode]) -> Result<(), Fault> {
    let rcode = response.message.rcode();
    if expected.contains(&rcode) {
        return Ok(());
    }
    let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
    Err(format!("expected {}, the response has {rcode}", expected.join(" or ")))
}

/// Checks that the flag AA is set or clear.
pub(super) fn expect_aa(response: &Response, expected: bool) -> Result<(), Fault> {
    match (response.has(flags::AA), expected) {
        (true, false) => Err("the response has the flag AA".to_owned()),
        (false, true) => Err("the response lacks the flag AA".to_owned()),
        _ => Ok(()),
    }
}

/// Checks that the response is the authoritative negative answer of a zone: NOERROR or another code,
/// AA, no answer, and the SOA record of the zone (RFC 2308 §2 and §3).
pub(super) fn expect_negative(response: &Response, zone: &Name, rcode: &[Rcode]) -> Result<(), Fault> {
    expect_rcode(response, rcode)?;
    expect_aa(response, true)?;
    let message = &response.message;
    let count = message.section(Section::Answer).count();
    if count > 0 {
        return Err(format!("expected an empty answer section, it has {count} records"));
    }
    if records(message, Section::Authority, Rtype::SOA).any(|record| record.owner == *zone) {
        Ok(())
    } else {
        Err(format!("the authority section has no SOA record of {zone}"))
    }
}

/// Whether records of this type are added only for DNSSEC (RFC 4035 §3.1).
pub(super) const fn is_dnssec(rtype: Rtype) -> bool {
    matches!(rtype, Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5 | Rtype::NSEC5PROOF)
}

/// The first RRset in the answer and authority sections that has no RRSIG record in its section. NS RRsets
/// of delegations and CNAME records that a DNAME record synthesises have none.
pub(super) fn unsigned_rrset<'m>(message: &'m Message, zone: &Name) -> Option<&'m Record> {
    let signatures = |section| records(message, section, Rtype::RRSIG);
    let is_signed = |record: &Record| {
        signatures(record.section).any(|found| {
            found.owner == record.owner
                && Rrsig::parse(&found.rdata).is_some_and(|rrsig| rrsig.covered == record.rtype)
        })
    };
    let has_dname_above = |record: &Record| {
        records(message, Section::Answer, Rtype::DNAME)
            .any(|dname| record.owner.view().is_below(dname.owner.view()))
    };
    let needs_signature = |record: &&Record| match record.rtype {
        Rtype::RRSIG | Rtype::NSEC5PROOF => false,
        Rtype::NS => record.owner == *zone,
        Rtype::CNAME => !has_dname_above(record),
        _ => true,
    };
    let sections = [Section::Answer, Section::Authority].into_iter();
    let mut records = sections.flat_map(|section| message.section(section)).filter(needs_signature);
    records.find(|record| !is_signed(record))
}

/// What a response proves, for messages.
pub(super) fn proved_text(proved: &ProvedAnswer) -> String {
    match proved {
        ProvedAnswer::Answer => "an answer".to_owned(),
        ProvedAnswer::WildcardAnswer => "an answer from a wildcard".to_owned(),
        ProvedAnswer::NoData => "that the name does not have the type".to_owned(),
        ProvedAnswer::WildcardNoData => "that the wildcard does not have the type".to_owned(),
        ProvedAnswer::NxDomain => "that the name does not exist".to_owned(),
        ProvedAnswer::Referral { child, has_ds: true } => format!("a signed delegation of {child}"),
        ProvedAnswer::Referral { child, has_ds: false } => format!("an unsigned delegation of {child}"),
        ProvedAnswer::Alias { target } => format!("an alias of {target}"),
        ProvedAnswer::DnameTooLong => "that the target of the DNAME record is too long".to_owned(),
    }
}

/// The types of records with compressed names in the RDATA that RFC 3597 §4 forbids to compress.
pub(super) fn compressed_types(response: &Response) -> Vec<Rtype> {
    let octets = &response.octets;
    let mut types = Vec::new();
    let mut at = HEADER;
    for _ in &response.message.questions {
        let Ok((_, end)) = Name::from_message(octets, at) else { return types };
        at = end + 4;
    }
    for record in &response.message.records {
        let Ok((_, end)) = Name::from_message(octets, at) else { return types };
        let Some(&[high, low]) = octets.get(end + 8..end + 10) else { return types };
        let start = end + 10;
        at = start + usize::from(u16::from_be_bytes([high, low]));
        let Some(received) = octets.get(start..at) else { return types };
        // The parser has replaced compression pointers by names.
        let is_compressed = record.rtype != Rtype::OPT && received != record.rdata.as_slice();
        if is_compressed && !may_be_compressed(record.rtype) && !types.contains(&record.rtype) {
            types.push(record.rtype);
        }
    }
    types
}

/// Whether the type is in RFC 1035, with names in its RDATA: NS to MX (RFC 3597 §4).
fn may_be_compressed(rtype: Rtype) -> bool {
    rtype.0 <= 15 && rdata::entry(rtype).is_some()
}
