//! Arguments of `query`.

use super::load::parse_edns_option;
use super::values::{ArgumentError, parse_seconds};
use clap::Args;
use nonesuch_proto::Class;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct QueryArguments {
    /// Name, type and @SERVER, in any order. Default type: A.
    ///
    /// Servers: @ns.example, @192.0.2.1:5300, @[2001:db8::1]:53. Default: the servers in
    /// /etc/resolv.conf, whose answers are validated.
    #[allow(rustdoc::broken_intra_doc_links, reason = "text of --help, not a link")]
    #[arg(value_name = "NAME [TYPE] [@SERVER]", num_args = 0..=3)]
    pub(crate) words: Vec<String>,
    /// Query the name of an address (PTR).
    #[arg(short = 'x', long = "reverse", value_name = "ADDRESS")]
    pub(crate) reverse: Option<IpAddr>,
    /// Set the class: IN, CH, HS, ANY or CLASSn.
    #[arg(long, default_value = "IN", value_parser = parse_class)]
    pub(crate) class: Class,
    /// Transfer the zone (AXFR) and print all its records.
    #[arg(long, conflicts_with = "reverse")]
    pub(crate) axfr: bool,
    /// Transfer the changes of the zone since this serial (IXFR).
    #[arg(long, value_name = "SERIAL", conflicts_with_all = ["axfr", "reverse"])]
    pub(crate) ixfr: Option<u32>,
    /// Resolve the name from the root zone instead of sending the query to one server, and print
    /// each query to a server with its result.
    #[arg(long, conflicts_with_all = ["axfr", "ixfr", "tcp", "tls", "port", "source", "timeout", "retries",
        "ignore_truncation", "no_recurse", "cookie", "tsig_key"])]
    pub(crate) from_root: bool,
    /// Read the servers of the root zone from this file, in zone file format.
    ///
    /// Default: the root servers of the Internet.
    #[arg(long, value_name = "FILE", requires = "from_root")]
    pub(crate) hints: Option<PathBuf>,
    /// Read the trust anchors from this file: DS or DNSKEY records, root.key or root-anchors.xml.
    ///
    /// Default: the keys of the root zone of the Internet. With --hints, nothing is validated without
    /// this option.
    #[arg(long, value_name = "FILE")]
    pub(crate) anchor: Option<PathBuf>,
    /// Draw the chain of trust into this SVG file.
    ///
    /// The file shows each zone with its keys, DS records and RRsets, and the reason of everything
    /// that is not secure. For answers that are validated.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) transport: QueryTransport,
    #[command(flatten)]
    pub(crate) message: QueryMessage,
    /// Print only the RDATA of the answer section, one record on each line.
    #[arg(long, conflicts_with = "json")]
    pub(crate) short: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Transport of the query.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Transport")]
pub(crate) struct QueryTransport {
    /// Send the query over TCP.
    #[arg(long)]
    pub(crate) tcp: bool,
    /// Send the query over TLS (DoT, port 853).
    ///
    /// Without --tls-ca the certificate of the server is not verified; this protects only against
    /// passive listeners.
    #[arg(long, conflicts_with = "tcp")]
    pub(crate) tls: bool,
    /// Verify the certificate of the server with this PEM file.
    ///
    /// It contains the certificate of the authority that signed it, or the certificate itself.
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Require this name in the certificate of the server.
    ///
    /// Default: the host name of @SERVER, or its address.
    #[arg(long, value_name = "NAME", requires = "tls")]
    pub(crate) tls_hostname: Option<String>,
    /// Use this port if @SERVER has none.
    #[arg(long, short)]
    pub(crate) port: Option<u16>,
    /// Send the query from this local address.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) source: Option<IpAddr>,
    /// Set the time limit for a response: seconds, or a duration such as 1m.
    ///
    /// Applies also to opening a connection, and to each message of a transfer.
    #[arg(long, default_value_t = 5.0, value_parser = parse_timeout)]
    pub(crate) timeout: f64,
    /// Repeat the query over UDP this number of times if there is no response.
    #[arg(long, default_value_t = 2)]
    pub(crate) retries: usize,
    /// Print a truncated response instead of repeating the query over TCP.
    #[arg(long)]
    pub(crate) ignore_truncation: bool,
}

