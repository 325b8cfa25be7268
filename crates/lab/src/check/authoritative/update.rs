//! Dynamic updates (XA-022).

use super::super::{Evidence, Outcome, Row, Transport};
use super::cases::Cases;
use super::responses::answers;
use super::{Authoritative, Fault, row};
use crate::query::random_id;
use nonesuch_dnssec::validate::ProvedAnswer;
use nonesuch_proto::message::{Header, Message, Question, Rcode, Record, Section, opcode};
use nonesuch_proto::{Class, Name, Rtype};

pub(super) const ITEMS: &[Row<Authoritative>] = &[row(
    "XA-022",
    "Answers dynamic updates, and keeps the zone signed",
    &["RFC 2136 §2.4.4", "RFC 2136 §3.2.1", "RFC 2136 §3.8", "RFC 3007 §4.3", "RFC 8906 §3.1.4"],
    "An UPDATE message that changes nothing, because its prerequisite is false: it is answered. In a test zone with \
     --tsig-key: adds a name, whose answer validates, and deletes it, after which its denial validates.",
    updates,
)];

/// Class of records that are to be deleted (RFC 2136 §2.5.4).
const CLASS_NONE: Class = Class(254);
/// TTL of the added record, in seconds.
const TTL: u32 = 60;

/// XA-022.
fn updates(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    match false_prerequisite(check, evidence) {
        Ok(rcode) => {
            cases.add("update without effect", Ok(()));
            cases.note(format!("answers {rcode} to an update without effect"));
        }
        Err(fault) => cases.add("update without effect", Err(fault)),
    }
    match (check.is_test_zone, check.signer.is_some()) {
        (true, true) => match add_and_delete(check, evidence) {
            Ok(Some(refused)) => {
                cases.skip(format!("the server answers {refused} to an update with this TSIG key"))
            }
            Ok(None) => cases.add("name", Ok(())),
            Err(fault) => cases.add("name", Err(fault)),
        },
        (true, false) => cases.skip("there is no TSIG key for updates (--tsig-key)"),
        (false, _) => cases.skip("only a test zone is changed"),
    }
    cases.outcome()
}

/// Sends an UPDATE message over TCP, signed if there is a key. Returns the response code.
fn update(check: &Authoritative, evidence: &mut Evidence, records: Vec<Record>) -> Result<Rcode, Fault> {
    let id = random_id().map_err(|fault| fault.to_string())?;
    let header = Header { id, flags: u16::from(opcode::UPDATE) << 11, counts: [0; 4] };
    let zone = Question { name: check.zone.clone(), rtype: Rtype::SOA, class: Class::IN };
    let mut query = Message { header, questions: vec![zone], records }.to_octets();
    let verifier = check.signer.as_ref().map(|sign| sign(&mut query));
    let octets = check.client.send(evidence, &query, Transport::Tcp).map_err(|fault| fault.to_string())?;
    let rcode = Message::parse(&octets).map_err(|error| error.to_string())?.rcode();
    // A server that does not implement UPDATE may answer without TSIG.
    if let (Some(mut verify), Rcode::NOERROR) = (verifier, rcode) {
        verify(&octets, true).map_err(|fault| format!("TSIG: {fault}"))?;
    }
    Ok(rcode)
}

/// An update with the prerequisite that a random name exists (RFC 2136 §2.4.4): NXDOMAIN (RFC 2136 §3.2.1), or the
/// server does not permit or implement updates.
fn false_prerequisite(check: &Authoritative, evidence: &mut Evidence) -> Result<Rcode, Fault> {
    let owner = check.random_name(&check.zone)?;
    let prerequisite = Record {
        section: Section::Answer,
        owner,
        rtype: Rtype::ANY,
        class: Class::ANY,
        ttl: 0,
        rdata: Vec::new(),
    };
    let rcode = update(check, evidence, vec![prerequisite])?;
    match rcode {
        Rcode::NXDOMAIN | Rcode::REFUSED | Rcode::NOTIMP | Rcode::NOTAUTH => Ok(rcode),
        _ => Err(format!("expected NXDOMAIN, REFUSED, NOTAUTH or NOTIMP, the response has {rcode}")),
    }
}

/// Adds a name and deletes it. Returns the response code of a server that does not permit it.
fn add_and_delete(check: &Authoritative, evidence: &mut Evidence) -> Result<Option<Rcode>, Fault> {
    let owner = check.random_name(&check.zone)?;
    let record = |class, ttl| Record {
        section: Section::Authority,
        owner: owner.clone(),
        rtype: Rtype::A,
        class,
        ttl,
        rdata: vec![192, 0, 2, 99],
    };
    match update(check, evidence, vec![record(Class::IN, TTL)])? {
        Rcode::NOERROR => {}
        refused @ (Rcode::REFUSED | Rcode::NOTIMP | Rcode::NOTAUTH) => return Ok(Some(refused)),
        rcode => return Err(format!("expected NOERROR for the addition, the response has {rcode}")),
    }
    let added = has_address(check, evidence, &owner);
    let deleted = update(check, evidence, vec![record(CLASS_NONE, 0)])?;
    added?;
    if deleted != Rcode::NOERROR {
        return Err(format!("expected NOERROR for the deletion, the response has {deleted}"));
    }
    check.expect(evidence, &owner, Rtype::A, &ProvedAnswer::NxDomain).map(|_| None)
}

/// The answer for the added name, which validates.
fn has_address(check: &Authoritative, evidence: &mut Evidence, owner: &Name) -> Result<(), Fault> {
    let response = check.expect(evidence, owner, Rtype::A, &ProvedAnswer::Answer)?;
    match answers(&response.message, owner, Rtype::A).next() {
        Some(_) => Ok(()),
        None => Err("the added record is not in the answer".to_owned()),
    }
}
