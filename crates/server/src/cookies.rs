//! DNS cookies (RFC 7873): they show that a client received an earlier response at its address. The
//! format is the interoperable server cookie of RFC 9018, which several servers of a service can
//! share.
//!
//! A server cookie consists of a version, a timestamp, and a keyed hash over both, the client
//! cookie and the client address. The server stores nothing for a client. An attacker without the
//! secret cannot generate a valid cookie. So the source address of a query with a valid cookie is
//! not forged, and a response to it cannot harm another host.

use nonesuch_proto::edns::CookieOption;
use siphasher::sip::SipHasher24;
use siphasher::sip128::SipHasher24 as SipHasher24With128Bits;
use std::fmt;
use std::net::IpAddr;
use zeroize::Zeroizing;

/// Octets of a secret (RFC 9018 §4.4).
pub const SECRET_OCTETS: usize = 16;
/// A secret, which is wiped from memory when dropped.
pub type Secret = Zeroizing<[u8; SECRET_OCTETS]>;
/// Octets of the cookie option that the server sends: client cookie and server cookie.
pub const COOKIE_OCTETS: usize = 24;

/// The only version of server cookies (RFC 9018 §4.1).
const VERSION: u8 = 1;
/// Seconds for which a server cookie is valid (RFC 9018 §4.3).
const LIFETIME_SECONDS: i32 = 3600;
/// Maximum number of seconds by which the timestamp of a cookie may be ahead of the local clock
/// (RFC 9018 §4.3).
const AHEAD_MAX_SECONDS: i32 = 300;
/// Age in seconds after which the server sends a new cookie (RFC 9018 §4.3).
const RENEW_AFTER_SECONDS: i32 = 1800;
/// Seconds for which new cookies use the same derived secret. RFC 7873 §7.1 requires a change
/// within about 26 hours.
const SECRET_PERIOD_SECONDS: u32 = 86_400;

/// The result of checking the cookie of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CookieStatus {
    /// The query has no cookie.
    #[default]
    Absent,
    /// The query has only a client cookie: the client requests a server cookie.
    ClientOnly,
    /// The server cookie is valid for this address and recent: the address is not forged.
    Valid,
    /// The server cookie has an unknown secret, belongs to another address, or is too old.
    Invalid,
    /// The option has a length that no cookie has: FORMERR (RFC 7873 §5.2.2).
    Malformed,
}

/// The result of [`Cookies::check`], and the cookie option for the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieCheck {
    /// The result.
    pub status: CookieStatus,
    /// The cookie option of the response, if the response has one.
    pub reply: Option<[u8; COOKIE_OCTETS]>,
}

impl CookieCheck {
    const fn without_reply(status: CookieStatus) -> Self {
        Self { status, reply: None }
    }
}

/// Why a text of secrets is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// A line is not a secret. The message does not contain the line.
    #[error(
        "line {line} is not a cookie secret: write 32 hexadecimal digits on each line; # begins a comment"
    )]
    Line {
        /// The line number, from 1.
        line: usize,
    },
    /// The text contains no secret.
    #[error("the text has no cookie secret: write 32 hexadecimal digits on a separate line")]
    Empty,
}

/// Generates and checks server cookies.
#[derive(Clone)]
pub struct Cookies {
    source: SecretSource,
}

#[derive(Clone)]
enum SecretSource {
    /// Secrets of the configuration. The first secret generates cookies; cookies of all secrets are
    /// accepted (RFC 9018 §5).
    Configured(Vec<Secret>),
    /// The secret from which the secret of each day is derived. The timestamp of a cookie
    /// determines its day.
    Random(Secret),
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match &self.source {
            SecretSource::Configured(secrets) => format!("{} given", secrets.len()),
            SecretSource::Random(_) => "random".to_owned(),
        };
        f.debug_struct("Cookies").field("secrets", &source).finish_non_exhaustive()
    }
}

