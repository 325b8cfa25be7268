//! Arguments of `ctl`.

use super::values::{ArgumentError, ZONE_SETTING, parse_duration_in};
use clap::{Args, Subcommand};
use nonesuch_proto::Name;
use nonesuch_resolver::MAX_NEGATIVE_ANCHOR_LIFETIME;
use std::path::PathBuf;
use toml::{Table, Value};

/// The configuration in which `ctl` looks for the control socket without `--config`.
pub(crate) const DEFAULT_CONFIGURATION: &str = "/etc/nonesuch/nonesuch.toml";
/// The control socket if [`DEFAULT_CONFIGURATION`] cannot be read or names none.
pub(crate) const DEFAULT_SOCKET: &str = "/run/nonesuch/control";
/// Default of the maximum time without a message from the server, in seconds.
const DEFAULT_TIMEOUT_SECONDS: u64 = 60;

#[derive(Debug, Args)]
pub(crate) struct ControlArguments {
    /// Connect to this control socket.
    ///
    /// Default: with --config, control-socket in that file. Otherwise control-socket in
    /// /etc/nonesuch/nonesuch.toml, or /run/nonesuch/control if that file cannot be read or does
    /// not set it.
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "config")]
    pub(crate) socket: Option<PathBuf>,
    /// Read the path of the control socket from this configuration of the server.
    ///
    /// Only control-socket is read. The command fails if the file does not set it.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Stop waiting if the server sends no message for this time.
    ///
    /// In seconds, or a duration such as 5m; 1 s to 1 day. While the server works on the request,
    /// it sends a message every second.
    #[arg(long, value_name = "DURATION", global = true, default_value_t = DEFAULT_TIMEOUT_SECONDS, value_parser = parse_timeout)]
    pub(crate) timeout: u64,
    /// Print JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: ControlCommand,
}

fn parse_timeout(text: &str) -> Result<u64, ArgumentError> {
    parse_duration_in(text, 1..=86_400).map(u64::from)
}

