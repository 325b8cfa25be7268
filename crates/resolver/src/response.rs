//! Decides what a response of a server means, and which of its records are used (RFC 1034 §5.3.3,
//! RFC 2181 §5.4.1, RFC 2308).
//!
//! A server is asked as a server of one zone. Records with owners outside this zone are dropped,
//! whatever section they are in: otherwise a server could answer for the names of others. Inside
//! the zone, only records that answer the question, refer to a child zone or prove a denial are
//! used. In particular, NS RRsets of the zone itself in the authority section are dropped: they are
//! not needed, and an attacker who forges one response could redirect the zone with them
//! (CVE-2025-11411).

mod rrsets;

pub(crate) use rrsets::{ReceivedRrset, collect_rrsets};

use crate::record::Rrset;
use nonesuch_proto::message::{Message, Rcode, Section, flags};
use nonesuch_proto::{Class, MAX_NAME, Name, NameRef, Rtype};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum number of aliases in one response. A longer chain ends with an alias, whose target is
/// queried.
const ALIASES_MAX: usize = 16;

/// The question, and the zone whose servers are asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) name: NameRef<'a>,
    pub(crate) rtype: Rtype,
    /// The apex of the zone, or of the forward zone.
    pub(crate) zone: NameRef<'a>,
    /// Whether the server is a resolver, which answers without AA.
    pub(crate) is_forwarder: bool,
}

/// The content of a usable response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// The RRset of the question, after the aliases. For type ANY, all RRsets of the name.
    Answer(Vec<Rrset>),
    /// The answer ends with an alias, whose target must be queried.
    Alias,
    /// The name exists and does not have the type.
    NoData,
    /// The name does not exist.
    NxDomain,
    /// The target of a DNAME record would be too long (RFC 6672 §2.2).
    DnameTooLong,
    /// The zone has delegated the name: the NS RRset, whose owner is the zone cut.
    Referral(Rrset),
}

/// A usable response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// CNAME and DNAME RRsets from the question name, in order. A CNAME RRset that follows from a
    /// DNAME RRset is synthesised, not copied from the response.
    pub(crate) aliases: Vec<Rrset>,
    /// The name after all aliases: the question name without aliases.
    pub(crate) target: Name,
    /// The content for `target`.
    pub(crate) content: Content,
    /// The SOA RRset of the zone and the records of a denial or of a wildcard answer; for a
    /// referral, the DS RRset or the proof of its absence.
    pub(crate) proofs: Vec<Rrset>,
    /// A and AAAA RRsets of the nameservers in a referral, or in an answer of type NS.
    pub(crate) glue: Vec<Rrset>,
    /// Whether the server is authoritative for the question name (AA).
    pub(crate) is_authoritative: bool,
    /// Whether the response is used only if no server of the zone has a better one: the server
    /// answers as a resolver, or with nothing.
    pub(crate) is_doubtful: bool,
}

/// Why a response is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// The server is not authoritative for the zone: it refers upwards, to the same zone or to a zone
    /// elsewhere.
    Lame,
    /// The response code.
    Rcode(Rcode),
}

/// Reads a complete response to the question, which [`is_response_to`] accepted.
///
/// # Errors
/// Why the response is not used.
pub(crate) fn read_response(asked: Asked<'_>, message: &Message) -> Result<Reading, Unusable> {
    let is_authoritative = message.header.flags & flags::AA != 0;
    let rcode = message.rcode();
    if !matches!(rcode, Rcode::NOERROR | Rcode::NXDOMAIN | Rcode::YXDOMAIN) {
        return Err(Unusable::Rcode(rcode));
    }
    let rrsets = collect_rrsets(message, asked.zone);
    let (aliases, target, end) = follow_aliases(asked, &rrsets);
    // A resolver that answers for a zone is not one of its servers: its data may be old.
    let answers_as_resolver = !is_authoritative && message.header.flags & flags::RA != 0;
    let is_doubtful = answers_as_resolver && !asked.is_forwarder;
    let (content, proofs, glue) = (Content::Alias, Vec::new(), Vec::new());
    let mut reading = Reading { aliases, target, content, proofs, glue, is_authoritative, is_doubtful };
    reading.content = match end {
        AliasEnd::Answer(found) => Content::Answer(found),
        AliasEnd::TooLong => Content::DnameTooLong,
        AliasEnd::OutsideZone => Content::Alias,
        AliasEnd::NoRecord if rcode == Rcode::NXDOMAIN => Content::NxDomain,
        AliasEnd::NoRecord => match without_answer(asked, message, &reading, &rrsets)? {
            Some(content) => content,
            None => {
                reading.is_doubtful = true;
                Content::NoData
            }
        },
    };
    if matches!(reading.content, Content::Referral(_)) {
        reading.is_doubtful = false;
    }
    reading.glue = match &reading.content {
        Content::Referral(ns) => glue_of(ns, &rrsets),
        Content::Answer(found) => found
            .iter()
            .filter(|rrset| rrset.rtype == Rtype::NS)
            .flat_map(|ns| glue_of(ns, &rrsets))
            .collect(),
        _ => Vec::new(),
    };
    reading.proofs = proofs_of(asked, &reading, rrsets);
    Ok(reading)
}

