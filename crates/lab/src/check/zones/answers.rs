//! Answers that the zone files do not have: answers of exact sizes, and signatures with special values.

use super::ZoneOptions;
use crate::check::authority::txt_rdata;
use crate::check::signing::Unsigned;
use crate::tree::{Tree, TreeZone};
use nonesuch_proto::message::{HEADER, Record, Section};
use nonesuch_proto::{Name, Rtype, edns};
use std::collections::HashMap;

/// Sizes of responses with EDNS over UDP, in octets. 512: RFC 1035 §2.3.4; 1,220 and 4,000: RFC 4035 §3;
/// 1,232 and 1,400: RFC 9715.
pub(in crate::check) const SIZES: [usize; 8] = [512, 513, 1220, 1221, 1232, 1400, 4000, 8000];
/// TTL of the answers, in seconds.
const TTL: u32 = 300;
/// Validity of signatures, in seconds.
const LIFETIME: u32 = 86_400;
/// Validity of the signatures at `short-lived`, in seconds.
pub(in crate::check) const SHORT_LIFETIME: u32 = 120;
/// Age of the signature at `old-inception` in seconds, ten days less than 68 years: the field Inception is greater
/// than the present time, unless serial number arithmetic is used (RFC 4034 §3.1.5).
const OLD_INCEPTION: u32 = (1 << 31) - 864_000;
/// Number of attempts to find a signature with a leading zero octet; one fails with a probability of
/// 255/256.
const ATTEMPTS: u32 = 20_000;
/// Octets of the fixed fields of a record: the pointer that is its owner, type, class, TTL, RDLENGTH.
const RECORD: usize = 12;

/// The zones with answers of exact sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::check) enum SizedZone {
    /// Signed.
    Signed,
    /// Not signed.
    Unsigned,
}

impl SizedZone {
    /// Both zones.
    pub(in crate::check) const ALL: [Self; 2] = [Self::Signed, Self::Unsigned];

    /// The label of the zone.
    pub(in crate::check) const fn label(self) -> &'static str {
        match self {
            Self::Signed => "sizes",
            Self::Unsigned => "plain-sizes",
        }
    }
}

/// The name with an answer of this size, below a zone.
pub(in crate::check) fn sized_name(size: usize, zone: &Name) -> Option<Name> {
    Name::prepend(format!("octets-{size}").as_bytes(), zone.view()).ok()
}

/// The labels of the special answers of the zone `special`.
pub(super) const SPECIAL_LABELS: [&str; 7] =
    ["zero-r", "zero-s", "large-r", "large-s", "null-s", "short-lived", "old-inception"];

/// The line of a zone file for a name with one of [`answers`]: the name exists, so that no denial covers it, and
/// the servers send the answer instead of this record.
pub(super) fn existing_name(label: &str) -> String {
    format!("{label} TXT \"the servers send another record\"\n")
}

/// The lines for the names with answers of exact sizes.
pub(super) fn sized_names() -> String {
    SIZES.iter().map(|size| existing_name(&format!("octets-{size}"))).collect()
}

/// The answers, by name and type.
pub(super) fn answers(options: &ZoneOptions, tree: &Tree) -> HashMap<(Name, Rtype), Vec<Record>> {
    let mut answers = HashMap::new();
    let zone = |label: &str| {
        let origin: Name = format!("{label}.{}", options.domain()).parse().ok()?;
        tree.zones.iter().find(|zone| zone.origin == origin)
    };
    for found in
        [SizedZone::Signed.label(), SizedZone::Unsigned.label(), "drop-large"].into_iter().filter_map(zone)
    {
        for size in SIZES {
            let Some(name) = sized_name(size, &found.origin) else { continue };
            if let Some(records) = sized_answer(found, &name, size, options.now) {
                answers.insert((name.view().to_canonical(), Rtype::TXT), records);
            }
        }
    }
    if let Some(special) = zone("special") {
        answers.extend(special_answers(special, options.now));
    }
    answers
}

