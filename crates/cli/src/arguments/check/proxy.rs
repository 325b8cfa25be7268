//! Arguments of `check proxy`.

use super::super::values::{ArgumentError, parse_socket_address};
use super::CheckOptions;
use clap::Args;
use nonesuch_lab::proxy::{FAULTS, Fault};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CheckProxyArguments {
    /// Query this proxy: ADDRESS, ADDRESS:PORT, [IPv6 ADDRESS]:PORT or HOST.
    #[allow(rustdoc::broken_intra_doc_links, reason = "text of --help, not a link")]
    #[arg(required_unless_present_any = ["list", "start_proxy", "program"])]
    pub(crate) server: Option<String>,
    /// Listen on this address as the resolver behind the proxy. Set it as the DNS server of the proxy.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5353", value_parser = parse_socket_address)]
    pub(crate) upstream_listen: SocketAddr,
    /// Check the proxy of this program, which the check starts.
    ///
    /// The items that need a path start it again in network namespaces, which requires root or a user namespace, and
    /// /dev/net/tun. Otherwise, these items are not testable.
    #[arg(long, conflicts_with = "server")]
    pub(crate) start_proxy: bool,
    /// With --start-proxy: give the proxy this fault; may be repeated. `proxy --list-faults` prints them.
    #[arg(long, requires = "start_proxy", value_parser = parse_fault)]
    pub(crate) fault: Vec<Fault>,
    /// Start this program in network namespaces and check it. Its arguments follow after --.
    ///
    /// In the arguments, {listen} becomes the address on which the program must listen, and {upstream} the address of
    /// the server to which it must forward queries. The port of both is 53. It must stay in the foreground. For
    /// example: --program dnsmasq -- --keep-in-foreground --no-resolv --conf-file=/dev/null --bind-interfaces
    /// --listen-address={listen} --server={upstream}
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["server", "start_proxy", "upstream_listen"])]
    pub(crate) program: Option<PathBuf>,
    /// The arguments of --program.
    #[arg(last = true, value_name = "ARGUMENT", requires = "program")]
    pub(crate) arguments: Vec<String>,
    /// The address of the proxy on the side of the provider, where it must not answer.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_socket_address)]
    pub(crate) wan: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) options: CheckOptions,
}

fn parse_fault(text: &str) -> Result<Fault, ArgumentError> {
    let names = || FAULTS.iter().map(|entry| entry.name).collect();
    text.parse().map_err(|_| ArgumentError::ExpectedOneOf(names()))
}
