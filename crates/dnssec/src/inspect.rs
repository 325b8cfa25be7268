//! Reads properties of a zone from its records without verification: its keys, its denial
//! mechanism, whether it is signed, and when its signatures expire.

mod expiry;

pub use expiry::{Expiry, ExpiryWatch};

use crate::denial::nsec3::{Nsec3, OPT_OUT_FLAG};
use crate::denial::nsec5::{self, Nsec5};
use crate::denial::{Mechanism, Nsec3Params, is_generated_by_signing};
use crate::keys::{Nsec5Key, REVOKE, SEP};
use nonesuch_crypto::vrf::VrfAlgorithm;
use nonesuch_crypto::{Algorithm, PublicKey, key_tag};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::compiled::Uniformity;
use nonesuch_zone::{Contents, Node, Rrset, StoredZone};
use std::fmt;

/// The types of the key set, which KSKs and CSKs sign at the apex.
pub(crate) const KEY_SET: [Rtype; 3] = [Rtype::DNSKEY, Rtype::CDS, Rtype::CDNSKEY];
/// The types with which the zone informs its parent about keys (RFC 7344).
pub(crate) const CDS_TYPES: [Rtype; 2] = [Rtype::CDS, Rtype::CDNSKEY];

/// The fields of a DNSKEY record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyInfo {
    /// Key tag (RFC 4034, appendix B).
    pub tag: u16,
    /// Algorithm number, which may be unknown.
    pub algorithm: Algorithm,
    /// DNSKEY flags.
    pub flags: u16,
    /// Length of the key in bits; `None` if the key is malformed or its algorithm is not supported.
    pub bits: Option<u32>,
    /// RDATA.
    pub rdata: Vec<u8>,
}

impl KeyInfo {
    /// Reads DNSKEY RDATA; `None` if they are truncated.
    #[must_use]
    pub fn read(rdata: &[u8]) -> Option<Self> {
        let [high, low, _protocol, algorithm, public @ ..] = rdata else { return None };
        let algorithm = Algorithm(*algorithm);
        Some(Self {
            tag: key_tag(rdata),
            algorithm,
            flags: u16::from_be_bytes([*high, *low]),
            bits: PublicKey::parse(algorithm, public).ok().map(|key| key.bits()),
            rdata: rdata.to_vec(),
        })
    }

    /// The role according to the flags only: `KSK` with the SEP flag, otherwise `ZSK`; `revoked`
    /// follows for a revoked key (RFC 5011 §2.1). A CSK is also shown as `KSK` or `ZSK`.
    #[must_use]
    pub const fn role(&self) -> &'static str {
        match (self.flags & SEP != 0, self.flags & REVOKE != 0) {
            (true, false) => "KSK",
            (true, true) => "KSK revoked",
            (false, false) => "ZSK",
            (false, true) => "ZSK revoked",
        }
    }
}

impl fmt::Display for KeyInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.tag, self.algorithm, self.role())?;
        self.bits.map_or(Ok(()), |bits| write!(f, " {bits} bits"))
    }
}

/// The DNSKEY records at the apex, sorted by key tag. Ignores truncated records.
#[must_use]
pub fn keys(contents: &Contents) -> Vec<KeyInfo> {
    let rrset = contents.apex_rrset(Rtype::DNSKEY);
    let mut keys: Vec<KeyInfo> =
        rrset.iter().flat_map(|rrset| rrset.rdatas()).filter_map(KeyInfo::read).collect();
    keys.sort_unstable();
    keys
}

/// The fields of an NSEC5KEY record, and its use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VrfKeyInfo {
    /// Key tag.
    pub tag: u16,
    /// The VRF algorithm number, which may be unknown.
    pub algorithm: VrfAlgorithm,
    /// Number of NSEC5 records in the zone with this tag.
    pub records: u64,
}

impl fmt::Display for VrfKeyInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.tag, self.algorithm)
    }
}

