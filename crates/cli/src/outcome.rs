//! How a command ends.

/// How a command ended that was carried out.
pub(crate) enum CommandOutcome {
    Done,
    /// The answer is "no".
    Negative,
    /// Another process has ended with this exit status, and has printed the reason.
    ChildExited(u8),
}
