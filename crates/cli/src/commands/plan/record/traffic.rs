//! Records a resolver from its messages: dnstap or packets.

use super::estimate::Estimator;
use super::session::Session;
use super::source::{Event, Source};
use super::stop::Stop;
use super::{RecordError, SECOND, unix_micros};
use crate::arguments::PlanRecordArguments;
use crate::trust_anchors::trust_anchors;
use crate::zones::time_or_now;
use nonesuch_lab::capture::{CapturedMessage, SkipCounts, SkipReason};
use nonesuch_lab::cost_model::{
    DomainCounter, Gap, GapReason, TimeSource, TrafficRecorder, VerificationTotals, Verified, Window,
};
use std::collections::VecDeque;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Time after which windows are closed without a new message.
const TICK: Duration = Duration::from_millis(100);
/// Time between two ticks after which the program was paused. Then messages wait to be read.
const PAUSE: Duration = Duration::from_secs(1);
/// Time after a pause in which windows are not closed by the clock.
const PAUSE_PATIENCE: Duration = Duration::from_secs(2);
/// Maximum time by which a message may be later than the present, in microseconds.
const FUTURE_TOLERANCE: u64 = 3 * SECOND;
/// Maximum messages between two ticks.
const MESSAGES_PER_TICK: u32 = 4096;
/// Maximum time to wait for the totals of a window, in microseconds.
const TOTALS_PATIENCE: u64 = 10 * SECOND;
/// Maximum windows that wait for their totals.
const PENDING_MAX: usize = 600;
/// Maximum difference of the clock of the system and the monotonic clock between two ticks, in
/// microseconds. If it is greater, the clock was set.
const CLOCK_TOLERANCE: i128 = SECOND as i128;

/// What counts the verified signatures.
enum VerificationCounter {
    Totals(Box<VerificationTotals>),
    Estimate(Box<Estimator>),
}

/// The state of recording.
struct TrafficSession<'s> {
    recorder: TrafficRecorder,
    counter: VerificationCounter,
    /// Closed windows that wait for their totals.
    pending: VecDeque<Window>,
    session: &'s mut Session,
    skipped: SkipCounts,
    /// Messages with times in the future.
    future: u64,
    /// Connections of resolvers.
    connected: usize,
    /// Time from which on no resolver has been connected.
    disconnected_at: Option<u64>,
    /// Time at which recording ends, after a request.
    end: Option<u64>,
    /// When all messages until this time have arrived.
    deadline: Option<Instant>,
    is_live: bool,
}

/// The open inputs.
pub(super) struct Inputs {
    counter: VerificationCounter,
    source: Source,
}

impl Inputs {
    pub(super) fn open(arguments: &PlanRecordArguments) -> Result<Self, RecordError> {
        let source = Source::open(arguments)?;
        let counter = match &arguments.verified {
            // A resolver that connects later creates the file then.
            Some(path) if source.is_live => {
                VerificationCounter::Totals(VerificationTotals::expect(path).into())
            }
            Some(path) => VerificationCounter::Totals(VerificationTotals::open(path)?.into()),
            None => {
                let anchors = trust_anchors(arguments.anchor.as_deref(), false, time_or_now(None))?;
                VerificationCounter::Estimate(Estimator::new(anchors).into())
            }
        };
        Ok(Self { counter, source })
    }
}

/// Records windows until the source ends, or recording must end.
pub(super) fn record(
    arguments: &PlanRecordArguments,
    Inputs { counter, source }: Inputs,
    session: &mut Session,
    stop: &Stop,
) -> Result<(), RecordError> {
    let domains = DomainCounter::restored(session.domains()?);
    let time_source = if source.is_live { TimeSource::Clock } else { TimeSource::Messages };
    let mut recorder =
        TrafficRecorder::new(arguments.resolver.clone(), session.window(), time_source, domains);
    recorder.continue_after(session.end());
    session.print_ready(&source.name)?;
    let mut traffic = TrafficSession {
        recorder,
        counter,
        pending: VecDeque::new(),
        session,
        skipped: SkipCounts::default(),
        future: 0,
        connected: 0,
        disconnected_at: None,
        end: None,
        deadline: None,
        is_live: source.is_live,
    };
    let ended = traffic.run(&source, stop);
    traffic.finish()?;
    ended?;
    let counts = traffic.recorder.counts();
    if !source.is_live && counts.messages == 0 {
        let path = arguments.dnstap.as_ref().or(arguments.pcap.as_ref()).cloned().unwrap_or_default();
        return Err(RecordError::NothingOfResolver { path, others: counts.others });
    }
    Ok(())
}