/// The denial mechanism of a zone according to its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenialInfo {
    /// The mechanism, with opt-out if any record has the opt-out flag.
    pub mechanism: Mechanism,
    /// Salt and iterations of an NSEC3 chain; `None` for other mechanisms, or if they cannot be
    /// parsed.
    pub parameters: Option<Nsec3Params>,
    /// The NSEC5KEY records at the apex of a zone with NSEC5, sorted by key tag.
    pub vrf_keys: Vec<VrfKeyInfo>,
    /// Number of records in the chain.
    pub records: u64,
    /// Number of records with the opt-out flag.
    pub opt_out_records: u64,
    /// Number of NSEC5 records with the Wildcard flag.
    pub wildcard_records: u64,
}

impl DenialInfo {
    /// A mechanism with `records` records in the chain, without parameters, keys and flags.
    const fn new(mechanism: Mechanism, records: u64) -> Self {
        let (opt_out_records, wildcard_records) = (0, 0);
        Self { mechanism, parameters: None, vrf_keys: Vec::new(), records, opt_out_records, wildcard_records }
    }

    /// The NSEC5 key to which most records of the chain belong; `None` without NSEC5 records of a
    /// published key.
    #[must_use]
    pub fn vrf_key(&self) -> Option<&VrfKeyInfo> {
        self.vrf_keys.iter().filter(|key| key.records > 0).max_by_key(|key| key.records)
    }
}

impl fmt::Display for DenialInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mechanism.entry().title)?;
        if let Some(key) = self.vrf_key() {
            write!(f, ", key {key}")?;
        }
        let Some(parameters) = &self.parameters else { return Ok(()) };
        let salt: String = parameters.salt.iter().map(|octet| format!("{octet:02X}")).collect();
        let salt = if salt.is_empty() { "-" } else { &salt };
        write!(f, ", {} iterations, salt {salt}", parameters.iterations)
    }
}

/// The denial mechanism of the zone; `None` if it has no denial records. NSEC5 with a key at the
/// apex takes precedence over NSEC3 with parameters at the apex, and NSEC3 over NSEC, as in the
/// server (RFC 5155 §7.2).
#[must_use]
pub fn denial(contents: &Contents) -> Option<DenialInfo> {
    let has_key = contents.apex_rrset(Rtype::NSEC5KEY).is_some();
    let nsec_or_nsec3 = nsec_or_nsec3_denial(contents);
    if has_key || nsec_or_nsec3.is_none() { nsec5_denial(contents).or(nsec_or_nsec3) } else { nsec_or_nsec3 }
}

/// As [`denial`] for a compiled zone with NSEC or NSEC3. Reads only the directory of the file and
/// the apex. `None` if they do not determine the mechanism, if the zone has no denial records, or
/// if the apex has an NSEC5 key; [`denial`] then needs the whole zone.
#[must_use]
pub fn denial_by_directory(zone: &StoredZone) -> Option<DenialInfo> {
    let apex = zone.first_chunk();
    if apex.apex_rrset(Rtype::NSEC5KEY).is_some() {
        return None;
    }
    let (mut nsec, mut nsec3, mut opt_out) = (0, 0, 0);
    for chunk in zone.chunks() {
        // The pattern has the type (2 octets), the TTL (4) and, for NSEC3, hash algorithm and flags
        // (1 each).
        match chunk.chain() {
            Uniformity::Absent => {}
            Uniformity::Uniform([high, low, tail @ ..])
                if Rtype(u16::from_be_bytes([*high, *low])) == Rtype::NSEC3 =>
            {
                nsec3 += chunk.chain_records();
                let is_opt_out = tail.get(5).is_some_and(|flags| flags & OPT_OUT_FLAG != 0);
                opt_out += if is_opt_out { chunk.chain_records() } else { 0 };
            }
            Uniformity::Uniform(_) => nsec += chunk.chain_records(),
            Uniformity::Mixed => return None,
        }
    }
    let nsec3param = apex.apex_rrset(Rtype::NSEC3PARAM).and_then(|rrset| rrset.rdatas().next());
    let fields = nsec3param.and_then(Nsec3::parse_param).map(|(fields, _)| fields);
    match (nsec, nsec3, fields) {
        (1.., 0, None) => Some(DenialInfo::new(Mechanism::Nsec, nsec)),
        (0, 1.., Some(fields)) => {
            let mechanism = if opt_out > 0 { Mechanism::Nsec3OptOut } else { Mechanism::Nsec3 };
            let parameters = Nsec3Params { salt: fields.salt.to_vec(), iterations: fields.iterations };
            let info = DenialInfo::new(mechanism, nsec3);
            Some(DenialInfo { parameters: Some(parameters), opt_out_records: opt_out, ..info })
        }
        _ => None,
    }
}

