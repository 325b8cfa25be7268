//! The unsigned records of a zone.

use super::description::ZoneDescription;
use super::error::TreeError;
use super::fault::Fault;
use nonesuch_crypto::key_tag;
use nonesuch_dnssec::KeySet;
use nonesuch_dnssec::keys::{REVOKE, SEP};
use nonesuch_proto::{Name, Rtype, rdata};
use nonesuch_zone::{Contents, read};
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;

/// Number of records of [`Fault::LargeRrset`].
const LARGE_RRSET_RECORDS: u32 = 150;
/// A reserved DNSKEY flag, in the first octet of the flags (RFC 4034 §2.1.1).
const RESERVED_FLAG: u8 = 0x40;
/// Label of the DNAME record of [`Fault::Dname`] and others, which leads to the sample `ent`.
pub(super) const DNAME_LABEL: &str = "redirect";
/// The sample names of a zone with [`ZoneDescription::samples`].
const SAMPLE_RECORDS: &str = "\
www A 192.0.2.10\nwww AAAA 2001:db8::10\nwww TXT \"sample\"\nmail MX 10 www\nalias CNAME www\n\
*.wild A 192.0.2.11\ndeep.ent A 192.0.2.12\n";

/// A zone before signing.
pub(super) struct ZonePlan<'d> {
    /// The apex.
    pub(super) origin: Name,
    pub(super) zone: &'d ZoneDescription,
    /// The closest enclosing zone, by index; `None` for the root.
    pub(super) parent: Option<usize>,
    /// Address of the server.
    pub(super) address: Ipv4Addr,
    /// Keys of a signed zone, and of an unsigned zone for which the parent has DS records.
    pub(super) keys: Option<KeySet>,
}

impl ZonePlan<'_> {
    /// The name of the nameserver, in the zone.
    pub(super) fn nameserver(&self) -> Name {
        let label = if self.origin.view().is_root() { "a.root-server" } else { "ns1" };
        // The suffix fits: an origin of such a length is rejected when the zone is read.
        Name::from_text(label.as_bytes(), Some(self.origin.view())).unwrap_or_else(|_| self.origin.clone())
    }

    /// Returns the DNSKEY RDATA that the zone publishes for a key: `dnskey`, changed as the faults of the
    /// zone and an unsupported algorithm require.
    pub(super) fn published_rdata(&self, dnskey: &[u8]) -> Vec<u8> {
        let mut rdata = dnskey.to_vec();
        if let [high, low, protocol, algorithm, ..] = rdata.as_mut_slice() {
            if self.zone.has(Fault::NoZoneKeyFlag) {
                *high = 0;
            }
            if self.zone.has(Fault::ReservedKeyFlags) {
                *high |= RESERVED_FLAG;
            }
            if self.zone.has(Fault::NoSepFlag) {
                *low &= !(SEP as u8);
            }
            if self.zone.has(Fault::RevokedKey) && *low & SEP as u8 != 0 {
                *low |= REVOKE as u8;
            }
            if self.zone.has(Fault::WrongProtocol) {
                *protocol = 4;
            }
            if self.zone.has_unsupported_algorithm() {
                *algorithm = self.zone.algorithm.0;
            }
        }
        rdata
    }
}

/// RDATA in presentation form.
pub(super) fn rdata_text(rtype: Rtype, octets: &[u8]) -> String {
    let mut out = Vec::new();
    rdata::push_text(rtype, octets, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The unsigned records of the zone at `index` in `plans`. `colliding` is the RDATA of additional
/// DNSKEY records.
pub(super) fn unsigned_contents(
    plans: &[ZonePlan<'_>],
    index: usize,
    colliding: &[Vec<u8>],
) -> Result<Contents, TreeError> {
    let plan = &plans[index];
    let zone = plan.zone;
    let nameserver = plan.nameserver();
    let mut text = format!(
        "$ORIGIN {}\n$TTL {}\n@ SOA {nameserver} hostmaster 1 7200 3600 1209600 900\n@ NS {nameserver}\n\
         {nameserver} A {}\n",
        plan.origin, zone.ttl, plan.address
    );
    for number in 0..zone.names {
        let _ = writeln!(text, "host{number} A 198.51.100.{}", number % 254 + 1);
    }
    if zone.samples.unwrap_or_else(|| !plan.origin.view().is_root()) {
        text.push_str(SAMPLE_RECORDS);
    }
    push_faulty_data(zone, &mut text);
    for child in plans.iter().filter(|child| child.parent == Some(index)) {
        child.push_delegation(plan.address, &mut text);
    }
    for dnskey in colliding {
        let _ = writeln!(text, "@ DNSKEY {}", rdata_text(Rtype::DNSKEY, dnskey));
    }
    text.push_str(&zone.records);
    text.push('\n');
    let path = format!("zone {}", plan.origin);
    let read = read::read_text(text.as_bytes(), Path::new(&path), Some(&plan.origin));
    read.map(|parsed| parsed.contents)
        .map_err(|source| TreeError::Records { zone: plan.origin.clone(), source: Box::new(source) })
}

/// Appends the records of the faults with [`FaultScope::Data`](super::FaultScope::Data).
fn push_faulty_data(zone: &ZoneDescription, text: &mut String) {
    if [Fault::Dname, Fault::UnsignedDname, Fault::ForgedCname].iter().any(|fault| zone.has(*fault)) {
        let _ = writeln!(text, "{DNAME_LABEL} DNAME ent");
    }
    if zone.has(Fault::CnameLoop) {
        text.push_str("loop CNAME pool\npool CNAME loop\n");
    }
    if zone.has(Fault::LargeRrset) {
        for number in 0..LARGE_RRSET_RECORDS {
            let _ = writeln!(text, "large TXT \"record {number}\"");
        }
    }
}

/// Sets the flags of a DNSKEY record so that it has the key tag `tag`: validators ignore reserved
/// flags (RFC 4034 §2.1.1), so flags are free except Zone Key (set), REVOKE and SEP (clear).
/// `None` if no such flags exist.
#[must_use]
pub fn with_key_tag(mut dnskey: Vec<u8>, tag: u16) -> Option<Vec<u8>> {
    dnskey.get_mut(..2)?.fill(0);
    let wanted = tag.wrapping_sub(key_tag(&dnskey));
    // The key tag is a sum of 16-bit words with end-around carry (RFC 4034 appendix B). Because of
    // the carry, the flags can be one more or one less than the difference.
    for flags in [wanted, wanted.wrapping_sub(1), wanted.wrapping_add(1)] {
        dnskey[..2].copy_from_slice(&flags.to_be_bytes());
        if flags & 0x0181 == 0x0100 && key_tag(&dnskey) == tag {
            return Some(dnskey);
        }
    }
    None
}
