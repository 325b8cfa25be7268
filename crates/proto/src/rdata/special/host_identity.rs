//! HIP (RFC 8005 §5): Host Identity Tag, public key and rendezvous servers.
//!
//! Wire form: tag length (1 octet), algorithm (1), key length (2), tag, key, names. Presentation
//! form: algorithm, tag in hexadecimal digits, key in base64, names (§6).

use crate::rdata::input::{Input, RdataFault};
use crate::rdata::output::push_encoded;
use crate::text::{push_decimal, push_name};
use crate::{NameRef, name};
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE, HEXUPPER};

struct Identity<'a> {
    /// Algorithm of the public key.
    algorithm: u8,
    tag: &'a [u8],
    key: &'a [u8],
    /// Names of the rendezvous servers in wire form.
    servers: &'a [u8],
}

impl<'a> Identity<'a> {
    fn from_octets(octets: &'a [u8]) -> Option<Self> {
        let [tag, algorithm, high, low, rest @ ..] = octets else { return None };
        let (tag, rest) = rest.split_at_checked(usize::from(*tag))?;
        let (key, servers) = rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
        Some(Self { algorithm: *algorithm, tag, key, servers })
    }
}

pub(super) fn measure(rest: &[u8]) -> Option<usize> {
    let identity = Identity::from_octets(rest)?;
    // The presentation form cannot represent an empty tag or key.
    if identity.tag.is_empty() || identity.key.is_empty() {
        return None;
    }
    let mut servers = identity.servers;
    while !servers.is_empty() {
        servers = NameRef::split_from(servers).ok()?.1;
    }
    Some(rest.len())
}

pub(super) fn read(input: &mut Input<'_, '_>, out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let algorithm = input.take_number(8)? as u8;
    let tag_fault = RdataFault::Encoding("hexadecimal digits");
    let tag = HEXLOWER_PERMISSIVE.decode(input.take()?.octets).map_err(|_| tag_fault)?;
    let tag_length = u8::try_from(tag.len()).ok().filter(|n| *n > 0).ok_or(tag_fault)?;
    let key_fault = RdataFault::Encoding("base64");
    let key = BASE64.decode(input.take()?.octets).map_err(|_| key_fault)?;
    let key_length = u16::try_from(key.len()).ok().filter(|n| *n > 0).ok_or(key_fault)?;
    out.extend_from_slice(&[tag_length, algorithm]);
    out.extend_from_slice(&key_length.to_be_bytes());
    out.extend_from_slice(&tag);
    out.extend_from_slice(&key);
    while let Some(token) = input.take_optional() {
        name::push_from_text(token.octets, input.origin, out)?;
    }
    Ok(())
}

pub(super) fn write(octets: &[u8], out: &mut Vec<u8>) {
    let Some(identity) = Identity::from_octets(octets) else { return };
    push_decimal(u32::from(identity.algorithm), out);
    out.push(b' ');
    push_encoded(&HEXUPPER, identity.tag, out);
    out.push(b' ');
    push_encoded(&BASE64, identity.key, out);
    let mut servers = identity.servers;
    while let Ok((server, rest)) = NameRef::split_from(servers) {
        out.push(b' ');
        push_name(server, out);
        servers = rest;
    }
}
