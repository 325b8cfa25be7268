//! Zones with an algorithm number that this program does not sign with, so that validators should find them
//! insecure (RFC 4035 §5.2, RFC 6840 §5.2).
//!
//! The keys are those of a known algorithm, the substitute. The DNSKEY, DS and RRSIG records get the other number.
//! The signatures of RSA with SHA-1 are valid. Those of other numbers keep the octets of the substitute.

use super::data::ZonePlan;
use super::description::ZoneDescription;
use super::error::TreeError;
use super::records::Records;
use super::rsa::sign_with_sha1;
use data_encoding::BASE64;
use nonesuch_crypto::{Algorithm, PrivateKey, key_tag};
use nonesuch_dnssec::denial::{DenialGeneration, NameHash};
use nonesuch_dnssec::rrsig::{Rrsig, push_signed_data};
use nonesuch_dnssec::{KeyPair, KeySet};
use nonesuch_proto::{Name, Rtype};

/// RSA with MD5 (RFC 2537), whose keys have the form of those of RSA with SHA-1. Validators do not use their key
/// tags, which follow another rule (RFC 4034 appendix B.1).
const RSAMD5: Algorithm = Algorithm(1);
/// Numbers that are no algorithms (RFC 4034 appendix A.1, RFC 8078 §4): 0, and those from 252 on.
const RESERVED: [u8; 5] = [0, 252, 253, 254, 255];

impl ZoneDescription {
    /// Whether this program does not sign with the algorithm, and the zone has the number nevertheless.
    pub(super) fn has_unsupported_algorithm(&self) -> bool {
        self.signed && self.algorithm.entry().is_none() && !RESERVED.contains(&self.algorithm.0)
    }
}

/// The algorithm of the keys in place of `algorithm`: the same one if this program signs with it.
pub(super) fn substitute(algorithm: Algorithm) -> Algorithm {
    match algorithm {
        known if known.entry().is_some() || RESERVED.contains(&known.0) => known,
        rsa if rsa.is_sha1() || rsa == RSAMD5 => Algorithm::RSASHA256,
        _ => Algorithm::ECDSAP256SHA256,
    }
}

/// Checks that a zone with an unsupported algorithm has nothing that needs signatures of the algorithm.
pub(super) fn check(plan: &ZonePlan<'_>) -> Result<(), TreeError> {
    let zone = plan.zone;
    if !zone.has_unsupported_algorithm() {
        return Ok(());
    }
    let is_offline = zone.denial.generation() == DenialGeneration::Offline;
    let needed = if !is_offline || zone.denial.name_hash() == NameHash::Vrf || zone.also_nsec5 {
        "NSEC or NSEC3"
    } else if !zone.faults.is_empty() {
        "a zone without faults"
    } else {
        return Ok(());
    };
    Err(TreeError::Unsupported { zone: plan.origin.clone(), algorithm: zone.algorithm, needed })
}

/// A key of the substitute.
struct Replaced<'k> {
    key: &'k KeyPair,
    /// The key tag with the number of the zone.
    tag: u16,
}

/// Gives the DNSKEY and RRSIG records of a signed zone the number of its algorithm.
pub(super) fn relabel(plan: &ZonePlan<'_>, keys: &KeySet, records: &mut Records) {
    if let Some(set) = records.rrset_mut(&plan.origin, Rtype::DNSKEY, false) {
        set.rdatas.iter_mut().for_each(|rdata| *rdata = plan.published_rdata(rdata));
    }
    let replaced = |key| Replaced { key, tag: key_tag(&plan.published_rdata(&key.dnskey_rdata())) };
    let replaced: Vec<Replaced<'_>> = keys.keys().iter().map(replaced).collect();
    let algorithm = plan.zone.algorithm;
    records.replace_signatures(|owner, fields, rdatas| {
        let found = replaced.iter().find(|replaced| replaced.key.tag() == fields.tag)?;
        let fields = Rrsig { algorithm, tag: found.tag, ..fields };
        let mut rdata = Vec::new();
        fields.push_fields(&mut rdata);
        if algorithm.is_sha1() {
            rdata.extend(sha1_signature(owner, &fields, rdatas, found.key.private())?);
        } else {
            rdata.extend_from_slice(fields.signature);
        }
        Some(rdata)
    });
}

/// A signature of RSA with SHA-1 (RFC 3110). `rdatas` are in canonical order. `None` if the key is not for RSA.
fn sha1_signature(owner: &Name, fields: &Rrsig<'_>, rdatas: &[Vec<u8>], key: &PrivateKey) -> Option<Vec<u8>> {
    let mut signed = Vec::new();
    push_signed_data(fields, owner.view(), rdatas.iter().map(Vec::as_slice), &mut signed);
    let text = key.to_bind();
    let number = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?;
        BASE64.decode(value.as_bytes()).ok()
    };
    sign_with_sha1(&number("Modulus")?, &number("PrivateExponent")?, &signed)
}
