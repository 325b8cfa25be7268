//! Checks that the numbers of a Falcon-512 private key are consistent and short, as those from key
//! generation are (Falcon specification v1.2, algorithms 5 and 6).
//!
//! The library computes G from f, g and F modulo q only, which other numbers in a key file would
//! pass. The key would then either sign forever, because no signature would ever be short enough,
//! or generate signatures that reveal information about the key.

use std::f64::consts::PI;

use zeroize::Zeroizing;

/// The degree of the polynomials, which are reduced modulo x^512 + 1.
const DEGREE: usize = 512;
/// The modulus q.
const MODULUS: i32 = 12289;
/// (1.17)^2 q, the bound of both norms. Key generation compares integers with this number rounded
/// up.
const NORM_BOUND: f64 = 16823.0;
/// Bits of an encoded coefficient of f and of g.
const F_AND_G_BITS: u32 = 6;
/// Bits of an encoded coefficient of F.
const BIG_F_BITS: u32 = 8;
/// Bits of an encoded coefficient of h, the public key.
const H_BITS: u32 = 14;

type Polynomial = Zeroizing<Vec<i32>>;

/// Returns whether `private` and `public` form a basis of determinant q that is as short as key
/// generation requires. `private` contains f, g and F after one octet, in an encoding that the
/// library has already decoded. `public` contains h after one octet.
///
/// The sequence of operations does not depend on the numbers. It takes about a millisecond.
pub(super) fn is_valid_basis(private: &[u8], public: &[u8]) -> bool {
    let (f_octets, rest) = private[1..].split_at(DEGREE * F_AND_G_BITS as usize / 8);
    let (g_octets, big_f_octets) = rest.split_at(DEGREE * F_AND_G_BITS as usize / 8);
    let (f, g) = (unpack_signed(f_octets, F_AND_G_BITS), unpack_signed(g_octets, F_AND_G_BITS));
    let big_f = unpack_signed(big_f_octets, BIG_F_BITS);
    // h = g / f modulo q, so G = h F modulo q, where fG − gF = q.
    let mut big_g = product(&unpack(&public[1..], H_BITS), &big_f);
    for value in big_g.iter_mut() {
        let residue = value.rem_euclid(MODULUS);
        *value = if residue > MODULUS / 2 { residue - MODULUS } else { residue };
    }
    solves_ntru(&f, &g, &big_f, &big_g) & is_short(&f, &g)
}

/// Unpacks coefficients of `bits` bits each, most significant first.
fn unpack(octets: &[u8], bits: u32) -> Polynomial {
    let mut values = Zeroizing::new(Vec::with_capacity(DEGREE));
    let (mut window, mut window_bits) = (0_u32, 0);
    for &octet in octets {
        window = window << 8 | u32::from(octet);
        window_bits += 8;
        while window_bits >= bits {
            window_bits -= bits;
            values.push((window >> window_bits & ((1 << bits) - 1)) as i32);
        }
    }
    values
}

/// Like [`unpack`], but in two's complement.
fn unpack_signed(octets: &[u8], bits: u32) -> Polynomial {
    let mut values = unpack(octets, bits);
    let shift = 32 - bits;
    values.iter_mut().for_each(|value| *value = *value << shift >> shift);
    values
}

/// Returns the product modulo x^512 + 1. No sum exceeds 32 bits: 512 products of 12288 and 128 are
/// less than 2^30.
fn product(a: &[i32], b: &[i32]) -> Polynomial {
    let mut sums = Zeroizing::new(vec![0; 2 * DEGREE]);
    for (index, value) in a.iter().enumerate() {
        sums[index..].iter_mut().zip(b).for_each(|(sum, other)| *sum += value * other);
    }
    let (low, high) = sums.split_at_mut(DEGREE);
    low.iter_mut().zip(high).for_each(|(low, high)| *low -= *high);
    sums.truncate(DEGREE);
    sums
}

/// Returns whether the NTRU equation fG − gF = q holds over the integers. The library has already
/// checked that G is short.
fn solves_ntru(f: &[i32], g: &[i32], big_f: &[i32], big_g: &[i32]) -> bool {
    let (left, right) = (product(f, big_g), product(g, big_f));
    let differences =
        left.iter().zip(right.iter()).enumerate().fold(0, |differences, (index, (left, right))| {
            let expected = if index == 0 { MODULUS } else { 0 };
            differences | (left - right - expected)
        });
    differences == 0
}

