//! Creates a responder, for one thread and one address.

use super::{Batch, Responder, ServerContext, ThreadState};
use crate::zones::DatabaseCache;
use arc_swap::Cache;
use nonesuch_dnssec::online::OnlineSigner;
use nonesuch_net::Transport;
use nonesuch_server::limits::{OnlineSettings, WorkerShare};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

impl Responder {
    /// Creates a responder for messages received over `transport` on the address `local`.
    /// `clock_shift` is added to the clock for the times of online signatures, in seconds modulo
    /// 2^32.
    #[must_use]
    pub fn new(
        context: &ServerContext,
        transport: Transport,
        local: SocketAddr,
        signer: OnlineSigner,
        clock_shift: u32,
    ) -> Self {
        let mut database_cache = DatabaseCache::new(Arc::clone(&context.zones));
        let mut settings = Cache::new(Arc::clone(&context.settings));
        let current = Arc::clone(settings.load());
        // Without limits, online work does not depend on the share.
        let unused = || WorkerShare::new(&OnlineSettings::default(), [0; 16]);
        let online_share = current.limits.as_ref().map_or_else(unused, |limits| limits.worker_share());
        let thread = ThreadState {
            transport,
            started_at: Instant::now(),
            online_signer: signer,
            online_share,
            statistics: context.statistics.thread(transport),
            dnstap: context.dnstap.as_ref().map(|dnstap| dnstap.thread(transport, local)),
            outgoing_transfers: Arc::clone(&context.outgoing_transfers),
            notify_sink: context.notify_sink.clone(),
            secondary_statuses: Arc::clone(&context.secondary_statuses),
            deferred_zones: Vec::new(),
            response_stream: None,
            idle_timeout: None,
            tls_session: None,
            message_count: 0,
            is_second_pass: false,
            deferred_work: None,
        };
        let batch = Batch {
            database: Arc::clone(database_cache.database()),
            reply_settings: current.reply.clone(),
            settings: current,
            now: 0,
            elapsed_ms: 0,
            clock_shift,
        };
        Self { database_cache, settings, batch, thread }
    }
}
