//! Tests of commands that run and end: signing, verifying, keys, queries, the laboratory.

mod bad_key_files;
mod capture;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod compile;
mod config;
mod cron;
mod diff;
mod inputs;
mod key_separation;
mod key_times;
mod keys;
mod lab;
mod lab_resolvers;
mod lab_signing;
mod lab_tree;
mod load;
mod nsec5;
mod package;
mod pages;
mod plan;
mod plan_record;
mod query;
mod resign;
mod resign_bad;
mod resign_chains;
mod robust;
mod rolling_keys;
mod semantic_checks;
mod sign_output;
mod stat;
mod tour;
mod unusual;
mod validate;
mod zonemd;
