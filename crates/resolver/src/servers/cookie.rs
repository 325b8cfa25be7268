//! DNS cookies of a client (RFC 7873 §5.1, §5.3; RFC 9018 §3). An attacker who does not see the
//! queries to a server cannot guess the client cookie, which the response has to return.

use super::address::AddressKey;
use nonesuch_proto::edns::CookieOption;
use nonesuch_server::cookies::Secret;
use siphasher::sip::SipHasher24;
use std::fmt;

/// Octets of a client cookie (RFC 7873 §4.1).
const CLIENT_OCTETS: usize = 8;
/// Maximum number of octets of a server cookie (RFC 7873 §4.2).
const SERVER_OCTETS_MAX: usize = 32;
/// Seconds for which a server gets the same client cookie. RFC 7873 §7.1 requires a change within 36
/// days, and recommends one within 26 hours.
const PERIOD_SECONDS: u64 = 86_400;

/// The cookie of a query: the client cookie, and the server cookie if it is known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cookie {
    octets: [u8; CLIENT_OCTETS + SERVER_OCTETS_MAX],
    length: u8,
}

impl Cookie {
    /// Returns the data of the cookie option (RFC 7873 §4): 8 octets, or 16 to 40.
    #[must_use]
    pub fn option_data(&self) -> &[u8] {
        &self.octets[..usize::from(self.length)]
    }

    /// Whether the query has the server cookie, too.
    pub(super) const fn has_server_cookie(&self) -> bool {
        self.length as usize > CLIENT_OCTETS
    }

    /// Whether a response with the cookie option `data` can be the response to a query with this
    /// cookie: it has no cookie, or it returns the client cookie (RFC 7873 §5.3).
    pub(super) fn matches(&self, data: Option<&[u8]>) -> bool {
        data.is_none_or(|data| {
            CookieOption::read(data).is_some_and(|cookie| cookie.client[..] == self.octets[..CLIENT_OCTETS])
        })
    }
}

/// No output shows a cookie: it would help an attacker to forge responses.
impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookie").field("octets", &self.length).finish_non_exhaustive()
    }
}

/// A server cookie that a server sent, and the day of the client cookie that it belongs to.
#[derive(Clone, Copy)]
pub(super) struct ServerCookie {
    octets: [u8; SERVER_OCTETS_MAX],
    length: u8,
    day: u32,
}

impl ServerCookie {
    /// Reads the server cookie of a response to a query with a client cookie of `day`. Returns
    /// `None` if there is none.
    pub(super) fn read(data: &[u8], day: u32) -> Option<Self> {
        let server = CookieOption::read(data)?.server;
        let mut octets = [0; SERVER_OCTETS_MAX];
        octets.get_mut(..server.len())?.copy_from_slice(server);
        (!server.is_empty()).then_some(Self { octets, length: server.len() as u8, day })
    }
}

/// Generates client cookies.
pub(super) struct ClientCookies(Secret);

impl ClientCookies {
    pub(super) const fn new(secret: Secret) -> Self {
        Self(secret)
    }

    /// Returns the day of a time in seconds since 1970, for [`cookie`](Self::cookie).
    pub(super) const fn day(unix: u64) -> u32 {
        (unix / PERIOD_SECONDS) as u32
    }

