//! Shared code of the examples: a zone of 1,000 names, its keys, and queries.

use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::KeyPair;
use nonesuch_proto::message::{HEADER, push_query};
use nonesuch_proto::{Name, NameError, Rtype, edns};
use nonesuch_zone::{Contents, read};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

/// Returns a zone with addresses at `n0.example.` to `n999.example.`. With `cuts`, it also has the
/// delegations `d0` to `d999`.
pub(crate) fn zone(cuts: bool) -> Result<Contents, Box<dyn Error>> {
    let mut text =
        String::from("$TTL 3600\n@ SOA ns hostmaster 7 3600 300 3600000 900\n@ NS ns\nns A 192.0.2.1\n");
    for number in 0..1000 {
        writeln!(text, "n{number} A 192.0.2.2")?;
        if cuts {
            write!(text, "d{number} NS ns.d{number}\nns.d{number} A 192.0.2.3\n")?;
        }
    }
    let apex: Name = "example.".parse()?;
    Ok(read::read_text(text.as_bytes(), Path::new("zone"), Some(&apex))?.contents)
}

/// Returns the key of the zone: for Ed25519 the key of RFC 8080 §6.1, for P-256 the key of RFC 6605
/// §6.1. The key is constant because the content of an image seeds the hash of its names: with a
/// random key, each run would have a different hash table.
pub(crate) fn key(apex: &Name, algorithm: Algorithm) -> Result<KeyPair, Box<dyn Error>> {
    let (public, private) = match algorithm {
        Algorithm::ED25519 => {
            ("l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=", "ODIyNjAzODQ2MjgwODAxMjI2NDUxOTAyMDQxNDIyNjI=")
        }
        Algorithm::ECDSAP256SHA256 => (
            "GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA==",
            "GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ=",
        ),
        _ => return Ok(KeyPair::generate(apex, 257, algorithm, None)?),
    };
    let number = algorithm.0;
    let record = format!("{apex} IN DNSKEY 257 3 {number} {public}");
    let private = format!("Private-key-format: v1.3\nAlgorithm: {number}\nPrivateKey: {private}\n");
    Ok(KeyPair::parse(&record, &private)?)
}

/// Returns a query for the addresses of `name`, with the DO flag.
pub(crate) fn query(name: &str, id: u16) -> Result<Vec<u8>, NameError> {
    let mut octets = Vec::new();
    push_query(&name.parse()?, Rtype::A, id, 0, &mut octets);
    edns::push_opt(1232, 0, edns::DO, &mut octets);
    octets[HEADER - 1] = 1;
    Ok(octets)
}
