//! A6 (RFC 2874 §3): a part of an IPv6 address, and the name that has its prefix.
//!
//! Wire form: prefix length (1 octet), the other bits of the address right-aligned in whole octets,
//! and the prefix name unless the prefix length is 0 (§3.1). Presentation form: prefix length,
//! address, name (§3.2).

use crate::rdata::input::{Input, RdataFault, push_ipv6};
use crate::rdata::output::push_display;
use crate::text::{push_decimal, push_name};
use crate::{NameRef, name};
use std::net::Ipv6Addr;

/// Number of bits of an address; also the maximum prefix length.
const ADDRESS_BITS: u8 = 128;

/// Returns the length of the address suffix after a prefix of `prefix` bits, in octets, or `None`
/// if `prefix` is above 128.
fn suffix_length(prefix: u8) -> Option<usize> {
    16usize.checked_sub(usize::from(prefix / 8)).filter(|_| prefix <= ADDRESS_BITS)
}

/// Returns the mask of the bits that belong to the suffix in its first octet.
const fn first_octet_mask(prefix: u8) -> u8 {
    0xff >> (prefix % 8)
}

pub(super) fn measure(rest: &[u8]) -> Option<usize> {
    let prefix = *rest.first()?;
    let fixed = 1 + suffix_length(prefix)?;
    let after = rest.get(fixed..)?;
    if prefix == 0 {
        return Some(fixed);
    }
    NameRef::split_from(after).ok().map(|(name, _)| fixed + name.len())
}

/// Returns the offset of the prefix name in a well-formed field. This is the end of the field if it
/// has no name.
pub(in crate::rdata) fn name_start(octets: &[u8]) -> Option<usize> {
    Some(1 + suffix_length(*octets.first()?)?)
}

/// Pad bits are zero (RFC 2874 §3.1). The presentation form cannot represent nonzero pad bits.
pub(super) fn has_presentation_form(octets: &[u8]) -> bool {
    match octets {
        [prefix, first, ..] if *prefix < ADDRESS_BITS => first & !first_octet_mask(*prefix) == 0,
        _ => true,
    }
}

pub(super) fn read(input: &mut Input<'_, '_>, out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let fault = RdataFault::Malformed("prefix length (write 0 to 128)");
    let prefix = input.take_number(8)? as u8;
    let length = suffix_length(prefix).ok_or(fault)?;
    let mut token = input.take()?;
    let next = input.take_optional();
    out.push(prefix);
    // RFC 2874 §3.2: the address may be omitted if the prefix length is 128.
    if prefix < ADDRESS_BITS || next.is_some() {
        let mut address = Vec::with_capacity(16);
        push_ipv6(token.octets, &mut address)?;
        let suffix = address.get_mut(16 - length..).unwrap_or_default();
        if let Some(first) = suffix.first_mut() {
            *first &= first_octet_mask(prefix);
        }
        out.extend_from_slice(suffix);
        match (prefix, next) {
            (0, None) => return Ok(()),
            (0, Some(_)) => return Err(RdataFault::TrailingToken),
            (_, None) => return Err(RdataFault::Missing),
            (_, Some(next)) => token = next,
        }
    }
    Ok(name::push_from_text(token.octets, input.origin, out)?)
}

pub(super) fn write(octets: &[u8], out: &mut Vec<u8>) {
    let (Some(&prefix), Some(start)) = (octets.first(), name_start(octets)) else { return };
    let (Some(suffix), Some(name)) = (octets.get(1..start), octets.get(start..)) else { return };
    push_decimal(u32::from(prefix), out);
    if prefix < ADDRESS_BITS {
        let mut address = [0; 16];
        for (slot, octet) in address.iter_mut().rev().zip(suffix.iter().rev()) {
            *slot = *octet;
        }
        push_display(format_args!(" {}", Ipv6Addr::from(address)), out);
    }
    if prefix > 0 {
        out.push(b' ');
        push_name(NameRef::from_wire_unchecked(name), out);
    }
}
