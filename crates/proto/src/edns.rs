//! EDNS (RFC 6891): the OPT record of queries and responses, and its options.

use crate::Rtype;

mod options;

pub use options::{
    CLIENT_SUBNET, COOKIE, CookieOption, EXPIRE, EXTENDED_ERROR, KEEPALIVE, NSID, Options, PADDING,
    REPORT_CHANNEL, push_expire, push_extended_error, push_keepalive, push_option, push_padding, read_expire,
    read_extended_error, read_keepalive, read_report_channel,
};

/// DO flag (DNSSEC OK) in the low 16 bits of the TTL field of OPT (RFC 3225 §3).
pub const DO: u16 = 0x8000;
/// CO flag (Compact Answers OK, RFC 9824 §5.1).
pub const CO: u16 = 0x4000;
/// Length of an OPT record without options, in octets.
pub const OPT_OCTETS: usize = 11;

/// The contents of an OPT record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opt<'a> {
    /// UDP payload size of the sender, in octets. Values below 512 count as 512 (RFC 6891 §6.2.3).
    pub payload: u16,
    /// EDNS version.
    pub version: u8,
    /// Upper eight bits of the extended response code.
    pub extended_rcode: u8,
    /// Flags: [`DO`], [`CO`] and unassigned bits.
    pub flags: u16,
    /// The options in wire form.
    pub options: &'a [u8],
}

impl<'a> Opt<'a> {
    /// Reads an OPT record from its class, TTL and RDATA. Returns `None` if the lengths of the
    /// options do not match the length of the RDATA.
    ///
    /// The format of the RDATA of versions other than 0 is unknown, so it is ignored: a responder
    /// answers BADVERS to such a query regardless of the RDATA (RFC 6891 §6.1.3).
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

    /// Returns an iterator over the options, each with its code and data.
    #[must_use]
    pub const fn options(&self) -> Options<'a> {
        Options::new(self.options)
    }

    /// Returns the data of the first option with the code `code`.
    #[must_use]
    pub fn option(&self, code: u16) -> Option<&'a [u8]> {
        self.options().find(|(found, _)| *found == code).map(|(_, data)| data)
    }

    /// Returns whether the DO flag is set, that is, whether the sender requests DNSSEC records.
    #[must_use]
    pub const fn dnssec_ok(&self) -> bool {
        self.flags & DO != 0
    }
}

/// Appends an OPT record of EDNS version 0 without options. The parameters are the fields of
/// [`Opt`].
#[inline]
pub fn push_opt(payload: u16, extended_rcode: u8, opt_flags: u16, out: &mut Vec<u8>) {
    let [type_high, type_low] = Rtype::OPT.0.to_be_bytes();
    let [payload_high, payload_low] = payload.to_be_bytes();
    let [flags_high, flags_low] = opt_flags.to_be_bytes();
    // Root name, type, payload size, upper response code, version, flags, and RDLENGTH.
    let fields =
        [0, type_high, type_low, payload_high, payload_low, extended_rcode, 0, flags_high, flags_low, 0, 0];
    out.extend_from_slice(&fields);
}

/// Sets RDLENGTH of the OPT record that begins at the offset `start` and is the last record of the
/// message `out`. All octets after the fixed part of the record are options. Does nothing if the
/// message ends before the end of the fixed part.
pub fn set_options_length(start: usize, out: &mut [u8]) {
    let Some((fixed, options)) = out.get_mut(start..).and_then(|opt| opt.split_at_mut_checked(OPT_OCTETS))
    else {
        return;
    };
    // A message is at most 65,535 octets long, so the length of the options fits into 16 bits.
    let length = u16::try_from(options.len()).unwrap_or(u16::MAX);
    fixed[OPT_OCTETS - 2..].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_lengths_must_match_the_rdata() {
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
