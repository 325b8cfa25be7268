//! Arguments of `check zone`.

use super::super::values::{ArgumentError, parse_time};
use super::CheckOptions;
use clap::Args;
use nonesuch_proto::Name;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CheckZoneArguments {
    /// The zone.
    #[arg(required_unless_present = "list")]
    pub(crate) zone: Option<Name>,
    /// Find the servers from the root servers of the Internet, instead of through the resolvers in
    /// /etc/resolv.conf.
    #[arg(long, conflicts_with = "hints")]
    pub(crate) from_root: bool,
    /// Find the servers from the servers of the root zone in this file, in zone file format.
    #[arg(long, value_name = "FILE")]
    pub(crate) hints: Option<PathBuf>,
    /// Validate from the trust anchors in this file: DS or DNSKEY records, root.key or
    /// root-anchors.xml.
    ///
    /// Default: the keys of the root zone of the Internet. With --hints, the chain of trust is not
    /// checked without this option.
    #[arg(long, value_name = "FILE")]
    pub(crate) anchor: Option<PathBuf>,
    /// Check the zone before its delegation, with this nameserver; may be repeated.
    ///
    /// NAME/ADDRESS, or NAME if the nameserver is in another zone. May be repeated with the same name
    /// for several addresses.
    #[arg(long, value_name = "NAME[/ADDRESS]", value_parser = parse_nameserver)]
    pub(crate) ns: Vec<(Name, Option<IpAddr>)>,
    /// Check the zone before its delegation, with this DS record; may be repeated.
    ///
    /// Key tag, algorithm, digest type and digest, as `nonesuch key ds` prints them.
    #[arg(long, value_name = "RDATA", requires = "ns")]
    pub(crate) ds: Vec<String>,
    /// Query the servers of all zones at this port. Local trees may use another port than 53.
    #[arg(long, default_value_t = 53, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    /// Send each server at most this number of queries per second. Servers at loopback addresses have
    /// no limit.
    #[arg(long, value_name = "QUERIES", default_value_t = 20.0, value_parser = parse_rate)]
    pub(crate) rate: f64,
    /// Draw the chain of trust into this SVG file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Set the time at which signatures must be valid.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    #[command(flatten)]
    pub(crate) options: CheckOptions,
}

fn parse_nameserver(text: &str) -> Result<(Name, Option<IpAddr>), ArgumentError> {
    let expected = || ArgumentError::Expected("NAME or NAME/ADDRESS");
    let (name, address) = match text.split_once('/') {
        Some((name, address)) => (name, Some(address.parse().map_err(|_| expected())?)),
        None => (text, None),
    };
    Ok((name.parse().map_err(|_| expected())?, address))
}

fn parse_rate(text: &str) -> Result<f64, ArgumentError> {
    match text.parse() {
        Ok(rate) if (0.1..=1_000_000.0).contains(&rate) => Ok(rate),
        _ => Err(ArgumentError::Expected("0.1 to 1000000 queries per second")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nameservers_have_a_name_and_possibly_an_address() {
        let read = |text| parse_nameserver(text).map(|(name, address)| (name.to_string(), address));
        assert_eq!(read("ns1.example"), Ok(("ns1.example.".to_owned(), None)));
        let address = Some("2001:db8::1".parse().expect("an address"));
        assert_eq!(read("ns1.example./2001:db8::1"), Ok(("ns1.example.".to_owned(), address)));
        for wrong in ["ns1.example/x", "/192.0.2.1", "a..b", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(parse_rate("0").is_err() && parse_rate("nan").is_err() && parse_rate("20").is_ok());
    }
}
