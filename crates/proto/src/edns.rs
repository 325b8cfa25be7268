//! EDNS (RFC 6891): the OPT record of a query and of a response, and its options.

use crate::Rtype;

mod options;

pub use options::{
    CLIENT_SUBNET, COOKIE, CookieOption, EXPIRE, EXTENDED_ERROR, KEEPALIVE, NSID, Options, PADDING,
    REPORT_CHANNEL, push_expire, push_extended_error, push_keepalive, push_option, push_padding, read_expire,
    read_extended_error, read_keepalive, read_report_channel,
};

/// DNSSEC OK, in the low 16 bits of OPT's TTL (RFC 3225 §3).
pub const DO: u16 = 0x8000;
/// Compact answers OK (RFC 9824 §5.1).
pub const CO: u16 = 0x4000;
/// Octets of an OPT record without options.
pub const OPT_OCTETS: usize = 11;

/// What a query's OPT record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opt<'a> {
    /// The sender's UDP payload size; values below 512 mean 512 (RFC 6891 §6.2.3).
    pub payload: u16,
    /// EDNS version.
    pub version: u8,
    /// Upper eight bits of the response code.
    pub extended_rcode: u8,
    /// Flags: [`DO`], [`CO`] and bits without meaning.
    pub flags: u16,
    /// The options' octets, unread.
    pub options: &'a [u8],
}

impl<'a> Opt<'a> {
    /// Reads an OPT record from its class, TTL and RDATA; `None` where the options' lengths do not add up. The RDATA of another
    /// version than 0 has an unknown form and is ignored: a responder answers BADVERS whatever it holds (RFC 6891 §6.1.3).
    #[must_use]
    pub fn from_parts(class: u16, ttl: u32, options: &'a [u8]) -> Option<Self> {
        let version = (ttl >> 16) as u8;
        let options = if version == 0 { options } else { &[] };
        let opt = Self {
            payload: class.max(512),
            version,
            extended_rcode: (ttl >> 24) as u8,
            flags: ttl as u16,
            options,
        };
        opt.is_well_formed().then_some(opt)
    }

    fn is_well_formed(&self) -> bool {
        let mut options = self.options();
        options.by_ref().for_each(drop);
        options.is_at_end()
    }

    /// The options in their order: code and data.
    #[must_use]
    pub const fn options(&self) -> Options<'a> {
        Options::new(self.options)
    }

    /// The data of the first option with `code`.
    #[must_use]
    pub fn option(&self, code: u16) -> Option<&'a [u8]> {
        self.options().find(|(found, _)| *found == code).map(|(_, data)| data)
    }

    /// Whether the sender takes DNSSEC records.
    #[must_use]
    pub const fn dnssec_ok(&self) -> bool {
        self.flags & DO != 0
    }
}

/// Appends an OPT record without options.
#[inline]
pub fn push_opt(payload: u16, extended_rcode: u8, opt_flags: u16, out: &mut Vec<u8>) {
    let [p, q] = payload.to_be_bytes();
    let [f, g] = opt_flags.to_be_bytes();
    let [t, u] = Rtype::OPT.0.to_be_bytes();
    out.extend_from_slice(&[0, t, u, p, q, extended_rcode, 0, f, g, 0, 0]);
}

/// Writes RDLENGTH of the OPT record that begins at `start` and ends the message so far: what follows its fixed part are
/// options.
pub fn set_options_length(start: usize, out: &mut [u8]) {
    let Some((fixed, options)) = out.get_mut(start..).and_then(|opt| opt.split_at_mut_checked(OPT_OCTETS))
    else {
        return;
    };
    // A message has fewer octets.
    let length = u16::try_from(options.len()).unwrap_or(u16::MAX);
    fixed[OPT_OCTETS - 2..].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_must_add_up() {
        assert!(Opt::from_parts(1232, 0x8000, &[0, 10, 0, 1, 9]).is_some_and(|opt| opt.dnssec_ok()));
        assert!(Opt::from_parts(1232, 0, &[0, 10, 0, 2, 9]).is_none());
        assert!(Opt::from_parts(1232, 0, &[0]).is_none());
        assert_eq!(Opt::from_parts(0, 0, &[]).map(|opt| opt.payload), Some(512));
        let other = Opt::from_parts(1232, 1 << 16, &[0, 10, 0, 2, 9]).expect("another version");
        assert_eq!((other.version, other.options), (1, &[][..]));
        let mut out = Vec::new();
        push_opt(1232, 1, DO, &mut out);
        assert_eq!(out.len(), OPT_OCTETS);
    }
}
