//! Arithmetic on numbers of 256 bits, as four limbs of 64 bits, least significant first. No
//! function branches on a value; only `is_below` returns a bool.

/// a + b + carry. Returns the low limb and the carry, which is 0 or 1, or more if the argument
/// `carry` is larger than 1.
#[inline(always)]
pub(crate) const fn add_carry(a: u64, b: u64, carry: u64) -> (u64, u64) {
    let sum = a as u128 + b as u128 + carry as u128;
    (sum as u64, (sum >> 64) as u64)
}

/// a − b − borrow. Returns the low limb and the borrow, which is 0 or 1.
#[inline(always)]
pub(crate) const fn subtract_borrow(a: u64, b: u64, borrow: u64) -> (u64, u64) {
    let difference = (a as u128).wrapping_sub(b as u128 + borrow as u128);
    (difference as u64, (difference >> 64) as u64 & 1)
}

/// a + b·c + carry. Returns the low and the high limb.
#[inline(always)]
pub(crate) const fn multiply_add(a: u64, b: u64, c: u64, carry: u64) -> (u64, u64) {
    let sum = a as u128 + b as u128 * c as u128 + carry as u128;
    (sum as u64, (sum >> 64) as u64)
}

/// Returns `a` if `mask` is all zeros, and `b` if it is all ones.
#[inline(always)]
pub(crate) fn select(a: &[u64; 4], b: &[u64; 4], mask: u64) -> [u64; 4] {
    std::array::from_fn(|limb| a[limb] ^ (mask & (a[limb] ^ b[limb])))
}

/// Returns a + b and the carry.
#[inline(always)]
pub(crate) fn add(a: &[u64; 4], b: &[u64; 4]) -> ([u64; 4], u64) {
    let mut carry = 0;
    let sum = std::array::from_fn(|limb| {
        let sum;
        (sum, carry) = add_carry(a[limb], b[limb], carry);
        sum
    });
    (sum, carry)
}

/// Returns a − b and the borrow.
#[inline(always)]
pub(crate) fn subtract(a: &[u64; 4], b: &[u64; 4]) -> ([u64; 4], u64) {
    let mut borrow = 0;
    let difference = std::array::from_fn(|limb| {
        let difference;
        (difference, borrow) = subtract_borrow(a[limb], b[limb], borrow);
        difference
    });
    (difference, borrow)
}

/// Returns whether a < b. The computation is constant-time; only the result depends on the values.
pub(crate) fn is_below(a: &[u64; 4], b: &[u64; 4]) -> bool {
    subtract(a, b).1 == 1
}

/// Reads 32 big-endian octets.
pub(crate) fn from_octets(octets: &[u8; 32]) -> [u64; 4] {
    let limb = |at: usize| u64::from_be_bytes(std::array::from_fn(|octet| octets[at + octet]));
    [limb(24), limb(16), limb(8), limb(0)]
}

/// Returns 32 big-endian octets.
pub(crate) fn to_octets(limbs: &[u64; 4]) -> [u8; 32] {
    std::array::from_fn(|octet| (limbs[3 - octet / 8] >> (56 - octet % 8 * 8)) as u8)
}

/// a·b.
#[inline(always)]
pub(crate) fn multiply(a: &[u64; 4], b: &[u64; 4]) -> [u64; 8] {
    let (t0, carry) = multiply_add(0, a[0], b[0], 0);
    let (t1, carry) = multiply_add(0, a[0], b[1], carry);
    let (t2, carry) = multiply_add(0, a[0], b[2], carry);
    let (t3, t4) = multiply_add(0, a[0], b[3], carry);

    let (t1, carry) = multiply_add(t1, a[1], b[0], 0);
    let (t2, carry) = multiply_add(t2, a[1], b[1], carry);
    let (t3, carry) = multiply_add(t3, a[1], b[2], carry);
    let (t4, t5) = multiply_add(t4, a[1], b[3], carry);

    let (t2, carry) = multiply_add(t2, a[2], b[0], 0);
    let (t3, carry) = multiply_add(t3, a[2], b[1], carry);
    let (t4, carry) = multiply_add(t4, a[2], b[2], carry);
    let (t5, t6) = multiply_add(t5, a[2], b[3], carry);

    let (t3, carry) = multiply_add(t3, a[3], b[0], 0);
    let (t4, carry) = multiply_add(t4, a[3], b[1], carry);
    let (t5, carry) = multiply_add(t5, a[3], b[2], carry);
    let (t6, t7) = multiply_add(t6, a[3], b[3], carry);
    [t0, t1, t2, t3, t4, t5, t6, t7]
}

/// a².
#[inline(always)]
pub(crate) fn square(a: &[u64; 4]) -> [u64; 8] {
    let (t1, carry) = multiply_add(0, a[0], a[1], 0);
    let (t2, carry) = multiply_add(0, a[0], a[2], carry);
    let (t3, t4) = multiply_add(0, a[0], a[3], carry);
    let (t3, carry) = multiply_add(t3, a[1], a[2], 0);
    let (t4, t5) = multiply_add(t4, a[1], a[3], carry);
    let (t5, t6) = multiply_add(t5, a[2], a[3], 0);

    let t7 = t6 >> 63;
    let t6 = (t6 << 1) | (t5 >> 63);
    let t5 = (t5 << 1) | (t4 >> 63);
    let t4 = (t4 << 1) | (t3 >> 63);
    let t3 = (t3 << 1) | (t2 >> 63);
    let t2 = (t2 << 1) | (t1 >> 63);
    let t1 = t1 << 1;

    let (t0, carry) = multiply_add(0, a[0], a[0], 0);
    let (t1, carry) = add_carry(t1, 0, carry);
    let (t2, carry) = multiply_add(t2, a[1], a[1], carry);
    let (t3, carry) = add_carry(t3, 0, carry);
    let (t4, carry) = multiply_add(t4, a[2], a[2], carry);
    let (t5, carry) = add_carry(t5, 0, carry);
    let (t6, carry) = multiply_add(t6, a[3], a[3], carry);
    let (t7, _) = add_carry(t7, 0, carry);
    [t0, t1, t2, t3, t4, t5, t6, t7]
}
