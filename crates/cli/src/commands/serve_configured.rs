//! `nonesuch serve --config`: a server of many zones, as its configuration has it.
//!
//! Sockets are bound first, then privileges are dropped, then zones are read. Answering begins at once: with SERVFAIL for
//! zones that are not there yet.

use super::serve_node::{Node, Origin};
use super::serve_run::{Assembled, HarmlessSignals, stop};
use super::serve_settings::{connections, server_options, set_log};
use super::serve_socket::{ControlSocket, Owner};
use super::serve_system::{Account, abort_on_panic, drop_privileges, raise_open_files};
use super::serve_words::announce_zones;
use crate::Outcome;
use crate::config::{self, Configuration, Effect, Eyes, Problems, Sources};
use crate::error::Failure;
use crate::logging;
use crate::metrics::{self, MetricsServer};
use nonesuch_authoritative::server::Bound;
use nonesuch_net::tls::IdentitySlot;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

pub(super) fn run(path: &Path, is_json: bool) -> Result<Outcome, Failure> {
    let harmless = HarmlessSignals::install()?;
    let read = config::load(path)?;
    for warning in &read.warnings {
        tracing::warn!("{warning}");
    }
    serve(harmless, read.configuration, &read.sources, path, is_json)
}

fn serve(
    harmless: HarmlessSignals,
    configuration: Configuration,
    sources: &Sources,
    path: &Path,
    is_json: bool,
) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    set_log(&configuration);
    abort_on_panic();
    let mut problems = config::check_start(&configuration, sources);
    problems.extend(config::check_runtime(sources));
    if !problems.is_empty() {
        return Err(Problems(problems).into());
    }
    let server = configuration.server.clone();
    let account = Account::find(server.user.as_deref())?;
    let owner = Owner::new(account.as_ref(), server.control_group.as_deref())?;
    raise_open_files(connections(&configuration));
    let identity = config::load_identity(&configuration, sources)?.map(IdentitySlot::new);
    let bound = Bound::bind(&server_options(&configuration, identity.clone(), 0)).map_err(Failure::Bind)?;
    let control =
        server.control_socket.as_deref().map(|path| ControlSocket::bind(path, owner)).transpose()?;
    let metrics = server.metrics_listen.map(metrics::bind).transpose()?;
    drop_privileges(account.as_ref())?;
    logging::start_queue().map_err(Failure::Thread)?;
    warn_of_later_reading(sources);

    let origin = Origin::File(path.to_path_buf());
    let assembled = Assembled::new(harmless, configuration, origin, identity, 0, begun)?;
    let node = Arc::clone(&assembled.node);
    node.service.begin().map_err(Failure::Thread)?;
    node.start(bound)?;
    if let Some(control) = &control {
        control.serve(Arc::clone(&node)).map_err(Failure::Thread)?;
    }
    let metrics = metrics.map(|listener| start_metrics(&node, listener)).transpose()?;
    let ready = Arc::clone(&node);
    assembled.run(move || {
        let settled = ready.service.wait();
        announce_zones(&ready, settled, is_json);
        ready.notifier.ready(&ready.words());
        Ok(())
    })?;
    drop((metrics, control));
    stop(&node, is_json)
}

/// Warns of what was read as root, and could not be read again.
fn warn_of_later_reading(sources: &Sources) {
    let Ok(eyes) = Eyes::of(None) else { return };
    for (problems, effect) in [
        (config::read_by_reload(sources, &eyes), Effect::Reload),
        (config::read_by_transfers(sources, &eyes), Effect::Transfers),
    ] {
        problems.iter().for_each(|problem| tracing::warn!("{problem}; {effect}"));
    }
}

fn start_metrics(node: &Arc<Node>, listener: TcpListener) -> Result<MetricsServer, Failure> {
    let source = Arc::clone(node);
    Ok(metrics::start(listener, move || source.snapshot())?)
}
