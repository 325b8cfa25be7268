//! Tables of multiples of a point, for public values. With such a table, a multiplication takes 31
//! additions and no doubling.

use std::sync::OnceLock;

use super::engine::Engine;
use super::field::Field;
#[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
use super::lanes::{Ifma, PackedTable};
#[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
use super::multiply::{COLUMNS, COMB_ENTRIES, TEETH, double_multiply_public};
use super::point::{Affine, Jacobian};
use super::scalar::Scalar;
use super::sum::{add_different, sum_any};
use super::windows::{ENTRIES_PER_WINDOW, WINDOW_BITS, WINDOWS};

/// Odd multiples of a point P of prime order: for window w, entry e is (2e + 1)·2⁸ʷ·P. It has 256
/// KiB.
pub(crate) struct Table {
    entries: Entries,
    #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
    point: Affine,
}

/// Octets of a [`LaneTable`].
pub(crate) const LANE_TABLE_OCTETS: usize = 52 << 10;

/// A table of a key for eight lanes, each with a table of its own: 52 windows of five bits. It has 52 KiB.
/// A multiplication takes 52 additions. Machines without lanes have none.
pub(crate) struct LaneTable {
    #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
    pub(super) entries: PackedTable,
}

impl LaneTable {
    /// Builds the table. This takes as long as three verifications of a signature in aws-lc. Returns `None` if
    /// the machine has no lanes.
    #[cfg_attr(any(not(target_arch = "x86_64"), feature = "no_avx512"), expect(unused_variables))]
    pub(crate) fn new(point: &Affine) -> Option<Self> {
        match Engine::detect() {
            Engine::Portable => None,
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            Engine::Lanes(ifma) => Some(Self { entries: packed_windows(ifma, point) }),
        }
    }

    /// Returns the table of the base point, built at first use.
    #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
    pub(super) fn base(ifma: Ifma) -> &'static PackedTable {
        static BASE: OnceLock<PackedTable> = OnceLock::new();
        BASE.get_or_init(|| packed_windows(ifma, &Affine::BASE))
    }
}

/// The entries, in the format of the arithmetic that built the table.
enum Entries {
    Plain(Vec<Affine>),
    #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
    Packed(Ifma, PackedTable),
}

impl Table {
    /// Builds the table. This takes as long as about twenty verifications of a signature in aws-lc,
    /// or eight with lanes.
    pub(crate) fn new(point: &Affine) -> Self {
        let entries = match Engine::detect() {
            Engine::Portable => Entries::Plain(multiples(point)),
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            Engine::Lanes(ifma) => Entries::Packed(ifma, packed_octets(ifma, point)),
        };
        Self {
            entries,
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            point: *point,
        }
    }
}

/// Returns the entries of a [`Table`] for the lanes.
#[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
fn packed_octets(ifma: Ifma, point: &Affine) -> PackedTable {
    packed(ifma, point, WINDOW_BITS, WINDOWS, ENTRIES_PER_WINDOW)
}

/// Returns the entries of a [`LaneTable`].
#[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
fn packed_windows(ifma: Ifma, point: &Affine) -> PackedTable {
    packed(ifma, point, TEETH, COLUMNS, COMB_ENTRIES)
}

/// Returns the entries of a table with windows of `bits` bits.
#[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
fn packed(ifma: Ifma, point: &Affine, bits: usize, windows: usize, entries: usize) -> PackedTable {
    let next = |power: &Jacobian| Some(power.double_times(bits));
    let powers: Vec<_> = std::iter::successors(Some((*point).into()), next).take(windows).collect();
    ifma.pack_multiples(&Jacobian::normalize_all(&powers), entries)
}

/// Returns the entries of a table.
fn multiples(point: &Affine) -> Vec<Affine> {
    let powers = powers_of_two(point);
    let mut entries: Vec<Affine> = powers.iter().step_by(WINDOW_BITS).copied().collect();
    let (mut others, mut products) = (Vec::new(), Vec::new());
    // Each round doubles the number of entries: it adds (2e + 1 + 2m)·P for the m existing entries.
    for round in 1..WINDOW_BITS {
        let known = 1 << (round - 1);
        others.clear();
        others.extend(
            powers.iter().skip(round).step_by(WINDOW_BITS).flat_map(|power| (0..known).map(|_| *power)),
        );
        let mut sums = entries.clone();
        // No two points are equal or opposite: their factors differ by less than the order, which
        // is prime.
        let different = add_different(&mut sums, &others, &mut products);
        debug_assert!(different, "a point of another order");
        entries = entries
            .chunks_exact(known)
            .zip(sums.chunks_exact(known))
            .flat_map(|(a, b)| [a, b].concat())
            .collect();
    }
    entries
}

