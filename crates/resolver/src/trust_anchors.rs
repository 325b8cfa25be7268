//! Trust anchors of a resolver (RFC 4033 §2): the configured ones, their files, their automated update
//! (RFC 5011), and the signals about them (RFC 8145, RFC 8509).
//!
//! - [`TrustAnchors`] are the configured anchors by zone. `file` reads them from a file.
//! - [`managed::ManagedAnchor`] follows the keys of one zone: it adds new keys after a hold-down time
//!   and ends the trust in revoked keys. It is a state machine without clock and I/O, with a text
//!   format for its state.
//! - [`signal_query_name`] is the name of a query that reports to a zone which keys the resolver trusts.
//! - [`sentinel()`] recognizes names with which clients ask whether a key is trusted.

mod file;
pub mod managed;
mod sentinel;
mod signal;

pub use file::{AnchorFileError, MAX_FILE_OCTETS, MAX_FILE_RECORDS, RecordFault, SyntaxFault};
pub use sentinel::{Sentinel, SentinelAction, SentinelKind, SentinelQuery, sentinel, sentinel_action};
pub use signal::{MAX_SIGNALLED_TAGS, signal_query_name};

use nonesuch_crypto::{DigestType, key_tag};
use nonesuch_dnssec::keys::ds_rdata;
use nonesuch_proto::{Name, NameRef};

/// The algorithm of both keys of the root zone, RSASHA256.
const ROOT_ALGORITHM: u8 = 8;

/// The DS records of the keys of the root zone, as tag and SHA-256 digest, which IANA publishes in
/// <https://data.iana.org/root-anchors/root-anchors.xml> (RFC 9718): KSK-2017 and KSK-2024.
const ROOT_DS: [(u16, [u8; 32]); 2] = [
    (
        20326,
        [
            0xe0, 0x6d, 0x44, 0xb8, 0x0b, 0x8f, 0x1d, 0x39, 0xa9, 0x5c, 0x0b, 0x0d, 0x7c, 0x65, 0xd0, 0x84,
            0x58, 0xe8, 0x80, 0x40, 0x9b, 0xbc, 0x68, 0x34, 0x57, 0x10, 0x42, 0x37, 0xc7, 0xf8, 0xec, 0x8d,
        ],
    ),
    (
        38696,
        [
            0x68, 0x3d, 0x2d, 0x0a, 0xcb, 0x8c, 0x9b, 0x71, 0x2a, 0x19, 0x48, 0xb2, 0x7f, 0x74, 0x12, 0x19,
            0x29, 0x8d, 0x0a, 0x45, 0x0d, 0x61, 0x2c, 0x48, 0x3a, 0xf4, 0x44, 0xa4, 0xc0, 0xfb, 0x2b, 0x16,
        ],
    ),
];

/// The configured trust anchors, by zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustAnchors {
    /// In canonical order of the apexes, each of which occurs once. Each zone has a record.
    zones: Vec<ZoneAnchor>,
}

/// The trust anchors of one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneAnchor {
    /// The apex of the zone, in lower case.
    pub apex: Name,
    /// The records, in the order in which they were added, without duplicates.
    pub records: Vec<AnchorRecord>,
}

/// A trust anchor: the key of a zone, or a digest of it (RFC 4033 §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchorRecord {
    /// RDATA of a DS record (RFC 4034 §5.1).
    Ds(Vec<u8>),
    /// RDATA of a DNSKEY record (RFC 4034 §2.1).
    Dnskey(Vec<u8>),
}

impl AnchorRecord {
    /// Returns the key tag; `None` if the RDATA is truncated.
    #[must_use]
    pub fn tag(&self) -> Option<u16> {
        match self {
            Self::Ds(rdata) => rdata.first_chunk().map(|tag| u16::from_be_bytes(*tag)),
            Self::Dnskey(rdata) => (rdata.len() >= 4).then(|| key_tag(rdata)),
        }
    }

    /// Returns whether this is the DNSKEY record with the RDATA `dnskey` at `apex`, or a DS record of
    /// it. A DS record with an unknown digest type matches no key.
    #[must_use]
    pub fn matches(&self, apex: NameRef<'_>, dnskey: &[u8]) -> bool {
        match self {
            Self::Dnskey(rdata) => rdata == dnskey,
            Self::Ds(rdata) => {
                let [tag_high, tag_low, algorithm, digest_type, ..] = *rdata.as_slice() else { return false };
                // The tag and the algorithm save the digest of a key that cannot match.
                dnskey.get(3) == Some(&algorithm)
                    && key_tag(dnskey) == u16::from_be_bytes([tag_high, tag_low])
                    && ds_rdata(apex, dnskey, DigestType(digest_type)).as_ref() == Some(rdata)
            }
        }
    }
}

