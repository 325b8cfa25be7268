//! One module for each command.

pub(crate) mod compare;
pub(crate) mod generate;
pub(crate) mod key;
pub(crate) mod lab;
pub(crate) mod load;
pub(crate) mod manual;
pub(crate) mod resign;
pub(crate) mod serve;
pub(crate) mod sign;
pub(crate) mod verify;
