//! The commands, one module for each.

pub(crate) mod adoption;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod compile;
pub(crate) mod ctl;
pub(crate) mod diff;
pub(crate) mod enumerate;
pub(crate) mod generate;
pub(crate) mod key;
pub(crate) mod lab;
pub(crate) mod load;
pub(crate) mod manual;
pub(crate) mod plan;
pub(crate) mod print;
pub(crate) mod proxy;
pub(crate) mod query;
pub(crate) mod resolve;
pub(crate) mod serve;
pub(crate) mod sign;
pub(crate) mod stat;
pub(crate) mod validate;
pub(crate) mod verify;
