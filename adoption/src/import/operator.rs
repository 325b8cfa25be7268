//! The operator of a domain: the registered domain of its name servers.

use std::collections::BTreeMap;

/// Second-level domains below which names are registered, if the last label has two letters. The
/// Public Suffix List would be complete, but it changes each week.
const REGISTRY_LABELS: [&str; 12] =
    ["ac", "co", "com", "edu", "gob", "gov", "go", "ne", "net", "nom", "or", "org"];

/// Returns the domain that most of these name servers are in; of several, the first in the alphabet.
/// Returns `None` without name servers. Names are in lower case without a final dot.
pub(super) fn operator<'n>(servers: impl Iterator<Item = &'n str>) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for server in servers {
        *counts.entry(registered_domain(server)).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(domain, _)| domain.to_owned())
}

/// Returns the last two labels of a name, or three if names are registered below the second.
fn registered_domain(name: &str) -> &str {
    let mut ends = name.rmatch_indices('.').map(|(place, _)| place);
    let (Some(last), second) = (ends.next(), ends.next()) else { return name };
    let Some(second) = second else { return name };
    let is_country = name.len() - last - 1 == 2;
    if !(is_country && REGISTRY_LABELS.contains(&&name[second + 1..last])) {
        return &name[second + 1..];
    }
    ends.next().map_or(name, |third| &name[third + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_a_registered_domain() {
        let cases = [
            ("ns1.example.net", "example.net"),
            ("a.b.ns.example.com", "example.com"),
            ("ns3.icb.co.uk", "icb.co.uk"),
            ("demand.alpha.aridns.net.au", "aridns.net.au"),
            ("ns.example.nl", "example.nl"),
            ("co.uk", "co.uk"),
            ("ns.co.uk", "ns.co.uk"),
            ("localhost", "localhost"),
            (".", "."),
        ];
        for (name, domain) in cases {
            assert_eq!(registered_domain(name), domain, "{name}");
        }
    }

    #[test]
    fn most_name_servers_decide() {
        let of = |names: &[&str]| operator(names.iter().copied());
        assert_eq!(of(&["a.nic.ac", "a.ns13.net", "b.nic.ac"]).as_deref(), Some("nic.ac"));
        assert_eq!(of(&["a.two.net", "b.one.net"]).as_deref(), Some("one.net"));
        assert_eq!(of(&[]), None);
    }
}
