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

/// A name that may be compressed in messages (types of RFC 1035, RFC 3597 §4) and is lower-cased in
/// canonical form.
const COMPRESSED_NAME: Field = Name { compress: true, lower: true };
/// A name that is never compressed and is lower-cased in canonical form (RFC 4034 §6.2).
const LOWERCASE_NAME: Field = Name { compress: false, lower: true };
/// A name that is neither compressed nor lower-cased (types newer than RFC 4034, and NSEC according
/// to RFC 6840 §5.1).
const VERBATIM_NAME: Field = Name { compress: false, lower: false };

const fn row(number: u16, mnemonic: &'static str, fields: &'static [Field]) -> TypeEntry {
    TypeEntry { rtype: Rtype(number), mnemonic, fields }
}

/// All types with a presentation form other than the generic one, in ascending order of their
/// numbers.
pub static TYPES: &[TypeEntry] = &[
    row(1, "A", &[Ipv4]),
    row(2, "NS", &[COMPRESSED_NAME]),
    row(3, "MD", &[COMPRESSED_NAME]),
    row(4, "MF", &[COMPRESSED_NAME]),
    row(5, "CNAME", &[COMPRESSED_NAME]),
    row(6, "SOA", &[COMPRESSED_NAME, COMPRESSED_NAME, U32, Ttl, Ttl, Ttl, Ttl]),
    row(7, "MB", &[COMPRESSED_NAME]),
    row(8, "MG", &[COMPRESSED_NAME]),
    row(9, "MR", &[COMPRESSED_NAME]),
    row(12, "PTR", &[COMPRESSED_NAME]),
    row(13, "HINFO", &[CharacterString, CharacterString]),
    row(14, "MINFO", &[COMPRESSED_NAME, COMPRESSED_NAME]),
    row(15, "MX", &[U16, COMPRESSED_NAME]),
    row(16, "TXT", &[CharacterStrings]),
    row(17, "RP", &[LOWERCASE_NAME, LOWERCASE_NAME]),
    row(18, "AFSDB", &[U16, LOWERCASE_NAME]),
    row(19, "X25", &[CharacterString]),
    row(20, "ISDN", &[CharacterStrings]),
    row(21, "RT", &[U16, LOWERCASE_NAME]),
    row(
        24,
        "SIG",
        &[TypeNumber, AlgorithmNumber, U8, U32, Timestamp, Timestamp, U16, LOWERCASE_NAME, Base64],
    ),
    row(25, "KEY", &[U16, U8, AlgorithmNumber, Base64OrEmpty]),
    row(26, "PX", &[U16, LOWERCASE_NAME, LOWERCASE_NAME]),
    row(27, "GPOS", &[CharacterString, CharacterString, CharacterString]),
    row(28, "AAAA", &[Ipv6]),
    row(29, "LOC", &[Location]),
    row(30, "NXT", &[LOWERCASE_NAME, NxtBitmap]),
    row(33, "SRV", &[U16, U16, U16, LOWERCASE_NAME]),
    row(35, "NAPTR", &[U16, U16, CharacterString, CharacterString, CharacterString, LOWERCASE_NAME]),
    row(36, "KX", &[U16, LOWERCASE_NAME]),
    row(37, "CERT", &[CertificateType, U16, AlgorithmNumber, Base64]),
    row(38, "A6", &[A6Address]),
    row(39, "DNAME", &[LOWERCASE_NAME]),
    row(42, "APL", &[AddressPrefixes]),
    row(43, "DS", &[U16, AlgorithmNumber, U8, Hex]),
    row(44, "SSHFP", &[U8, U8, Hex]),
    row(45, "IPSECKEY", &[U8, GatewayType, U8, Gateway, Base64OrEmpty]),
    row(
        46,
        "RRSIG",
        &[TypeNumber, AlgorithmNumber, U8, U32, Timestamp, Timestamp, U16, LOWERCASE_NAME, Base64],
    ),
    row(47, "NSEC", &[VERBATIM_NAME, Bitmap]),
    row(48, "DNSKEY", &[U16, U8, AlgorithmNumber, Base64OrEmpty]),
    row(49, "DHCID", &[Base64]),
    row(50, "NSEC3", &[U8, U8, U16, Salt, HashedName, Bitmap]),
    row(51, "NSEC3PARAM", &[U8, U8, U16, Salt]),
    row(52, "TLSA", &[U8, U8, U8, Hex]),
    row(53, "SMIMEA", &[U8, U8, U8, Hex]),
    row(55, "HIP", &[HipFields]),
    row(59, "CDS", &[U16, AlgorithmNumber, U8, Hex]),
    row(60, "CDNSKEY", &[U16, U8, AlgorithmNumber, Base64OrEmpty]),
    row(61, "OPENPGPKEY", &[Base64]),
    row(62, "CSYNC", &[U32, U16, Bitmap]),
    row(63, "ZONEMD", &[U32, U8, U8, Hex]),
    row(64, "SVCB", &[U16, VERBATIM_NAME, ServiceParameters]),
    row(65, "HTTPS", &[U16, VERBATIM_NAME, ServiceParameters]),
    row(99, "SPF", &[CharacterStrings]),
    row(104, "NID", &[U16, HexGroups64]),
    row(105, "L32", &[U16, Ipv4]),
    row(106, "L64", &[U16, HexGroups64]),
    row(107, "LP", &[U16, VERBATIM_NAME]),
    row(108, "EUI48", &[HexPairs(6)]),
    row(109, "EUI64", &[HexPairs(8)]),
    row(256, "URI", &[U16, U16, QuotedText]),
    row(257, "CAA", &[U8, Tag, QuotedText]),
    row(258, "AVC", &[CharacterStrings]),
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
const ROWS_ABOVE_511: usize = 5;

/// Returns, for each type number below 512, its position in [`TYPES`], or 255 if the table does not
/// contain the number.
fn positions_by_number() -> &'static [u8; 512] {
    static INDEX: OnceLock<[u8; 512]> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut positions_by_number = [u8::MAX; 512];
        for (position, entry) in TYPES.iter().enumerate() {
            if let Some(slot) = positions_by_number.get_mut(usize::from(entry.rtype.0)) {
                *slot = position as u8;
            }
        }
        positions_by_number
    })
}

