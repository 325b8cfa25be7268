//! What the examples share: a zone of 1,000 names, and queries.

use nonesuch_proto::message::{HEADER, push_query};
use nonesuch_proto::{Name, NameError, Rtype, edns};
use nonesuch_zone::{Contents, read};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

/// `n0.example.` to `n999.example.` with addresses; with `cuts` as many delegations `d0` and so on.
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

/// A query for the addresses of `name` with DO set.
pub(crate) fn query(name: &str, id: u16) -> Result<Vec<u8>, NameError> {
    let mut octets = Vec::new();
    push_query(&name.parse()?, Rtype::A, id, 0, &mut octets);
    edns::push_opt(1232, 0, edns::DO, &mut octets);
    octets[HEADER - 1] = 1;
    Ok(octets)
}
