//! Windows of time, from messages with times.
//!
//! Full windows begin at multiples of their length. The first and the last window of a recording
//! without gaps are shorter. A window is closed when messages are [`LATENESS`] later than its end,
//! because messages of several threads and connections are not in order.

use super::gap::{Gap, GapReason};
use crate::cost_model::recording::Window;
use std::collections::VecDeque;

/// Maximum time by which a message may be older than an earlier one, in microseconds. Resolvers
/// write dnstap frames after a second at the latest.
pub(super) const LATENESS: u64 = 3_000_000;
/// Maximum time without a message in a file, in microseconds. After a longer time it is not known
/// whether the resolver or the capture paused.
pub(super) const SILENCE: u64 = 60_000_000;

/// What shows that time has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSource {
    /// The messages of a file. A message that is older than an earlier one by more than 3 s shows that
    /// a clock was set, and a long time without a message that the capture may have paused.
    Messages,
    /// The clock, which the caller watches (`Windows::advance`). Messages that arrive too late are
    /// left out. The caller leaves out messages from the future.
    Clock,
}

/// The open and the closed windows.
#[derive(Debug)]
pub(super) struct Windows {
    /// Length of a full window, in microseconds.
    length: u64,
    time_source: TimeSource,
    /// The open windows: without gaps, the earliest first. Empty outside of a recording.
    open: VecDeque<Window>,
    /// The latest time of a message or of the clock.
    latest: u64,
    /// Earlier times belong to closed windows or gaps.
    closed_until: u64,
    closed: VecDeque<Window>,
    gaps: Vec<Gap>,
    /// Messages outside of windows.
    ignored: u64,
}

impl Windows {
    pub(super) const fn new(length: u64, time_source: TimeSource) -> Self {
        Self {
            length,
            time_source,
            open: VecDeque::new(),
            latest: 0,
            closed_until: 0,
            closed: VecDeque::new(),
            gaps: Vec::new(),
            ignored: 0,
        }
    }

    /// Leaves out all times before this one.
    pub(super) fn continue_after(&mut self, time: u64) {
        self.closed_until = self.closed_until.max(time);
    }

    /// Begins a recording at a time, unless one has begun or the time is in an earlier one.
    pub(super) fn begin(&mut self, time: u64) {
        if self.open.is_empty() && time >= self.closed_until {
            self.open.push_back(self.window_from(time));
            self.latest = time;
        }
    }

    /// The window from a time to the next multiple of the length.
    fn window_from(&self, start: u64) -> Window {
        let length = self.length - start % self.length;
        Window { start, length, response_octets: Some(0), ..Window::default() }
    }

    /// Returns the window of a message, or `None` if it belongs to none. The recording of a file begins
    /// with its first message.
    pub(super) fn at(&mut self, time: u64) -> Option<&mut Window> {
        if self.time_source == TimeSource::Messages {
            self.follow(time);
        }
        if self.time_source == TimeSource::Clock
            && !self.open.is_empty()
            && time > self.latest.saturating_add(SILENCE)
        {
            // The program did not run for a minute.
            self.abandon(GapReason::ClockJump);
            self.begin(time);
        }
        if self.open.front().is_none_or(|first| time < first.start) {
            self.ignored += 1;
            return None;
        }
        self.latest = self.latest.max(time);
        self.extend_to(time);
        self.open.iter_mut().find(|window| time < window.end())
    }

    /// Ends the recording before a message whose time does not follow the earlier ones, and begins it
    /// with the message.
    fn follow(&mut self, time: u64) {
        if !self.open.is_empty() && time.saturating_add(LATENESS) < self.latest {
            self.abandon(GapReason::ClockJump);
        } else if !self.open.is_empty() && time > self.latest.saturating_add(SILENCE) {
            let end = self.latest + 1;
            self.end(end);
            self.gaps.push(Gap { from: end, until: time, reason: GapReason::Silence });
            self.closed_until = time;
        }
        self.begin(time);
    }

    /// Adds open windows up to the one of a time, which is at most [`SILENCE`] after the last one
    /// unless the clock of the system has advanced the windows.
    fn extend_to(&mut self, time: u64) {
        while let Some(end) = self.open.back().map(Window::end).filter(|end| *end <= time) {
            self.open.push_back(self.window_from(end));
        }
    }

