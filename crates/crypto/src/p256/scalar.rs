//! Integers modulo the order of P-256's base point (FIPS 186-4, section D.1.2.3), always below it,
//! in four limbs. No function branches on a value or uses a value as an address.

use crrl::field::ModInt256;
use zeroize::{DefaultIsZeroes, Zeroizing};

use crate::limbs::{self, add, add_carry, multiply_add, select, subtract, subtract_borrow};

/// The order of the base point, which is also the order of the curve.
const ORDER: [u64; 4] =
    [0xf3b9_cac2_fc63_2551, 0xbce6_faad_a717_9e84, 0xffff_ffff_ffff_ffff, 0xffff_ffff_0000_0000];

/// −(order⁻¹) mod 2⁶⁴.
const ORDER_INVERSE: u64 = 0xccd1_c8aa_ee00_bc4f;

/// 2⁵¹² modulo the order.
const RADIX_SQUARED: [u64; 4] =
    [0x8324_4c95_be79_eea2, 0x4699_799c_49bd_6fa6, 0x2845_b239_2b6b_ec59, 0x66e1_2d94_f3d9_5620];

/// 2⁷⁶⁸ modulo the order.
const RADIX_CUBED: [u64; 4] =
    [0xac8e_bec9_0b65_a624, 0x111f_28ae_0c05_55c9, 0x2543_b924_6ba5_e93f, 0x503a_54e7_6407_be65];

/// Integers modulo the order, of the library.
type Integers = ModInt256<{ ORDER[0] }, { ORDER[1] }, { ORDER[2] }, { ORDER[3] }>;

/// Number of signed digits of [`Scalar::recode`].
pub(super) const RECODED_DIGITS: usize = 260;

/// 2²⁶⁰ − 1 modulo the order: the sum of all digits if each is 1.
const ALL_ONES: Scalar =
    Scalar([0xc463_53d0_39cd_aaef, 0x3190_5525_8e86_17b0, 0x0000_0000_0000_0004, 0x0000_000f_ffff_fff0]);

/// 2²⁵⁶ − 1 modulo the order.
const ALL_ONES_256: Scalar = Scalar([0x0c46_353d_039c_daae, 0x4319_0552_58e8_617b, 0, 0x0000_0000_ffff_ffff]);

/// An integer modulo the order.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Scalar(pub(super) [u64; 4]);

impl DefaultIsZeroes for Scalar {}

impl Scalar {
    pub(crate) const ZERO: Self = Self([0; 4]);

    /// Reads 32 big-endian octets. Returns `None` if the number is not below the order.
    pub(crate) fn from_octets(octets: &[u8; 32]) -> Option<Self> {
        let read = limbs::from_octets(octets);
        limbs::is_below(&read, &ORDER).then_some(Self(read))
    }

    /// Reads 32 big-endian octets, reduced modulo the order.
    pub(crate) fn from_octets_reduced(octets: &[u8; 32]) -> Self {
        Self::reduce(limbs::from_octets(octets), 0)
    }

    /// Returns 32 big-endian octets.
    pub(crate) fn to_octets(self) -> [u8; 32] {
        limbs::to_octets(&self.0)
    }

    /// Returns the scalar plus the order in 32 big-endian octets, if it fits.
    pub(crate) fn octets_plus_order(self) -> Option<[u8; 32]> {
        let (sum, carry) = add(&self.0, &ORDER);
        (carry == 0).then(|| limbs::to_octets(&sum))
    }

    pub(crate) fn from_short(short: u128) -> Self {
        Self([short as u64, (short >> 64) as u64, 0, 0])
    }

    /// Subtracts the order once if the number is not below it. `high` is the fifth limb of the
    /// number.
    fn reduce(read: [u64; 4], high: u64) -> Self {
        let (low, borrow) = subtract(&read, &ORDER);
        let (_, borrow) = subtract_borrow(high, 0, borrow);
        Self(select(&low, &read, borrow.wrapping_neg()))
    }

    pub(crate) fn add(self, other: Self) -> Self {
        let (sum, carry) = add(&self.0, &other.0);
        Self::reduce(sum, carry)
    }

    #[cfg(test)]
    pub(crate) fn negate(self) -> Self {
        let (difference, _) = subtract(&ORDER, &self.0);
        // The difference is the order itself if the scalar is zero.
        Self::reduce(difference, 0)
    }

    pub(crate) fn multiply(self, other: Self) -> Self {
        montgomery_multiply(&montgomery_multiply(&self.0, &other.0).0, &RADIX_SQUARED)
    }

    /// Returns half of the scalar, modulo the order.
    fn halve(self) -> Self {
        let odd_mask = (self.0[0] & 1).wrapping_neg();
        let (sum, carry) = add(&self.0, &ORDER.map(|limb| limb & odd_mask));
        let above = [sum[1], sum[2], sum[3], carry];
        Self(std::array::from_fn(|limb| (sum[limb] >> 1) | (above[limb] << 63)))
    }

