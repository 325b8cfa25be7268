//! Arguments of `check`: one file for each kind of check, and the options that all kinds have.

mod authoritative;
mod proxy;
mod resolver;
mod zone;

pub(crate) use authoritative::CheckAuthoritativeArguments;
pub(crate) use proxy::CheckProxyArguments;
pub(crate) use resolver::CheckResolverArguments;
pub(crate) use zone::CheckZoneArguments;

use super::values::{ArgumentError, parse_seconds};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand};
use nonesuch_lab::check::Profile;
use std::path::PathBuf;

/// The kinds of checks.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckCommand {
    /// Check an authoritative name server with queries for one of its zones.
    ///
    /// Prints a line for each item: pass, FAIL, or not testable with the reason. Exit status: 0 if no
    /// item failed; 1 if an item failed; 2 if the check cannot start.
    Authoritative(Box<CheckAuthoritativeArguments>),
    /// Check a DNS proxy, as in routers: the check is its client and the resolver behind it.
    ///
    /// Prints a line for each item: pass, FAIL, or not testable with the reason. Exit status: 0 if no
    /// item failed; 1 if an item failed; 2 if the check cannot start.
    Proxy(Box<CheckProxyArguments>),
    /// Check a validating resolver, which must query the servers that the check starts.
    ///
    /// Prints a line for each item: pass, FAIL, or not testable with the reason. Exit status: 0 if no
    /// item failed; 1 if an item failed; 2 if the check cannot start.
    Resolver(Box<CheckResolverArguments>),
    /// Check the delegation of a zone: parent and zone, all servers, the chain of trust.
    ///
    /// Finds the servers of the parent zone and of the zone, and queries each of them. Prints a line for
    /// each item: pass, FAIL, or not testable with the reason. Exit status: 0 if no item failed; 1 if an
    /// item failed; 2 if the check cannot start.
    Zone(Box<CheckZoneArguments>),
}

/// Options of all kinds of checks.
#[derive(Clone, Debug, Args)]
pub(crate) struct CheckOptions {
    /// Check the items of this profile: jprs, full or quick.
    ///
    /// jprs: the items of the verification report of JPRS. full: all items. quick: items that need a
    /// few queries.
    #[arg(long, default_value = "full",
        value_parser = PossibleValuesParser::new(PROFILES).map(|name| profile(&name)))]
    pub(crate) profile: Profile,
    /// Check only this item; may be repeated. For example A-85.
    #[arg(long, value_name = "ITEM")]
    pub(crate) item: Vec<String>,
    /// Check only this item, and print its method, its rules and all messages; may be repeated.
    #[arg(long, value_name = "ITEM", conflicts_with = "json")]
    pub(crate) explain: Vec<String>,
    /// Print all items with rules and methods, and send nothing.
    #[arg(long)]
    pub(crate) list: bool,
    /// Print JSON, with all messages.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the results as JUnit XML to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the results as a page to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Set the time limit for a response: seconds, 0.01 to 60.
    #[arg(long, value_name = "DURATION", default_value_t = 2.0, value_parser = parse_timeout)]
    pub(crate) timeout: f64,
}

/// Names of the profiles.
const PROFILES: [&str; 3] = [Profile::ALL[0].1, Profile::ALL[1].1, Profile::ALL[2].1];

/// The profile with this name, which is one of [`PROFILES`].
fn profile(name: &str) -> Profile {
    Profile::ALL.iter().find(|(_, known)| *known == name).map_or_else(Profile::default, |(found, _)| *found)
}

fn parse_timeout(text: &str) -> Result<f64, ArgumentError> {
    match parse_seconds(text)? {
        seconds if (0.01..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err(ArgumentError::Expected("0.01 to 60 seconds")),
    }
}