    /// Closes the windows that are complete when the clock shows this time. Windows without messages
    /// are closed too, so the source must be one that would have delivered them.
    pub(super) fn advance(&mut self, now: u64) {
        if self.open.is_empty() {
            return;
        }
        if now > self.latest.saturating_add(SILENCE) {
            // The program did not run for a minute.
            self.abandon(GapReason::ClockJump);
            self.begin(now);
            return;
        }
        self.latest = self.latest.max(now);
        self.extend_to(now);
        self.close_complete();
    }

    /// Closes the windows whose messages have all arrived.
    pub(super) fn close_complete(&mut self) {
        while self.open.len() > 1 && self.open[0].end() + LATENESS <= self.latest {
            self.close_first();
        }
    }

    fn close_first(&mut self) {
        if let Some(window) = self.open.pop_front() {
            self.closed_until = window.end();
            self.closed.push_back(window);
        }
    }

    /// Ends the recording at a time. The last window is as long as it was recorded. Later windows are
    /// removed.
    pub(super) fn end(&mut self, time: u64) {
        while self.open.front().is_some_and(|window| window.end() <= time) {
            self.close_first();
        }
        if let Some(window) = self.open.front_mut().filter(|window| window.start < time) {
            window.length = time - window.start;
            self.close_first();
        }
        self.open.clear();
    }

    /// Ends the recording without its open windows, which are incomplete.
    pub(super) fn abandon(&mut self, reason: GapReason) {
        let Some(first) = self.open.front() else { return };
        let (from, until) = (first.start, self.latest.max(first.start) + 1);
        self.gaps.push(Gap { from, until, reason });
        self.open.clear();
        // Times up to the latest one were, or may have been, in the open windows.
        self.closed_until = until;
    }

    pub(super) fn take_closed(&mut self) -> Option<Window> {
        self.closed.pop_front()
    }

    pub(super) fn take_gaps(&mut self) -> Vec<Gap> {
        std::mem::take(&mut self.gaps)
    }

    pub(super) fn add_gap(&mut self, gap: Gap) {
        self.gaps.push(gap);
    }

    /// The latest time of a message or of the clock.
    pub(super) const fn latest(&self) -> u64 {
        self.latest
    }