/// The denial mechanism according to the NSEC5 records; `None` if there are none.
fn nsec5_denial(contents: &Contents) -> Option<DenialInfo> {
    let apex = contents.apex().view();
    let keys = contents.apex_rrset(Rtype::NSEC5KEY).into_iter().flat_map(Rrset::rdatas);
    let info = |key: Nsec5Key| VrfKeyInfo { tag: key.tag(), algorithm: key.algorithm(), records: 0 };
    let mut found = DenialInfo::new(Mechanism::Nsec5, 0);
    found.vrf_keys = keys.filter_map(Nsec5Key::from_rdata).map(info).collect();
    found.vrf_keys.sort_unstable();
    for node in contents.nodes() {
        let Some(rrset) = node.rrset(Rtype::NSEC5) else { continue };
        if !nsec5::is_chain_owner(node.name(), apex) {
            continue;
        }
        found.records += rrset.count() as u64;
        for Nsec5 { tag, flags, .. } in rrset.rdatas().filter_map(Nsec5::parse) {
            found.opt_out_records += u64::from(flags & nsec5::OPT_OUT_FLAG != 0);
            found.wildcard_records += u64::from(flags & nsec5::WILDCARD_FLAG != 0);
            if let Some(key) = found.vrf_keys.iter_mut().find(|key| key.tag == tag) {
                key.records += 1;
            }
        }
    }
    if found.opt_out_records > 0 {
        found.mechanism = Mechanism::Nsec5OptOut;
    }
    (found.records > 0).then_some(found)
}

/// The denial mechanism according to the NSEC and NSEC3 records. NSEC3 needs an NSEC3PARAM record
/// if the zone has NSEC records too.
fn nsec_or_nsec3_denial(contents: &Contents) -> Option<DenialInfo> {
    let (mut nsec, mut nsec3, mut opt_out) = (0u64, 0u64, 0u64);
    let mut first_nsec3 = None;
    for rrset in contents.nodes().flat_map(|node| node.rrsets()) {
        match rrset.rtype() {
            Rtype::NSEC => nsec += rrset.count() as u64,
            Rtype::NSEC3 => {
                nsec3 += rrset.count() as u64;
                let is_opt_out = |rdata: &&[u8]| rdata.get(1).is_some_and(|flags| flags & OPT_OUT_FLAG != 0);
                opt_out += rrset.rdatas().filter(is_opt_out).count() as u64;
                first_nsec3 = first_nsec3.or_else(|| rrset.rdatas().next());
            }
            _ => {}
        }
    }
    let nsec3param = contents.apex_rrset(Rtype::NSEC3PARAM).and_then(|rrset| rrset.rdatas().next());
    if nsec3 == 0 || nsec3param.is_none() && nsec > 0 {
        return (nsec > 0).then(|| DenialInfo::new(Mechanism::Nsec, nsec));
    }
    let fields = nsec3param.or(first_nsec3).and_then(Nsec3::parse_param).map(|(fields, _)| fields);
    let parameters =
        fields.map(|fields| Nsec3Params { salt: fields.salt.to_vec(), iterations: fields.iterations });
    let mechanism = if opt_out > 0 { Mechanism::Nsec3OptOut } else { Mechanism::Nsec3 };
    Some(DenialInfo { parameters, opt_out_records: opt_out, ..DenialInfo::new(mechanism, nsec3) })
}

