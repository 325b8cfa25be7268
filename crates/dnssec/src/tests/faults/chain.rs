//! Faults of the chain that can occur with every mechanism (RFC 4035 §2.3, RFC 5155 §7.1), and
//! faults of NSEC.

use super::*;

pub(super) const ROWS: &[Row] = &[
    row("bit map too little", "RFC 4035 §2.3", Scope::Every, bitmap_too_little),
    row("bit map too much", "RFC 4035 §2.3", Scope::Every, bitmap_too_much),
    row("bit map lacks RRSIG", "RFC 4034 §4.1.2", Scope::Every, |bench| {
        lacks(bench, "b.example.", " RRSIG", Rtype::RRSIG)
    }),
    row("bit map of the apex lacks SOA", "RFC 4035 §2.3", Scope::Every, |bench| {
        lacks(bench, "example.", " SOA", Rtype::SOA)
    }),
    row("bit map of an alias lacks CNAME", "RFC 4035 §2.5", Scope::Every, |bench| {
        lacks(bench, "c.example.", " CNAME", Rtype::CNAME)
    }),
    row("bit map lacks DNAME", "RFC 4035 §2.3", Scope::Every, |bench| {
        lacks(bench, "n.example.", " DNAME", Rtype::DNAME)
    }),
    row("bit map of a wildcard too little", "RFC 4035 §2.3", Scope::Every, |bench| {
        lacks(bench, "*.w.example.", " A", Rtype::A)
    }),
    row("bit map of a delegation lacks DS", "RFC 4035 §2.3", Scope::Every, |bench| {
        lacks(bench, "s.example.", " DS", Rtype::DS)
    }),
    row("bit map of a delegation lacks NS", "RFC 4035 §2.3", Scope::Every, |bench| {
        lacks(bench, "s.example.", " NS", Rtype::NS)
    }),
    row("bit map of a delegation shows SOA", "RFC 4035 §2.3", Scope::Every, bitmap_of_a_delegation_shows_soa),
    row("bit map of a delegation shows glue", "RFC 4035 §2.3", Scope::Nsec, bitmap_shows_glue),
    row("bit map malformed", "RFC 4034 §4.1.2", Scope::Every, bitmap_malformed),
    row("bit map with an empty window", "RFC 4034 §4.1.2", Scope::Every, bitmap_with_an_empty_window),
    row("no chain", "RFC 4035 §2.3", Scope::Every, no_chain),
    row("link broken", "RFC 4034 §4.1.1", Scope::Nsec, link_broken),
    row("link of the last name broken", "RFC 4034 §4.1.1", Scope::Nsec, last_link_broken),
    row("link out of the zone", "RFC 4034 §4.1.1", Scope::Nsec, link_out_of_the_zone),
    row("NSEC record cut short", "RFC 4034 §4.1", Scope::Nsec, record_cut_short),
    row("NSEC record missing", "RFC 4035 §2.3", Scope::Nsec, record_missing),
    row("name left out of the chain", "RFC 4035 §2.3", Scope::Nsec, name_left_out),
    row("NSEC record too much", "RFC 4035 §2.3", Scope::Nsec, record_too_much),
    row("NSEC record at an empty non-terminal", "RFC 4035 §2.3", Scope::Nsec, record_at_empty_non_terminal),
    row("NSEC record twice", "RFC 4034 §4", Scope::Nsec, record_twice),
    row("NSEC record at glue", "RFC 4035 §2.3", Scope::Nsec, |bench| {
        bench.add("ns.d.example. 900 IN NSEC example. A");
        found("ns.d.example.", NSEC, FaultReason::UnexpectedRecords)
    }),
    row("NSEC bit map lacks NSEC", "RFC 4034 §4.1.2", Scope::Nsec, |bench| {
        lacks(bench, "b.example.", " NSEC", Rtype::NSEC)
    }),
    row("NSEC next to NSEC3", "RFC 5155 §10.3", Scope::Nsec3, nsec_beside_nsec3),
    row("NSEC3PARAM next to NSEC", "RFC 5155 §4", Scope::Nsec, nsec3param_beside_nsec),
];

#[test]
fn faults_of_chains() {
    plant_all(ROWS);
}

/// The chain record of `owner` lacks a type; `word` is its form in the bit map.
fn lacks(bench: &mut Bench, owner: &str, word: &str, rtype: Rtype) -> Found {
    let chain_type = bench.chain_type();
    let taken_out = |rdata: &str| {
        // The bit map follows the last name, hash or salt. The spaces around the word exclude
        // longer mnemonics.
        let text = format!("{rdata} ");
        text.replacen(&format!("{word} "), " ", 1).trim_end().to_owned()
    };
    let at = bench.edit_chain(owner, taken_out);
    found(&at, Some(chain_type), FaultReason::BitmapMissing(rtype))
}

fn bitmap_too_little(bench: &mut Bench) -> Found {
    lacks(bench, "b.example.", " TXT", Rtype::TXT)
}

fn bitmap_too_much(bench: &mut Bench) -> Found {
    let rtype = bench.chain_type();
    let at = bench.edit_chain("b.example.", |rdata| rdata.replace(" A TXT ", " A MX TXT "));
    found(&at, Some(rtype), FaultReason::BitmapExtra(Rtype::MX))
}

