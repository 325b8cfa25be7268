//! Search for the highest rate that a server answers without loss: the rate doubles until a step
//! fails, then bisection finds the limit.

use serde::Serialize;

use super::{LoadError, LoadOptions, LoadReport, RATE_MAX, run};
use crate::conditions::Limit;

/// Ratio of the lowest failed rate to the highest passed rate at which the search ends.
const PRECISION: f64 = 1.05;
/// Minimum rate in queries per second.
const RATE_MIN: f64 = 1.0;
/// Minimum ratio of the rate of responses to the rate of queries. Below it, the server or the
/// generator is too slow, even if all queries are answered before their timeout.
pub(super) const RESPONSE_RATIO_MIN: f64 = 0.98;

/// Options of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RampOptions {
    /// Rate of the first step, in queries per second, from 1 to 10,000,000.
    pub start_rate: f64,
    /// Maximum share of lost queries of a step that passes: at least 0 and less than 1.
    pub max_loss: f64,
    /// Duration of each step after its warm-up, in seconds.
    pub step_seconds: f64,
}

/// Result of a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RampStep {
    /// Rate of the queries, in queries per second.
    pub rate: f64,
    /// Responses per second.
    pub qps: f64,
    /// Share of the due queries that were not answered before the timeout.
    pub lost_share: f64,
    /// Median latency in µs; `None` without responses.
    pub latency_p50_us: Option<f64>,
    /// 99th percentile of the latency in µs; `None` without responses.
    pub latency_p99_us: Option<f64>,
    /// CPU time of the generator for each query, in µs.
    pub client_cpu_us_per_query: Option<f64>,
    /// Share of the CPU time of all CPUs that others used, as in [`LoadReport::others_cpu`].
    pub others_cpu: Option<f64>,
    /// What limited the load, as in [`LoadReport::limited_by`].
    pub limited_by: Option<Limit>,
    /// Whether `lost_share` is small enough and `qps` is at least 98 % of the rate.
    pub passed: bool,
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ramp {
    /// Highest rate that passed, in queries per second; `None` if not even one query per second
    /// did.
    pub rate: Option<f64>,
    /// The steps in their order.
    pub steps: Vec<RampStep>,
}

/// Searches for the highest rate with a share of at most `ramp.max_loss` lost queries. The result
/// is at most 5 % below the exact limit. `options.rate` and `options.seconds` are not used. Calls
/// `report` after each step.
///
/// # Errors
/// [`LoadError::Misconfigured`] if an option is invalid, and the errors of [`run`].
pub fn ramp(
    options: &LoadOptions,
    ramp: &RampOptions,
    mut report: impl FnMut(&RampStep),
) -> Result<Ramp, LoadError> {
    ramp.check()?;
    let mut steps = Vec::new();
    let rate = search(ramp.start_rate, |rate| {
        let step = LoadOptions { rate: Some(rate), seconds: ramp.step_seconds, ..options.clone() };
        let step = RampStep::new(rate, &run(&step)?, ramp.max_loss);
        report(&step);
        let passed = step.passed;
        steps.push(step);
        Ok::<_, LoadError>(passed)
    })?;
    Ok(Ramp { rate, steps })
}

impl RampOptions {
    fn check(&self) -> Result<(), LoadError> {
        let rules = [
            ((RATE_MIN..=RATE_MAX).contains(&self.start_rate), "--rate", "1 to 10000000 with --ramp"),
            ((0.0..1.0).contains(&self.max_loss), "--ramp-loss", "at least 0 and less than 100 %"),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, option, wanted)) => Err(LoadError::Misconfigured { option, wanted }),
            None => Ok(()),
        }
    }
}

impl RampStep {
    fn new(rate: f64, report: &LoadReport, max_loss: f64) -> Self {
        let due = report.sent + report.unsent;
        let lost_share = if due == 0 { 1.0 } else { (due - report.received) as f64 / due as f64 };
        Self {
            rate,
            qps: report.qps,
            lost_share,
            latency_p50_us: report.latency_us.map(|latency| latency.p50),
            latency_p99_us: report.latency_us.map(|latency| latency.p99),
            client_cpu_us_per_query: report.client_cpu_us_per_query,
            others_cpu: report.others_cpu,
            limited_by: report.limited_by,
            passed: lost_share <= max_loss && report.qps >= RESPONSE_RATIO_MIN * rate * (1.0 - max_loss),
        }
    }
}