#[derive(Debug, Subcommand)]
pub(crate) enum ControlCommand {
    /// Show the status of the server: zones, activities, the last reload.
    ///
    /// With a zone: same as `ctl zone status`.
    Status {
        /// Show the status of this zone.
        zone: Option<Name>,
    },
    /// Reload the configuration and all zones, or one zone.
    Reload {
        /// Reload only this zone.
        zone: Option<Name>,
    },
    /// Show, add, remove, transfer or export zones.
    #[command(subcommand)]
    Zone(ControlZoneCommand),
    /// List, add or remove the negative trust anchors of a resolver.
    #[command(subcommand)]
    NegativeAnchor(NegativeAnchorCommand),
    /// Remove cached data of a resolver.
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Remove the stored files of all zones that are not configured.
    Purge,
    /// Stop the server.
    Stop,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ControlZoneCommand {
    /// Show serial, state, verification and expiration of signatures.
    Status {
        /// Show only this zone. Default: all zones.
        zone: Option<Name>,
    },
    /// Query the primaries of a zone for a newer version.
    Refresh {
        /// Name of the zone.
        zone: Name,
    },
    /// Transfer the complete zone from its primaries.
    Retransfer {
        /// Name of the zone.
        zone: Name,
    },
    /// Send NOTIFY to the secondaries in also-notify, even if the zone has not changed.
    Notify {
        /// Name of the zone.
        zone: Name,
    },
    /// Add a zone to the running server and to added-zones-file of its configuration.
    ///
    /// The keys are those of a zone table in the configuration, such as file, primaries or
    /// template, except catalog, catalog-zone and the keys that need one of them: group,
    /// catalog-next, catalog-former, member-template and group-templates. A value that is valid
    /// TOML is read as TOML, any other value as a string, so file=/srv/example.zone needs no
    /// quotation marks. Relative paths are relative to the directory of added-zones-file. Exit
    /// status: 1 if the zone is added but cannot be loaded.
    Add {
        /// Name of the zone.
        zone: Name,
        /// Set this key of the zone, for example file=/srv/example.zone or
        /// 'primaries=["192.0.2.1"]'.
        #[arg(value_name = "KEY=VALUE", required = true, value_parser = parse_setting)]
        settings: Vec<(String, Value)>,
    },
    /// Remove a zone that `zone add` added.
    ///
    /// The server stops serving the zone. Its stored version stays until `zone purge`.
    Remove {
        /// Name of the zone.
        zone: Name,
    },
    /// Write the last published version of a zone as a zone file.
    ///
    /// The file does not contain signatures and records that are generated online.
    Export {
        /// Name of the zone.
        zone: Name,
        /// Write to this file, which must not exist; - for standard output, the default.
        file: Option<PathBuf>,
    },
    /// Remove the stored files of a zone that is not configured.
    ///
    /// These are its stored version, journal and timers.
    Purge {
        /// Name of the zone.
        zone: Name,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Remove the data of all names at and below a name, so that they are queried again.
    ///
    /// Removes RRsets, negative answers, failures, denial records and keys of zones. Keeps what the
    /// resolver knows about servers.
    Flush {
        /// Remove only the data of names at and below this one. Default: all data.
        name: Option<Name>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum NegativeAnchorCommand {
    /// Do not validate names at and below a zone, whose operator repairs its signatures (RFC 7646).
    ///
    /// The negative trust anchor ends after its lifetime, when the zone validates again, or when the
    /// resolver stops.
    Add {
        /// Name of the zone.
        zone: Name,
        /// End after this time.
        ///
        /// In seconds, or a duration such as 4h; at most 7 days.
        #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_lifetime)]
        lifetime: u32,
        /// Do not end when the zone validates again.
        ///
        /// The check is of the DNSKEY and SOA RRsets of the zone only.
        #[arg(long)]
        no_recheck: bool,
    },
    /// Validate a zone again.
    ///
    /// A negative trust anchor of the configuration begins again when the resolver starts.
    Remove {
        /// Name of the zone.
        zone: Name,
    },
    /// List the negative trust anchors.
    List,
}

fn parse_lifetime(text: &str) -> Result<u32, ArgumentError> {
    parse_duration_in(text, 1..=MAX_NEGATIVE_ANCHOR_LIFETIME as u32)
}

/// Reads a key and its value. A value that is not TOML is a string.
fn parse_setting(text: &str) -> Result<(String, Value), ArgumentError> {
    let (key, value) = text.split_once('=').ok_or(ArgumentError::Expected(ZONE_SETTING))?;
    let (key, value) = (key.trim(), value.trim());
    let is_key = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-';
    if key.is_empty() || !key.bytes().all(is_key) {
        return Err(ArgumentError::NotAZoneKey(key.to_owned()));
    }
    // Only one line is read as TOML, because a value of several lines could set further keys.
    let read = (!value.contains('\n')).then(|| format!("value = {value}").parse::<Table>().ok()).flatten();
    let value = read.and_then(|mut table| table.remove("value")).unwrap_or_else(|| Value::from(value));
    Ok((key.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_toml_or_text() {
        let read = |text: &str| parse_setting(text).map(|(key, value)| (key, value.to_string()));
        for (text, key, value) in [
            ("file=/srv/a b.zone", "file", "\"/srv/a b.zone\""),
            ("file = \"x\"", "file", "\"x\""),
            ("primaries=[\"192.0.2.1\", '::1']", "primaries", "[\"192.0.2.1\", \"::1\"]"),
            ("request-ixfr=false", "request-ixfr", "false"),
            ("transfer-records-max=10", "transfer-records-max", "10"),
            ("primaries=192.0.2.1", "primaries", "\"192.0.2.1\""),
            ("file=a=b", "file", "\"a=b\""),
            ("file=", "file", "\"\""),
            // Only one key, for every value.
            ("file=1\nverify=\"none\"", "file", "\"\"\"\n1\nverify=\"none\"\"\"\""),
        ] {
            assert_eq!(read(text), Ok((key.to_owned(), value.to_owned())), "{text}");
        }
        for wrong in ["", "file", "=x", "a.b=x", "[zone]\nx=1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
