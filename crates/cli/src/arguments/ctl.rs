//! Arguments of `ctl`.

use clap::{Args, Subcommand};
use nonesuch_proto::Name;
use std::path::PathBuf;

/// Where `ctl` looks for the configuration of the server.
pub(crate) const CONFIGURATION: &str = "/etc/nonesuch/nonesuch.toml";

#[derive(Debug, Args)]
pub(crate) struct ControlArguments {
    /// The server's control socket.
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "config")]
    pub(crate) socket: Option<PathBuf>,
    /// The server's configuration, which names the control socket.
    #[arg(long, value_name = "FILE", global = true, default_value = CONFIGURATION)]
    pub(crate) config: PathBuf,
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
}
