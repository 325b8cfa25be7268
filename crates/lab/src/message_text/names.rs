//! Names of response codes, opcodes and flags.

use nonesuch_proto::message::{Header, Rcode, flags};

/// BADCOOKIE: the server requires a server cookie (RFC 7873 section 8).
const BADCOOKIE: u16 = 23;

/// The mnemonic in the IANA registry, or RCODEn.
#[must_use]
pub fn name(rcode: Rcode) -> String {
    let known = match rcode.0 {
        6 => "YXDOMAIN",
        7 => "YXRRSET",
        8 => "NXRRSET",
        9 => "NOTAUTH",
        10 => "NOTZONE",
        11 => "DSOTYPENI",
        17 => "BADKEY",
        18 => "BADTIME",
        19 => "BADMODE",
        20 => "BADNAME",
        21 => "BADALG",
        22 => "BADTRUNC",
        BADCOOKIE => "BADCOOKIE",
        _ => return rcode.to_string(),
    };
    known.to_owned()
}

/// The names of the flags that are set.
#[must_use]
pub fn flag_names(header: Header) -> Vec<&'static str> {
    let known = [
        (flags::QR, "qr"),
        (flags::AA, "aa"),
        (flags::TC, "tc"),
        (flags::RD, "rd"),
        (flags::RA, "ra"),
        (0x0040, "z"),
        (flags::AD, "ad"),
        (flags::CD, "cd"),
    ];
    known.into_iter().filter(|(bit, _)| header.flags & bit != 0).map(|(_, name)| name).collect()
}

/// The mnemonic of an opcode in the IANA registry, or OPCODEn.
#[must_use]
pub fn opcode_name(opcode: u8) -> String {
    match opcode {
        0 => "QUERY".to_owned(),
        2 => "STATUS".to_owned(),
        4 => "NOTIFY".to_owned(),
        5 => "UPDATE".to_owned(),
        6 => "DSO".to_owned(),
        other => format!("OPCODE{other}"),
    }
}
