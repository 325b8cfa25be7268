//! Gateways of IPSECKEY (RFC 4025) and relays of AMTRELAY (RFC 8777): nothing, an address or a
//! name, according to a preceding type field.
//!
//! The type is in the second octet of the RDATA of both record types. In AMTRELAY, the top bit of
//! this octet is the discovery bit.

use crate::rdata::input::{Input, RdataFault, push_ipv4, push_ipv6};
use crate::rdata::output::push_display;
use crate::text::{push_decimal, push_name};
use crate::{NameRef, name};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Gateway types and relay types (RFC 4025 §2.5, RFC 8777 §4.2.3).
const NONE: u8 = 0;
const IPV4: u8 = 1;
const IPV6: u8 = 2;
const NAME: u8 = 3;
/// Discovery bit of AMTRELAY (RFC 8777 §4.2.2).
const DISCOVERY: u8 = 0x80;

pub(super) fn measure_type(rest: &[u8], has_discovery: bool) -> Option<usize> {
    let mask = if has_discovery { !DISCOVERY } else { 0xff };
    (rest.first()? & mask <= NAME).then_some(1)
}

fn gateway_type(rdata: &[u8]) -> Option<u8> {
    rdata.get(1).map(|octet| octet & !DISCOVERY)
}

pub(super) fn measure(before: &[u8], rest: &[u8]) -> Option<usize> {
    match gateway_type(before)? {
        NONE => Some(0),
        IPV4 => (rest.len() >= 4).then_some(4),
        IPV6 => (rest.len() >= 16).then_some(16),
        NAME => NameRef::split_from(rest).ok().map(|(name, _)| name.len()),
        _ => None,
    }
}

pub(super) fn read_type(input: &mut Input<'_, '_>, out: &mut Vec<u8>) -> Result<(), RdataFault> {
    out.push(read_type_number(input)?);
    Ok(())
}

/// RFC 8777 §4.3.1: in presentation form, the discovery bit is a separate field with the value 0 or
/// 1.
pub(super) fn read_relay_type(input: &mut Input<'_, '_>, out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let discovery = input.take_number(1)? as u8;
    out.push(discovery << 7 | read_type_number(input)?);
    Ok(())
}

fn read_type_number(input: &mut Input<'_, '_>) -> Result<u8, RdataFault> {
    let number = input.take_number(8)? as u8;
    if number > NAME {
        return Err(RdataFault::Malformed("gateway type (write 0, 1, 2 or 3)"));
    }
    Ok(number)
}

pub(super) fn read(input: &mut Input<'_, '_>, start: usize, out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let fault = RdataFault::Malformed("gateway (write a single dot for gateway type 0)");
    let kind = out.get(start..).and_then(gateway_type).ok_or(fault)?;
    let text = input.take()?.octets;
    match kind {
        NONE if text == b"." => Ok(()),
        IPV4 => push_ipv4(text, out),
        IPV6 => push_ipv6(text, out),
        NAME => Ok(name::push_from_text(text, input.origin, out)?),
        _ => Err(fault),
    }
}

pub(super) fn write_relay_type(octets: &[u8], out: &mut Vec<u8>) {
    let [octet] = octets else { return };
    push_decimal(u32::from(octet >> 7), out);
    out.push(b' ');
    push_decimal(u32::from(octet & !DISCOVERY), out);
}

pub(super) fn write(before: &[u8], octets: &[u8], out: &mut Vec<u8>) {
    match (gateway_type(before), octets) {
        (Some(IPV4), [a, b, c, d]) => push_display(Ipv4Addr::new(*a, *b, *c, *d), out),
        (Some(IPV6), _) => {
            if let Ok(octets) = <[u8; 16]>::try_from(octets) {
                push_display(Ipv6Addr::from(octets), out);
            }
        }
        (Some(NAME), _) => push_name(NameRef::from_wire_unchecked(octets), out),
        _ => out.push(b'.'),
    }
}
