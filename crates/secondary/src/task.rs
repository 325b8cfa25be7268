//! Tasks for a zone: SOA query to a primary, transfer, NOTIFY to a secondary.

use super::error::ExchangeError;
use super::event::{InboundOutcome, RejectionPeriod};
use super::exchange::{self, QueryTarget};
use super::options::TransfersOptions;
use super::status::{Counts, Progress, TransferKind};
use super::timing::LocalSoa;
use super::{PublishError, ReceivedVersion, SecondaryZone, ZoneStore};
use crate::inbound::{
    InboundError, InboundRequest, InboundTransfer, TransferContent, apply_steps, push_transfer_query,
};
use crate::notify::OutgoingNotify;
use nonesuch_proto::message::{Header, Message, Rcode, Section, flags, push_query};
use nonesuch_proto::{Name, Rtype, serial};
use nonesuch_server::clock::seconds_now;
use nonesuch_server::tsig::TsigKeys;
use nonesuch_zone::Contents;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Timeouts of the attempts to query for the SOA record with datagrams. The last one is also the
/// timeout of the query over TCP.
const PROBE_TIMEOUTS: [Duration; 3] =
    [Duration::from_secs(2), Duration::from_secs(3), Duration::from_secs(5)];

/// Returns an unpredictable message ID.
pub(super) fn random_id() -> Result<u16, ExchangeError> {
    let mut octets = [0; 2];
    getrandom::fill(&mut octets).map_err(ExchangeError::Random)?;
    Ok(u16::from_be_bytes(octets))
}

/// The version that a primary has.
pub(super) struct Version {
    pub(super) serial: u32,
    /// Seconds until the zone expires at the primary, if the response has them.
    pub(super) expire: Option<u32>,
}

/// Queries a primary for its version.
pub(super) async fn probe(apex: &Name, primary: &QueryTarget<'_>) -> Result<Version, ExchangeError> {
    let mut answer = query_soa(apex, true, primary).await?;
    if Header::read(&answer).is_some_and(|header| is_edns_error(header.rcode())) {
        answer = query_soa(apex, false, primary).await?;
    }
    Ok(Version { serial: read_serial(&answer, apex)?, expire: exchange::read_expire(&answer) })
}

/// RFC 6891 §7: response codes of servers that do not support EDNS.
const fn is_edns_error(rcode: Rcode) -> bool {
    matches!(rcode, Rcode::FORMERR | Rcode::NOTIMP)
}

/// Queries for the SOA record with datagrams, then over TCP if no attempt gives a complete
/// response.
async fn query_soa(apex: &Name, has_edns: bool, primary: &QueryTarget<'_>) -> Result<Vec<u8>, ExchangeError> {
    let build_query = || {
        let mut query = Vec::with_capacity(300);
        push_query(apex, Rtype::SOA, random_id()?, 0, &mut query);
        if has_edns {
            exchange::push_expire_request(&mut query);
        }
        Ok::<_, ExchangeError>(query)
    };
    let is_complete =
        |answer: &Vec<u8>| answer.get(2).is_some_and(|octet| octet & (flags::TC >> 8) as u8 == 0);
    for timeout in PROBE_TIMEOUTS {
        match primary.query_once(build_query()?, timeout).await {
            Ok(answer) if is_complete(&answer) => return Ok(answer),
            Ok(_) => break,
            Err(error) if primary.remote.tls.is_some() => return Err(error),
            Err(_) => {}
        }
    }
    primary.query_over_stream(build_query()?, PROBE_TIMEOUTS[2]).await
}

/// Returns the serial in the response to an SOA query.
fn read_serial(answer: &[u8], apex: &Name) -> Result<u32, ExchangeError> {
    let message = Message::parse(answer)?;
    if message.rcode() != Rcode::NOERROR {
        return Err(InboundError::Rcode(message.rcode()).into());
    }
    if message.header.flags & flags::AA == 0 {
        return Err(ExchangeError::NotAuthoritative);
    }
    let is_soa =
        |record: &&nonesuch_proto::message::Record| record.rtype == Rtype::SOA && record.owner == *apex;
    let soa = message.section(Section::Answer).find(is_soa);
    let soa = soa.and_then(|record| LocalSoa::from_rdata(&record.rdata));
    soa.map(|soa| soa.serial).ok_or(ExchangeError::NoSoa)
}

/// Sends a NOTIFY, and returns the complete response.
pub(super) async fn send_notify(
    notify: &OutgoingNotify,
    keys: &TsigKeys,
    options: &TransfersOptions,
) -> Result<Vec<u8>, ExchangeError> {
    let mut message = notify.message.clone();
    message[..2].copy_from_slice(&random_id()?.to_be_bytes());
    let secondary = QueryTarget { remote: &notify.remote, keys, options };
    secondary.query_once(message, Duration::from_millis(notify.timeout_ms)).await
}

