//! Outcome of a command.

/// Commit of this program, as `git describe` prints it; `unknown` outside of a git repository.
pub(crate) const COMMIT: &str = env!("NONESUCH_COMMIT");

/// Returns the command line for a record. Arguments that are not UTF-8 contain U+FFFD.
pub(crate) fn command_line() -> String {
    let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    arguments.collect::<Vec<_>>().join(" ")
}

/// The outcome of a command that ran without an error.
pub(crate) enum CommandOutcome {
    /// The answer of the command is positive, or it has none.
    Done,
    /// The answer of the command is negative.
    Negative,
    /// A child process has ended with this exit status and has printed the reason.
    ChildExited(u8),
}
