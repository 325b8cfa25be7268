//! Signs and verifies a given number of times, and nothing else, so that instructions can be
//! counted on any processor.
//!
//! ```text
//! probe keys                                 a key and eight signatures of each algorithm: JSON
//! probe list FILE                            print the names in such a file, one on each line
//! probe run FILE COUNT [NAME [verify|sign]]  eight operations, then five rounds of COUNT: JSON
//! ```
//!
//! Keys and signatures come from a file, so that each processor works on the same octets, and one
//! processor verifies the signatures of another. The thread yields to the operating system before
//! and after every round. `tools/foreign` counts between these marks, which excludes the start,
//! parsing and the first use of every table. The output names algorithms that cannot be used, with
//! the reason. If an operation fails, the program ends with an error.

use std::error::Error;
use std::hint::black_box;
use std::io::Write as _;

use data_encoding::BASE64;
use nonesuch_crypto::{ALGORITHMS, Algorithm, AlgorithmEntry, PrivateKey, PublicKey};
use serde_json::{Value, json};

/// Signatures of each key, each over a different message, because the time of a verification
/// depends on the signature.
const SIGNATURES: u8 = 8;
/// Number of counted rounds. Their differences show the spread.
const ROUNDS: u64 = 5;
/// Length of a message in octets: the RRSIG fields and the A RRset of a name.
const MESSAGE_OCTETS: usize = 120;

/// The key and signatures of one algorithm, or the reason why they are missing.
struct Subject {
    name: String,
    material: Result<Material, Box<dyn Error>>,
}

/// A key, its messages and its signatures.
struct Material {
    key: PrivateKey,
    public: PublicKey,
    messages: Vec<Vec<u8>>,
    signatures: Vec<Vec<u8>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = match words.as_slice() {
        ["keys"] => json_text(&generate_all())?,
        ["list", file] => names(&read(file)?)?,
        ["run", file, count] => json_text(&run(&read(file)?, count.parse()?, None, None)?)?,
        ["run", file, count, name] => json_text(&run(&read(file)?, count.parse()?, Some(name), None)?)?,
        ["run", file, count, name, operation @ ("verify" | "sign")] => {
            json_text(&run(&read(file)?, count.parse()?, Some(name), Some(operation))?)?
        }
        _ => {
            return Err(
                "usage: probe keys | probe list FILE | probe run FILE COUNT [NAME [verify|sign]]".into()
            );
        }
    };
    writeln!(std::io::stdout(), "{output}")?;
    Ok(())
}

fn json_text(value: &Value) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(value)
}

fn read(file: &str) -> Result<Value, Box<dyn Error>> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    Ok(serde_json::from_str(&text)?)
}

/// Returns the algorithms without aliases; RSA occurs once for each key length. Algorithms that sign
/// slowly are omitted: under an emulator, each signature would take a minute.
fn subjects() -> impl Iterator<Item = (&'static AlgorithmEntry, Option<u16>)> {
    let is_subject = |entry: &&AlgorithmEntry| entry.alias_of.is_none() && !entry.scheme.signs_slowly;
    ALGORITHMS.iter().filter(is_subject).flat_map(|entry| {
        let lengths: Vec<Option<u16>> = match &entry.scheme.key_lengths {
            Some(lengths) => lengths.forced.iter().chain(lengths.offered).copied().map(Some).collect(),
            None => vec![None],
        };
        lengths.into_iter().map(move |bits| (entry, bits))
    })
}

fn message(number: u8) -> Vec<u8> {
    vec![number; MESSAGE_OCTETS]
}

fn generate_all() -> Value {
    let rows = subjects().map(|(entry, bits)| {
        let name =
            bits.map_or_else(|| entry.mnemonic.to_owned(), |bits| format!("{}/{bits}", entry.mnemonic));
        match generate(entry.algorithm, bits) {
            Ok((private, signatures)) => json!({
                "name": name, "number": entry.algorithm.0, "private": private, "signatures": signatures,
            }),
            Err(reason) => {
                json!({ "name": name, "number": entry.algorithm.0, "skipped": reason.to_string() })
            }
        }
    });
    Value::Array(rows.collect())
}