impl Cookies {
    /// Returns cookies for this process only. The derived secret changes each day.
    ///
    /// # Errors
    /// Fails if the system provides no random octets.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut secret = Zeroizing::new([0; SECRET_OCTETS]);
        getrandom::fill(&mut *secret)?;
        Ok(Self { source: SecretSource::Random(secret) })
    }

    /// Returns cookies that all servers with these secrets accept. The first secret generates
    /// cookies. To change secrets, the operator adds a new secret after the first one on all
    /// servers, then moves it to the first position on all servers, and removes the old secret an
    /// hour later (RFC 9018 §5). Returns `None` if `secrets` is empty.
    #[must_use]
    pub fn with_secrets(secrets: Vec<Secret>) -> Option<Self> {
        (!secrets.is_empty()).then_some(Self { source: SecretSource::Configured(secrets) })
    }

    /// As [`with_secrets`](Self::with_secrets). The function copies the secrets, and does not wipe
    /// the originals from memory.
    #[must_use]
    pub fn new(secrets: &[[u8; SECRET_OCTETS]]) -> Option<Self> {
        Self::with_secrets(secrets.iter().map(|secret| Zeroizing::new(*secret)).collect())
    }

    /// Reads secrets: one per line, in 32 hexadecimal digits. `#` begins a comment.
    ///
    /// # Errors
    /// Returns the number of the invalid line, or [`SecretError::Empty`] if the text has no secret.
    pub fn parse_secrets(text: &str) -> Result<Vec<Secret>, SecretError> {
        let mut secrets = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let digits = line.split('#').next().unwrap_or("").trim();
            if !digits.is_empty() {
                secrets.push(parse_secret(digits).ok_or(SecretError::Line { line: index + 1 })?);
            }
        }
        if secrets.is_empty() { Err(SecretError::Empty) } else { Ok(secrets) }
    }

    /// Checks the cookie option of a query from `client`, and generates the option for the
    /// response. `data` is the data of the option; `None`: the query has no cookie. `now` is in
    /// seconds since 1970 modulo 2^32.
    #[must_use]
    pub fn check(&self, data: Option<&[u8]>, client: IpAddr, now: u32) -> CookieCheck {
        let Some(data) = data else { return CookieCheck::without_reply(CookieStatus::Absent) };
        let Some(cookie) = CookieOption::read(data) else {
            return CookieCheck::without_reply(CookieStatus::Malformed);
        };
        let client = client.to_canonical();
        if cookie.server.is_empty() {
            return CookieCheck {
                status: CookieStatus::ClientOnly,
                reply: Some(self.generate(cookie.client, client, now)),
            };
        }
        let Some(age) = self.age(cookie, client, now) else {
            return CookieCheck {
                status: CookieStatus::Invalid,
                reply: Some(self.generate(cookie.client, client, now)),
            };
        };
        // The response has the same cookie until it is half an hour old. This includes cookies from
        // another accepted secret, and cookies with reserved octets that are not zero.
        let reused = (age <= RENEW_AFTER_SECONDS).then(|| data.try_into().ok()).flatten();
        let reply = reused.unwrap_or_else(|| self.generate(cookie.client, client, now));
        CookieCheck { status: CookieStatus::Valid, reply: Some(reply) }
    }

    /// Returns the age of the cookie in seconds if it is valid.
    fn age(&self, cookie: CookieOption<'_>, client: IpAddr, now: u32) -> Option<i32> {
        let server: &[u8; 16] = cookie.server.try_into().ok()?;
        let [version, _, _, _, t, u, v, w, hash @ ..] = server;
        let timestamp = u32::from_be_bytes([*t, *u, *v, *w]);
        // RFC 9018 §4.3: serial number arithmetic (RFC 1982).
        let age = now.wrapping_sub(timestamp).cast_signed();
        if *version != VERSION || !(-AHEAD_MAX_SECONDS..=LIFETIME_SECONDS).contains(&age) {
            return None;
        }
        let input = HashInput::new(cookie.client, &server[..8], client);
        let found = u64::from_le_bytes(*hash);
        // The comparison of two integers takes constant time, so it does not reveal how many octets
        // of a forged hash are correct.
        let is_hash_of = |secret: &[u8; SECRET_OCTETS]| input.hash(secret) ^ found == 0;
        let is_valid = match &self.source {
            SecretSource::Configured(secrets) => secrets.iter().any(|secret| is_hash_of(secret)),
            SecretSource::Random(secret) => is_hash_of(&secret_of_day(secret, timestamp)),
        };
        is_valid.then_some(age)
    }

    fn generate(&self, client_cookie: &[u8; 8], client: IpAddr, now: u32) -> [u8; COOKIE_OCTETS] {
        let mut out = [0; COOKIE_OCTETS];
        out[..8].copy_from_slice(client_cookie);
        out[8] = VERSION;
        out[12..16].copy_from_slice(&now.to_be_bytes());
        let input = HashInput::new(client_cookie, &out[8..16], client);
        let hash = match &self.source {
            SecretSource::Configured(secrets) => secrets.first().map_or(0, |secret| input.hash(secret)),
            SecretSource::Random(secret) => input.hash(&secret_of_day(secret, now)),
        };
        out[16..].copy_from_slice(&hash.to_le_bytes());
        out
    }
}

/// The input of the hash (RFC 9018 §4.4): client cookie, version, reserved octets as received,
/// timestamp, address.
struct HashInput {
    octets: [u8; 32],
    length: usize,
}

impl HashInput {
    fn new(client_cookie: &[u8; 8], front: &[u8], client: IpAddr) -> Self {
        let mut octets = [0; 32];
        octets[..8].copy_from_slice(client_cookie);
        octets[8..16].copy_from_slice(front);
        let length = match client {
            IpAddr::V4(address) => {
                octets[16..20].copy_from_slice(&address.octets());
                20
            }
            IpAddr::V6(address) => {
                octets[16..].copy_from_slice(&address.octets());
                32
            }
        };
        Self { octets, length }
    }

    fn hash(&self, secret: &[u8; SECRET_OCTETS]) -> u64 {
        SipHasher24::new_with_key(secret).hash(&self.octets[..self.length])
    }
}

/// Returns the secret of the day that contains `timestamp`.
fn secret_of_day(secret: &[u8; SECRET_OCTETS], timestamp: u32) -> Secret {
    let hash =
        SipHasher24With128Bits::new_with_key(secret).hash(&(timestamp / SECRET_PERIOD_SECONDS).to_be_bytes());
    Zeroizing::new(hash.as_bytes())
}

fn parse_secret(digits: &str) -> Option<Secret> {
    let mut secret = Zeroizing::new([0; SECRET_OCTETS]);
    let decoder = data_encoding::HEXLOWER_PERMISSIVE;
    let is_whole = decoder.decode_len(digits.len()) == Ok(SECRET_OCTETS);
    (is_whole && decoder.decode_mut(digits.as_bytes(), &mut *secret).is_ok()).then_some(secret)
}

#[cfg(test)]
mod tests;
