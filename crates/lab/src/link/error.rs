//! Errors of simulated paths.

use std::io;

use nonesuch_net::namespace::NamespaceError;

use super::options::OptionsError;

/// Why a simulated path cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// An option is out of range.
    #[error("the path from {from} cannot be simulated: {source}")]
    Options {
        /// The end of the path from which the direction starts.
        from: super::End,
        /// The fault.
        source: OptionsError,
    },
    /// A network namespace or its interface cannot be used.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A program cannot be started at one end of the path.
    #[error("{program}: cannot be started: {source}; check that it is installed")]
    Spawn {
        /// The program.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The thread that forwards packets cannot be started.
    #[error(
        "cannot start the thread that forwards packets: {source}; raise the limits on threads and open files"
    )]
    Start {
        /// The error of the system.
        source: io::Error,
    },
    /// A device could not be read.
    #[error("cannot forward packets between the network namespaces: {source}; create a new link")]
    Forward {
        /// The error of the system.
        source: io::Error,
    },
    /// The thread that forwards packets ended by a panic.
    #[error("the thread that forwards packets panicked: this is a bug in the program; please report it")]
    Panicked,
}
