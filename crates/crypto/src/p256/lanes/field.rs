//! Eight elements of the field in parallel: integers modulo p = 2²⁵⁶ − 2²²⁴ + 2¹⁹² + 2⁹⁶ − 1.
//!
//! An element has five limbs of 52 bits, the size that AVX-512 IFMA instructions multiply, least
//! significant first. A vector has one limb of all eight elements. Elements are in Montgomery form
//! (a·2²⁶⁰ mod p) and may be p or more: 2²⁶⁰ is slightly more than 16·p, and the four extra bits
//! are for unreduced sums. The functions document the bounds of their arguments and results; "below
//! b" means "below b·p". A product of numbers below b and c is below 1 + b·c/16.
//!
//! Every limb of an element is below 2⁵². The only exceptions are unfinished sums before [`carry`],
//! whose limbs may be negative. No function branches on a value or uses a value as an address.

use std::arch::x86_64::{
    __m512i, __mmask8, _mm512_add_epi64, _mm512_and_si512, _mm512_cmpeq_epi64_mask, _mm512_cmplt_epi64_mask,
    _mm512_loadu_si512, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64, _mm512_mask_mov_epi64, _mm512_or_si512,
    _mm512_permutex_epi64, _mm512_permutexvar_epi64, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_slli_epi64, _mm512_srai_epi64, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi64,
    _mm512_ternarylogic_epi64,
};

use zeroize::Zeroize;

use crate::p256::field::Field;

/// Number of elements in a vector.
pub(super) const LANES: usize = 8;

/// Number of limbs of an element.
pub(super) const LIMBS: usize = 5;

/// Bits of a limb.
pub(super) const LIMB_BITS: u32 = 52;

/// Mask of the bits of a limb.
const LIMB_MASK: u64 = (1 << LIMB_BITS) - 1;

/// The prime p.
const PRIME: [u64; LIMBS] =
    [0x000f_ffff_ffff_ffff, 0x0000_0fff_ffff_ffff, 0, 0x0000_0010_0000_0000, 0x0000_ffff_ffff_0000];

/// 2²⁶⁰ mod p.
const ONE: [u64; LIMBS] = [
    0x0000_0000_0000_0010,
    0x000f_0000_0000_0000,
    0x000f_ffff_ffff_ffff,
    0x000f_feff_ffff_ffff,
    0x0000_0000_000f_ffff,
];

/// 2²⁶⁴ mod p. Multiplication by it converts the Montgomery form of [`Field`] (a·2²⁵⁶) to the form
/// of these elements.
const FROM_FIELD: [u64; LIMBS] =
    [0x0000_0000_0000_0100, 0, 0x000f_ffff_ffff_ffff, 0x000f_efff_ffff_ffff, 0x0000_0000_00ff_ffff];

/// 2²⁵⁶ mod p. Multiplication by it converts back to the form of [`Field`].
const TO_FIELD: [u64; LIMBS] = [
    0x0000_0000_0000_0001,
    0x000f_f000_0000_0000,
    0x000f_ffff_ffff_ffff,
    0x000f_ffef_ffff_ffff,
    0x0000_0000_0000_ffff,
];

/// Eight sums of elements and products before their carries: the absolute value of each limb is below
/// 2⁶⁰. They take part in further sums without a carry, which shortens a chain of operations.
#[derive(Clone, Copy)]
pub(super) struct Sums([__m512i; LIMBS]);

/// Eight numbers of 64 bits in memory.
pub(super) type Words = [u64; LANES];

/// Eight elements.
#[derive(Clone, Copy)]
pub(super) struct Fields(pub(super) [__m512i; LIMBS]);

/// Loads a vector from memory.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn load(words: &Words) -> __m512i {
    // SAFETY: the pointer refers to 64 bytes, and the instruction requires no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Stores a vector in memory.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn store(vector: __m512i) -> Words {
    let mut words = [0; LANES];
    // SAFETY: the pointer refers to 64 bytes that are borrowed exclusively, and the instruction
    // requires no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) };
    words
}

impl Zeroize for Fields {
    fn zeroize(&mut self) {
        // SAFETY: `Fields` consists only of five vectors. These have the size of 40 words and at
        // least their alignment, and every bit pattern is a valid value of both types. The borrow
        // of `self` lasts as long as the slice.
        let words =
            unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(self).cast::<u64>(), LIMBS * LANES) };
        words.zeroize();
    }
}

