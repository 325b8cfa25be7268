//! Unusual chains: several chains, partial opt-out, old TTLs, salts, unusual letter case.

use super::*;
use crate::denial::nsec3::MAX_ITERATIONS;
use crate::keys::Nsec5Key;
use crate::tests::nsec5::vrf_of;
use nonesuch_crypto::vrf::VrfAlgorithm;

pub(super) const ROWS: &[Row] = &[
    row("TTL of the SOA minimum", "RFC 9077 §3", Scope::Every, old_ttl),
    row("the next name in upper case", "RFC 6840 §5.1", Scope::Nsec, |variant| {
        let mut bench = variant.signed(RECORDS, variant.csk());
        bench.edit_chain("a.example.", |rdata| rdata.replace("b.example.", "B.Example."));
        bench.into()
    }),
    row("hashes in upper case", "RFC 5155 §3.3", Scope::Nsec3, |variant| {
        let mut bench = variant.signed(RECORDS, variant.csk());
        for line in
            bench.lines.iter_mut().filter(|line| line.contains("\tNSEC3\t") || line.contains("\tNSEC3 "))
        {
            let owner = Bench::fields(line)[0].to_owned();
            *line = line.replacen(&owner, &owner.to_uppercase(), 1);
        }
        bench.into()
    }),
    row("a salt of one octet", "RFC 5155 §3.1.5", Scope::Nsec3, |variant| parameters(variant, vec![0], 0)),
    row("a salt of 255 octets", "RFC 5155 §3.1.5", Scope::Nsec3, |variant| {
        parameters(variant, vec![7; 255], 0)
    }),
    row("iterations", "RFC 5155 §3.1.3", Scope::Nsec3, |variant| parameters(variant, Vec::new(), 1)),
    row("salt and iterations", "RFC 5155 §3.1", Scope::Nsec3, |variant| {
        parameters(variant, vec![0xab, 0xcd], 12)
    }),
    row("the most iterations that are verified", "RFC 9276 §3.2", Scope::Nsec3, |variant| {
        parameters(variant, Vec::new(), MAX_ITERATIONS)
    }),
    row("two chains", "RFC 5155 §4", Scope::Nsec3, |variant| two_chains(variant, vec![0xab], 2)),
    row("two chains that differ in salt alone", "RFC 5155 §4", Scope::Nsec3, |variant| {
        two_chains(variant, vec![0xab], 0)
    }),
    row("two chains that differ in iterations alone", "RFC 5155 §4", Scope::Nsec3, |variant| {
        two_chains(variant, Vec::new(), 3)
    }),
    row("NSEC3PARAM with flags next to a good one", "RFC 5155 §4.1.2", Scope::Nsec3, |variant| {
        param(variant, 1, 1)
    }),
    row("NSEC3PARAM with an unknown hash next to a good one", "RFC 5155 §4.1.1", Scope::Nsec3, |variant| {
        param(variant, 7, 0)
    }),
    row("NSEC3PARAM with a TTL", "RFC 5155 §4", Scope::Nsec3, |variant| {
        let mut bench = variant.signed(RECORDS, variant.csk());
        for line in bench.lines.iter_mut().filter(|line| Bench::is(line, "example.", "NSEC3PARAM")) {
            *line = line.replacen("\t0\t", "\t3600\t", 1);
        }
        bench.sign_again("example.", Rtype::NSEC3PARAM, |_| {});
        bench.into()
    }),
    row("opt-out on one record fewer", "RFC 5155 §6", Scope::Nsec3OptOut, opt_out_on_all_but_one),
    row("opt-out on the covering record alone", "RFC 5155 §6", Scope::Nsec3OptOut, opt_out_where_needed),
    row("opt-out without delegations", "RFC 5155 §6", Scope::Nsec3OptOut, |variant| {
        variant.signed("a A 192.0.2.1\nx.ent A 192.0.2.1", variant.csk()).into()
    }),
    row("opt-out that leaves nothing out", "RFC 5155 §6", Scope::Nsec3OptOut, opt_out_over_nothing),
    row("opt-out with an insecure delegation in the chain", "RFC 5155 §7.1", Scope::Nsec3OptOut, |variant| {
        let mut bench = variant.signed(RECORDS, variant.csk());
        link_in(&mut bench, "d.example.", " NS");
        bench.into()
    }),
    row(
        "opt-out with an empty non-terminal of delegations in the chain",
        "RFC 5155 §7.1",
        Scope::Nsec3OptOut,
        |variant| {
            let mut bench = variant.signed(&format!("{RECORDS}\ni.un NS ns.test."), variant.csk());
            link_in(&mut bench, "un.example.", "");
            bench.into()
        },
    ),
    row("opt-out with delegations alone below the apex", "RFC 5155 §7.1", Scope::Nsec3OptOut, |variant| {
        let records: String = (0..40).map(|at| format!("d{at} NS ns.test.\n")).collect();
        variant.signed(&records, variant.csk()).into()
    }),
    row("NSEC5 hashes in upper case", "draft-vcelak-nsec5-07 §6", Scope::Nsec5, |variant| {
        let mut bench = variant.signed(RECORDS, variant.csk());
        let of_chain = |line: &str| {
            let fields = Bench::fields(line);
            [fields[3], fields[4].split(' ').next().unwrap()].iter().any(|word| is_type(word, "NSEC5"))
        };
        for line in bench.lines.iter_mut().filter(|line| of_chain(line)) {
            let owner = Bench::fields(line)[0].to_owned();
            *line = line.replacen(&owner, &owner.to_uppercase(), 1);
        }
        bench.into()
    }),
    row("the next NSEC5 key published", "draft-vcelak-nsec5-07 §9.3", Scope::Nsec5, |variant| {
        let next = vrf_of(VrfAlgorithm::P256_SHA256_TAI, 5);
        beside_the_key(variant, Nsec5Key::of(&next).rdata()).into()
    }),
    row("two more NSEC5 keys", "draft-vcelak-nsec5-07 §9.3", Scope::Nsec5, |variant| {
        let [first, second] = [5, 6].map(|seed| vrf_of(VrfAlgorithm::EDWARDS25519_SHA512_TAI, seed));
        let mut bench = beside_the_key(variant, Nsec5Key::of(&first).rdata());
        let more = Nsec5Key::of(&second);
        bench.add(&format!("example. 3600 IN NSEC5KEY {}", key_text(more.rdata())));
        bench.sign_again("example.", Rtype::NSEC5KEY, |_| {});
        bench.into()
    }),
    row(
        "an NSEC5 key of an unknown algorithm beside",
        "draft-vcelak-nsec5-07 §11.3",
        Scope::Nsec5,
        |variant| {
            let rdata = [99, 1, 2, 3];
            let tag = Nsec5Key::from_rdata(&rdata).unwrap().tag();
            let algorithm = VrfAlgorithm(99);
            Sound::from(beside_the_key(variant, &rdata))
                .warned(VerifyWarning::UnusableNsec5Key { tag, algorithm })
        },
    ),
    row("proofs of another serial", "draft-vcelak-nsec5-07 §7", Scope::Nsec5, |variant| {
        let mut sound = Sound::from(variant.signed(RECORDS, variant.csk()));
        let mut proofs = sound.proofs.as_deref().unwrap().clone();
        proofs.set_serial(6);
        sound.proofs = Some(Arc::new(proofs));
        sound.only_by_proofs(VerifyWarning::ProofsSerial { stored: 6, zone: 7 })
    }),
    row("NSEC5 opt-out without delegations", "draft-vcelak-nsec5-07 §9.1", Scope::Nsec5OptOut, |variant| {
        variant.signed("a A 192.0.2.1\nx.ent A 192.0.2.1", variant.csk()).into()
    }),
    row(
        "NSEC5 opt-out that leaves nothing out",
        "draft-vcelak-nsec5-07 §9.1",
        Scope::Nsec5OptOut,
        |variant| {
            let whole = Variant { mechanism: Mechanism::Nsec5, ..variant };
            let mut bench = whole.signed(RECORDS, variant.csk());
            let owners: Vec<String> = bench
                .lines
                .iter()
                .filter(|line| Bench::fields(line)[3] == "NSEC5")
                .map(|line| Bench::fields(line)[0].to_owned())
                .collect();
            for owner in owners {
                bench.edit(&owner, "NSEC5", |rdata| {
                    let fields: Vec<&str> = rdata.splitn(3, ' ').collect();
                    format!("{} {} {}", fields[0], fields[1].parse::<u8>().unwrap() | 1, fields[2])
                });
                bench.sign_again(&owner, Rtype::NSEC5, |_| {});
            }
            bench.into()
        },
    ),
    row(
        "an NSEC5 wildcard that is an empty non-terminal",
        "draft-vcelak-nsec5-07 §6",
        Scope::Nsec5,
        |variant| variant.signed("a.*.w A 192.0.2.1", variant.csk()).into(),
    ),
    row(
        "NSEC5 empty non-terminals of insecure delegations",
        "draft-vcelak-nsec5-07 §9.1",
        Scope::Nsec5,
        |variant| variant.signed("a.b.c NS ns.test.\nd.b.c NS ns.test.", variant.csk()).into(),
    ),
    row("NSEC5 with the apex alone", "draft-vcelak-nsec5-07 §9.1", Scope::Nsec5, |variant| {
        variant.signed("", variant.csk()).into()
    }),
    row("a chain over many names", "RFC 5155 §7.1", Scope::Every, |variant| {
        let records: String = (0..150).map(|at| format!("h{at}.e{} A 192.0.2.1\n", at % 7)).collect();
        variant.signed(&records, variant.csk()).into()
    }),
];

