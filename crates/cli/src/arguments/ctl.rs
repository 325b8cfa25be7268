//! Arguments of `ctl`.

use super::values::{ArgumentError, ZONE_SETTING, parse_duration_in};
use clap::{Args, Subcommand};
use nonesuch_proto::Name;
use std::path::PathBuf;
use toml::{Table, Value};

/// Where `ctl` looks for the configuration of the server.
pub(crate) const CONFIGURATION: &str = "/etc/nonesuch/nonesuch.toml";
/// The control socket where no configuration names one.
pub(crate) const SOCKET: &str = "/run/nonesuch/control";
/// Seconds in which a server gives a sign of life.
const TIMEOUT: u64 = 60;

#[derive(Debug, Args)]
pub(crate) struct ControlArguments {
    /// The server's control socket. Without it and without --config it is the one that /etc/nonesuch/nonesuch.toml names, else
    /// /run/nonesuch/control.
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "config")]
    pub(crate) socket: Option<PathBuf>,
    /// The server's configuration, of which nothing but control-socket is read.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Give up when the server has given no sign of life for so long. While it works on what was asked, it gives one every
    /// second.
    #[arg(long, value_name = "DURATION", global = true, default_value_t = TIMEOUT, value_parser = parse_timeout)]
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
    /// What the server does: zones, what goes on, how the last reload went. With a zone: as `ctl zone status`.
    Status {
        /// The zone.
        zone: Option<Name>,
    },
    /// Read the configuration and all zones again, or one zone alone.
    Reload {
        /// The zone.
        zone: Option<Name>,
    },
    /// What is known of zones.
    #[command(subcommand)]
    Zone(ControlZoneCommand),
    /// Remove what is kept of all zones that are not there any longer.
    Purge,
    /// Stop the server.
    Stop,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ControlZoneCommand {
    /// Serial, state, what was verified, when signatures expire.
    Status {
        /// The zone; without it all zones.
        zone: Option<Name>,
    },
    /// Ask the primaries of a zone whether it has changed.
    Refresh {
        /// The zone.
        zone: Name,
    },
    /// Transfer a zone as a whole from its primaries.
    Retransfer {
        /// The zone.
        zone: Name,
    },
    /// Send NOTIFY to the secondaries of a zone, those of also-notify, whether or not the zone has changed.
    Notify {
        /// The zone.
        zone: Name,
    },
    /// Add a zone while the server runs, and write it into the configuration's added-zones-file.
    ///
    /// The keys are those of a zone's table in the configuration: file, primaries, template and all others but those of catalogs. A
    /// value is TOML; a value that is no TOML is a text, so that `file=/srv/example.zone` needs no quotes. Relative paths are taken from the
    /// folder of added-zones-file. Exit status 1 where the zone is added and cannot be loaded.
    Add {
        /// The zone.
        zone: Name,
        /// A key and its value, as file=/srv/example.zone or 'primaries=["192.0.2.1"]'.
        #[arg(value_name = "KEY=VALUE", required = true, value_parser = parse_setting)]
        settings: Vec<(String, Value)>,
    },
    /// Remove a zone that `zone add` has added, and serve it no longer. Its stored version stays until `zone purge`.
    Remove {
        /// The zone.
        zone: Name,
    },
    /// Write a zone, in the version that was published last, as a zone file.
    ///
    /// Signatures and records that are made when asked are not part of it.
    Export {
        /// The zone.
        zone: Name,
        /// The file, which must not be there yet; standard output without it.
        file: Option<PathBuf>,
    },
    /// Remove what is kept of a zone that is not there any longer: its last version, journal and timers.
    Purge {
        /// The zone.
        zone: Name,
    },
}

/// Reads a key and its value, which is a text where it is no TOML.
fn parse_setting(text: &str) -> Result<(String, Value), ArgumentError> {
    let (key, value) = text.split_once('=').ok_or(ArgumentError::Expected(ZONE_SETTING))?;
    let (key, value) = (key.trim(), value.trim());
    let is_key = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-';
    if key.is_empty() || !key.bytes().all(is_key) {
        return Err(ArgumentError::NoZoneKey(key.to_owned()));
    }
    // A value of more than one line could contain more than one key.
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