/// A transfer to execute.
pub(super) struct Job {
    pub(super) settings: Arc<SecondaryZone>,
    /// The index of the primary in `settings`.
    pub(super) primary_index: usize,
    /// Whether to request IXFR from the local version.
    pub(super) is_ixfr: bool,
    /// The SOA record of the local version, if only a newer version may replace it.
    pub(super) local_soa: Option<LocalSoa>,
    pub(super) zone_store: Arc<dyn ZoneStore>,
    pub(super) options: Arc<TransfersOptions>,
    pub(super) progress: Arc<Progress>,
}

/// The result of a transfer.
pub(super) struct Report {
    pub(super) outcome: InboundOutcome,
    pub(super) error: Option<ExchangeError>,
    /// Seconds until the zone expires at the primary, if the response has them.
    pub(super) expire: Option<u32>,
    /// The actual kind of transfer: a primary may respond to IXFR with the whole zone.
    kind: TransferKind,
    /// The configured TSIG key of the primary.
    key: Option<Name>,
    messages: u64,
    records: u64,
    octets: u64,
    seconds: f64,
}

impl Report {
    /// Returns the report for a transfer that ended by a panic.
    pub(super) fn panicked(is_ixfr: bool, key: Option<Name>) -> Self {
        Self { error: Some(ExchangeError::Panicked), ..Self::begun(is_ixfr, key) }
    }

    /// Returns the report for a transfer that has begun. Without further changes, it is a failed
    /// one.
    const fn begun(is_ixfr: bool, key: Option<Name>) -> Self {
        Self {
            outcome: InboundOutcome::Failed,
            error: None,
            expire: None,
            key,
            kind: if is_ixfr { TransferKind::Ixfr } else { TransferKind::Axfr },
            messages: 0,
            records: 0,
            octets: 0,
            seconds: 0.0,
        }
    }

    /// Logs the result. `failing_ms`: if a warning about a failure is due, the milliseconds since
    /// the first failure; otherwise `None`, and a failure is logged only for debugging.
    pub(super) fn log(&self, zone: &Name, peer: SocketAddr, failing_ms: Option<u64>) {
        let Self { kind, messages, records, octets, seconds, .. } = self;
        let key = self.key.as_ref().map(tracing::field::display);
        let error = self.error.as_ref().map(tracing::field::display);
        match self.outcome {
            InboundOutcome::Published(soa) => {
                let serial = soa.serial;
                tracing::info!(name: "zone-transferred", %zone, serial, %peer, %kind, key, messages, records, octets, seconds, "zone transferred");
            }
            InboundOutcome::UpToDate { serial } => {
                tracing::debug!(name: "zone-current", %zone, serial, %peer, "zone {zone}: primary has no newer version")
            }
            // The server has logged the reason.
            InboundOutcome::Rejected { serial, verdict: RejectionPeriod::Final } => {
                tracing::warn!(
                    name: "transferred-zone-rejected",
                    %zone, serial, %peer, %kind, key,
                    "zone {zone}: transferred version rejected; it is transferred again when its serial changes, or with `nonesuch ctl zone retransfer {zone}`"
                );
            }
            InboundOutcome::Rejected { serial, verdict: RejectionPeriod::For { seconds } } => {
                tracing::warn!(
                    name: "transferred-zone-rejected",
                    %zone, serial, %peer, %kind, key, seconds,
                    "zone {zone}: transferred version rejected at this time; it is transferred again later"
                );
            }
            InboundOutcome::PublishFailed { serial } => {
                tracing::warn!(
                    name: "transferred-zone-not-published",
                    %zone, serial, %peer, %kind, key,
                    "zone {zone}: transferred version not published; it is transferred again after the retry interval"
                );
            }
            InboundOutcome::NoLongerWanted => {
                tracing::info!(name: "transferred-zone-discarded", %zone, %peer, %kind, key, octets, seconds, error, "zone {zone}: transferred version discarded, the zone or its primaries changed during the transfer");
            }
            _ => match failing_ms {
                Some(failing_ms) => tracing::warn!(
                    name: "transfer-failed",
                    %zone, %peer, %kind, key, octets, seconds, error, failing_seconds = failing_ms / 1000, "zone {zone}: transfer failed"
                ),
                None => {
                    tracing::debug!(name: "transfer-failed", %zone, %peer, %kind, key, octets, seconds, error, "zone {zone}: transfer failed")
                }
            },
        }
    }

