//! Start of a server, from a configuration or from one file and the arguments. Both assemble the
//! same parts.

mod assemble;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod from_config;
