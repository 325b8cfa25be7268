//! The EDNS options of a response: requested by the query, or configured.
//!
//! The server reads the options of the query once, before it builds the answer. Required options
//! reduce the size that is available for the answer ([`ReplyOptions::room`]). Optional ones (an
//! extended error, the reporting agent, padding) are added only if there is room, so they never
//! cause truncation.

use crate::cookies::{COOKIE_OCTETS, CookieStatus, Cookies};
use crate::extended_errors::ExtendedError;
use crate::trailer::Transport;
use nonesuch_net::udp::RESPONSE_CAPACITY;
use nonesuch_proto::Name;
use nonesuch_proto::edns::{self, OPT_OCTETS, Opt};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Octets of the code and the length of an option.
const OPTION_HEADER: usize = 4;
/// Maximum length of the server identifier in octets. A longer one would leave a UDP response too
/// little room for the answer.
const NSID_MOST: usize = 128;
/// Block size of padded responses over TLS, in octets (RFC 8467 §4.1).
const PADDING_BLOCK: u16 = 468;
/// Default of [`ReplySettings::max_udp_size`], in octets. This size passes every path without
/// fragmentation (RFC 9715 §3, RFC 6891 §6.2.5).
pub const DEFAULT_UDP_SIZE: u16 = 1232;
/// Valid values of [`ReplySettings::max_udp_size`]: from the size that every client accepts (RFC
/// 1035 §4.2.1) to the size of the buffers of UDP workers.
pub const UDP_SIZES: RangeInclusive<u16> = 512..=RESPONSE_CAPACITY as u16;

/// The configured contents of OPT records in responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplySettings {
    /// The identifier for clients that request it (RFC 5001); empty: no identifier.
    pub nsid: Vec<u8>,
    /// Idle timeout of TCP and TLS connections for clients that request it, in units of 100 ms (RFC
    /// 7828 §3.1). The caller sets it to the time that the server waits for the next query. 0: the
    /// option is not sent.
    pub keepalive: u16,
    /// Responses over TLS to padded queries are padded to a multiple of this many octets (RFC 7830,
    /// RFC 8467); 0: no padding.
    pub padding_block: u16,
    /// The agent domain to which resolvers report errors (RFC 9567).
    pub report_channel: Option<Name>,
    /// Maximum size of a UDP response in octets, and the payload size in the OPT records of
    /// responses (RFC 6891 §6.2.5).
    pub max_udp_size: u16,
}

impl Default for ReplySettings {
    fn default() -> Self {
        Self { keepalive: 100, padding_block: PADDING_BLOCK, ..Self::NONE }
    }
}

/// An invalid setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplySettingsError {
    /// The identifier is too long and would take the room of answers.
    #[error("nsid has {found} octets: the maximum is {NSID_MOST}, which leaves room for the answer")]
    Nsid {
        /// The length in octets.
        found: usize,
    },
    /// The agent domain is the root, so reports would be sent to arbitrary servers.
    #[error("report-channel is the root: set it to the domain of the reporting agent")]
    ReportChannel,
    /// The size is outside of [`UDP_SIZES`].
    #[error("max-udp-size is {found}: must be {} to {} octets", UDP_SIZES.start(), UDP_SIZES.end())]
    UdpSize {
        /// The size in octets.
        found: u16,
    },
}

impl ReplySettings {
    /// Settings that add no options.
    pub const NONE: Self = Self {
        nsid: Vec::new(),
        keepalive: 0,
        padding_block: 0,
        report_channel: None,
        max_udp_size: DEFAULT_UDP_SIZE,
    };

    /// Checks that the settings can be sent.
    ///
    /// # Errors
    /// Returns the first invalid setting.
    pub fn check(&self) -> Result<(), ReplySettingsError> {
        if self.nsid.len() > NSID_MOST {
            return Err(ReplySettingsError::Nsid { found: self.nsid.len() });
        }
        // Reports are queries for names below the agent domain (RFC 9567 §6.1.1). Names below the
        // root belong to other operators.
        if self.report_channel.as_ref().is_some_and(|agent| agent.view().is_root()) {
            return Err(ReplySettingsError::ReportChannel);
        }
        if !UDP_SIZES.contains(&self.max_udp_size) {
            return Err(ReplySettingsError::UdpSize { found: self.max_udp_size });
        }
        Ok(())
    }
}

