//! Unusual signatures: times at the limits, more signatures than necessary, unusual letter case.

use super::*;

pub(super) const ROWS: &[Row] = &[
    row("expires now", "RFC 4034 §3.1.5", Scope::Every, |cell| {
        fields(cell, |fields| fields.expiration = NOW)
    }),
    row("valid from now", "RFC 4034 §3.1.5", Scope::Every, |cell| {
        fields(cell, |fields| fields.inception = NOW)
    }),
    row("valid for this second alone", "RFC 4034 §3.1.5", Scope::Every, |cell| {
        fields(cell, |fields| (fields.inception, fields.expiration) = (NOW, NOW))
    }),
    row("validity of 68 years", "RFC 1982 §3.2", Scope::Every, |cell| {
        fields(cell, |fields| fields.expiration = fields.inception + 0x7fff_ffff)
    }),
    row("validity across the end of 32 bits", "RFC 4034 §3.1.5", Scope::Every, across_the_end),
    row("validity after the end of 32 bits", "RFC 4034 §3.1.5", Scope::Every, |cell| across(cell, 1000)),
    row("every RRset with a validity of its own", "RFC 4034 §3.1.5", Scope::Every, |cell| {
        let options = SignOptions { jitter: 86_400, seed: 5, ..cell.options() };
        cell.bench(&zone(RECORDS), cell.csk(), &options).into()
    }),
    row("two signatures by one key", "RFC 4035 §5.3", Scope::Every, |cell| {
        more(cell, |fields| fields.expiration = EXPIRATION - 1).into()
    }),
    row("ten signatures by one key", "RFC 4035 §5.3", Scope::Every, |cell| {
        let mut bench = cell.signed(RECORDS, cell.csk());
        (1..10).for_each(|at| bench.sign_more(A, Rtype::A, |fields| fields.expiration = EXPIRATION - at));
        bench.into()
    }),
    row("an expired one beside a good one", "RFC 4035 §5.3.3", Scope::Every, |cell| {
        let bench = more(cell, |fields| fields.expiration = NOW - 1);
        let tag = bench.keys.keys()[0].tag();
        Sound::from(bench).warned(spare(FaultReason::Expired { tag, expiration: NOW - 1 }))
    }),
    row("an early one beside a good one", "RFC 4035 §5.3.3", Scope::Every, |cell| {
        let bench = more(cell, |fields| fields.inception = NOW + 1);
        let tag = bench.keys.keys()[0].tag();
        Sound::from(bench).warned(spare(FaultReason::NotYetValid { tag, inception: NOW + 1 }))
    }),
    row("one by an unknown key beside a good one", "RFC 4035 §5.3.3", Scope::Every, |cell| {
        let bench = more(cell, |fields| fields.tag ^= 1);
        let tag = bench.keys.keys()[0].tag() ^ 1;
        Sound::from(bench).warned(spare(FaultReason::UnknownKey { tag, algorithm: cell.algorithm }))
    }),
    row("one of an unknown algorithm beside a good one", "RFC 4035 §5.3.3", Scope::NotNsec5, |cell| {
        let bench = more(cell, |fields| fields.algorithm = Algorithm(199));
        let tag = bench.keys.keys()[0].tag();
        Sound::from(bench).warned(spare(FaultReason::UnknownKey { tag, algorithm: Algorithm(199) }))
    }),
    row("the signer in upper case", "RFC 4034 §3.1.8.1", Scope::Every, |cell| {
        let mut sound = Sound::from(cell.signed(RECORDS, cell.csk()));
        sound.contents = rewrite(&sound.contents, |_, rtype, _, rdata| {
            if rtype == Rtype::RRSIG {
                rdata[19..26].make_ascii_uppercase();
            }
        });
        sound
    }),
    row("owners in another case than signed", "RFC 4034 §6.2", Scope::Every, |cell| {
        let mut bench = cell.signed(RECORDS, cell.csk());
        for line in &mut bench.lines {
            *line = line.replacen("a.example.\t", "A.eXample.\t", usize::from(line.starts_with("a.")));
        }
        bench.into()
    }),
    row("names in RDATA in another case than signed", "RFC 4034 §6.2", Scope::Every, |cell| {
        let mut bench = cell.signed("x MX 1 mail.test.\ny PTR mail.test.", cell.csk());
        bench.edit("x.example.", "MX", |_| "1 MAIL.test.".to_owned());
        bench.edit("y.example.", "PTR", |_| "Mail.TEST.".to_owned());
        bench.into()
    }),
    row("records in another order", "RFC 4034 §6.3", Scope::Every, |cell| {
        let mut bench = cell.signed(RECORDS, cell.csk());
        bench.lines.reverse();
        bench.into()
    }),
    row("records given twice", "RFC 2181 §5", Scope::Every, |cell| {
        let mut bench = cell.signed(RECORDS, cell.csk());
        bench.lines.extend(bench.lines.clone());
        bench.into()
    }),
    row("signed at various times", "RFC 4034 §3.1.5", Scope::Every, |cell| {
        let mut bench = cell.signed(RECORDS, cell.csk());
        for (owner, rtype, earlier) in
            [(A, Rtype::A, 100), ("example.", Rtype::SOA, 200), ("*.w.example.", Rtype::A, 300)]
        {
            bench.sign_again(owner, rtype, |fields| fields.inception -= earlier);
        }
        bench.into()
    }),
    row("signed twice over", "RFC 4035 §2.2", Scope::Every, |cell| {
        let once = cell.signed(RECORDS, cell.csk()).contents();
        cell.bench(&once, cell.csk(), &cell.options()).into()
    }),
];

const A: &str = "a.example.";

#[test]
fn unusual_signatures() {
    try_all(ROWS);
}

fn fields(cell: Cell, change: impl Fn(&mut Rrsig<'_>)) -> Sound {
    let mut bench = cell.signed(RECORDS, cell.csk());
    bench.sign_again(A, Rtype::A, change);
    bench.into()
}

/// An additional signature over A at `a`.
fn more(cell: Cell, change: impl Fn(&mut Rrsig<'_>)) -> Bench {
    let mut bench = cell.signed(RECORDS, cell.csk());
    bench.sign_more(A, Rtype::A, change);
    bench
}

fn spare(reason: FaultReason) -> VerifyWarning {
    VerifyWarning::SpareSignature { owner: name(A), rtype: Rtype::A, reason }
}

/// Signed shortly before the 32-bit count of seconds overflows in 2106, and verified `after`
/// seconds later.
fn across(cell: Cell, after: u32) -> Sound {
    let options = SignOptions::new(cell.mechanism, u32::MAX - 500, 86_400);
    Sound::from(cell.bench(&zone(RECORDS), cell.csk(), &options)).at((u32::MAX - 500).wrapping_add(after))
}

fn across_the_end(cell: Cell) -> Sound {
    across(cell, 100)
}