/// A validator could treat the record as that of the apex of the child zone.
fn bitmap_of_a_delegation_shows_soa(bench: &mut Bench) -> Found {
    let rtype = bench.chain_type();
    let at = bench.edit_chain("s.example.", |rdata| rdata.replace(" NS DS ", " NS SOA DS "));
    found(&at, Some(rtype), FaultReason::BitmapExtra(Rtype::SOA))
}

fn bitmap_shows_glue(bench: &mut Bench) -> Found {
    let at = bench.edit_chain("g.example.", |rdata| rdata.replace(" NS ", " A NS "));
    found(&at, NSEC, FaultReason::BitmapExtra(Rtype::A))
}

fn damaged_bitmap(bench: &mut Bench, change: impl Fn(&mut Vec<u8>)) -> Found {
    let (at, rtype) = (bench.chain_owner("b.example."), bench.chain_type());
    let contents = damaged(bench, &at, rtype, change);
    found(&at, Some(rtype), FaultReason::MalformedRecord).within(contents)
}

fn bitmap_malformed(bench: &mut Bench) -> Found {
    damaged_bitmap(bench, |rdata| rdata.push(0))
}

fn bitmap_with_an_empty_window(bench: &mut Bench) -> Found {
    damaged_bitmap(bench, |rdata| rdata.extend([255, 1, 0]))
}

fn no_chain(bench: &mut Bench) -> Found {
    let types = [Rtype::NSEC, Rtype::NSEC3, Rtype::NSEC3PARAM, Rtype::NSEC5, Rtype::NSEC5KEY];
    let is_of_chain = |word: &str| types.contains(&word.parse().unwrap());
    let of_chain = |line: &str| {
        let fields = Bench::fields(line);
        is_of_chain(fields[3]) || fields[3] == "RRSIG" && is_of_chain(fields[4].split(' ').next().unwrap())
    };
    bench.lines.retain(|line| !of_chain(line));
    found("example.", None, FaultReason::NoDenial)
}

fn broken(at: &str, expected: &str, wrong: &str) -> Found {
    found(at, NSEC, FaultReason::ChainBroken { expected: name(expected), found: name(wrong) })
}

fn link_broken(bench: &mut Bench) -> Found {
    bench.edit_chain("a.example.", |rdata| rdata.replace("b.example.", "c.example."));
    broken("a.example.", "b.example.", "c.example.")
}

fn last_link_broken(bench: &mut Bench) -> Found {
    let last = "*.w.example.";
    bench.edit_chain(last, |rdata| rdata.replacen("example.", "zz.example.", 1));
    broken(last, "example.", "zz.example.")
}

fn link_out_of_the_zone(bench: &mut Bench) -> Found {
    bench.edit_chain("a.example.", |rdata| rdata.replace("b.example.", "b.other."));
    broken("a.example.", "b.example.", "b.other.")
}

fn record_cut_short(bench: &mut Bench) -> Found {
    let contents = damaged(bench, "b.example.", Rtype::NSEC, |rdata| rdata.truncate(5));
    found("b.example.", NSEC, FaultReason::MalformedRecord).within(contents)
}

fn record_missing(bench: &mut Bench) -> Found {
    bench.remove("b.example.", "NSEC");
    bench.remove_signatures("b.example.", "NSEC");
    found("b.example.", NSEC, FaultReason::ChainMissing)
}

/// The preceding record denies an existing name.
fn name_left_out(bench: &mut Bench) -> Found {
    record_missing(bench);
    bench.edit_chain("a.example.", |rdata| rdata.replace("b.example.", "c.example."));
    broken("a.example.", "b.example.", "c.example.").and("b.example.", NSEC, FaultReason::ChainMissing)
}

fn record_too_much(bench: &mut Bench) -> Found {
    bench.add("bb.example. 900 IN NSEC c.example. RRSIG NSEC");
    bench.sign_more("bb.example.", Rtype::NSEC, untouched);
    found("bb.example.", NSEC, FaultReason::ChainExtra)
}

/// The name exists, but has no types for an NSEC record.
fn record_at_empty_non_terminal(bench: &mut Bench) -> Found {
    bench.add("ent.example. 900 IN NSEC x.ent.example. RRSIG NSEC");
    bench.sign_more("ent.example.", Rtype::NSEC, untouched);
    found("ent.example.", NSEC, FaultReason::ChainExtra)
}

fn record_twice(bench: &mut Bench) -> Found {
    bench.add("b.example. 900 IN NSEC c.example. A TXT RRSIG NSEC NSEC3PARAM");
    bench.sign_again("b.example.", Rtype::NSEC, untouched);
    found("b.example.", NSEC, FaultReason::MultipleRecords).and(
        "b.example.",
        NSEC,
        FaultReason::BitmapExtra(Rtype::NSEC3PARAM),
    )
}

fn nsec_beside_nsec3(bench: &mut Bench) -> Found {
    bench.add("a.example. 900 IN NSEC b.example. A RRSIG NSEC");
    bench.sign_more("a.example.", Rtype::NSEC, untouched);
    found("a.example.", NSEC, FaultReason::MixedDenial)
}

fn nsec3param_beside_nsec(bench: &mut Bench) -> Found {
    bench.add("example. 0 IN NSEC3PARAM 1 0 0 -");
    bench.sign_more("example.", Rtype::NSEC3PARAM, untouched);
    bench.edit_chain("example.", |rdata| format!("{rdata} NSEC3PARAM"));
    found("example.", Some(Rtype::NSEC3PARAM), FaultReason::MixedDenial)
}