/// A TXT RRset whose response has exactly this size. The response has EDNS without options, and no records
/// in other sections. `None` if the size is too small.
fn sized_answer(zone: &TreeZone, name: &Name, size: usize, now: u32) -> Option<Vec<Record>> {
    let text = |octets: usize| Unsigned {
        owner: name.clone(),
        rtype: Rtype::TXT,
        ttl: TTL,
        rdatas: vec![txt_rdata(octets)],
    };
    let sign = |rrset: &Unsigned| match &zone.keys {
        Some(keys) => rrset.sign(Section::Answer, keys, now, LIFETIME),
        None => rrset.records(Section::Answer),
    };
    // Signatures of P-256 have the same size for each RRset.
    let signatures: usize = sign(&text(1)).iter().skip(1).map(|record| RECORD + record.rdata.len()).sum();
    let others = HEADER + name.wire().len() + 4 + RECORD + signatures + edns::OPT_OCTETS;
    Some(sign(&text(size.checked_sub(others).filter(|octets| *octets > 0)?)))
}

/// The answers of the zone `special`, which has keys for P-256: signatures whose first or second number has
/// a leading zero octet (RFC 6605 §4), numbers out of range, a signature that expires soon, and one with an old inception.
fn special_answers(zone: &TreeZone, now: u32) -> Vec<((Name, Rtype), Vec<Record>)> {
    let Some(keys) = &zone.keys else { return Vec::new() };
    let Some(key) = keys.keys().first() else { return Vec::new() };
    let rrset = |label: &str, ttl: u32, number: u32| {
        let owner = Name::prepend(label.as_bytes(), zone.origin.view()).ok()?;
        let text = format!("attempt {number}");
        let rdata = [&[text.len() as u8], text.as_bytes()].concat();
        Some(Unsigned { owner, rtype: Rtype::TXT, ttl, rdatas: vec![rdata] })
    };
    let signed = |rrset: &Unsigned, signature: Vec<u8>| {
        let mut records = rrset.sign(Section::Answer, keys, now, LIFETIME);
        if let Some(record) = records.iter_mut().find(|record| record.rtype == Rtype::RRSIG) {
            record.rdata = signature;
        }
        ((rrset.owner.view().to_canonical(), rrset.rtype), records)
    };
    let with_zero = |label: &str, from_end: usize| {
        (0..ATTEMPTS).find_map(|number| {
            let rrset = rrset(label, TTL, number)?;
            let signature = rrset.signature(key, keys.zone(), now, LIFETIME)?;
            let at = signature.len().checked_sub(from_end)?;
            (signature.get(at) == Some(&0)).then(|| signed(&rrset, signature))
        })
    };
    let replaced = |label: &str, from_end: usize, value: u8| {
        let rrset = rrset(label, TTL, 0)?;
        let mut signature = rrset.signature(key, keys.zone(), now, LIFETIME)?;
        let at = signature.len().checked_sub(from_end)?;
        signature[at..at + 32].fill(value);
        Some(signed(&rrset, signature))
    };
    let short = || {
        let rrset = rrset("short-lived", 3600, 0)?;
        let signature = rrset.signature(key, keys.zone(), now, SHORT_LIFETIME)?;
        Some(signed(&rrset, signature))
    };
    let old = || {
        let rrset = rrset("old-inception", TTL, 0)?;
        let signature = rrset.signature_from(
            key,
            keys.zone(),
            now.wrapping_sub(OLD_INCEPTION),
            now.wrapping_add(LIFETIME),
        )?;
        Some(signed(&rrset, signature))
    };
    // A signature of P-256 has 64 octets: r and s (RFC 6605 §4).
    [
        with_zero("zero-r", 64),
        with_zero("zero-s", 32),
        replaced("large-r", 64, 0xff),
        replaced("large-s", 32, 0xff),
        replaced("null-s", 32, 0),
        short(),
        old(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_have_the_wanted_length_and_are_well_formed() {
        for octets in [1, 2, 255, 256, 257, 512, 513, 3900] {
            let rdata = txt_rdata(octets);
            assert_eq!(rdata.len(), octets);
            assert!(nonesuch_proto::rdata::is_well_formed(Rtype::TXT, &rdata), "{octets}");
        }
    }
}
