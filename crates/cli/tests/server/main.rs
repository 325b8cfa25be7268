//! The server from outside: configuration, control, logs, metrics, privileges, limits.

mod added_zones;
mod chaos;
mod clients;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod cookies;
mod log;
mod metrics;
mod operators;
mod privileges;
mod reload;
mod serve_file;
mod serve_online;
mod serve_says;
mod tap;
mod tls_validity;
mod tls_versions;
mod told;
mod watchdog;
