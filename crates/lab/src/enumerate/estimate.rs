//! Estimates the number of names of a zone from the distances between hashes in its chain.
//!
//! Hashes are uniformly distributed. The span that covers the hash of a random name in an uncovered
//! part `U` of all hashes, which has M unknown spans, is a span drawn with a probability in
//! proportion to its length: M·span/U has approximately the gamma distribution with shape 2. With
//! known records, M is the number of names N minus the number of known records. The estimate
//! maximizes the likelihood of all samples: the sum of 2/(N − knownᵢ) equals the sum of spanᵢ/Uᵢ.

/// A random sample of the spans of a chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Number of records that were known before.
    pub known: u64,
    /// Share of all hashes that no known record covered.
    pub uncovered: f64,
    /// The span of the sample, as a share of all hashes.
    pub span: f64,
}

/// An estimated number of names.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// The number of names with a record in the chain.
    pub names: f64,
    /// The standard error; 0 if the chain is complete.
    pub standard_error: f64,
}

impl Estimate {
    /// The exact number of names of a complete chain.
    #[must_use]
    pub const fn exact(names: usize) -> Self {
        Self { names: names as f64, standard_error: 0.0 }
    }
}

/// Estimates the number of names, at least `known`. `None` without a sample.
#[must_use]
pub(super) fn estimate(samples: &[Sample], known: u64) -> Option<Estimate> {
    let usable = samples.iter().filter(|sample| sample.uncovered > 0.0 && sample.span > 0.0);
    let usable: Vec<Sample> = usable.copied().collect();
    let last_known = usable.iter().map(|sample| sample.known).max()?;
    let distances: f64 = usable.iter().map(|sample| (sample.span / sample.uncovered).min(1.0)).sum();
    let excess =
        |names: f64| usable.iter().map(|sample| 2.0 / (names - sample.known as f64)).sum::<f64>() - distances;
    // The sum falls with the number of names: from infinity at the largest number of known records,
    // to zero.
    let (mut low, mut high) = (last_known as f64, last_known as f64 + 1.0);
    while excess(high) > 0.0 && high < 1e18 {
        high = last_known as f64 + (high - last_known as f64) * 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if excess(middle) > 0.0 { low = middle } else { high = middle }
    }
    let names = high.max(known as f64);
    let information: f64 =
        usable.iter().map(|sample| 2.0 / (names - sample.known as f64).max(1.0).powi(2)).sum();
    Some(Estimate { names, standard_error: (1.0 / information).sqrt() })
}

/// Estimates the number of names from spans drawn with replacement, as for NSEC5, where the hash of a
/// name is not known before the query: the sum of the spans, times the number of names, has the gamma
/// distribution with shape 2 for each span. `None` without a span.
#[must_use]
pub(super) fn estimate_with_replacement(spans: &[f64]) -> Option<Estimate> {
    let sum: f64 = spans.iter().sum();
    let shape = 2.0 * spans.len() as f64;
    // With one name, each span is the whole.
    if spans.is_empty() || sum <= 0.0 {
        return None;
    }
    if spans.iter().all(|span| *span >= 1.0) {
        return Some(Estimate::exact(1));
    }
    let names = ((shape - 1.0) / sum).max(1.0);
    Some(Estimate { names, standard_error: names / (shape - 2.0).max(1.0).sqrt() })
}

#[cfg(test)]
mod tests {
    use super::super::hash_chain::{ChainRecord, HashChain};
    use super::*;
    use rand::{RngCore as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    /// The sorted hashes of a chain of `count` names.
    fn hashes(count: usize, random: &mut ChaCha8Rng) -> Vec<[u8; 8]> {
        let mut hashes: Vec<[u8; 8]> = (0..count).map(|_| random.next_u64().to_be_bytes()).collect();
        hashes.sort_unstable();
        hashes
    }

    fn covering(hashes: &[[u8; 8]], hash: [u8; 8]) -> ([u8; 8], [u8; 8]) {
        let after = hashes.partition_point(|owner| *owner <= hash);
        (hashes[(after + hashes.len() - 1) % hashes.len()], hashes[after % hashes.len()])
    }

    /// Collects `queries` random records of a chain.
    fn collected(count: usize, queries: usize, seed: u64) -> HashChain<8> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let hashes = hashes(count, &mut random);
        let mut chain = HashChain::<8>::default();
        while chain.len() < queries {
            let hash = random.next_u64().to_be_bytes();
            if !chain.is_known(&hash) {
                let (owner, next) = covering(&hashes, hash);
                chain.insert_sample(owner, ChainRecord { next, opt_out: false, types: Vec::new() });
            }
        }
        chain
    }

    #[test]
    fn the_number_of_names_is_within_the_error() {
        for (count, queries) in [(1000, 30), (1000, 600), (1000, 990), (50, 20), (100_000, 100)] {
            // Of 20 estimates, about 19 should be within two standard errors.
            let within = (0..20).filter(|seed| {
                let chain = collected(count, queries, *seed);
                let estimate = estimate(chain.samples(), chain.len() as u64).expect("an estimate");
                (estimate.names - count as f64).abs() <= 2.0 * estimate.standard_error + 1.0
            });
            let within = within.count();
            assert!(within >= 15, "{count} names, {queries} queries: {within} of 20");
        }
    }

    #[test]
    fn spans_with_replacement_give_an_estimate() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let hashes = hashes(5000, &mut random);
        let spans: Vec<f64> = (0..400)
            .map(|_| covering(&hashes, random.next_u64().to_be_bytes()))
            .map(|(owner, next)| super::super::hash_chain::span_share(&owner, &next))
            .collect();
        let estimate = estimate_with_replacement(&spans).expect("an estimate");
        assert!((estimate.names - 5000.0).abs() < 4.0 * estimate.standard_error, "{estimate:?}");
        assert_eq!(estimate_with_replacement(&[]), None);
        assert_eq!(estimate_with_replacement(&[1.0, 1.0]), Some(Estimate::exact(1)));
    }

    #[test]
    fn nothing_is_estimated_from_nothing() {
        assert_eq!(estimate(&[], 0), None);
        assert_eq!(estimate(&[Sample { known: 0, uncovered: 1.0, span: 0.0 }], 1), None);
    }
}
