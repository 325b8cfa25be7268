//! DNS cookies: whether a sender has been answered at its address before (RFC 7873), in the form that servers of one service
//! share (RFC 9018).
//!
//! A server cookie is a version, a timestamp and a keyed hash over both, the client's cookie and its address. Nothing is
//! kept for a client. Whoever has no secret cannot make one, so a source address that comes with a valid cookie is no
//! forged one, and answers to it harm nobody else.

use nonesuch_proto::edns::CookieOption;
use siphasher::sip::SipHasher24;
use siphasher::sip128::SipHasher24 as SipHasher24Wide;
use std::fmt;
use std::net::IpAddr;
use zeroize::Zeroizing;

/// Octets of a secret (RFC 9018 §4.4).
pub const SECRET_OCTETS: usize = 16;
/// A secret; wiped from memory when dropped.
pub type Secret = Zeroizing<[u8; SECRET_OCTETS]>;
/// Octets of a cookie option that we send: the client's and ours.
pub const COOKIE_OCTETS: usize = 24;

/// The only version (RFC 9018 §4.1).
const VERSION: u8 = 1;
/// Seconds that a cookie is taken for (RFC 9018 §4.3).
const LIFETIME: i32 = 3600;
/// Seconds that a cookie may be ahead of our clock (RFC 9018 §4.3).
const AHEAD: i32 = 300;
/// Seconds after which a cookie is replaced (RFC 9018 §4.3).
const RENEWED: i32 = 1800;
/// Seconds that cookies are made with one random secret: RFC 7873 §7.1 wants a change within 26 hours or so.
const DAY: u32 = 86_400;

/// What a query's cookie says of its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CookieStatus {
    /// There is none.
    #[default]
    Absent,
    /// The client asks for one.
    ClientOnly,
    /// We made it, for this address, not long ago: the address is the sender's.
    Valid,
    /// We did not make it, or for another address, or long ago.
    Invalid,
    /// Its length is none that a cookie has: FORMERR (RFC 7873 §5.2.2).
    Malformed,
}

/// The judgement of a cookie, and what goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieCheck {
    /// The judgement.
    pub status: CookieStatus,
    /// The response's cookie option, where there is to be one.
    pub reply: Option<[u8; COOKIE_OCTETS]>,
}

impl CookieCheck {
    const fn without_reply(status: CookieStatus) -> Self {
        Self { status, reply: None }
    }
}

/// Why text holds no secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// A line is not a secret. The line itself is not shown.
    #[error("line {line} is no cookie secret: write 32 hexadecimal digits on a line, or a comment behind #")]
    Line {
        /// Its number, from 1.
        line: usize,
    },
    /// There is none.
    #[error("there is no cookie secret: write one of 32 hexadecimal digits on a line of its own")]
    Empty,
}

/// Makes and checks cookies.
#[derive(Clone)]
pub struct Cookies {
    source: Source,
}

#[derive(Clone)]
enum Source {
    /// Secrets of the configuration: the first makes cookies, all are taken (RFC 9018 §5).
    Given(Vec<Secret>),
    /// The secret of each day is derived from this one. The timestamp tells which day a cookie is of.
    Random(Secret),
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match &self.source {
            Source::Given(secrets) => format!("{} given", secrets.len()),
            Source::Random(_) => "random".to_owned(),
        };
        f.debug_struct("Cookies").field("secrets", &source).finish_non_exhaustive()
    }
}

