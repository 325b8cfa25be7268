//! RRSIG records in an image. Most fields of an RRSIG record are equal in many records of a zone:
//! type, TTL, length, covered type, algorithm, labels, original TTL, key tag, signer. The image
//! stores each combination of these fields, a *form*, once. The record-specific fields are the two
//! times and the signature. A signature has this format:
//!
//! | octets | content |
//! | --- | --- |
//! | 4 | offset of the form |
//! | 8 | expiration and inception, as on the wire |
//! | … | the signature |
//!
//! A form consists of its length (2 octets), the length of a signature (2 octets), and the record
//! in wire format up to the signer's name. The owner (2 octets) and the times are zeros.

use super::{Image, Template};
use nonesuch_proto::{Class, NameRef, Rtype, serial};
use std::collections::HashMap;

/// Octets of a stored signature before the signature value: offset of the form, and times.
pub(super) const SIGNATURE_HEAD_OCTETS: usize = 12;
/// Octets of a form with the RDATA length.
const RDATA_LENGTH: std::ops::Range<usize> = 10..12;
/// Octets of a form with the times.
const TIMES: std::ops::Range<usize> = 20..28;
/// Offset of the algorithm in a form.
const ALGORITHM: usize = 14;
/// Octets of a form with the key tag.
const KEY_TAG: std::ops::Range<usize> = 28..30;
/// Octets of a form without the signer's name.
const FORM_FIXED_OCTETS: usize = 30;
/// Octets of the two lengths before a form.
const FORM_HEAD_OCTETS: usize = 4;
/// Octets of RRSIG RDATA before the signer's name (RFC 4034 §3.1).
const RRSIG_FIXED_OCTETS: usize = 18;

/// Period in which each RRset of a zone has a valid signature. Times are in seconds since 1970
/// modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidityPeriod {
    /// The latest inception.
    pub inception: u32,
    /// The earliest expiration.
    pub expiration: u32,
}

impl ValidityPeriod {
    /// Returns the intersection of `self` and `other`.
    pub(super) const fn intersect(self, other: Self) -> Self {
        Self {
            inception: later(self.inception, other.inception),
            expiration: earlier(self.expiration, other.expiration),
        }
    }

    /// Returns the union of `self` and `other`, for two signatures of one RRset. If there is a gap
    /// between them, returns `self`.
    pub(super) const fn union(self, other: Self) -> Self {
        if serial::is_before(self.expiration, other.inception)
            || serial::is_before(other.expiration, self.inception)
        {
            return self;
        }
        Self {
            inception: earlier(self.inception, other.inception),
            expiration: later(self.expiration, other.expiration),
        }
    }
}

const fn later(a: u32, b: u32) -> u32 {
    if serial::is_before(a, b) { b } else { a }
}

const fn earlier(a: u32, b: u32) -> u32 {
    if serial::is_before(b, a) { b } else { a }
}

/// Signer and expiration of an RRSIG record in an image (RFC 4034 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureFields {
    /// Key tag.
    pub tag: u16,
    /// Number of the algorithm.
    pub algorithm: u8,
    /// Expiration, in seconds since 1970 modulo 2^32.
    pub expiration: u32,
}

/// The parts of an RRSIG record: form, times, signature.
pub(super) struct SignatureParts<'z> {
    pub(super) form: Vec<u8>,
    pub(super) times: [u8; 8],
    pub(super) signature: &'z [u8],
}

/// Splits the RDATA of an RRSIG record; `None` if it is malformed.
pub(super) fn split_rrsig(ttl: u32, rdata: &[u8]) -> Option<SignatureParts<'_>> {
    let (fixed, rest) = rdata.split_first_chunk::<RRSIG_FIXED_OCTETS>()?;
    let (signer, signature) = NameRef::split_from(rest).ok()?;
    let length = u16::try_from(rdata.len()).ok()?;
    let mut form = Vec::with_capacity(FORM_HEAD_OCTETS + FORM_FIXED_OCTETS + signer.len());
    form.extend_from_slice(&((FORM_FIXED_OCTETS + signer.len()) as u16).to_le_bytes());
    form.extend_from_slice(&(signature.len() as u16).to_le_bytes());
    form.extend_from_slice(&[0, 0]);
    form.extend_from_slice(&Rtype::RRSIG.0.to_be_bytes());
    form.extend_from_slice(&Class::IN.0.to_be_bytes());
    form.extend_from_slice(&ttl.to_be_bytes());
    form.extend_from_slice(&length.to_be_bytes());
    form.extend_from_slice(&fixed[..8]);
    form.extend_from_slice(&[0; 8]);
    form.extend_from_slice(&fixed[16..]);
    form.extend_from_slice(signer.wire());
    let times = fixed[8..].first_chunk().copied()?;
    Some(SignatureParts { form, times, signature })
}

/// Returns the validity period of a signature. `times` are expiration and inception as on the wire.
pub(super) const fn period(times: [u8; 8]) -> ValidityPeriod {
    let [a, b, c, d, e, f, g, h] = times;
    ValidityPeriod {
        expiration: u32::from_be_bytes([a, b, c, d]),
        inception: u32::from_be_bytes([e, f, g, h]),
    }
}

