//! Faults of NSEC3 chains (RFC 5155 §3, §4, §6 and §7.1, RFC 9276).

use super::*;

pub(super) const ROWS: &[Row] = &[
    row("NSEC3 link broken", "RFC 5155 §7.1", Scope::Nsec3, link_broken),
    row("name left out of the NSEC3 chain", "RFC 5155 §7.1", Scope::Nsec3Complete, |bench| {
        left_out(bench, "b.example.")
    }),
    row("empty non-terminal left out", "RFC 5155 §7.1", Scope::Nsec3Complete, |bench| {
        left_out(bench, "ent.example.")
    }),
    row("insecure delegation left out without opt-out", "RFC 5155 §7.1", Scope::Nsec3Complete, |bench| {
        left_out(bench, "d.example.")
    }),
    row(
        "empty non-terminal of an insecure delegation left out",
        "RFC 5155 §7.1",
        Scope::Nsec3Complete,
        |bench| left_out(bench, "un.example."),
    ),
    row("opt-out over a name with data", "RFC 5155 §6", Scope::Nsec3OptOut, |bench| {
        opted_out(bench, "b.example.")
    }),
    row("opt-out over a secure delegation", "RFC 5155 §6", Scope::Nsec3OptOut, |bench| {
        opted_out(bench, "s.example.")
    }),
    row("opt-out over an empty non-terminal", "RFC 5155 §7.1", Scope::Nsec3OptOut, |bench| {
        opted_out(bench, "ent.example.")
    }),
    row("opt-out over a wildcard", "RFC 5155 §6", Scope::Nsec3OptOut, |bench| {
        opted_out(bench, "*.w.example.")
    }),
    row(
        "insecure delegation covered without opt-out",
        "RFC 5155 §7.1",
        Scope::Nsec3OptOut,
        covered_without_opt_out,
    ),
    row("NSEC3 record missing", "RFC 5155 §7.1", Scope::Nsec3, record_missing),
    row("NSEC3 record of no name", "RFC 5155 §7.1", Scope::Nsec3, record_of_no_name),
    row("NSEC3 record of an occluded name", "RFC 5155 §7.1", Scope::Nsec3, record_of_an_occluded_name),
    row("NSEC3 record at no hash", "RFC 5155 §3", Scope::Nsec3, |bench| stray(bench, "short.example.")),
    row("NSEC3 record at no base32hex", "RFC 5155 §3.3", Scope::Nsec3, |bench| {
        stray(bench, &format!("{}.example.", "z".repeat(32)))
    }),
    row("NSEC3 record too deep", "RFC 5155 §3", Scope::Nsec3, |bench| {
        stray(bench, &format!("{}.b.example.", "0".repeat(32)))
    }),
    row("NSEC3 record below a cut", "RFC 5155 §7.1", Scope::Nsec3, below_a_cut),
    row("NSEC3 records twice", "RFC 5155 §7.1", Scope::Nsec3, records_twice),
    row("NSEC3 record of other iterations", "RFC 5155 §7.1", Scope::Nsec3, |bench| {
        mismatch(bench, "1 0 7 -")
    }),
    row("NSEC3 record of another salt", "RFC 5155 §7.1", Scope::Nsec3, |bench| mismatch(bench, "1 0 0 AB")),
    row("NSEC3 record of another hash algorithm", "RFC 5155 §8.1", Scope::Nsec3, |bench| {
        mismatch(bench, "2 0 0 -")
    }),
    row("NSEC3 flags unknown", "RFC 5155 §8.2", Scope::Nsec3, unknown_flags),
    row("NSEC3 record malformed", "RFC 5155 §3.2", Scope::Nsec3, malformed),
    row("NSEC3 hash of another length", "RFC 5155 §3.1.7", Scope::Nsec3, hash_too_short),
    row("NSEC3 bit map shows NSEC3", "RFC 5155 §7.1", Scope::Nsec3, |bench| {
        shows(bench, "b.example.", " RRSIG", " RRSIG NSEC3", Rtype::NSEC3)
    }),
    row("NSEC3 bit map shows NSEC", "RFC 5155 §7.1", Scope::Nsec3, |bench| {
        shows(bench, "b.example.", " RRSIG", " RRSIG NSEC", Rtype::NSEC)
    }),
    row("bit map of an insecure delegation shows RRSIG", "RFC 5155 §7.1", Scope::Nsec3Complete, |bench| {
        shows(bench, "d.example.", " NS", " NS RRSIG", Rtype::RRSIG)
    }),
    row("bit map of an insecure delegation shows DS", "RFC 5155 §7.1", Scope::Nsec3Complete, |bench| {
        shows(bench, "d.example.", " NS", " NS DS", Rtype::DS)
    }),
    row("NSEC3 bit map shows glue", "RFC 5155 §7.1", Scope::Nsec3Complete, |bench| {
        shows(bench, "g.example.", " NS", " A NS", Rtype::A)
    }),
    row(
        "bit map of an empty non-terminal shows a type",
        "RFC 5155 §7.1",
        Scope::Nsec3,
        empty_non_terminal_shows,
    ),
    row("no NSEC3PARAM", "RFC 5155 §7.1", Scope::Nsec3, no_param),
    row("NSEC3PARAM with flags alone", "RFC 5155 §4.1.2", Scope::Nsec3, param_with_flags),
    row(
        "NSEC3PARAM of another hash algorithm alone",
        "RFC 5155 §4.1.1",
        Scope::Nsec3,
        param_of_another_algorithm,
    ),
    row("NSEC3PARAM without a chain", "RFC 5155 §4", Scope::Nsec3, param_without_chain),
    row("NSEC3PARAM malformed", "RFC 5155 §4.2", Scope::Nsec3, param_malformed),
    row("NSEC3PARAM away from the apex", "RFC 5155 §4", Scope::Nsec3, param_away_from_the_apex),
    row("too many iterations", "RFC 9276 §3.2", Scope::Nsec3, too_many_iterations),
];

