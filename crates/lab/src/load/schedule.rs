//! Schedule of an open loop. Rate and seed alone determine when each query is due. Neither a slow
//! server nor a late generator changes the schedule. Latency is measured from the due time. Thus it
//! includes all waiting, and coordinated omission does not occur.

use rand::Rng as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

const NS_PER_SECOND: f64 = 1e9;

/// Distribution of the send times of queries with a fixed rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Arrivals {
    /// Equal intervals.
    #[default]
    Even,
    /// A Poisson process, like the queries of many independent clients: the intervals are
    /// exponentially distributed.
    Poisson,
}

impl Arrivals {
    /// All distributions.
    pub const ALL: [Self; 2] = [Self::Even, Self::Poisson];

    /// Returns the name of the distribution on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Poisson => "poisson",
        }
    }
}

impl std::str::FromStr for Arrivals {
    type Err = ArrivalsError;

    fn from_str(text: &str) -> Result<Self, ArrivalsError> {
        Self::ALL.into_iter().find(|arrivals| arrivals.name() == text).ok_or(ArrivalsError)
    }
}

/// The text is not the name of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected even or poisson")]
pub struct ArrivalsError;

/// Index of a thread, and number of threads that share a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadShare {
    pub(super) thread: usize,
    pub(super) threads: usize,
}

/// Schedule of one of the threads that share a rate.
#[derive(Debug)]
pub(super) struct Schedule {
    /// Mean interval between the queries of this thread, in ns.
    interval_ns: f64,
    /// Due time of the next query, in ns since the start.
    due: f64,
    /// Number of the next query, starting at 0.
    number: u64,
    /// Due time of this thread's first query, as a share of the interval.
    phase: f64,
    /// Generator of random intervals; `None` for equal intervals.
    random: Option<ChaCha8Rng>,
}

impl Schedule {
    /// Creates one thread's part of a schedule of `rate` queries per second of all threads
    /// together.
    pub(super) fn new(arrivals: Arrivals, rate: f64, share: ThreadShare, seed: u64) -> Self {
        let ThreadShare { thread, threads } = share;
        let interval_ns = NS_PER_SECOND * threads as f64 / rate;
        let random = (arrivals == Arrivals::Poisson).then(|| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            // Each thread uses its own random stream. The sum of independent Poisson processes is a
            // Poisson process.
            random.set_stream(thread as u64);
            random
        });
        // With equal intervals, the queries of the threads alternate.
        let phase = thread as f64 / threads as f64;
        let mut schedule = Self { interval_ns, due: phase * interval_ns, number: 0, phase, random };
        if schedule.random.is_some() {
            schedule.due = schedule.draw_interval();
        }
        schedule
    }

    /// Returns the due time of the next query, in ns since the start.
    pub(super) fn due(&self) -> u64 {
        self.due as u64
    }

    /// Advances to the next query.
    pub(super) fn advance(&mut self) {
        self.number += 1;
        if self.random.is_some() {
            self.due += self.draw_interval();
        } else {
            // A multiplication for each query: a sum of 10^8 intervals would accumulate rounding
            // errors.
            self.due = (self.number as f64 + self.phase) * self.interval_ns;
        }
    }

    /// Returns a random, exponentially distributed interval.
    fn draw_interval(&mut self) -> f64 {
        let uniform: f64 = self.random.as_mut().map_or(0.0, |random| random.random());
        // `uniform` is less than 1.
        -self.interval_ns * (-uniform).ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(schedule: &mut Schedule, count: usize) -> Vec<u64> {
        let step = |_| {
            let due = schedule.due();
            schedule.advance();
            due
        };
        (0..count).map(step).collect()
    }

    #[test]
    fn even_queries_of_all_threads_interlock() {
        let mut all: Vec<u64> = (0..4)
            .flat_map(|index| {
                times(
                    &mut Schedule::new(Arrivals::Even, 1000.0, ThreadShare { thread: index, threads: 4 }, 1),
                    250,
                )
            })
            .collect();
        all.sort_unstable();
        let expected: Vec<u64> = (0..1000).map(|number| number * 1_000_000).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn even_queries_do_not_drift() {
        // The interval at this rate has no exact floating-point representation.
        let mut schedule = Schedule::new(Arrivals::Even, 300_000.0, ThreadShare { thread: 0, threads: 1 }, 1);
        times(&mut schedule, 3_000_000);
        assert_eq!(schedule.due(), 10_000_000_000);
    }

    #[test]
    fn random_queries_keep_the_rate_and_spread_as_they_should() {
        let count = 200_000;
        let due = times(
            &mut Schedule::new(Arrivals::Poisson, 1e6, ThreadShare { thread: 0, threads: 1 }, 7),
            count,
        );
        assert!(due.is_sorted());
        let mean = *due.last().expect("some") as f64 / count as f64;
        assert!((mean - 1000.0).abs() < 10.0, "{mean}");
        // For exponentially distributed intervals, a share of 1 / e exceeds the mean, and a share
        // of 1 / e² exceeds twice the mean.
        for (times, share) in [(1.0, 0.367_88), (2.0, 0.135_34)] {
            let longer = due.windows(2).filter(|pair| (pair[1] - pair[0]) as f64 > times * 1000.0).count();
            assert!((longer as f64 / count as f64 - share).abs() < 0.01, "{longer} over {times} times");
        }
    }

    #[test]
    fn a_seed_fixes_the_schedule_and_threads_differ() {
        let of = |index, seed| {
            times(
                &mut Schedule::new(Arrivals::Poisson, 1e3, ThreadShare { thread: index, threads: 2 }, seed),
                50,
            )
        };
        assert_eq!(of(0, 5), of(0, 5));
        assert_ne!(of(0, 5), of(1, 5));
        assert_ne!(of(0, 5), of(0, 6));
    }

    #[test]
    fn names_are_read_back() {
        for arrivals in Arrivals::ALL {
            assert_eq!(arrivals.name().parse(), Ok(arrivals));
        }
        assert_eq!("bursts".parse::<Arrivals>(), Err(ArrivalsError));
    }
}