/// Returns k·p in limbs below 2⁵², for k up to 15.
const fn multiple(k: u64) -> [u64; LIMBS] {
    let mut limbs = [0; LIMBS];
    let mut carry = 0;
    let mut limb = 0;
    while limb < LIMBS {
        let sum = PRIME[limb] as u128 * k as u128 + carry;
        limbs[limb] = sum as u64 & LIMB_MASK;
        carry = sum >> LIMB_BITS;
        limb += 1;
    }
    limbs
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn set(number: u64) -> __m512i {
    _mm512_set1_epi64(number as i64)
}

/// Adds a·bⱼ·2⁵²ʲ to the columns, starting at column `AT`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn accumulate<const AT: usize>(columns: &mut [__m512i; 2 * LIMBS], a: __m512i, b: &[__m512i; LIMBS]) {
    let t = columns;
    t[AT] = _mm512_madd52lo_epu64(t[AT], a, b[0]);
    t[AT + 1] = _mm512_madd52lo_epu64(t[AT + 1], a, b[1]);
    t[AT + 2] = _mm512_madd52lo_epu64(t[AT + 2], a, b[2]);
    t[AT + 3] = _mm512_madd52lo_epu64(t[AT + 3], a, b[3]);
    t[AT + 4] = _mm512_madd52lo_epu64(t[AT + 4], a, b[4]);
    t[AT + 1] = _mm512_madd52hi_epu64(t[AT + 1], a, b[0]);
    t[AT + 2] = _mm512_madd52hi_epu64(t[AT + 2], a, b[1]);
    t[AT + 3] = _mm512_madd52hi_epu64(t[AT + 3], a, b[2]);
    t[AT + 4] = _mm512_madd52hi_epu64(t[AT + 4], a, b[3]);
    t[AT + 5] = _mm512_madd52hi_epu64(t[AT + 5], a, b[4]);
}

/// Adds aᵢ·aⱼ at 2⁵²⁽ⁱ⁺ʲ⁾.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn accumulate_one<const AT: usize>(t: &mut [__m512i; 2 * LIMBS], a: __m512i, b: __m512i) {
    t[AT] = _mm512_madd52lo_epu64(t[AT], a, b);
    t[AT + 1] = _mm512_madd52hi_epu64(t[AT + 1], a, b);
}

/// Adds a·b to columns.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn accumulate_product(columns: &mut [__m512i; 2 * LIMBS], a: &Fields, b: &Fields) {
    accumulate::<0>(columns, a.0[0], &b.0);
    accumulate::<1>(columns, a.0[1], &b.0);
    accumulate::<2>(columns, a.0[2], &b.0);
    accumulate::<3>(columns, a.0[3], &b.0);
    accumulate::<4>(columns, a.0[4], &b.0);
}

/// One step of the reduction: adds m·p at limb `AT`. m is the value of the limb modulo 2⁵², so that
/// the limb becomes zero.
///
/// Because p ≡ −1 (mod 2⁵²), m needs no multiplication. Because p + 1 = 2⁹⁶ + 2¹⁹² + …, the
/// addition at this limb carries m into the next limb, where it is added together with the product:
/// (2⁴⁴ − 1 + 1)·m. The multiplication instruction uses the low 52 bits of m, so no mask is needed.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn reduce_step<const AT: usize>(t: &mut [__m512i; 2 * LIMBS]) {
    let m = t[AT];
    let (p1, p3, p4) = (set(PRIME[1] + 1), set(PRIME[3]), set(PRIME[4]));
    t[AT + 1] = _mm512_add_epi64(_mm512_madd52lo_epu64(t[AT + 1], m, p1), _mm512_srli_epi64::<LIMB_BITS>(m));
    t[AT + 2] = _mm512_madd52hi_epu64(t[AT + 2], m, p1);
    t[AT + 3] = _mm512_madd52lo_epu64(t[AT + 3], m, p3);
    t[AT + 4] = _mm512_madd52hi_epu64(_mm512_madd52lo_epu64(t[AT + 4], m, p4), m, p3);
    t[AT + 5] = _mm512_madd52hi_epu64(t[AT + 5], m, p4);
}

