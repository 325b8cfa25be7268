//! The field of edwards25519: integers modulo p = 2²⁵⁵ − 19, in four limbs of 64 bits, least
//! significant first.
//!
//! The limbs are any number below 2²⁵⁶ that is congruent to the element modulo p. Only
//! [`Field::to_octets`] reduces it below p. No function branches on a value or uses a value as an
//! address, except for comparisons of public elements.

use std::ops::{Add, Mul, Neg, Sub};

use zeroize::{DefaultIsZeroes, Zeroizing};

use crate::limbs::{self, add_carry, multiply_add, select, subtract_borrow};

/// 2²⁵⁶ modulo p.
const FOLD: u64 = 38;

/// An element of the field.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Field([u64; 4]);

impl DefaultIsZeroes for Field {}

impl Field {
    pub(super) const ZERO: Self = Self([0; 4]);
    pub(super) const ONE: Self = Self([1, 0, 0, 0]);

    /// d of the equation of the curve, −121665/121666.
    pub(super) const D: Self =
        Self([0x75eb_4dca_1359_78a3, 0x0070_0a4d_4141_d8ab, 0x8cc7_4079_7779_e898, 0x5203_6cee_2b6f_fe73]);

    /// 2d.
    pub(super) const TWICE_D: Self =
        Self([0xebd6_9b94_26b2_f159, 0x00e0_149a_8283_b156, 0x198e_80f2_eef3_d130, 0x2406_d9dc_56df_fce7]);

    /// A square root of −1.
    const ROOT_OF_MINUS_ONE: Self =
        Self([0xc4ee_1b27_4a0e_a0b0, 0x2f43_1806_ad2f_e478, 0x2b4d_0099_3dfb_d7a7, 0x2b83_2480_4fc1_df0b]);

    #[cfg(test)]
    pub(super) fn from_limbs(limbs: [u64; 4]) -> Self {
        Self(limbs)
    }

    /// Reads 32 little-endian octets and ignores their highest bit.
    pub(super) fn from_octets(octets: &[u8; 32]) -> Self {
        let mut octets = *octets;
        octets[31] &= 0x7f;
        octets.reverse();
        Self(limbs::from_octets(&octets))
    }

    /// Returns 32 little-endian octets of the number below p.
    pub(super) fn to_octets(self) -> [u8; 32] {
        let a = &self.0;
        // The result is below 2²⁵⁵ + 19: the highest bit is worth 19.
        let (r0, carry) = add_carry(a[0], 19 * (a[3] >> 63), 0);
        let (r1, carry) = add_carry(a[1], 0, carry);
        let (r2, carry) = add_carry(a[2], 0, carry);
        let (r3, _) = add_carry(a[3] & (u64::MAX >> 1), 0, carry);
        // The number is not below p if adding 19 sets the highest bit.
        let (s0, carry) = add_carry(r0, 19, 0);
        let (s1, carry) = add_carry(r1, 0, carry);
        let (s2, carry) = add_carry(r2, 0, carry);
        let (s3, _) = add_carry(r3, 0, carry);
        let is_large = (s3 >> 63).wrapping_neg();
        let reduced = select(&[r0, r1, r2, r3], &[s0, s1, s2, s3 & (u64::MAX >> 1)], is_large);
        let mut octets = limbs::to_octets(&reduced);
        octets.reverse();
        octets
    }

    pub(super) fn is_same(self, other: Self) -> bool {
        self.to_octets() == other.to_octets()
    }

    /// ORs the bits of another element that are in `mask` into this element. These bits must be 0
    /// before.
    #[inline(always)]
    pub(super) fn merge(&mut self, other: &Self, mask: u64) {
        for (limb, other) in self.0.iter_mut().zip(other.0) {
            *limb |= other & mask;
        }
    }

    /// Returns `a` if `mask` is all zeros, and `b` if it is all ones.
    #[inline(always)]
    pub(super) fn select(a: &Self, b: &Self, mask: u64) -> Self {
        Self(select(&a.0, &b.0, mask))
    }

    #[inline(always)]
    pub(super) fn double(self) -> Self {
        self + self
    }

    /// a².
    #[inline(always)]
    pub(super) fn square(self) -> Self {
        fold(limbs::square(&self.0))
    }

    fn square_times(mut self, times: u32) -> Self {
        for _ in 0..times {
            self = self.square();
        }
        self
    }