/// Whether an RRset of `rtype` at `owner` belongs to a denial chain of the zone at `apex`: NSEC,
/// NSEC3, NSEC3PARAM and NSEC5. The type number of NSEC5 is for private use: at an owner that
/// cannot be in a chain, the RRset is data.
#[must_use]
pub fn is_chain(rtype: Rtype, owner: NameRef<'_>, apex: NameRef<'_>) -> bool {
    rtype != Rtype::RRSIG && is_generated_by_signing(rtype, owner, apex)
}

/// Whether the zone is signed: it has an RRSIG record over its SOA record.
#[must_use]
pub fn is_signed(contents: &Contents) -> bool {
    contents.nodes().next().is_some_and(|apex| apex.signatures(Rtype::SOA).is_some())
}

/// Whether the only DNSSEC records of the zone are the key set at its apex and its signatures, as
/// [`sign_key_set`](crate::online::sign_key_set) generates them. A server signs such a zone online.
#[must_use]
pub fn has_only_signed_key_set(contents: &Contents) -> bool {
    let is_signed = contents.nodes().next().is_some_and(|apex| apex.signatures(Rtype::DNSKEY).is_some());
    is_signed && has_only_key_set(contents)
}

/// Whether the zone has no DNSSEC records other than the key set at its apex and signatures over
/// it. `true` also for an unsigned zone.
pub(crate) fn has_only_key_set(contents: &Contents) -> bool {
    let apex = contents.apex().view();
    let is_other = |node: Node<'_>, rrset: Rrset<'_>| match rrset.rtype() {
        Rtype::RRSIG => node.index() > 0 || !KEY_SET.contains(&rrset.covered()),
        rtype => is_generated_by_signing(rtype, node.name(), apex),
    };
    !contents.nodes().any(|node| node.rrsets().any(|rrset| is_other(node, rrset)))
}

/// The keys among these DNSKEY RDATA with an alias algorithm number. Validators without NSEC5 treat
/// a zone that has only such keys as insecure.
pub fn alias_keys<'r>(dnskeys: impl IntoIterator<Item = &'r [u8]>) -> Vec<KeyInfo> {
    let is_alias = |key: &KeyInfo| key.algorithm != key.algorithm.without_alias();
    dnskeys.into_iter().filter_map(KeyInfo::read).filter(is_alias).collect()
}

/// Types at the apex that a signer may add and that it keeps when it signs the zone again: keys,
/// records for the parent (RFC 7344), the digest of the zone (RFC 8976), and NSEC5 keys.
pub const KEPT_BY_SIGNER: [Rtype; 5] =
    [Rtype::DNSKEY, Rtype::CDS, Rtype::CDNSKEY, Rtype::ZONEMD, Rtype::NSEC5KEY];

/// Whether an RRset of the zone at `apex` belongs to the signer and is not data of the zone. This
/// is so if the signer generates it. In a `signed` zone, it is also so for the types of
/// [`KEPT_BY_SIGNER`] at the apex. NSEC5KEY has a private-use type number, so at least one record
/// must be a valid NSEC5 key.
#[must_use]
pub fn belongs_to_signer(node: Node<'_>, rrset: Rrset<'_>, apex: NameRef<'_>, signed: bool) -> bool {
    let is_key = |rdata: &[u8]| Nsec5Key::from_rdata(rdata).is_some_and(|key| key.public_key().is_ok());
    let has_source_records = || match rrset.rtype() {
        Rtype::NSEC5KEY => rrset.rdatas().any(is_key),
        rtype => KEPT_BY_SIGNER.contains(&rtype),
    };
    is_generated_by_signing(rrset.rtype(), node.name(), apex)
        || signed && node.name() == apex && has_source_records()
}