impl ZoneAnchor {
    /// Returns the key tags of the records, in ascending order without duplicates.
    #[must_use]
    pub fn tags(&self) -> Vec<u16> {
        distinct_tags(&self.records)
    }
}

/// Returns the key tags of `records`, in ascending order without duplicates.
fn distinct_tags(records: &[AnchorRecord]) -> Vec<u16> {
    let mut tags: Vec<u16> = records.iter().filter_map(AnchorRecord::tag).collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}

impl TrustAnchors {
    /// Returns the trust anchors of the root zone that IANA publishes: the DS records of KSK-2017 (key
    /// tag 20326) and KSK-2024 (key tag 38696).
    #[must_use]
    pub fn iana() -> Self {
        let mut anchors = Self::default();
        for (tag, digest) in ROOT_DS {
            let [high, low] = tag.to_be_bytes();
            let mut rdata = vec![high, low, ROOT_ALGORITHM, DigestType::SHA256.0];
            rdata.extend_from_slice(&digest);
            anchors.insert(NameRef::ROOT, AnchorRecord::Ds(rdata));
        }
        anchors
    }

    /// Reads a file of trust anchors, without regard to times. The form is detected:
    ///
    /// - DS and DNSKEY records in zone file form. TTL and class are optional. Names are absolute; a
    ///   missing final dot is added.
    /// - A `root.key` file of Unbound: the same records, with the state of each key in a comment. Keys
    ///   that the file does not state as VALID or MISSING are no anchors and are skipped.
    /// - `root-anchors.xml` of IANA (RFC 9718): digests of keys, and their times of validity.
    ///
    /// # Errors
    /// The file is malformed, has another record or no anchor, or a record cannot be a trust anchor.
    /// [`AnchorFileError`] names the line, the record and the remedy.
    pub fn read(text: &str) -> Result<Self, AnchorFileError> {
        file::read(text, None)
    }

    /// As [`TrustAnchors::read`], but skips digests in a file of IANA that are not valid at `now`, in
    /// seconds since 1970 (RFC 9718 §2: the attributes `validFrom` and `validUntil`).
    ///
    /// # Errors
    /// As [`TrustAnchors::read`], and if no digest is valid.
    pub fn read_at(text: &str, now: u64) -> Result<Self, AnchorFileError> {
        file::read(text, Some(now))
    }

    /// Adds a record of the zone at `apex`. Duplicates are ignored.
    pub fn insert(&mut self, apex: NameRef<'_>, record: AnchorRecord) {
        match self.find(apex) {
            Ok(index) if self.zones[index].records.contains(&record) => {}
            Ok(index) => self.zones[index].records.push(record),
            Err(index) => {
                self.zones.insert(index, ZoneAnchor { apex: apex.to_canonical(), records: vec![record] })
            }
        }
    }

    /// Removes all records of the zone at `apex`.
    pub fn remove(&mut self, apex: NameRef<'_>) {
        if let Ok(index) = self.find(apex) {
            self.zones.remove(index);
        }
    }

    /// Returns the anchors of the deepest zone whose apex is `name` or above it (RFC 6840 appendix C,
    /// "closest encloser").
    #[must_use]
    pub fn closest(&self, name: NameRef<'_>) -> Option<&ZoneAnchor> {
        let mut next = Some(name);
        while let Some(apex) = next {
            if let Ok(index) = self.find(apex) {
                return self.zones.get(index);
            }
            next = apex.parent();
        }
        None
    }

    /// Returns whether there is no trust anchor.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.zones.is_empty()
    }

    /// Returns the anchors of each zone, in canonical order of the apexes (RFC 4034 §6.1).
    pub fn iter(&self) -> impl Iterator<Item = &ZoneAnchor> {
        self.zones.iter()
    }

    /// Returns the index of a zone, or the index at which to insert it.
    fn find(&self, apex: NameRef<'_>) -> Result<usize, usize> {
        self.zones.binary_search_by(|zone| zone.apex.view().cmp_canonical(apex))
    }
}

#[cfg(test)]
mod tests;
