//! Tables of a point's multiples with which a multiplication is 31 additions and no doubling, for public values.

use std::sync::OnceLock;

use super::field::Field;
use super::point::{Affine, Jacobian};
use super::scalar::Scalar;
use super::sum::{add_different, sum_any};

/// Windows of a scalar, each an octet of its recoded form.
const WINDOWS: usize = 32;

/// Bits of a window.
const WIDTH: usize = 8;

/// Entries for one window: the odd multiples up to 255, each of which serves for its negation too.
const ENTRIES: usize = 1 << (WIDTH - 1);

/// Odd multiples of a point P of prime order: for window w, entry e holds (2e + 1)·2⁸ʷ·P. 256 KiB.
pub(crate) struct Table(Vec<Affine>);

impl Table {
    /// Makes the table: as much work as about twenty verifications of a signature in aws-lc.
    pub(crate) fn new(point: &Affine) -> Self {
        let powers = powers_of_two(point);
        let mut entries: Vec<Affine> = powers.iter().step_by(WIDTH).copied().collect();
        let (mut others, mut products) = (Vec::new(), Vec::new());
        // Twice as many in each round: (2e + 1 + 2m)·P for the m entries that there are.
        for round in 1..WIDTH {
            let known = 1 << (round - 1);
            others.clear();
            others.extend(
                powers.iter().skip(round).step_by(WIDTH).flat_map(|power| (0..known).map(|_| *power)),
            );
            let mut sums = entries.clone();
            // No two are equal or opposite: their factors differ by less than the order, which is prime.
            let different = add_different(&mut sums, &others, &mut products);
            debug_assert!(different, "a point of another order");
            entries = entries
                .chunks_exact(known)
                .zip(sums.chunks_exact(known))
                .flat_map(|(a, b)| [a, b].concat())
                .collect();
        }
        Self(entries)
    }

    /// The table of the base point, made when it is first used.
    pub(crate) fn base() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| Self::new(&Affine::BASE))
    }

    /// Appends, for each window, what it adds to the multiple by each of the `scalars`, in order.
    fn push_terms(&self, scalars: &[[u8; WINDOWS]], terms: &mut Vec<Affine>) {
        for (window, entries) in self.0.chunks_exact(ENTRIES).enumerate() {
            terms.extend(scalars.iter().map(|octets| {
                let octet = octets[window];
                // Octet v stands for 2v − 255.
                let is_negative = octet < ENTRIES as u8;
                let entry = if is_negative { ENTRIES as u8 - 1 - octet } else { octet - ENTRIES as u8 };
                let entry = &entries[usize::from(entry)];
                entry.negate_if(u8::from(is_negative).into())
            }));
        }
    }
}

/// 2ⁱ·P for i below 256.
fn powers_of_two(point: &Affine) -> Vec<Affine> {
    let next = |power: &Jacobian| Some(power.double());
    let powers: Vec<_> = std::iter::successors(Some((*point).into()), next).take(WINDOWS * WIDTH).collect();
    Jacobian::normalize_all(&powers)
}

/// Room for the work of [`multiply_both`], to be used again.
#[derive(Default)]
pub(crate) struct Workspace {
    terms: Vec<Affine>,
    products: Vec<Field>,
    octets: Vec<[u8; WINDOWS]>,
}

/// a·B + b·P for each pair of scalars, with the base point B and the point P of the table; [`Affine::INFINITY`] for
/// infinity.
pub(crate) fn multiply_both<'w>(
    table: &Table,
    pairs: &[(Scalar, Scalar)],
    workspace: &'w mut Workspace,
) -> &'w [Affine] {
    let Workspace { terms, products, octets } = workspace;
    terms.clear();
    octets.clear();
    octets.extend(pairs.iter().map(|(a, _)| a.recode_octets()));
    Table::base().push_terms(octets, terms);
    octets.clear();
    octets.extend(pairs.iter().map(|(_, b)| b.recode_octets()));
    table.push_terms(octets, terms);
    sum_any(terms, pairs.len(), products);
    &terms[..pairs.len()]
}
