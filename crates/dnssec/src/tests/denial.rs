//! The proofs in responses with online denial or NSEC5: every case of denial in zones with every
//! kind of name. The expected result follows from the definitions of the RFCs and from the
//! conclusions of validators.

mod nsec;
mod nsec5;
mod white_lies;

use super::*;
use crate::denial::proof_piece::{GeneratedRecord, ProofPiece};
use crate::denial::prove::{DenialTarget, prove_online};
use crate::tests::random::config;
use nonesuch_proto::{NameRef, bitmap};
use nonesuch_zone::Image;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// TTL of denial records: the minimum of the SOA record of [`zone`].
const DENIAL_TTL: u32 = 900;

/// A zone and its expected names.
struct Zone {
    image: Image,
    apex: Name,
    /// The existing names with the types that a denial record has for them. It omits glue and
    /// occluded names. Empty non-terminals have no types.
    names: BTreeMap<Name, BTreeSet<Rtype>>,
}

/// The denial that a response must contain.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Case {
    /// Neither the name nor a wildcard exists.
    NameError { encloser: Name },
    /// Like `NameError`, but the wildcard exists as a zone cut.
    CutWildcard { encloser: Name },
    /// The name does not have the type.
    NoData,
    /// A wildcard answers.
    WildcardAnswer { encloser: Name },
    /// A wildcard matches and does not have the type.
    WildcardNoData { encloser: Name },
    /// The delegation has no DS record: referral to an unsigned zone, or NODATA for DS.
    NoDs { cut: Name },
    /// No denial: existing records answer, the delegation is secure, or a DNAME redirects.
    Nothing,
}

impl Zone {
    fn new(contents: &Contents) -> Self {
        let apex = contents.apex().view().to_canonical();
        let names = names(contents, apex.view());
        Self { image: Image::compile(contents).unwrap(), apex, names }
    }

    fn of(records: &str) -> Self {
        Self::new(&zone(records))
    }

    fn types(&self, owner: NameRef<'_>) -> Option<&BTreeSet<Rtype>> {
        self.names.get(&owner.to_name())
    }

    fn is_cut(&self, owner: NameRef<'_>) -> bool {
        owner != self.apex.view() && self.types(owner).is_some_and(|types| types.contains(&Rtype::NS))
    }

    /// The case of a question, according to RFC 1034 §4.3.2 and RFC 4592.
    fn case(&self, qname: NameRef<'_>, qtype: Rtype) -> Case {
        let (labels, apex_labels) = (qname.label_count(), self.apex.view().label_count());
        for depth in apex_labels..=labels {
            let ancestor = qname.suffix(depth);
            let has_ds = self.types(ancestor).is_some_and(|types| types.contains(&Rtype::DS));
            if self.is_cut(ancestor) {
                return if has_ds { Case::Nothing } else { Case::NoDs { cut: ancestor.to_name() } };
            }
            let is_dname = self.types(ancestor).is_some_and(|types| types.contains(&Rtype::DNAME));
            if depth < labels && is_dname {
                return Case::Nothing;
            }
        }
        let has_data = |types: &BTreeSet<Rtype>| types.contains(&qtype) || types.contains(&Rtype::CNAME);
        if let Some(types) = self.types(qname) {
            return if has_data(types) { Case::Nothing } else { Case::NoData };
        }
        let depth = (apex_labels..labels).rev().find(|depth| self.types(qname.suffix(*depth)).is_some());
        let encloser = qname.suffix(depth.unwrap()).to_name();
        match self.wildcard(encloser.view()) {
            None => Case::NameError { encloser },
            Some(wildcard) if self.is_cut(wildcard.view()) => Case::CutWildcard { encloser },
            Some(wildcard) if has_data(&self.names[&wildcard]) => Case::WildcardAnswer { encloser },
            Some(_) => Case::WildcardNoData { encloser },
        }
    }

    fn wildcard(&self, encloser: NameRef<'_>) -> Option<Name> {
        Name::wildcard_below(encloser).ok().filter(|wildcard| self.names.contains_key(wildcard))
    }

