//! Computes the expected content of a response directly from RFC 1034 §4.3.2, RFC 4592 and RFC 6672
//! and the unsigned zone: it descends from the apex without indexes. It is slow, and short enough
//! to compare with the RFCs.

use super::text_line;
use nonesuch_proto::message::{Rcode, Record, Section};
use nonesuch_proto::{MAX_NAME, Name, NameRef, Rtype};
use nonesuch_zone::{Contents, Node, Rrset};
use std::collections::BTreeSet;

/// Maximum number of CNAME and DNAME links in one response, a limit of this server.
const MAX_LINKS: usize = 17;

/// A denial that NSEC or NSEC3 records must prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Neither the name nor a wildcard that matches it exists.
    Name { name: Name, encloser: Name },
    /// The name exists without the type.
    Type { name: Name, rtype: Rtype },
    /// The name does not exist, so that `*.encloser` matches.
    CloserMatch { name: Name, encloser: Name },
    /// The name does not exist, and the matching wildcard does not have the type.
    WildcardType { name: Name, encloser: Name, rtype: Rtype },
    /// The zone cut has no DS records.
    Ds { cut: Name },
}

/// The expected content of a response.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    pub(super) rcode: Rcode,
    pub(super) authoritative: bool,
    /// Records; for ANY, `any` contains the RRsets of which one is expected.
    pub(super) answer: BTreeSet<String>,
    any: Vec<BTreeSet<String>>,
    pub(super) authority: BTreeSet<String>,
    /// DS records of a referral, for clients that set DO.
    pub(super) delegation_signers: BTreeSet<String>,
    pub(super) additional: BTreeSet<String>,
    pub(super) needs: Vec<Need>,
    /// Types and owners without signatures: synthesised from a DNAME, at a cut, or below one.
    unsigned: Vec<(Section, Rtype, Name)>,
    /// Names that own records or are empty non-terminals only because of an insecure delegation.
    pub(super) insecure_only: Vec<Name>,
    /// Existing wildcards.
    pub(super) wildcards: Vec<Name>,
}

impl Expected {
    /// Returns whether these are the records of the answer section, without signatures.
    pub(super) fn accepts_answer(&self, lines: Vec<String>) -> bool {
        let lines: BTreeSet<String> = lines.into_iter().collect();
        if self.any.is_empty() {
            return lines == self.answer;
        }
        self.any.iter().any(|rrset| lines == self.answer.union(rrset).cloned().collect())
    }

    pub(super) fn is_signed(&self, record: &Record) -> bool {
        !self.unsigned.iter().any(|(section, rtype, owner)| {
            (*section, *rtype) == (record.section, record.rtype) && *owner == record.owner
        })
    }
}

/// Resolves queries within one zone.
pub(super) struct Oracle<'z> {
    contents: &'z Contents,
}

enum OracleStep {
    Done,
    Follow(Name),
}

impl<'z> Oracle<'z> {
    pub(super) const fn new(contents: &'z Contents) -> Self {
        Self { contents }
    }

    /// Returns the expected response to a query for `qname` and `qtype`.
    pub(super) fn resolve(&self, qname: &Name, qtype: Rtype) -> Expected {
        let mut expected = Expected {
            rcode: Rcode::NOERROR,
            authoritative: true,
            answer: BTreeSet::new(),
            any: Vec::new(),
            authority: BTreeSet::new(),
            delegation_signers: BTreeSet::new(),
            additional: BTreeSet::new(),
            needs: Vec::new(),
            unsigned: Vec::new(),
            insecure_only: self.insecure_only(),
            wildcards: self.wildcards(),
        };
        let mut name = qname.clone();
        let mut seen = Vec::new();
        loop {
            seen.push(name.clone());
            let before = expected.clone();
            match self.step(&name, qtype, &mut expected) {
                // A link beyond the last permitted one is omitted; other answers are not.
                OracleStep::Follow(_) if seen.len() > MAX_LINKS => return before,
                OracleStep::Follow(target) if self.is_in_zone(&target) && !seen.contains(&target) => {
                    name = target
                }
                _ => return expected,
            }
        }
    }

