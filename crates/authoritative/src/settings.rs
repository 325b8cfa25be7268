//! What a server does beside answering from its zones: keys, cookies, limits, options of responses. A reload replaces it as
//! a whole.

use crate::chaos::Chaos;
use nonesuch_server::cookies::Cookies;
use nonesuch_server::limits::Limits;
use nonesuch_server::reply_options::ReplySettings;
use nonesuch_server::tsig::TsigKeys;
use std::sync::Arc;

/// What a reload may change while the sockets stay. By default nothing is signed, limited or added.
#[derive(Clone, Debug, Default)]
pub struct AnswerSettings {
    /// Keys of those who sign their messages (RFC 8945).
    pub keys: TsigKeys,
    /// What cookies are made with (RFC 7873); none: they are not answered.
    pub cookies: Option<Cookies>,
    /// Bounds of what one client gets; none: no bounds.
    pub limits: Option<Arc<Limits>>,
    /// Options of responses.
    pub reply: ReplySettings,
    /// Whether the queries for each zone are counted.
    pub counts_zone_queries: bool,
    /// What is said of the server itself.
    pub chaos: Chaos,
}