impl Cookies {
    /// Cookies of this process alone. Their secret is another one each day.
    ///
    /// # Errors
    /// Where the system has no random octets.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut secret = Zeroizing::new([0; SECRET_OCTETS]);
        getrandom::fill(&mut *secret)?;
        Ok(Self { source: Source::Random(secret) })
    }

    /// Cookies that all servers with these secrets take. The first secret makes them. To change secrets, a new one is added
    /// behind the first on all servers, then put first on all, and the old one is removed an hour later (RFC 9018 §5).
    /// `None` without a secret.
    #[must_use]
    pub fn with_secrets(secrets: Vec<Secret>) -> Option<Self> {
        (!secrets.is_empty()).then_some(Self { source: Source::Given(secrets) })
    }

    /// As [`with_secrets`](Self::with_secrets), of plain octets.
    #[must_use]
    pub fn new(secrets: &[[u8; SECRET_OCTETS]]) -> Option<Self> {
        Self::with_secrets(secrets.iter().map(|secret| Zeroizing::new(*secret)).collect())
    }

    /// Reads secrets: 32 hexadecimal digits on a line each, `#` begins a comment.
    ///
    /// # Errors
    /// The line that is wrong.
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

    /// Judges the cookie option of a query of `client`, and makes that of the response; `now` is in seconds since 1970 modulo
    /// 2^32.
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
                reply: Some(self.make(cookie.client, client, now)),
            };
        }
        let Some(age) = self.age(cookie, client, now) else {
            return CookieCheck {
                status: CookieStatus::Invalid,
                reply: Some(self.make(cookie.client, client, now)),
            };
        };
        // One that was made with a secret on its way out, or has reserved octets, is replaced when it is half an hour old too.
        let kept = (age <= RENEWED).then(|| data.try_into().ok()).flatten();
        let reply = kept.unwrap_or_else(|| self.make(cookie.client, client, now));
        CookieCheck { status: CookieStatus::Valid, reply: Some(reply) }
    }

    /// Seconds since the cookie was made, where it is valid.
    fn age(&self, cookie: CookieOption<'_>, client: IpAddr, now: u32) -> Option<i32> {
        let server: &[u8; 16] = cookie.server.try_into().ok()?;
        let [version, _, _, _, t, u, v, w, hash @ ..] = server;
        let timestamp = u32::from_be_bytes([*t, *u, *v, *w]);
        // RFC 9018 §4.3: serial number arithmetic (RFC 1982).
        let age = now.wrapping_sub(timestamp).cast_signed();
        if *version != VERSION || !(-AHEAD..=LIFETIME).contains(&age) {
            return None;
        }
        let input = Input::new(cookie.client, &server[..8], client);
        let found = u64::from_le_bytes(*hash);
        // One comparison of two words: its time does not tell how much of a forged hash is right.
        let is_of = |secret: &[u8; SECRET_OCTETS]| input.hash(secret) ^ found == 0;
        let is_valid = match &self.source {
            Source::Given(secrets) => secrets.iter().any(|secret| is_of(secret)),
            Source::Random(secret) => is_of(&secret_of_day(secret, timestamp)),
        };
        is_valid.then_some(age)
    }

    fn make(&self, client_cookie: &[u8; 8], client: IpAddr, now: u32) -> [u8; COOKIE_OCTETS] {
        let mut out = [0; COOKIE_OCTETS];
        out[..8].copy_from_slice(client_cookie);
        out[8] = VERSION;
        out[12..16].copy_from_slice(&now.to_be_bytes());
        let input = Input::new(client_cookie, &out[8..16], client);
        let hash = match &self.source {
            Source::Given(secrets) => secrets.first().map_or(0, |secret| input.hash(secret)),
            Source::Random(secret) => input.hash(&secret_of_day(secret, now)),
        };
        out[16..].copy_from_slice(&hash.to_le_bytes());
        out
    }
}

/// What is hashed (RFC 9018 §4.4): client cookie, version, reserved octets as they are, timestamp, address.
struct Input {
    octets: [u8; 32],
    length: usize,
}

impl Input {
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

/// The secret of the day that `timestamp` is in.
fn secret_of_day(secret: &[u8; SECRET_OCTETS], timestamp: u32) -> Secret {
    let hash = SipHasher24Wide::new_with_key(secret).hash(&(timestamp / DAY).to_be_bytes());
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
