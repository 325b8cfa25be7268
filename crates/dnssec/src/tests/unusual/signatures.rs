//! Unusual signatures: times at the limits, more signatures than necessary, unusual letter case.

use super::*;

pub(super) const ROWS: &[Row] = &[
    row("expires now", "RFC 4034 §3.1.5", Scope::Every, |variant| {
        fields(variant, |fields| fields.expiration = NOW)
    }),
    row("valid from now", "RFC 4034 §3.1.5", Scope::Every, |variant| {
        fields(variant, |fields| fields.inception = NOW)
    }),
    row("valid for this second alone", "RFC 4034 §3.1.5", Scope::Every, |variant| {
        fields(variant, |fields| (fields.inception, fields.expiration) = (NOW, NOW))
    }),
    row("validity of 68 years", "RFC 1982 §3.2", Scope::Every, |variant| {
        fields(variant, |fields| fields.expiration = fields.inception + 0x7fff_ffff)
    }),
    row("validity across the end of 32 bits", "RFC 4034 §3.1.5", Scope::Every, across_the_end),
    row("validity after the end of 32 bits", "RFC 4034 §3.1.5", Scope::Every, |variant| {
        across(variant, 1000)
    }),
    row("every RRset with a validity of its own", "RFC 4034 §3.1.5", Scope::Every, |variant| {
        let options = SignOptions { jitter: 86_400, seed: 5, ..variant.options() };
        variant.bench(&zone(RECORDS), variant.csk(), &options).into()
    }),
    row("two signatures by one key", "RFC 4035 §5.3", Scope::Every, |variant| {
        more(variant, |fields| fields.expiration = EXPIRATION - 1).into()
    }),
    row("ten signatures by one key", "RFC 4035 §5.3", Scope::Every, |variant| {
        let mut bench = variant.signed(RECORDS, variant.csk());
        (1..10).for_each(|at| bench.sign_more(A, Rtype::A, |fields| fields.expiration = EXPIRATION - at));
        bench.into()
    }),
    row("an expired one next to a good one", "RFC 4035 §5.3.3", Scope::Every, |variant| {
        let bench = more(variant, |fields| fields.expiration = NOW - 1);
        let tag = bench.keys.keys()[0].tag();
        Sound::from(bench).warned(spare(FaultReason::Expired { tag, expiration: NOW - 1 }))
    }),
    row("an early one next to a good one", "RFC 4035 §5.3.3", Scope::Every, |variant| {
        let bench = more(variant, |fields| fields.inception = NOW + 1);
        let tag = bench.keys.keys()[0].tag();
        Sound::from(bench).warned(spare(FaultReason::NotYetValid { tag, inception: NOW + 1 }))
    }),
    row("one by an unknown key next to a good one", "RFC 4035 §5.3.3", Scope::Every, |variant| {
        let bench = more(variant, |fields| fields.tag ^= 1);
        let tag = bench.keys.keys()[0].tag() ^ 1;
        Sound::from(bench).warned(spare(FaultReason::UnknownKey { tag, algorithm: variant.algorithm }))
    }),
    row("one of an unknown algorithm next to a good one", "RFC 4035 §5.3.3", Scope::NotNsec5, |variant| {
        let bench = more(variant, |fields| fields.algorithm = Algorithm(199));
        let tag = bench.keys.keys()[0].tag();
        Sound::from(bench).warned(spare(FaultReason::UnknownKey { tag, algorithm: Algorithm(199) }))
    }),
    row("the signer in upper case", "RFC 4034 §3.1.8.1", Scope::Every, |variant| {
        let mut sound = Sound::from(variant.signed(RECORDS, variant.csk()));
        sound.contents = rewrite(&sound.contents, |_, rtype, _, rdata| {
            if rtype == Rtype::RRSIG {
                rdata[19..26].make_ascii_uppercase();
            }
        });
        sound
    }),
    row("owners in another case than signed", "RFC 4034 §6.2", Scope::Every, |variant| {
        let mut bench = variant.signed(RECORDS, variant.csk());
        for line in &mut bench.lines {
            *line = line.replacen("a.example.\t", "A.eXample.\t", usize::from(line.starts_with("a.")));
        }
        bench.into()
    }),
    row("names in RDATA in another case than signed", "RFC 4034 §6.2", Scope::Every, |variant| {
        let mut bench = variant.signed("x MX 1 mail.test.\ny PTR mail.test.", variant.csk());
        bench.edit("x.example.", "MX", |_| "1 MAIL.test.".to_owned());
        bench.edit("y.example.", "PTR", |_| "Mail.TEST.".to_owned());
        bench.into()
    }),
    row("records in another order", "RFC 4034 §6.3", Scope::Every, |variant| {
        let mut bench = variant.signed(RECORDS, variant.csk());
        bench.lines.reverse();
        bench.into()
    }),
    row("records given twice", "RFC 2181 §5", Scope::Every, |variant| {
        let mut bench = variant.signed(RECORDS, variant.csk());
        bench.lines.extend(bench.lines.clone());
        bench.into()
    }),
    row("signed at various times", "RFC 4034 §3.1.5", Scope::Every, |variant| {
        let mut bench = variant.signed(RECORDS, variant.csk());
        for (owner, rtype, earlier) in
            [(A, Rtype::A, 100), ("example.", Rtype::SOA, 200), ("*.w.example.", Rtype::A, 300)]
        {
            bench.sign_again(owner, rtype, |fields| fields.inception -= earlier);
        }
        bench.into()
    }),
    row("signed twice over", "RFC 4035 §2.2", Scope::Every, |variant| {
        let once = variant.signed(RECORDS, variant.csk()).contents();
        variant.bench(&once, variant.csk(), &variant.options()).into()
    }),
];

const A: &str = "a.example.";

#[test]
fn unusual_signatures() {
    try_all(ROWS);
}

fn fields(variant: Variant, change: impl Fn(&mut Rrsig<'_>)) -> Sound {
    let mut bench = variant.signed(RECORDS, variant.csk());
    bench.sign_again(A, Rtype::A, change);
    bench.into()
}

/// An additional signature over A at `a`.
fn more(variant: Variant, change: impl Fn(&mut Rrsig<'_>)) -> Bench {
    let mut bench = variant.signed(RECORDS, variant.csk());
    bench.sign_more(A, Rtype::A, change);
    bench
}

fn spare(reason: FaultReason) -> VerifyWarning {
    VerifyWarning::SurplusSignature { owner: name(A), rtype: Rtype::A, reason }
}

/// Signed shortly before the 32-bit count of seconds overflows in 2106, and verified `after`
/// seconds later.
fn across(variant: Variant, after: u32) -> Sound {
    let options = SignOptions::new(variant.mechanism, u32::MAX - 500, 86_400);
    Sound::from(variant.bench(&zone(RECORDS), variant.csk(), &options))
        .at((u32::MAX - 500).wrapping_add(after))
}

fn across_the_end(variant: Variant) -> Sound {
    across(variant, 100)
}
