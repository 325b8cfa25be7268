//! Identity and version of a server, which clients query in class CH (RFC 4892).

use nonesuch_proto::{NameRef, Rtype};

/// Names that query the identity: the standard name, and the older name (RFC 4892 §2).
const IDENTITY_NAMES: [&[u8]; 2] = [b"\x02id\x06server\0", b"\x08hostname\x04bind\0"];
/// Names that query the version.
const VERSION_NAMES: [&[u8]; 2] = [b"\x07version\x06server\0", b"\x07version\x04bind\0"];

/// Identity and version of the server, at most 255 octets each. If a value is not set, the server
/// refuses queries for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chaos {
    /// Identity of the server: `id.server.` and `hostname.bind.`
    pub identity: Option<Vec<u8>>,
    /// Version of the server: `version.server.` and `version.bind.`
    pub version: Option<Vec<u8>>,
}

impl Chaos {
    /// Returns the text of the TXT record that answers a query of class CH. Returns `None` if the
    /// answer is REFUSED: for another name, a type other than TXT and ANY, or a value that is not
    /// set or has more than 255 octets.
    #[must_use]
    pub fn find(&self, name: NameRef<'_>, rtype: Rtype) -> Option<&[u8]> {
        let is_one_of = |names: [&[u8]; 2]| names.iter().any(|known| name.wire().eq_ignore_ascii_case(known));
        let found = match rtype {
            Rtype::TXT | Rtype::ANY if is_one_of(IDENTITY_NAMES) => &self.identity,
            Rtype::TXT | Rtype::ANY if is_one_of(VERSION_NAMES) => &self.version,
            _ => &None,
        };
        found.as_deref().filter(|text| text.len() <= usize::from(u8::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Name;

    #[test]
    fn names_have_any_case_and_values_must_fit_a_character_string() {
        let chaos = Chaos { identity: Some(b"ns1".to_vec()), version: Some(vec![b'v'; 256]) };
        let find = |name: &str, rtype| chaos.find(name.parse::<Name>().unwrap().view(), rtype);
        assert_eq!(find("ID.Server.", Rtype::TXT), Some(&b"ns1"[..]));
        assert_eq!(find("hostname.bind.", Rtype::ANY), Some(&b"ns1"[..]));
        assert_eq!(find("id.server.", Rtype::A), None);
        assert_eq!(find("x.id.server.", Rtype::TXT), None);
        assert_eq!(find("version.bind.", Rtype::TXT), None);
    }
}