    fn is_in_zone(&self, name: &Name) -> bool {
        name.view().is_at_or_below(self.contents.apex().view())
    }

    fn node(&self, name: NameRef<'_>) -> Option<Node<'z>> {
        self.contents.nodes().find(|node| node.name() == name)
    }

    /// RFC 4592 §2.2.3: a name exists if it or a name below it owns records.
    fn exists(&self, name: NameRef<'_>) -> bool {
        self.contents.nodes().any(|node| node.name().is_at_or_below(name))
    }

    fn wildcards(&self) -> Vec<Name> {
        let all = self.contents.nodes().flat_map(|node| ancestors(node.name()));
        all.filter(|name| name.view().is_wildcard()).collect()
    }

    /// Returns the names that an opt-out chain may omit: insecure cuts, and names that exist only
    /// because of them.
    fn insecure_only(&self) -> Vec<Name> {
        let apex = self.contents.apex().view();
        let is_cut =
            |name: NameRef<'_>| name != apex && self.node(name).is_some_and(|node| node.has(Rtype::NS));
        let is_below_cut = |name: NameRef<'_>| {
            ancestors(name)
                .iter()
                .skip(1)
                .any(|above| above.view().is_at_or_below(apex) && is_cut(above.view()))
        };
        let is_left_out =
            |node: &Node<'_>| is_below_cut(node.name()) || (is_cut(node.name()) && !node.has(Rtype::DS));
        let all = self.contents.nodes().flat_map(|node| ancestors(node.name()));
        all.filter(|name| self.is_in_zone(name))
            .filter(|name| {
                let mut below = self.contents.nodes().filter(|node| node.name().is_at_or_below(name.view()));
                below.all(|node| is_left_out(&node))
            })
            .collect()
    }

    fn step(&self, name: &Name, qtype: Rtype, expected: &mut Expected) -> OracleStep {
        let view = name.view();
        let apex = self.contents.apex().view();
        for labels in apex.label_count()..=view.label_count() {
            let above = view.suffix(labels);
            let Some(node) = self.node(above) else { continue };
            let is_name = labels == view.label_count();
            if above != apex && node.has(Rtype::NS) && !(is_name && qtype == Rtype::DS) {
                self.refer(node, expected);
                return OracleStep::Done;
            }
            if !is_name && let Some(dname) = node.rrset(Rtype::DNAME) {
                return substitute(name, node, dname, qtype, expected);
            }
        }
        if self.exists(view) {
            return self.answer(name, self.node(view), None, qtype, expected);
        }
        let mut encloser = view;
        while !self.exists(encloser) {
            encloser = encloser.parent().unwrap();
        }
        let (name, encloser) = (name.clone(), encloser.to_name());
        let wildcard =
            Name::wildcard_below(encloser.view()).ok().filter(|wildcard| self.exists(wildcard.view()));
        if let Some(wildcard) = wildcard {
            return self.answer(&name, self.node(wildcard.view()), Some(&encloser), qtype, expected);
        }
        expected.rcode = Rcode::NXDOMAIN;
        expected.needs.push(Need::Name { name, encloser });
        self.negative(expected);
        OracleStep::Done
    }

    fn answer(
        &self,
        name: &Name,
        node: Option<Node<'_>>,
        encloser: Option<&Name>,
        qtype: Rtype,
        expected: &mut Expected,
    ) -> OracleStep {
        let closer =
            encloser.map(|encloser| Need::CloserMatch { name: name.clone(), encloser: encloser.clone() });
        if let (Rtype::ANY, Some(node)) = (qtype, node) {
            expected.any = node.rrsets().map(|rrset| of(name, rrset).collect()).collect();
            expected.needs.extend(closer);
            return OracleStep::Done;
        }
        if let Some(rrset) = node.and_then(|node| node.rrset(qtype)) {
            expected.answer.extend(of(name, rrset));
            expected.needs.extend(closer);
            return OracleStep::Done;
        }
        if let Some(rrset) = node.and_then(|node| node.rrset(Rtype::CNAME)) {
            expected.answer.extend(of(name, rrset));
            expected.needs.extend(closer);
            return OracleStep::Follow(NameRef::from_wire(rrset.rdatas().next().unwrap()).unwrap().to_name());
        }
        let is_cut = name != self.contents.apex() && node.is_some_and(|node| node.has(Rtype::NS));
        expected.needs.push(match encloser {
            _ if is_cut => Need::Ds { cut: name.clone() },
            None => Need::Type { name: name.clone(), rtype: qtype },
            Some(encloser) => {
                Need::WildcardType { name: name.clone(), encloser: encloser.clone(), rtype: qtype }
            }
        });
        self.negative(expected);
        OracleStep::Done
    }