    pub(super) fn add_to(&self, counts: &mut Counts) {
        counts.messages += self.messages;
        counts.octets += self.octets;
        let steps = u64::from(self.kind == TransferKind::Ixfr);
        match self.outcome {
            InboundOutcome::Published(_) => {
                counts.axfr += 1 - steps;
                counts.ixfr += steps;
            }
            InboundOutcome::UpToDate { .. } => {
                counts.up_to_date += 1;
                counts.ixfr_outcomes.up_to_date += steps;
            }
            InboundOutcome::Rejected { .. } => {
                counts.refused += 1;
                counts.ixfr_outcomes.refused += steps;
            }
            InboundOutcome::IxfrFailed | InboundOutcome::Failed | InboundOutcome::PublishFailed { .. } => {
                counts.failed += 1;
                counts.ixfr_outcomes.failed += steps;
            }
            InboundOutcome::NoLongerWanted => {}
        }
    }
}

/// Why a transfer produced no version.
struct Failure {
    outcome: InboundOutcome,
    error: Box<ExchangeError>,
}

impl Failure {
    fn new(outcome: InboundOutcome, error: impl Into<ExchangeError>) -> Self {
        Self { outcome, error: Box::new(error.into()) }
    }
}

impl<E: Into<ExchangeError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(InboundOutcome::Failed, error)
    }
}

/// Transfers a zone and publishes it.
pub(super) async fn transfer(job: Job) -> Report {
    let start = Instant::now();
    let key = job.settings.primaries.get(job.primary_index).and_then(|remote| remote.key.clone());
    let mut report = Report::begun(job.is_ixfr, key);
    let outcome = match receive_in_time(&job).await {
        Ok(ReceivedTransfer { inbound, old, expire }) => {
            report.expire = expire;
            (report.messages, report.records, report.octets) =
                (inbound.messages(), inbound.records(), inbound.octets());
            job.progress.is_publishing.store(true, Relaxed);
            let publishing = tokio::task::spawn_blocking(move || publish(&job, inbound, old.as_deref()));
            let broken = |_| Err(ExchangeError::PublishingPanicked.into());
            publishing.await.unwrap_or_else(broken)
        }
        Err(failure) => {
            report.octets = job.progress.octets.load(Relaxed);
            Err(failure)
        }
    };
    match outcome {
        Ok((outcome, kind)) => (report.outcome, report.kind) = (outcome, kind),
        Err(Failure { outcome, error }) => (report.outcome, report.error) = (outcome, Some(*error)),
    }
    report.seconds = start.elapsed().as_secs_f64();
    report
}

/// The response of a primary.
struct ReceivedTransfer {
    inbound: InboundTransfer,
    /// The local version from which IXFR was requested; `None` for AXFR.
    old: Option<Arc<Contents>>,
    /// Seconds until the zone expires at the primary.
    expire: Option<u32>,
}

async fn receive_in_time(job: &Job) -> Result<ReceivedTransfer, Failure> {
    let limit = job.options.time_limit;
    let timed_out = |_| Err(ExchangeError::TimedOut(limit.as_secs()).into());
    tokio::time::timeout(limit, receive(job, true)).await.unwrap_or_else(timed_out)
}

/// Sends the query, and reads all messages of the response.
async fn receive(job: &Job, has_edns: bool) -> Result<ReceivedTransfer, Failure> {
    let remote = job.settings.primaries.get(job.primary_index).ok_or(ExchangeError::NoPrimary)?;
    let apex = &job.settings.apex;
    let old = job.zone_store.contents(apex).filter(|_| job.is_ixfr);
    let soa = old.as_ref().and_then(|old| old.apex_rrset(Rtype::SOA)?.rdatas().next());
    let old_soa = soa.and_then(LocalSoa::from_rdata);
    let request =
        old_soa.map_or(InboundRequest::Axfr, |old_soa| InboundRequest::Ixfr { serial: old_soa.serial });
    let id = random_id()?;
    let mut query = Vec::with_capacity(600);
    push_transfer_query(apex, request, soa.unwrap_or_default(), id, &mut query);
    if has_edns {
        exchange::push_expire_request(&mut query);
    }
    let primary = QueryTarget { remote, keys: &job.zone_store.keys(), options: &job.options };
    let mut verifier = primary.sign(&mut query)?;
    let mut connection = primary.connect(job.options.idle_limit).await?;
    connection.send(&query).await?;
    let mut inbound = InboundTransfer::new(apex.clone(), id, request, job.settings.bounds);
    let (mut message, mut expire) = (Vec::new(), None);
    loop {
        if let Err(error) = connection.receive(&mut message).await {
            // RFC 1995 §2: over UDP, a primary responds with a single SOA record to request a query
            // over TCP. Some primaries do so over TCP.
            let outcome = if inbound.is_single_newer_soa() {
                InboundOutcome::IxfrFailed
            } else {
                InboundOutcome::Failed
            };
            return Err(Failure::new(outcome, error));
        }
        let mut end = message.len();
        if let Some(verifier) = &mut verifier {
            end = verifier.verify(&message, seconds_now())?.end;
        }
        if inbound.messages() == 0 {
            expire = exchange::read_expire(&message);
        }
        let is_complete = match inbound.push(&message[..end]) {
            Ok(is_complete) => is_complete,
            Err(InboundError::Rcode(rcode)) if has_edns && is_edns_error(rcode) => {
                return Box::pin(receive(job, false)).await;
            }
            Err(error) => return Err(classify_error(error, request)),
        };
        job.progress.octets.store(inbound.octets(), Relaxed);
        job.progress.records.store(inbound.records(), Relaxed);
        if is_complete {
            break;
        }
    }
    if let Some(verifier) = &verifier {
        verifier.finish()?;
    }
    Ok(ReceivedTransfer { inbound, old, expire })
}

