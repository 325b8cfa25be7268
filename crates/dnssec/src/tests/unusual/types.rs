//! Unusual types, RDATA, TTLs and RRsets.

use super::*;

pub(super) const ROWS: &[Row] = &[
    row("an RRset of 300 records", "RFC 2181 §5", Scope::Every, |variant| {
        let records: String = (0..300).map(|at| format!("x A 192.0.{}.{}\n", at / 256, at % 256)).collect();
        variant.signed(&records, variant.csk()).into()
    }),
    row("RDATA of 60000 octets", "RFC 1035 §3.2.1", Scope::Every, |variant| {
        variant.signed(&format!("x TYPE65400 \\# 60000 {}", "ab".repeat(60_000)), variant.csk()).into()
    }),
    row("SOA minimum 0", "RFC 9077 §3", Scope::Every, |variant| with_soa(variant, 3600, 0)),
    row("SOA TTL 0", "RFC 9077 §3", Scope::Every, |variant| with_soa(variant, 0, 900)),
    row("SOA TTL below the minimum", "RFC 9077 §3", Scope::Every, |variant| with_soa(variant, 60, 86_400)),
    row("the longest SOA TTL and minimum", "RFC 9077 §3", Scope::Every, |variant| {
        with_soa(variant, 2_147_483_647, 2_147_483_647)
    }),
    row("serial 0", "RFC 1982 §7", Scope::Every, |variant| {
        let text = "example. 60 SOA ns.test. h.test. 0 2 3 4 5\nexample. 60 NS ns.test.\n";
        variant.bench(&read_zone(text, &name("example.")), variant.csk(), &variant.options()).into()
    }),
    row("DNSKEY with another TTL than SOA", "RFC 4035 §2.1", Scope::Every, |variant| {
        let options = SignOptions { dnskey_ttl: Some(7), ..variant.options() };
        variant.bench(&zone(RECORDS), variant.csk(), &options).into()
    }),
];

#[test]
fn unusual_types() {
    try_all(&records::TYPES.iter().map(plain).collect::<Vec<_>>());
    try_all(ROWS);
}

fn with_soa(variant: Variant, ttl: u32, minimum: u32) -> Sound {
    let text = format!(
        "example. {ttl} SOA ns.test. h.test. 1 2 3 4 {minimum}\nexample. 60 NS ns.test.\na.example. 60 A 192.0.2.1\n"
    );
    variant.bench(&read_zone(&text, &name("example.")), variant.csk(), &variant.options()).into()
}
