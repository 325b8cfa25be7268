//! Incoming octets, and the share of responses that do not fit a UDP message, with another algorithm.

use super::rates::Sizes;
use crate::cost_model::{Recording, Window};
use serde::Serialize;

/// Octets of an RRSIG record without its signature: compressed owner, type, class, TTL, length
/// (RFC 1035, section 3.2.1) and fixed fields (RFC 4034, section 3.1), and a signer's name of 13
/// octets, such as `example.com.`.
const RRSIG_OCTETS: f64 = 2.0 + 10.0 + 18.0 + 13.0;
/// Octets of a DNSKEY record without its public key: compressed owner, type, class, TTL, length and the
/// fixed fields (RFC 4034, section 2.1).
const DNSKEY_OCTETS: f64 = 2.0 + 10.0 + 4.0;
/// Assumed number of keys in a response with the keys of a zone.
const KEYS: f64 = 2.0;
/// Octets of header, question and OPT record: the minimum that remains without signatures.
const MIN_OCTETS: f64 = 12.0 + 17.0 + 11.0;
/// Maximum octets of a response over UDP (DNS flag day 2020).
const UDP_OCTETS: f64 = 1232.0;

/// Sizes of the responses of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResponseSizes {
    /// Mean octets of a response.
    pub mean_octets: f64,
    /// Share of responses with signatures.
    pub signed_share: f64,
    /// Signatures in each response with signatures.
    pub signatures: f64,
    /// Share of responses that were truncated.
    pub truncated_share: f64,
    /// Mean octets of a response without signatures and keys.
    base_octets: f64,
    /// Share of the signed responses that have the keys of a zone.
    dnskey_share: f64,
}

/// Octets of the responses if all zones that are signed use one algorithm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OctetPrediction {
    /// Name of the algorithm.
    pub scheme: String,
    /// Sizes of signature and key.
    pub sizes: Sizes,
    /// With today's share of signed responses.
    pub today: Volume,
    /// If all responses are signed.
    pub all_signed: Volume,
}

/// Octets of the responses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Volume {
    /// Mean octets of a response.
    pub mean_octets: f64,
    /// Incoming octets of DNS messages at the peak, in bits per second.
    pub peak_bits_per_second: f64,
    /// Share of responses longer than 1232 octets.
    pub tcp_share: f64,
}

impl ResponseSizes {
    /// Returns the sizes of a recording, in which all signatures are assumed to have the sizes `today`.
    /// Returns `None` if the recording has no octets of responses.
    pub(super) fn of(recording: &Recording, today: Sizes, dnskey_share: f64) -> Option<Self> {
        let windows: Vec<(&Window, u64)> =
            recording.windows.iter().filter_map(|window| Some((window, window.response_octets?))).collect();
        let sum = |count: &dyn Fn(&Window) -> u64| {
            windows.iter().map(|(window, _)| count(window)).sum::<u64>() as f64
        };
        let octets = windows.iter().map(|(_, octets)| octets).sum::<u64>() as f64;
        let (responses, signed) = (sum(&|window| window.responses), sum(&|window| window.signed_responses));
        if responses == 0.0 || signed == 0.0 || octets == 0.0 {
            return None;
        }
        let sizes = Self {
            mean_octets: octets / responses,
            signed_share: signed / responses,
            signatures: sum(&|window| window.signatures) / signed,
            truncated_share: sum(&|window| window.truncated) / responses,
            base_octets: 0.0,
            dnskey_share,
        };
        let base_octets = sizes.mean_octets - sizes.signed_share * sizes.signed_octets(today);
        Some(Self { base_octets: base_octets.max(MIN_OCTETS), ..sizes })
    }

    /// Returns the mean octets that signatures and keys add to a signed response.
    fn signed_octets(&self, sizes: Sizes) -> f64 {
        let signatures = self.signatures * (RRSIG_OCTETS + f64::from(sizes.signature));
        signatures + self.dnskey_share * key_octets(sizes)
    }

    /// Returns the octets with another algorithm, for a peak in responses per second.
    pub(super) fn predict(&self, scheme: &str, sizes: Sizes, peak_responses: f64) -> OctetPrediction {
        let volume = |signed_share: f64| {
            let mean_octets = self.base_octets + signed_share * self.signed_octets(sizes);
            let peak_bits_per_second = mean_octets * 8.0 * peak_responses;
            Volume { mean_octets, peak_bits_per_second, tcp_share: signed_share * self.long_share(sizes) }
        };
        OctetPrediction {
            scheme: scheme.to_owned(),
            sizes,
            today: volume(self.signed_share),
            all_signed: volume(1.0),
        }
    }

