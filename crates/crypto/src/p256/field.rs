//! The field of P-256: integers modulo p = 2²⁵⁶ − 2²²⁴ + 2¹⁹² + 2⁹⁶ − 1 (FIPS 186-4, section
//! D.1.2.3).
//!
//! Elements are in Montgomery form (a·2²⁵⁶ mod p) and always below p, in four limbs of 64 bits,
//! least significant first. No function branches on a value or uses a value as an address.

use std::ops::{Add, Mul, Neg, Sub};

use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::{DefaultIsZeroes, Zeroizing};

use crate::limbs::{self, add_carry, multiply_add, select, subtract_borrow};

/// The prime p.
pub(crate) const PRIME: [u64; 4] = [0xffff_ffff_ffff_ffff, 0x0000_0000_ffff_ffff, 0, 0xffff_ffff_0000_0001];

/// 2⁵¹² mod p. Multiplication by it converts a number to Montgomery form.
const RADIX_SQUARED: Field =
    Field([0x0000_0000_0000_0003, 0xffff_fffb_ffff_ffff, 0xffff_ffff_ffff_fffe, 0x0000_0004_ffff_fffd]);

/// An element of the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field([u64; 4]);

impl DefaultIsZeroes for Field {}

impl Field {
    pub(crate) const ZERO: Self = Self([0; 4]);
    pub(crate) const ONE: Self =
        Self([1, 0xffff_ffff_0000_0000, 0xffff_ffff_ffff_ffff, 0x0000_0000_ffff_fffe]);

    /// Creates an element from its Montgomery form, which must be below p.
    pub(super) const fn from_montgomery(limbs: [u64; 4]) -> Self {
        Self(limbs)
    }

    /// Returns the Montgomery form.
    #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
    pub(super) const fn montgomery(self) -> [u64; 4] {
        self.0
    }

    /// Reads 32 big-endian octets. Returns `None` if the number is not below p.
    pub(crate) fn from_octets(octets: &[u8; 32]) -> Option<Self> {
        let limbs = limbs::from_octets(octets);
        limbs::is_below(&limbs, &PRIME).then(|| Self(limbs) * RADIX_SQUARED)
    }

    /// Returns 32 big-endian octets.
    pub(crate) fn to_octets(self) -> [u8; 32] {
        limbs::to_octets(&(self * Self([1, 0, 0, 0])).0)
    }

    /// Returns whether the number, not its Montgomery form, is odd.
    pub(crate) fn is_odd(self) -> bool {
        (self * Self([1, 0, 0, 0])).0[0] & 1 == 1
    }

    pub(crate) fn is_zero(self) -> bool {
        self.ct_eq(&Self::ZERO).into()
    }

    /// Subtracts p once if the number is not below p. `high` is the fifth limb of the number.
    #[inline(always)]
    fn reduce(limbs: [u64; 4], high: u64) -> Self {
        let (low, borrow) = subtract_prime(&limbs);
        let (_, borrow) = subtract_borrow(high, 0, borrow);
        // A borrow means that the number was below p.
        Self(select(&low, &limbs, borrow.wrapping_neg()))
    }

    /// ORs the bits of another element that are in `mask` into this element. These bits must be 0
    /// before.
    #[inline(always)]
    pub(super) fn merge(&mut self, other: &Self, mask: u64) {
        for (limb, other) in self.0.iter_mut().zip(other.0) {
            *limb |= other & mask;
        }
    }

    #[inline(always)]
    pub(crate) fn double(self) -> Self {
        self + self
    }

    /// Returns a/2. If the Montgomery form is odd, adding p makes it even.
    #[inline(always)]
    pub(super) fn halve(self) -> Self {
        let a = &self.0;
        let odd_mask = (a[0] & 1).wrapping_neg();
        let (r0, carry) = add_carry(a[0], PRIME[0] & odd_mask, 0);
        let (r1, carry) = add_carry(a[1], PRIME[1] & odd_mask, carry);
        let (r2, carry) = add_carry(a[2], 0, carry);
        let (r3, carry) = add_carry(a[3], PRIME[3] & odd_mask, carry);
        Self([
            (r0 >> 1) | (r1 << 63),
            (r1 >> 1) | (r2 << 63),
            (r2 >> 1) | (r3 << 63),
            (r3 >> 1) | (carry << 63),
        ])
    }

    /// a².
    #[inline(always)]
    pub(crate) fn square(self) -> Self {
        montgomery_reduce(limbs::square(&self.0))
    }

    /// Squares this many times.
    fn square_times(mut self, times: u32) -> Self {
        for _ in 0..times {
            self = self.square();
        }
        self
    }

    /// Returns a to the powers 2³⁰ − 1 and 2³² − 1, which are the start of both exponentiations
    /// below.
    fn power_of_ones(self) -> (Self, Self) {
        let x2 = self.square() * self;
        let x4 = x2.square_times(2) * x2;
        let x8 = x4.square_times(4) * x4;
        let x16 = x8.square_times(8) * x8;
        let x24 = x16.square_times(8) * x8;
        let x28 = x24.square_times(4) * x4;
        let x30 = x28.square_times(2) * x2;
        (x30, x30.square_times(2) * x2)
    }

    /// Returns a⁻¹ as a to the power p − 2, and zero for zero.
    pub(crate) fn invert(self) -> Self {
        let (x30, x32) = self.power_of_ones();
        let high = x32.square_times(32) * self;
        let middle = high.square_times(128) * x32;
        let low = middle.square_times(32) * x32;
        (low.square_times(30) * x30).square_times(2) * self
    }

