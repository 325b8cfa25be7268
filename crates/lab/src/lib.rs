//! The laboratory: load generation, zone generation, comparison, experiments and reports.
#![forbid(unsafe_code)]

pub mod compare;
pub mod experiment;
pub mod generate;
pub mod load;
mod machine;
pub mod process;
pub mod report;
