//! The multiplications by secret scalars for proofs and signatures: multiples of the inputs' points
//! and of the base point.

#![deny(unsafe_code)]

use zeroize::Zeroizing;

use super::comb::{Digits, Entries, Repeated, Tables, multiply, multiply_base};
use super::field::LANES;
use super::point::{AffinePoints, JacobianPoints, normalize_all};
use crate::p256::point::Affine;
use crate::p256::scalar::Scalar;

/// Returns the distance between the products of one input in a vector, in lanes. With up to two
/// inputs, one vector has all three products of each input. With three or four inputs, one vector
/// has two products of each input. With more inputs, a vector has one product of each input.
const fn lane_distance(inputs: usize) -> usize {
    match inputs {
        0..=2 => 2,
        3..=4 => 4,
        _ => LANES,
    }
}

/// Writes the items to the lanes, and repeats them after each [`lane_distance`]. Unused lanes
/// repeat the last item, and the caller discards their results. Without items, all lanes have the
/// filler.
fn spread<T: Copy>(items: &[T], filler: T) -> [T; LANES] {
    let mut lanes = [filler; LANES];
    for (lane, slot) in lanes.iter_mut().enumerate() {
        let index = (lane % lane_distance(items.len())).min(items.len().saturating_sub(1));
        *slot = items.get(index).copied().unwrap_or(filler);
    }
    lanes
}

/// Returns the products of [`commit`], vector by vector.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn products(
    points: &[Affine],
    secrets: &[Scalar],
    nonces: &[Scalar],
) -> Zeroizing<Vec<JacobianPoints>> {
    let mut vectors = Vec::with_capacity(points.len().div_ceil(LANES));
    for points in points.chunks(LANES) {
        let mut lanes = spread(points, Affine::BASE);
        if lane_distance(points.len()) == 2 {
            lanes[4..].fill(Affine::BASE);
        }
        let repeated = if points.len() == 1 { Repeated::InHalves } else { Repeated::Never };
        vectors.push((AffinePoints::from_affine(&lanes), repeated));
    }
    let combs = Tables::combs(&vectors);
    // Reserve the maximum capacity: copies that a growing vector leaves in freed memory are not
    // wiped.
    let mut products: Zeroizing<Vec<JacobianPoints>> = Zeroizing::new(Vec::with_capacity(3 * vectors.len()));
    for ((comb, secrets), nonces) in
        combs.tables().iter().zip(secrets.chunks(LANES)).zip(nonces.chunks(LANES))
    {
        push_products(comb, secrets, nonces, &mut products);
    }
    products
}

/// Returns secret·P, nonce·B and nonce·P for each point P, its secret and its nonce, or `None` if a
/// product has Z = 0.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn commit(points: &[Affine], secrets: &[Scalar], nonces: &[Scalar]) -> Option<Vec<[Affine; 3]>> {
    let mut affine = normalize(&products(points, secrets, nonces))?.into_iter();
    let mut all = Vec::with_capacity(points.len());
    for points in points.chunks(LANES) {
        let first = affine.next()?;
        let [secret_products, base_products, nonce_products] = match lane_distance(points.len()) {
            2 => [&first[..2], &first[4..6], &first[2..4]].map(<[Affine]>::to_vec),
            4 => [first[..4].to_vec(), affine.next()?.to_vec(), first[4..].to_vec()],
            _ => [first.to_vec(), affine.next()?.to_vec(), affine.next()?.to_vec()],
        };
        all.extend(
            (0..points.len())
                .map(|index| [secret_products[index], base_products[index], nonce_products[index]]),
        );
    }
    Some(all)
}

/// Appends the products of one vector. The products by the secrets come first.
#[target_feature(enable = "avx512f,avx512ifma")]
fn push_products(comb: &Entries, secrets: &[Scalar], nonces: &[Scalar], products: &mut Vec<JacobianPoints>) {
    let nonce_lanes = Zeroizing::new(spread(nonces, nonces[0]));
    let secret_lanes = Zeroizing::new(spread(secrets, secrets[0]));
    let mut scalars = nonce_lanes.clone();
    let distance = lane_distance(nonces.len());
    scalars[..distance].copy_from_slice(&secret_lanes[..distance]);
    products.push(multiply(comb, &Zeroizing::new(Digits::new(&scalars))));
    if nonces.len() <= 2 {
        return;
    }
    let digits = Zeroizing::new(Digits::new(&nonce_lanes));
    products.push(multiply_base(None, &digits));
    if nonces.len() > 4 {
        products.push(multiply(comb, &digits));
    }
}

/// Returns scalar·B for each of the scalars, or `None` if a product has Z = 0.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn multiply_base_all(scalars: &[Scalar]) -> Option<Vec<Affine>> {
    let mut products: Zeroizing<Vec<JacobianPoints>> =
        Zeroizing::new(Vec::with_capacity(scalars.len().div_ceil(LANES)));
    for scalars in scalars.chunks(LANES) {
        let lanes = Zeroizing::new(spread(scalars, scalars[0]));
        products.push(multiply_base(None, &Zeroizing::new(Digits::new(&lanes))));
    }
    let mut all: Vec<Affine> = normalize(&products)?.into_iter().flatten().collect();
    // In the last vector, unused lanes and repeated items follow the actual items.
    all.truncate(scalars.len());
    Some(all)
}

/// Converts secret products to affine form, with eight points for each vector. Returns `None` if
/// one of them is infinity.
#[target_feature(enable = "avx512f,avx512ifma")]
fn normalize(products: &[JacobianPoints]) -> Option<Vec<[Affine; LANES]>> {
    let mut work = Zeroizing::new(Vec::new());
    let (vectors, infinities) = normalize_all(products, &mut work);
    if infinities.iter().any(|infinite| *infinite != 0) {
        return None;
    }
    let mut affine = Vec::with_capacity(vectors.len());
    for points in vectors {
        affine.push(points.to_affine());
    }
    Some(affine)
}
