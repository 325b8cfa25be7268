//! Times without a complete recording.

use serde::{Deserialize, Serialize};

/// A time without windows, because the recording of it is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Begin, in microseconds since 1970.
    pub from: u64,
    /// End, in microseconds since 1970.
    pub until: u64,
    /// Why it is incomplete.
    pub reason: GapReason,
}

/// Why a recording is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GapReason {
    /// A file has no message for a long time: perhaps the capture was interrupted.
    Silence,
    /// A clock jumped: messages are older than earlier ones, or the clock of the system was set.
    ClockJump,
    /// The resolver was not connected, or did not answer.
    Disconnected,
    /// The totals of verified signatures do not cover the time.
    NoTotals,
    /// Counters of the resolver are lower than before: it was restarted.
    CounterReset,
}

impl GapReason {
    /// Returns the name in the description of a recording.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Silence => "silence",
            Self::ClockJump => "clock-jump",
            Self::Disconnected => "disconnected",
            Self::NoTotals => "no-totals",
            Self::CounterReset => "counter-reset",
        }
    }

    /// Returns what happened, for messages.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Silence => "no message for more than a minute: was the capture interrupted?",
            Self::ClockJump => "a clock was set, or messages are older than earlier ones",
            Self::Disconnected => "the resolver was not connected, or did not answer",
            Self::NoTotals => "the file of verified signatures has no totals for this time",
            Self::CounterReset => "the counters of the resolver begin again: it was restarted",
        }
    }
}
