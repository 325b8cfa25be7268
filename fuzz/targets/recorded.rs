//! Recorded responses as lines of text, and their validation: no line or response causes a panic, the work
//! is bounded, the order of the responses does not decide which ones are Secure, and a Secure or Insecure
//! result is true.
//!
//! The first octet selects the form of the lines. With its highest bit, the rest is the lines. Otherwise
//! each four octets of the rest select a correct response of a small tree of zones, a change of it, and its
//! place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_authoritative::{Request, answer};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::validate::{
    Budget, ProvedAnswer, Question, SecurityStatus, ValidationLimits, Work, validate_octets,
};
use nonesuch_net::Transport;
use nonesuch_proto::message::{Message, Record, Section, push_query};
use nonesuch_proto::{Class, MAX_NAME, Name, Rtype, edns};
use nonesuch_resolver::recorded::{RecordedResponses, RecordedResult};
use nonesuch_resolver::trust_anchors::{AnchorRecord, TrustAnchors};
use nonesuch_server::query::Query;
use nonesuch_server::trailer::Trailer;
use nonesuch_zone::{Contents, Image};
use std::sync::{Arc, LazyLock};
use tree::{NOW, ds, ds_line, name, signed};

#[path = "../tree.rs"]
mod tree;

/// The part of the command `validate` that reads a line.
#[allow(dead_code)] // the command uses all of it
#[path = "../../crates/cli/src/commands/validate/line.rs"]
mod line;

/// The limit of the command `validate`.
mod input {
    pub(super) const MAX_LINE_OCTETS: usize = 1 << 20;
}

/// Maximum number of responses.
const RESPONSES_MAX: usize = 24;
const TYPES: [Rtype; 6] = [Rtype::A, Rtype::TXT, Rtype::DS, Rtype::DNSKEY, Rtype::CNAME, Rtype::SOA];
/// Zone cuts without a DS RRset.
const UNSIGNED: [&str; 3] = ["open.", "sub.one.", "sub.two."];

/// The zones `.`, `one.` and `two.`; `open.` and the zones `sub` are unsigned delegations.
static ZONES: LazyLock<[Contents; 3]> = LazyLock::new(|| {
    let root = format!(
        ". 300 SOA a.root. h. 1 3600 600 86400 60\n. 300 NS a.root.\na.root. 300 A 192.0.2.1\n\
         one. 300 NS a.root.\ntwo. 300 NS a.root.\nopen. 300 NS a.root.\n{}{}",
        ds_line("one."),
        ds_line("two.")
    );
    let zone = |apex: &str, other: &str| {
        format!(
            "{apex} 300 SOA ns.{apex} h. 1 3600 600 86400 60\n{apex} 300 NS a.root.\n\
             www.{apex} 300 A 198.18.0.80\nwww.{apex} 300 A 198.18.0.81\na.b.{apex} 60 A 198.18.0.82\n\
             *.wild.{apex} 300 A 198.18.0.83\nalias.{apex} 300 CNAME www.{other}\nsub.{apex} 300 NS a.root.\n"
        )
    };
    [
        signed(".", &root, Mechanism::Nsec),
        signed("one.", &zone("one.", "two."), Mechanism::Nsec3),
        signed("two.", &zone("two.", "one."), Mechanism::Nsec),
    ]
});

/// Questions, each with a correct response. Those for DS and DNSKEY are first.
static RESPONSES: LazyLock<Vec<(Name, Rtype, Vec<u8>)>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for contents in &*ZONES {
        let image = Image::compile(contents).unwrap_or_else(|error| panic!("{error}"));
        let own = contents.nodes().map(|node| node.name().to_name()).filter(|name| !is_hash(name));
        let with_child = own.flat_map(|name| [Name::prepend(b"m", name.view()).ok(), Some(name)]);
        for name in with_child.flatten() {
            all.extend(TYPES.map(|rtype| (name.clone(), rtype, response(&image, &name, rtype))));
        }
    }
    all.sort_by_key(|(_, rtype, _)| !matches!(*rtype, Rtype::DS | Rtype::DNSKEY));
    all
});

fn response(image: &Image, name: &Name, rtype: Rtype) -> Vec<u8> {
    let (mut message, mut octets, mut room) = (Vec::new(), Vec::new(), [0; MAX_NAME]);
    push_query(name, rtype, 0, 0, &mut message);
    edns::push_opt(4096, 0, edns::DO, &mut message);
    message[11] = 1;
    let query = Query::parse(&message).unwrap_or_else(|fault| panic!("{fault:?}"));
    answer(image, &Request::new(&query, &mut room, Transport::Tcp, &Trailer::PLAIN), &mut octets);
    octets
}

