//! How a command ends.

/// How a command ended that was carried out.
pub(crate) enum Outcome {
    Done,
    /// The answer is "no".
    No,
    /// Another process has ended with this exit status, and has printed the reason.
    Ended(u8),
}
