//! The table of record types.

use super::field::Field::{self, *};
use crate::Rtype;
use std::sync::OnceLock;

/// A record type of the table.
#[derive(Debug)]
pub struct TypeEntry {
    /// The type number.
    pub rtype: Rtype,
    /// The mnemonic from the IANA registry, or from the draft if the number is for private use.
    pub mnemonic: &'static str,
    /// The fields of the RDATA, in order.
    pub fields: &'static [Field],
}

/// A name that is compressed in messages (types of RFC 1035, RFC 3597 §4) and lower-cased in
/// canonical form.
const WELL_KNOWN: Field = Name { compress: true, lower: true };
/// A name that is never compressed and is lower-cased in canonical form (RFC 4034 §6.2).
const LOWERED: Field = Name { compress: false, lower: true };
/// A name that is neither compressed nor lower-cased (types newer than RFC 4034, and NSEC according
/// to RFC 6840 §5.1).
const VERBATIM: Field = Name { compress: false, lower: false };

const fn row(number: u16, mnemonic: &'static str, fields: &'static [Field]) -> TypeEntry {
    TypeEntry { rtype: Rtype(number), mnemonic, fields }
}

/// All types with a presentation form other than the generic one, in ascending order of their
/// numbers.
pub static TYPES: &[TypeEntry] = &[
    row(1, "A", &[Ipv4]),
    row(2, "NS", &[WELL_KNOWN]),
    row(3, "MD", &[WELL_KNOWN]),
    row(4, "MF", &[WELL_KNOWN]),
    row(5, "CNAME", &[WELL_KNOWN]),
    row(6, "SOA", &[WELL_KNOWN, WELL_KNOWN, U32, Ttl, Ttl, Ttl, Ttl]),
    row(7, "MB", &[WELL_KNOWN]),
    row(8, "MG", &[WELL_KNOWN]),
    row(9, "MR", &[WELL_KNOWN]),
    row(12, "PTR", &[WELL_KNOWN]),
    row(13, "HINFO", &[Text, Text]),
    row(14, "MINFO", &[WELL_KNOWN, WELL_KNOWN]),
    row(15, "MX", &[U16, WELL_KNOWN]),
    row(16, "TXT", &[Texts]),
    row(17, "RP", &[LOWERED, LOWERED]),
    row(18, "AFSDB", &[U16, LOWERED]),
    row(19, "X25", &[Text]),
    row(20, "ISDN", &[Texts]),
    row(21, "RT", &[U16, LOWERED]),
    row(24, "SIG", &[TypeNumber, AlgorithmNumber, U8, U32, Time, Time, U16, LOWERED, Base64]),
    row(25, "KEY", &[U16, U8, AlgorithmNumber, Base64OrNone]),
    row(26, "PX", &[U16, LOWERED, LOWERED]),
    row(27, "GPOS", &[Text, Text, Text]),
    row(28, "AAAA", &[Ipv6]),
    row(29, "LOC", &[Location]),
    row(30, "NXT", &[LOWERED, OldBitmap]),
    row(33, "SRV", &[U16, U16, U16, LOWERED]),
    row(35, "NAPTR", &[U16, U16, Text, Text, Text, LOWERED]),
    row(36, "KX", &[U16, LOWERED]),
    row(37, "CERT", &[CertificateType, U16, AlgorithmNumber, Base64]),
    row(38, "A6", &[Ipv6Chain]),
    row(39, "DNAME", &[LOWERED]),
    row(42, "APL", &[AddressPrefixes]),
    row(43, "DS", &[U16, AlgorithmNumber, U8, Hex]),
    row(44, "SSHFP", &[U8, U8, Hex]),
    row(45, "IPSECKEY", &[U8, GatewayType, U8, Gateway, Base64OrNone]),
    row(46, "RRSIG", &[TypeNumber, AlgorithmNumber, U8, U32, Time, Time, U16, LOWERED, Base64]),
    row(47, "NSEC", &[VERBATIM, Bitmap]),
    row(48, "DNSKEY", &[U16, U8, AlgorithmNumber, Base64OrNone]),
    row(49, "DHCID", &[Base64]),
    row(50, "NSEC3", &[U8, U8, U16, Salt, HashedName, Bitmap]),
    row(51, "NSEC3PARAM", &[U8, U8, U16, Salt]),
    row(52, "TLSA", &[U8, U8, U8, Hex]),
    row(53, "SMIMEA", &[U8, U8, U8, Hex]),
    row(55, "HIP", &[HostIdentity]),
    row(59, "CDS", &[U16, AlgorithmNumber, U8, Hex]),
    row(60, "CDNSKEY", &[U16, U8, AlgorithmNumber, Base64OrNone]),
    row(61, "OPENPGPKEY", &[Base64]),
    row(62, "CSYNC", &[U32, U16, Bitmap]),
    row(63, "ZONEMD", &[U32, U8, U8, Hex]),
    row(64, "SVCB", &[U16, VERBATIM, ServiceParameters]),
    row(65, "HTTPS", &[U16, VERBATIM, ServiceParameters]),
    row(99, "SPF", &[Texts]),
    row(104, "NID", &[U16, Groups64]),
    row(105, "L32", &[U16, Ipv4]),
    row(106, "L64", &[U16, Groups64]),
    row(107, "LP", &[U16, VERBATIM]),
    row(108, "EUI48", &[HexPairs(6)]),
    row(109, "EUI64", &[HexPairs(8)]),
    row(256, "URI", &[U16, U16, LongText]),
    row(257, "CAA", &[U8, Tag, LongText]),
    row(258, "AVC", &[Texts]),
    row(260, "AMTRELAY", &[U8, RelayType, Gateway]),
    row(32768, "TA", &[U16, AlgorithmNumber, U8, Hex]),
    row(32769, "DLV", &[U16, AlgorithmNumber, U8, Hex]),
    // draft-vcelak-nsec5. NSEC5: key tag, flags, next hashed owner name, types. NSEC5KEY: algorithm
    // and public key. NSEC5PROOF: key tag and proof.
    row(65280, "NSEC5", &[U16, U8, HashedName, Bitmap]),
    row(65281, "NSEC5KEY", &[U8, Base64]),
    row(65282, "NSEC5PROOF", &[U16, Base64]),
];

