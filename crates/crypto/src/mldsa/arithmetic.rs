//! Arithmetic modulo q on rows of eight coefficients, with portable code. [`Avx2`](super::avx2::Avx2) is the
//! same with AVX2.
//!
//! Multiplication is that of Montgomery with the radix R = 2^32: the product of `a` and `b` is a·b/R.

/// The modulus q of ML-DSA (FIPS 204, section 4): 2^23 − 2^13 + 1.
pub(super) const Q: i32 = 8_380_417;

/// The inverse of q modulo R.
pub(super) const Q_INVERSE: i32 = 58_728_449;

/// Number of coefficients in a [`Row`].
pub(super) const LANES: usize = 8;

/// Eight coefficients. Unless stated otherwise, they are in the range from −q to q, without the bounds.
pub(super) type Row = [i32; LANES];

/// A constant factor of each lane.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct Factor {
    /// The factors, multiplied by R modulo q; from −q/2 to q/2.
    pub(super) value: Row,
    /// The same, divided by q modulo R.
    pub(super) quotient: Row,
}

impl Factor {
    /// Returns the same factor for all lanes: `factor`, which is from 0 to q − 1.
    pub(super) const fn new(factor: i64) -> Self {
        let q = Q as i64;
        let value = (factor << 32) % q;
        let value = if value > q / 2 { value - q } else { value } as i32;
        Self { value: [value; LANES], quotient: [value.wrapping_mul(Q_INVERSE); LANES] }
    }
}

/// Returns the upper half of the product.
#[inline(always)]
fn upper_half(left: i32, right: i32) -> i32 {
    ((i64::from(left) * i64::from(right)) >> 32) as i32
}

/// Returns `sum` divided by R, modulo q. The absolute value of `sum` must be below q·2^31.
#[inline(always)]
fn reduce(sum: i64) -> i32 {
    let quotient = (sum as i32).wrapping_mul(Q_INVERSE);
    // The lower halves of both terms are equal.
    (sum >> 32) as i32 - upper_half(quotient, Q)
}

/// Returns the row with `lane(i)` in lane i.
#[inline(always)]
pub(super) fn row(lane: impl Fn(usize) -> i32) -> Row {
    std::array::from_fn(lane)
}

/// Returns the sum, lane by lane. The lanes must not overflow.
#[inline(always)]
pub(super) fn add(left: &Row, right: &Row) -> Row {
    row(|lane| left[lane].wrapping_add(right[lane]))
}

/// Returns the difference, lane by lane. The lanes must not overflow.
#[inline(always)]
pub(super) fn subtract(left: &Row, right: &Row) -> Row {
    row(|lane| left[lane].wrapping_sub(right[lane]))
}

/// The operations that the compiler does not vectorise well.
pub(super) trait Arithmetic: Copy {
    /// Returns the product of a row of any values and a factor, modulo q.
    fn multiply(self, row: &Row, factor: &Factor) -> Row;

    /// Returns the sum of the products of the rows, divided by R, modulo q. The absolute value of the sum
    /// must be below q·2^31.
    fn sum_of_products<const N: usize>(self, left: [&Row; N], right: [&Row; N]) -> Row;

    /// Exchanges lanes and rows: lane i of row j becomes lane j of row i.
    fn transpose(self, rows: &mut [Row; LANES]);
}

/// Code without vector instructions of its own.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Arithmetic for Portable {
    #[inline(always)]
    fn multiply(self, values: &Row, factor: &Factor) -> Row {
        row(|lane| {
            let quotient = values[lane].wrapping_mul(factor.quotient[lane]);
            upper_half(values[lane], factor.value[lane]) - upper_half(quotient, Q)
        })
    }

    #[inline(always)]
    fn sum_of_products<const N: usize>(self, left: [&Row; N], right: [&Row; N]) -> Row {
        row(|lane| {
            let products = left.iter().zip(right).map(|(a, b)| i64::from(a[lane]) * i64::from(b[lane]));
            reduce(products.sum())
        })
    }

    #[inline(always)]
    fn transpose(self, rows: &mut [Row; LANES]) {
        let before = *rows;
        *rows = std::array::from_fn(|lane| row(|index| before[index][lane]));
    }
}
