//! What all workers share.

use crate::cache::Cache;
use crate::local_names::LocalNames;
use crate::options::ResolverOptions;
use crate::servers::ServerTable;
use nonesuch_server::cookies::Cookies;
use nonesuch_server::reply_options::ReplySettings;

/// The caches and the configuration of a resolver. All workers share it.
#[derive(Debug)]
pub struct Shared {
    /// The options.
    pub options: ResolverOptions,
    /// EDNS options of replies.
    pub reply: ReplySettings,
    /// The cookies for clients; `None`: cookies of clients are ignored.
    pub cookies: Option<Cookies>,
    /// RRsets, negative answers and failures.
    pub cache: Cache,
    /// The servers that were asked.
    pub servers: ServerTable,
    /// Names that are not looked up.
    pub local_names: LocalNames,
}
