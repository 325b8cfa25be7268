//! Measurement methods that experiments share: counting operations in a loop, running jobs as
//! processes, running servers, running other programs, and processing complete zones.

pub(crate) mod backend;
pub(crate) mod bench;
pub(crate) mod change;
pub(crate) mod child;
pub(crate) mod cost;
pub(crate) mod echo;
pub(crate) mod examine;
pub(crate) mod foreign;
pub(crate) mod job;
pub(crate) mod key_files;
pub(crate) mod level;
pub(crate) mod loaded;
pub(crate) mod metrics;
pub(crate) mod openssl;
pub(crate) mod prepare;
pub(crate) mod probe;
pub(crate) mod prober;
pub(crate) mod server;
pub(crate) mod subject;
pub(crate) mod transfer;
pub(crate) mod zone_choice;
pub(crate) mod zone_commands;
pub(crate) mod zone_files;
pub(crate) mod zone_preparation;

pub use echo::{EchoError, EchoOptions, EchoServer};
pub use examine::{ExamineError, ExamineOptions, examine};
pub use probe::{CountError, FollowError, MeasureOptions, follow, measure};
pub use server::{ServedZone, ServerKeys, serve_command};
pub use subject::{AlgorithmChoice, Operation, Subject};

pub(crate) use change::Changes;
pub(crate) use examine::{ExamineResult, ZoneCounts};
pub(crate) use foreign::ForeignError;
pub(crate) use server::ServerError;
pub(crate) use subject::Selection;
