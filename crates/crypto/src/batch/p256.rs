//! Verifies many ECDSA signatures on P-256 (FIPS 186-4, section 6.4). It evaluates the equation of
//! the single check for each signature. The caller uses the single check for signatures for which this module
//! has no result. For signatures of one key, it also repeats the check of rejected signatures; a resolver does
//! not, because an attacker can send it many.
//!
//! - Signatures of one key ([`KeyTable`]): it looks up multiples of the base point and of the key in
//!   tables, and adds them, without doublings. Many additions share one inversion. A zone has many
//!   signatures of few keys: this takes a quarter of the time of aws-lc's single check.
//! - Signatures of different keys: eight at a time, if the processor has AVX-512 IFMA. A resolver has few
//!   signatures of many keys. Keys that verify often have a smaller table ([`verify_by_tables`]); for the
//!   others, no table outlives the batch ([`verify_each`]).
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

use crate::batch::SignedMessage;
use crate::hash::sha256;
use crate::p256::{
    Affine, Engine, Field, Jacobian, LaneTable, MontgomeryScalar, Scalar, Table, Workspace, multiply_both,
};

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

    /// Returns whether the x-coordinate of the point is r modulo n: r, or r + n if that is below p.
    fn matches_point(&self, point: &Jacobian) -> bool {
        let numbers = [Some(self.r.to_octets()), self.r.octets_plus_order()];
        numbers.iter().flatten().filter_map(Field::from_octets).any(|x| point.has_x(x))
    }
}

impl KeyTable {
    /// Builds the table of a public key from its two coordinates. Returns `None` if they are not a
    /// point of the curve.
    pub(crate) fn new(coordinates: &Coordinates) -> Option<Self> {
        Affine::from_coordinates(coordinates).map(|point| Self(Table::new(&point)))
    }

    /// Returns whether each signature is valid for its message, in order. Each item is a message
    /// and its signature.
    pub(crate) fn verify(&self, signed: &[SignedMessage<'_>]) -> Vec<bool> {
        let mut workspace = Workspace::default();
        let mut are_valid = Vec::with_capacity(signed.len());
        for group in signed.chunks(GROUP_SIZE) {
            let parts = read_parts(group.iter().copied());
            let factors = factors(group.iter().copied(), &parts);
            let points = multiply_both(&self.0, &factors, &mut workspace).into_iter().map(Some);
            are_valid.extend(match_points(&parts, points).map(|is_valid| is_valid == Some(true)));
        }
        are_valid
    }
}

/// The coordinates of a public key.
pub(crate) type Coordinates = [u8; 2 * SCALAR_OCTETS];

/// A key for the verification together with signatures of other keys.
pub(crate) enum LaneKey<'k> {
    Coordinates(&'k Coordinates),
    Table(&'k LaneTable),
}

/// Builds the table of a public key for [`verify_by_tables`]. Returns `None` if the coordinates are not a point of
/// the curve, or if the machine has no lanes.
pub(crate) fn lane_table(coordinates: &Coordinates) -> Option<LaneTable> {
    LaneTable::new(&Affine::from_coordinates(coordinates)?)
}

/// Returns whether each signature is valid for its message and the key of its table, in order; `None` if the
/// single check must decide.
pub(crate) fn verify_by_tables(signed: &[(&LaneTable, SignedMessage<'_>)]) -> Vec<Option<bool>> {
    let mut are_valid = Vec::with_capacity(signed.len());
    for group in signed.chunks(GROUP_SIZE) {
        let parts = read_parts(group.iter().map(|(_, signed)| *signed));
        let factors = factors(group.iter().map(|(_, signed)| *signed), &parts);
        let usable = group.iter().zip(&parts).filter(|(_, parts)| parts.is_some());
        let tables: Vec<_> = usable.map(|((table, _), _)| *table).collect();
        let products = Engine::detect().multiply_by_tables(&tables, &factors);
        are_valid.extend(match_points(&parts, products.into_iter()));
    }
    are_valid
}

/// Returns whether each signature is valid for its message and its own key, in order; `None` if the
/// single check must decide. Eight lanes verify eight signatures at a time;
/// portable code is slower than the single check.
pub(crate) fn verify_each(signed: &[(&Coordinates, SignedMessage<'_>)]) -> Vec<Option<bool>> {
    let mut are_valid = Vec::with_capacity(signed.len());
    for group in signed.chunks(GROUP_SIZE) {
        let points: Vec<Option<Affine>> =
            group.iter().map(|(coordinates, _)| Affine::from_coordinates(coordinates)).collect();
        let mut parts = read_parts(group.iter().map(|(_, signed)| *signed));
        for (parts, point) in parts.iter_mut().zip(&points) {
            parts.take_if(|_| point.is_none());
        }
        let factors = factors(group.iter().map(|(_, signed)| *signed), &parts);
        let usable = points.iter().zip(&parts).filter(|(_, parts)| parts.is_some());
        let usable: Vec<Affine> = usable.filter_map(|(point, _)| *point).collect();
        let products = Engine::detect().multiply_each(&usable, &factors);
        are_valid.extend(match_points(&parts, products.into_iter()));
    }
    are_valid
}

/// Reads the signatures. A result is `None` if the signature is malformed.
fn read_parts<'a>(signed: impl Iterator<Item = SignedMessage<'a>>) -> Vec<Option<SignatureParts>> {
    signed.map(|(_, signature)| SignatureParts::read(signature)).collect()
}

/// Returns u₁ and u₂ of each well-formed signature.
fn factors<'a>(
    signed: impl Iterator<Item = SignedMessage<'a>>,
    parts: &[Option<SignatureParts>],
) -> Vec<(Scalar, Scalar)> {
    let mut inverses: Vec<_> = parts.iter().flatten().map(|parts| MontgomeryScalar::new(parts.s)).collect();
    MontgomeryScalar::invert_all(&mut inverses);
    let well_formed = signed.zip(parts).filter_map(|((message, _), parts)| Some((message, parts.as_ref()?)));
    let factors = well_formed.zip(inverses).map(|((message, parts), inverse)| {
        let e = Scalar::from_octets_reduced(&sha256(message));
        (inverse.multiply_plain(e), inverse.multiply_plain(parts.r))
    });
    factors.collect()
}

/// Returns whether the point of each signature matches; `None` if the signature is malformed or its point is
/// unknown. `points` has the points of the well-formed signatures.
fn match_points(
    parts: &[Option<SignatureParts>],
    mut points: impl Iterator<Item = Option<Jacobian>>,
) -> impl Iterator<Item = Option<bool>> {
    parts.iter().map(move |parts| {
        let parts = parts.as_ref()?;
        points.next()?.map(|point| parts.matches_point(&point))
    })
}

#[cfg(test)]
mod tests;