#[test]
fn faults_of_nsec3() {
    plant_all(ROWS);
}

/// The next hash of the NSEC3 record at `owner`.
fn next_of(bench: &Bench, owner: &str) -> String {
    rdatas(&bench.contents(), owner, Rtype::NSEC3)[0].split(' ').nth(4).unwrap().to_owned()
}

/// Owners of all NSEC3 records, in the order of their hashes.
fn hashes(bench: &Bench) -> Vec<String> {
    let contents = bench.contents();
    let nodes = contents.nodes().filter(|node| node.has(Rtype::NSEC3));
    nodes.map(|node| node.name().to_string()).collect()
}

/// The owner of the record that precedes a hash: the last one before it, or the last of all.
fn before(bench: &Bench, hash: &str) -> String {
    let all = hashes(bench);
    all.iter().filter(|owner| owner.as_str() < hash).max().or_else(|| all.iter().max()).unwrap().clone()
}

fn first_label(owner: &str) -> String {
    owner.split('.').next().unwrap().to_owned()
}

/// Removes the NSEC3 record of `owner` with its signature, and links its predecessor to its
/// successor.
fn unlink(bench: &mut Bench, owner: &str) {
    let at = hashed(owner);
    let next = next_of(bench, &at);
    let previous = before(bench, &at);
    bench.remove(&at, "NSEC3");
    bench.remove_signatures(&at, "NSEC3");
    bench.edit(&previous, "NSEC3", |rdata| rdata.replace(&first_label(&at), &next));
    bench.sign_again(&previous, Rtype::NSEC3, untouched);
}

fn left_out(bench: &mut Bench, owner: &str) -> Found {
    unlink(bench, owner);
    found(owner, NSEC3, FaultReason::Nsec3Missing { hashed: name(&hashed(owner)) })
}

fn opted_out(bench: &mut Bench, owner: &str) -> Found {
    unlink(bench, owner);
    found(owner, NSEC3, FaultReason::OptOutOverSecure { hashed: name(&hashed(owner)) })
}

fn link_broken(bench: &mut Bench) -> Found {
    let at = hashed("b.example.");
    let next = next_of(bench, &at);
    let wrong = "0".repeat(32);
    bench.edit_chain("b.example.", |rdata| rdata.replace(&next, &wrong));
    let in_zone = |label: &str| name(&format!("{label}.example."));
    found(&at, NSEC3, FaultReason::ChainBroken { expected: in_zone(&next), found: in_zone(&wrong) })
}

/// Each insecure delegation that the record without the flag covers is reported.
fn covered_without_opt_out(bench: &mut Bench) -> Found {
    let covering = before(bench, &hashed("d.example."));
    bench.edit(&covering, "NSEC3", |rdata| rdata.replacen("1 1 ", "1 0 ", 1));
    bench.sign_again(&covering, Rtype::NSEC3, untouched);
    let opted_out = ["d.example.", "g.example.", "un.example.", "i.un.example."];
    let covered = opted_out.into_iter().filter(|owner| before(bench, &hashed(owner)) == covering);
    covered.fold(Found::default(), |all, owner| {
        all.and(owner, NSEC3, FaultReason::Nsec3Missing { hashed: name(&hashed(owner)) })
    })
}

