//! `nonesuch plan predict`.

use super::Failure;
use super::report::{Output, read_recordings, record, show};
use crate::arguments::{PlanPredictArguments, RatesArgument};
use crate::outcome::{COMMIT, CommandOutcome};
use crate::progress;
use nonesuch_lab::cost_model::{
    GivenLoad, HomeRouterOptions, PredictOptions, Rate, measured, predict, published, read_ranking,
    read_rates,
};
use std::thread;

/// Name of the results in the output directory.
const JSON_FILE: &str = "predict.json";
/// Seed of the messages whose signatures are verified.
const SEED: u64 = 1;

pub(super) fn run(arguments: &PlanPredictArguments) -> Result<CommandOutcome, Failure> {
    let recordings = read_recordings(&arguments.recordings)?;
    let ranking = arguments.ranking.as_deref().map(read_ranking).transpose()?;
    let rates = rates(arguments)?;
    let cpus =
        || thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX));
    let prediction = predict(&PredictOptions {
        recordings: &recordings,
        load: GivenLoad {
            validations: arguments.validations,
            queries: arguments.queries,
            signed_share: arguments.signed_share,
        },
        rates: &rates,
        cores: arguments.cores.unwrap_or_else(cpus),
        home_router: HomeRouterOptions {
            cache_hit_rate: arguments.cache_hit_rate,
            queries_per_miss: arguments.queries_per_miss,
        },
        current_algorithm: arguments.current_algorithm,
        dnskey_share: arguments.dnskey_share,
        ranking: ranking.as_deref(),
        intervals: arguments.intervals.intervals,
    })?;
    let output = Output {
        json_file: JSON_FILE,
        json: serde_json::json!(prediction),
        text: prediction.text(),
        page: &|record| prediction.page(record),
    };
    show(&arguments.output, &record(&arguments.output, SEED)?, output)
}

/// Returns the rates of all sources, those of each source once.
fn rates(arguments: &PlanPredictArguments) -> Result<Vec<Rate>, Failure> {
    let mut rates = Vec::new();
    for (place, source) in arguments.rates.iter().enumerate() {
        if arguments.rates[..place].contains(source) {
            continue;
        }
        rates.extend(match source {
            RatesArgument::Published => published(),
            RatesArgument::File(path) => read_rates(path)?,
            RatesArgument::Measured => {
                let line = progress::spinner("measuring verification rates");
                let rates = measured(arguments.seconds, SEED, COMMIT)?;
                line.finish_and_clear();
                rates
            }
        });
    }
    Ok(rates)
}
