//! The EDNS options of a response: requested by the query, or configured.
//!
//! The server reads the options of the query once, before it builds the answer. Required options
//! (NSID, cookie, keepalive, EXPIRE) reduce the size that is available for the answer
//! ([`ReplyOptions::required_octets`]). Optional ones (an extended error, the reporting agent, padding) are
//! added only if there is room, so they never cause truncation.

use crate::cookies::{COOKIE_OCTETS, CookieStatus, Cookies};
use crate::extended_errors::ExtendedErrorRef;
use nonesuch_net::Transport;
use nonesuch_net::udp::RESPONSE_CAPACITY;
use nonesuch_proto::Name;
use nonesuch_proto::edns::{self, OPT_OCTETS, Opt};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Octets of the code and the length field of an option.
const OPTION_HEADER: usize = 4;
/// Maximum length of the server identifier in octets. A longer one would leave too little room for
/// the answer in a UDP response.
const NSID_MAX: usize = 128;
/// Block size of padded responses over TLS, in octets (RFC 8467 §4.1).
const PADDING_BLOCK: u16 = 468;
/// Default of [`ReplySettings::max_udp_size`], in octets. With headers, it is the minimum MTU of
/// IPv6 (1,280 octets), so practically no path fragments a response of this size (RFC 9715 §3, RFC
/// 6891 §6.2.5).
pub const DEFAULT_UDP_SIZE: u16 = 1232;
/// Valid values of [`ReplySettings::max_udp_size`]: from the size that every client accepts (RFC
/// 1035 §4.2.1) to the size of the buffers of UDP workers.
pub const UDP_SIZE_RANGE: RangeInclusive<u16> = 512..=RESPONSE_CAPACITY as u16;

/// The configured contents of OPT records in responses. The default has a keepalive timeout of 10 s
/// and padding, and otherwise equals [`ReplySettings::NONE`].
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
    /// The agent domain to which resolvers report errors (RFC 9567); `None`: no agent domain.
    pub report_channel: Option<Name>,
    /// Maximum size of a UDP response in octets, within [`UDP_SIZE_RANGE`]. It is also the payload
    /// size in the OPT records of responses (RFC 6891 §6.2.5).
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
    /// The server identifier is longer than 128 octets, which would leave too little room for the
    /// answer.
    #[error("nsid has {found} octets: the maximum is {NSID_MAX}, which leaves room for the answer")]
    Nsid {
        /// The length in octets.
        found: usize,
    },
    /// The agent domain is the root, so reports would be sent to arbitrary servers.
    #[error("report-channel is the root: set it to the domain of the reporting agent")]
    ReportChannel,
    /// The size is outside of [`UDP_SIZE_RANGE`].
    #[error("max-udp-size is {found}: must be {} to {} octets", UDP_SIZE_RANGE.start(), UDP_SIZE_RANGE.end())]
    UdpSize {
        /// The size in octets.
        found: u16,
    },
}

impl ReplySettings {
    /// Settings that add no options to the OPT record.
    pub const NONE: Self = Self {
        nsid: Vec::new(),
        keepalive: 0,
        padding_block: 0,
        report_channel: None,
        max_udp_size: DEFAULT_UDP_SIZE,
    };

    /// Checks the lengths and the agent domain.
    ///
    /// # Errors
    /// Returns the first invalid setting. [`ReplySettingsError`] lists the rules.
    pub fn check(&self) -> Result<(), ReplySettingsError> {
        if self.nsid.len() > NSID_MAX {
            return Err(ReplySettingsError::Nsid { found: self.nsid.len() });
        }
        // Reports are queries for names below the agent domain (RFC 9567 §6.1.1). Names below the
        // root belong to other operators (§4).
        if self.report_channel.as_ref().is_some_and(|agent| agent.view().is_root()) {
            return Err(ReplySettingsError::ReportChannel);
        }
        if !UDP_SIZE_RANGE.contains(&self.max_udp_size) {
            return Err(ReplySettingsError::UdpSize { found: self.max_udp_size });
        }
        Ok(())
    }
}

