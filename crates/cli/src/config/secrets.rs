//! The tables `[cookies]` and `[key.…]` and their secrets. The secret of a TSIG key is in a
//! separate file or in the configuration. Cookie secrets are always in a separate file.

use super::keys::{Row, Table, default, example, hidden, key};
use super::section::{Item, NamedTable, Section};
use super::server::warn_if_world_readable;
use super::sources::FileRole;
use super::value_error::ValueError;
use super::values::{boolean, choice, parse_name, path, text};
use crate::files::{is_world_readable, read_key_file};
use nonesuch_proto::Name;
use nonesuch_server::cookies::{self, Secret};
use nonesuch_server::limits::RequireCookie;
use nonesuch_server::tsig::{TsigAlgorithm, TsigKey, read_keys};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Values of `require`.
const REQUIRE: [(&str, RequireCookie); 2] =
    [("never", RequireCookie::Never), ("when-limited", RequireCookie::WhenLimited)];

/// DNS cookies (RFC 7873, RFC 9018).
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Cookies {
    pub(crate) is_disabled: bool,
    /// The current secret, then other accepted secrets. If the list is empty, the server uses a
    /// random secret.
    pub(crate) secrets: Vec<Secret>,
    pub(crate) require: RequireCookie,
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The output must not contain secrets.
        write!(f, "Cookies {{ is_disabled: {}, require: {:?} }}", self.is_disabled, self.require)
    }
}

/// The fields that the keys of `[cookies]` set.
#[derive(Default)]
pub(super) struct CookieFields {
    pub(super) cookies: Cookies,
    file: Option<PathBuf>,
}

pub(super) fn cookie_table() -> Table<CookieFields> {
    Table::new(vec![
        Row::Text(
            "
[cookies]
# Support DNS cookies (RFC 7873, RFC 9018).",
        ),
        key("enabled", boolean, default(true), |c, v| c.cookies.is_disabled = !v),
        Row::Text(
            "# File with secrets of 32 hexadecimal digits, one on each line, the current secret first. The
# servers of one anycast address share it. Default: a random secret.",
        ),
        key("secret-file", path, example("/etc/nonesuch/cookie-secrets"), |c, v| c.file = Some(v)),
        Row::Text(
            "# Response to a client that sends a cookie, but no valid server cookie, in place of a truncated
# response over a rate limit. when-limited: BADCOOKIE with a valid cookie. never: the truncated
# response.",
        ),
        key("require", choice(REQUIRE), default("when-limited"), |c, v| c.cookies.require = v),
    ])
}

impl Cookies {
    pub(super) fn read(root: &Section<'_>) -> Self {
        let Some(section) = root.subtable("cookies") else { return cookie_table().defaults().cookies };
        let CookieFields { mut cookies, file } = cookie_table().read_all(&section);
        cookies.secrets = file.map_or_else(Vec::new, |file| read_cookie_secrets(&section, &file));
        if cookies.is_disabled && section.has("secret-file") {
            let message = "cookies are off (enabled = false): enable them, or leave the secret out";
            section.report_fault("secret-file", message);
        }
        cookies
    }
}

/// Reads one secret of 32 hexadecimal digits from each line; the first is the current secret.
fn read_cookie_secrets(section: &Section<'_>, file: &Path) -> Vec<Secret> {
    let Some(text) = read_secret_file(section, file) else { return Vec::new() };
    cookies::Cookies::parse_secrets(&text).unwrap_or_else(|error| {
        let message = format!("{}: {error}, as `openssl rand -hex 16` prints them", file.display());
        section.report_fault("secret-file", message);
        Vec::new()
    })
}

/// Reads a secret from the file in `secret-file`, which must be a regular file of limited size.
fn read_secret_file(section: &Section<'_>, path: &Path) -> Option<Zeroizing<String>> {
    section.record_file("secret-file", path, FileRole::Secret);
    let text =
        read_key_file(path).map_err(|error| section.report_fault("secret-file", error.to_string())).ok()?;
    warn_if_world_readable(section, "secret-file", path);
    Some(text)
}

/// The fields that the keys of a table `[key.…]` set.
#[derive(Default)]
pub(super) struct TsigKeyFields {
    algorithm: Option<TsigAlgorithm>,
    secret: Option<Zeroizing<String>>,
    file: Option<PathBuf>,
}

pub(super) fn key_table() -> Table<TsigKeyFields> {
    let secret = |item: Item<'_, '_>| text(item).map(Zeroizing::new);
    Table::new(vec![
        Row::Text(
            r#"
# TSIG keys (RFC 8945). `nonesuch key tsig NAME` generates a key and prints its table.
#[key."transfer.example."]  # example
# Algorithm: hmac-sha256, hmac-sha384 or hmac-sha512. Default: the algorithm in a file in BIND
# format, else hmac-sha256."#,
        ),
        key("algorithm", algorithm, example("hmac-sha256"), |k, v| k.algorithm = Some(v)),
        Row::Text(
            r#"# File with the secret in base64 (`openssl rand -base64 32` generates one), or with the key in BIND
# format (key "NAME" { … };). If only the server's user can read this configuration, secret = "…"
# with the secret in base64 can replace the file."#,
        ),
        key("secret-file", path, example("/etc/nonesuch/transfer.secret"), |k, v| k.file = Some(v)),
        key("secret", secret, hidden(), |k, v| k.secret = Some(v)),
    ])
}

