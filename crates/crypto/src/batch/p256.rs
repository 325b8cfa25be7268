//! Many ECDSA signatures of one key on P-256 (FIPS 186-4, section 6.4), each by the equation of the single check, without a
//! doubling: multiples of the base point and of the key are looked up, and only added, many at a time with one inversion
//! for all of them. A zone has many signatures of few keys: this takes a quarter of the time of aws-lc's single check, which
//! decides again whatever is refused here.
//!
//! # Why this accepts exactly what the single check accepts
//! The single check (aws-lc, `ecdsa_do_verify_no_self_test`) takes a signature r ‖ s of 64 octets where r and s are from 1
//! to n − 1, n being the order of the curve, and u₁·B + u₂·Q is not infinity and its x, an integer below p, is r modulo n;
//! u₁ = e/s, u₂ = r/s, e is the digest. Q is a point of the curve, as [`PublicKey::parse`](crate::PublicKey::parse) saw
//! to, and so of order n. Here the same point is calculated; additions of points that are equal or opposite, and of infinity,
//! are told from the others and done by their own rules. As p < 2n, x modulo n is
//! x or x − n.
//!
//! Everything is public: nothing here takes constant time.

pub(crate) mod sign;

use crate::hash::sha256;
use crate::p256::{Affine, Scalar, ScalarForm, Table, Workspace, multiply_both};

/// Octets of r, and of s.
const OCTETS: usize = 32;

/// Signatures that are worked on together: their points have 256 KiB.
const GROUP: usize = 64;

/// What makes many verifications with one key fast. It has 256 KiB, as has the base point's table, once in a process.
pub(crate) struct KeyTable(Table);

/// r and s of a signature, both from 1 to n − 1.
struct Parts {
    r: Scalar,
    s: Scalar,
}

impl Parts {
    fn read(signature: &[u8]) -> Option<Self> {
        let (r, s) = signature.split_first_chunk::<OCTETS>()?;
        let [r, s] = [r, s.try_into().ok()?].map(Scalar::from_octets);
        let parts = Self { r: r?, s: s? };
        (parts.r != Scalar::ZERO && parts.s != Scalar::ZERO).then_some(parts)
    }

    /// Whether a point's x is r modulo n.
    fn fits(&self, point: &Affine) -> bool {
        !point.is_infinity() && Scalar::from_octets_reduced(&point.x().to_octets()) == self.r
    }
}

impl KeyTable {
    /// Prepares a public key: two coordinates. `None` where they are no point of the curve.
    pub(crate) fn new(coordinates: &[u8; 2 * OCTETS]) -> Option<Self> {
        Affine::from_coordinates(coordinates).map(|point| Self(Table::new(&point)))
    }

    /// Whether each signature fits its message, in order.
    pub(crate) fn verify(&self, signed: &[(&[u8], &[u8])]) -> Vec<bool> {
        let mut workspace = Workspace::default();
        let mut fits = Vec::with_capacity(signed.len());
        for group in signed.chunks(GROUP) {
            let parts: Vec<Option<Parts>> =
                group.iter().map(|(_, signature)| Parts::read(signature)).collect();
            let mut inverses: Vec<_> = parts.iter().flatten().map(|parts| ScalarForm::new(parts.s)).collect();
            ScalarForm::invert_all(&mut inverses);
            let well_formed = group
                .iter()
                .zip(&parts)
                .filter_map(|((message, _), parts)| Some((*message, parts.as_ref()?)));
            let factors = well_formed.zip(inverses).map(|((message, parts), inverse)| {
                let e = Scalar::from_octets_reduced(&sha256(message));
                (inverse.multiply_plain(e), inverse.multiply_plain(parts.r))
            });
            let factors: Vec<_> = factors.collect();
            let mut points = multiply_both(&self.0, &factors, &mut workspace).iter();
            fits.extend(parts.iter().map(|parts| {
                let point = parts.as_ref().and_then(|parts| Some((parts, points.next()?)));
                point.is_some_and(|(parts, point)| parts.fits(point))
            }));
        }
        fits
    }
}

#[cfg(test)]
mod tests;
