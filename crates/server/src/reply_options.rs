//! The options of a response's OPT record: what the query's options ask for, and what the server is configured to say.
//!
//! The sender's options are read once, before the answer is built: what must go back takes its room off the response's limit
//! then ([`ReplyOptions::room`]). What is a help and no more (an extended error, the reporting agent, padding) goes in where
//! it fits, so that none of it has a response truncated.

use crate::cookies::{COOKIE_OCTETS, CookieStatus, Cookies};
use crate::extended_errors::ExtendedError;
use crate::trailer::Transport;
use nonesuch_net::udp::RESPONSE_CAPACITY;
use nonesuch_proto::Name;
use nonesuch_proto::edns::{self, OPT_OCTETS, Opt};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Octets of an option's code and length.
const OPTION_HEADER: usize = 4;
/// The longest identifier of a server that is taken: a response over UDP keeps room for the answer.
const NSID_MOST: usize = 128;
/// Octets that a padded response over TLS is a multiple of (RFC 8467 §4.1).
const PADDING_BLOCK: u16 = 468;
/// Default of [`ReplySettings::max_udp_size`]: fits every path (RFC 9715 §3, RFC 6891 §6.2.5).
pub const DEFAULT_UDP_SIZE: u16 = 1232;
/// Allowed values of [`ReplySettings::max_udp_size`]: from what every client takes (RFC 1035 §4.2.1) to what UDP threads have buffers for.
pub const UDP_SIZES: RangeInclusive<u16> = 512..=RESPONSE_CAPACITY as u16;

/// What the server says of itself in OPT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplySettings {
    /// What senders who ask for it are told (RFC 5001); empty: nothing.
    pub nsid: Vec<u8>,
    /// Tenths of a second that a TCP or TLS connection may be idle (RFC 7828), as the server really waits.
    pub keepalive: u16,
    /// A response over TLS to a padded query is padded to a multiple of so many octets (RFC 7830, RFC 8467); 0: not.
    pub padding_block: u16,
    /// The domain of the agent that resolvers report errors to (RFC 9567).
    pub report_channel: Option<Name>,
    /// Maximum size of a response over UDP, in octets, and the payload size in the OPT records of responses (RFC 6891 §6.2.5).
    pub max_udp_size: u16,
}

impl Default for ReplySettings {
    fn default() -> Self {
        Self { keepalive: 100, padding_block: PADDING_BLOCK, ..Self::NONE }
    }
}

/// What is wrong with settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplySettingsError {
    /// The identifier takes the room of answers.
    #[error("nsid has {found} octets: {NSID_MOST} at most, so that answers have room beside it")]
    Nsid {
        /// Its octets.
        found: usize,
    },
    /// Reports would go to whoever serves the names below the root.
    #[error("report-channel is the root: give the domain that the reporting agent's zone is at")]
    ReportChannel,
    /// Outside of [`UDP_SIZES`].
    #[error("max-udp-size is {found}: give {} to {} octets", UDP_SIZES.start(), UDP_SIZES.end())]
    UdpSize {
        /// The size in octets.
        found: u16,
    },
}

impl ReplySettings {
    /// What nothing is added with.
    pub const NONE: Self = Self {
        nsid: Vec::new(),
        keepalive: 0,
        padding_block: 0,
        report_channel: None,
        max_udp_size: DEFAULT_UDP_SIZE,
    };

    /// Whether the settings can be sent.
    ///
    /// # Errors
    /// The setting that cannot.
    pub fn check(&self) -> Result<(), ReplySettingsError> {
        if self.nsid.len() > NSID_MOST {
            return Err(ReplySettingsError::Nsid { found: self.nsid.len() });
        }
        // Reports are names below the agent's domain (RFC 9567 §6.1.1): those below the root are everybody's.
        if self.report_channel.as_ref().is_some_and(|agent| agent.view().is_root()) {
            return Err(ReplySettingsError::ReportChannel);
        }
        if !UDP_SIZES.contains(&self.max_udp_size) {
            return Err(ReplySettingsError::UdpSize { found: self.max_udp_size });
        }
        Ok(())
    }
}

/// The query's cookie is malformed: FORMERR (RFC 7873 §5.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedOption;

/// What one response's OPT record is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyOptions {
    cookie_status: CookieStatus,
    cookie: Option<[u8; COOKIE_OCTETS]>,
    nsid: bool,
    keepalive: bool,
    padding: bool,
    /// Whether it is asked when the zone expires.
    wants_expire: bool,
    /// What is told of that.
    expire: Option<u32>,
}

impl ReplyOptions {
    /// Those of a query without options.
    pub const NONE: Self = Self {
        cookie_status: CookieStatus::Absent,
        cookie: None,
        nsid: false,
        keepalive: false,
        padding: false,
        wants_expire: false,
        expire: None,
    };

    /// Reads what a query's options ask for. `now` is in seconds since 1970 modulo 2^32. Of an option that comes twice the
    /// first counts.
    ///
    /// # Errors
    /// Where the cookie is malformed.
    #[inline]
    pub fn read(
        opt: &Opt<'_>,
        transport: Transport,
        settings: &ReplySettings,
        cookies: Option<&Cookies>,
        client: IpAddr,
        now: u32,
    ) -> Result<Self, MalformedOption> {
        if opt.options.is_empty() {
            return Ok(Self::NONE);
        }
        Self::read_some(opt, transport, settings, cookies, client, now)
    }