    /// Returns a square root as a to the power (p + 1)/4, or `None` if a is not a square.
    pub(crate) fn square_root(self) -> Option<Self> {
        let (_, x32) = self.power_of_ones();
        let root = ((x32.square_times(32) * self).square_times(96) * self).square_times(94);
        (root.square() == self).then_some(root)
    }

    /// Replaces each element by its inverse. The cost is one inversion, and three multiplications
    /// for each element (Montgomery's trick). A zero stays zero and does not affect other elements.
    /// The intermediate products are wiped, because the elements may belong to secret points.
    pub(crate) fn invert_all(elements: &mut [Self]) {
        // Reserve the full capacity: copies that a growing vector leaves in freed memory are not
        // wiped.
        let mut products = Zeroizing::new(Vec::with_capacity(elements.len()));
        let mut product = Self::ONE;
        for element in &*elements {
            products.push(product);
            product = product * Self::conditional_select(element, &Self::ONE, element.ct_eq(&Self::ZERO));
        }
        let mut inverse = product.invert();
        for (element, before) in elements.iter_mut().zip(&*products).rev() {
            let zero = element.ct_eq(&Self::ZERO);
            let next = inverse * Self::conditional_select(element, &Self::ONE, zero);
            *element = Self::conditional_select(&(inverse * *before), &Self::ZERO, zero);
            inverse = next;
        }
    }
}

#[inline(always)]
fn subtract_prime(a: &[u64; 4]) -> ([u64; 4], u64) {
    let (r0, borrow) = subtract_borrow(a[0], PRIME[0], 0);
    let (r1, borrow) = subtract_borrow(a[1], PRIME[1], borrow);
    let (r2, borrow) = subtract_borrow(a[2], PRIME[2], borrow);
    let (r3, borrow) = subtract_borrow(a[3], PRIME[3], borrow);
    ([r0, r1, r2, r3], borrow)
}

/// One step of the reduction: (t + m·p)/2⁶⁴ for m = t₀.
///
/// Because p ≡ −1 (mod 2⁶⁴), m·p is m·2⁹⁶ − m + m·(2⁶⁴ − 2³² + 1)·2¹⁹². The lowest limb vanishes,
/// and one multiplication remains.
#[inline(always)]
fn reduce_step(m: u64, t1: u64, t2: u64, t3: u64, t4: u64) -> (u64, u64, u64, u64, u64) {
    let (t1, carry) = add_carry(t1, m << 32, 0);
    let (t2, carry) = add_carry(t2, m >> 32, carry);
    let (t3, carry) = multiply_add(t3, m, PRIME[3], carry);
    let (t4, carry) = add_carry(t4, carry, 0);
    (t1, t2, t3, t4, carry)
}

/// Returns t·2⁻²⁵⁶ mod p.
#[inline(always)]
fn montgomery_reduce(t: [u64; 8]) -> Field {
    let [t0, t1, t2, t3, t4, t5, t6, t7] = t;
    let (t1, t2, t3, t4, carry) = reduce_step(t0, t1, t2, t3, t4);
    let (t5, over5) = add_carry(t5, carry, 0);
    let (t2, t3, t4, t5, carry) = reduce_step(t1, t2, t3, t4, t5);
    let (t6, over6) = add_carry(t6, carry, over5);
    let (t3, t4, t5, t6, carry) = reduce_step(t2, t3, t4, t5, t6);
    let (t7, over7) = add_carry(t7, carry, over6);
    let (t4, t5, t6, t7, carry) = reduce_step(t3, t4, t5, t6, t7);
    Field::reduce([t4, t5, t6, t7], carry + over7)
}

impl Mul for Field {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        montgomery_reduce(limbs::multiply(&self.0, &other.0))
    }
}

impl Add for Field {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (a, b) = (&self.0, &other.0);
        let (r0, carry) = add_carry(a[0], b[0], 0);
        let (r1, carry) = add_carry(a[1], b[1], carry);
        let (r2, carry) = add_carry(a[2], b[2], carry);
        let (r3, carry) = add_carry(a[3], b[3], carry);
        Self::reduce([r0, r1, r2, r3], carry)
    }
}

impl Sub for Field {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let (a, b) = (&self.0, &other.0);
        let (r0, borrow) = subtract_borrow(a[0], b[0], 0);
        let (r1, borrow) = subtract_borrow(a[1], b[1], borrow);
        let (r2, borrow) = subtract_borrow(a[2], b[2], borrow);
        let (r3, borrow) = subtract_borrow(a[3], b[3], borrow);
        let mask = borrow.wrapping_neg();
        let (r0, carry) = add_carry(r0, PRIME[0] & mask, 0);
        let (r1, carry) = add_carry(r1, PRIME[1] & mask, carry);
        let (r2, carry) = add_carry(r2, 0, carry);
        let (r3, _) = add_carry(r3, PRIME[3] & mask, carry);
        Self([r0, r1, r2, r3])
    }
}

impl Neg for Field {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self::ZERO - self
    }
}

impl ConditionallySelectable for Field {
    #[inline(always)]
    fn conditional_select(a: &Self, b: &Self, choice: Choice) -> Self {
        Self(select(&a.0, &b.0, u64::from(choice.unwrap_u8()).wrapping_neg()))
    }
}

impl ConstantTimeEq for Field {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}