    pub(super) const fn ignored(&self) -> u64 {
        self.ignored
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000;
    const LENGTH: u64 = 10 * SECOND;

    fn closed(windows: &mut Windows) -> Vec<(u64, u64, u64)> {
        std::iter::from_fn(|| windows.take_closed())
            .map(|window| (window.start, window.length, window.queries))
            .collect()
    }

    fn count(windows: &mut Windows, time: u64) {
        if let Some(window) = windows.at(time) {
            window.queries += 1;
        }
        windows.close_complete();
    }

    #[test]
    fn windows_begin_at_multiples_and_have_no_gaps() {
        let mut windows = Windows::new(LENGTH, TimeSource::Messages);
        for time in [1013 * SECOND, 1019 * SECOND, 1020 * SECOND, 1019 * SECOND + 1, 1055 * SECOND] {
            count(&mut windows, time);
        }
        windows.end(1055 * SECOND + 1);
        let wanted = [
            (1013 * SECOND, 7 * SECOND, 3),
            (1020 * SECOND, LENGTH, 1),
            (1030 * SECOND, LENGTH, 0),
            (1040 * SECOND, LENGTH, 0),
            (1050 * SECOND, 5 * SECOND + 1, 1),
        ];
        assert_eq!(closed(&mut windows), wanted);
        assert!(windows.take_gaps().is_empty());
    }

    #[test]
    fn a_long_silence_is_a_gap() {
        let mut windows = Windows::new(LENGTH, TimeSource::Messages);
        for time in [1000 * SECOND, 1061 * SECOND] {
            count(&mut windows, time);
        }
        windows.end(1062 * SECOND);
        assert_eq!(closed(&mut windows), [(1000 * SECOND, 1, 1), (1061 * SECOND, SECOND, 1)]);
        let gap = Gap { from: 1000 * SECOND + 1, until: 1061 * SECOND, reason: GapReason::Silence };
        assert_eq!(windows.take_gaps(), [gap]);
    }

    #[test]
    fn messages_from_before_a_clock_jump_back_are_not_counted_twice() {
        let mut windows = Windows::new(LENGTH, TimeSource::Messages);
        for time in [1000, 1014, 1001, 1013, 1016, 1031] {
            count(&mut windows, time * SECOND);
        }
        windows.end(1032 * SECOND);
        // The second window is incomplete. Recording continues after the latest time.
        assert_eq!(
            closed(&mut windows),
            [
                (1000 * SECOND, LENGTH, 1),
                (1016 * SECOND, 4 * SECOND, 1),
                (1020 * SECOND, LENGTH, 0),
                (1030 * SECOND, 2 * SECOND, 1)
            ]
        );
        let gap = Gap { from: 1010 * SECOND, until: 1014 * SECOND + 1, reason: GapReason::ClockJump };
        assert_eq!((windows.take_gaps(), windows.ignored()), (vec![gap], 2));
    }

    #[test]
    fn a_pause_of_the_program_is_a_gap() {
        let mut windows = Windows::new(LENGTH, TimeSource::Messages);
        windows.begin(1000 * SECOND);
        windows.advance(1020 * SECOND);
        windows.advance(1120 * SECOND);
        windows.end(1121 * SECOND);
        assert_eq!(closed(&mut windows), [(1000 * SECOND, LENGTH, 0), (1120 * SECOND, SECOND, 0)]);
        assert_eq!(windows.take_gaps().len(), 1);
    }

    #[test]
    fn messages_that_arrive_too_late_are_left_out() {
        let mut windows = Windows::new(LENGTH, TimeSource::Clock);
        count(&mut windows, 999 * SECOND);
        windows.begin(1000 * SECOND);
        for time in [990, 1001, 1004] {
            count(&mut windows, time * SECOND);
        }
        windows.advance(1012 * SECOND);
        count(&mut windows, 1009 * SECOND);
        windows.advance(1013 * SECOND);
        count(&mut windows, 1009 * SECOND);
        windows.end(1014 * SECOND);
        assert_eq!(closed(&mut windows), [(1000 * SECOND, LENGTH, 3), (1010 * SECOND, 4 * SECOND, 0)]);
        assert_eq!((windows.ignored(), windows.take_gaps().len()), (3, 0));
    }

    #[test]
    fn messages_that_waited_while_the_program_was_paused_are_counted() {
        let mut windows = Windows::new(LENGTH, TimeSource::Clock);
        windows.begin(1000 * SECOND);
        for time in [1008, 1022, 1031] {
            count(&mut windows, time * SECOND);
        }
        windows.advance(1034 * SECOND);
        windows.end(1034 * SECOND);
        let counts: Vec<u64> = closed(&mut windows).into_iter().map(|(.., count)| count).collect();
        assert_eq!((counts, windows.ignored()), (vec![1, 0, 1, 1], 0));
    }

    proptest! {
        #[test]
        fn windows_are_in_order_and_each_message_is_in_one_or_ignored(
            steps in proptest::collection::vec(-20i64..100, 0..200),
            advance in any::<bool>(),
        ) {
            let mut windows = Windows::new(LENGTH, TimeSource::Messages);
            let mut time = 1_000 * SECOND as i64;
            for step in &steps {
                time += step * SECOND as i64 / 7;
                count(&mut windows, time as u64);
                if advance {
                    windows.advance(time as u64);
                }
                prop_assert!(windows.open.len() <= 2 + (SILENCE / LENGTH) as usize);
            }
            // Abandoned windows are those of gaps.
            windows.end(u64::MAX / 2);
            let found = closed(&mut windows);
            prop_assert!(found.is_sorted_by(|a, b| a.0 + a.1 <= b.0), "{found:?}");
            prop_assert!(found.iter().all(|(_, length, _)| *length > 0));
            let counted: u64 = found.iter().map(|(.., count)| count).sum();
            prop_assert!(counted + windows.ignored() <= steps.len() as u64);
            if windows.take_gaps().iter().all(|gap| gap.reason == GapReason::Silence) {
                prop_assert_eq!(counted + windows.ignored(), steps.len() as u64);
            }
        }
    }
}