/// How a chain of aliases ends.
enum AliasEnd {
    /// With the records of the question.
    Answer(Vec<Rrset>),
    /// With a name that is not in the asked zone.
    OutsideZone,
    /// With a name without records in the answer section.
    NoRecord,
    /// With a DNAME record whose target would be too long.
    TooLong,
}

/// Follows aliases in the answer section. Returns their RRsets, the last name, and how the chain
/// ends.
fn follow_aliases(asked: Asked<'_>, rrsets: &[ReceivedRrset]) -> (Vec<Rrset>, Name, AliasEnd) {
    let mut aliases: Vec<Rrset> = Vec::new();
    let mut name = asked.name.to_name();
    let answers = || rrsets.iter().filter(|received| received.section == Section::Answer);
    loop {
        let dname = answers()
            .map(|received| &received.rrset)
            .find(|rrset| rrset.rtype == Rtype::DNAME && name.view().is_below(rrset.owner.view()));
        if asked.rtype == Rtype::CNAME
            && let Some(dname) = dname
            && let Some(target) = substitute(name.view(), dname)
        {
            // The question is answered, but a CNAME RRset of its own would have a signature.
            let cname = synthesise_cname(&name, &target, dname);
            return (aliases, name, AliasEnd::Answer(vec![dname.clone(), cname]));
        }
        let found: Vec<Rrset> = answers()
            .filter(|received| received.rrset.owner == name && has_type(&received.rrset, asked.rtype))
            .map(|received| received.rrset.clone())
            .collect();
        if !found.is_empty() {
            return (aliases, name, AliasEnd::Answer(found));
        }
        if aliases.len() >= ALIASES_MAX {
            return (aliases, name, AliasEnd::OutsideZone);
        }
        let cname = answers()
            .map(|received| &received.rrset)
            .find(|rrset| rrset.rtype == Rtype::CNAME && rrset.owner == name);
        let target = if let Some(dname) = dname {
            aliases.push(dname.clone());
            let Some(target) = substitute(name.view(), dname) else {
                return (aliases, name, AliasEnd::TooLong);
            };
            aliases.push(synthesise_cname(&name, &target, dname));
            target
        } else if let Some(target) = cname.and_then(alias_target) {
            aliases.extend(cname.cloned());
            target
        } else {
            return (aliases, name, AliasEnd::NoRecord);
        };
        let is_loop = aliases.iter().any(|rrset| rrset.rtype == Rtype::CNAME && rrset.owner == target);
        let is_outside = !target.view().is_at_or_below(asked.zone);
        name = target;
        if is_loop || is_outside {
            return (aliases, name, AliasEnd::OutsideZone);
        }
    }
}

/// Whether an RRset answers a question for the type. RRSIG records are stored with the RRsets that
/// they cover, and have no RRset of their own unless they are queried.
fn has_type(rrset: &Rrset, asked: Rtype) -> bool {
    rrset.rtype == asked || asked == Rtype::ANY
}

/// Returns the target of a CNAME RRset; `None` if it has several records.
pub(crate) fn alias_target(cname: &Rrset) -> Option<Name> {
    let mut records = cname.records.iter();
    let target = NameRef::from_wire(records.next()?).ok()?.to_name();
    records.next().is_none().then_some(target)
}

/// Replaces the owner of the DNAME RRset at the end of `name` by its target (RFC 6672 §2.2). Returns
/// `None` if the result is too long, or the RRset does not have one record.
pub(crate) fn substitute(name: NameRef<'_>, dname: &Rrset) -> Option<Name> {
    let target = alias_target(dname)?;
    let prefix = &name.wire()[..name.len() - dname.owner.view().len()];
    let wire = [prefix, target.wire()].concat();
    (wire.len() <= MAX_NAME).then(|| NameRef::from_wire_unchecked(&wire).to_name())
}

/// Returns the CNAME RRset that a DNAME RRset implies (RFC 6672 §3.1). It has no signature.
pub(crate) fn synthesise_cname(name: &Name, target: &Name, dname: &Rrset) -> Rrset {
    Rrset {
        owner: name.clone(),
        rtype: Rtype::CNAME,
        class: dname.class,
        ttl: dname.ttl,
        records: [target.wire()].into_iter().collect(),
        signatures: <_>::default(),
        security: dname.security,
        insecure: dname.insecure,
    }
}