/// Returns whether the basis is short: (f, g), and (F, G) after Gram-Schmidt, must be within the
/// bound.
fn is_short(f: &[i32], g: &[i32]) -> bool {
    let norm: i32 = f.iter().chain(g).map(|value| value * value).sum();
    // Cosines of the multiples of pi / 512 over one turn. The sine lags the cosine by a quarter of
    // a turn.
    let cosines: Vec<f64> = (0..2 * DEGREE).map(|step| (step as f64 * PI / DEGREE as f64).cos()).collect();
    // The squared norm of (F, G) after Gram-Schmidt, as the mean of q² / (|f|² + |g|²) over the
    // roots of x^512 + 1. The sum is over half of the roots. The other roots are their conjugates,
    // at which the values have the same magnitude.
    let gram_schmidt_norm: f64 = (0..DEGREE / 2)
        .map(|root| {
            let squared_norm = squared_magnitude_at(f, 2 * root + 1, &cosines)
                + squared_magnitude_at(g, 2 * root + 1, &cosines);
            2.0 * f64::from(MODULUS) * f64::from(MODULUS) / squared_norm
        })
        .sum();
    // Comparisons with NaN are false, so NaN is rejected.
    (f64::from(norm) < NORM_BOUND) & (gram_schmidt_norm / (DEGREE as f64) < NORM_BOUND)
}

/// Returns the squared magnitude of the polynomial at the root with the angle `step` · pi / 512.
fn squared_magnitude_at(polynomial: &[i32], step: usize, cosines: &[f64]) -> f64 {
    let turn = 2 * DEGREE;
    let (mut real, mut imaginary) = (0.0, 0.0);
    for (index, &value) in polynomial.iter().enumerate() {
        let angle = index * step % turn;
        real += f64::from(value) * cosines[angle];
        imaginary += f64::from(value) * cosines[(angle + 3 * turn / 4) % turn];
    }
    real * real + imaginary * imaginary
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(value: i32) -> Vec<i32> {
        let mut polynomial = vec![0; DEGREE];
        polynomial[0] = value;
        polynomial
    }

    /// For f = c and g = 0, the norms are c^2 and (q / c)^2.
    #[test]
    fn both_norms_are_bounded() {
        for (value, short) in [(1, false), (94, false), (95, true), (-111, true), (129, true), (130, false)] {
            assert_eq!(is_short(&constant(value), &constant(0)), short, "{value}");
            assert_eq!(is_short(&constant(0), &constant(value)), short, "{value}");
        }
        assert!(!is_short(&constant(0), &constant(0)));
        assert!(!is_short(&[31; DEGREE], &[31; DEGREE]));
    }

    #[test]
    fn powers_wrap_with_their_sign_changed() {
        let mut last = vec![0; DEGREE];
        last[DEGREE - 1] = 5;
        let mut x = vec![0; DEGREE];
        x[1] = 3;
        assert_eq!(*product(&last, &x), constant(-15));
        let mut both = constant(7);
        both[1] = 3;
        last[0] = 1;
        let mut expected = constant(7 - 15);
        (expected[1], expected[DEGREE - 1]) = (3, 35);
        assert_eq!(*product(&both, &last), expected);
    }

    #[test]
    fn coefficients_are_unpacked_with_their_sign() {
        assert_eq!(**unpack_signed(&[0b0000_0111, 0b1111_1000, 0b0001_1111], 6), [1, -1, -32, 31]);
        assert_eq!(**unpack_signed(&[0x80, 0x7f, 0xff], 8), [-128, 127, -1]);
        assert_eq!(**unpack(&[0xff, 0xfc, 0, 0, 0, 1, 0xff], 14), [0x3fff, 0, 0, 0x1ff]);
    }

    #[test]
    fn the_equation_holds_over_the_integers() {
        let (one, zero, q) = (constant(1), constant(0), constant(MODULUS));
        assert!(solves_ntru(&one, &zero, &zero, &q));
        assert!(solves_ntru(&zero, &constant(-1), &q, &zero));
        assert!(!solves_ntru(&one, &zero, &zero, &zero));
        assert!(!solves_ntru(&one, &zero, &zero, &constant(2 * MODULUS)));
        let mut other = q;
        other[3] = 1;
        assert!(!solves_ntru(&one, &zero, &zero, &other));
    }
}