/// Returns the entries of the table of the base point, built at first use.
fn base_entries() -> &'static [Affine] {
    static TABLE: OnceLock<Vec<Affine>> = OnceLock::new();
    TABLE.get_or_init(|| multiples(&Affine::BASE))
}

/// Appends, for each window, the term of each of the `scalars`, in order.
fn push_terms(entries: &[Affine], scalars: &[[u8; WINDOWS]], terms: &mut Vec<Affine>) {
    for (window, entries) in entries.chunks_exact(ENTRIES_PER_WINDOW).enumerate() {
        terms.extend(scalars.iter().map(|octets| {
            let octet = octets[window];
            // Octet v represents 2v − 255.
            let is_negative = octet < ENTRIES_PER_WINDOW as u8;
            let entry = if is_negative {
                ENTRIES_PER_WINDOW as u8 - 1 - octet
            } else {
                octet - ENTRIES_PER_WINDOW as u8
            };
            let entry = &entries[usize::from(entry)];
            entry.negate_if(u8::from(is_negative).into())
        }));
    }
}

/// Returns 2ⁱ·P for i below 256.
fn powers_of_two(point: &Affine) -> Vec<Affine> {
    let next = |power: &Jacobian| Some(power.double());
    let powers: Vec<_> =
        std::iter::successors(Some((*point).into()), next).take(WINDOWS * WINDOW_BITS).collect();
    Jacobian::normalize_all(&powers)
}

/// Reusable work buffers of [`multiply_both`].
#[derive(Default)]
pub(crate) struct Workspace {
    terms: Vec<Affine>,
    products: Vec<Field>,
    octets: Vec<[u8; WINDOWS]>,
}

/// Returns a·B + b·P for each pair of scalars, with the base point B and the point P of the table.
pub(crate) fn multiply_both(
    table: &Table,
    pairs: &[(Scalar, Scalar)],
    workspace: &mut Workspace,
) -> Vec<Jacobian> {
    match &table.entries {
        Entries::Plain(entries) => multiply_both_plain(entries, pairs, workspace),
        #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
        Entries::Packed(ifma, entries) => multiply_both_packed(*ifma, entries, &table.point, pairs),
    }
}

fn multiply_both_plain(
    entries: &[Affine],
    pairs: &[(Scalar, Scalar)],
    workspace: &mut Workspace,
) -> Vec<Jacobian> {
    let Workspace { terms, products, octets } = workspace;
    terms.clear();
    octets.clear();
    octets.extend(pairs.iter().map(|(a, _)| a.recode_octets()));
    push_terms(base_entries(), octets, terms);
    octets.clear();
    octets.extend(pairs.iter().map(|(_, b)| b.recode_octets()));
    push_terms(entries, octets, terms);
    sum_any(terms, pairs.len(), products);
    let point = |sum: &Affine| if sum.is_infinity() { Jacobian::INFINITY } else { (*sum).into() };
    terms[..pairs.len()].iter().map(point).collect()
}

#[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
fn multiply_both_packed(
    ifma: Ifma,
    entries: &PackedTable,
    point: &Affine,
    pairs: &[(Scalar, Scalar)],
) -> Vec<Jacobian> {
    static BASE: OnceLock<PackedTable> = OnceLock::new();
    let base = BASE.get_or_init(|| packed_octets(ifma, &Affine::BASE));
    let products = ifma.multiply_both([base, entries], pairs).into_iter().zip(pairs);
    let or_other_method = |(product, (a, b)): (Option<Jacobian>, &(Scalar, Scalar))| {
        product.unwrap_or_else(|| double_multiply_public(a, &Affine::BASE, b, point))
    };
    products.map(or_other_method).collect()
}