    /// Recodes the scalar into [`RECODED_DIGITS`] nonzero digits. Digit i, with the weight 2ⁱ, is
    /// +1 if bit i of the result is set and −1 if it is not (Hamburg, "Fast and compact
    /// elliptic-curve cryptography", section 3.3).
    ///
    /// If b is the result, Σ 2ⁱ·(2bᵢ − 1) = 2b − (2²⁶⁰ − 1). Therefore b is (scalar + 2²⁶⁰ − 1)/2.
    pub(super) fn recode(self) -> Self {
        self.add(ALL_ONES).halve()
    }

    /// Recodes the scalar into octets, least significant first. Octet v at index i represents the
    /// odd number 2v − 255, times 2⁸ⁱ.
    ///
    /// As in [`Scalar::recode`], if b is the number with these octets, Σ 2⁸ⁱ·(2vᵢ − 255) = 2b −
    /// (2²⁵⁶ − 1).
    pub(super) fn recode_octets(self) -> [u8; 32] {
        let mut octets = self.add(ALL_ONES_256).halve().to_octets();
        octets.reverse();
        octets
    }

    /// Returns bit `at`, 0 or 1. Bits from 256 on are 0.
    #[inline(always)]
    pub(crate) fn bit(&self, at: usize) -> u64 {
        self.0.get(at / 64).map_or(0, |limb| (limb >> (at % 64)) & 1)
    }
}

/// A scalar in Montgomery form (times 2²⁵⁶), for multiplications in one step.
#[derive(Clone, Copy, Default)]
pub(crate) struct MontgomeryScalar(Scalar);

impl DefaultIsZeroes for MontgomeryScalar {}

impl MontgomeryScalar {
    /// The number 1.
    const ONE: Self = Self(Scalar([0x0c46_353d_039c_daaf, 0x4319_0552_58e8_617b, 0, 0x0000_0000_ffff_ffff]));

    pub(crate) fn new(scalar: Scalar) -> Self {
        Self(montgomery_multiply(&scalar.0, &RADIX_SQUARED))
    }

    /// Returns the product with a scalar in plain form, in plain form.
    pub(crate) fn multiply_plain(self, scalar: Scalar) -> Scalar {
        montgomery_multiply(&self.0.0, &scalar.0)
    }

    fn multiply(self, other: Self) -> Self {
        Self(montgomery_multiply(&self.0.0, &other.0.0))
    }

    /// Returns the inverse, or zero for zero, in constant time.
    fn invert(self) -> Self {
        let [w0, w1, w2, w3] = self.0.0;
        let inverse = Zeroizing::new((Integers::ONE / Integers::from_w64le(w0, w1, w2, w3)).encode32());
        let (words, _) = inverse.as_chunks();
        let inverse = std::array::from_fn(|word| u64::from_le_bytes(words[word]));
        // It is the inverse of the Montgomery form as a number; two factors of 2²⁵⁶ are missing.
        Self(montgomery_multiply(&inverse, &RADIX_CUBED))
    }

    /// Replaces each scalar by its inverse. No scalar may be zero. The cost is one inversion, and
    /// three multiplications for each scalar.
    pub(crate) fn invert_all(forms: &mut [Self]) {
        let mut products = Zeroizing::new(Vec::with_capacity(forms.len()));
        let mut product = Self::ONE;
        for form in &*forms {
            products.push(product);
            product = product.multiply(*form);
        }
        let mut inverse = product.invert();
        for (form, before) in forms.iter_mut().zip(&*products).rev() {
            let next = inverse.multiply(*form);
            *form = inverse.multiply(*before);
            inverse = next;
        }
    }
}

/// Returns a·b·2⁻²⁵⁶ modulo the order.
fn montgomery_multiply(a: &[u64; 4], b: &[u64; 4]) -> Scalar {
    let mut t = [0_u64; 6];
    for &limb in a {
        let mut carry = 0;
        for j in 0..4 {
            (t[j], carry) = multiply_add(t[j], limb, b[j], carry);
        }
        (t[4], t[5]) = add_carry(t[4], carry, 0);
        let m = t[0].wrapping_mul(ORDER_INVERSE);
        let (_, mut carry) = multiply_add(t[0], m, ORDER[0], 0);
        for j in 1..4 {
            (t[j - 1], carry) = multiply_add(t[j], m, ORDER[j], carry);
        }
        let (sum, over) = add_carry(t[4], carry, 0);
        t[3] = sum;
        t[4] = t[5] + over;
    }
    Scalar::reduce([t[0], t[1], t[2], t[3]], t[4])
}
