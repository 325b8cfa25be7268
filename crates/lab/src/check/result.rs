//! The results of items.

use super::{Evidence, Item, Profile};
use std::time::{Duration, SystemTime};

/// The result of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server obeys the rule. The text has the observations that an operator needs, for example
    /// "limited by policy (RFC 9715), answered over TCP"; otherwise it is empty.
    Pass(String),
    /// The server violates the rule: the expected and the observed behaviour.
    Fail(String),
    /// The item could not be tested; completes the sentence "could not verify this because …".
    NotTestable(String),
}

impl Outcome {
    /// A pass without a note.
    #[must_use]
    pub const fn pass() -> Self {
        Self::Pass(String::new())
    }

    /// The word for the result: "pass", "fail" or "not testable".
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pass(_) => "pass",
            Self::Fail(_) => "fail",
            Self::NotTestable(_) => "not testable",
        }
    }

    /// The text of the result; empty for a pass without a note.
    #[must_use]
    pub fn text(&self) -> &str {
        let (Self::Pass(text) | Self::Fail(text) | Self::NotTestable(text)) = self;
        text
    }
}

/// The result of one item.
#[derive(Debug)]
pub struct ItemResult {
    /// The item.
    pub item: Item,
    /// The result.
    pub outcome: Outcome,
    /// The messages that were sent and received.
    pub evidence: Evidence,
    /// Time that the item took.
    pub elapsed: Duration,
}

/// The results of a check.
#[derive(Debug)]
pub struct CheckReport {
    /// The kind of the subject: "resolver", "authoritative server", "proxy", "zone".
    pub kind: &'static str,
    /// The server with its port, or the zone.
    pub subject: String,
    /// The items that were selected.
    pub profile: Profile,
    /// The start of the check.
    pub started_at: SystemTime,
    /// Terms and values about the server, such as the announced UDP payload size.
    pub facts: Vec<(String, String)>,
    /// The results, in the order of the items.
    pub results: Vec<ItemResult>,
}

/// Numbers of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Items that passed.
    pub passed: usize,
    /// Items that failed.
    pub failed: usize,
    /// Items that could not be tested.
    pub not_testable: usize,
}

impl CheckReport {
    /// Counts the results.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let count = |name| self.results.iter().filter(|result| result.outcome.name() == name).count();
        Summary { passed: count("pass"), failed: count("fail"), not_testable: count("not testable") }
    }
}
