//! Unusual types, RDATA, TTLs and RRsets.

use super::*;

pub(super) const ROWS: &[Row] = &[
    row("an RRset of 300 records", "RFC 2181 §5", Scope::Every, |cell| {
        let records: String = (0..300).map(|at| format!("x A 192.0.{}.{}\n", at / 256, at % 256)).collect();
        cell.signed(&records, cell.csk()).into()
    }),
    row("RDATA of 60000 octets", "RFC 1035 §3.2.1", Scope::Every, |cell| {
        cell.signed(&format!("x TYPE65400 \\# 60000 {}", "ab".repeat(60_000)), cell.csk()).into()
    }),
    row("SOA minimum 0", "RFC 9077 §3", Scope::Every, |cell| with_soa(cell, 3600, 0)),
    row("SOA TTL 0", "RFC 9077 §3", Scope::Every, |cell| with_soa(cell, 0, 900)),
    row("SOA TTL below the minimum", "RFC 9077 §3", Scope::Every, |cell| with_soa(cell, 60, 86_400)),
    row("the longest SOA TTL and minimum", "RFC 9077 §3", Scope::Every, |cell| {
        with_soa(cell, 2_147_483_647, 2_147_483_647)
    }),
    row("serial 0", "RFC 1982 §7", Scope::Every, |cell| {
        let text = "example. 60 SOA ns.test. h.test. 0 2 3 4 5\nexample. 60 NS ns.test.\n";
        cell.bench(&read_zone(text, &name("example.")), cell.csk(), &cell.options()).into()
    }),
    row("DNSKEY with another TTL than SOA", "RFC 4035 §2.1", Scope::Every, |cell| {
        let options = SignOptions { dnskey_ttl: Some(7), ..cell.options() };
        cell.bench(&zone(RECORDS), cell.csk(), &options).into()
    }),
];

#[test]
fn unusual_types() {
    try_all(&records::TYPES.iter().map(plain).collect::<Vec<_>>());
    try_all(ROWS);
}

fn with_soa(cell: Cell, ttl: u32, minimum: u32) -> Sound {
    let text = format!(
        "example. {ttl} SOA ns.test. h.test. 1 2 3 4 {minimum}\nexample. 60 NS ns.test.\na.example. 60 A 192.0.2.1\n"
    );
    cell.bench(&read_zone(&text, &name("example.")), cell.csk(), &cell.options()).into()
}