fn algorithm(item: Item<'_, '_>) -> Result<TsigAlgorithm, ValueError> {
    let text = text(item)?;
    let allowed = "\"hmac-sha256\", \"hmac-sha384\" or \"hmac-sha512\"";
    text.parse().map_err(|_| ValueError::not_allowed(item, allowed))
}

/// The TSIG keys of all files.
#[derive(Default)]
pub(super) struct TsigList {
    /// The valid keys.
    pub(super) keys: Vec<TsigKey>,
    /// The names of all keys, including invalid ones.
    pub(super) names: BTreeSet<Name>,
}

impl TsigList {
    pub(super) fn read(tables: &[NamedTable<'_>]) -> Self {
        let (mut list, mut locations, table) = (Self::default(), BTreeMap::new(), key_table());
        for named in tables {
            let name =
                parse_name(&named.name).map_err(|error| named.report_fault("key", error.to_string())).ok();
            list.names.extend(name.clone());
            let Some(key) = table.read_all(&named.section).resolve(&named.section, name) else { continue };
            match locations.entry(key.name().to_canonical()) {
                Entry::Vacant(entry) => {
                    entry.insert(named.location("key"));
                    list.keys.push(key);
                }
                Entry::Occupied(earlier) => named.report_fault(
                    "key",
                    format!(
                        "a key of this name already exists ({}): leave one out; names are not \
                            case-sensitive",
                        earlier.get()
                    ),
                ),
            }
        }
        list
    }
}

/// Warns of TSIG keys that no access list and no server list names. Call it after all zones are
/// read.
pub(super) fn warn_of_unused_keys(tables: &[NamedTable<'_>]) {
    for named in tables {
        let Ok(name) = parse_name(&named.name) else { continue };
        let diagnostics = named.section.diagnostics;
        if !diagnostics.uses_tsig_key(&name) {
            let message = format!(
                "no zone uses this key: write key:{name} in transfer, allow-query, notify-from, \
                    primaries or also-notify, or leave the key out"
            );
            diagnostics.warn(&named.location(&named.section.name), message);
        }
    }
}

impl TsigKeyFields {
    /// Creates the key `name`; `None` stands for an invalid name. Returns `None` after a fault,
    /// which is reported.
    fn resolve(self, section: &Section<'_>, name: Option<Name>) -> Option<TsigKey> {
        let (secret, source_key) = match (self.secret, self.file) {
            (Some(_), Some(_)) => {
                section.report_fault("secret-file", "secret is set too: leave one of them out");
                return None;
            }
            (Some(secret), None) => {
                if is_world_readable(&section.document.path) {
                    let message =
                        "every user may read this file and the secret: chmod o= it, or use secret-file";
                    section.warn("secret", message);
                }
                (secret, "secret")
            }
            (None, Some(file)) => (read_secret_file(section, &file)?, "secret-file"),
            (None, None) => {
                if !section.has("secret") && !section.has("secret-file") {
                    let message = "missing: name a file with the secret in base64, or set secret = \
                        \"…\"";
                    section.report_fault("secret-file", message);
                }
                return None;
            }
        };
        if secret.contains('{') {
            return find_bind_key(section, source_key, &name?, self.algorithm, &secret);
        }
        let default = || if section.has("algorithm") { None } else { "hmac-sha256".parse().ok() };
        let key = TsigKey::from_base64(&name?, self.algorithm.or_else(default)?, secret.trim());
        let key = key.map_err(|error| section.report_fault(source_key, error.to_string())).ok()?;
        if key.is_short() {
            let message = "the secret is shorter than the hash (RFC 8945 section 8): generate a longer \
                one";
            section.warn(source_key, message);
        }
        Some(key)
    }
}

/// Finds the key `name` in a text in BIND format: `key "NAME" { algorithm …; secret "…"; };`.
fn find_bind_key(
    section: &Section<'_>,
    source_key: &str,
    name: &Name,
    algorithm: Option<TsigAlgorithm>,
    text: &str,
) -> Option<TsigKey> {
    let keys = read_keys(text).map_err(|error| section.report_fault(source_key, error.to_string())).ok()?;
    let Some(key) = keys.into_iter().find(|key| key.name() == name.view()) else {
        let message = format!(
            "the file has no key {name}: write only the secret in base64, or the name \
            of the key in the file"
        );
        section.report_fault(source_key, message);
        return None;
    };
    if algorithm.is_some_and(|algorithm| algorithm != key.algorithm()) {
        section.report_fault(
            "algorithm",
            format!("the key file has the algorithm {}: leave this out", key.algorithm()),
        );
        return None;
    }
    Some(key)
}
