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
mod publish;
pub(crate) mod query;
pub(crate) mod resign;
pub(crate) mod serve;
mod serve_check;
mod serve_configured;
mod serve_control;
mod serve_node;
mod serve_online;
mod serve_system;
pub(crate) mod sign;
pub(crate) mod stat;
pub(crate) mod verify;

#[cfg(test)]
pub(crate) use serve_node::limit_settings;
pub(crate) use serve_system::PrivilegeError;
