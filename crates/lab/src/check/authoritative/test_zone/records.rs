//! The records of a test zone before signing.

use super::{LONG_LABEL, MARKER, MARKER_LABEL, OPT_OCTETS, SIGNED_SIZES, SIZES, size_label};
use nonesuch_proto::Name;
use nonesuch_proto::message::HEADER;
use std::fmt::Write as _;

/// Octets of a record with a compressed owner, without RDATA.
const RECORD_OCTETS: usize = 12;
/// Maximum octets of the RDATA of a TXT record, so that a large RRset has several records, but not more than
/// BIND loads (100).
const RDATA_MAX: usize = 2000;
/// Octets of the signature of the algorithm of test zones.
const SIGNATURE_OCTETS: usize = 64;
/// Number of DNSKEY records that sign nothing and make the DNSKEY RRset exceed 1,232 octets.
pub(super) const STANDBY_KEYS: usize = 14;

/// Records that all test zones have, relative to the apex.
const NAMES: &str = "\
@ NS ns
ns A 192.0.2.53
ns AAAA 2001:db8::53
@ MX 10 mail
@ TXT \"apex\"
mail A 192.0.2.25
www A 192.0.2.80
www AAAA 2001:db8::80
alias CNAME www
*.wild A 192.0.2.81
*.wild TXT \"wildcard\"
leaf.ent A 192.0.2.82
leaf.a.b.deep TXT \"below three empty non-terminals\"
redirect DNAME target
host.target A 192.0.2.83
signed NS ns.signed
ns.signed A 192.0.2.54
unsigned NS ns.unsigned
ns.unsigned A 192.0.2.55
cut.below-ent NS ns.unsigned
types SRV 0 0 53 ns
types NAPTR 10 10 \"u\" \"test\" \"\" www
types RP hostmaster www
types AFSDB 1 www
types KX 10 www
types SVCB 1 www alpn=dot
types HTTPS 0 www
";

/// The records of a test zone as the text of a zone file. `other` are further lines.
pub(super) fn zone_text(apex: &Name, is_signed: bool, other: &str) -> String {
    let mut text = format!(
        "$ORIGIN {apex}\n$TTL 3600\n@ SOA ns hostmaster 1 7200 3600 1209600 900\n{NAMES}{other}\
         {MARKER_LABEL} TXT \"{MARKER}\"\n"
    );
    // Three labels of 63 octets: the target of an alias that becomes too long (RFC 6672 §2.2).
    // Writing to a string does not fail.
    let _ = writeln!(text, "long DNAME {LONG_LABEL}.{LONG_LABEL}.{LONG_LABEL}");
    for octets in SIZES {
        push_sized(apex, &size_label(octets, false), octets, 0, &mut text);
    }
    for octets in SIGNED_SIZES.into_iter().filter(|_| is_signed) {
        // RFC 4034 §3.1: 18 octets, the signer and the signature.
        let rrsig = RECORD_OCTETS + 18 + apex.wire().len() + SIGNATURE_OCTETS;
        push_sized(apex, &size_label(octets, true), octets, rrsig, &mut text);
    }
    text
}

/// Appends the TXT RRset whose answer has this size. The answer has also `other` octets of records.
fn push_sized(apex: &Name, label: &str, octets: u16, other: usize, text: &mut String) {
    let question = 1 + label.len() + apex.wire().len() + 4;
    let used = HEADER + question + usize::from(OPT_OCTETS) + other;
    let mut left = usize::from(octets).saturating_sub(used);
    let mut index = 0;
    while left > RECORD_OCTETS {
        // The rest must be empty, or enough for a record with one octet of text.
        let record = left.min(RECORD_OCTETS + RDATA_MAX);
        let record = if (1..RECORD_OCTETS + 3).contains(&(left - record)) { record - 20 } else { record };
        let _ = write!(text, "{label} TXT");
        push_strings(record - RECORD_OCTETS, index, text);
        text.push('\n');
        left -= record;
        index += 1;
    }
}

/// Appends the character strings of a TXT record whose RDATA has `octets`. The first one begins with the
/// number, because the records of an RRset differ.
fn push_strings(octets: usize, number: usize, text: &mut String) {
    let number = number.to_string();
    let mut left = octets;
    let mut is_first = true;
    while left > 0 {
        let length = (left - 1).min(255);
        let start = if is_first { &number[..number.len().min(length)] } else { "" };
        let _ = write!(text, " \"{start}{}\"", "x".repeat(length - start.len()));
        left -= length + 1;
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Rtype;
    use nonesuch_zone::read::read_text;
    use std::path::Path;

    #[test]
    fn answers_have_exactly_the_size_of_their_label() {
        for apex in ["nsec.check.example", "a", "a-zone-with-a-long-apex.check.example"] {
            let apex: Name = apex.parse().unwrap();
            let text = zone_text(&apex, true, "");
            let zone = read_text(text.as_bytes(), Path::new("test zone"), Some(&apex)).unwrap().contents;
            let sizes = SIZES.iter().map(|octets| (*octets, false));
            for (octets, is_signed) in sizes.chain(SIGNED_SIZES.iter().map(|octets| (*octets, true))) {
                let label = size_label(octets, is_signed);
                let owner = Name::from_text(label.as_bytes(), Some(apex.view())).unwrap();
                let rrset = zone.find(owner.view()).unwrap().rrset(Rtype::TXT).unwrap();
                let records: usize = rrset.rdatas().map(|rdata| RECORD_OCTETS + rdata.len()).sum();
                let rrsig = if is_signed { RECORD_OCTETS + 18 + apex.wire().len() + 64 } else { 0 };
                let answer = HEADER + owner.wire().len() + 4 + records + rrsig + 11;
                assert_eq!(answer, usize::from(octets), "{owner}");
                assert!(rrset.count() <= 100, "{owner}");
            }
        }
    }
}
