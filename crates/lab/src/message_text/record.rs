//! Records in presentation format, with comments that explain numeric fields.

use nonesuch_crypto::vrf::VrfAlgorithm;
use nonesuch_crypto::{Algorithm, key_tag};
use nonesuch_proto::message::Record;
use nonesuch_proto::{Rtype, rdata};
use serde_json::{Value, json};

/// Flags of a DNSKEY record (RFC 4034 section 2.1.1, RFC 5011 section 3).
const SEP: u16 = 0x0001;
const REVOKED: u16 = 0x0080;

/// Type and RDATA as text. A private use type that this project knows appears as its mnemonic and
/// fields, not as `TYPEn` and hexadecimal digits.
#[must_use]
pub fn type_and_rdata(record: &Record) -> (String, String) {
    let mut text = Vec::new();
    // A zone file contains private use types as TYPEn with a comment. Here the comment replaces
    // them, because the output is for people.
    rdata::push_comment(record.rtype, &record.rdata, &mut text);
    let text = String::from_utf8_lossy(&text);
    if let Some((mnemonic, fields)) = text.strip_prefix(" ; ").and_then(|text| text.split_once(' ')) {
        return (mnemonic.to_owned(), replace_private_types(record.rtype, fields));
    }
    let mut plain = Vec::new();
    rdata::push_text(record.rtype, &record.rdata, &mut plain);
    let plain = String::from_utf8_lossy(&plain);
    (record.rtype.in_zone_text().to_string(), replace_private_types(record.rtype, &plain))
}

/// The RDATA text `rdata` of a record of type `rtype`, with mnemonics for the private use types in
/// it.
fn replace_private_types(rtype: Rtype, rdata: &str) -> String {
    if !matches!(rtype, Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5) {
        return rdata.to_owned();
    }
    let name = |word: &str| match word.parse::<Rtype>() {
        Ok(rtype) if rtype.is_private_use() => rtype.to_string(),
        _ => word.to_owned(),
    };
    rdata.split(' ').map(name).collect::<Vec<_>>().join(" ")
}

/// A record in one line.
#[must_use]
pub fn line(record: &Record) -> String {
    let (rtype, rdata) = type_and_rdata(record);
    let mut text = format!("{}\t{}\t{}\t{rtype}\t{rdata}", record.owner, record.ttl, record.class);
    if let Some(comment) = comment(record) {
        text = format!("{text} ; {comment}");
    }
    text
}

/// A record as JSON: its fields as text, and the comment.
#[must_use]
pub fn to_json(record: &Record) -> Value {
    let (rtype, rdata) = type_and_rdata(record);
    let mut value = json!({
        "name": record.owner.to_string(),
        "ttl": record.ttl,
        "class": record.class.to_string(),
        "type": rtype,
        "rdata": rdata,
    });
    if let Some(comment) = comment(record) {
        value["comment"] = json!(comment);
    }
    value
}

/// A comment for people: algorithm, key tag, role and sizes of keys and signatures.
fn comment(record: &Record) -> Option<String> {
    let octets = record.rdata.as_slice();
    match (record.rtype, octets) {
        (Rtype::DNSKEY | Rtype::CDNSKEY, [a, b, _, algorithm, key @ ..]) => {
            let flags = u16::from_be_bytes([*a, *b]);
            let role = if flags & SEP != 0 { "KSK" } else { "ZSK" };
            let revoked = if flags & REVOKED != 0 { ", revoked" } else { "" };
            let (name, tag) = (algorithm_name(*algorithm), key_tag(octets));
            Some(format!("{role}{revoked}, {name}, key tag {tag}, {} octets", key.len()))
        }
        (Rtype::DS | Rtype::CDS, [_, _, algorithm, ..]) => Some(algorithm_name(*algorithm)),
        (Rtype::RRSIG, [_, _, algorithm, ..]) => {
            let signer = record.rdata.get(18..)?;
            let (_, signature) = nonesuch_proto::NameRef::split_from(signer).ok()?;
            Some(format!("{}, {} octets", algorithm_name(*algorithm), signature.len()))
        }
        (Rtype::NSEC5KEY, [number, key @ ..]) => {
            let name = VrfAlgorithm(*number).entry().map_or("unknown VRF", |entry| entry.name);
            Some(format!("VRF {name}, key tag {}, {} octets", key_tag(octets), key.len()))
        }
        (Rtype::NSEC5PROOF, [_, _, proof @ ..]) => Some(format!("{} octets", proof.len())),
        _ => None,
    }
}

fn algorithm_name(number: u8) -> String {
    match Algorithm(number).entry() {
        Some(entry) => entry.mnemonic.to_owned(),
        None => format!("algorithm {number}"),
    }
}