#[test]
fn unusual_chains() {
    try_all(ROWS);
}

/// A zone with another NSEC5KEY record in addition to that of the chain.
fn beside_the_key(variant: Variant, rdata: &[u8]) -> Bench {
    variant.signed(&format!("{RECORDS}\n@ NSEC5KEY {}", key_text(rdata)), variant.csk())
}

fn key_text(rdata: &[u8]) -> String {
    format!("{} {}", rdata[0], data_encoding::BASE64.encode(&rdata[1..]))
}

/// Signers before RFC 9077 gave chain records the SOA minimum, even if the TTL of the SOA record
/// was lower.
fn old_ttl(variant: Variant) -> Sound {
    let mut bench = variant.signed(RECORDS, variant.csk());
    let rtype = bench.chain_type();
    let contents = bench.contents();
    let nodes = contents.nodes().filter(|node| node.has(rtype));
    let owners: Vec<String> = nodes.map(|node| node.name().to_string()).collect();
    for owner in &owners {
        let ours = |line: &String| Bench::is(line, owner, &rtype.to_string());
        for line in bench.lines.iter_mut().filter(|line| ours(line)) {
            *line = line.replacen("\t900\t", "\t7200\t", 1);
        }
    }
    for owner in &owners {
        bench.sign_again(owner, rtype, |_| {});
    }
    let (first, count) = (name(&owners[0]), owners.len() as u64);
    let warning = VerifyWarning::ChainTtl { rtype, expected: 900, found: 7200, count, first };
    Sound::from(bench).warned(warning)
}

