//! Experiments: TOML files that describe a question, a method and parameters. A run writes data and
//! a report.
//!
//! A [`Definition`] contains the question, the `Method` and its parameters. [`run()`] runs it and
//! returns [`Results`]: a record (machine, versions, command, parameters) and a table of raw data.
//! [`store`] writes both to a directory, as JSON, CSV and Parquet, with a report. The report
//! depends only on the record and the data, so it can be generated again.
//!
//! To add an experiment, add a file to `experiments/`. To add a method, add a module and a variant
//! of `Method`.

pub mod compare;
pub(crate) mod csv;
mod definition;
mod echo;
mod error;
mod merge;
mod method;
pub mod overview;
mod parameters;
pub(crate) mod parquet_file;
mod properties;
mod resolver_load;
mod resolver_model;
mod results;
mod run;
mod server_load;
mod signing;
pub mod store;
mod validation_attacks;
mod verification;
mod zone_programs;

pub use crate::presentation::{PresentationError, Report};
pub use csv::CsvError;
pub use definition::{Definition, ParameterOverrides, built_in};
pub use error::{DefinitionError, RunError, StoreError};
pub use merge::{MergeError, Runs, merge};
pub use results::{Results, run};
pub use run::{RunOptions, Step};
