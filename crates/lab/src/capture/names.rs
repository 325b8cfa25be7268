//! Anonymisation of names in place: labels become keyed hashes of the same length, so that lengths
//! and compression pointers stay valid.
//!
//! The hash of a label depends on the labels to its right and not on the case of letters. The same
//! name thus has the same replacement, and names below a common ancestor still have one. The last
//! label, or the labels of a zone, stay. `*` stays.

use super::cryptopan::CryptoPan;
use super::error::CaptureError;
use super::key::CaptureKey;
use super::layout::{Layout, RecordPlace};
use nonesuch_proto::message::HEADER;
use nonesuch_proto::rdata::{self, Field};
use nonesuch_proto::{Name, Rtype};
use zeroize::Zeroizing;

/// Letters of the replacements, 5 bits each.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const PURPOSE: &str = "nonesuch 2026-11 capture names";

/// Replaces names.
pub(super) struct NameMask {
    key: Zeroizing<[u8; 32]>,
    zone: Option<Name>,
}

impl NameMask {
    /// Creates the function for a key. The labels of `zone` stay in names at or below it.
    pub(super) fn new(key: &CaptureKey, zone: Option<Name>) -> Self {
        Self { key: key.derive(PURPOSE), zone }
    }

    /// Replaces the names in a message, and addresses in RDATA. Other variable parts of RDATA, such
    /// as texts, keys and signatures, become zeros. OPT records stay.
    pub(super) fn apply(
        &self,
        message: &mut [u8],
        layout: &Layout,
        addresses: &CryptoPan,
    ) -> Result<(), CaptureError> {
        let original = message.to_vec();
        for record in layout.records.iter().filter(|record| record.rtype != Rtype::OPT) {
            self.mask_rdata(&original, message, record, addresses)?;
        }
        // Names last: a compression pointer may point into RDATA that became zeros.
        for at in &layout.names {
            self.mask_name(&original, message, *at);
        }
        message[layout.end..].fill(0);
        Ok(())
    }

    /// Replaces the name at offset `at`. Returns the offset after it, `None` if it is malformed.
    fn mask_name(&self, original: &[u8], message: &mut [u8], at: usize) -> Option<usize> {
        let (name, end) = Name::from_message(original, at).ok()?;
        let wire = name.view().to_canonical();
        let wire = wire.view().wire();
        let zone = self.zone.as_ref().filter(|zone| name.view().is_at_or_below(zone.view()));
        let kept = zone.map_or(1, |zone| zone.view().label_count());
        let masked = name.view().label_count().saturating_sub(kept);
        let (mut place, mut suffix) = (at, 0);
        for _ in 0..masked {
            place = label_start(original, place)?;
            let length = usize::from(*original.get(place)?);
            let label = place + 1..place + 1 + length;
            if original.get(label.clone())? != b"*" {
                self.hash(wire.get(suffix..)?, message.get_mut(label)?);
            }
            place += 1 + length;
            suffix += 1 + length;
        }
        Some(end)
    }

    /// Fills `label` with letters that depend on the name that begins with it.
    fn hash(&self, name: &[u8], label: &mut [u8]) {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(name);
        hasher.finalize_xof().fill(label);
        for octet in label {
            *octet = LETTERS[usize::from(*octet & 31)];
        }
    }

    /// Anonymises RDATA field by field. After a malformed field, and in types of unknown form, all
    /// octets become zeros.
    fn mask_rdata(
        &self,
        original: &[u8],
        message: &mut [u8],
        record: &RecordPlace,
        addresses: &CryptoPan,
    ) -> Result<(), CaptureError> {
        let (start, end) = (record.rdata.start, record.rdata.end);
        let entry = rdata::entry(record.rtype).filter(|entry| !entry.rtype.is_private_use());
        let mut at = start;
        for field in entry.map_or(&[][..], |entry| entry.fields) {
            let next = match field {
                Field::Name { .. } => self.mask_name(original, message, at),
                _ => rdata::measure_field(*field, &original[start..at], &original[at..end])
                    .map(|length| at + length),
            };
            let Some(next) = next.filter(|next| *next <= end) else { break };
            match content(*field) {
                Content::Kept => {}
                Content::Address => addresses.replace(&mut message[at..next])?,
                Content::Zeros => message[at..next].fill(0),
                Content::Strings => clear_strings(&mut message[at..next]),
            }
            at = next;
        }
        message[at..end].fill(0);
        Ok(())
    }
}

/// What becomes of a field.
enum Content {
    /// It stays: numbers, types, salts, and names, which are replaced already.
    Kept,
    Address,
    Zeros,
    /// Character strings, which keep their lengths.
    Strings,
}

const fn content(field: Field) -> Content {
    match field {
        Field::Name { .. }
        | Field::U8
        | Field::U16
        | Field::U32
        | Field::Ttl
        | Field::Timestamp
        | Field::AlgorithmNumber
        | Field::CertificateType
        | Field::TypeNumber
        | Field::Tag
        | Field::Salt
        | Field::Bitmap
        | Field::NxtBitmap
        | Field::GatewayType
        | Field::RelayType => Content::Kept,
        Field::Ipv4 | Field::Ipv6 => Content::Address,
        Field::CharacterString | Field::CharacterStrings | Field::HashedName => Content::Strings,
        _ => Content::Zeros,
    }
}

/// Fills strings that follow their length octets with zeros.
fn clear_strings(strings: &mut [u8]) {
    let mut rest = strings;
    while let [length, tail @ ..] = rest {
        let (string, next) = tail.split_at_mut(usize::from(*length).min(tail.len()));
        string.fill(0);
        rest = next;
    }
}

/// Follows the compression pointers at `at` to the length of a label (RFC 1035 §4.1.4).
fn label_start(message: &[u8], at: usize) -> Option<usize> {
    let mut at = at;
    // Each pointer of a valid name points further back, so there are fewer than octets.
    for _ in 0..message.len().saturating_sub(HEADER) {
        let [high, low] = *message.get(at..)?.first_chunk()?;
        if high & 0xc0 != 0xc0 {
            return Some(at);
        }
        at = usize::from(high & 0x3f) << 8 | usize::from(low);
    }
    None
}
