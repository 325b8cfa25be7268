//! `nonesuch load --replay`.

use super::{DEFAULT_OUTSTANDING_CLOSED_LOOP, DEFAULT_OUTSTANDING_PER_SOCKET, Failure};
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
    Ok(replay(&replay_options(arguments, &queries), &queries, arguments.replay.speed)?)
}

fn replay_options(arguments: &LoadArguments, queries: &ReplayQueries) -> LoadOptions {
    let sockets = arguments.replay.clients;
    let outstanding = match arguments.replay.speed {
        ReplaySpeed::Max => DEFAULT_OUTSTANDING_CLOSED_LOOP,
        ReplaySpeed::Scaled(_) => {
            sockets.min(queries.clients().len()).saturating_mul(DEFAULT_OUTSTANDING_PER_SOCKET)
        }
    };
    LoadOptions {
        sockets,
        outstanding: arguments.outstanding.unwrap_or(outstanding),
        sources: arguments.source,
        limit: arguments.limit,
        may_poll: !arguments.sleep,
        timeout: Duration::try_from_secs_f64(arguments.timeout).unwrap_or(Duration::MAX),
        server_pid: arguments.server_pid,
        cpus: (!arguments.cpus.is_empty()).then(|| arguments.cpus.clone()),
        ..LoadOptions::new(arguments.server, Arc::new(QueryList::default()))
    }
}
