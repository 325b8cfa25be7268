//! Unusual names: escapes, special octets, lengths, names that look like wildcards.

use super::*;

pub(super) const ROWS: &[Row] = &[
    row("a label of 63 octets", "RFC 1035 §2.3.4", Scope::Every, |variant| {
        variant.signed(&format!("{} A 192.0.2.1", "l".repeat(63)), variant.csk()).into()
    }),
    row("a name of 255 octets", "RFC 1035 §2.3.4", Scope::Every, |variant| {
        let label = "L".repeat(63);
        variant
            .signed(&format!("{label}.{label}.{label}.{} A 192.0.2.1", "m".repeat(53)), variant.csk())
            .into()
    }),
    row("a name of 123 labels", "RFC 1035 §2.3.4", Scope::Every, |variant| {
        variant.signed(&format!("{} A 192.0.2.1", vec!["a"; 123].join(".")), variant.csk()).into()
    }),
    row("an owner that is another name's hash", "RFC 5155 §7.2.8", Scope::Every, |variant| {
        let owner = hashed("a.example.");
        variant
            .signed(&format!("a A 192.0.2.1\n{owner} A 192.0.2.2\nsub.{owner} TXT \"below\""), variant.csk())
            .into()
    }),
    row("an owner that looks like a hash", "RFC 5155 §7.2.8", Scope::Every, |variant| {
        variant.signed(&format!("{} A 192.0.2.1", "0".repeat(32)), variant.csk()).into()
    }),
    row("an apex with odd octets in mixed case", "RFC 2181 §11", Scope::Every, |variant| {
        at_apex(variant, "O\\000d\\.D.Example.")
    }),
    row("the root", "RFC 4034 §3.1.3", Scope::Every, |variant| at_apex(variant, ".")),
    row("an apex of 16 labels", "RFC 1035 §2.3.4", Scope::Every, |variant| {
        at_apex(variant, "a.b.c.d.e.f.a.b.c.d.e.f.ip6.x.arpa.test.")
    }),
    row("the longest apex that NSEC3 has room for", "RFC 5155 §3", Scope::NotNsec5, |variant| {
        at_apex(variant, &format!("{0}.{0}.{0}.{1}.", "x".repeat(63), "y".repeat(28)))
    }),
    row("the longest apex that NSEC5 has room for", "draft-vcelak-nsec5-07 §6", Scope::Nsec5, |variant| {
        at_apex(variant, &format!("{0}.{0}.{0}.{1}.", "x".repeat(63), "y".repeat(8)))
    }),
    row(
        "an owner that is another name's NSEC5 hash",
        "draft-vcelak-nsec5-07 §9.2",
        Scope::Every,
        |variant| {
            let owner = nsec5::hashed("a.example.");
            variant
                .signed(
                    &format!("a A 192.0.2.1\n{owner} A 192.0.2.2\nsub.{owner} TXT \"below\""),
                    variant.csk(),
                )
                .into()
        },
    ),
];

#[test]
fn unusual_names() {
    try_all(&records::NAMES.iter().map(plain).collect::<Vec<_>>());
    try_all(ROWS);
}

fn at_apex(variant: Variant, apex: &str) -> Sound {
    let text = format!(
        "{apex} 3600 SOA ns.test. h.test. 1 2 3 4 900\n{apex} 3600 NS ns.test.\n{apex} 60 TXT \"apex\"\n"
    );
    let contents = read_zone(&text, &name(apex));
    variant.bench(&contents, vec![key(apex, 257, variant.algorithm, 1)], &variant.options()).into()
}
