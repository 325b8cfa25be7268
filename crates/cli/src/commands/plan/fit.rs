//! `nonesuch plan fit`.

use super::Failure;
use super::report::{Output, read_recordings, record, show};
use crate::arguments::PlanFitArguments;
use crate::outcome::CommandOutcome;
use nonesuch_lab::cost_model::{FitOptions, fit};

/// Name of the results in the output directory.
const JSON_FILE: &str = "fit.json";

pub(super) fn run(arguments: &PlanFitArguments) -> Result<CommandOutcome, Failure> {
    let recordings = read_recordings(&arguments.recordings)?;
    let fits = fit(&recordings, &FitOptions { intervals: arguments.intervals.intervals })?;
    let output = Output {
        json_file: JSON_FILE,
        json: serde_json::json!(fits),
        text: fits.text(),
        page: &|record| fits.page(record),
    };
    show(&arguments.output, &record(&arguments.output, 0)?, output)
}
