//! Settings of a server apart from its zones: TSIG keys, cookies, limits and options of responses.
//! A reload replaces them as a whole.

use crate::chaos::Chaos;
use nonesuch_server::cookies::Cookies;
use nonesuch_server::limits::Limits;
use nonesuch_server::reply_options::ReplySettings;
use nonesuch_server::tsig::TsigKeys;
use std::sync::Arc;

/// Settings that a reload can change while the sockets remain open. By default, the server knows no
/// TSIG keys, applies no limits and adds no options.
#[derive(Clone, Debug, Default)]
pub struct AnswerSettings {
    /// TSIG keys of clients and servers (RFC 8945).
    pub tsig_keys: TsigKeys,
    /// Secrets for server cookies (RFC 7873). With `None`, the server ignores cookies.
    pub cookies: Option<Cookies>,
    /// Rate limits for each client network. With `None`, there are no limits.
    pub limits: Option<Arc<Limits>>,
    /// EDNS options of responses.
    pub reply: ReplySettings,
    /// Whether the server counts the queries for each zone.
    pub counts_zone_queries: bool,
    /// Answers about the server itself, in class CH.
    pub chaos: Chaos,
}
