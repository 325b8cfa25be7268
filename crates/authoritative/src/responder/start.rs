//! Creates the responder of a thread.

use super::{Batch, Responder, ServerContext, Thread};
use crate::zones::View;
use arc_swap::Cache;
use nonesuch_dnssec::online::OnlineSigner;
use nonesuch_server::limits::{OnlineSettings, WorkerShare};
use nonesuch_server::statistics::TransportKind;
use nonesuch_server::trailer::Transport;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

impl Responder {
    /// Creates a responder for messages received over `transport` on the address `local`.
    /// `clock_shift` is added to the clock for the times of online signatures, in seconds modulo
    /// 2^32.
    #[must_use]
    pub fn new(
        shared: &ServerContext,
        transport: Transport,
        local: SocketAddr,
        signer: OnlineSigner,
        clock_shift: u32,
    ) -> Self {
        let mut view = View::new(Arc::clone(&shared.zones));
        let mut settings = Cache::new(Arc::clone(&shared.settings));
        let current = Arc::clone(settings.load());
        let unlimited = || WorkerShare::new(&OnlineSettings::default(), [0; 16]);
        let share = current.limits.as_ref().map_or_else(unlimited, |limits| limits.worker_share());
        let thread = Thread {
            transport,
            begun: Instant::now(),
            online_signer: signer,
            share,
            statistics: shared.statistics.thread(transport_kind(transport)),
            tap: shared.tap.as_ref().map(|tap| tap.thread(transport_kind(transport), local)),
            outgoing: Arc::clone(&shared.outgoing),
            notify_sink: shared.notify_sink.clone(),
            secondaries: Arc::clone(&shared.secondaries),
            deferred_zones: Vec::new(),
            stream: None,
            idle_timeout: None,
            session: None,
            messages: 0,
            is_second_pass: false,
            deferred: None,
        };
        let batch = Batch {
            database: Arc::clone(view.database()),
            reply: current.reply.clone(),
            settings: current,
            now: 0,
            milliseconds: 0,
            clock_shift,
        };
        Self { view, settings, batch, thread }
    }
}

const fn transport_kind(transport: Transport) -> TransportKind {
    match transport {
        Transport::Udp => TransportKind::Udp,
        Transport::Tcp => TransportKind::Tcp,
        Transport::Tls => TransportKind::Tls,
    }
}