    /// Returns the cookie of a query to a server: the client cookie of `day`, with `learned` if it
    /// belongs to this client cookie.
    ///
    /// The client cookie does not depend on the client's address as RFC 9018 §3 recommends, because
    /// the driver binds the socket later. A server can link two addresses of this resolver for a day.
    pub(super) fn cookie(&self, server: &AddressKey, day: u32, learned: Option<&ServerCookie>) -> Cookie {
        let mut input = [0; 20];
        input[..16].copy_from_slice(&server.address);
        input[16..].copy_from_slice(&day.to_be_bytes());
        let client = SipHasher24::new_with_key(&self.0).hash(&input);
        let mut octets = [0; CLIENT_OCTETS + SERVER_OCTETS_MAX];
        octets[..CLIENT_OCTETS].copy_from_slice(&client.to_be_bytes());
        let learned = learned.filter(|learned| learned.day == day);
        if let Some(learned) = learned {
            octets[CLIENT_OCTETS..].copy_from_slice(&learned.octets);
        }
        Cookie { octets, length: CLIENT_OCTETS as u8 + learned.map_or(0, |learned| learned.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn server(text: &str) -> AddressKey {
        AddressKey::new(text.parse().expect("an address"))
    }

    fn cookies() -> ClientCookies {
        ClientCookies::new(Secret::new([7; 16]))
    }

    /// Returns the data of a response option: the client cookie of `cookie`, and `server`.
    fn reply(cookie: &Cookie, server: &[u8]) -> Vec<u8> {
        [&cookie.octets[..CLIENT_OCTETS], server].concat()
    }

    #[test]
    fn each_server_and_each_day_has_its_own_client_cookie() {
        let cookies = cookies();
        let first = cookies.cookie(&server("192.0.2.1:53"), 1, None);
        assert_eq!(first, cookies.cookie(&server("192.0.2.1:53"), 1, None));
        assert_ne!(first, cookies.cookie(&server("192.0.2.2:53"), 1, None));
        assert_ne!(first, cookies.cookie(&server("192.0.2.1:53"), 2, None));
        let other = ClientCookies::new(Secret::new([8; 16]));
        assert_ne!(first, other.cookie(&server("192.0.2.1:53"), 1, None));
        assert_eq!(first.option_data().len(), 8);
    }

    #[test]
    fn a_server_cookie_belongs_to_the_client_cookie_of_its_day() {
        let (cookies, server) = (cookies(), server("192.0.2.1:53"));
        let first = cookies.cookie(&server, 1, None);
        let learned = ServerCookie::read(&reply(&first, &[5; 16]), 1).expect("a server cookie");
        let second = cookies.cookie(&server, 1, Some(&learned));
        assert_eq!(second.option_data(), reply(&first, &[5; 16]));
        assert!(second.has_server_cookie() && !first.has_server_cookie());
        assert!(!cookies.cookie(&server, 2, Some(&learned)).has_server_cookie());
    }

    #[test]
    fn a_response_has_to_return_the_client_cookie() {
        let cookie = cookies().cookie(&server("192.0.2.1:53"), 1, None);
        assert!(cookie.matches(None));
        assert!(cookie.matches(Some(&reply(&cookie, &[]))));
        assert!(cookie.matches(Some(&reply(&cookie, &[5; 8]))));
        let mut other = reply(&cookie, &[5; 8]);
        other[7] ^= 1;
        assert!(!cookie.matches(Some(&other)));
        // Lengths that RFC 7873 §5.2.2 does not permit.
        for server in [1, 7, 33] {
            assert!(!cookie.matches(Some(&reply(&cookie, &vec![5; server]))), "{server}");
        }
        assert!(!cookie.matches(Some(&[])));
    }

    #[test]
    fn output_does_not_show_a_cookie() {
        let cookie = cookies().cookie(&server("192.0.2.1:53"), 1, None);
        assert_eq!(format!("{cookie:?}"), "Cookie { octets: 8, .. }");
    }

    proptest! {
        #[test]
        fn any_option_is_read_without_panic(data in proptest::collection::vec(any::<u8>(), 0..60)) {
            let cookie = cookies().cookie(&server("192.0.2.1:53"), 1, None);
            let _ = cookie.matches(Some(&data));
            if let Some(learned) = ServerCookie::read(&data, 1) {
                let sent = cookies().cookie(&server("192.0.2.1:53"), 1, Some(&learned));
                prop_assert_eq!(&sent.option_data()[8..], &data[8..]);
            }
        }
    }
}
