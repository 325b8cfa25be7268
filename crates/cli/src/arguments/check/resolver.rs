//! Arguments of `check resolver`.

use super::super::values::{ArgumentError, parse_time};
use super::CheckOptions;
use clap::Args;
use nonesuch_lab::check::resolver::ResolverKind;
use nonesuch_proto::Name;
use std::net::Ipv4Addr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CheckResolverArguments {
    /// Query this resolver: ADDRESS, ADDRESS:PORT, [IPv6 ADDRESS]:PORT or HOST.
    #[allow(rustdoc::broken_intra_doc_links, reason = "text of --help, not a link")]
    #[arg(required_unless_present_any = ["list", "program", "write_configuration", "print_delegation"])]
    pub(crate) server: Option<String>,
    /// Start this resolver and check it: unbound, bind, kresd, pdns or nonesuch.
    ///
    /// With libfaketime, the items of RFC 5011 start unbound, bind or nonesuch with a moved clock.
    #[arg(long, value_name = "RESOLVER", conflicts_with_all = ["server", "delegated"], value_parser = parse_kind)]
    pub(crate) program: Option<ResolverKind>,
    /// With --program: the UDP payload size and the maximum size of responses over UDP, in octets.
    #[arg(long, value_name = "OCTETS", requires = "program", default_value_t = 1232, value_parser = clap::value_parser!(u16).range(512..=4096))]
    pub(crate) program_udp_size: u16,
    /// Write root hints, trust anchors and settings for a resolver to this directory, and exit.
    ///
    /// --for names the resolver. The directory must not exist. The files are the same for each run with the same
    /// --seed and --tree-address.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["server", "list", "delegated"])]
    pub(crate) write_configuration: Option<PathBuf>,
    /// Write the configuration for this resolver: unbound, bind, kresd, pdns or nonesuch.
    #[arg(long = "for", value_name = "RESOLVER", requires = "write_configuration", default_value = "unbound", value_parser = parse_kind)]
    pub(crate) kind: ResolverKind,
    /// Serve the root of the check on this address, and its other zones on the next ones.
    ///
    /// A loopback address. Zones that are new in each run have addresses in one of the following 250 networks of 256 addresses.
    #[arg(long, value_name = "ADDRESS", default_value = "127.53.0.1")]
    pub(crate) tree_address: Ipv4Addr,
    /// Serve the zones of the check on this port. Most resolvers query port 53 only.
    #[arg(long, value_name = "PORT", default_value_t = 53, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) tree_port: u16,
    /// Serve the zones of the check below this domain, which its parent delegates to this host.
    ///
    /// --print-delegation prints the records for the parent. The keys follow from --seed and are no
    /// secrets: use a domain that has no other purpose.
    #[arg(long, value_name = "ZONE", requires = "tree_listen")]
    pub(crate) delegated: Option<Name>,
    /// With --delegated: listen on this address; may be repeated.
    ///
    /// Servers with faults need an address of their own: with fewer than 8 addresses, some items cannot be
    /// tested.
    #[arg(long, value_name = "ADDRESS", requires = "delegated")]
    pub(crate) tree_listen: Vec<Ipv4Addr>,
    /// Print the NS, A and DS records for the parent of the --delegated domain, and exit.
    #[arg(long, requires = "delegated")]
    pub(crate) print_delegation: bool,
    /// Derive the keys of the zones from this number.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Set the time of the signatures of the zones, for a resolver with a moved clock.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    #[command(flatten)]
    pub(crate) options: CheckOptions,
}

fn parse_kind(text: &str) -> Result<ResolverKind, ArgumentError> {
    let names = || ResolverKind::ALL.iter().map(|(_, name)| *name).collect();
    text.parse().map_err(|_| ArgumentError::ExpectedOneOf(names()))
}