fn with_parameters(variant: Variant, salt: Vec<u8>, iterations: u16) -> Bench {
    let options = SignOptions { nsec3: Nsec3Params { salt, iterations }, ..variant.options() };
    variant.bench(&zone(RECORDS), variant.csk(), &options)
}

fn parameters(variant: Variant, salt: Vec<u8>, iterations: u16) -> Sound {
    let warning = VerifyWarning::Nsec3Parameters { iterations, salt: salt.len() as u8 };
    Sound::from(with_parameters(variant, salt, iterations)).warned(warning)
}

/// The state during a change of salt or iterations: the apex has both NSEC3PARAM records, and both
/// chains are complete.
fn two_chains(variant: Variant, salt: Vec<u8>, iterations: u16) -> Sound {
    let octets = salt.len() as u8;
    let other = with_parameters(variant, salt, iterations);
    let mut bench = variant.signed(RECORDS, variant.csk());
    let is_param = |line: &&String| Bench::is(line, "example.", "NSEC3PARAM");
    let of_chain = |line: &&String| Bench::fields(line)[3] == "NSEC3" || line.contains("\tRRSIG\tNSEC3 ");
    bench.lines.extend(other.lines.iter().filter(|line| of_chain(line) || is_param(line)).cloned());
    bench.sign_again("example.", Rtype::NSEC3PARAM, |_| {});
    Sound::from(bench).warned(VerifyWarning::Nsec3Parameters { iterations, salt: octets })
}

