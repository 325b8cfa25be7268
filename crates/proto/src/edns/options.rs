//! EDNS options (RFC 6891 §6.1.2): iteration, readers for the options that the server and clients
//! use, and writers.

use crate::NameRef;

/// NSID, the identifier of the server (RFC 5001).
pub const NSID: u16 = 3;
/// Client Subnet, the network for which a resolver queries (RFC 7871).
pub const CLIENT_SUBNET: u16 = 8;
/// EXPIRE, the time until a zone expires at the responding server (RFC 7314).
pub const EXPIRE: u16 = 9;
/// COOKIE, the cookies of client and server (RFC 7873, RFC 9018).
pub const COOKIE: u16 = 10;
/// edns-tcp-keepalive, the idle timeout of a TCP connection (RFC 7828).
pub const KEEPALIVE: u16 = 11;
/// Padding, octets that hide the length of the message (RFC 7830).
pub const PADDING: u16 = 12;
/// Extended DNS error (EDE), the reason for an error (RFC 8914).
pub const EXTENDED_ERROR: u16 = 15;
/// Report-Channel, the domain to which resolvers report errors (RFC 9567).
pub const REPORT_CHANNEL: u16 = 18;

/// Length of a client cookie in octets (RFC 7873 §4).
const CLIENT_COOKIE: usize = 8;

/// Iterator over the options of an OPT record; yields the code and data of each option. It ends at
/// the end of the RDATA, or at the first option whose length exceeds the remaining octets.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    /// Creates an iterator over the options in `rdata`, the RDATA of an OPT record.
    #[must_use]
    pub const fn new(rdata: &'a [u8]) -> Self {
        Self { rest: rdata }
    }

    /// Returns whether no octets remain. After the last option, this states whether the option
    /// lengths match the length of the RDATA.
    #[must_use]
    pub const fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let [code_high, code_low, length_high, length_low, tail @ ..] = self.rest else { return None };
        let length = usize::from(u16::from_be_bytes([*length_high, *length_low]));
        let (data, rest) = tail.split_at_checked(length)?;
        self.rest = rest;
        Some((u16::from_be_bytes([*code_high, *code_low]), data))
    }
}

/// The data of a cookie option (RFC 7873 §4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CookieOption<'a> {
    /// The client cookie.
    pub client: &'a [u8; CLIENT_COOKIE],
    /// The server cookie: empty, or 8 to 32 octets.
    pub server: &'a [u8],
}

impl<'a> CookieOption<'a> {
    /// Reads the data of a cookie option. Returns `None` if the length is not valid for a cookie
    /// option (RFC 7873 §5.2.2).
    #[must_use]
    pub fn read(data: &'a [u8]) -> Option<Self> {
        let (client, server) = data.split_first_chunk()?;
        matches!(server.len(), 0 | 8..=32).then_some(Self { client, server })
    }
}

/// Reads the idle timeout of a connection, in tenths of a second (RFC 7828 §3.1). Returns
/// `Some(None)` for an empty option, as in queries, and `None` if the option is malformed.
#[must_use]
pub const fn read_keepalive(data: &[u8]) -> Option<Option<u16>> {
    match data {
        [] => Some(None),
        [high, low] => Some(Some(u16::from_be_bytes([*high, *low]))),
        _ => None,
    }
}

/// Reads the time until the zone expires, in seconds (RFC 7314 §2, §3). Returns `Some(None)` for an
/// empty option, as in queries, and `None` if the option is malformed.
#[must_use]
pub const fn read_expire(data: &[u8]) -> Option<Option<u32>> {
    match data {
        [] => Some(None),
        [a, b, c, d] => Some(Some(u32::from_be_bytes([*a, *b, *c, *d]))),
        _ => None,
    }
}

/// Reads an extended DNS error: its code and its text (RFC 8914 §2). The text is UTF-8 as sent,
/// unchecked, and may be empty. Returns `None` if the option is malformed.
#[must_use]
pub fn read_extended_error(data: &[u8]) -> Option<(u16, &[u8])> {
    let (code, text) = data.split_first_chunk()?;
    // Text may end with a zero octet, which is not part of the text (RFC 8914 §2).
    Some((u16::from_be_bytes(*code), text.strip_suffix(&[0]).unwrap_or(text)))
}

/// Reads the domain of an error-reporting agent: one uncompressed name (RFC 9567 §5). Returns
/// `None` if the option is malformed.
#[must_use]
pub fn read_report_channel(data: &[u8]) -> Option<NameRef<'_>> {
    NameRef::from_wire(data).ok()
}

