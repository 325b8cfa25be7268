//! `nonesuch load --replay`.

use super::{CLOSED_LOOP_QUERIES, Failure, OPEN_LOOP_QUERIES};
use crate::arguments::LoadArguments;
use nonesuch_lab::capture::{CaptureOptions, CaptureReader};
use nonesuch_lab::load::{
    LoadOptions, LoadReport, QueryList, ReplayError, ReplayQueries, ReplaySpeed, replay,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Replays the queries of the capture at `path`.
pub(super) fn run(arguments: &LoadArguments, path: &Path) -> Result<LoadReport, Failure> {
    let reader = CaptureReader::open(path, &CaptureOptions::default()).map_err(ReplayError::from)?;
    let queries = ReplayQueries::read(path, reader)?;
    for (reason, count) in queries.skipped().iter() {
        tracing::warn!(name: "capture-skipped", "{}: skipped: {} {count}", path.display(), reason.name());
    }
    Ok(replay(&options(arguments, &queries), &queries, arguments.replay.speed)?)
}

fn options(arguments: &LoadArguments, queries: &ReplayQueries) -> LoadOptions {
    let sockets = arguments.replay.clients;
    let outstanding = match arguments.replay.speed {
        ReplaySpeed::Max => CLOSED_LOOP_QUERIES,
        ReplaySpeed::Scaled(_) => sockets.min(queries.clients().len()).saturating_mul(OPEN_LOOP_QUERIES),
    };
    LoadOptions {
        sockets,
        outstanding: arguments.outstanding.unwrap_or(outstanding),
        sources: arguments.source,
        limit: arguments.limit,
        spin: !arguments.sleep,
        timeout: Duration::try_from_secs_f64(arguments.timeout).unwrap_or(Duration::MAX),
        server_pid: arguments.server_pid,
        cpus: (!arguments.cpus.is_empty()).then(|| arguments.cpus.clone()),
        ..LoadOptions::new(arguments.server, Arc::new(QueryList::default()))
    }
}
