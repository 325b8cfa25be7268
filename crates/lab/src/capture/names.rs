//! Anonymisation of names in place: labels become keyed hashes of the same length, so that lengths
//! and compression pointers stay valid.
//!
//! The hash of a label depends on the labels to its right and not on the case of letters. So equal
//! names have equal replacements, and the replacements of names with a common ancestor also have a
//! common ancestor. The last label, or the labels of a given zone, stay. `*` stays.

use super::cryptopan::CryptoPan;
use super::error::CaptureError;
use super::key::AnonymisationKey;
use super::layout::{MessageLayout, RecordPosition};
use nonesuch_proto::message::HEADER;
use nonesuch_proto::rdata::{self, Field};
use nonesuch_proto::{Name, Rtype};
use zeroize::Zeroizing;

/// Letters of the replacements; each stands for 5 bits of a hash.
const LABEL_ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Context string from which the key for names is derived.
const KEY_PURPOSE: &str = "nonesuch 2026-11 capture names";

/// Replaces names.
pub(super) struct NameAnonymizer {
    key: Zeroizing<[u8; 32]>,
    zone: Option<Name>,
}

impl NameAnonymizer {
    /// Creates the replacement function of a key. Names at or below `zone` keep the labels of
    /// `zone`.
    pub(super) fn new(key: &AnonymisationKey, zone: Option<Name>) -> Self {
        Self { key: key.derive(KEY_PURPOSE), zone }
    }

    /// Replaces the names in a message, and addresses in RDATA. Other variable parts of RDATA, such
    /// as texts, keys and signatures, become zeros. OPT records stay.
    pub(super) fn apply(
        &self,
        message: &mut [u8],
        layout: &MessageLayout,
        addresses: &CryptoPan,
    ) -> Result<(), CaptureError> {
        let original = message.to_vec();
        for record in layout.records.iter().filter(|record| record.rtype != Rtype::OPT) {
            self.anonymize_rdata(&original, message, record, addresses)?;
        }
        // Names last: a compression pointer may point into RDATA that became zeros.
        for at in &layout.names {
            self.replace_name(&original, message, *at);
        }
        message[layout.end..].fill(0);
        Ok(())
    }

    /// Replaces the name at offset `at` in `message`, from its text in `original`. Returns the
    /// offset after it; `None` if it is malformed.
    fn replace_name(&self, original: &[u8], message: &mut [u8], at: usize) -> Option<usize> {
        let (name, end) = Name::from_message(original, at).ok()?;
        let wire = name.view().to_canonical();
        let wire = wire.view().wire();
        let zone = self.zone.as_ref().filter(|zone| name.view().is_at_or_below(zone.view()));
        let kept_labels = zone.map_or(1, |zone| zone.view().label_count());
        let replaced_labels = name.view().label_count().saturating_sub(kept_labels);
        let (mut offset, mut suffix) = (at, 0);
        for _ in 0..replaced_labels {
            offset = label_start(original, offset)?;
            let length = usize::from(*original.get(offset)?);
            let label = offset + 1..offset + 1 + length;
            if original.get(label.clone())? != b"*" {
                self.hash_label(wire.get(suffix..)?, message.get_mut(label)?);
            }
            offset += 1 + length;
            suffix += 1 + length;
        }
        Some(end)
    }

    /// Fills `label` with letters that depend on the name that begins with it.
    fn hash_label(&self, name: &[u8], label: &mut [u8]) {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(name);
        hasher.finalize_xof().fill(label);
        for octet in label {
            *octet = LABEL_ALPHABET[usize::from(*octet & 31)];
        }
    }

    /// Anonymises RDATA field by field. After a malformed field, and in types of unknown form, all
    /// octets become zeros.
    fn anonymize_rdata(
        &self,
        original: &[u8],
        message: &mut [u8],
        record: &RecordPosition,
        addresses: &CryptoPan,
    ) -> Result<(), CaptureError> {
        let (start, end) = (record.rdata.start, record.rdata.end);
        let entry = rdata::entry(record.rtype).filter(|entry| !entry.rtype.is_private_use());
        let mut at = start;
        for field in entry.map_or(&[][..], |entry| entry.fields) {
            let next = match field {
                Field::Name { .. } => self.replace_name(original, message, at),
                _ => rdata::measure_field(*field, &original[start..at], &original[at..end])
                    .map(|length| at + length),
            };
            let Some(next) = next.filter(|next| *next <= end) else { break };
            match treatment(*field) {
                Treatment::Keep => {}
                Treatment::ReplaceAddress => addresses.replace_octets(&mut message[at..next])?,
                Treatment::Clear => message[at..next].fill(0),
                Treatment::ClearStrings => clear_strings(&mut message[at..next]),
            }
            at = next;
        }
        message[at..end].fill(0);
        Ok(())
    }
}

/// How a field of RDATA is anonymised.
enum Treatment {
    /// It stays: numbers, types, salts, and names, which are replaced before.
    Keep,
    ReplaceAddress,
    /// All its octets become zeros.
    Clear,
    /// Its character strings become zeros and keep their lengths.
    ClearStrings,
}

const fn treatment(field: Field) -> Treatment {
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
        | Field::RelayType => Treatment::Keep,
        Field::Ipv4 | Field::Ipv6 => Treatment::ReplaceAddress,
        Field::CharacterString | Field::CharacterStrings | Field::HashedName => Treatment::ClearStrings,
        _ => Treatment::Clear,
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
    // Each pointer of a valid name points further back, so a name has fewer pointers than the
    // message has octets.
    for _ in 0..message.len().saturating_sub(HEADER) {
        let [high, low] = *message.get(at..)?.first_chunk()?;
        if high & 0xc0 != 0xc0 {
            return Some(at);
        }
        at = usize::from(high & 0x3f) << 8 | usize::from(low);
    }
    None
}
