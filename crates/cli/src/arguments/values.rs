//! Values that arguments of several commands have.

use nonesuch_proto::timestamp;
use std::net::SocketAddr;

/// Reads an address with a port.
pub(super) fn parse_socket_address(text: &str) -> Result<SocketAddr, String> {
    let wrong = "expected an address and a port, as 127.0.0.1:5300 or [::1]:5300";
    text.parse().map_err(|_| wrong.to_owned())
}

/// Reads a time: RFC 3339, YYYYMMDDHHmmSS or seconds since 1970.
pub(super) fn parse_time(text: &str) -> Result<u32, String> {
    if let Some(seconds) = timestamp::parse(text.as_bytes()) {
        return Ok(seconds);
    }
    let time: jiff::Timestamp =
        text.parse().map_err(|_| "expected RFC 3339, YYYYMMDDHHmmSS or seconds since 1970".to_owned())?;
    // RFC 4034 §3.1.5: DNSSEC's times are modulo 2^32.
    Ok(time.as_second() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_all_forms() {
        for text in ["2017-08-22T00:00:00Z", "20170822000000", "1503360000", "2017-08-22T02:00:00+02:00"] {
            assert_eq!(parse_time(text), Ok(1_503_360_000), "{text}");
        }
        assert!(parse_time("yesterday").is_err());
    }
}
