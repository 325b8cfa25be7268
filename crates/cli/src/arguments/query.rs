//! Arguments of `query`.

use super::load::parse_edns_option;
use super::values::{ArgumentError, parse_seconds};
use clap::Args;
use nonesuch_proto::Class;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct QueryArguments {
    /// Name, type (default A) and @SERVER, in any order: @ns.example, @192.0.2.1:5300, @[2001:db8::1]:53. Without @SERVER the
    /// first of /etc/resolv.conf is asked.
    #[allow(rustdoc::broken_intra_doc_links, reason = "text of --help, not a link")]
    #[arg(value_name = "NAME [TYPE] [@SERVER]", num_args = 0..=3)]
    pub(crate) words: Vec<String>,
    /// Ask for the name of an address (PTR).
    #[arg(short = 'x', long = "reverse", value_name = "ADDRESS")]
    pub(crate) reverse: Option<IpAddr>,
    /// Class: IN, CH, HS, ANY or CLASSn.
    #[arg(long, default_value = "IN", value_parser = parse_class)]
    pub(crate) class: Class,
    /// Transfer the zone (AXFR) and print all its records.
    #[arg(long, conflicts_with = "reverse")]
    pub(crate) axfr: bool,
    /// Transfer what has changed in the zone since this serial (IXFR).
    #[arg(long, value_name = "SERIAL", conflicts_with_all = ["axfr", "reverse"])]
    pub(crate) ixfr: Option<u32>,
    #[command(flatten)]
    pub(crate) transport: QueryTransport,
    #[command(flatten)]
    pub(crate) message: QueryMessage,
    /// Print the RDATA of the answer alone, one record on a line.
    #[arg(long, conflicts_with = "json")]
    pub(crate) short: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the server is reached.
#[derive(Debug, Args)]
#[command(next_help_heading = "Transport")]
pub(crate) struct QueryTransport {
    /// Ask over TCP.
    #[arg(long)]
    pub(crate) tcp: bool,
    /// Ask over TLS (DoT; port 853). Without --tls-ca nobody's certificate is verified: it hides from those who only listen.
    #[arg(long, conflicts_with = "tcp")]
    pub(crate) tls: bool,
    /// Verify the server's certificate: file (PEM) of the authority that signed it, or of the certificate itself.
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// The name that the server's certificate must be for. Default: the host name of @SERVER, or its address.
    #[arg(long, value_name = "NAME", requires = "tls")]
    pub(crate) tls_hostname: Option<String>,
    /// Port, where @SERVER has none.
    #[arg(long, short)]
    pub(crate) port: Option<u16>,
    /// Own address to ask from.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) source: Option<IpAddr>,
    /// Seconds, or a duration as 1m, to wait for an answer, for opening a connection, and for each message of a transfer.
    #[arg(long, default_value_t = 5.0, value_parser = parse_timeout)]
    pub(crate) timeout: f64,
    /// How often to ask again over UDP where there is no answer.
    #[arg(long, default_value_t = 2)]
    pub(crate) retries: usize,
    /// Print a truncated answer as it is, in place of asking again over TCP.
    #[arg(long)]
    pub(crate) ignore_truncation: bool,
}

/// What the query says.
#[derive(Debug, Args)]
#[command(next_help_heading = "Message")]
pub(crate) struct QueryMessage {
    /// Set the DO bit: DNSSEC records are wanted. The default.
    #[arg(long, visible_alias = "do", overrides_with = "no_dnssec")]
    pub(crate) dnssec: bool,
    /// Leave the DO bit out.
    #[arg(long)]
    pub(crate) no_dnssec: bool,
    /// Set the CO bit: take compact denials with NXDOMAIN.
    #[arg(long = "co")]
    pub(crate) compact_ok: bool,
    /// Set the CD bit: a resolver is not to validate.
    #[arg(long = "cd")]
    pub(crate) checking_disabled: bool,
    /// Leave the RD bit out: a resolver is not to ask others.
    #[arg(long)]
    pub(crate) no_recurse: bool,
    /// Ask for the server's identifier (NSID).
    #[arg(long)]
    pub(crate) nsid: bool,
    /// Send a cookie: eight random octets, or these, in hexadecimal, which may be a whole cookie of an earlier answer. Where the
    /// server wants its own cookie back (BADCOOKIE), it is asked again with it.
    #[arg(long, value_name = "HEX", num_args = 0..=1, require_equals = true, default_missing_value = "",
        value_parser = parse_cookie)]
    pub(crate) cookie: Option<Cookie>,
    /// Ask how long the connection may be kept (edns-tcp-keepalive).
    #[arg(long)]
    pub(crate) keepalive: bool,
    /// Ask after how many seconds the zone expires at the server (EXPIRE): of use with SOA, --axfr and --ixfr.
    #[arg(long)]
    pub(crate) expire: bool,
    /// Octets of UDP that the answer may have; 0 sends no EDNS.
    #[arg(long, value_name = "OCTETS", default_value_t = 1232)]
    pub(crate) bufsize: u16,
    /// An option of EDNS: its code, and its value in hexadecimal. May be repeated.
    #[arg(long, value_name = "CODE:HEX", value_parser = parse_edns_option)]
    pub(crate) edns_option: Vec<(u16, Vec<u8>)>,
    /// Sign the query (TSIG) and verify the answer's signature: a file with one key as BIND has it; NAME:FILE or
    /// NAME:ALGORITHM:FILE, with a file as secret-file of a server's configuration names it (the secret in base64 alone, or keys as
    /// BIND has them); or NAME:ALGORITHM:SECRET, which other users of the machine may see. Algorithms are hmac-sha256 (where none is
    /// given), hmac-sha384, hmac-sha512.
    #[arg(long, value_name = "FILE|NAME:FILE|NAME:ALGORITHM:SECRET")]
    pub(crate) tsig_key: Option<String>,
}

impl QueryMessage {
    /// Whether the DO bit is set.
    pub(crate) const fn dnssec_ok(&self) -> bool {
        !self.no_dnssec
    }
}

/// The cookie to send; of no octets: a random one.
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
        assert!(parse_cookie("010203").is_err_and(|reason| reason.to_string().contains("not 3")));
        assert!(parse_cookie("0x").is_err());
        assert_eq!((parse_timeout("0.5"), parse_timeout("1m")), (Ok(0.5), Ok(60.0)));
        for wrong in ["0", "-1", "nan", "inf", "x"] {
            assert!(parse_timeout(wrong).is_err(), "{wrong}");
        }
    }
}