/// The record is missing, and its predecessor still names it.
fn record_missing(bench: &mut Bench) -> Found {
    let at = hashed("b.example.");
    let (next, previous) = (next_of(bench, &at), before(bench, &at));
    bench.remove(&at, "NSEC3");
    bench.remove_signatures(&at, "NSEC3");
    let reason = match bench.mechanism {
        Mechanism::Nsec3OptOut => FaultReason::OptOutOverSecure { hashed: name(&at) },
        _ => FaultReason::Nsec3Missing { hashed: name(&at) },
    };
    let expected = name(&format!("{next}.example."));
    found(&previous, NSEC3, FaultReason::ChainBroken { expected, found: name(&at) }).and(
        "b.example.",
        NSEC3,
        reason,
    )
}

/// Adds a signed record at `at` to the chain.
fn link_in(bench: &mut Bench, at: &str, types: &str) {
    let previous = before(bench, at);
    let next = next_of(bench, &previous);
    let flags = u8::from(bench.mechanism.is_opt_out());
    bench.add(&format!("{at} 900 IN NSEC3 1 {flags} 0 - {next}{types}"));
    bench.sign_more(at, Rtype::NSEC3, untouched);
    bench.edit(&previous, "NSEC3", |rdata| rdata.replace(&next, &first_label(at)));
    bench.sign_again(&previous, Rtype::NSEC3, untouched);
}

fn record_of_no_name(bench: &mut Bench) -> Found {
    let at = hashed("nobody.example.");
    link_in(bench, &at, " A RRSIG");
    found(&at, NSEC3, FaultReason::ChainExtra)
}

fn record_of_an_occluded_name(bench: &mut Bench) -> Found {
    let at = hashed("ns.d.example.");
    link_in(bench, &at, " A");
    found(&at, NSEC3, FaultReason::ChainExtra)
}

fn stray(bench: &mut Bench, owner: &str) -> Found {
    bench.add(&format!("{owner} 900 IN NSEC3 1 0 0 - 00000000000000000000000000000000"));
    bench.sign_more(owner, Rtype::NSEC3, untouched);
    found(owner, NSEC3, FaultReason::ChainExtra)
}

fn below_a_cut(bench: &mut Bench) -> Found {
    let owner = format!("{}.d.example.", "0".repeat(32));
    bench.add(&format!("{owner} 900 IN NSEC3 1 0 0 - 00000000000000000000000000000000"));
    found(&owner, NSEC3, FaultReason::UnexpectedRecords).and(&owner, NSEC3, FaultReason::ChainExtra)
}

fn line_of(bench: &Bench, owner: &str) -> String {
    bench.lines.iter().find(|line| Bench::is(line, owner, "NSEC3")).unwrap().clone()
}

/// Two records of one chain at one name, with different bit maps.
fn records_twice(bench: &mut Bench) -> Found {
    let at = hashed("b.example.");
    let line = line_of(bench, &at).replace(" TXT ", " TXT AAAA ");
    bench.lines.push(line);
    bench.sign_again(&at, Rtype::NSEC3, untouched);
    found(&at, NSEC3, FaultReason::MultipleRecords)
}

/// A record of another chain in addition to the correct one.
fn mismatch(bench: &mut Bench, parameters: &str) -> Found {
    let at = hashed("b.example.");
    let flags = u8::from(bench.mechanism.is_opt_out());
    let line = line_of(bench, &at).replace(&format!("1 {flags} 0 -"), parameters);
    bench.lines.push(line);
    bench.sign_again(&at, Rtype::NSEC3, untouched);
    found(&at, NSEC3, FaultReason::Nsec3ParamMismatch)
}

/// Validators ignore the record. It is therefore missing in the chain.
fn ignored(bench: &Bench, at: &str, reason: FaultReason) -> Found {
    let (next, previous) = (next_of(bench, at), before(bench, at));
    let hashed = name(at);
    let missing = match bench.mechanism {
        Mechanism::Nsec3OptOut => FaultReason::OptOutOverSecure { hashed },
        _ => FaultReason::Nsec3Missing { hashed },
    };
    found(
        &previous,
        NSEC3,
        FaultReason::ChainBroken { expected: name(&format!("{next}.example.")), found: name(at) },
    )
    .and(at, NSEC3, reason)
    .and("b.example.", NSEC3, missing)
}

fn unknown_flags(bench: &mut Bench) -> Found {
    let at = hashed("b.example.");
    let expected = ignored(bench, &at, FaultReason::UnknownNsec3Flags(2));
    bench.edit_chain("b.example.", |rdata| format!("1 2 {}", &rdata[4..]));
    expected
}

fn malformed(bench: &mut Bench) -> Found {
    let at = hashed("b.example.");
    let contents = damaged(bench, &at, Rtype::NSEC3, |rdata| rdata.truncate(10));
    ignored(bench, &at, FaultReason::MalformedRecord).within(contents)
}