    fn read_some(
        opt: &Opt<'_>,
        transport: Transport,
        settings: &ReplySettings,
        cookies: Option<&Cookies>,
        client: IpAddr,
        now: u32,
    ) -> Result<Self, MalformedOption> {
        let mut read = Self::NONE;
        let mut cookie = None;
        for (code, data) in opt.options() {
            match code {
                edns::NSID => read.nsid = !settings.nsid.is_empty(),
                edns::COOKIE => cookie = cookie.or(Some(data)),
                // RFC 7828 §3.3.1: over UDP it means nothing. What it says in a query is nothing either (§3.2.1).
                edns::KEEPALIVE => read.keepalive = transport != Transport::Udp,
                // RFC 7314 §2: a question has no data. What has some asks for nothing.
                edns::EXPIRE => read.wants_expire |= data.is_empty(),
                // RFC 7830 §6: without encryption it hides nothing.
                edns::PADDING => read.padding = transport == Transport::Tls && settings.padding_block > 0,
                // Answers are the same for every network: client subnet is left out of the response (RFC 7871 §7.2.1).
                _ => {}
            }
        }
        if let (Some(cookies), Some(data)) = (cookies, cookie) {
            let checked = cookies.check(Some(data), client, now);
            if checked.status == CookieStatus::Malformed {
                return Err(MalformedOption);
            }
            (read.cookie_status, read.cookie) = (checked.status, checked.reply);
        }
        Ok(read)
    }

    /// The same without padding, which depends on the message around it.
    #[must_use]
    pub const fn without_padding(self) -> Self {
        Self { padding: false, ..self }
    }

    /// Whether it is asked when the zone expires (RFC 7314).
    #[inline]
    #[must_use]
    pub const fn wants_expire(&self) -> bool {
        self.wants_expire
    }

    /// The same with the seconds that are left to the zone, for a query that asks for them.
    #[must_use]
    pub const fn with_expire(self, seconds: Option<u32>) -> Self {
        Self { expire: if self.wants_expire { seconds } else { None }, ..self }
    }

    /// What the query's cookie says of its sender.
    #[must_use]
    pub const fn cookie(&self) -> CookieStatus {
        self.cookie_status
    }

    /// Whether nothing is to be added.
    #[inline]
    const fn is_none(&self) -> bool {
        !(self.nsid | self.keepalive | self.padding | self.cookie.is_some() | self.expire.is_some())
    }

    /// Octets that the options take that must be there.
    #[inline]
    #[must_use]
    pub fn room(&self, settings: &ReplySettings) -> usize {
        if self.is_none() {
            return 0;
        }
        let mut room = 0;
        if self.nsid {
            room += OPTION_HEADER + settings.nsid.len();
        }
        if self.cookie.is_some() {
            room += OPTION_HEADER + COOKIE_OCTETS;
        }
        if self.keepalive {
            room += OPTION_HEADER + 2;
        }
        if self.expire.is_some() {
            room += OPTION_HEADER + 4;
        }
        room
    }

    /// Appends the options to a message that ends in an OPT record without options, and writes that record's length. `limit` is
    /// what the message may have in all, and `behind` what follows OPT (TSIG).
    #[inline]
    pub fn push(
        &self,
        settings: &ReplySettings,
        error: Option<ExtendedError>,
        limit: usize,
        behind: usize,
        out: &mut Vec<u8>,
    ) {
        if error.is_some() || settings.report_channel.is_some() || !self.is_none() {
            self.push_some(settings, error, limit.saturating_sub(behind), behind, out);
        }
    }

    /// `limit` is that of the message to OPT's end.
    fn push_some(
        &self,
        settings: &ReplySettings,
        error: Option<ExtendedError>,
        limit: usize,
        behind: usize,
        out: &mut Vec<u8>,
    ) {
        let start = out.len().saturating_sub(OPT_OCTETS);
        if self.nsid {
            edns::push_option(edns::NSID, &[&settings.nsid], out);
        }
        if let Some(cookie) = &self.cookie {
            edns::push_option(edns::COOKIE, &[cookie], out);
        }
        if self.keepalive {
            edns::push_keepalive(settings.keepalive, out);
        }
        if self.expire.is_some() {
            edns::push_expire(self.expire, out);
        }
        if let Some(error) = error {
            push_error(error, limit, out);
        }
        if let Some(agent) = &settings.report_channel
            && out.len() + OPTION_HEADER + agent.wire().len() <= limit
        {
            edns::push_option(edns::REPORT_CHANNEL, &[agent.wire()], out);
        }
        if self.padding {
            push_padding(settings.padding_block, limit, behind, out);
        }
        edns::set_options_length(start, out);
    }
}

/// The error with its text where that fits, else without (RFC 8914 §3), else not at all.
fn push_error(error: ExtendedError, limit: usize, out: &mut Vec<u8>) {
    let room = limit.saturating_sub(out.len());
    if room >= OPTION_HEADER + 2 + error.text.len() {
        edns::push_extended_error(error.code, error.text, out);
    } else if room >= OPTION_HEADER + 2 {
        edns::push_extended_error(error.code, "", out);
    }
}

/// Pads the message, with what is `behind` it, to a multiple of `block`, or to the limit where that comes first.
fn push_padding(block: u16, limit: usize, behind: usize, out: &mut Vec<u8>) {
    let bare = out.len() + OPTION_HEADER;
    let wanted = (bare + behind).next_multiple_of(usize::from(block)) - behind;
    if let Some(octets) = wanted.min(limit).checked_sub(bare) {
        edns::push_padding(octets as u16, out);
    }
}

#[cfg(test)]
mod tests;
