//! APL (RFC 3123): lists of address prefixes, each with address family, prefix length and negation
//! flag.
//!
//! Wire form (§4): family (2 octets), prefix length (1), negation bit and length of the address
//! part (1), and the address part without its trailing zero octets.

use crate::rdata::input::{Input, RdataFault, push_ipv4, push_ipv6};
use crate::rdata::output::push_display;
use crate::text::parse_u32;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Address family numbers (RFC 3123 §4.1 and §4.2).
const IPV4: u16 = 1;
const IPV6: u16 = 2;

const FAULT: RdataFault =
    RdataFault::Malformed("address prefix (write [!]1:IPV4/LENGTH or [!]2:IPV6/LENGTH)");

struct AddressPrefix<'a> {
    family: u16,
    prefix: u8,
    negated: bool,
    address: &'a [u8],
}

fn split_prefix(octets: &[u8]) -> Option<(AddressPrefix<'_>, &[u8])> {
    let [high, low, prefix, length, tail @ ..] = octets else { return None };
    let (address, rest) = tail.split_at_checked(usize::from(length & 0x7f))?;
    let family = u16::from_be_bytes([*high, *low]);
    Some((AddressPrefix { family, prefix: *prefix, negated: length & 0x80 != 0, address }, rest))
}

fn address_prefixes(octets: &[u8]) -> impl Iterator<Item = AddressPrefix<'_>> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        let (item, tail) = split_prefix(rest)?;
        rest = tail;
        Some(item)
    })
}

/// Returns the maximum prefix length of a family, or `None` if the family has no presentation form.
const fn max_prefix(family: u16) -> Option<u8> {
    match family {
        IPV4 => Some(32),
        IPV6 => Some(128),
        _ => None,
    }
}

impl AddressPrefix<'_> {
    fn is_well_formed(&self) -> bool {
        // RFC 3123 §4: the sender omits trailing zero octets, regardless of the prefix length.
        if self.address.last() == Some(&0) {
            return false;
        }
        let Some(bits) = max_prefix(self.family) else { return true };
        self.prefix <= bits && self.address.len() <= usize::from(bits / 8)
    }
}

pub(super) fn measure(rest: &[u8]) -> Option<usize> {
    let mut tail = rest;
    while !tail.is_empty() {
        let (item, after) = split_prefix(tail)?;
        if !item.is_well_formed() {
            return None;
        }
        tail = after;
    }
    Some(rest.len())
}

/// Families other than IPv4 and IPv6 have no presentation form.
pub(super) fn has_presentation_form(octets: &[u8]) -> bool {
    address_prefixes(octets).all(|item| max_prefix(item.family).is_some())
}

pub(super) fn read(input: &mut Input<'_, '_>, out: &mut Vec<u8>) -> Result<(), RdataFault> {
    while let Some(token) = input.take_optional() {
        read_prefix(token.octets, out)?;
    }
    Ok(())
}

fn read_prefix(text: &[u8], out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let (negated, text) = match text.strip_prefix(b"!") {
        Some(text) => (0x80, text),
        None => (0, text),
    };
    let (family, text) = split_at_octet(text, b':').ok_or(FAULT)?;
    let (address, prefix) = split_at_octet(text, b'/').ok_or(FAULT)?;
    let family = parse_u32(family).and_then(|family| u16::try_from(family).ok()).ok_or(FAULT)?;
    let bits = max_prefix(family).ok_or(FAULT)?;
    let prefix = parse_u32(prefix).and_then(|n| u8::try_from(n).ok()).filter(|n| *n <= bits).ok_or(FAULT)?;
    let mut address_octets = Vec::with_capacity(16);
    if family == IPV4 {
        push_ipv4(address, &mut address_octets)?;
    } else {
        push_ipv6(address, &mut address_octets)?;
    }
    let length = address_octets.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
    out.extend_from_slice(&family.to_be_bytes());
    // The length is at most 16, so it does not overlap the negation bit.
    out.extend_from_slice(&[prefix, negated | length as u8]);
    out.extend_from_slice(&address_octets[..length]);
    Ok(())
}

fn split_at_octet(text: &[u8], octet: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|other| *other == octet)?;
    Some((&text[..at], &text[at + 1..]))
}

pub(super) fn write(octets: &[u8], out: &mut Vec<u8>) {
    for (index, item) in address_prefixes(octets).enumerate() {
        let space = if index > 0 { " " } else { "" };
        let negation = if item.negated { "!" } else { "" };
        let prefix = item.prefix;
        let mut address = [0; 16];
        for (slot, octet) in address.iter_mut().zip(item.address) {
            *slot = *octet;
        }
        if item.family == IPV4 {
            let address = Ipv4Addr::new(address[0], address[1], address[2], address[3]);
            push_display(format_args!("{space}{negation}1:{address}/{prefix}"), out);
        } else {
            let address = Ipv6Addr::from(address);
            push_display(format_args!("{space}{negation}2:{address}/{prefix}"), out);
        }
    }
}
