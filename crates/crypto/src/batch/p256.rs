//! Verifies many ECDSA signatures of one key on P-256 (FIPS 186-4, section 6.4). It evaluates the
//! equation of the single check for each signature, but without doublings: it looks up multiples of
//! the base point and of the key in tables, and adds them. Many additions share one inversion. A
//! zone has many signatures of few keys: this takes a quarter of the time of aws-lc's single check.
//! The caller repeats the single check for signatures that this module rejects.
//!
//! # Why this accepts exactly the signatures that the single check accepts
//! The single check (aws-lc, `ecdsa_do_verify_no_self_test`) accepts a signature r ‖ s of 64 octets
//! if r and s are from 1 to n − 1, u₁·B + u₂·Q is not infinity, and the x-coordinate of this point,
//! an integer below p, is r modulo n. n is the order of the curve, e is the digest, u₁ = e/s and u₂
//! = r/s. [`PublicKey::parse`](crate::PublicKey::parse) has checked that Q is a point of the curve;
//! therefore Q has the order n.
//!
//! This module computes the same point. It detects additions of equal points, of opposite points
//! and of infinity, and uses the rules for these cases. Because p < 2n, x modulo n is x or x − n.
//!
//! # Time
//! All inputs are public. This module does not run in constant time.

pub(crate) mod sign;

use crate::hash::sha256;
use crate::p256::{Affine, MontgomeryScalar, Scalar, Table, Workspace, multiply_both};

/// Length of r, and of s, in octets.
const SCALAR_OCTETS: usize = 32;

/// Number of signatures that are processed together. Their points have 256 KiB.
const GROUP_SIZE: usize = 64;

/// Table for fast verification of many signatures with one key. It has 256 KiB. The table of the
/// base point has the same size and exists once in a process.
pub(crate) struct KeyTable(Table);

/// r and s of a signature, both from 1 to n − 1.
struct SignatureParts {
    r: Scalar,
    s: Scalar,
}

impl SignatureParts {
    fn read(signature: &[u8]) -> Option<Self> {
        let (r, s) = signature.split_first_chunk::<SCALAR_OCTETS>()?;
        let [r, s] = [r, s.try_into().ok()?].map(Scalar::from_octets);
        let parts = Self { r: r?, s: s? };
        (parts.r != Scalar::ZERO && parts.s != Scalar::ZERO).then_some(parts)
    }

    /// Returns whether the x-coordinate of the point is r modulo n.
    fn matches_point(&self, point: &Affine) -> bool {
        !point.is_infinity() && Scalar::from_octets_reduced(&point.x().to_octets()) == self.r
    }
}

impl KeyTable {
    /// Builds the table of a public key from its two coordinates. Returns `None` if they are not a
    /// point of the curve.
    pub(crate) fn new(coordinates: &[u8; 2 * SCALAR_OCTETS]) -> Option<Self> {
        Affine::from_coordinates(coordinates).map(|point| Self(Table::new(&point)))
    }

    /// Returns whether each signature is valid for its message, in order. Each item is a message
    /// and its signature.
    pub(crate) fn verify(&self, signed: &[(&[u8], &[u8])]) -> Vec<bool> {
        let mut workspace = Workspace::default();
        let mut are_valid = Vec::with_capacity(signed.len());
        for group in signed.chunks(GROUP_SIZE) {
            let parts: Vec<Option<SignatureParts>> =
                group.iter().map(|(_, signature)| SignatureParts::read(signature)).collect();
            let mut inverses: Vec<_> =
                parts.iter().flatten().map(|parts| MontgomeryScalar::new(parts.s)).collect();
            MontgomeryScalar::invert_all(&mut inverses);
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
            are_valid.extend(parts.iter().map(|parts| {
                let point = parts.as_ref().and_then(|parts| Some((parts, points.next()?)));
                point.is_some_and(|(parts, point)| parts.matches_point(point))
            }));
        }
        are_valid
    }
}

#[cfg(test)]
mod tests;