/// Content of the query.
#[derive(Debug, Args)]
#[command(next_help_heading = "Message")]
pub(crate) struct QueryMessage {
    /// Set the DO bit: request DNSSEC records. This is the default.
    #[arg(long, visible_alias = "do", overrides_with = "no_dnssec")]
    pub(crate) dnssec: bool,
    /// Clear the DO bit.
    #[arg(long)]
    pub(crate) no_dnssec: bool,
    /// Set the CO bit: accept compact denial with NXDOMAIN.
    #[arg(long = "co")]
    pub(crate) compact_ok: bool,
    /// Set the CD bit: request that a resolver does not validate.
    #[arg(long = "cd")]
    pub(crate) checking_disabled: bool,
    /// Clear the RD bit: request that a resolver does not query other servers.
    #[arg(long)]
    pub(crate) no_recurse: bool,
    /// Request the identifier of the server (NSID).
    #[arg(long)]
    pub(crate) nsid: bool,
    /// Send a cookie: eight random octets, or these octets in hexadecimal.
    ///
    /// The octets may be a complete cookie of an earlier response. If the server requires its own
    /// cookie (BADCOOKIE), the query is repeated with it.
    #[arg(long, value_name = "HEX", num_args = 0..=1, require_equals = true, default_missing_value = "",
        value_parser = parse_cookie)]
    pub(crate) cookie: Option<Cookie>,
    /// Request the idle timeout of the connection (edns-tcp-keepalive).
    #[arg(long)]
    pub(crate) keepalive: bool,
    /// Request the seconds until the zone expires at the server (EXPIRE).
    ///
    /// Useful with SOA, --axfr and --ixfr.
    #[arg(long)]
    pub(crate) expire: bool,
    /// Set the EDNS payload size, in octets; 0 sends no EDNS.
    #[arg(long, value_name = "OCTETS", default_value_t = 1232)]
    pub(crate) bufsize: u16,
    /// Send this EDNS option: code, and value in hexadecimal. May be repeated.
    #[arg(long, value_name = "CODE:HEX", value_parser = parse_edns_option)]
    pub(crate) edns_option: Vec<(u16, Vec<u8>)>,
    /// Sign the query with a TSIG key and verify the signature of the response.
    ///
    /// Forms: a file with one key in BIND format; NAME:FILE or NAME:ALGORITHM:FILE, with a file as
    /// for secret-file in the configuration of a server (only the secret in base64, or keys in BIND
    /// format); or NAME:ALGORITHM:SECRET, which other users of the machine can see. Algorithms:
    /// hmac-sha256 (default), hmac-sha384, hmac-sha512.
    #[arg(long, value_name = "FILE|NAME:FILE|NAME:ALGORITHM:SECRET")]
    pub(crate) tsig_key: Option<String>,
}

impl QueryMessage {
    /// Whether the DO bit is set.
    pub(crate) const fn dnssec_ok(&self) -> bool {
        !self.no_dnssec
    }
}

/// The cookie to send; without octets: a random cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cookie(pub(crate) Vec<u8>);

fn parse_cookie(text: &str) -> Result<Cookie, ArgumentError> {
    let octets = data_encoding::HEXLOWER_PERMISSIVE.decode(text.as_bytes());
    let octets = octets.map_err(|_| ArgumentError::Expected("pairs of hexadecimal digits"))?;
    // RFC 7873 section 4: a client cookie has 8 octets, a complete cookie 16 to 40.
    match octets.len() {
        0 | 8 | 16..=40 => Ok(Cookie(octets)),
        length => Err(ArgumentError::CookieLength(length)),
    }
}

fn parse_class(text: &str) -> Result<Class, ArgumentError> {
    Class::from_mnemonic(text.as_bytes()).ok_or(ArgumentError::Expected("IN, CH, HS, ANY or CLASSn"))
}

fn parse_timeout(text: &str) -> Result<f64, ArgumentError> {
    let seconds = parse_seconds(text)?;
    if (0.001..=86_400.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(ArgumentError::Expected("0.001 to 86400 seconds"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_and_seconds_are_read() {
        assert_eq!(parse_cookie(""), Ok(Cookie(Vec::new())));
        assert_eq!(parse_cookie("0102030405060708"), Ok(Cookie(vec![1, 2, 3, 4, 5, 6, 7, 8])));
        assert_eq!(parse_cookie("010203"), Err(ArgumentError::CookieLength(3)));
        assert!(parse_cookie("0x").is_err());
        assert_eq!((parse_timeout("0.5"), parse_timeout("1m")), (Ok(0.5), Ok(60.0)));
        for wrong in ["0", "-1", "nan", "inf", "x"] {
            assert!(parse_timeout(wrong).is_err(), "{wrong}");
        }
    }
}