/// Returns the form at the start of `forms`, and the octets of its signatures; `None` if there is
/// no form.
#[inline]
fn read_form(forms: &[u8]) -> Option<(&[u8], usize)> {
    let ([a, b, c, d], rest) = forms.split_first_chunk::<FORM_HEAD_OCTETS>()?;
    let form = rest.get(..usize::from(u16::from_le_bytes([*a, *b])))?;
    Some((form, usize::from(u16::from_le_bytes([*c, *d]))))
}

/// Returns the offset of each form, with the octets of its signatures; `None` if a form is
/// malformed.
pub(super) fn check_forms(forms: &[u8]) -> Option<HashMap<u32, usize>> {
    let mut lengths = HashMap::new();
    let mut at = 0;
    while at < forms.len() {
        let (form, signature) = read_form(&forms[at..])?;
        let rdata = form.get(RDATA_LENGTH)?;
        let is_whole = usize::from(u16::from_be_bytes([rdata[0], rdata[1]])) + RDATA_LENGTH.end
            == form.len() + signature
            && NameRef::from_wire(form.get(FORM_FIXED_OCTETS..)?).is_ok();
        lengths.insert(u32::try_from(at).ok().filter(|_| is_whole)?, signature);
        at += FORM_HEAD_OCTETS + form.len();
    }
    Some(lengths)
}

impl Image {
    /// Appends `count` RRSIG records to a message. `octets` are the stored signatures, `owner` is a
    /// compression pointer.
    pub(super) fn append_signatures(&self, count: u16, octets: &[u8], owner: u16, out: &mut Vec<u8>) {
        let mut rest = octets;
        for _ in 0..count {
            let Some((head, tail)) = rest.split_first_chunk::<SIGNATURE_HEAD_OCTETS>() else { return };
            let [a, b, c, d, times @ ..] = head;
            let forms = self.sections.forms.get(u32::from_le_bytes([*a, *b, *c, *d]) as usize..);
            let Some((form, length)) = forms.and_then(read_form) else { return };
            let Some((signature, next)) = tail.split_at_checked(length) else { return };
            let at = out.len();
            out.reserve(form.len() + length);
            out.extend_from_slice(form);
            if let Some(record) = out[at..].first_chunk_mut::<FORM_FIXED_OCTETS>() {
                record[..2].copy_from_slice(&owner.to_be_bytes());
                record[TIMES].copy_from_slice(times);
            }
            out.extend_from_slice(signature);
            rest = next;
        }
    }
}

impl<'i> Template<'i> {
    /// Iterates over the fields of the RRSIG records over the RRset.
    pub fn signatures(self) -> impl Iterator<Item = SignatureFields> + use<'i> {
        let mut rest = self.parts().signatures;
        std::iter::from_fn(move || {
            let (head, tail) = rest.split_first_chunk::<SIGNATURE_HEAD_OCTETS>()?;
            let [a, b, c, d, times @ ..] = head;
            let forms = &self.image.sections.forms;
            let (form, length) = read_form(forms.get(u32::from_le_bytes([*a, *b, *c, *d]) as usize..)?)?;
            rest = tail.get(length..)?;
            let (algorithm, tag) = (*form.get(ALGORITHM)?, *form.get(KEY_TAG)?.first_chunk()?);
            let expiration = period(*times).expiration;
            Some(SignatureFields { tag: u16::from_be_bytes(tag), algorithm, expiration })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_joined_in_serial_arithmetic() {
        let early = ValidityPeriod { inception: u32::MAX - 9, expiration: 100 };
        let late = ValidityPeriod { inception: 5, expiration: 200 };
        assert_eq!(early.intersect(late), ValidityPeriod { inception: 5, expiration: 100 });
        assert_eq!(late.intersect(early), early.intersect(late));
        assert_eq!(early.union(late), ValidityPeriod { inception: u32::MAX - 9, expiration: 200 });
        assert_eq!(late.union(early), early.union(late));
        // There is a gap between the two periods in which no signature is valid.
        let far = ValidityPeriod { inception: 300, expiration: 400 };
        assert_eq!((late.union(far), far.union(late)), (late, far));
    }

    #[test]
    fn malformed_rdata_has_no_form() {
        assert!(split_rrsig(0, &[0; RRSIG_FIXED_OCTETS]).is_none());
        assert!(split_rrsig(0, &[7; RRSIG_FIXED_OCTETS + 3]).is_none());
        let whole = split_rrsig(9, &[0; RRSIG_FIXED_OCTETS + 4]).unwrap();
        assert_eq!((whole.form.len(), whole.signature.len()), (FORM_HEAD_OCTETS + FORM_FIXED_OCTETS + 1, 3));
        assert_eq!(read_form(&whole.form), Some((&whole.form[FORM_HEAD_OCTETS..], 3)));
        let twice = whole.form.repeat(2);
        let second = whole.form.len() as u32;
        assert_eq!(check_forms(&twice), Some(HashMap::from([(0, 3), (second, 3)])));
        assert!((1..second as usize).all(|end| check_forms(&twice[..end]).is_none()));
    }
}