    /// Returns a to the powers 11 and 2²⁵⁰ − 1, which are the start of both exponentiations below.
    fn power_of_ones(self) -> (Self, Self) {
        let x2 = self.square();
        let x9 = x2.square_times(2) * self;
        let x11 = x9 * x2;
        let ones5 = x11.square() * x9;
        let ones10 = ones5.square_times(5) * ones5;
        let ones20 = ones10.square_times(10) * ones10;
        let ones40 = ones20.square_times(20) * ones20;
        let ones50 = ones40.square_times(10) * ones10;
        let ones100 = ones50.square_times(50) * ones50;
        let ones200 = ones100.square_times(100) * ones100;
        (x11, ones200.square_times(50) * ones50)
    }

    /// Returns a⁻¹ as a to the power p − 2 = 2²⁵⁵ − 21, and zero for zero.
    pub(super) fn invert(self) -> Self {
        let (x11, ones250) = self.power_of_ones();
        ones250.square_times(5) * x11
    }

    /// Returns a square root of a/b, or `None` if a/b is not a square (RFC 8032, section 5.1.3).
    pub(super) fn square_root_of_ratio(a: Self, b: Self) -> Option<Self> {
        let b3 = b.square() * b;
        let base = a * b3.square() * b;
        // Raise to the power (p − 5)/8 = 2²⁵² − 3.
        let (_, ones250) = base.power_of_ones();
        let root = ones250.square_times(2) * base * a * b3;
        let check = root.square() * b;
        if check.is_same(a) { Some(root) } else { check.is_same(-a).then(|| root * Self::ROOT_OF_MINUS_ONE) }
    }

    /// Replaces each element by its inverse. No element may be zero. The cost is one inversion, and
    /// three multiplications for each element (Montgomery's trick). The intermediate products are
    /// wiped, because the elements may belong to secret points.
    pub(super) fn invert_all(elements: &mut [Self]) {
        // Reserve the full capacity: copies that a growing vector leaves in freed memory are not
        // wiped.
        let mut products = Zeroizing::new(Vec::with_capacity(elements.len()));
        let mut product = Self::ONE;
        for element in &*elements {
            products.push(product);
            product = product * *element;
        }
        let mut inverse = product.invert();
        for (element, before) in elements.iter_mut().zip(&*products).rev() {
            let next = inverse * *element;
            *element = inverse * *before;
            inverse = next;
        }
    }
}

/// Reduces a product of eight limbs modulo p: the upper four limbs are worth 38 times the lower
/// four.
#[inline(always)]
fn fold(t: [u64; 8]) -> Field {
    let (r0, carry) = multiply_add(t[0], t[4], FOLD, 0);
    let (r1, carry) = multiply_add(t[1], t[5], FOLD, carry);
    let (r2, carry) = multiply_add(t[2], t[6], FOLD, carry);
    let (r3, carry) = multiply_add(t[3], t[7], FOLD, carry);
    add_folds([r0, r1, r2, r3], carry)
}

/// Reduces a number with `high`, at most 38, as its fifth limb. If adding the value of `high`
/// carries again, the remaining number is so small that adding 38 to the first limb does not carry.
#[inline(always)]
fn add_folds(r: [u64; 4], high: u64) -> Field {
    let (r0, carry) = add_carry(r[0], high * FOLD, 0);
    let (r1, carry) = add_carry(r[1], 0, carry);
    let (r2, carry) = add_carry(r[2], 0, carry);
    let (r3, carry) = add_carry(r[3], 0, carry);
    Field([r0.wrapping_add(carry * FOLD), r1, r2, r3])
}

impl Mul for Field {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        fold(limbs::multiply(&self.0, &other.0))
    }
}

impl Add for Field {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (sum, carry) = limbs::add(&self.0, &other.0);
        add_folds(sum, carry)
    }
}

impl Sub for Field {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let (r, borrow) = limbs::subtract(&self.0, &other.0);
        let (r0, borrow) = subtract_borrow(r[0], borrow * FOLD, 0);
        let (r1, borrow) = subtract_borrow(r[1], 0, borrow);
        let (r2, borrow) = subtract_borrow(r[2], 0, borrow);
        let (r3, borrow) = subtract_borrow(r[3], 0, borrow);
        // After a second borrow, the number is almost 2²⁵⁶, so this subtraction does not borrow.
        Self([r0.wrapping_sub(borrow * FOLD), r1, r2, r3])
    }
}

impl Neg for Field {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self::ZERO - self
    }
}
