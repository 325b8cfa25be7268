//! The order in which the queries of a list are sent.

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::{LoadOptions, QueryList};
use crate::zipf::Zipf;

/// Number of queries in each group that a closed loop sorts by length.
pub(crate) const SORT_GROUP: usize = 1024;
/// Minimum and maximum number of queries that are drawn with Zipf's law. The load then repeats
/// them.
const DRAWS_MIN: usize = 1 << 20;
const DRAWS_MAX: usize = 1 << 24;

/// Returns the order in which the queries are sent, as indices into the list; `None` for the order
/// of the list.
///
/// With a Zipf exponent, the queries are drawn at random. A closed loop sorts each group of
/// [`SORT_GROUP`] queries by length. The kernel can send neighbouring queries of the same length
/// together (`UDP_SEGMENT`). A closed loop sends in bursts, and the order within a burst does not
/// matter. An open loop keeps the order, because each query has its own send time.
pub(super) fn send_order(options: &LoadOptions) -> Option<Vec<u32>> {
    let count = u32::try_from(options.queries.len()).ok()?;
    let mut order = match options.zipf {
        Some(exponent) => draw_zipf(count, exponent, options.seed),
        None if options.rate.is_some() => return None,
        None => (0..count).collect(),
    };
    if options.rate.is_none() {
        sort_by_length(&options.queries, &mut order);
    }
    Some(order)
}

fn sort_by_length(queries: &QueryList, order: &mut [u32]) {
    let length = |number: &u32| queries.question(*number as usize).map_or(0, <[u8]>::len);
    order.chunks_mut(SORT_GROUP).for_each(|group| group.sort_by_key(length));
}

/// Draws indices below `count` with Zipf's law: index `i` has the weight `(i + 1)^-exponent`.
fn draw_zipf(count: u32, exponent: f64, seed: u64) -> Vec<u32> {
    let zipf = Zipf::new(count.into(), exponent);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    // Schedules use the streams from 0 upwards, random labels those from the end downwards.
    random.set_stream(u64::MAX / 2);
    let draws = (count as usize).saturating_mul(4).clamp(DRAWS_MIN, DRAWS_MAX);
    (0..draws).map(|_| zipf.draw(&mut random) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_exponent_and_the_seed() {
        for exponent in [0.0, 0.7, 1.0, 2.0] {
            let draws = draw_zipf(100, exponent, 1);
            let mut counts = [0u32; 100];
            draws.iter().for_each(|index| counts[*index as usize] += 1);
            let total: f64 = (1..=100).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for rank in [1, 2, 10, 100] {
                let expected = f64::from(rank).powf(-exponent) / total;
                let found = f64::from(counts[rank as usize - 1]) / draws.len() as f64;
                // Five standard deviations.
                let allowed = 5.0 * (expected / draws.len() as f64).sqrt();
                assert!((found - expected).abs() < allowed, "{exponent}, {rank}: {found}, {expected}");
            }
        }
        assert_eq!(draw_zipf(50, 1.0, 7), draw_zipf(50, 1.0, 7));
        assert_ne!(draw_zipf(50, 1.0, 7), draw_zipf(50, 1.0, 8));
        assert_eq!(draw_zipf(1, 1.0, 7), vec![0; DRAWS_MIN]);
    }
}
