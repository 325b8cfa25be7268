//! Anonymisation of EDNS options in place (RFC 6891 §6.1.2).

use super::cryptopan::CryptoPan;
use super::error::CaptureError;
use nonesuch_proto::edns::CLIENT_SUBNET;

/// Size of the code and the length of an option in octets.
const OPTION_HEADER_SIZE: usize = 4;
/// Size of the family and the prefix lengths of a client subnet in octets.
const SUBNET_HEADER_SIZE: usize = 4;

/// Whether an option stays: it contains neither addresses nor identifiers of a client and, with
/// `anonymize_names`, neither names nor texts. Codes are those of the IANA registry.
const fn is_kept(code: u16, anonymize_names: bool) -> bool {
    match code {
        // LLQ, UL, NSID, DAU, DHU, N3U, EXPIRE, cookie, keepalive, padding, key tag, client and
        // server tag, ZONEVERSION.
        1..=3 | 5..=7 | 9..=12 | 14 | 16 | 17 | 19 => true,
        // CHAIN, extended error and Report-Channel have names or text.
        13 | 15 | 18 => !anonymize_names,
        _ => false,
    }
}

/// Anonymises the RDATA of an OPT record: replaces the address of a client subnet (RFC 7871 §6),
/// and fills options that may identify a client with zeros. No length changes.
pub(super) fn anonymize_options(
    rdata: &mut [u8],
    addresses: &CryptoPan,
    anonymize_names: bool,
) -> Result<(), CaptureError> {
    let mut rest = rdata;
    while rest.len() >= OPTION_HEADER_SIZE {
        let (header, tail) = rest.split_at_mut(OPTION_HEADER_SIZE);
        let code = u16::from_be_bytes([header[0], header[1]]);
        let length = usize::from(u16::from_be_bytes([header[2], header[3]])).min(tail.len());
        let (data, next) = tail.split_at_mut(length);
        match code {
            CLIENT_SUBNET => anonymize_subnet(data, addresses)?,
            code if !is_kept(code, anonymize_names) => data.fill(0),
            _ => {}
        }
        rest = next;
    }
    rest.fill(0);
    Ok(())
}

/// Replaces the address of a client subnet. Bits after the prefix become zero.
fn anonymize_subnet(data: &mut [u8], addresses: &CryptoPan) -> Result<(), CaptureError> {
    let Some((header, address)) = data.split_first_chunk_mut::<SUBNET_HEADER_SIZE>() else {
        data.fill(0);
        return Ok(());
    };
    let prefix = usize::from(header[2]);
    if address.len() > 16 {
        address.fill(0);
        return Ok(());
    }
    addresses.replace_octets(address)?;
    for (index, octet) in address.iter_mut().enumerate() {
        let bits = prefix.saturating_sub(8 * index).min(8) as u32;
        *octet &= !u8::MAX.checked_shr(bits).unwrap_or(0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::key::AnonymisationKey;
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn a_client_subnet_is_the_prefix_of_the_replaced_address() {
        let pan = CryptoPan::new(&AnonymisationKey::from_octets(&[7; 32])).expect("a key");
        let IpAddr::V4(whole) = pan.replace_address(Ipv4Addr::new(192, 0, 2, 77).into()).expect("replaced")
        else {
            panic!("an IPv4 address")
        };
        let mut rdata = *b"\0\x08\0\x07\0\x01\x18\0\xc0\0\x02\0\x08\0\x06\0\x01\x09\0\xc0\x7f";
        anonymize_options(&mut rdata, &pan, false).expect("anonymised");
        let [a, b, c, _] = whole.octets();
        assert_eq!(rdata[..11], [0, 8, 0, 7, 0, 1, 24, 0, a, b, c]);
        // 9 bits: the first bit of the second octet stays.
        assert_eq!((rdata[19], rdata[20] & 0x7f), (a, 0));
    }

    #[test]
    fn identifying_options_become_zeros_and_others_stay() {
        let pan = CryptoPan::new(&AnonymisationKey::from_octets(&[7; 32])).expect("a key");
        let options = b"\0\x03\0\x01a\xfd\xe9\0\x02bc\0\x0a\0\x01d\0\x0f\0\x03\0\x01e\0\x09\0\x09fg";
        for (names, text) in [(false, &b"\0\x01e"[..]), (true, b"\0\0\0")] {
            let mut rdata = options.to_vec();
            anonymize_options(&mut rdata, &pan, names).expect("anonymised");
            // The last option is longer than the record.
            let expected =
                [&b"\0\x03\0\x01a\xfd\xe9\0\x02\0\0\0\x0a\0\x01d\0\x0f\0\x03"[..], text, b"\0\x09\0\x09fg"];
            assert_eq!(rdata, expected.concat());
        }
        let mut rest = *b"\0\x08\0\x14\0\x01\x18\0aaaaaaaaaaaaaaaa\xff\0\x03";
        anonymize_options(&mut rest, &pan, false).expect("anonymised");
        assert!(!rest[4..].contains(&b'a'));
    }
}
