//! Formats the options of a response's OPT record (RFC 6891 section 6.1.2) as text.

use nonesuch_proto::Rtype;
use nonesuch_proto::edns::{self, CO, DO};
use nonesuch_proto::message::Message;
use std::fmt::Write as _;

/// An option as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdnsOption {
    /// The code in the IANA registry.
    pub code: u16,
    /// The value.
    pub data: Vec<u8>,
}

/// The options of a message. If the length of the last option exceeds the data, the option is
/// truncated.
#[must_use]
pub fn read_options(message: &Message) -> Vec<EdnsOption> {
    let mut rest = message.opt().map_or(&[][..], |opt| &opt.rdata);
    let mut options = Vec::new();
    while let [a, b, c, d, tail @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*c, *d])).min(tail.len());
        let (data, next) = tail.split_at(length);
        options.push(EdnsOption { code: u16::from_be_bytes([*a, *b]), data: data.to_vec() });
        rest = next;
    }
    options
}

/// Version, payload size and flags of the OPT record; `None` without an OPT record.
#[must_use]
pub fn describe_opt(message: &Message) -> Option<String> {
    let opt = message.records.iter().find(|record| record.rtype == Rtype::OPT)?;
    let mut text = format!("version {}, udp {}", opt.ttl >> 16 & 0xff, opt.class.0);
    let names = flag_names(opt.ttl as u16);
    if !names.is_empty() {
        text += ", flags";
        names.iter().for_each(|name| text = format!("{text} {name}"));
    }
    Some(text)
}

/// The names of the EDNS flags that are set. Unknown flags are one hexadecimal number.
#[must_use]
pub fn flag_names(flags: u16) -> Vec<String> {
    let known = [(DO, "do"), (CO, "co")];
    let mut names: Vec<String> =
        known.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| name.to_owned()).collect();
    let other = flags & !(DO | CO);
    if other != 0 {
        names.push(format!("0x{other:04x}"));
    }
    names
}

impl EdnsOption {
    /// The mnemonic of the option, or its code.
    #[must_use]
    pub fn name(&self) -> String {
        let known = match self.code {
            edns::NSID => "NSID",
            edns::CLIENT_SUBNET => "CLIENT-SUBNET",
            edns::EXPIRE => "EXPIRE",
            edns::COOKIE => "COOKIE",
            edns::KEEPALIVE => "KEEPALIVE",
            edns::PADDING => "PADDING",
            edns::EXTENDED_ERROR => "EDE",
            edns::REPORT_CHANNEL => "REPORT-CHANNEL",
            code => return format!("OPTION {code}"),
        };
        known.to_owned()
    }

    /// The value as text; in hexadecimal if it is malformed.
    #[must_use]
    pub fn describe(&self) -> String {
        let described = match self.code {
            edns::NSID => Some(hex_and_text(&self.data)),
            edns::EXPIRE => edns::read_expire(&self.data).flatten().map(|seconds| format!("{seconds} s")),
            edns::COOKIE => self.describe_cookie(),
            edns::KEEPALIVE => self.describe_keepalive(),
            edns::PADDING => Some(format!("{} octets", self.data.len())),
            edns::EXTENDED_ERROR => self.describe_extended_error(),
            edns::REPORT_CHANNEL => edns::read_report_channel(&self.data).map(|name| name.to_string()),
            _ => None,
        };
        described.unwrap_or_else(|| hex_and_text(&self.data))
    }

    fn describe_cookie(&self) -> Option<String> {
        let (client, server) = self.data.split_at_checked(8)?;
        let server = if server.is_empty() { "none".to_owned() } else { hex(server) };
        Some(format!("client {}, server {server}", hex(client)))
    }

    fn describe_keepalive(&self) -> Option<String> {
        Some(match edns::read_keepalive(&self.data)? {
            Some(tenths) => format!("{}.{} s", tenths / 10, tenths % 10),
            None => "no time".to_owned(),
        })
    }

    fn describe_extended_error(&self) -> Option<String> {
        let (code, text) = self.extended_error()?;
        let mut description = code.to_string();
        if let Some(meaning) = extended_error_meaning(code) {
            // Writing to a string does not fail.
            let _ = write!(description, " ({meaning})");
        }
        if !text.is_empty() {
            let _ = write!(description, ": \"{}\"", printable(text));
        }
        Some(description)
    }

