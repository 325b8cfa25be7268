//! Arguments of `nonesuch load` for the replay of a capture.

use clap::Args;
use nonesuch_lab::load::{REPLAY_SOCKETS_DEFAULT, ReplaySpeed};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// Send the queries of this capture at their recorded times: a pcap, pcapng or dnstap file.
    ///
    /// Sends all of them over UDP, with a new message ID. Each client has its own socket, and its
    /// own source address if the server has a loopback IPv4 address. Ends after the last query.
    #[arg(
        long,
        value_name = "FILE",
        group = "schedule",
        conflicts_with_all = ["queries", "zone", "zipf", "rate", "random_prefix", "threads", "sockets", "seconds", "warm_up", "tcp", "tls", "ramp", "follow_truncated", "validate"]
    )]
    pub(crate) replay: Option<PathBuf>,
    /// Divide the recorded intervals by this factor, 0.000001 to 1000000.
    ///
    /// max: send the queries as fast as the server answers.
    #[arg(long, value_name = "FACTOR", default_value_t = ReplaySpeed::Scaled(1.0), requires = "replay")]
    pub(crate) speed: ReplaySpeed,
    /// Set the maximum number of sockets of a replay, 1 to 4096. Further clients share them.
    #[arg(long, value_name = "SOCKETS", default_value_t = REPLAY_SOCKETS_DEFAULT, requires = "replay")]
    pub(crate) clients: usize,
}