/// Appends an option with the concatenation of `parts` as its data. Data beyond 65,535 octets, the
/// maximum length of an option, is truncated.
pub fn push_option(code: u16, parts: &[&[u8]], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(&[0; 2]);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    let length = u16::try_from(out.len() - start - 4).unwrap_or(u16::MAX);
    out.truncate(start + 4 + usize::from(length));
    out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends an extended DNS error (RFC 8914 §2).
pub fn push_extended_error(code: u16, text: &str, out: &mut Vec<u8>) {
    push_option(EXTENDED_ERROR, &[&code.to_be_bytes(), text.as_bytes()], out);
}

/// Appends the idle timeout of a connection, in tenths of a second (RFC 7828 §3.1).
pub fn push_keepalive(tenths: u16, out: &mut Vec<u8>) {
    push_option(KEEPALIVE, &[&tenths.to_be_bytes()], out);
}

/// Appends an EXPIRE option: with `None` the empty option of a query, with `seconds` the option of
/// a response (RFC 7314 §2, §3).
pub fn push_expire(seconds: Option<u32>, out: &mut Vec<u8>) {
    match seconds {
        Some(seconds) => push_option(EXPIRE, &[&seconds.to_be_bytes()], out),
        None => push_option(EXPIRE, &[], out),
    }
}

/// Appends a padding option with `octets` zero octets of data (RFC 7830 §3). The option is 4 octets
/// longer, for its code and length.
pub fn push_padding(octets: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&PADDING.to_be_bytes());
    out.extend_from_slice(&octets.to_be_bytes());
    out.resize(out.len() + usize::from(octets), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use crate::edns::{DO, OPT_OCTETS, Opt, push_opt, set_options_length};
    use proptest::prelude::*;

    #[test]
    fn cookie_lengths_are_checked() {
        for length in 0..=64 {
            let data = vec![7; length];
            let read = CookieOption::read(&data);
            let is_right = length == 8 || (16..=40).contains(&length);
            assert_eq!(read.map(|cookie| cookie.server.len()), is_right.then(|| length - 8), "{length}");
        }
    }

    #[test]
    fn typed_options_are_read_as_written() {
        let mut out = Vec::new();
        push_keepalive(300, &mut out);
        push_extended_error(18, "no", &mut out);
        push_padding(3, &mut out);
        let read: Vec<_> = Options::new(&out).collect();
        assert_eq!(
            read.iter().map(|(code, _)| *code).collect::<Vec<_>>(),
            [KEEPALIVE, EXTENDED_ERROR, PADDING]
        );
        assert_eq!(read_keepalive(read[0].1), Some(Some(300)));
        assert_eq!(read_keepalive(&[]), Some(None));
        assert_eq!(read_keepalive(&[1]), None);
        assert_eq!(read_extended_error(read[1].1), Some((18, &b"no"[..])));
        assert_eq!(read_extended_error(b"\0\x0eready\0"), Some((14, &b"ready"[..])));
        assert_eq!(read_extended_error(&[0]), None);
        assert_eq!(read[2].1, [0; 3]);
    }

    #[test]
    fn agents_are_one_whole_name() {
        let agent: Name = "agent.example.".parse().expect("a name");
        assert_eq!(read_report_channel(agent.wire()), Some(agent.view()));
        for wrong in [&b""[..], b"\x05agent", b"\x01a\0\0", b"\xc0\x0c", b"\x01a\xc0\x0c"] {
            assert_eq!(read_report_channel(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_too_long_option_is_truncated() {
        let mut out = Vec::new();
        push_option(9, &[&[1; 40_000], &[2; 40_000]], &mut out);
        let mut options = Options::new(&out);
        assert_eq!(options.next().map(|(code, data)| (code, data.len())), Some((9, 65_535)));
        assert!(options.is_at_end());
    }

    proptest! {
        #[test]
        fn options_are_read_back(list in proptest::collection::vec(
            (any::<u16>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..8,
        )) {
            let mut out = vec![9; 3];
            push_opt(1232, 0, DO, &mut out);
            for (code, data) in &list {
                let (front, back) = data.split_at(data.len() / 2);
                push_option(*code, &[front, back], &mut out);
            }
            set_options_length(3, &mut out);
            let rdata = &out[3 + OPT_OCTETS..];
            prop_assert_eq!(&out[3 + OPT_OCTETS - 2..3 + OPT_OCTETS], &(rdata.len() as u16).to_be_bytes());
            let opt = Opt::from_parts(1232, u32::from(DO), rdata).expect("well-formed");
            let read: Vec<(u16, Vec<u8>)> = opt.options().map(|(code, data)| (code, data.to_vec())).collect();
            for (code, data) in &list {
                let first = list.iter().find(|(other, _)| other == code).map(|(_, data)| &data[..]);
                prop_assert_eq!(opt.option(*code), first, "{:?}", data);
            }
            prop_assert_eq!(read, list);
        }

        #[test]
        fn expire_options_are_read_as_written(seconds in any::<Option<u32>>()) {
            let mut out = Vec::new();
            push_expire(seconds, &mut out);
            let mut options = Options::new(&out);
            let (code, data) = options.next().expect("an option");
            prop_assert_eq!((code, read_expire(data)), (EXPIRE, Some(seconds)));
            prop_assert!(options.is_at_end());
        }

        #[test]
        fn iteration_over_arbitrary_octets_ends(octets in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut options = Options::new(&octets);
            let mut read_octets = 0;
            for (_, data) in options.by_ref() {
                read_octets += 4 + data.len();
            }
            // Octets remain exactly if an option length was too large.
            prop_assert_eq!(read_octets == octets.len(), options.is_at_end());
            prop_assert_eq!(Opt::from_parts(512, 0, &octets).is_some(), options.is_at_end());
            let _ = (CookieOption::read(&octets), read_keepalive(&octets), read_extended_error(&octets));
            prop_assert_eq!(read_expire(&octets).is_some(), matches!(octets.len(), 0 | 4));
            if let Some(name) = read_report_channel(&octets) {
                prop_assert_eq!(name.wire(), &octets[..]);
            }
        }
    }
}
