//! Unusual trees: zone cuts, glue, occluded names, empty non-terminals, DNAME, unusable DS records.

use super::*;

pub(super) const ROWS: &[Row] =
    &[row("signatures of different TTLs at one name", "RFC 4034 §3", Scope::Every, |variant| {
        let text =
            "example. 60 SOA ns.test. h.test. 1 2 3 4 5\nexample. 300 NS ns.test.\nexample. 0 A 192.0.2.1\n";
        variant.bench(&read_zone(text, &name("example.")), variant.csk(), &variant.options()).into()
    })];

#[test]
fn unusual_structures() {
    try_all(&records::STRUCTURES.iter().map(plain).collect::<Vec<_>>());
    try_all(ROWS);
}