fn hash_too_short(bench: &mut Bench) -> Found {
    let at = hashed("b.example.");
    let contents = damaged(bench, &at, Rtype::NSEC3, |rdata| {
        // Algorithm, flags, iterations, empty salt, and the length of the hash.
        rdata[5] = 19;
        rdata.remove(25);
    });
    ignored(bench, &at, FaultReason::MalformedRecord).within(contents)
}

fn shows(bench: &mut Bench, owner: &str, from: &str, to: &str, rtype: Rtype) -> Found {
    let at = bench.edit_chain(owner, |rdata| rdata.replacen(from, to, 1));
    found(&at, NSEC3, FaultReason::BitmapExtra(rtype))
}

fn empty_non_terminal_shows(bench: &mut Bench) -> Found {
    let at = bench.edit_chain("ent.example.", |rdata| format!("{} A", rdata.trim_end()));
    found(&at, NSEC3, FaultReason::BitmapExtra(Rtype::A))
}

/// All records have parameters that no NSEC3PARAM record has.
fn of_no_chain(bench: &Bench) -> Found {
    let all = found("example.", Some(Rtype::NSEC3PARAM), FaultReason::NoNsec3Param);
    hashes(bench).iter().fold(all, |all, owner| all.and(owner, NSEC3, FaultReason::Nsec3ParamMismatch))
}

fn no_param(bench: &mut Bench) -> Found {
    bench.remove("example.", "NSEC3PARAM");
    bench.remove_signatures("example.", "NSEC3PARAM");
    bench.edit_chain("example.", |rdata| rdata.replace(" NSEC3PARAM", ""));
    of_no_chain(bench)
}

fn changed_param(bench: &mut Bench, algorithm: u8, flags: u8) -> Found {
    bench.edit("example.", "NSEC3PARAM", |_| format!("{algorithm} {flags} 0 -"));
    bench.sign_again("example.", Rtype::NSEC3PARAM, untouched);
    of_no_chain(bench).warned(VerifyWarning::UnusedNsec3Param { algorithm, flags })
}

fn param_with_flags(bench: &mut Bench) -> Found {
    changed_param(bench, 1, 1)
}

fn param_of_another_algorithm(bench: &mut Bench) -> Found {
    changed_param(bench, 2, 0)
}

/// A server that selects this NSEC3PARAM record has no chain for its responses.
fn param_without_chain(bench: &mut Bench) -> Found {
    bench.add("example. 0 IN NSEC3PARAM 1 0 1 -");
    bench.sign_again("example.", Rtype::NSEC3PARAM, untouched);
    let params = Nsec3Params { salt: Vec::new(), iterations: 1 };
    let names = [
        "example.",
        "a.example.",
        "b.example.",
        "c.example.",
        "d.example.",
        "g.example.",
        "n.example.",
        "s.example.",
        "w.example.",
        "*.w.example.",
        "ent.example.",
        "x.ent.example.",
        "un.example.",
        "i.un.example.",
    ];
    let missing = names.into_iter().fold(Found::default(), |all, owner| {
        let hash = params.hash(name(owner).view(), &mut Vec::new());
        let label = crate::denial::nsec3::chain::label(&hash);
        let hashed = name(&format!("{}.example.", String::from_utf8_lossy(&label)));
        all.and(owner, NSEC3, FaultReason::Nsec3Missing { hashed })
    });
    missing.warned(VerifyWarning::Nsec3Parameters { iterations: 1, salt: 0 })
}

fn param_malformed(bench: &mut Bench) -> Found {
    let contents = damaged(bench, "example.", Rtype::NSEC3PARAM, |rdata| rdata.push(1));
    let mut expected = of_no_chain(bench).within(contents);
    expected.faults.insert(
        0,
        Fault {
            owner: name("example."),
            rtype: Some(Rtype::NSEC3PARAM),
            reason: FaultReason::MalformedRecord,
        },
    );
    expected
}

fn param_away_from_the_apex(bench: &mut Bench) -> Found {
    bench.add("ns.d.example. 900 IN NSEC3PARAM 1 0 0 -");
    found("ns.d.example.", Some(Rtype::NSEC3PARAM), FaultReason::UnexpectedRecords)
}

fn too_many_iterations(bench: &mut Bench) -> Found {
    bench.edit("example.", "NSEC3PARAM", |_| "1 0 501 -".to_owned());
    bench.sign_again("example.", Rtype::NSEC3PARAM, untouched);
    let mut expected = of_no_chain(bench).warned(VerifyWarning::Nsec3Parameters { iterations: 501, salt: 0 });
    expected.faults[0].reason = FaultReason::TooManyIterations(501);
    expected
}