/// Number of rows at the end of the table whose type numbers are 512 or higher.
const HIGH: usize = 5;

/// Returns the index from type numbers below 512 to positions in [`TYPES`].
fn index() -> &'static [u8; 512] {
    static INDEX: OnceLock<[u8; 512]> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index = [u8::MAX; 512];
        for (position, entry) in TYPES.iter().enumerate() {
            if let Some(slot) = index.get_mut(usize::from(entry.rtype.0)) {
                *slot = position as u8;
            }
        }
        index
    })
}

/// Returns the entry of `rtype`, or `None` if the table does not contain it.
#[must_use]
pub fn entry(rtype: Rtype) -> Option<&'static TypeEntry> {
    match index().get(usize::from(rtype.0)) {
        Some(&position) => TYPES.get(usize::from(position)),
        None => TYPES.iter().rev().take(HIGH).find(|entry| entry.rtype == rtype),
    }
}

/// Maximum length of a mnemonic in the hash table, in octets.
const SHORT: usize = 8;
/// Number of slots of the hash table, several times the number of short mnemonics.
const PLACES: usize = 512;

/// Returns the entry with the mnemonic `text`, in any case.
#[must_use]
pub fn entry_by_mnemonic(text: &[u8]) -> Option<&'static TypeEntry> {
    let Some(word) = pack(text) else {
        return TYPES.iter().find(|entry| entry.mnemonic.as_bytes().eq_ignore_ascii_case(text));
    };
    let mnemonics = mnemonics();
    let mut place = hash(word);
    while let Some((other, position)) = mnemonics[place] {
        if other == word {
            return TYPES.get(usize::from(position));
        }
        place = (place + 1) % PLACES;
    }
    None
}

/// Hash table with open addressing: short mnemonics and their positions in [`TYPES`], each in the
/// slot of its hash or in the next free slot.
fn mnemonics() -> &'static [Option<(u64, u8)>; PLACES] {
    static MNEMONICS: OnceLock<[Option<(u64, u8)>; PLACES]> = OnceLock::new();
    MNEMONICS.get_or_init(|| {
        let mut mnemonics = [None; PLACES];
        for (position, entry) in TYPES.iter().enumerate() {
            let Some(word) = pack(entry.mnemonic.as_bytes()) else { continue };
            let mut place = hash(word);
            while mnemonics[place].is_some() {
                place = (place + 1) % PLACES;
            }
            mnemonics[place] = Some((word, position as u8));
        }
        mnemonics
    })
}

/// Returns a short mnemonic in upper case as one word. Returns `None` if `text` is empty, longer
/// than [`SHORT`], or contains a zero octet, which is the padding of shorter words.
fn pack(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > SHORT || text.contains(&0) {
        return None;
    }
    Some(text.iter().fold(0, |word, octet| word << 8 | u64::from(octet.to_ascii_uppercase())))
}

/// Multiplicative hash function with the golden ratio.
const fn hash(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % PLACES
}
