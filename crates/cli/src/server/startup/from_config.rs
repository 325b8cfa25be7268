//! `nonesuch serve --config`: a server of many zones from a configuration.
//!
//! The server binds sockets, drops privileges and then reads zones. It answers from the beginning,
//! with SERVFAIL for zones that are not loaded yet.

use crate::access::FileUser;
use crate::config::{self, Configuration, Problems, Sources};
use crate::logging;
use crate::metrics::{self, MetricsServer};
use crate::outcome::CommandOutcome;
use crate::server::background::report_ready;
use crate::server::control;
use crate::server::control::ControlledServer;
use crate::server::control::socket::{ControlSocket, SocketOwner};
use crate::server::daemon::{ConfigurationSource, Daemon};
use crate::server::error::ServerError;
use crate::server::main_loop::stop;
use crate::server::open_files::raise_open_files;
use crate::server::output::{log_start, print_ready};
use crate::server::panics::abort_on_panic;
use crate::server::preflight;
use crate::server::privileges::{Account, drop_privileges};
use crate::server::settings::{max_connections, server_options, set_log};
use crate::server::signals::NonFatalSignals;
use crate::server::startup::assemble::AssemblyInputs;
use nonesuch_authoritative::server::BoundSockets;
use nonesuch_net::tls::IdentitySlot;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Reads the configuration at `path` and serves its zones until the server is stopped. With
/// `is_json`, the lines "ready" and "stopped" are JSON.
pub(crate) fn run(path: &Path, is_json: bool) -> Result<CommandOutcome, ServerError> {
    let early_signals = NonFatalSignals::install().map_err(ServerError::Thread)?;
    let loaded = config::load(path)?;
    // Before the first log message, so that level and format apply to it.
    set_log(&loaded.configuration);
    log_start("configuration", path);
    for warning in &loaded.warnings {
        tracing::warn!(name: "configuration-warning", "{warning}");
    }
    serve(early_signals, loaded.configuration, &loaded.sources, path, is_json)
}

fn serve(
    early_signals: NonFatalSignals,
    configuration: Configuration,
    sources: &Sources,
    path: &Path,
    is_json: bool,
) -> Result<CommandOutcome, ServerError> {
    let started_at = Instant::now();
    abort_on_panic();
    let mut problems = preflight::check_start(&configuration, sources);
    problems.extend(preflight::check_runtime_directories(sources));
    if !problems.is_empty() {
        return Err(Problems(problems).into());
    }
    let server = configuration.server.clone();
    let account = Account::find(server.user.as_deref())?;
    let socket_owner = SocketOwner::new(account.as_ref(), server.control_group.as_deref())?;
    raise_open_files(max_connections(&configuration));
    let tls_identity = preflight::load_identity(&configuration.server.tls, sources)?.map(IdentitySlot::new);
    let bound_sockets = BoundSockets::bind(&server_options(&configuration, tls_identity.clone(), 0))
        .map_err(ServerError::Bind)?;
    let control =
        server.control_socket.as_deref().map(|path| ControlSocket::bind(path, socket_owner)).transpose()?;
    let metrics = server.metrics_listen.map(metrics::bind).transpose()?;
    drop_privileges(account.as_ref())?;
    // Checked as the user that the server now runs as.
    if let Some(problem) = preflight::check_added_zones(sources, &FileUser::current()) {
        return Err(Problems(vec![problem]).into());
    }
    logging::start_queue().map_err(ServerError::Thread)?;
    preflight::warn_of_files_unreadable_later(sources);

    let source = ConfigurationSource::File(path.to_path_buf());
    let inputs = AssemblyInputs { configuration, source, tls_identity, clock_shift: 0, started_at };
    let main_loop = inputs.assemble(early_signals)?;
    let daemon = Arc::clone(&main_loop.daemon);
    daemon.service.begin().map_err(ServerError::Thread)?;
    daemon.start(bound_sockets)?;
    if let Some(control) = &control {
        control::serve(control, ControlledServer::Authoritative(Arc::clone(&daemon)))
            .map_err(ServerError::Thread)?;
    }
    let metrics = metrics.map(|listener| start_metrics(&daemon, listener)).transpose()?;
    let ready_daemon = Arc::clone(&daemon);
    main_loop.run(move || {
        let summary = ready_daemon.service.wait_until_loaded();
        print_ready(&ready_daemon, summary, is_json);
        report_ready()?;
        ready_daemon.notifier.notify_ready(&ready_daemon.status_line());
        Ok(())
    })?;
    drop((metrics, control));
    stop(&daemon, is_json)
}

fn start_metrics(daemon: &Arc<Daemon>, listener: TcpListener) -> Result<MetricsServer, ServerError> {
    let source = Arc::clone(daemon);
    Ok(metrics::start(listener, move || source.snapshot())?)
}