    /// Code and text of an extended error (RFC 8914 section 2).
    #[must_use]
    pub fn extended_error(&self) -> Option<(u16, &[u8])> {
        let is_error = self.code == edns::EXTENDED_ERROR;
        if is_error { edns::read_extended_error(&self.data) } else { None }
    }
}

/// The meaning of an extended error code in the IANA registry.
#[must_use]
pub fn extended_error_meaning(code: u16) -> Option<&'static str> {
    const MEANINGS: [&str; 31] = [
        "Other",
        "Unsupported DNSKEY Algorithm",
        "Unsupported DS Digest Type",
        "Stale Answer",
        "Forged Answer",
        "DNSSEC Indeterminate",
        "DNSSEC Bogus",
        "Signature Expired",
        "Signature Not Yet Valid",
        "DNSKEY Missing",
        "RRSIGs Missing",
        "No Zone Key Bit Set",
        "NSEC Missing",
        "Cached Error",
        "Not Ready",
        "Blocked",
        "Censored",
        "Filtered",
        "Prohibited",
        "Stale NXDOMAIN Answer",
        "Not Authoritative",
        "Not Supported",
        "No Reachable Authority",
        "Network Error",
        "Invalid Data",
        "Signature Expired before Valid",
        "Too Early",
        "Unsupported NSEC3 Iterations Value",
        "Unable to conform to policy",
        "Synthesized",
        "Invalid Query Type",
    ];
    MEANINGS.get(usize::from(code)).copied()
}

fn hex(octets: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(octets)
}

/// Octets in hexadecimal and, if all are printable ASCII characters, as text.
fn hex_and_text(octets: &[u8]) -> String {
    let is_text = !octets.is_empty() && octets.iter().all(|octet| matches!(octet, 0x20..=0x7e));
    if is_text { format!("{} (\"{}\")", hex(octets), printable(octets)) } else { hex(octets) }
}

/// Text from a server, with the characters escaped that could control a terminal.
#[must_use]
pub fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars()
        .flat_map(|c| {
            let is_plain = !c.is_control() && c != '"' && c != '\\';
            let escaped = if is_plain { String::from(c) } else { c.escape_default().collect() };
            escaped.chars().collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edns_options_are_described() {
        for (code, data, expected) in [
            (3, &b"ns1"[..], "NSID 6e7331 (\"ns1\")"),
            (3, &[0, 1], "NSID 0001"),
            (10, &[1; 8], "COOKIE client 0101010101010101, server none"),
            (10, &[1; 16], "COOKIE client 0101010101010101, server 0101010101010101"),
            (10, &[1; 3], "COOKIE 010101"),
            (11, &[0, 101], "KEEPALIVE 10.1 s"),
            (12, &[0; 7], "PADDING 7 octets"),
            (15, &[0, 18], "EDE 18 (Prohibited)"),
            (15, b"\0\x16no \x1b[31m\"\0", "EDE 22 (No Reachable Authority): \"no \\u{1b}[31m\\\"\""),
            (15, &[255, 0], "EDE 65280"),
            (15, &[1], "EDE 01"),
            (18, b"\x05agent\0", "REPORT-CHANNEL agent."),
            (18, b"\x05age", "REPORT-CHANNEL 05616765"),
            (9, &[0, 0, 1, 0], "EXPIRE 256 s"),
            (65001, &[], "OPTION 65001 "),
        ] {
            let option = EdnsOption { code, data: data.to_vec() };
            assert_eq!(format!("{} {}", option.name(), option.describe()), expected);
        }
    }

    #[test]
    fn the_registry_has_31_meanings() {
        assert_eq!(extended_error_meaning(14), Some("Not Ready"));
        assert_eq!(extended_error_meaning(20), Some("Not Authoritative"));
        assert_eq!(extended_error_meaning(24), Some("Invalid Data"));
        assert_eq!(extended_error_meaning(30), Some("Invalid Query Type"));
        assert_eq!(extended_error_meaning(31), None);
    }
}