    /// The denial that the server would request.
    fn denied<'i, 'q>(&'i self, case: &Case, qname: NameRef<'q>) -> Option<DenialTarget<'i, 'q>> {
        let node = |owner: &Name| self.image.find_exact(owner.view()).unwrap();
        Some(match case {
            Case::Nothing => return None,
            Case::NameError { encloser } | Case::CutWildcard { encloser } => {
                DenialTarget::NxDomain { name: qname, encloser: node(encloser) }
            }
            Case::NoData => DenialTarget::NoData { node: node(&qname.to_name()) },
            Case::WildcardAnswer { encloser } => {
                DenialTarget::WildcardExpansion { name: qname, encloser: node(encloser) }
            }
            Case::WildcardNoData { encloser } => DenialTarget::WildcardNoData {
                name: qname,
                encloser: node(encloser),
                wildcard: node(&Name::wildcard_below(encloser.view()).unwrap()),
            },
            Case::NoDs { cut } => DenialTarget::NoDs { cut: node(cut) },
        })
    }

    /// The records generated for a question.
    fn made(&self, mechanism: Mechanism, case: &Case, qname: NameRef<'_>) -> Vec<GeneratedRecord> {
        let Some(denied) = self.denied(case, qname) else { return Vec::new() };
        let proof = prove_online(&self.image, mechanism, denied);
        assert_eq!(proof.templates().count(), 0);
        let made = |piece: &ProofPiece<'_>| match piece {
            ProofPiece::Generated(record) => record.clone(),
            other => panic!("{other:?}"),
        };
        proof.clone().into_pieces().iter().map(made).collect()
    }

    /// Existing names, their neighbours, and names below them, including names of the maximum
    /// length.
    fn questions(&self) -> BTreeSet<Name> {
        let mut all = BTreeSet::new();
        for owner in self.names.keys() {
            let owner = owner.view();
            all.insert(owner.to_name());
            all.insert(owner.successor(self.apex.view()));
            all.insert(owner.successor_of_subtree(self.apex.view()));
            all.extend(owner.sibling_predecessor());
            for label in [&b"x"[..], b"*", b"\0", b"*\0", &[255; 63], b"A\xff"] {
                let Ok(child) = Name::prepend(label, owner) else { continue };
                all.extend(Name::prepend(b"deep", child.view()));
                all.extend(Name::prepend(b"*", child.view()));
                all.insert(longest_below(child.view()));
                all.insert(child);
            }
            let wildcard = Name::wildcard_below(owner).ok();
            all.extend(wildcard.and_then(|wildcard| wildcard.view().sibling_predecessor()));
        }
        all.retain(|question| question.view().is_at_or_below(self.apex.view()));
        // The server looks names up in lower case.
        all.iter().map(|question| question.view().to_canonical()).collect()
    }
}

/// The greatest name below `parent`. It has 255 octets or one less.
fn longest_below(parent: NameRef<'_>) -> Name {
    let mut name = parent.to_canonical();
    loop {
        let room = 254_usize.saturating_sub(name.wire().len()).min(63);
        match Name::prepend(&vec![255; room], name.view()) {
            Ok(longer) => name = longer,
            Err(_) => return name,
        }
    }
}

/// The names of a zone according to the definitions (RFC 4592 §2.2, RFC 6672 §2.4).
fn names(contents: &Contents, apex: NameRef<'_>) -> BTreeMap<Name, BTreeSet<Rtype>> {
    let has = |owner: NameRef<'_>, rtype| contents.find(owner).is_ok_and(|node| node.has(rtype));
    let is_cut = |owner: NameRef<'_>| owner != apex && has(owner, Rtype::NS);
    let mut all: BTreeMap<Name, BTreeSet<Rtype>> = BTreeMap::new();
    for node in contents.nodes() {
        let depths = apex.label_count()..node.name().label_count();
        let above: Vec<NameRef<'_>> = depths.map(|depth| node.name().suffix(depth)).collect();
        if above.iter().any(|owner| has(*owner, Rtype::DNAME) || is_cut(*owner)) {
            continue;
        }
        for owner in above {
            all.entry(owner.to_canonical()).or_default();
        }
        let made = [Rtype::RRSIG, Rtype::NSEC, Rtype::NSEC3];
        let shown = |rtype: &Rtype| {
            !made.contains(rtype) && (!is_cut(node.name()) || [Rtype::NS, Rtype::DS].contains(rtype))
        };
        let types = node.rrsets().map(|rrset| rrset.rtype()).filter(shown);
        all.entry(node.name().to_canonical()).or_default().extend(types);
    }
    all
}