/// The cookie option of the query is malformed. The caller must answer with FORMERR (RFC 7873
/// §5.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedCookie;

/// The options for the OPT record of one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyOptions {
    cookie_status: CookieStatus,
    /// The cookie option of the response; `None`: the response has none.
    response_cookie: Option<[u8; COOKIE_OCTETS]>,
    /// Whether the response has the NSID option.
    has_nsid: bool,
    /// Whether the response has the edns-tcp-keepalive option.
    has_keepalive: bool,
    /// Whether the response has the padding option.
    has_padding: bool,
    /// Whether the query has an EXPIRE option without data.
    wants_expire: bool,
    /// The EXPIRE value in the response, in seconds; `None`: the response has no EXPIRE option.
    expire: Option<u32>,
}

impl ReplyOptions {
    /// The options for a query without options.
    pub const NONE: Self = Self {
        cookie_status: CookieStatus::Absent,
        response_cookie: None,
        has_nsid: false,
        has_keepalive: false,
        has_padding: false,
        wants_expire: false,
        expire: None,
    };

    /// Selects the options of the response from the options of the query, in `opt`. `client` is the
    /// address of the client, and `now` the time in seconds since 1970 modulo 2^32. If `cookies` is
    /// `None`, the server ignores cookies. If the query has several cookie options, the first one
    /// counts.
    ///
    /// # Errors
    /// Fails if `cookies` is given and the cookie option is malformed.
    #[inline]
    pub fn read(
        opt: &Opt<'_>,
        transport: Transport,
        settings: &ReplySettings,
        cookies: Option<&Cookies>,
        client: IpAddr,
        now: u32,
    ) -> Result<Self, MalformedCookie> {
        if opt.options.is_empty() {
            return Ok(Self::NONE);
        }
        Self::read_nonempty(opt, transport, settings, cookies, client, now)
    }

    fn read_nonempty(
        opt: &Opt<'_>,
        transport: Transport,
        settings: &ReplySettings,
        cookies: Option<&Cookies>,
        client: IpAddr,
        now: u32,
    ) -> Result<Self, MalformedCookie> {
        let mut read = Self::NONE;
        let mut cookie = None;
        for (code, data) in opt.options() {
            match code {
                edns::NSID => read.has_nsid = !settings.nsid.is_empty(),
                edns::COOKIE => cookie = cookie.or(Some(data)),
                // RFC 7828 §3.3.1: ignored over UDP. The value in a query is ignored too (§3.2.1).
                // A timeout of 0 would tell the client to close the connection (§3.2.2).
                edns::KEEPALIVE => read.has_keepalive = transport != Transport::Udp && settings.keepalive > 0,
                // RFC 7314 §2: the option is empty in a query. An option with data is ignored.
                edns::EXPIRE => read.wants_expire |= data.is_empty(),
                // RFC 7830 §6: padding without encryption hides nothing.
                edns::PADDING => read.has_padding = transport == Transport::Tls && settings.padding_block > 0,
                // Responses do not depend on the client's network, so the response has no client
                // subnet option (RFC 7871 §7.2.1).
                _ => {}
            }
        }
        if let (Some(cookies), Some(data)) = (cookies, cookie) {
            let checked = cookies.check(Some(data), client, now);
            if checked.status == CookieStatus::Malformed {
                return Err(MalformedCookie);
            }
            (read.cookie_status, read.response_cookie) = (checked.status, checked.reply);
        }
        Ok(read)
    }

    /// Returns these options without padding, which depends on the rest of the message.
    #[must_use]
    pub const fn without_padding(self) -> Self {
        Self { has_padding: false, ..self }
    }

    /// Whether the client requests the expire time of the zone (RFC 7314).
    #[inline]
    #[must_use]
    pub const fn wants_expire(&self) -> bool {
        self.wants_expire
    }

    /// Returns these options with the EXPIRE value if the query requests it. `seconds` is the time
    /// until the zone expires; `None`: the response has no EXPIRE option.
    #[must_use]
    pub const fn with_expire(self, seconds: Option<u32>) -> Self {
        Self { expire: if self.wants_expire { seconds } else { None }, ..self }
    }

