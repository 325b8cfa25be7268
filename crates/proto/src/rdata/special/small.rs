//! Small formats: the bit map of NXT (RFC 2535 §5.2), hexadecimal pairs of EUI48 and EUI64 (RFC
//! 7043 §3.2 and §4.2), the groups of NID and L64 (RFC 6742 §2), and the mnemonics of DNSSEC
//! algorithms and certificate types (RFC 4398 §2.1).

use crate::rdata::input::{Input, RdataFault};
use crate::rdata::output::{push_display, push_types};
use crate::text::parse_u32;
use crate::{Rtype, bitmap};
use data_encoding::HEXLOWER_PERMISSIVE;

/// Mnemonics of the registry "DNS Security Algorithm Numbers".
const ALGORITHMS: [(&str, u8); 17] = [
    ("RSAMD5", 1),
    ("DH", 2),
    ("DSA", 3),
    ("RSASHA1", 5),
    ("DSA-NSEC3-SHA1", 6),
    ("RSASHA1-NSEC3-SHA1", 7),
    ("RSASHA256", 8),
    ("RSASHA512", 10),
    ("ECC-GOST", 12),
    ("ECDSAP256SHA256", 13),
    ("ECDSAP384SHA384", 14),
    ("ED25519", 15),
    ("ED448", 16),
    ("MLDSA44", 18),
    ("INDIRECT", 252),
    ("PRIVATEDNS", 253),
    ("PRIVATEOID", 254),
];

/// Mnemonics of certificate types (RFC 4398 §2.1).
const CERTIFICATES: [(&str, u16); 10] = [
    ("PKIX", 1),
    ("SPKI", 2),
    ("PGP", 3),
    ("IPKIX", 4),
    ("ISPKI", 5),
    ("IPGP", 6),
    ("ACPKIX", 7),
    ("IACPKIX", 8),
    ("URI", 253),
    ("OID", 254),
];

/// Reads a DNSSEC algorithm: a number, or a mnemonic in any case.
pub(in crate::rdata) fn algorithm_number(text: &[u8]) -> Option<u8> {
    number_or_mnemonic(text, &ALGORITHMS)
}

/// Reads a certificate type: a number, or a mnemonic in any case.
pub(in crate::rdata) fn certificate_type(text: &[u8]) -> Option<u16> {
    number_or_mnemonic(text, &CERTIFICATES)
}

fn number_or_mnemonic<T: Copy + TryFrom<u32>>(text: &[u8], known: &[(&str, T)]) -> Option<T> {
    if let Some(number) = parse_u32(text) {
        return T::try_from(number).ok();
    }
    known.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(text)).map(|(_, number)| *number)
}

/// RFC 2535 §5.2: bits for the types 0 to 127, without trailing zero octets. If bit 0 is set, the
/// map has another, undefined format, and any octets are accepted.
pub(super) fn measure_nxt_bitmap(rest: &[u8]) -> Option<usize> {
    let plain = has_nxt_presentation_form(rest);
    (!plain || (rest.len() <= 16 && rest.last() != Some(&0))).then_some(rest.len())
}

pub(super) fn has_nxt_presentation_form(octets: &[u8]) -> bool {
    octets.first().is_none_or(|first| first & 0x80 == 0)
}

pub(super) fn read_nxt_bitmap(input: &mut Input<'_, '_>, out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let mut types = Vec::new();
    while let Some(token) = input.take_optional() {
        let rtype = Rtype::from_mnemonic(token.octets).ok_or(RdataFault::Type)?;
        if !(1..128).contains(&rtype.0) {
            return Err(RdataFault::NxtType);
        }
        types.push(rtype);
    }
    types.sort_unstable();
    types.dedup();
    // The bits are the same as in window 0 of the newer format, after the window number and length.
    let mut map = Vec::with_capacity(18);
    bitmap::push(&types, &mut map);
    out.extend_from_slice(map.get(2..).unwrap_or_default());
    Ok(())
}

pub(super) fn write_nxt_bitmap(octets: &[u8], out: &mut Vec<u8>) {
    // The map has at most 16 octets, because `measure_nxt_bitmap` checked it.
    let mut map = vec![0, octets.len() as u8];
    map.extend_from_slice(octets);
    push_types(bitmap::types(&map), out);
}

/// Reads pairs of hexadecimal digits joined by hyphens.
pub(super) fn read_hex_pairs(
    count: u8,
    input: &mut Input<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), RdataFault> {
    let fault = RdataFault::Malformed("pairs of hexadecimal digits (separate the pairs with hyphens)");
    let start = out.len();
    for pair in input.take()?.octets.split(|octet| *octet == b'-') {
        let octets = HEXLOWER_PERMISSIVE.decode(pair).map_err(|_| fault)?;
        let [octet] = octets[..] else { return Err(fault) };
        out.push(octet);
    }
    if out.len() - start == usize::from(count) { Ok(()) } else { Err(fault) }
}

pub(super) fn write_hex_pairs(octets: &[u8], out: &mut Vec<u8>) {
    for (index, octet) in octets.iter().enumerate() {
        let hyphen = if index > 0 { "-" } else { "" };
        push_display(format_args!("{hyphen}{octet:02x}"), out);
    }
}

/// Reads four groups of one to four hexadecimal digits. The abbreviation `::` is not allowed.
pub(super) fn read_groups(input: &mut Input<'_, '_>, out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let fault =
        RdataFault::Malformed("64-bit value (write four groups of hexadecimal digits, separated by colons)");
    let start = out.len();
    for group in input.take()?.octets.split(|octet| *octet == b':') {
        if group.len() > 4 || !group.iter().all(u8::is_ascii_hexdigit) {
            return Err(fault);
        }
        let digits = std::str::from_utf8(group).map_err(|_| fault)?;
        let value = u16::from_str_radix(digits, 16).map_err(|_| fault)?;
        out.extend_from_slice(&value.to_be_bytes());
    }
    if out.len() - start == 8 { Ok(()) } else { Err(fault) }
}

pub(super) fn write_groups(octets: &[u8], out: &mut Vec<u8>) {
    for (index, group) in octets.chunks_exact(2).enumerate() {
        let colon = if index > 0 { ":" } else { "" };
        push_display(format_args!("{colon}{:02x}{:02x}", group[0], group[1]), out);
    }
}
