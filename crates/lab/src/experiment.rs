//! Experiments: questions with a method, described in TOML, that leave data and a report.
//!
//! A [`Definition`] says what is asked, by which `Method`, with which parameters. [`run()`] turns it into [`Results`]:
//! a record (machine, versions, command, parameters) and a table of raw data. [`store`] keeps both in a folder, as
//! JSON, CSV and Parquet, with a report that is made of them alone and can be made again.
//!
//! Another experiment is one more file in `experiments/`; another method is a variant of `Method` with a module.

pub mod compare;
mod csv;
mod definition;
mod echo;
mod error;
mod method;
mod parameters;
mod parquet_file;
mod results;
mod run;
mod signing;
pub mod store;
mod verification;

pub use crate::presentation::{PresentationError, Report};
pub use definition::{Definition, ParameterOverrides, built_in};
pub use error::{DefinitionError, RunError, StoreError};
pub use results::{Results, run};
pub use run::{RunOptions, Step};
