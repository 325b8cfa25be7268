//! Chains of aliases: the limit counts links, and the target of the last link is looked up like any
//! other target.

use super::*;

/// Returns a zone with chains of `links` links. Their targets are a host, a name without data, a
/// name that does not exist, a delegation and a wildcard.
fn chains(links: usize) -> String {
    let mut text = String::from(
        "$ORIGIN example.\n$TTL 60\n@ SOA ns hostmaster 1 1 1 1 30\n@ NS ns\nns A 192.0.2.1\n\
         host A 192.0.2.2\nempty TXT x\ncut NS ns.cut\nns.cut A 192.0.2.3\n*.wild A 192.0.2.4\ndn DNAME d\n",
    );
    for (prefix, target) in [
        ("h", "host"),
        ("e", "empty"),
        ("n", "none"),
        ("c", "www.cut"),
        ("w", "a.wild"),
        ("o", "other.test."),
    ] {
        for link in 1..=links {
            let next = if link == links { target.to_owned() } else { format!("{prefix}{}", link + 1) };
            text.push_str(&format!("{prefix}{link} CNAME {next}\n"));
        }
    }
    // The first link comes from a DNAME record.
    text.push_str("x.d CNAME h2\n");
    text
}

#[test]
fn the_limit_counts_aliases_and_not_the_answer_after_them() {
    for links in [1, 2, 16, 17, 18, 19] {
        for signing in [None, Some(Mechanism::Nsec), Some(Mechanism::Compact)] {
            let zone = Zone::new(&chains(links), "example.", signing);
            for (prefix, has_answer) in
                [("h", true), ("e", false), ("n", false), ("c", false), ("w", true), ("o", false)]
            {
                let message =
                    zone.checked_response(&format!("{prefix}1.example."), Rtype::A, signing.is_some());
                let of = |rtype| message.section(Section::Answer).filter(|r| r.rtype == rtype).count();
                let is_whole = links <= 17;
                let expected = (links.min(17), usize::from(is_whole && has_answer));
                assert_eq!((of(Rtype::CNAME), of(Rtype::A)), expected, "{prefix} {links} {signing:?}");
                let has_authority = message.section(Section::Authority).any(|r| !is_dnssec(r.rtype));
                let is_ended = matches!(prefix, "e" | "n" | "c");
                assert_eq!(has_authority, is_whole && is_ended, "{prefix} {links} {signing:?}");
            }
        }
    }
}

/// A DNAME record and the CNAME record synthesised from it count as one link.
#[test]
fn a_dname_counts_as_one_alias() {
    for links in [16, 17] {
        let zone = Zone::new(&chains(links), "example.", None);
        // The chain is x.dn, x.d, h2 and so on.
        let message = zone.checked_response("x.dn.example.", Rtype::A, false);
        let of = |rtype| message.section(Section::Answer).filter(|r| r.rtype == rtype).count();
        assert_eq!((of(Rtype::DNAME), of(Rtype::CNAME)), (1, 17), "{links}");
        assert_eq!(of(Rtype::A), usize::from(links == 16), "{links}");
    }
}