/// A response that was read from a line.
struct Recorded {
    name: Name,
    rtype: Rtype,
    message: Arc<Message>,
}

fuzz_target!(|data: &[u8]| {
    let Some((&head, rest)) = data.split_first() else { return };
    let lines: Vec<Vec<u8>> = match head & 0x80 {
        0 => rest.chunks_exact(4).take(RESPONSES_MAX).map(|octets| changed_line(head, octets)).collect(),
        _ => rest.split(|octet| *octet == b'\n').take(RESPONSES_MAX).map(<[u8]>::to_vec).collect(),
    };
    let recorded: Vec<Recorded> = lines.iter().filter_map(|line| read(line)).collect();
    let forwards = validate_all(&recorded, recorded.iter());
    assert_eq!(forwards, validate_all(&recorded, recorded.iter().rev()), "the order decides");
});

/// Returns the line of a correct response with one change.
fn changed_line(head: u8, octets: &[u8]) -> Vec<u8> {
    let (kind, place, value) = (octets[1], usize::from(octets[2]), octets[3]);
    let at = |octet: u8| &RESPONSES[usize::from(octet) * RESPONSES.len() / 256];
    // The questions of the chain of trust follow each other.
    let (name, rtype, response) =
        if kind & 0x80 == 0 { at(octets[0]) } else { &RESPONSES[usize::from(octets[0]) % RESPONSES.len()] };
    let mut response = response.clone();
    change(&mut response, (kind & 0x7f, place, value), &at(octets[2]).2);
    let digits: String = response.iter().map(|octet| format!("{octet:02x}")).collect();
    let line = match head & 1 {
        0 => digits,
        _ => format!(
            "{{\"id\":7,\"question\":{{\"name\":\"{name}\",\"type\":{}}},\"response\":\"{digits}\"}}",
            rtype.0
        ),
    };
    let is_read = line::parse(line.as_bytes()).is_ok_and(|read| read.octets == response);
    assert!(is_read || Message::parse(&response).is_err() || head & 1 == 0);
    line.into_bytes()
}

/// Makes a change of a response.
fn change(octets: &mut Vec<u8>, (kind, place, value): (u8, usize, u8), other: &[u8]) {
    if kind == 1 {
        let at = (place << 2 | usize::from(value & 3)) % octets.len();
        octets[at] ^= value | 1;
        return;
    }
    let parse = |octets: &[u8]| Message::parse(octets).unwrap_or_else(|error| panic!("{error}"));
    let mut message = parse(octets);
    let count = message.records.len();
    match kind {
        2 if count > 0 => drop(message.records.remove(place % count)),
        3 => message.records.extend(parse(other).records),
        4 => message.records.retain(|record| record.rtype != Rtype::RRSIG),
        5 => message.header.flags = message.header.flags & !0x0f | u16::from(value % 4),
        6 if count > 0 => {
            let rdata = &mut message.records[place % count].rdata;
            let at = usize::from(value) % rdata.len().max(1);
            rdata.iter_mut().skip(at).take(1).for_each(|octet| *octet = octet.wrapping_add(1));
        }
        7 if count > 0 => {
            let section = [Section::Answer, Section::Authority, Section::Additional][usize::from(value) % 3];
            message.records[place % count].section = section;
        }
        _ => return,
    }
    *octets = message.to_octets();
}

/// Reads a line. If it has trusted keys, validates its response with them.
fn read(line: &[u8]) -> Option<Recorded> {
    let response = match line::parse(line) {
        Ok(response) => response,
        Err(invalid) => {
            assert!(!invalid.fault.to_string().is_empty());
            return None;
        }
    };
    if let Some(keys) = &response.keys {
        let mut budget = Budget::default();
        let now = keys.now.unwrap_or(NOW);
        let validation =
            validate_octets(response.question(), &response.octets, &keys.trusted_keys(), now, &mut budget);
        assert_bounded(validation.work);
    }
    let message = Arc::new(Message::parse(&response.octets).ok()?);
    Some(Recorded { name: response.name, rtype: response.rtype, message })
}

