//! Zipf's law.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

/// A distribution of the numbers below a limit: the number `n` has the weight `(n + 1)^-exponent`.
#[derive(Debug)]
pub(crate) struct Zipf {
    /// Sum of the weights of all numbers up to each.
    sums: Vec<f64>,
}

impl Zipf {
    pub(crate) fn new(limit: u64, exponent: f64) -> Self {
        let mut sum = 0.0;
        let sums = (0..limit).map(|number| {
            sum += ((number + 1) as f64).powf(-exponent);
            sum
        });
        Self { sums: sums.collect() }
    }

    pub(crate) fn draw(&self, random: &mut ChaCha8Rng) -> u64 {
        let target = random.random::<f64>() * self.sums.last().copied().unwrap_or(0.0);
        // Rounding may place the target after the last sum.
        self.sums.partition_point(|sum| *sum <= target).min(self.sums.len().saturating_sub(1)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;
    use std::collections::BTreeMap;

    #[test]
    fn the_first_number_is_the_most_frequent() {
        let (zipf, mut random) = (Zipf::new(1000, 1.0), ChaCha8Rng::seed_from_u64(1));
        let mut counts = BTreeMap::new();
        (0..10_000).for_each(|_| *counts.entry(zipf.draw(&mut random)).or_insert(0) += 1);
        // 1 / H(1000) = 13.4 %, and half of it.
        assert!((1200..1500).contains(&counts[&0]), "{}", counts[&0]);
        assert!((580..780).contains(&counts[&1]), "{}", counts[&1]);
        assert!(counts.keys().all(|number| *number < 1000));
    }
}
