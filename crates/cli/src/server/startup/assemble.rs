//! Assembly of a server: creates its parts from a configuration and connects them.

use crate::config::Configuration;
use crate::server::daemon::{ConfigurationSource, Daemon};
use crate::server::error::ServerError;
use crate::server::keys::KEY_LOADER;
use crate::server::main_loop::MainLoop;
use crate::server::reload_status::ReloadStatus;
use crate::server::settings::{answer_settings, dnstap_options, transfers_options};
use crate::server::signals::{NonFatalSignals, Signals};
use crate::server::systemd::{Notifier, Watchdog};
use arc_swap::ArcSwap;
use nonesuch_authoritative::ServerContext;
use nonesuch_authoritative::service::{Service, ServiceZoneStore, Settings, handle_zone_events};
use nonesuch_authoritative::transfer::outbound::{self, OutgoingTransfers, TransferOutcome, TransferStatus};
use nonesuch_authoritative::zones::Zones;
use nonesuch_net::Heartbeats;
use nonesuch_net::tls::IdentitySlot;
use nonesuch_secondary::{Transfers, TransfersOptions};
use nonesuch_server::clock::seconds_now;
use nonesuch_server::dnstap::DnstapOutput;
use nonesuch_server::statistics::{Direction, Statistics, TransferKind, TransferResult};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::Notify;

/// The inputs of the assembly.
pub(crate) struct AssemblyInputs {
    pub(crate) configuration: Configuration,
    pub(crate) source: ConfigurationSource,
    /// Certificate and key of the TLS listeners; `None` without TLS.
    pub(crate) tls_identity: Option<IdentitySlot>,
    /// Seconds added to the clock, modulo 2^32, for the times at which signatures are generated and
    /// verified; 0 except with `--now`.
    pub(crate) clock_shift: u32,
    /// Start of the server, for the uptime.
    pub(crate) started_at: Instant,
}

impl AssemblyInputs {
    /// Starts the background threads (dnstap, transfers, zone events), installs the signal
    /// handlers, and returns a server that has not loaded zones and does not answer yet.
    ///
    /// # Errors
    /// A setting is out of range, the dnstap output or the state directory cannot be opened, the
    /// system provides no random secret, or a thread or the signal handlers cannot be started.
    pub(crate) fn assemble(self, early_signals: NonFatalSignals) -> Result<MainLoop, ServerError> {
        let Self { configuration, source, tls_identity, clock_shift, started_at } = self;
        let zones = Arc::new(Zones::new());
        let watchdog = Watchdog::from_environment();
        let mut context = server_context(&configuration, &zones, watchdog.heartbeats())?;
        let service_settings = Settings { clock_shift, ..configuration.service_settings() };
        let service = Service::open(service_settings, KEY_LOADER, zones)?;
        let transfers =
            start_transfers(&configuration, &service, &mut context).map_err(ServerError::Thread)?;
        let (runtime, signals) = Signals::install(early_signals).map_err(ServerError::Thread)?;
        let daemon = Arc::new(Daemon {
            source,
            reloads: ReloadStatus::new(&configuration),
            configuration: Mutex::new(configuration),
            service,
            context,
            transfers,
            tls_identity,
            server: Mutex::new(None),
            notifier: Notifier::from_environment(),
            stop_request: Notify::new(),
            reload_lock: Mutex::new(()),
            started_at,
        });
        Ok(MainLoop { daemon, runtime, signals, watchdog })
    }
}

/// Creates the context that the threads of the server share.
fn server_context(
    configuration: &Configuration,
    zones: &Arc<Zones>,
    heartbeats: Heartbeats,
) -> Result<ServerContext, ServerError> {
    let settings = answer_settings(configuration, None)?;
    let dnstap = dnstap_options(configuration).map(DnstapOutput::start).transpose()?.map(Arc::new);
    let mut context = ServerContext { dnstap, heartbeats, ..ServerContext::new(Arc::clone(zones)) };
    let statistics = Arc::clone(&context.statistics);
    let limits = &configuration.limits;
    let outgoing = OutgoingTransfers::new(limits.transfers_out, seconds_now)
        .with_limit_per_client(limits.transfers_out_each, limits.exempt.clone())
        .with_secondaries(Arc::clone(&context.secondary_statuses));
    context.outgoing_transfers =
        Arc::new(outgoing.with_observer(move |ended| count_outgoing_transfer(&statistics, ended)));
    context.settings = Arc::new(ArcSwap::from_pointee(settings));
    Ok(context)
}

/// Starts the transfers from primaries and registers them as receiver of NOTIFY messages. Also
/// starts the handling of zone events, which must be before `Service::begin`.
fn start_transfers(
    configuration: &Configuration,
    service: &Arc<Service>,
    context: &mut ServerContext,
) -> io::Result<Arc<Transfers>> {
    let events = service.subscribe();
    let zone_store =
        ServiceZoneStore { service: Arc::clone(service), settings: Arc::clone(&context.settings) };
    let options = TransfersOptions {
        secondary_statuses: Arc::clone(&context.secondary_statuses),
        ..transfers_options(configuration, context.heartbeats.clone())
    };
    let transfers = Arc::new(Transfers::start(options, Arc::new(zone_store))?);
    let receiver = Arc::clone(&transfers);
    context.notify_sink = Some(Arc::new(move |notified| receiver.queue_notify(notified)));
    handle_zone_events(service, events, Arc::clone(&transfers))?;
    Ok(transfers)
}

/// Counts a finished transfer to a secondary.
fn count_outgoing_transfer(statistics: &Statistics, ended: &TransferStatus) {
    let kind = match ended.kind {
        outbound::TransferKind::Ixfr => TransferKind::Ixfr,
        outbound::TransferKind::Axfr | outbound::TransferKind::IxfrAsAxfr => TransferKind::Axfr,
    };
    let result = match ended.outcome {
        TransferOutcome::Sent => TransferResult::Done,
        TransferOutcome::SoaOnly => TransferResult::UpToDate,
        TransferOutcome::Refused(refusal) => {
            statistics.transfers().count_refusal(refusal.name());
            TransferResult::Refused
        }
        // A finished transfer is never `InProgress`.
        TransferOutcome::InProgress | TransferOutcome::Aborted => TransferResult::Failed,
    };
    statistics.transfers().record(Direction::Out, kind, result, ended.messages, ended.octets);
}