impl TrafficSession<'_> {
    /// Counts messages until the source ends, or recording must end.
    fn run(&mut self, source: &Source, stop: &Stop) -> Result<(), RecordError> {
        let (mut clock, mut last_tick, mut messages) = (Clock::start(), Instant::now(), 0);
        let (mut is_drained, mut patient_until) = (true, Instant::now());
        loop {
            let event = source.events.try_recv();
            is_drained |= event.is_err();
            match event.or_else(|_| source.events.recv_timeout(TICK)) {
                Ok(Event::Ended(result)) => return Ok(result?),
                Ok(event) => self.handle(event)?,
                Err(RecvTimeoutError::Timeout) => {}
                // Only the end of its threads closes a source.
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            messages += 1;
            if messages < MESSAGES_PER_TICK && last_tick.elapsed() < TICK {
                continue;
            }
            let now = Instant::now();
            if now - last_tick > PAUSE {
                patient_until = now + PAUSE_PATIENCE;
            }
            (last_tick, messages) = (now, 0);
            if self.is_live && clock.was_set() {
                self.recorder.abandon(GapReason::ClockJump);
            }
            if stop.is_requested() && self.end.is_none() {
                self.prepare_end();
            }
            self.tick(is_drained && now >= patient_until)?;
            is_drained = false;
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(());
            }
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), RecordError> {
        match event {
            Event::Connected => {
                self.connected += 1;
                let now = unix_micros();
                if let Some(from) = self.disconnected_at.take() {
                    self.recorder.add_gap(Gap { from, until: now, reason: GapReason::Disconnected });
                }
                self.recorder.begin(now);
                self.session.print_connected(self.connected)?;
            }
            Event::Message(message) => self.count(&message),
            Event::Skipped(skipped) => {
                skipped.iter().for_each(|(reason, number)| self.skipped.add(reason, number));
            }
            Event::Disconnected { is_complete } => {
                self.connected = self.connected.saturating_sub(1);
                let now = unix_micros();
                if !is_complete {
                    self.recorder.abandon(GapReason::Disconnected);
                } else if self.connected == 0 {
                    self.recorder.end(now);
                }
                if self.connected == 0 {
                    self.disconnected_at = Some(now);
                }
            }
            Event::Ended(_) => {}
        }
        Ok(())
    }

    fn count(&mut self, message: &CapturedMessage) {
        let time = message.time_ns / 1000;
        // No message is from the future. One with such a time would make all later ones too old.
        if time > unix_micros().saturating_add(FUTURE_TOLERANCE) {
            self.future += 1;
            return;
        }
        if self.end.is_some_and(|end| time >= end) {
            return;
        }
        let response = self.recorder.add(message);
        if let (Some(response), VerificationCounter::Estimate(estimator)) = (response, &mut self.counter) {
            let verified = estimator.count(&response, time / SECOND);
            self.recorder.add_verified(time, verified);
        }
    }

    /// Sets the end of recording. Totals are written at whole seconds, and interpolated between them. So the
    /// end is after the next one, when those of the last messages are known.
    fn prepare_end(&mut self) {
        let now = unix_micros();
        let end = match self.counter {
            VerificationCounter::Totals(_) if self.is_live => (now / SECOND + 1) * SECOND + SECOND / 2,
            _ => now,
        };
        let patience = if self.is_live { end - now + TrafficRecorder::LATENESS } else { 0 };
        self.end = Some(end);
        self.deadline = Some(Instant::now() + Duration::from_micros(patience));
    }

    /// Closes windows by the clock, and stores complete ones. `is_drained`: no message waits to be counted.
    fn tick(&mut self, is_drained: bool) -> Result<(), RecordError> {
        if self.connected > 0 && is_drained {
            // After a request to end, messages from the end on are not counted.
            let last = self.end.map_or(u64::MAX, |end| end + TrafficRecorder::LATENESS);
            let now = unix_micros().min(last);
            self.recorder.begin(now);
            self.recorder.advance(now);
        }
        let now = unix_micros();
        self.store(|window| now > window.end() + TOTALS_PATIENCE)?;
        self.session.tick(self.recorder.domains())
    }

    /// Stores the closed windows whose verified signatures are known. `gives_up`: whether totals are
    /// not expected any more.
    fn store(&mut self, gives_up: impl Fn(&Window) -> bool) -> Result<(), RecordError> {
        for gap in self.recorder.take_gaps() {
            self.session.gap(gap);
        }
        while let Some(window) = self.recorder.next_window() {
            self.pending.push_back(window);
        }
        while let Some(mut window) = self.pending.pop_front() {
            if let VerificationCounter::Totals(totals) = &mut self.counter {
                let is_late = self.pending.len() >= PENDING_MAX || self.is_live && gives_up(&window);
                let reason = match totals.between(window.start, window.end())? {
                    Verified::Count(number) => {
                        window.verified = number;
                        None
                    }
                    Verified::Unknown(reason) => Some(reason),
                    Verified::Pending if is_late => Some(GapReason::NoTotals),
                    Verified::Pending => {
                        self.pending.push_front(window);
                        return Ok(());
                    }
                };
                if let Some(reason) = reason {
                    self.session.gap(Gap { from: window.start, until: window.end(), reason });
                    continue;
                }
            }
            self.session.push(&window)?;
        }
        Ok(())
    }

    /// Ends the last window, and writes all files.
    fn finish(&mut self) -> Result<(), RecordError> {
        match self.end.filter(|_| self.is_live) {
            Some(end) => self.recorder.end(end),
            None => self.recorder.end_after_last(),
        }
        // The totals of a running resolver arrive after a second.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(3) {
            self.store(|_| false)?;
            let is_expected =
                self.pending.front().is_some_and(|window| unix_micros() < window.end() + TOTALS_PATIENCE);
            if !is_expected {
                break;
            }
            std::thread::sleep(TICK);
        }
        self.is_live = true;
        self.store(|_| true)?;
        self.remark();
        self.session.flush(self.recorder.domains())
    }

    /// Adds remarks on messages that were not counted.
    fn remark(&mut self) {
        let counts = *self.recorder.counts();
        let skipped: Vec<String> =
            self.skipped.iter().map(|(reason, number)| format!("{}: {number}", reason.name())).collect();
        if !skipped.is_empty() {
            self.session.note(&format!("packets or frames skipped: {}", skipped.join(", ")));
        }
        let remarks = [
            (
                self.skipped.get(SkipReason::EndOfFile),
                "the capture ends inside a packet or frame: it was cut, and messages after its end are missing",
            ),
            (
                self.skipped.get(SkipReason::Truncated) + self.skipped.get(SkipReason::Fragment),
                "packets are truncated or fragments, and were not counted: capture complete packets (tcpdump -s 0)",
            ),
            (
                self.skipped.get(SkipReason::Gap) + self.skipped.get(SkipReason::NoConnection),
                "segments of TCP connections are missing in the capture: their messages were not counted",
            ),
            (counts.malformed, "responses are malformed: they count as responses without signatures"),
            (self.future, "messages have times in the future, and were not counted: check the clocks"),
            (counts.ignored, "messages were older than the open windows, and were not counted"),
        ];
        for (number, remark) in remarks.into_iter().filter(|(number, _)| *number > 0) {
            self.session.remark(&format!("{remark} ({number})"));
        }
        if let VerificationCounter::Estimate(estimator) = &self.counter {
            self.session.note(
                "verified signatures are estimated: each signature of a zone whose keys the recording proves is \
                 verified when it is first seen, and again after its TTL",
            );
            if estimator.unknown() > 0 {
                self.session.remark(&format!(
                    "signatures of {} RRsets are not in the estimate, because no recorded response proves the keys of \
                     their zones: begin the recording when the resolver starts",
                    estimator.unknown()
                ));
            }
        }
    }
}

/// Compares the clock of the system with the monotonic clock.
struct Clock {
    begun: Instant,
    /// Difference at the last check, in microseconds.
    difference: i128,
}

impl Clock {
    fn start() -> Self {
        let begun = Instant::now();
        Self { begun, difference: Self::difference(begun) }
    }

    fn difference(begun: Instant) -> i128 {
        i128::from(unix_micros()) - begun.elapsed().as_micros() as i128
    }

    /// Whether the clock of the system was set since the last call.
    fn was_set(&mut self) -> bool {
        let difference = Self::difference(self.begun);
        let before = std::mem::replace(&mut self.difference, difference);
        (difference - before).abs() > CLOCK_TOLERANCE
    }
}
