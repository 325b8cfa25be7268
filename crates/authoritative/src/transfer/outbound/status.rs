//! Outgoing transfers in progress, and their limits.

use super::records::RecordsError;
use super::{OutboundRequest, TransferRefusal};
use nonesuch_proto::{Name, Rtype};
use nonesuch_secondary::notify::SecondaryStatuses;
use nonesuch_server::acl::Prefix;
use nonesuch_server::clock::LogInterval;
use nonesuch_server::limits::ClientPrefixes;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Default for the maximum number of concurrent transfers.
pub const DEFAULT_MAX_TRANSFERS: usize = 10;
/// Default for the maximum number of concurrent transfers to one client network.
pub const DEFAULT_MAX_PER_NETWORK: usize = 5;

/// The kind of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransferKind {
    /// A complete zone (RFC 5936).
    Axfr,
    /// Changes of a zone (RFC 1995).
    Ixfr,
    /// A complete zone in response to an IXFR request (RFC 1995 §4).
    IxfrAsAxfr,
}

impl fmt::Display for TransferKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Axfr => "AXFR",
            Self::Ixfr => "IXFR",
            Self::IxfrAsAxfr => "IXFR as AXFR",
        })
    }
}

/// State or result of a request for a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransferOutcome {
    /// The transfer is in progress.
    InProgress,
    /// All messages were sent.
    Sent,
    /// The response was only the SOA record: the client has the newest version, or must repeat the
    /// request over TCP.
    SoaOnly,
    /// The transfer was refused.
    Refused(TransferRefusal),
    /// The connection ended before all messages were sent, or the server could not continue the
    /// transfer.
    Aborted,
}

/// A transfer in progress, or one that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferStatus {
    /// The name of the zone.
    pub zone: Name,
    /// Address and port of the client.
    pub client: SocketAddr,
    /// The TSIG key that signed the request; `None` if it was not signed.
    pub key: Option<Name>,
    /// The kind of the transfer.
    pub kind: TransferKind,
    /// The serial of the transferred version; 0 for a refused request.
    pub serial: u32,
    /// Number of messages so far.
    pub messages: u64,
    /// Size of the messages so far, in octets.
    pub octets: u64,
    /// Number of records so far.
    pub records: u64,
    /// Duration of the transfer so far.
    pub elapsed: Duration,
    /// State or result of the transfer.
    pub outcome: TransferOutcome,
}

/// Called for each request for a transfer when it ends.
type Observer = Arc<dyn Fn(&TransferStatus) + Send + Sync>;

/// The outgoing transfers of a server.
pub struct OutgoingTransfers {
    max_transfers: usize,
    /// Maximum number of concurrent transfers to one client network. Clients in `exempt_prefixes`
    /// have no such limit.
    max_per_network: usize,
    exempt_prefixes: Vec<Prefix>,
    clock: fn() -> u64,
    active: Mutex<Vec<Arc<Progress>>>,
    observer: Option<Observer>,
    refusal_log: LogInterval,
    secondaries: Option<Arc<SecondaryStatuses>>,
}

impl OutgoingTransfers {
    /// Permits at most `max_transfers` concurrent transfers. `clock` returns the time for TSIG, in
    /// seconds since 1970.
    #[must_use]
    pub const fn new(max_transfers: usize, clock: fn() -> u64) -> Self {
        Self {
            max_transfers,
            max_per_network: usize::MAX,
            exempt_prefixes: Vec::new(),
            clock,
            active: Mutex::new(Vec::new()),
            observer: None,
            refusal_log: LogInterval::new(),
            secondaries: None,
        }
    }

    /// Permits at most `max_per_network` concurrent transfers to one client network, except for
    /// clients in `exempt_prefixes`. A client network is an IPv4 /24 or an IPv6 /56, as for
    /// response rate limiting.
    #[must_use]
    pub fn with_limit_per_client(self, max_per_network: usize, exempt_prefixes: Vec<Prefix>) -> Self {
        Self { max_per_network, exempt_prefixes, ..self }
    }

    /// Calls `observer` for each request for a transfer when it ends. Metrics use this.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Fn(&TransferStatus) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Records completed transfers in `secondaries`.
    #[must_use]
    pub fn with_secondaries(self, secondaries: Arc<SecondaryStatuses>) -> Self {
        Self { secondaries: Some(secondaries), ..self }
    }

    /// Records a completed transfer for the status of the secondary.
    fn note_sent(&self, zone: &Name, client: SocketAddr, serial: u32, outcome: TransferOutcome) {
        if let Some(secondaries) = self.secondaries.as_ref().filter(|_| outcome == TransferOutcome::Sent) {
            secondaries.record_transfer(&zone.view().to_canonical(), client.ip(), serial, (self.clock)());
        }
    }

    /// Returns the transfers in progress.
    #[must_use]
    pub fn status(&self) -> Vec<TransferStatus> {
        self.active().iter().map(|progress| progress.status()).collect()
    }

    /// Reports to the observer a request that was answered with one message or refused. `serial` is
    /// the serial of the server's version, 0 for a refusal.
    pub(super) fn report_ended(
        &self,
        request: &OutboundRequest<'_>,
        serial: u32,
        outcome: TransferOutcome,
        octets: usize,
    ) {
        self.note_sent(&request.query.name().to_name(), request.client, serial, outcome);
        let Some(observer) = &self.observer else { return };
        let is_incremental = request.query.qtype == Rtype::IXFR;
        observer(&TransferStatus {
            zone: request.query.name().to_name(),
            client: request.client,
            key: request.tsig.map(|verified| verified.name().to_name()),
            kind: if is_incremental { TransferKind::Ixfr } else { TransferKind::Axfr },
            serial,
            messages: u64::from(octets > 0),
            octets: octets as u64,
            records: 0,
            elapsed: Duration::ZERO,
            outcome,
        });
    }