/// Returns the highest rate that passes, to [`PRECISION`], from [`RATE_MIN`] to [`RATE_MAX`].
fn search<E>(start: f64, mut passes: impl FnMut(f64) -> Result<bool, E>) -> Result<Option<f64>, E> {
    let (mut low, mut high) = (None, None);
    let mut rate = start;
    while low.is_none() || high.is_none() {
        if passes(rate)? {
            low = Some(rate);
            if rate >= RATE_MAX {
                return Ok(low);
            }
            rate = (rate * 2.0).min(RATE_MAX);
        } else {
            high = Some(rate);
            if rate <= RATE_MIN {
                return Ok(None);
            }
            rate = (rate / 2.0).max(RATE_MIN);
        }
    }
    let (Some(mut low), Some(mut high)) = (low, high) else { return Ok(low) };
    while high > low * PRECISION {
        let middle = f64::midpoint(low, high);
        if passes(middle)? { low = middle } else { high = middle }
    }
    Ok(Some(low))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{options, start_limited};
    use super::*;
    use std::convert::Infallible;
    use std::time::Duration;

    #[test]
    fn the_limit_is_found_to_five_per_cent() {
        for limit in [1.0, 3.0, 999.0, 1000.0, 1001.0, 270_000.0, 9_999_999.0] {
            let mut count = 0;
            let found = search(1000.0, |rate| {
                count += 1;
                Ok::<_, Infallible>(rate <= limit)
            });
            let Ok(Some(found)) = found else { panic!("nothing found for {limit}") };
            assert!(found <= limit && found * PRECISION * PRECISION > limit, "{limit}: {found}");
            assert!(count < 30, "{limit}: {count} steps");
        }
        assert_eq!(search(1000.0, |_| Ok::<_, Infallible>(false)), Ok(None));
        assert_eq!(search(1000.0, |_| Ok::<_, Infallible>(true)), Ok(Some(RATE_MAX)));
    }

    #[test]
    fn a_server_that_answers_some_queries_has_no_rate_without_loss() {
        let (server, address) = start_limited(10);
        let mut options = options(address, "example A", 1);
        // A response that is late because the machine is busy would let a slower step pass.
        (options.limit, options.timeout) = (None, Duration::from_millis(500));
        let settings = RampOptions { start_rate: 16.0, max_loss: 0.001, step_seconds: 0.2 };
        let mut rates = Vec::new();
        let ramp = ramp(&options, &settings, |step| rates.push(step.rate)).expect("ran");
        server.stop().expect("stopped");
        assert_eq!(ramp.steps.len(), rates.len());
        // The server answers ten queries. The steps that pass come first.
        let failed = ramp.steps.iter().position(|step| !step.passed).expect("a step fails");
        assert!(ramp.steps[..failed].iter().all(|step| step.lost_share <= 0.001));
        assert!(ramp.steps[failed..].iter().all(|step| !step.passed));
        assert_eq!(ramp.rate, ramp.steps[..failed].last().map(|step| step.rate));
    }

    #[test]
    fn a_step_states_its_conditions() {
        let report = LoadReport {
            sent: 99,
            unsent: 1,
            received: 98,
            qps: 98.0,
            others_cpu: Some(0.25),
            limited_by: Some(Limit::Server),
            ..LoadReport::default()
        };
        let step = RampStep::new(100.0, &report, 0.02);
        assert_eq!((step.lost_share, step.passed), (0.02, true));
        assert_eq!((step.others_cpu, step.limited_by), (Some(0.25), Some(Limit::Server)));
    }

    #[test]
    fn senseless_options_are_refused() {
        let options = options(([127, 0, 0, 1], 53).into(), "example A", 1);
        let good = RampOptions { start_rate: 1000.0, max_loss: 0.001, step_seconds: 1.0 };
        for (bad, name) in [
            (RampOptions { start_rate: 0.5, ..good }, "--rate"),
            (RampOptions { max_loss: 1.0, ..good }, "--ramp-loss"),
            (RampOptions { step_seconds: 0.0, ..good }, "--seconds"),
        ] {
            let error = ramp(&options, &bad, |_| ()).expect_err("refused");
            assert!(matches!(error, LoadError::Misconfigured { option, .. } if option == name), "{error}");
        }
    }
}
