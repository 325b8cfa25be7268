//! Records and questions of scenarios. They have the form of zone files, one on each line.

use super::error::RplFault;
use super::lines::tokens;
use data_encoding::{BASE64, Encoding};
use nonesuch_proto::message::{Question, Record, Section};
use nonesuch_proto::rdata::push_from_tokens;
use nonesuch_proto::text::{Token, parse_ttl};
use nonesuch_proto::{Class, Name, Rtype};

/// What completes records: the origin of relative names and the default TTL.
#[derive(Clone, Debug)]
pub(super) struct Defaults {
    pub(super) origin: Name,
    pub(super) ttl: u32,
}

impl Default for Defaults {
    /// Returns the defaults of both dialects.
    fn default() -> Self {
        Self { origin: Name::root(), ttl: 3600 }
    }
}

/// The fields of a record before the RDATA.
struct Fields {
    owner: Name,
    ttl: Option<u32>,
    class: Class,
    rtype: Rtype,
}

/// Reads a question: name, class (optional) and type.
pub(super) fn read_question(line: &str, defaults: &Defaults) -> Result<Question, RplFault> {
    let tokens = tokens(line)?;
    let (fields, _) = read_fields(&tokens, defaults)?;
    Ok(Question { name: fields.owner, rtype: fields.rtype, class: fields.class })
}

/// Reads a record: owner, TTL and class (both optional, in any order), type and RDATA. Without RDATA
/// in the text, the RDATA is empty.
pub(super) fn read_record(line: &str, section: Section, defaults: &Defaults) -> Result<Record, RplFault> {
    let tokens = tokens(line)?;
    let (fields, rdata_tokens) = read_fields(&tokens, defaults)?;
    let mut rdata = Vec::new();
    if !rdata_tokens.is_empty() {
        push_rdata(fields.rtype, rdata_tokens, defaults, &mut rdata)?;
    }
    let Fields { owner, ttl, class, rtype } = fields;
    Ok(Record { section, owner, rtype, class, ttl: ttl.unwrap_or(defaults.ttl), rdata })
}

/// Appends RDATA. The end of a key or signature in base64 may be malformed: some scenarios have a
/// word instead of a signature, with any padding.
fn push_rdata(
    rtype: Rtype,
    tokens: &[Token<'_>],
    defaults: &Defaults,
    out: &mut Vec<u8>,
) -> Result<(), RplFault> {
    let origin = Some(defaults.origin.view());
    let Err(error) = push_from_tokens(rtype, tokens, origin, out) else { return Ok(()) };
    let fields_before = match rtype {
        Rtype::DNSKEY | Rtype::CDNSKEY => 3,
        Rtype::RRSIG => 8,
        _ => return Err(error.into()),
    };
    let (before, digits) = tokens.split_at_checked(fields_before).ok_or(error)?;
    let octets = tolerant_base64().and_then(|encoding| {
        let digits = digits.iter().flat_map(|token| token.octets).copied();
        encoding.decode(&digits.filter(|digit| *digit != b'=').collect::<Vec<_>>()).ok()
    });
    let base64 = BASE64.encode(&octets.ok_or(error)?);
    let token = Token { octets: base64.as_bytes(), quoted: false, at: 0 };
    Ok(push_from_tokens(rtype, &[before, &[token]].concat(), origin, out)?)
}

/// Returns base64 without padding, and without the check that unused bits are zero.
fn tolerant_base64() -> Option<Encoding> {
    let mut specification = BASE64.specification();
    specification.padding = None;
    specification.check_trailing_bits = false;
    specification.encoding().ok()
}

/// The type NULL (RFC 1035 §3.3.10), which zone files cannot have.
const NULL: Rtype = Rtype(10);

fn read_type(octets: &[u8]) -> Result<Rtype, RplFault> {
    if octets.eq_ignore_ascii_case(b"NULL") {
        return Ok(NULL);
    }
    Rtype::from_mnemonic(octets).ok_or(RplFault::NoType)
}

/// Reads the fields before the RDATA. Returns them and the tokens of the RDATA.
fn read_fields<'t, 'l>(
    tokens: &'t [Token<'l>],
    defaults: &Defaults,
) -> Result<(Fields, &'t [Token<'l>]), RplFault> {
    let (owner, mut rest) = tokens.split_first().ok_or(RplFault::NoType)?;
    let owner = Name::from_text(owner.octets, Some(defaults.origin.view()))?;
    let (mut ttl, mut class) = (None, None);
    loop {
        let (token, after) = rest.split_first().ok_or(RplFault::NoType)?;
        let octets = token.octets;
        if ttl.is_none() && octets.first().is_some_and(u8::is_ascii_digit) {
            ttl = Some(parse_ttl(octets).ok_or(RplFault::NoType)?);
        } else if let Some(found) = read_class(octets).filter(|_| class.is_none() && !after.is_empty()) {
            class = Some(found);
        } else {
            let rtype = read_type(octets)?;
            return Ok((Fields { owner, ttl, class: class.unwrap_or(Class::IN), rtype }, after));
        }
        rest = after;
    }
}

fn read_class(octets: &[u8]) -> Option<Class> {
    if octets.eq_ignore_ascii_case(b"NONE") { Some(Class(254)) } else { Class::from_mnemonic(octets) }
}