    /// RFC 2308 §3: the SOA record with the lower of its TTL and its minimum.
    fn negative(&self, expected: &mut Expected) {
        let soa = self.contents.apex_rrset(Rtype::SOA).unwrap();
        let rdata = soa.rdatas().next().unwrap();
        let minimum = u32::from_be_bytes(rdata[rdata.len() - 4..].try_into().unwrap());
        expected.authority.insert(text_line(self.contents.apex(), soa.ttl().min(minimum), Rtype::SOA, rdata));
    }

    fn refer(&self, cut: Node<'_>, expected: &mut Expected) {
        let owner = cut.name().to_name();
        expected.authoritative = !expected.answer.is_empty();
        let servers = cut.rrset(Rtype::NS).unwrap();
        expected.authority.extend(of(&owner, servers));
        expected.unsigned.push((Section::Authority, Rtype::NS, owner.clone()));
        match cut.rrset(Rtype::DS) {
            Some(ds) => expected.delegation_signers.extend(of(&owner, ds)),
            None => expected.needs.push(Need::Ds { cut: owner }),
        }
        for server in servers.rdatas() {
            let server = NameRef::from_wire(server).unwrap();
            let Some(host) = self.node(server) else { continue };
            for rtype in [Rtype::A, Rtype::AAAA] {
                let Some(addresses) = host.rrset(rtype) else { continue };
                expected.additional.extend(of(&server.to_name(), addresses));
                if self.is_occluded(server) {
                    expected.unsigned.push((Section::Additional, rtype, server.to_name()));
                }
            }
        }
    }

    /// Returns whether the addresses of `name` are not authoritative: at or below a cut, or below a
    /// DNAME.
    fn is_occluded(&self, name: NameRef<'_>) -> bool {
        let apex = self.contents.apex().view();
        ancestors(name).iter().filter(|above| above.view().is_at_or_below(apex)).any(|above| {
            self.node(above.view()).is_some_and(|node| {
                let is_cut = above.view() != apex && node.has(Rtype::NS);
                is_cut || (above.view() != name && node.has(Rtype::DNAME))
            })
        })
    }
}

/// Adds the DNAME record and the synthesised CNAME record (RFC 6672 §3.2).
fn substitute(
    name: &Name,
    above: Node<'_>,
    dname: Rrset<'_>,
    qtype: Rtype,
    expected: &mut Expected,
) -> OracleStep {
    expected.answer.extend(of(&above.name().to_name(), dname));
    let target = dname.rdatas().next().unwrap();
    let mut substituted = name.wire()[..name.wire().len() - above.name().len()].to_vec();
    substituted.extend_from_slice(target);
    if substituted.len() > MAX_NAME {
        expected.rcode = Rcode(6);
        return OracleStep::Done;
    }
    expected.answer.insert(text_line(name, dname.ttl(), Rtype::CNAME, &substituted));
    expected.unsigned.push((Section::Answer, Rtype::CNAME, name.clone()));
    if qtype == Rtype::CNAME {
        return OracleStep::Done;
    }
    OracleStep::Follow(NameRef::from_wire(&substituted).unwrap().to_name())
}

/// Returns `name` and its ancestors up to the root.
fn ancestors(name: NameRef<'_>) -> Vec<Name> {
    (0..=name.label_count()).rev().map(|labels| name.suffix(labels).to_name()).collect()
}

/// Returns the records of the RRset with the owner `name`.
fn of<'a>(name: &'a Name, rrset: Rrset<'a>) -> impl Iterator<Item = String> + 'a {
    rrset.rdatas().map(move |rdata| text_line(name, rrset.ttl(), rrset.rtype(), rdata))
}