/// Returns t·2⁻²⁶⁰ mod p, below 1 + t/(p·2²⁶⁰). The columns must be below 2⁶⁰.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn reduce_columns(mut t: [__m512i; 2 * LIMBS]) -> Fields {
    reduce_columns_to_sums(&mut t).carry()
}

/// As [`reduce_columns`], before the carry.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn reduce_columns_to_sums(t: &mut [__m512i; 2 * LIMBS]) -> Sums {
    reduce_step::<0>(t);
    reduce_step::<1>(t);
    reduce_step::<2>(t);
    reduce_step::<3>(t);
    reduce_step::<4>(t);
    // The lower limbs are zero now, and their carries are included.
    Sums([t[5], t[6], t[7], t[8], t[9]])
}

/// Carries the bits above 52 of each limb into the next limb. Limbs are signed. The number must be
/// from 0 to below 2²⁶⁰.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn carry(limbs: [__m512i; LIMBS]) -> Fields {
    let mask = set(LIMB_MASK);
    let [l0, l1, l2, l3, l4] = limbs;
    let l1 = _mm512_add_epi64(l1, _mm512_srai_epi64::<LIMB_BITS>(l0));
    let l2 = _mm512_add_epi64(l2, _mm512_srai_epi64::<LIMB_BITS>(l1));
    let l3 = _mm512_add_epi64(l3, _mm512_srai_epi64::<LIMB_BITS>(l2));
    let l4 = _mm512_add_epi64(l4, _mm512_srai_epi64::<LIMB_BITS>(l3));
    Fields([
        _mm512_and_si512(l0, mask),
        _mm512_and_si512(l1, mask),
        _mm512_and_si512(l2, mask),
        _mm512_and_si512(l3, mask),
        l4,
    ])
}

/// Like [`carry`], but also subtracts q·p, where q is the part of the number from 2²⁵⁶ on. The
/// result is below 1.01. The absolute values of the limbs must be below 2⁶⁰.
///
/// q is read before the carry into the highest limb, which changes the number by less than 2²²⁰. If
/// q is not zero, q·(2²⁵⁶ − p) is more than that, so the result is not negative. If q is zero,
/// nothing is subtracted.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn carry_reduced(limbs: [__m512i; LIMBS]) -> Fields {
    let [l0, l1, l2, l3, l4] = limbs;
    let q = _mm512_srai_epi64::<48>(l4);
    let l0 = _mm512_add_epi64(l0, q);
    let l1 = _mm512_sub_epi64(l1, _mm512_slli_epi64::<44>(q));
    let l3 = _mm512_sub_epi64(l3, _mm512_slli_epi64::<36>(q));
    let l4 = _mm512_sub_epi64(_mm512_add_epi64(l4, _mm512_slli_epi64::<16>(q)), _mm512_slli_epi64::<48>(q));
    carry([l0, l1, l2, l3, l4])
}

impl Sums {
    /// a + b.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn add(&self, other: &Self) -> Self {
        let mut limbs = self.0;
        for (limb, other) in limbs.iter_mut().zip(&other.0) {
            *limb = _mm512_add_epi64(*limb, *other);
        }
        Self(limbs)
    }

    /// a − b.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn subtract(&self, other: &Self) -> Self {
        let mut limbs = self.0;
        for (limb, other) in limbs.iter_mut().zip(&other.0) {
            *limb = _mm512_sub_epi64(*limb, *other);
        }
        Self(limbs)
    }

    /// Returns `other` in the lanes whose bit is set in the mask, and this sum in the other lanes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn select_lanes(&self, other: &Self, mask: __mmask8) -> Self {
        Self(Fields(self.0).select_lanes(&Fields(other.0), mask).0)
    }

    /// As [`Fields::permute_halves`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn permute_halves<const ORDER: i32>(&self) -> Self {
        Self(Fields(self.0).permute_halves::<ORDER>().0)
    }

    /// Returns the element. The sum must be from 0 to below 16.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn carry(&self) -> Fields {
        carry(self.0)
    }

    /// Returns the element of a sum plus 4·p, below 1.01. The sum must be from −4 to below 12.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn reduce(&self) -> Fields {
        let multiple = const { multiple(4) };
        let mut limbs = self.0;
        for (limb, multiple) in limbs.iter_mut().zip(&multiple) {
            *limb = _mm512_add_epi64(*limb, set(*multiple));
        }
        carry_reduced(limbs)
    }
}

