//! One module for each command.

pub(crate) mod compare;
pub(crate) mod compile;
pub(crate) mod ctl;
pub(crate) mod diff;
pub(crate) mod generate;
pub(crate) mod key;
pub(crate) mod lab;
pub(crate) mod load;
pub(crate) mod manual;
pub(crate) mod nsec5;
pub(crate) mod only_keys;
pub(crate) mod print;
pub(crate) mod query;
pub(crate) mod resign;
pub(crate) mod serve;
mod serve_check;
mod serve_configured;
mod serve_control;
mod serve_export;
mod serve_file;
mod serve_keys;
mod serve_node;
mod serve_reloads;
mod serve_run;
mod serve_settings;
mod serve_socket;
mod serve_status;
mod serve_system;
mod serve_words;
pub(crate) mod sign;
pub(crate) mod stat;
pub(crate) mod verify;

#[cfg(test)]
pub(crate) use serve_settings::limit_settings;
pub(crate) use serve_system::{PrivilegeError, check_root};
