//! Simulated recordings with known parameters, for tests: of the fit, of the predictions, and of
//! programs that read recordings.

use super::{DomainCounts, Recording, VerificationSource, Window};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::f64::consts::TAU;

/// Residuals of the four lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Independent and normal, with equal variance.
    Independent,
    /// Each has the share `correlation` of the previous one, and a deviation that grows with the rate.
    Correlated {
        /// Autocorrelation at lag 1, from 0 to 1.
        correlation: f64,
    },
}

/// A simulation.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// Name of the recording.
    pub name: String,
    /// Number of windows.
    pub windows: usize,
    /// Length of a window, in seconds.
    pub window_seconds: u32,
    /// Mean of Q, in queries per second.
    pub queries: f64,
    /// r, α_s, s and α_v.
    pub slopes: [f64; 4],
    /// β1 to β4, in events per second.
    pub intercepts: [f64; 4],
    /// Standard deviation of the residuals, as a share of the mean of the line.
    pub deviation: f64,
    /// The residuals.
    pub noise: Noise,
    /// Seed of all random values.
    pub seed: u64,
}

impl Default for Simulation {
    /// A resolver with 2,000 queries a second, in 480 windows of a minute.
    fn default() -> Self {
        Self {
            name: "simulated".to_owned(),
            windows: 480,
            window_seconds: 60,
            queries: 2000.0,
            slopes: [0.97, 0.22, 1.4, 0.31],
            intercepts: [6.0, 3.0, 2.0, 1.5],
            deviation: 0.03,
            noise: Noise::Independent,
            seed: 1,
        }
    }
}

impl Simulation {
    /// Returns a and b of f.
    #[must_use]
    pub fn composed(&self) -> (f64, f64) {
        let ([r, alpha_s, s, alpha_v], [beta1, beta2, beta3, beta4]) = (self.slopes, self.intercepts);
        (alpha_v * s * alpha_s * r, alpha_v * (s * (alpha_s * beta1 + beta2) + beta3) + beta4)
    }

    /// Returns the recording. Q follows the time of day: its rate changes by half of its mean.
    #[must_use]
    pub fn recording(&self) -> Recording {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let means = self.means();
        let mut errors = [0.0; 4];
        let windows = (0..self.windows).map(|index| {
            let phase = TAU * index as f64 / self.windows.clamp(1, 240) as f64;
            let queries = self.queries * (1.0 + 0.5 * phase.sin() + 0.05 * normal(&mut random));
            let mut rates = [queries.max(0.0); 5];
            for line in 0..4 {
                errors[line] = self.error(errors[line], means[line], queries / self.queries, &mut random);
                rates[line + 1] = self.slopes[line] * rates[line] + self.intercepts[line] + errors[line];
            }
            self.window(index, rates)
        });
        Recording {
            name: self.name.clone(),
            verified_by: VerificationSource::Counters,
            windows: windows.collect(),
            domains: self.domains(),
        }
    }

    /// Returns the means of R, R_s, S and S_v.
    fn means(&self) -> [f64; 4] {
        let mut rate = self.queries;
        std::array::from_fn(|line| {
            rate = self.slopes[line] * rate + self.intercepts[line];
            rate
        })
    }

    fn error(&self, previous: f64, mean: f64, level: f64, random: &mut ChaCha8Rng) -> f64 {
        let deviation = self.deviation * mean;
        match self.noise {
            Noise::Independent => deviation * normal(random),
            Noise::Correlated { correlation } => {
                let size = deviation * (1.0 - correlation * correlation).sqrt();
                correlation * previous + size * level.max(0.0) * normal(random)
            }
        }
    }

    fn window(&self, index: usize, rates: [f64; 5]) -> Window {
        let seconds = f64::from(self.window_seconds);
        let [queries, responses, signed_responses, signatures, verified] =
            rates.map(|rate| (rate * seconds).round().max(0.0) as u64);
        let signed_responses = signed_responses.min(responses);
        Window {
            // 2026-01-01.
            start: 1_767_225_600_000_000 + index as u64 * u64::from(self.window_seconds) * 1_000_000,
            length: u64::from(self.window_seconds) * 1_000_000,
            queries,
            tcp_queries: queries / 200,
            responses,
            truncated: responses / 200,
            signed_responses,
            signatures: signatures.max(signed_responses),
            verified,
            response_octets: Some(responses * 180 + signatures * 110),
        }
    }

    /// Returns domains whose popularity is that of Zipf's law. Every fifth is signed.
    fn domains(&self) -> Vec<DomainCounts> {
        let domain = |rank: u64| {
            let name = format!("d{rank}.example.").parse().ok()?;
            Some(DomainCounts { domain: name, queries: 1_000_000 / rank, signed: rank.is_multiple_of(5) })
        };
        (1..=500).filter_map(domain).collect()
    }
}

/// Returns a standard normal value (Box and Muller).
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let (one, other): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - one).ln()).sqrt() * (TAU * other).cos()
}