    /// The status of the query's cookie.
    #[must_use]
    pub const fn cookie_status(&self) -> CookieStatus {
        self.cookie_status
    }

    /// Whether the response has no options.
    #[inline]
    const fn is_none(&self) -> bool {
        !(self.has_nsid
            | self.has_keepalive
            | self.has_padding
            | self.response_cookie.is_some()
            | self.expire.is_some())
    }

    /// Returns the size of the required options, in octets. The records of the response must leave
    /// this much room.
    #[inline]
    #[must_use]
    pub fn required_octets(&self, settings: &ReplySettings) -> usize {
        if self.is_none() {
            return 0;
        }
        let mut octets = 0;
        if self.has_nsid {
            octets += OPTION_HEADER + settings.nsid.len();
        }
        if self.response_cookie.is_some() {
            octets += OPTION_HEADER + COOKIE_OCTETS;
        }
        if self.has_keepalive {
            octets += OPTION_HEADER + 2;
        }
        if self.expire.is_some() {
            octets += OPTION_HEADER + 4;
        }
        octets
    }

    /// Appends the options to a message that ends in an OPT record without options, and updates the
    /// length of this record. `error` is the extended error of the response, if it has one. `limit`
    /// is the maximum size of the whole message, and `octets_after_opt` the size of the data after
    /// OPT (TSIG), both in octets.
    #[inline]
    pub fn push(
        &self,
        settings: &ReplySettings,
        error: Option<ExtendedErrorRef<'_>>,
        limit: usize,
        octets_after_opt: usize,
        out: &mut Vec<u8>,
    ) {
        if error.is_some() || settings.report_channel.is_some() || !self.is_none() {
            self.push_nonempty(
                settings,
                error,
                limit.saturating_sub(octets_after_opt),
                octets_after_opt,
                out,
            );
        }
    }

    /// Does the work of [`ReplyOptions::push`]. `limit` is the maximum size of the message up to
    /// the end of OPT, in octets.
    fn push_nonempty(
        &self,
        settings: &ReplySettings,
        error: Option<ExtendedErrorRef<'_>>,
        limit: usize,
        octets_after_opt: usize,
        out: &mut Vec<u8>,
    ) {
        let start = out.len().saturating_sub(OPT_OCTETS);
        if self.has_nsid {
            edns::push_option(edns::NSID, &[&settings.nsid], out);
        }
        if let Some(cookie) = &self.response_cookie {
            edns::push_option(edns::COOKIE, &[cookie], out);
        }
        if self.has_keepalive {
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
        if self.has_padding {
            push_padding(settings.padding_block, limit, octets_after_opt, out);
        }
        edns::set_options_length(start, out);
    }
}

/// Appends an extended error: with its text if there is room, else without text (RFC 8914 §3), else
/// not at all. `limit` is the maximum size up to the end of OPT.
fn push_error(error: ExtendedErrorRef<'_>, limit: usize, out: &mut Vec<u8>) {
    let room = limit.saturating_sub(out.len());
    if room >= OPTION_HEADER + 2 + error.text.len() {
        edns::push_extended_error(error.code, error.text, out);
    } else if room >= OPTION_HEADER + 2 {
        edns::push_extended_error(error.code, "", out);
    }
}

/// Appends a padding option, so that the size of the message including `octets_after_opt` is a
/// multiple of `block`, unless this exceeds `limit` (the maximum size up to the end of OPT).
fn push_padding(block: u16, limit: usize, octets_after_opt: usize, out: &mut Vec<u8>) {
    let unpadded = out.len() + OPTION_HEADER;
    let padded = (unpadded + octets_after_opt).next_multiple_of(usize::from(block)) - octets_after_opt;
    if let Some(octets) = padded.min(limit).checked_sub(unpadded) {
        edns::push_padding(octets as u16, out);
    }
}

#[cfg(test)]
mod tests;
