//! RRSIG RDATA and the signed data (RFC 4034 §3.1).
//!
//! The signer and the verifier use the same function for the signed data, [`push_signed_data`].

use nonesuch_crypto::{Algorithm, PrivateKey, SignError};
use nonesuch_proto::{Class, MAX_NAME, NameRef, Rtype, rdata, serial};
use std::cmp::Ordering;

/// Octets of RRSIG RDATA before the Signer's Name.
pub(crate) const RRSIG_FIXED_OCTETS: usize = 18;

/// Octets of type, class and TTL of a record.
const TYPE_CLASS_TTL: usize = 8;
/// Maximum octets of owner, type, class and TTL of a record.
const MAX_RECORD_PREFIX: usize = MAX_NAME + TYPE_CLASS_TTL;

/// The relation of a time to the period of validity of a signature (RFC 4034 §3.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// The time is in the period.
    Valid,
    /// The time is after the period, or has no order with its end.
    Expired,
    /// The time is before the period, or has no order with its begin.
    NotYetValid,
    /// The period is empty: it ends before it begins.
    Empty,
}

/// The fields of an RRSIG record (RFC 4034 §3.1).
#[derive(Clone, Copy, Debug)]
pub struct Rrsig<'a> {
    /// The type of the signed RRset.
    pub covered: Rtype,
    /// The algorithm of the key.
    pub algorithm: Algorithm,
    /// Number of labels of the signed owner, without the root and a leading `*`. If a response is
    /// synthesised from a wildcard, the owner in the response has more labels.
    pub labels: u8,
    /// TTL of the RRset in the zone, in seconds.
    pub original_ttl: u32,
    /// Last second of validity, in serial number arithmetic (RFC 4034 §3.1.5).
    pub expiration: u32,
    /// First second of validity, in serial number arithmetic.
    pub inception: u32,
    /// Key tag of the key.
    pub tag: u16,
    /// The Signer's Name field: the apex of the zone of the key.
    pub signer: NameRef<'a>,
    /// The signature; empty before signing.
    pub signature: &'a [u8],
}

impl<'a> Rrsig<'a> {
    /// Parses RRSIG RDATA; `None` if they are truncated or the Signer's Name is invalid.
    #[must_use]
    pub fn parse(rdata: &'a [u8]) -> Option<Self> {
        let (fixed, rest) = rdata.split_first_chunk::<RRSIG_FIXED_OCTETS>()?;
        let (signer, signature) = NameRef::split_from(rest).ok()?;
        let u16_at = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let u32_at = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        Some(Self {
            covered: Rtype(u16_at(0)),
            algorithm: Algorithm(fixed[2]),
            labels: fixed[3],
            original_ttl: u32_at(4),
            expiration: u32_at(8),
            inception: u32_at(12),
            tag: u16_at(16),
            signer,
            signature,
        })
    }

    /// Returns the relation of `now`, in seconds since 1970 modulo 2^32, to the period of validity, in
    /// serial number arithmetic (RFC 4034 §3.1.5).
    #[must_use]
    pub fn validity(&self, now: u32) -> Validity {
        // Two times that differ by 2^31 have no order (RFC 1982 §3.2). The signature is then treated
        // as not valid.
        let is_at_or_after = |a, b| serial::compare(a, b).is_some_and(Ordering::is_ge);
        if serial::is_before(self.expiration, self.inception) {
            Validity::Empty
        } else if !is_at_or_after(self.expiration, now) {
            Validity::Expired
        } else if !is_at_or_after(now, self.inception) {
            Validity::NotYetValid
        } else {
            Validity::Valid
        }
    }

    /// Length in octets of the RDATA without the signature.
    #[must_use]
    pub const fn fields_len(&self) -> usize {
        RRSIG_FIXED_OCTETS + self.signer.len()
    }

    /// Appends the RDATA without the signature, with the signer's name in canonical form
    /// (RFC 4034 §3.1.8.1).
    pub fn push_fields(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.covered.0.to_be_bytes());
        out.extend_from_slice(&[self.algorithm.0, self.labels]);
        out.extend_from_slice(&self.original_ttl.to_be_bytes());
        out.extend_from_slice(&self.expiration.to_be_bytes());
        out.extend_from_slice(&self.inception.to_be_bytes());
        out.extend_from_slice(&self.tag.to_be_bytes());
        self.signer.push_canonical(out);
    }

    /// Signs one RRset with these fields, and returns the RDATA of the RRSIG record. `self.signature` is not
    /// used. `rdatas` may be in any order and have duplicates (RFC 4034 §6.3). For many RRsets, the signers of
    /// zones are faster.
    ///
    /// # Errors
    /// The library cannot sign.
    pub fn sign<'r>(
        &self,
        owner: NameRef<'_>,
        rdatas: impl IntoIterator<Item = &'r [u8]>,
        key: &PrivateKey,
    ) -> Result<Vec<u8>, SignError> {
        let mut rdatas: Vec<&[u8]> = rdatas.into_iter().collect();
        rdatas.sort_by(|a, b| rdata::cmp_canonical(self.covered, a, b));
        rdatas.dedup();
        let (mut message, mut signed) = (Vec::new(), Vec::new());
        push_signed_data(self, owner, rdatas.into_iter(), &mut message);
        self.push_fields(&mut signed);
        key.sign(&message, &mut signed)?;
        Ok(signed)
    }
}