/// Reads a response with NOERROR, whose answer section has no record for the last name. Returns `None`
/// if the response has nothing else either: some broken servers respond so for names that they do
/// not serve.
fn without_answer(
    asked: Asked<'_>,
    message: &Message,
    reading: &Reading,
    rrsets: &[ReceivedRrset],
) -> Result<Option<Content>, Unusable> {
    let authority = || {
        let in_authority = |received: &&ReceivedRrset| received.section == Section::Authority;
        rrsets.iter().filter(in_authority).map(|received| &received.rrset)
    };
    let target = reading.target.view();
    // The DS RRset of a zone is in its parent: a server of the zone that followed an alias to the apex
    // says nothing about it.
    let is_of_child = |soa: &Rrset| {
        asked.rtype == Rtype::DS
            && !reading.aliases.is_empty()
            && soa.owner == reading.target
            && !target.is_root()
    };
    let denies = |rrset: &Rrset| {
        rrset.rtype == Rtype::SOA && target.is_at_or_below(rrset.owner.view()) && !is_of_child(rrset)
    };
    if authority().any(denies) {
        return Ok(Some(Content::NoData));
    }
    let ns = authority()
        .filter(|rrset| rrset.rtype == Rtype::NS && target.is_at_or_below(rrset.owner.view()))
        .max_by_key(|rrset| rrset.owner.view().label_count());
    match ns {
        // A resolver that does not recurse.
        Some(_) if asked.is_forwarder => Err(Unusable::Lame),
        Some(ns) if ns.owner.view().is_below(asked.zone) => {
            // A DS record is in the parent zone: a referral to the queried name itself would be from
            // a server of the parent that does not know DS (RFC 4035 §3.1.4.1).
            if asked.rtype == Rtype::DS && ns.owner == reading.target {
                return Ok(Some(Content::NoData));
            }
            Ok(Some(Content::Referral(ns.clone())))
        }
        Some(_) if reading.is_authoritative || !reading.aliases.is_empty() => Ok(Some(Content::NoData)),
        Some(_) => Err(Unusable::Lame),
        None if !reading.aliases.is_empty() => Ok(Some(Content::Alias)),
        None if refers_elsewhere(asked.zone, message, reading.is_authoritative) => Err(Unusable::Lame),
        // Some servers answer without SOA if the name does not have the type.
        None if reading.is_authoritative || asked.is_forwarder => Ok(Some(Content::NoData)),
        None => Ok(None),
    }
}

/// Whether the authority section refers to a zone at or above the asked one, or the server is not
/// authoritative and refers to any other zone.
fn refers_elsewhere(zone: NameRef<'_>, message: &Message, is_authoritative: bool) -> bool {
    let mut servers = message.section(Section::Authority).filter(|record| record.rtype == Rtype::NS);
    servers.any(|ns| !is_authoritative || zone.is_at_or_below(ns.owner.view()))
}

/// Returns the address records of the nameservers in the NS RRset.
fn glue_of(ns: &Rrset, rrsets: &[ReceivedRrset]) -> Vec<Rrset> {
    // Both may be many.
    let servers: HashSet<NameRef<'_>> =
        ns.records.iter().map(NameRef::from_wire).filter_map(Result::ok).collect();
    let is_server = |owner: &Name| servers.contains(&owner.view());
    let additional = rrsets.iter().filter(|received| received.section == Section::Additional);
    additional
        .map(|received| &received.rrset)
        .filter(|rrset| matches!(rrset.rtype, Rtype::A | Rtype::AAAA) && is_server(&rrset.owner))
        .cloned()
        .collect()
}

/// Returns the records of the authority section that belong to the content.
fn proofs_of(asked: Asked<'_>, reading: &Reading, rrsets: Vec<ReceivedRrset>) -> Vec<Rrset> {
    let is_denial = |rrset: &Rrset| match rrset.rtype {
        Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5 | Rtype::NSEC5PROOF => true,
        Rtype::SOA => {
            matches!(reading.content, Content::NoData | Content::NxDomain)
                && reading.target.view().is_at_or_below(rrset.owner.view())
        }
        Rtype::DS => {
            matches!(&reading.content, Content::Referral(ns) if ns.owner == rrset.owner)
                && rrset.owner.view().is_below(asked.zone)
        }
        _ => false,
    };
    let authority = rrsets.into_iter().filter(|received| received.section == Section::Authority);
    authority.map(|received| received.rrset).filter(is_denial).collect()
}

/// Whether the message is a response to the question: QR, opcode QUERY, one question with this
/// name, type and class IN.
pub(crate) fn is_response_to(name: NameRef<'_>, rtype: Rtype, message: &Message) -> bool {
    let header = message.header;
    let [question] = message.questions.as_slice() else { return false };
    header.flags & flags::QR != 0
        && header.opcode() == 0
        && question.rtype == rtype
        && question.class == Class::IN
        && question.name.view() == name
}

/// Returns the addresses in A and AAAA RRsets.
pub(crate) fn addresses(rrset: &Rrset) -> impl Iterator<Item = IpAddr> {
    rrset.records.iter().filter_map(move |record| match rrset.rtype {
        Rtype::A => <[u8; 4]>::try_from(record).ok().map(|octets| Ipv4Addr::from(octets).into()),
        Rtype::AAAA => <[u8; 16]>::try_from(record).ok().map(|octets| Ipv6Addr::from(octets).into()),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