/// Returns the entry of `rtype`, or `None` if the table does not contain it.
#[must_use]
pub fn entry(rtype: Rtype) -> Option<&'static TypeEntry> {
    match positions_by_number().get(usize::from(rtype.0)) {
        Some(&position) => TYPES.get(usize::from(position)),
        None => TYPES.iter().rev().take(ROWS_ABOVE_511).find(|entry| entry.rtype == rtype),
    }
}

/// Maximum length of a mnemonic that fits into the `u64` of a hash table slot, in octets.
const MAX_PACKED_LENGTH: usize = 8;
/// Number of slots of the hash table, several times the number of short mnemonics.
const HASH_SLOTS: usize = 512;

/// Returns the entry with the mnemonic `text`, in any case.
#[must_use]
pub fn entry_by_mnemonic(text: &[u8]) -> Option<&'static TypeEntry> {
    let Some(word) = pack_mnemonic(text) else {
        return TYPES.iter().find(|entry| entry.mnemonic.as_bytes().eq_ignore_ascii_case(text));
    };
    let positions_by_mnemonic = positions_by_mnemonic();
    let mut slot = hash_slot(word);
    while let Some((other, position)) = positions_by_mnemonic[slot] {
        if other == word {
            return TYPES.get(usize::from(position));
        }
        slot = (slot + 1) % HASH_SLOTS;
    }
    None
}

/// Hash table with open addressing: short mnemonics and their positions in [`TYPES`], each in the
/// slot of its hash or in the next free slot.
fn positions_by_mnemonic() -> &'static [Option<(u64, u8)>; HASH_SLOTS] {
    static MNEMONICS: OnceLock<[Option<(u64, u8)>; HASH_SLOTS]> = OnceLock::new();
    MNEMONICS.get_or_init(|| {
        let mut positions_by_mnemonic = [None; HASH_SLOTS];
        for (position, entry) in TYPES.iter().enumerate() {
            let Some(word) = pack_mnemonic(entry.mnemonic.as_bytes()) else { continue };
            let mut slot = hash_slot(word);
            while positions_by_mnemonic[slot].is_some() {
                slot = (slot + 1) % HASH_SLOTS;
            }
            positions_by_mnemonic[slot] = Some((word, position as u8));
        }
        positions_by_mnemonic
    })
}

/// Returns a short mnemonic in upper case as one word. Returns `None` if `text` is empty, longer
/// than [`MAX_PACKED_LENGTH`], or contains a zero octet, which is the padding of shorter words.
fn pack_mnemonic(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > MAX_PACKED_LENGTH || text.contains(&0) {
        return None;
    }
    Some(text.iter().fold(0, |word, octet| word << 8 | u64::from(octet.to_ascii_uppercase())))
}

/// Multiplicative hash function with the golden ratio.
const fn hash_slot(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % HASH_SLOTS
}
