//! What can be read off a zone without verifying it: its keys, how it denies existence, its signatures' fields.

use crate::denial::nsec3::{Nsec3, OPT_OUT};
use crate::denial::{Mechanism, Nsec3Params};
use crate::keys::{REVOKE, SEP};
use nonesuch_crypto::{Algorithm, PublicKey, key_tag};
use nonesuch_proto::Rtype;
use nonesuch_zone::Contents;
use std::fmt;

/// A DNSKEY record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyFacts {
    /// Key tag (RFC 4034, appendix B).
    pub tag: u16,
    /// Algorithm; perhaps an unknown one.
    pub algorithm: Algorithm,
    /// Flags.
    pub flags: u16,
    /// Length in bits, where the key can be used.
    pub bits: Option<u32>,
    /// RDATA.
    pub rdata: Vec<u8>,
}

impl KeyFacts {
    /// Reads DNSKEY RDATA; `None` where it is cut off.
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

    /// `KSK` with the SEP flag, else `ZSK`; whether it is revoked (RFC 5011 §2.1).
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

impl fmt::Display for KeyFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.tag, self.algorithm, self.role())?;
        self.bits.map_or(Ok(()), |bits| write!(f, " {bits} bits"))
    }
}

/// The DNSKEY records at the apex, by tag.
#[must_use]
pub fn keys(contents: &Contents) -> Vec<KeyFacts> {
    let rrset = contents.apex_rrset(Rtype::DNSKEY);
    let mut keys: Vec<KeyFacts> =
        rrset.iter().flat_map(|rrset| rrset.rdatas()).filter_map(KeyFacts::read).collect();
    keys.sort_unstable();
    keys
}

/// How a zone denies existence, as its records look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenialFacts {
    /// The mechanism; opt-out where any record has that flag.
    pub mechanism: Mechanism,
    /// Salt and iterations, where names are hashed.
    pub parameters: Option<Nsec3Params>,
    /// Records of the chain.
    pub records: u64,
    /// Records with the opt-out flag.
    pub opt_out_records: u64,
}

impl fmt::Display for DenialFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mechanism.entry().title)?;
        let Some(parameters) = &self.parameters else { return Ok(()) };
        let salt: String = parameters.salt.iter().map(|octet| format!("{octet:02X}")).collect();
        let salt = if salt.is_empty() { "-" } else { &salt };
        write!(f, ", {} iterations, salt {salt}", parameters.iterations)
    }
}

/// How the zone denies existence; `None` where it has no such records. NSEC3 with parameters at the apex comes before
/// NSEC, as servers choose (RFC 5155 §7.2).
#[must_use]
pub fn denial(contents: &Contents) -> Option<DenialFacts> {
    let (mut nsec, mut nsec3, mut opt_out) = (0u64, 0u64, 0u64);
    let mut first = None;
    for rrset in contents.nodes().flat_map(|node| node.rrsets()) {
        match rrset.rtype() {
            Rtype::NSEC => nsec += rrset.count() as u64,
            Rtype::NSEC3 => {
                nsec3 += rrset.count() as u64;
                let flagged = |rdata: &&[u8]| rdata.get(1).is_some_and(|flags| flags & OPT_OUT != 0);
                opt_out += rrset.rdatas().filter(flagged).count() as u64;
                first = first.or_else(|| rrset.rdatas().next());
            }
            _ => {}
        }
    }
    let stated = contents.apex_rrset(Rtype::NSEC3PARAM).and_then(|rrset| rrset.rdatas().next());
    if nsec3 == 0 || stated.is_none() && nsec > 0 {
        let nsec =
            DenialFacts { mechanism: Mechanism::Nsec, parameters: None, records: nsec, opt_out_records: 0 };
        return Some(nsec).filter(|nsec| nsec.records > 0);
    }
    let fields = stated.or(first).and_then(Nsec3::parse_param).map(|(fields, _)| fields);
    let parameters =
        fields.map(|fields| Nsec3Params { salt: fields.salt.to_vec(), iterations: fields.iterations });
    let mechanism = if opt_out > 0 { Mechanism::Nsec3OptOut } else { Mechanism::Nsec3 };
    Some(DenialFacts { mechanism, parameters, records: nsec3, opt_out_records: opt_out })
}

/// Whether records of the type make up a chain of denial.
#[must_use]
pub const fn is_chain(rtype: Rtype) -> bool {
    rtype.is_made_by_signing() && rtype.0 != Rtype::RRSIG.0
}

/// Whether the zone is signed: there is a signature at its apex.
#[must_use]
pub fn is_signed(contents: &Contents) -> bool {
    contents.nodes().next().is_some_and(|apex| apex.signatures(Rtype::SOA).is_some())
}

/// Types at the apex of a signed zone that its signer keeps: keys, what it tells the parent of them (RFC 7344), and
/// the zone's digest (RFC 8976).
pub const KEPT_BY_SIGNER: [Rtype; 4] = [Rtype::DNSKEY, Rtype::CDS, Rtype::CDNSKEY, Rtype::ZONEMD];
