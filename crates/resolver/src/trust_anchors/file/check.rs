//! Checks that a DS or DNSKEY record can be a trust anchor.

use super::error::RecordFault;
use crate::trust_anchors::AnchorRecord;
use nonesuch_crypto::{Algorithm, DigestType, PublicKey, key_tag};
use nonesuch_dnssec::keys::{PROTOCOL, REVOKE, ZONE_KEY};
use nonesuch_proto::Rtype;
use nonesuch_proto::rdata::RdataFault;

/// Returns the trust anchor of the type `rtype` with this RDATA.
///
/// # Errors
/// Why the record cannot be a trust anchor. Unknown algorithms and digest types are no fault.
pub(in crate::trust_anchors) fn check(rtype: Rtype, rdata: Vec<u8>) -> Result<AnchorRecord, RecordFault> {
    match rtype {
        Rtype::DS => check_ds(&rdata).map(|()| AnchorRecord::Ds(rdata)),
        Rtype::DNSKEY => check_dnskey(&rdata).map(|()| AnchorRecord::Dnskey(rdata)),
        _ => Err(RecordFault::OtherType),
    }
}

fn check_ds(rdata: &[u8]) -> Result<(), RecordFault> {
    let [high, low, _, digest_type, digest @ ..] = rdata else {
        return Err(RecordFault::Rdata(RdataFault::Missing));
    };
    let (tag, digest_type) = (u16::from_be_bytes([*high, *low]), DigestType(*digest_type));
    match digest_type.octets() {
        Some(expected) if expected != digest.len() => {
            Err(RecordFault::DigestLength { tag, digest_type, expected, found: digest.len() })
        }
        _ if digest.is_empty() => Err(RecordFault::Rdata(RdataFault::Missing)),
        _ => Ok(()),
    }
}

fn check_dnskey(rdata: &[u8]) -> Result<(), RecordFault> {
    let [high, low, protocol, algorithm, public @ ..] = rdata else {
        return Err(RecordFault::Rdata(RdataFault::Missing));
    };
    let (flags, tag) = (u16::from_be_bytes([*high, *low]), key_tag(rdata));
    if flags & REVOKE != 0 {
        return Err(RecordFault::Revoked { tag });
    }
    if flags & ZONE_KEY == 0 {
        return Err(RecordFault::NotZoneKey { tag, flags });
    }
    if *protocol != PROTOCOL {
        return Err(RecordFault::Protocol { tag, protocol: *protocol });
    }
    match PublicKey::parse(Algorithm(*algorithm), public) {
        Err(error) if !error.is_unusable() => Err(RecordFault::Key { tag, error }),
        _ => Ok(()),
    }
}