/// An unused NSEC3PARAM record, as during the addition or removal of a chain (RFC 5155 §4.1.2).
fn param(variant: Variant, algorithm: u8, flags: u8) -> Sound {
    let mut bench = variant.signed(RECORDS, variant.csk());
    bench.add(&format!("example. 0 IN NSEC3PARAM {algorithm} {flags} 0 AB"));
    bench.sign_again("example.", Rtype::NSEC3PARAM, |_| {});
    Sound::from(bench).warned(VerifyWarning::UnusedNsec3Param { algorithm, flags })
}

fn hashes(bench: &Bench) -> Vec<String> {
    let contents = bench.contents();
    let nodes = contents.nodes().filter(|node| node.has(Rtype::NSEC3));
    nodes.map(|node| node.name().to_string()).collect()
}

/// Owner of the record that precedes a hash.
fn before(bench: &Bench, hash: &str) -> String {
    let all = hashes(bench);
    all.iter().filter(|owner| owner.as_str() < hash).max().or_else(|| all.iter().max()).unwrap().clone()
}

fn clear_opt_out(bench: &mut Bench, owner: &str) {
    bench.edit(owner, "NSEC3", |rdata| rdata.replacen("1 1 ", "1 0 ", 1));
    bench.sign_again(owner, Rtype::NSEC3, |_| {});
}

fn opt_out_on_all_but_one(variant: Variant) -> Sound {
    let mut bench = variant.signed(RECORDS, variant.csk());
    let covering = before(&bench, &hashed("d.example."));
    let other = hashes(&bench).into_iter().find(|owner| *owner != covering).unwrap();
    clear_opt_out(&mut bench, &other);
    bench.into()
}

fn opt_out_where_needed(variant: Variant) -> Sound {
    let mut bench = variant.signed(RECORDS, variant.csk());
    let covering = before(&bench, &hashed("d.example."));
    for owner in hashes(&bench).into_iter().filter(|owner| *owner != covering) {
        clear_opt_out(&mut bench, &owner);
    }
    bench.into()
}

/// A complete chain may have the opt-out flag too.
fn opt_out_over_nothing(variant: Variant) -> Sound {
    let whole = Variant { mechanism: Mechanism::Nsec3, ..variant };
    let mut bench = whole.signed(RECORDS, variant.csk());
    for owner in hashes(&bench) {
        bench.edit(&owner, "NSEC3", |rdata| rdata.replacen("1 0 ", "1 1 ", 1));
        bench.sign_again(&owner, Rtype::NSEC3, |_| {});
    }
    bench.into()
}

/// Adds a record for `owner` to the chain.
fn link_in(bench: &mut Bench, owner: &str, types: &str) {
    let at = hashed(owner);
    let previous = before(bench, &at);
    let next = rdatas(&bench.contents(), &previous, Rtype::NSEC3)[0].split(' ').nth(4).unwrap().to_owned();
    bench.add(&format!("{at} 900 IN NSEC3 1 1 0 - {next}{types}"));
    bench.sign_more(&at, Rtype::NSEC3, |_| {});
    let label = at.split('.').next().unwrap().to_owned();
    bench.edit(&previous, "NSEC3", |rdata| rdata.replace(&next, &label));
    bench.sign_again(&previous, Rtype::NSEC3, |_| {});
}
