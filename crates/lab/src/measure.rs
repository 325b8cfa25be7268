//! Ways of measuring that experiments share: operations in a loop, jobs as processes, servers, other programs, and what is
//! done with whole zones.

pub(crate) mod bench;
pub(crate) mod change;
pub(crate) mod echo;
pub(crate) mod examine;
pub(crate) mod foreign;
pub(crate) mod job;
pub(crate) mod level;
pub(crate) mod openssl;
pub(crate) mod probe;
pub(crate) mod server;
pub(crate) mod subject;
pub(crate) mod transfer;

pub use bench::OperationError;
pub use change::{Changes, change};
pub use echo::{EchoError, EchoOptions, EchoServer};
pub use examine::{ExamineError, ExamineOptions, Examined, ZoneCounts, examine};
pub use foreign::{ForeignError, ForeignFacts, RowError};
pub use job::JobError;
pub use level::{Level, LevelError, LevelProgram};
pub use probe::{
    CountError, Counted, FollowError, MeasureOptions, Measurement, ProbeReport, follow, measure,
};
pub use server::ServerError;
pub use subject::{Choice, ChoiceError, Operation, OperationNameError, Selection, Subject, SubjectError};
pub use transfer::{Transfer, pack, transfer};