impl Fields {
    /// Returns the element as a sum.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn to_sums(self) -> Sums {
        Sums(self.0)
    }

    /// a·b before its carry. It takes less time than [`Fields::multiply`] if the next operation waits for it, because
    /// each column has two sums, which are shorter chains.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn multiply_to_sums(&self, other: &Self) -> Sums {
        let (a, b) = (&self.0, &other.0);
        let zero = [_mm512_setzero_si512(); 2 * LIMBS];
        let (mut low, mut high) = (zero, zero);
        macro_rules! accumulate {
            ($($i:literal $j:literal),*) => {$(
                low[$i + $j] = _mm512_madd52lo_epu64(low[$i + $j], a[$i], b[$j]);
                high[$i + $j + 1] = _mm512_madd52hi_epu64(high[$i + $j + 1], a[$i], b[$j]);
            )*};
        }
        accumulate!(0 0, 0 1, 1 0, 0 2, 1 1, 2 0, 0 3, 1 2, 2 1, 3 0, 0 4, 1 3, 2 2, 3 1, 4 0);
        accumulate!(1 4, 2 3, 3 2, 4 1, 2 4, 3 3, 4 2, 3 4, 4 3, 4 4);
        for (low, high) in low.iter_mut().zip(&high) {
            *low = _mm512_add_epi64(*low, *high);
        }
        reduce_columns_to_sums(&mut low)
    }

    /// Reorders the four lanes of each half: lane i of the result is the lane whose number is in the bits 2·i and
    /// 2·i + 1 of `ORDER`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn permute_halves<const ORDER: i32>(&self) -> Self {
        let mut limbs = self.0;
        for limb in &mut limbs {
            *limb = _mm512_permutex_epi64::<ORDER>(*limb);
        }
        Self(limbs)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn zero() -> Self {
        Self([_mm512_setzero_si512(); LIMBS])
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn one() -> Self {
        Self::splat(&ONE)
    }

    /// Returns the same limbs in every lane.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn splat(limbs: &[u64; LIMBS]) -> Self {
        Self([set(limbs[0]), set(limbs[1]), set(limbs[2]), set(limbs[3]), set(limbs[4])])
    }

    /// a·b.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn multiply(&self, other: &Self) -> Self {
        let mut columns = [_mm512_setzero_si512(); 2 * LIMBS];
        accumulate_product(&mut columns, self, other);
        reduce_columns(columns)
    }

    /// Returns a·b + c·d, below 1 + (a·b + c·d)/16.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn sum_of_products(a: &Self, b: &Self, c: &Self, d: &Self) -> Self {
        let mut columns = [_mm512_setzero_si512(); 2 * LIMBS];
        accumulate_product(&mut columns, a, b);
        accumulate_product(&mut columns, c, d);
        reduce_columns(columns)
    }

    /// a².
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn square(&self) -> Self {
        let [a0, a1, a2, a3, a4] = self.0;
        let mut t = [_mm512_setzero_si512(); 2 * LIMBS];
        accumulate_one::<1>(&mut t, a0, a1);
        accumulate_one::<2>(&mut t, a0, a2);
        accumulate_one::<3>(&mut t, a0, a3);
        accumulate_one::<4>(&mut t, a0, a4);
        accumulate_one::<3>(&mut t, a1, a2);
        accumulate_one::<4>(&mut t, a1, a3);
        accumulate_one::<5>(&mut t, a1, a4);
        accumulate_one::<5>(&mut t, a2, a3);
        accumulate_one::<6>(&mut t, a2, a4);
        accumulate_one::<7>(&mut t, a3, a4);
        for column in &mut t[1..9] {
            *column = _mm512_add_epi64(*column, *column);
        }
        accumulate_one::<0>(&mut t, a0, a0);
        accumulate_one::<2>(&mut t, a1, a1);
        accumulate_one::<4>(&mut t, a2, a2);
        accumulate_one::<6>(&mut t, a3, a3);
        accumulate_one::<8>(&mut t, a4, a4);
        reduce_columns(t)
    }

    /// Returns a + b, below the sum of both bounds.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn add(&self, other: &Self) -> Self {
        let mut limbs = self.0;
        for (limb, other) in limbs.iter_mut().zip(&other.0) {
            *limb = _mm512_add_epi64(*limb, *other);
        }
        carry(limbs)
    }

    /// Returns a·2ⁿ for a small n, below 2ⁿ times the bound of a.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn shift<const N: u32>(&self) -> Self {
        let mut limbs = self.0;
        for limb in &mut limbs {
            *limb = _mm512_slli_epi64::<N>(*limb);
        }
        carry(limbs)
    }

    /// 3·a.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn triple(&self) -> Self {
        let mut limbs = self.0;
        for limb in &mut limbs {
            *limb = _mm512_add_epi64(*limb, _mm512_add_epi64(*limb, *limb));
        }
        carry(limbs)
    }

    /// Returns a − b·2ⁿ + k·p. b·2ⁿ must be below k. The result is below the bound of a plus k.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn subtract_shifted<const N: u32, const K: u64>(&self, other: &Self) -> Self {
        let multiple = const { multiple(K) };
        let mut limbs = self.0;
        for ((limb, other), multiple) in limbs.iter_mut().zip(&other.0).zip(&multiple) {
            let shifted = _mm512_slli_epi64::<N>(*other);
            *limb = _mm512_sub_epi64(_mm512_add_epi64(*limb, set(*multiple)), shifted);
        }
        carry(limbs)
    }

    /// Returns a − b + k·p. b must be below k. The result is below the bound of a plus k.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn subtract<const K: u64>(&self, other: &Self) -> Self {
        let multiple = const { multiple(K) };
        let mut limbs = self.0;
        for ((limb, other), multiple) in limbs.iter_mut().zip(&other.0).zip(&multiple) {
            *limb = _mm512_sub_epi64(_mm512_add_epi64(*limb, set(*multiple)), *other);
        }
        carry(limbs)
    }

    /// Returns a + 2·b, below 1.01. The sum must be below 16.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn add_twice_reduced(&self, b: &Self) -> Self {
        let mut limbs = self.0;
        for (limb, b) in limbs.iter_mut().zip(&b.0) {
            *limb = _mm512_add_epi64(*limb, _mm512_add_epi64(*b, *b));
        }
        carry_reduced(limbs)
    }

    /// Returns a − b − 2·c, below 1.01. b + 2·c must be below 4.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn subtract_both_reduced(&self, b: &Self, c: &Self) -> Self {
        let multiple = const { multiple(4) };
        let mut limbs = self.0;
        for (index, limb) in limbs.iter_mut().enumerate() {
            let subtrahend = _mm512_add_epi64(b.0[index], _mm512_add_epi64(c.0[index], c.0[index]));
            *limb = _mm512_sub_epi64(_mm512_add_epi64(*limb, set(multiple[index])), subtrahend);
        }
        carry_reduced(limbs)
    }

    /// Returns −a, below 1.01. a must be below 4.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn negate(&self) -> Self {
        let multiple = const { multiple(4) };
        let mut limbs = self.0;
        for (limb, multiple) in limbs.iter_mut().zip(&multiple) {
            *limb = _mm512_sub_epi64(set(*multiple), *limb);
        }
        carry_reduced(limbs)
    }

    /// Returns the same element, reduced below p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn canonical(&self) -> Self {
        let reduced = carry_reduced(self.0);
        let mut limbs = reduced.0;
        for (limb, prime) in limbs.iter_mut().zip(&PRIME) {
            *limb = _mm512_sub_epi64(*limb, set(*prime));
        }
        let less = carry(limbs);
        let is_negative = _mm512_cmplt_epi64_mask(less.0[4], _mm512_setzero_si512());
        less.select_lanes(&reduced, is_negative)
    }

    /// Returns `other` in the lanes whose bit is set in the mask, and this element in the other
    /// lanes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn select_lanes(&self, other: &Self, mask: __mmask8) -> Self {
        let mut limbs = self.0;
        for (limb, other) in limbs.iter_mut().zip(&other.0) {
            *limb = _mm512_mask_mov_epi64(*limb, mask, *other);
        }
        Self(limbs)
    }

    /// Returns the bits of `other` where the bit of the mask is set, and the bits of this element
    /// elsewhere.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn select_by_bits(&self, other: &Self, mask: __m512i) -> Self {
        let mut limbs = self.0;
        for (limb, other) in limbs.iter_mut().zip(&other.0) {
            // mask ? other : limb
            *limb = _mm512_ternarylogic_epi64::<0xca>(mask, *other, *limb);
        }
        Self(limbs)
    }

    /// Returns this element with the bits of `other` that are set in the mask. In this element,
    /// these bits must be 0.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn merge(&self, other: &Self, mask: __m512i) -> Self {
        let mut limbs = self.0;
        for (limb, other) in limbs.iter_mut().zip(&other.0) {
            // limb | other & mask
            *limb = _mm512_ternarylogic_epi64::<0xf8>(*limb, *other, mask);
        }
        Self(limbs)
    }

    /// Returns the lanes in another order: lane i of the result is lane `order[i]`, and a lane can be copied.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn permute(&self, order: &Words) -> Self {
        let index = load(order);
        let mut limbs = self.0;
        for limb in &mut limbs {
            *limb = _mm512_permutexvar_epi64(index, *limb);
        }
        Self(limbs)
    }

    /// Returns a mask of the lanes whose element is zero.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn are_zero(&self) -> __mmask8 {
        let [l0, l1, l2, l3, l4] = self.canonical().0;
        let all = _mm512_or_si512(_mm512_or_si512(_mm512_or_si512(l0, l1), _mm512_or_si512(l2, l3)), l4);
        _mm512_cmpeq_epi64_mask(all, _mm512_setzero_si512())
    }

    /// Returns a mask of the lanes whose number is odd. The Montgomery form does not matter.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn are_odd(&self) -> __mmask8 {
        let number = self.multiply(&Self::splat(&[1, 0, 0, 0, 0])).canonical();
        let one = set(1);
        _mm512_cmpeq_epi64_mask(_mm512_and_si512(number.0[0], one), one)
    }

    /// Converts elements to lanes. The result is below 1.2.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn from_fields(fields: &[Field; LANES]) -> Self {
        let mut words = [[0; LANES]; 4];
        for (lane, field) in fields.iter().enumerate() {
            for (words, word) in words.iter_mut().zip(field.montgomery()) {
                words[lane] = word;
            }
        }
        split([load(&words[0]), load(&words[1]), load(&words[2]), load(&words[3])])
            .multiply(&Self::splat(&FROM_FIELD))
    }

    /// Returns the Montgomery form, below p, in words of 64 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn to_words(self) -> [__m512i; 4] {
        join(&self.canonical())
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn to_fields(self) -> [Field; LANES] {
        let words = self.multiply(&Self::splat(&TO_FIELD)).to_words();
        let words = [store(words[0]), store(words[1]), store(words[2]), store(words[3])];
        let mut fields = [Field::ZERO; LANES];
        for (lane, field) in fields.iter_mut().enumerate() {
            *field = Field::from_montgomery([words[0][lane], words[1][lane], words[2][lane], words[3][lane]]);
        }
        fields
    }
}