/// The cookie of the query is malformed: FORMERR (RFC 7873 §5.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedOption;

/// The options for the OPT record of one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyOptions {
    cookie_status: CookieStatus,
    cookie: Option<[u8; COOKIE_OCTETS]>,
    nsid: bool,
    keepalive: bool,
    padding: bool,
    /// Whether the query has the EXPIRE option.
    wants_expire: bool,
    /// The EXPIRE value in the response, in seconds.
    expire: Option<u32>,
}

impl ReplyOptions {
    /// The options for a query without options.
    pub const NONE: Self = Self {
        cookie_status: CookieStatus::Absent,
        cookie: None,
        nsid: false,
        keepalive: false,
        padding: false,
        wants_expire: false,
        expire: None,
    };

    /// Reads the options of a query. `now` is in seconds since 1970 modulo 2^32. If the query has
    /// several cookie options, the first one counts.
    ///
    /// # Errors
    /// Fails if the cookie is malformed.
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
                // RFC 7828 §3.3.1: ignored over UDP. The value in a query is ignored too (§3.2.1).
                // A timeout of 0 would tell the client to close the connection (§3.2.2).
                edns::KEEPALIVE => read.keepalive = transport != Transport::Udp && settings.keepalive > 0,
                // RFC 7314 §2: the option is empty in a query. An option with data is ignored.
                edns::EXPIRE => read.wants_expire |= data.is_empty(),
                // RFC 7830 §6: padding without encryption hides nothing.
                edns::PADDING => read.padding = transport == Transport::Tls && settings.padding_block > 0,
                // Responses do not depend on the client's network, so the response has no client
                // subnet option (RFC 7871 §7.2.1).
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

    /// Returns these options without padding, which depends on the rest of the message.
    #[must_use]
    pub const fn without_padding(self) -> Self {
        Self { padding: false, ..self }
    }

    /// Whether the client requests the expire time of the zone (RFC 7314).
    #[inline]
    #[must_use]
    pub const fn wants_expire(&self) -> bool {
        self.wants_expire
    }

    /// Returns these options with the EXPIRE value, if the query requests it. `seconds`: the time
    /// until the zone expires.
    #[must_use]
    pub const fn with_expire(self, seconds: Option<u32>) -> Self {
        Self { expire: if self.wants_expire { seconds } else { None }, ..self }
    }

    /// The status of the query's cookie.
    #[must_use]
    pub const fn cookie(&self) -> CookieStatus {
        self.cookie_status
    }

    /// Whether the response has no options.
    #[inline]
    const fn is_none(&self) -> bool {
        !(self.nsid | self.keepalive | self.padding | self.cookie.is_some() | self.expire.is_some())
    }

    /// Returns the octets of the required options.
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

    /// Appends the options to a message that ends in an OPT record without options, and updates the
    /// length of this record. `limit` is the maximum size of the whole message, and `behind` the
    /// size of the data after OPT (TSIG), both in octets.
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

    /// `limit` is the maximum size up to the end of OPT.
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

/// Appends the error with its text if there is room, else without text (RFC 8914 §3), else nothing.
fn push_error(error: ExtendedError, limit: usize, out: &mut Vec<u8>) {
    let room = limit.saturating_sub(out.len());
    if room >= OPTION_HEADER + 2 + error.text.len() {
        edns::push_extended_error(error.code, error.text, out);
    } else if room >= OPTION_HEADER + 2 {
        edns::push_extended_error(error.code, "", out);
    }
}

/// Pads the message, including the `behind` octets after it, to a multiple of `block`, but at most
/// to the limit.
fn push_padding(block: u16, limit: usize, behind: usize, out: &mut Vec<u8>) {
    let bare = out.len() + OPTION_HEADER;
    let wanted = (bare + behind).next_multiple_of(usize::from(block)) - behind;
    if let Some(octets) = wanted.min(limit).checked_sub(bare) {
        edns::push_padding(octets as u16, out);
    }
}

#[cfg(test)]
mod tests;