/// Validates all responses, which are added in this order. Returns which ones are Secure.
fn validate_all<'r>(all: &[Recorded], order: impl Iterator<Item = &'r Recorded>) -> Vec<bool> {
    let mut anchors = TrustAnchors::default();
    anchors.insert(name(".").view(), AnchorRecord::Ds(ds(".")));
    let mut responses = RecordedResponses::new(anchors, NOW);
    for Recorded { name, rtype, message } in order {
        responses.add(Question { name: name.view(), rtype: *rtype }, message);
    }
    let mut are_secure = Vec::new();
    for Recorded { name, rtype, message } in all {
        let question = Question { name: name.view(), rtype: *rtype };
        let validation = responses.validate(question, message);
        assert_bounded(validation.work);
        // The chain of trust is known now.
        assert_eq!(responses.validate(question, message).status(), validation.status());
        are_secure.push(validation.status() == "secure");
        match &validation.result {
            RecordedResult::Validated(found) if found.status == SecurityStatus::Secure => {
                let target = found.aliases.last().map_or(name, |alias| &alias.target);
                check(target, *rtype, message, found.proved.as_ref());
            }
            RecordedResult::Insecure(cut, _) => {
                assert!(UNSIGNED.iter().any(|unsigned| *cut == tree::name(unsigned)), "{cut} is signed");
            }
            _ => {}
        }
    }
    are_secure
}

fn assert_bounded(work: Work) {
    let limits = ValidationLimits::default();
    // The last signature may be tried with several keys.
    let failures_max = limits.signature_failures + limits.keys_per_signature as u32;
    assert!(work.signatures <= limits.signatures && work.signature_failures < failures_max);
    assert!(work.hash_blocks <= limits.hash_blocks && work.proofs <= limits.proofs);
}

/// Checks that a Secure result is true.
fn check(target: &Name, rtype: Rtype, message: &Message, proved: Option<&ProvedAnswer>) {
    let rdatas = rdatas(target, rtype);
    match proved {
        Some(ProvedAnswer::Answer | ProvedAnswer::WildcardAnswer) => {
            let is_asked = |record: &&Record| {
                (record.rtype, record.class) == (rtype, Class::IN) && record.owner == *target
            };
            let mut found: Vec<&[u8]> = message
                .section(Section::Answer)
                .filter(is_asked)
                .map(|record| record.rdata.as_slice())
                .collect();
            found.sort_unstable();
            found.dedup();
            let is_true = |rdata: &&[u8]| rdatas.iter().any(|known| known.eq_ignore_ascii_case(rdata));
            assert!(found.iter().all(is_true) && found.len() >= rdatas.len(), "{target} {rtype}");
        }
        Some(ProvedAnswer::NxDomain) => {
            let exists = |contents: &Contents| {
                contents
                    .nodes()
                    .any(|node| node.name().is_at_or_below(target.view()) && !is_hash(&node.name().to_name()))
            };
            assert!(rdatas.is_empty() && !ZONES.iter().any(exists), "{target} exists");
        }
        Some(ProvedAnswer::NoData | ProvedAnswer::WildcardNoData) => {
            assert!(rdatas.is_empty(), "{target} {rtype} exists");
        }
        _ => {}
    }
}

/// Whether the name is that of an NSEC3 record, which proves nothing about itself (RFC 5155 §7.2.8).
fn is_hash(name: &Name) -> bool {
    name.view().labels().next().is_some_and(|label| label.len() == 32)
}

/// Returns the true records, of the closest zone that has the name. Wildcards are those of the text above.
fn rdatas(owner: &Name, rtype: Rtype) -> Vec<Vec<u8>> {
    let is_of = |contents: &&Contents| {
        let apex = contents.apex();
        owner.view().is_at_or_below(apex.view()) && !(rtype == Rtype::DS && owner == apex)
    };
    let zones = ZONES.iter().filter(is_of);
    let Some(zone) = zones.max_by_key(|zone| zone.apex().view().label_count()) else { return Vec::new() };
    let of = |name: &Name| {
        let node = zone.find(name.view()).ok();
        let rrset = node.and_then(|node| node.rrset(rtype));
        rrset.into_iter().flat_map(|rrset| rrset.rdatas().map(<[u8]>::to_vec)).collect::<Vec<_>>()
    };
    let wildcard = owner.view().parent().and_then(|parent| Name::wildcard_below(parent).ok());
    let own = of(owner);
    if own.is_empty() { wildcard.map_or(own, |wildcard| of(&wildcard)) } else { own }
}