/// Converts an error of the response to `request`. If a transfer of the whole zone may succeed, the
/// outcome is [`InboundOutcome::IxfrFailed`].
fn classify_error(error: InboundError, request: InboundRequest) -> Failure {
    let applies_to_whole = matches!(error, InboundError::Rcode(Rcode::SERVFAIL | Rcode(9)));
    let may_retry_whole = request != InboundRequest::Axfr && error.may_succeed_as_axfr() && !applies_to_whole;
    let outcome = if may_retry_whole { InboundOutcome::IxfrFailed } else { InboundOutcome::Failed };
    Failure::new(outcome, error)
}

/// Builds the zone from the received records, and publishes it with verification.
fn publish(
    job: &Job,
    inbound: InboundTransfer,
    old: Option<&Contents>,
) -> Result<(InboundOutcome, TransferKind), Failure> {
    let request = if old.is_some() { InboundRequest::Ixfr { serial: 0 } } else { InboundRequest::Axfr };
    let outside = inbound.out_of_zone();
    let apex = &job.settings.apex;
    let primary = job.settings.primaries[job.primary_index].clone();
    let (received, kind) = match inbound.finish().map_err(|error| classify_error(error, request))? {
        TransferContent::UpToDate { serial } => {
            return Ok((InboundOutcome::UpToDate { serial }, TransferKind::Ixfr));
        }
        TransferContent::Newer => return Err(ExchangeError::OnlyFirstSoa.into()),
        TransferContent::Axfr { contents, warnings } => {
            for warning in warnings.iter().take(3) {
                tracing::warn!(name: "zone-warning", zone = %apex, %warning, "zone {apex}: transferred version: {warning}");
            }
            (ReceivedVersion { primary, contents, steps: Vec::new() }, TransferKind::Axfr)
        }
        TransferContent::Ixfr(steps) => {
            let old = old.ok_or(ExchangeError::UnrequestedIxfr)?;
            let (contents, _) =
                apply_steps(old, &steps).map_err(|error| Failure::new(InboundOutcome::IxfrFailed, error))?;
            (ReceivedVersion { primary, contents, steps }, TransferKind::Ixfr)
        }
    };
    if outside > 0 {
        tracing::warn!(name: "out-of-zone-records", zone = %apex, records = outside, "zone {apex}: ignored out-of-zone records");
    }
    let new_soa = LocalSoa::of(&received.contents).ok_or(ExchangeError::NoZoneSoa)?;
    // Several servers may share an address, and one of them may have an older version. Without an
    // explicit request, the zone never returns to an older version.
    if job.local_soa.is_some_and(|local_soa| !serial::is_before(local_soa.serial, new_soa.serial)) {
        return Ok((InboundOutcome::UpToDate { serial: new_soa.serial }, kind));
    }
    match job.zone_store.publish(apex, received) {
        Ok(()) => Ok((InboundOutcome::Published(new_soa), kind)),
        Err(publish_error) => {
            let serial = new_soa.serial;
            let outcome = match publish_error {
                PublishError::Rejected { verdict, .. } => InboundOutcome::Rejected { serial, verdict },
                PublishError::Failed(_) => InboundOutcome::PublishFailed { serial },
                PublishError::NoLongerWanted(_) => InboundOutcome::NoLongerWanted,
            };
            Err(Failure::new(outcome, publish_error))
        }
    }
}
