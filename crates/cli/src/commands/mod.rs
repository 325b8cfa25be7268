//! One module for each command.

pub(crate) mod compare;
pub(crate) mod compile;
pub(crate) mod diff;
pub(crate) mod generate;
pub(crate) mod key;
pub(crate) mod lab;
pub(crate) mod load;
pub(crate) mod manual;
pub(crate) mod nsec5;
mod publish;
pub(crate) mod resign;
pub(crate) mod serve;
pub(crate) mod sign;
pub(crate) mod stat;
pub(crate) mod verify;