/// Converts numbers of four words of 64 bits to limbs of 52 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn split(words: [__m512i; 4]) -> Fields {
    let mask = set(LIMB_MASK);
    let [w0, w1, w2, w3] = words;
    Fields([
        _mm512_and_si512(w0, mask),
        _mm512_and_si512(_mm512_or_si512(_mm512_srli_epi64::<52>(w0), _mm512_slli_epi64::<12>(w1)), mask),
        _mm512_and_si512(_mm512_or_si512(_mm512_srli_epi64::<40>(w1), _mm512_slli_epi64::<24>(w2)), mask),
        _mm512_and_si512(_mm512_or_si512(_mm512_srli_epi64::<28>(w2), _mm512_slli_epi64::<36>(w3)), mask),
        _mm512_srli_epi64::<16>(w3),
    ])
}

/// Converts numbers below 2²⁵⁶ to words of 64 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn join(numbers: &Fields) -> [__m512i; 4] {
    let [l0, l1, l2, l3, l4] = numbers.0;
    [
        _mm512_or_si512(l0, _mm512_slli_epi64::<52>(l1)),
        _mm512_or_si512(_mm512_srli_epi64::<12>(l1), _mm512_slli_epi64::<40>(l2)),
        _mm512_or_si512(_mm512_srli_epi64::<24>(l2), _mm512_slli_epi64::<28>(l3)),
        _mm512_or_si512(_mm512_srli_epi64::<36>(l3), _mm512_slli_epi64::<16>(l4)),
    ]
}