/// Appends the signed data (RFC 4034 §3.1.8.1): the fields of the RRSIG, and each record in
/// canonical form with the original TTL. `fields.signature` is not used. `rdatas` must be in
/// canonical order without duplicates (§6.3).
pub fn push_signed_data<'r>(
    fields: &Rrsig<'_>,
    owner: NameRef<'_>,
    rdatas: impl Iterator<Item = &'r [u8]>,
    out: &mut Vec<u8>,
) {
    fields.push_fields(out);
    let mut prefix = [0; MAX_RECORD_PREFIX];
    let length = write_record_prefix(fields, owner, &mut prefix);
    for octets in rdatas {
        out.extend_from_slice(&prefix[..length]);
        let length_at = out.len();
        out.extend_from_slice(&[0, 0]);
        rdata::push_canonical(fields.covered, octets, out);
        let octets = (out.len() - length_at - 2) as u16;
        out[length_at..length_at + 2].copy_from_slice(&octets.to_be_bytes());
    }
}

/// Writes owner, type, class and original TTL, which are the same for every record of the RRset.
/// Returns their length in octets.
fn write_record_prefix(
    fields: &Rrsig<'_>,
    owner: NameRef<'_>,
    prefix: &mut [u8; MAX_RECORD_PREFIX],
) -> usize {
    let mut length = 0;
    let mut put = |octets: &[u8]| {
        prefix[length..length + octets.len()].copy_from_slice(octets);
        length += octets.len();
    };
    // RFC 4034 §3.1.8.1: if the owner has more labels than the RRSIG states, the record is
    // synthesised from a wildcard, and the owner in the signed data is the name of that wildcard.
    if fields.labels < owner.rrsig_labels() {
        put(b"\x01*");
        put(owner.suffix(usize::from(fields.labels)).wire());
    } else {
        put(owner.wire());
    }
    put(&fields.covered.0.to_be_bytes());
    put(&Class::IN.0.to_be_bytes());
    put(&fields.original_ttl.to_be_bytes());
    let name_octets = length - TYPE_CLASS_TTL;
    prefix[..name_octets].make_ascii_lowercase();
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Name;

    fn fields(labels: u8) -> Rrsig<'static> {
        Rrsig {
            covered: Rtype::MX,
            algorithm: Algorithm(13),
            labels,
            original_ttl: 3600,
            expiration: 2,
            inception: 1,
            tag: 7,
            signer: NameRef::ROOT,
            signature: &[],
        }
    }

    fn signed_data(labels: u8, owner: &str) -> Vec<u8> {
        let owner: Name = owner.parse().unwrap();
        let mut out = Vec::new();
        push_signed_data(&fields(labels), owner.view(), [&b"\0\x01\x01A\0"[..]].into_iter(), &mut out);
        out
    }

    #[test]
    fn names_are_lower_case_and_the_length_is_set() {
        let mut expected = Vec::new();
        fields(2).push_fields(&mut expected);
        expected.extend_from_slice(b"\x01x\x01y\0\0\x0f\0\x01\0\0\x0e\x10\0\x05\0\x01\x01a\0");
        assert_eq!(signed_data(2, "X.y."), expected);
    }

    #[test]
    fn an_expanded_owner_is_signed_as_its_wildcard() {
        assert_eq!(signed_data(2, "a.b.w.example."), signed_data(2, "*.w.example."));
        assert_ne!(signed_data(2, "a.b.w.example."), signed_data(2, "w.example."));
    }

    #[test]
    fn the_period_of_validity_includes_both_ends_and_may_wrap() {
        let validity =
            |inception, expiration, now| Rrsig { inception, expiration, ..fields(2) }.validity(now);
        let wrapping = (u32::MAX - 9, 10);
        for (period, now, expected) in [
            ((100, 200), 99, Validity::NotYetValid),
            ((100, 200), 100, Validity::Valid),
            ((100, 200), 200, Validity::Valid),
            ((100, 200), 201, Validity::Expired),
            ((200, 199), 200, Validity::Empty),
            (wrapping, u32::MAX, Validity::Valid),
            (wrapping, 11, Validity::Expired),
            // No order.
            ((100, 200), 200 + (1 << 31), Validity::Expired),
        ] {
            assert_eq!(validity(period.0, period.1, now), expected, "{period:?} {now}");
        }
    }

    #[test]
    fn the_longest_owner_fits() {
        let long = format!("{0}.{0}.{0}.{1}", "X".repeat(63), "Y".repeat(61));
        assert_eq!(signed_data(4, &long).len(), 18 + 1 + 255 + 8 + 2 + 5);
    }

    #[test]
    fn parsed_fields_are_written_unchanged_and_truncated_rdata_are_rejected() {
        let mut octets = Vec::new();
        fields(2).push_fields(&mut octets);
        let read = Rrsig::parse(&octets).unwrap();
        let mut written = Vec::new();
        read.push_fields(&mut written);
        assert_eq!(written, octets);
        assert_eq!(read.fields_len(), octets.len());
        for length in 0..octets.len() {
            assert!(Rrsig::parse(&octets[..length]).is_none(), "{length}");
        }
    }
}
