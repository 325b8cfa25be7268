//! Tests of the server: configuration, control, logs, metrics, privileges, limits.

mod added_zones;
mod chaos;
mod check_authoritative;
mod check_resolver;
mod check_zone;
mod clients;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod cookies;
mod dnstap;
mod enumerate;
mod log;
mod metrics;
mod operators;
mod privileges;
mod proxy;
mod reload;
mod reporting;
mod resolve;
mod resolve_tls;
mod serve_file;
mod serve_online;
mod serve_output;
mod tls_validity;
mod tls_versions;
mod watchdog;