    /// Returns the share of signed responses that are longer than 1232 octets. A signed response is
    /// assumed to have one signature and a further number with a Poisson distribution, and the mean
    /// octets without signatures.
    fn long_share(&self, sizes: Sizes) -> f64 {
        let signature = RRSIG_OCTETS + f64::from(sizes.signature);
        let fitting = |octets: f64| ((UDP_OCTETS - self.base_octets - octets) / signature).floor();
        let long = |octets: f64| 1.0 - poisson_at_most(self.signatures - 1.0, fitting(octets) - 1.0);
        (1.0 - self.dnskey_share) * long(0.0) + self.dnskey_share * long(key_octets(sizes))
    }
}

fn key_octets(sizes: Sizes) -> f64 {
    KEYS * (DNSKEY_OCTETS + f64::from(sizes.key))
}

/// Returns the probability that a Poisson value with this mean is at most `limit`.
fn poisson_at_most(mean: f64, limit: f64) -> f64 {
    if limit < 0.0 {
        return 0.0;
    }
    let (mut term, mut sum) = ((-mean.max(0.0)).exp(), 0.0);
    // More signatures than octets are not possible.
    for count in 0..=(limit.min(UDP_OCTETS) as u32) {
        sum += term;
        term *= mean.max(0.0) / f64::from(count + 1);
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_model::VerificationSource;

    const P256: Sizes = Sizes { signature: 64, key: 64 };
    const MLDSA: Sizes = Sizes { signature: 2420, key: 1312 };

    fn recording(octets: Option<u64>) -> Recording {
        let window = Window {
            length: 1_000_000,
            queries: 1000,
            responses: 1000,
            truncated: 10,
            signed_responses: 200,
            signatures: 300,
            response_octets: octets,
            ..Window::default()
        };
        Recording {
            name: "r".to_owned(),
            verified_by: VerificationSource::Counters,
            windows: vec![window; 3],
            domains: Vec::new(),
        }
    }

    #[test]
    fn todays_algorithm_keeps_the_mean() {
        let sizes = ResponseSizes::of(&recording(Some(250_000)), P256, 0.05).expect("sizes");
        assert_eq!((sizes.mean_octets, sizes.signed_share, sizes.signatures), (250.0, 0.2, 1.5));
        let same = sizes.predict("ECDSA P-256", P256, 1000.0);
        assert!((same.today.mean_octets - 250.0).abs() < 1e-9 && same.today.tcp_share < 1e-6);
        assert!((same.today.peak_bits_per_second - 2e6).abs() < 1e-6);
        assert!(same.all_signed.mean_octets > 300.0);
    }

    #[test]
    fn a_larger_signature_adds_its_octets_and_needs_tcp() {
        let sizes = ResponseSizes::of(&recording(Some(250_000)), P256, 0.05).expect("sizes");
        let large = sizes.predict("ML-DSA-44", MLDSA, 1000.0);
        let added = 0.2 * (1.5 * (2420.0 - 64.0) + 0.05 * 2.0 * (1312.0 - 64.0));
        assert!((large.today.mean_octets - 250.0 - added).abs() < 1e-9);
        // Each response with a signature is too long.
        assert!(
            (large.today.tcp_share - 0.2).abs() < 1e-12 && (large.all_signed.tcp_share - 1.0).abs() < 1e-12
        );
        // Falcon: one signature fits, two do not; with two keys, none does.
        let falcon = sizes.predict("Falcon-512", Sizes { signature: 666, key: 897 }, 1.0);
        let expected = 0.95 * (1.0 - (-0.5_f64).exp()) + 0.05;
        assert!((falcon.all_signed.tcp_share - expected).abs() < 1e-12, "{}", falcon.all_signed.tcp_share);
    }

    #[test]
    fn without_octets_there_are_no_sizes() {
        assert_eq!(ResponseSizes::of(&recording(None), P256, 0.05), None);
        assert!((poisson_at_most(1.0, 1.0) - 2.0 * (-1.0_f64).exp()).abs() < 1e-15);
        assert_eq!((poisson_at_most(0.0, 0.0), poisson_at_most(3.0, -1.0)), (1.0, 0.0));
    }
}