    /// Returns the number of suppressed log lines if a refusal may be logged now, otherwise `None`.
    /// At most one refusal a second is logged.
    pub(super) fn may_log(&self) -> Option<u64> {
        self.refusal_log.may_log((self.clock)())
    }

    pub(super) const fn clock(&self) -> fn() -> u64 {
        self.clock
    }

    /// Returns whether the network of a client has reached its limit of transfers.
    fn is_network_full(&self, client: IpAddr, active: &[Arc<Progress>]) -> bool {
        if self.max_per_network >= self.max_transfers
            || self.exempt_prefixes.iter().any(|prefix| prefix.contains(client))
        {
            return false;
        }
        let networks = ClientPrefixes::new(24, 56);
        let network = networks.prefix_of(client);
        let is_of_client = |other: &&Arc<Progress>| networks.prefix_of(other.client.ip()) == network;
        active.iter().filter(is_of_client).count() >= self.max_per_network
    }

    /// Begins a transfer, unless too many transfers are in progress.
    pub(super) fn begin(
        self: &Arc<Self>,
        request: &OutboundRequest<'_>,
        kind: TransferKind,
        serial: u32,
    ) -> Result<TransferPermit, TransferRefusal> {
        let mut active = self.active();
        if self.is_network_full(request.client.ip(), &active) {
            return Err(TransferRefusal::TooManyOfClient);
        }
        if active.len() >= self.max_transfers {
            return Err(TransferRefusal::TooMany);
        }
        let progress = Arc::new(Progress {
            zone: request.query.name().to_name(),
            client: request.client,
            key: request.tsig.map(|verified| verified.name().to_name()),
            kind,
            serial,
            started_at: Instant::now(),
            messages: AtomicU64::new(0),
            octets: AtomicU64::new(0),
            records: AtomicU64::new(0),
        });
        active.push(Arc::clone(&progress));
        Ok(TransferPermit {
            outgoing: Arc::clone(self),
            progress,
            outcome: TransferOutcome::Aborted,
            error: None,
        })
    }

    fn active(&self) -> MutexGuard<'_, Vec<Arc<Progress>>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for OutgoingTransfers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingTransfers")
            .field("max_transfers", &self.max_transfers)
            .finish_non_exhaustive()
    }
}

/// A transfer in progress.
#[derive(Debug)]
struct Progress {
    zone: Name,
    client: SocketAddr,
    key: Option<Name>,
    kind: TransferKind,
    serial: u32,
    started_at: Instant,
    messages: AtomicU64,
    octets: AtomicU64,
    records: AtomicU64,
}

impl Progress {
    fn status(&self) -> TransferStatus {
        TransferStatus {
            zone: self.zone.clone(),
            client: self.client,
            key: self.key.clone(),
            kind: self.kind,
            serial: self.serial,
            messages: self.messages.load(Relaxed),
            octets: self.octets.load(Relaxed),
            records: self.records.load(Relaxed),
            elapsed: self.started_at.elapsed(),
            outcome: TransferOutcome::InProgress,
        }
    }
}

/// Permission for a transfer in progress. When it is dropped, the transfer no longer counts towards
/// the limits, and is logged and reported to the observer.
#[derive(Debug)]
pub(super) struct TransferPermit {
    outgoing: Arc<OutgoingTransfers>,
    progress: Arc<Progress>,
    outcome: TransferOutcome,
    /// Why the server could not continue the transfer.
    error: Option<RecordsError>,
}

impl TransferPermit {
    /// Counts a message of the transfer.
    pub(super) fn count_message(&self, octets: usize, records: u16) {
        self.progress.messages.fetch_add(1, Relaxed);
        self.progress.octets.fetch_add(octets as u64, Relaxed);
        self.progress.records.fetch_add(u64::from(records), Relaxed);
    }

    /// Records that all messages are sent.
    pub(super) const fn complete(&mut self) {
        self.outcome = TransferOutcome::Sent;
    }

    /// Records why the server could not continue the transfer.
    pub(super) fn fail(&mut self, error: RecordsError) {
        self.error = Some(error);
    }
}

impl Drop for TransferPermit {
    fn drop(&mut self) {
        self.outgoing.active().retain(|other| !Arc::ptr_eq(other, &self.progress));
        let status = TransferStatus { outcome: self.outcome, ..self.progress.status() };
        let seconds = status.elapsed.as_secs_f64();
        let outcome = if self.outcome == TransferOutcome::Sent { "sent" } else { "aborted" };
        let error = self.error.as_ref().map(tracing::field::display);
        let key = status.key.as_ref().map(tracing::field::display);
        self.outgoing.note_sent(&status.zone, status.client, status.serial, status.outcome);
        tracing::info!(
            name: "transfer-ended",
            zone = %status.zone,
            serial = status.serial,
            peer = %status.client,
            kind = %status.kind,
            key,
            messages = status.messages,
            records = status.records,
            octets = status.octets,
            seconds,
            outcome,
            error,
            "transfer {outcome}"
        );
        if let Some(observer) = &self.outgoing.observer {
            observer(&status);
        }
    }
}
