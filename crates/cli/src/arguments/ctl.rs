//! Arguments of `ctl`.

use clap::{Args, Subcommand};
use nonesuch_proto::Name;
use std::path::PathBuf;

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
    #[arg(long, value_name = "SECONDS", global = true, default_value_t = TIMEOUT,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Print JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: ControlCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ControlCommand {
    /// What the server does: zones, what goes on, how the last reload went.
    Status,
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
