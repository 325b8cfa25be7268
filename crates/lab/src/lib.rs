//! The laboratory: load generation, zone generation, comparison and reports.
#![forbid(unsafe_code)]

pub mod compare;
pub mod generate;
pub mod load;
pub mod process;
pub mod report;