/// Every kind of name at every depth.
const EVERY_CASE: &str = "a A 192.0.2.1\na.a A 192.0.2.1\nb.a.a TXT \"t\"\nc CNAME a\nd NS ns.d\nns.d A 192.0.2.9\n\
    g NS g\ng A 192.0.2.8\nn DNAME target.test.\no.n TXT \"occluded\"\ns NS ns.elsewhere.test.\n\
    s DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\n\
    *.w A 192.0.2.1\nx.w A 192.0.2.1\n*.v NS ns.elsewhere.test.\na.*.e TXT \"t\"\nx.y.ent A 192.0.2.1\n\
    i.un NS ns.elsewhere.test.\n\\000 A 192.0.2.1\n\\255\\255 A 192.0.2.1\n*.cn CNAME a\nx.*.star A 192.0.2.1\n";

/// Zones with labels that are neighbours of each other or have the maximum length.
fn any_zone() -> impl Strategy<Value = String> {
    let full = |head: &str, octets: usize| format!("{head}{}", "\\255".repeat(octets));
    let label = prop::sample::select(
        [
            "a",
            "b",
            "a\\000",
            "*",
            "*\\000",
            "*\\000\\000",
            "\\000",
            "\\000\\000",
            "\\255",
            "\\)",
            "+",
            "[",
            "\\@",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain([
            full("\\)", 62),
            full("", 63),
            full("a", 62),
            full("\\096", 62),
            full("\\@", 62),
            full("*", 62),
        ])
        .collect::<Vec<_>>(),
    );
    let owner = prop::collection::vec(label, 1..4).prop_map(|labels| labels.join("."));
    let data = prop::sample::select(vec![
        "A 192.0.2.1",
        "A 192.0.2.2",
        "TXT \"text\"",
        "TYPE65400 \\# 2 0102",
        "NS ns.elsewhere.test.",
        "DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000",
        "DNAME target.test.",
    ]);
    prop::collection::vec((owner, data), 0..20)
        .prop_map(|records| records.into_iter().map(|(owner, data)| format!("{owner} {data}\n")).collect())
}

#[test]
fn mechanisms_made_when_asked_are_not_signed_with() {
    for mechanism in [Mechanism::MinimalNsec, Mechanism::Compact, Mechanism::WhiteLies] {
        let refused = sign(&zone(""), &csk_of("example."), &options(mechanism)).unwrap_err();
        assert!(refused.to_string().contains(&format!("serve --denial {mechanism} --keys")), "{refused}");
    }
}

#[test]
fn the_cases_are_what_they_are_to_be() {
    let zone = Zone::of(EVERY_CASE);
    let encloser = |text: &str| name(&format!("{text}example."));
    for (question, qtype, expected) in [
        ("zz", Rtype::A, Case::NameError { encloser: encloser("") }),
        ("q.a.a", Rtype::A, Case::NameError { encloser: encloser("a.a.") }),
        ("a.b.c.d.e.f", Rtype::A, Case::NameError { encloser: encloser("") }),
        ("a", Rtype::TXT, Case::NoData),
        ("c", Rtype::TXT, Case::Nothing),
        ("y.ent", Rtype::A, Case::NoData),
        ("ent", Rtype::A, Case::NoData),
        ("q.w", Rtype::A, Case::WildcardAnswer { encloser: encloser("w.") }),
        ("r.q.w", Rtype::A, Case::WildcardAnswer { encloser: encloser("w.") }),
        ("q.w", Rtype::TXT, Case::WildcardNoData { encloser: encloser("w.") }),
        ("q.e", Rtype::TXT, Case::WildcardNoData { encloser: encloser("e.") }),
        ("q.cn", Rtype::TXT, Case::WildcardAnswer { encloser: encloser("cn.") }),
        ("q.v", Rtype::A, Case::CutWildcard { encloser: encloser("v.") }),
        ("d", Rtype::DS, Case::NoDs { cut: encloser("d.") }),
        ("ns.d", Rtype::A, Case::NoDs { cut: encloser("d.") }),
        ("s", Rtype::A, Case::Nothing),
        ("x.i.un", Rtype::A, Case::NoDs { cut: encloser("i.un.") }),
        ("o.n", Rtype::A, Case::Nothing),
    ] {
        let qname = encloser(&format!("{question}."));
        assert_eq!(zone.case(qname.view(), qtype), expected, "{question} {qtype}");
    }
    assert_eq!(zone.case(zone.apex.view(), Rtype::A), Case::NoData);
    assert_eq!(zone.case(zone.apex.view(), Rtype::DS), Case::NoData);
}
