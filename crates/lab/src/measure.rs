//! Measurement methods that experiments share: counting operations in a loop, running jobs as
//! processes, running servers, running other programs, and processing complete zones.

pub(crate) mod bench;
pub(crate) mod change;
pub(crate) mod child;
pub(crate) mod echo;
pub(crate) mod examine;
pub(crate) mod foreign;
pub(crate) mod job;
pub(crate) mod key_files;
pub(crate) mod level;
pub(crate) mod openssl;
pub(crate) mod probe;
pub(crate) mod prober;
pub(crate) mod server;
pub(crate) mod subject;
pub(crate) mod transfer;

pub use echo::{EchoError, EchoOptions, EchoServer};
pub use examine::{ExamineError, ExamineOptions, examine};
pub use probe::{CountError, FollowError, MeasureOptions, follow, measure};
pub use server::{ServedZone, ServerKeys, serving};
pub use subject::{Choice, Operation, Subject};

pub(crate) use change::Changes;
pub(crate) use examine::{ExamineResult, ZoneCounts};
pub(crate) use foreign::ForeignError;
pub(crate) use probe::CountResult;
pub(crate) use server::ServerError;
pub(crate) use subject::Selection;