/// Generates a key. Returns the private key file and a signature over each message.
fn generate(algorithm: Algorithm, bits: Option<u16>) -> Result<(String, Vec<String>), Box<dyn Error>> {
    let key = PrivateKey::generate_any_length(algorithm, bits)?;
    let signatures = (0..SIGNATURES).map(|number| {
        let mut signature = Vec::new();
        key.sign(&message(number), &mut signature)?;
        Ok(BASE64.encode(&signature))
    });
    Ok((key.to_bind().to_string(), signatures.collect::<Result<_, Box<dyn Error>>>()?))
}

fn names(file: &Value) -> Result<String, Box<dyn Error>> {
    let rows = file.as_array().ok_or("not a file of keys: expected an array")?;
    let names = rows.iter().filter(|row| row.get("skipped").is_none()).map(|row| text(row, "name"));
    Ok(names.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

fn text<'a>(row: &'a Value, field: &str) -> Result<&'a str, Box<dyn Error>> {
    let value = row.get(field).and_then(Value::as_str);
    Ok(value.ok_or_else(|| format!("the file of keys lacks the field \"{field}\""))?)
}

/// Reads one row of the file of keys.
fn read_row(row: &Value) -> Result<Subject, Box<dyn Error>> {
    let name = text(row, "name")?.to_owned();
    if let Ok(reason) = text(row, "skipped") {
        return Ok(Subject { name, material: Err(reason.into()) });
    }
    let key = match PrivateKey::from_bind(text(row, "private")?) {
        Ok(key) => key,
        Err(error) => return Ok(Subject { name, material: Err(error.into()) }),
    };
    let public = PublicKey::parse(key.algorithm(), key.public_key())?;
    let encoded =
        row.get("signatures").and_then(Value::as_array).ok_or("the file of keys lacks signatures")?;
    let decode = |value: &Value| Ok(BASE64.decode(value.as_str().unwrap_or_default().as_bytes())?);
    let signatures = encoded.iter().map(decode).collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let messages = (0..SIGNATURES).map(message).take(signatures.len()).collect();
    Ok(Subject { name, material: Ok(Material { key, public, messages, signatures }) })
}

/// Runs the requested operations. `count` is the number of operations in each round. Returns the
/// number of operations in all rounds, each of which succeeded.
fn run(
    file: &Value,
    count: u64,
    only: Option<&str>,
    operation: Option<&str>,
) -> Result<Value, Box<dyn Error>> {
    let rows = file.as_array().ok_or("not a file of keys: expected an array")?;
    let (mut counts, mut skipped) = (Vec::new(), Vec::new());
    for row in rows {
        if only.is_some_and(|only| text(row, "name").ok() != Some(only)) {
            continue;
        }
        let subject = read_row(row)?;
        match subject.material {
            Err(reason) => skipped.push(json!({ "name": subject.name, "reason": reason.to_string() })),
            Ok(material) => {
                for kind in
                    ["verify", "sign"].into_iter().filter(|kind| operation.is_none_or(|only| only == *kind))
                {
                    rounds(&material, kind, count)
                        .map_err(|error| format!("{} {kind}: {error}", subject.name))?;
                    counts.push(json!({ "name": subject.name, "operation": kind, "count": ROUNDS * count }));
                }
            }
        }
    }
    if counts.is_empty() && skipped.is_empty() {
        return Err("the file of keys has no such name: see \"probe list FILE\"".into());
    }
    Ok(json!({ "architecture": std::env::consts::ARCH, "counts": counts, "skipped": skipped }))
}

/// Runs one operation on each message, then the rounds, each between two marks.
fn rounds(material: &Material, kind: &str, count: u64) -> Result<(), Box<dyn Error>> {
    let round = if kind == "verify" { verify } else { sign };
    round(material, u64::from(SIGNATURES))?;
    for _ in 0..ROUNDS {
        std::thread::yield_now();
        round(material, count)?;
        std::thread::yield_now();
    }
    Ok(())
}

fn verify(material: &Material, count: u64) -> Result<(), Box<dyn Error>> {
    let pairs = material.messages.iter().zip(&material.signatures).cycle();
    for ((message, signature), _) in pairs.zip(0..count) {
        material.public.verify(black_box(message), black_box(signature))?;
    }
    Ok(())
}

fn sign(material: &Material, count: u64) -> Result<(), Box<dyn Error>> {
    let mut signature = Vec::new();
    for (message, _) in material.messages.iter().cycle().zip(0..count) {
        signature.clear();
        material.key.sign(black_box(message), &mut signature)?;
        black_box(&signature);
    }
    Ok(())
}
