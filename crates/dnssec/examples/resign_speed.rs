//! What signing again costs, step by step: `resign_speed IMAGE-OUT NAMES nsec|nsec3|nsec3-opt-out`. A zone of
//! delegations is made in memory.

use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::sign::{Mending, Previous, resign, resign_stored};
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, sign};
use nonesuch_zone::change::SerialRule;
use nonesuch_zone::write::write_zone;
use nonesuch_zone::{ChangeSet, Contents, Verification, compiled, open_compiled, read};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

const NOW: u32 = 1_750_000_000;

/// CPU seconds of all threads that there are.
fn cpu() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    texts.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() / 1e9
}

fn step<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let (begun, before) = (Instant::now(), cpu());
    let outcome = work();
    println!(
        "{name:12} {:8.1} ms CPU {:8.1} ms wall",
        (cpu() - before) * 1e3,
        begun.elapsed().as_secs_f64() * 1e3
    );
    outcome
}

fn zone_text(contents: &Contents) -> Vec<u8> {
    let mut out = Vec::new();
    write_zone(contents, &mut out).expect("memory");
    out
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let path = Path::new(&arguments[1]);
    let names: u32 = arguments[2].parse().expect("a number");
    let mechanism: Mechanism = arguments[3].parse().expect("a mechanism");
    let apex: nonesuch_proto::Name = "example.".parse().expect("a name");
    let mut text = String::from(
        "$ORIGIN example.\n$TTL 3600\n@ SOA ns1 hostmaster 7 3600 300 3600000 900\n@ NS ns.elsewhere.test.\n",
    );
    let mut changes = String::new();
    for at in 0..names {
        let label = format!("d{:x}", u64::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24);
        let ns =
            format!("{label} NS ns1.operator{}.test.\n{label} NS ns2.operator{}.test.\n", at % 50, at % 50);
        text += &ns;
        let signed = at % 10 < 6;
        let ds = format!("DS {} 13 2 {}", at % 60000, "0a".repeat(32));
        if signed {
            let _ = writeln!(text, "{label} {ds}");
        }
        if at % 5 == 4 {
            let _ = write!(text, "ns.{label} A 192.0.2.1\nns.{label} AAAA 2001:db8::1\n");
        }
        if at % 100 == 7 {
            let _ = match at / 100 % 4 {
                0 => write!(
                    changes,
                    "- {label} 3600 IN NS ns1.operator{}.test.\n+ {label} 3600 IN NS other.test.\n",
                    at % 50
                ),
                1 => write!(
                    changes,
                    "- {label} 3600 IN NS ns1.operator{}.test.\n- {label} 3600 IN NS ns2.operator{}.test.\n",
                    at % 50,
                    at % 50
                )
                .and_then(|()| if signed { writeln!(changes, "- {label} 3600 IN {ds}") } else { Ok(()) }),
                2 => write!(changes, "+ x{label} 3600 IN NS other.test.\n+ x{label} 3600 IN {ds}\n"),
                _ => writeln!(changes, "+ {label} 3600 IN DS 60001 13 2 {}", "0b".repeat(32)),
            };
        }
    }
    let key = |flags| KeyPair::generate(&apex, flags, Algorithm::ECDSAP256SHA256, None).expect("a key");
    let keys = KeySet::new(&apex, vec![key(257), key(256)]).expect("keys");
    let contents =
        step("read", || read::read_text(text.as_bytes(), path, Some(&apex)).expect("a zone").contents);
    let options =
        |now: u32| SignOptions { now, ..SignOptions::new(mechanism, now - 3600, now + 14 * 86_400) };
    let signed = step("sign", || sign(&contents, &keys, &options(NOW)).expect("signed"));
    println!("{:?}", signed.statistics());
    let old_text = step("write text", || zone_text(signed.contents()));
    let new = ChangeSet::parse(changes.as_bytes(), &apex).expect("changes");
    let new = zone_text(&new.apply(&contents, SerialRule::Exact).expect("changes that fit"));
    drop(contents);
    for _ in 0..3 {
        println!("\nfrom two zone files");
        let before = cpu();
        let previous =
            step("read old", || read::read_text(&old_text, path, Some(&apex)).expect("a zone").contents);
        let contents =
            step("read new", || read::read_text(&new, path, Some(&apex)).expect("a zone").contents);
        let mut options = options(NOW + 1800);
        options.previous = Some(Previous::new(&previous, 14 * 86_400));
        let signed = step("resign", || resign(&contents, &keys, &options).expect("signed").expect("changed"));
        println!("{:?}", signed.statistics());
        step("write text", || zone_text(signed.contents()));
        println!("all: {:.1} ms CPU", (cpu() - before) * 1e3);
    }
    drop((old_text, new));
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).expect("a file"));
    compiled::write(signed.contents(), Verification::Nothing, &mut out).expect("written");
    drop((out, signed));
    for _ in 0..5 {
        println!();
        let before = cpu();
        let previous =
            step("open", || open_compiled(path, Some(&apex)).expect("an image").expect("compiled"));
        let changes = step("changes", || ChangeSet::parse(changes.as_bytes(), &apex).expect("changes"));
        let mut options = options(NOW + 1800);
        options.previous = Some(Previous::new(previous.head(), 14 * 86_400));
        let outcome = step("resign", || resign_stored(&previous, &changes, &keys, &options).expect("signed"));
        let Mending::Mended(resigned) = outcome else { panic!("the zone can be mended") };
        println!("{:?} {:?}", resigned.statistics(), resigned.names_planned());
        step("write", || {
            let file = std::fs::File::create(path.with_extension("new")).expect("a file");
            let mut out = std::io::BufWriter::with_capacity(1 << 20, file);
            compiled::write_splice(&resigned.splice(), Verification::Nothing, &mut out).expect("written");
        });
        step("drop", || drop(resigned));
        step("close", || drop(previous));
        println!("all: {:.1} ms CPU", (cpu() - before) * 1e3);
    }
}
