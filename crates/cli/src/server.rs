//! The server that `nonesuch serve` runs: start, main loop, reload, control socket and stop.

pub(crate) mod background;
pub(crate) mod check;
mod control;
mod daemon;
mod error;
mod keys;
mod main_loop;
mod open_files;
mod output;
mod panics;
mod preflight;
mod privileges;
mod reload;
mod reload_status;
pub(crate) mod resolver;
mod settings;
mod signals;
mod snapshot;
pub(crate) mod startup;
mod systemd;

pub(crate) use error::ServerError;
#[cfg(test)]
pub(crate) use settings::limit_settings;
