//! Minimally covering NSEC and compact denial: each record is true, and validators draw the
//! intended conclusions.

use super::*;
use crate::denial::names::common_label_count;
use crate::online::prepare::remove_chain_add_dnskeys;
use std::collections::BTreeSet;

const QTYPES: [Rtype; 4] = [Rtype::A, Rtype::TXT, Rtype::DS, Rtype(65_401)];

/// A parsed NSEC record.
#[derive(Debug)]
struct Nsec {
    owner: Name,
    next: Name,
    types: BTreeSet<Rtype>,
}

impl Nsec {
    /// Parses a record, which must be in canonical form.
    fn read(record: &GeneratedRecord) -> Self {
        assert_eq!((record.rtype, record.ttl), (Rtype::NSEC, DENIAL_TTL));
        let (next, map) = NameRef::split_from(&record.rdata).unwrap();
        assert!(NameRef::from_wire(record.owner.wire()).is_ok() && bitmap::is_valid(map));
        for name in [record.owner.view(), next] {
            assert_eq!(name.wire(), name.to_canonical().wire(), "{name} is not in canonical form");
        }
        Self { owner: record.owner.clone(), next: next.to_name(), types: bitmap::types(map).collect() }
    }

    /// Whether the record covers `name` (RFC 4035 §5.4, RFC 6840 §4.1).
    fn covers(&self, name: NameRef<'_>, apex: &Name) -> bool {
        let is_ancestor_cut = name.is_below(self.owner.view())
            && (self.types.contains(&Rtype::DNAME)
                || self.types.contains(&Rtype::NS) && !self.types.contains(&Rtype::SOA));
        let within = self.owner.view() < name && (name < self.next.view() || self.next == *apex);
        within && !is_ancestor_cut
    }

    /// Number of labels of the closest encloser of `name` that a validator derives from this
    /// record.
    fn encloser_labels(&self, name: NameRef<'_>) -> usize {
        common_label_count(self.owner.view(), name).max(common_label_count(self.next.view(), name))
    }

    fn lacks(&self, qtype: Rtype) -> bool {
        !self.types.contains(&qtype) && !self.types.contains(&Rtype::CNAME)
    }
}

/// Whether `name` belongs to the child zone or is occluded.
fn is_hidden(zone: &Zone, name: NameRef<'_>) -> bool {
    let depths = zone.apex.view().label_count()..name.label_count();
    depths.map(|depth| name.suffix(depth)).any(|above| {
        zone.is_cut(above) || zone.types(above).is_some_and(|types| types.contains(&Rtype::DNAME))
    })
}

/// Asserts that no record denies an existing name or contains a false type. `lies` are the invented
/// types of a nonexistent owner in compact denial.
fn check_truth(zone: &Zone, record: &Nsec, lies: Option<&BTreeSet<Rtype>>) {
    for exists in zone.names.keys() {
        assert!(!record.covers(exists.view(), &zone.apex), "{exists} is denied by {record:?}");
    }
    let mut types = match (zone.types(record.owner.view()), lies) {
        (Some(types), _) => types.clone(),
        (None, Some(lies)) => lies.clone(),
        (None, None) => BTreeSet::new(),
    };
    types.extend([Rtype::RRSIG, Rtype::NSEC]);
    assert_eq!(record.types, types, "types at {}", record.owner);
    assert!(!is_hidden(zone, record.owner.view()), "{record:?} stands where the zone has no say");
    // The next name of a record at a DNAME may be below it: the record covers nothing in that case.
    let depths = zone.apex.view().label_count()..record.next.view().label_count();
    let crossed = depths.map(|depth| record.next.view().suffix(depth)).find(|above| zone.is_cut(*above));
    assert_eq!(crossed, None, "{record:?} leads into a child zone");
    assert!(record.next.view().is_at_or_below(zone.apex.view()));
}

/// Whether a wildcard matches the nonexistent name `name` (RFC 4592 §3.3.1). A wildcard that is a
/// zone cut does not match (§4.2).
fn is_wildcard_match(zone: &Zone, name: NameRef<'_>) -> bool {
    let mut ancestors = (0..name.label_count()).rev().map(|labels| name.suffix(labels));
    let encloser = ancestors.find(|ancestor| zone.types(*ancestor).is_some()).unwrap();
    zone.wildcard(encloser).is_some_and(|wildcard| !zone.is_cut(wildcard.view()))
}

/// Asserts that a nonexistent owner has no names at or below it that a wildcard matches. An owner
/// to which no label can be prepended is an exception.
fn check_owner(zone: &Zone, record: &Nsec) {
    let owner = record.owner.view();
    let has_room = Name::prepend(b"x", owner).is_ok();
    let is_synthesized = zone.types(owner).is_none();
    assert!(!(is_synthesized && has_room && is_wildcard_match(zone, owner)), "a wildcard matches {record:?}");
}

/// Asserts that a record does not disclose existing names. Allowed are names in the question, the
/// wildcard of the closest encloser, and an owner without an alternative, because another record
/// would deny it. Such an owner is a zone cut or DNAME directly above all predecessors of the
/// denied name, or the only predecessor. Next names depend only on the question.
fn check_disclosure(zone: &Zone, record: &Nsec, qname: NameRef<'_>, case: &Case) {
    let mut known = Vec::new();
    let depths = zone.apex.view().label_count()..=qname.label_count();
    known.extend(depths.map(|depth| qname.suffix(depth).to_name()));
    if let Case::NameError { encloser }
    | Case::CutWildcard { encloser }
    | Case::WildcardAnswer { encloser }
    | Case::WildcardNoData { encloser } = case
    {
        known.extend(Name::wildcard_below(encloser.view()).ok());
    }
    let apex = zone.apex.view();
    let is_next = |known: &Name| {
        let known = known.view();
        record.next == known.successor(apex) || record.next == known.successor_of_subtree(apex)
    };
    assert!(known.iter().any(is_next), "next name of {record:?} for {qname}");
    let Some(types) = zone.types(record.owner.view()) else { return };
    let hides = zone.is_cut(record.owner.view()) || types.contains(&Rtype::DNAME);
    let is_before = |known: &Name| {
        let sibling = known.view().sibling_predecessor();
        let last = sibling.as_ref().map(|sibling| longest_below(sibling.view()));
        last.is_some_and(|last| {
            record.owner == last
                || hides
                    && last.view().is_at_or_below(record.owner.view())
                    && record.owner.view().is_at_or_below(sibling.unwrap().view())
        })
    };
    let is_known = known.contains(&record.owner) || known.iter().any(is_before);
    assert!(is_known, "{record:?} reveals its owner to who asks for {qname}");
}

/// Asserts that the records cover `qname` and that a validator derives the correct closest
/// encloser. Unbound uses the longest that any NSEC record of the response gives.
fn check_absence(zone: &Zone, records: &[Nsec], qname: NameRef<'_>, encloser: &Name) {
    assert!(records.iter().any(|record| record.covers(qname, &zone.apex)), "{qname}: {records:?}");
    let labels = encloser.view().label_count();
    for record in records {
        assert!(record.owner.view() != qname, "{qname} is matched: {record:?}");
        if record.covers(qname, &zone.apex) {
            assert_eq!(record.encloser_labels(qname), labels, "closest encloser of {qname} by {record:?}");
            // BIND and Unbound conclude from a next name below the denied name that the denied name
            // is an empty non-terminal.
            assert!(!record.next.view().is_at_or_below(qname));
        }
        assert!(record.encloser_labels(qname) <= labels, "closest encloser of {qname} by {record:?}");
    }
}

fn check_minimal(zone: &Zone, qname: NameRef<'_>, qtype: Rtype) {
    let case = zone.case(qname, qtype);
    let records: Vec<Nsec> = zone.made(Mechanism::MinimalNsec, &case, qname).iter().map(Nsec::read).collect();
    let owners: BTreeSet<&Name> = records.iter().map(|record| &record.owner).collect();
    assert_eq!(owners.len(), records.len(), "an owner has two NSEC records: {records:?}");
    assert!(records.len() <= 2);
    for record in &records {
        check_truth(zone, record, None);
        check_owner(zone, record);
        check_disclosure(zone, record, qname, &case);
    }
    match &case {
        Case::Nothing => assert!(records.is_empty()),
        Case::NameError { encloser } => {
            check_absence(zone, &records, qname, encloser);
            let wildcard = Name::wildcard_below(encloser.view()).unwrap();
            assert!(records.iter().any(|record| record.covers(wildcard.view(), &zone.apex)), "{records:?}");
        }
        Case::CutWildcard { encloser } => check_absence(zone, &records, qname, encloser),
        Case::NoData => {
            assert_eq!(records.len(), 1);
            assert!(records[0].owner.view() == qname && records[0].lacks(qtype));
        }
        Case::WildcardAnswer { encloser } => {
            assert_eq!(records.len(), 1);
            check_absence(zone, &records, qname, encloser);
        }
        Case::WildcardNoData { encloser } => {
            let wildcard = zone.wildcard(encloser.view()).unwrap();
            check_absence(zone, &records, qname, encloser);
            let matching = records.iter().find(|record| record.owner == wildcard).unwrap();
            assert!(matching.lacks(qtype));
        }
        Case::NoDs { cut } => check_cut(&records, cut),
    }
}

fn check_cut(records: &[Nsec], cut: &Name) {
    let [record] = records else { panic!("{records:?}") };
    assert_eq!(record.owner, *cut);
    assert_eq!(record.types, BTreeSet::from([Rtype::NS, Rtype::RRSIG, Rtype::NSEC]));
}

/// Checks compact denial (RFC 9824): at most one record, at the question name (at a zone cut, at
/// the cut).
fn check_compact(zone: &Zone, qname: NameRef<'_>, qtype: Rtype) {
    let case = zone.case(qname, qtype);
    let records: Vec<Nsec> = zone.made(Mechanism::Compact, &case, qname).iter().map(Nsec::read).collect();
    records.iter().for_each(|record| check_disclosure(zone, record, qname, &case));
    let lies = match &case {
        Case::NameError { .. } | Case::CutWildcard { .. } => BTreeSet::from([Rtype::NXNAME]),
        Case::WildcardNoData { encloser } => zone.names[&zone.wildcard(encloser.view()).unwrap()].clone(),
        Case::NoDs { cut } => {
            records.iter().for_each(|record| check_truth(zone, record, None));
            return check_cut(&records, cut);
        }
        Case::NoData => BTreeSet::new(),
        Case::WildcardAnswer { .. } | Case::Nothing => return assert!(records.is_empty()),
    };
    let [record] = records.as_slice() else { panic!("{qname} {qtype} {case:?}: {records:?}") };
    check_truth(zone, record, Some(&lies));
    assert!(record.owner.view() == qname && record.lacks(qtype));
    assert_eq!(record.next, qname.successor(zone.apex.view()));
}

fn check_all(zone: &Zone) {
    for question in zone.questions() {
        for qtype in QTYPES {
            check_minimal(zone, question.view(), qtype);
            check_compact(zone, question.view(), qtype);
        }
    }
}

/// The records for a question in `zone`, as text.
fn lines(zone: &Zone, mechanism: Mechanism, question: &str, qtype: Rtype) -> Vec<String> {
    let qname = name(question).view().to_canonical();
    let case = zone.case(qname.view(), qtype);
    let records = zone.made(mechanism, &case, qname.view());
    records
        .iter()
        .map(Nsec::read)
        .map(|record| {
            let types: Vec<String> = record.types.iter().map(ToString::to_string).collect();
            format!("{} {} {}", record.owner, record.next, types.join(" "))
        })
        .collect()
}

/// A label, extended to 63 octets with the greatest octet, in presentation form.
fn full(label: &[u8]) -> String {
    let mut octets = label.to_vec();
    octets.resize(63, 255);
    Name::prepend(&octets, NameRef::ROOT).unwrap().to_string().trim_end_matches('.').to_owned()
}

/// The last possible name below `parent`, in presentation form.
fn last_below(parent: &str) -> String {
    longest_below(name(parent).view()).to_string()
}

#[test]
fn minimally_covering_records_of_every_case() {
    let zone = Zone::of(EVERY_CASE);
    let made = |question: &str, qtype| lines(&zone, Mechanism::MinimalNsec, question, qtype);
    let wildcard = |parent: &str| format!("{}.{parent} *\\000.{parent} RRSIG NSEC", full(b")"));
    // NXDOMAIN: a record for the next closer name and all names below it, and a record for the
    // wildcard.
    let denied = format!("{}.example. zz\\000.example. RRSIG NSEC", full(b"zy"));
    assert_eq!(made("zz.example.", Rtype::A), [denied.clone(), wildcard("example.")]);
    assert_eq!(made("p.q.ZZ.example.", Rtype::A), [denied, wildcard("example.")]);
    let denied = format!("{}.a.a.example. c\\000.a.a.example. RRSIG NSEC", full(b"b"));
    assert_eq!(made("c.a.a.example.", Rtype::A), [denied, wildcard("a.a.example.")]);
    // Before all names below a parent: the record of the parent, with its types.
    let denied = "a.a.example. \\000\\000.a.a.example. A RRSIG NSEC".to_owned();
    assert_eq!(made("\\000.a.a.example.", Rtype::A), [denied, wildcard("a.a.example.")]);
    let denied = "ent.example. \\000\\000.ent.example. RRSIG NSEC".to_owned();
    assert_eq!(made("\\000.ent.example.", Rtype::A), [denied, wildcard("ent.example.")]);
    // The preceding sibling exists: the owner is the last possible name below it. The record has no
    // name that is not in the question.
    let denied = format!("{} a\\000\\000.example. RRSIG NSEC", last_below("a.example."));
    assert_eq!(made("a\\000.example.", Rtype::A), [denied, wildcard("example.")]);
    // The sibling is a zone cut or owns a DNAME: the record of the sibling (RFC 6840 §4.1).
    for (sibling, types) in [("d", "NS"), ("s", "NS DS"), ("n", "DNAME")] {
        let denied = format!("{sibling}.example. {sibling}\\000\\000.example. {types} RRSIG NSEC");
        assert_eq!(made(&format!("{sibling}\\000.example."), Rtype::A), [denied, wildcard("example.")]);
    }
    // A name after all names of the zone and before the wildcard, and the wildcard itself.
    let last = format!("{}.example.", full(&[255]));
    let before = format!("{}.example.", full(&[&[255; 62][..], &[254]].concat()));
    assert_eq!(made(&last, Rtype::A), [format!("{before} example. RRSIG NSEC"), wildcard("example.")]);
    assert_eq!(made("*.example.", Rtype::A), [wildcard("example.")]);
    assert_eq!(made("q.*.example.", Rtype::A), [wildcard("example.")]);
    // Neighbours of the wildcard: one record denies both names, because neither may be an owner or
    // a next name.
    let both = format!("{}.example. *\\000\\000.example. RRSIG NSEC", full(b")"));
    assert_eq!(made("*\\000.example.", Rtype::A), [both]);
    let before = full(&[&b")"[..], &[255; 61], &[254]].concat());
    let both = format!("{before}.example. *\\000.example. RRSIG NSEC");
    assert_eq!(made(&format!("{}.example.", full(b")")), Rtype::A), [both]);
    // NODATA, also at an empty non-terminal and at the apex.
    assert_eq!(made("b.a.a.example.", Rtype::A), ["b.a.a.example. \\000.b.a.a.example. TXT RRSIG NSEC"]);
    assert_eq!(made("y.ent.example.", Rtype::A), ["y.ent.example. \\000.y.ent.example. RRSIG NSEC"]);
    assert_eq!(made("example.", Rtype::A), ["example. \\000.example. NS SOA RRSIG NSEC"]);
    assert_eq!(made("n.example.", Rtype::A), ["n.example. \\000.n.example. DNAME RRSIG NSEC"]);
    // Wildcards: one also matches the preceding sibling. The owner is therefore the last possible
    // name below the sibling.
    let closer = |sibling: &str, next: &str| {
        format!("{} {next}.w.example. RRSIG NSEC", last_below(&format!("{sibling}.w.example.")))
    };
    assert_eq!(made("victim\\000.w.example.", Rtype::A), [closer("victim", "victim\\000\\000")]);
    let (label, sibling) = ("v".repeat(63), "v".repeat(62) + "u");
    let next = "v".repeat(62) + "w";
    assert_eq!(made(&format!("{label}.w.example."), Rtype::A), [closer(&sibling, &next)]);
    let closer = closer(&full(b"p"), "q\\000");
    assert_eq!(made("q.w.example.", Rtype::A), std::slice::from_ref(&closer));
    assert_eq!(made("r.q.w.example.", Rtype::A), std::slice::from_ref(&closer));
    let matching = "*.w.example. \\000.*.w.example. A RRSIG NSEC".to_owned();
    assert_eq!(made("q.w.example.", Rtype::TXT), [matching.clone(), closer]);
    let covering =
        |parent: &str| format!("{} *\\000\\000.{parent} RRSIG NSEC", last_below(&format!("*.{parent}")));
    assert_eq!(made("*\\000.w.example.", Rtype::TXT), [matching, covering("w.example.")]);
    let matching = "*.star.example. \\000.*.star.example. RRSIG NSEC".to_owned();
    assert_eq!(made("*\\000.star.example.", Rtype::A), [matching, covering("star.example.")]);
    // A zone cut: the record has no name below it.
    for question in ["d.example.", "ns.d.example."] {
        assert_eq!(made(question, Rtype::DS), ["d.example. d\\000.example. NS RRSIG NSEC"]);
    }
    assert_eq!(made("i.un.example.", Rtype::A), ["i.un.example. i\\000.un.example. NS RRSIG NSEC"]);
    assert_eq!(made("s.example.", Rtype::A), [""; 0]);
    // The wildcard exists as a zone cut and is not denied. Its record may also cover the denied
    // name.
    let closer = format!("{}.v.example. q\\000.v.example. RRSIG NSEC", full(b"p"));
    let matching = "*.v.example. *\\000.v.example. NS RRSIG NSEC".to_owned();
    assert_eq!(made("q.v.example.", Rtype::A), [matching, closer]);
    assert_eq!(made("*\\000.v.example.", Rtype::A), ["*.v.example. *\\000\\000.v.example. NS RRSIG NSEC"]);
}

#[test]
fn compact_records_of_every_case() {
    let zone = Zone::of(EVERY_CASE);
    let made = |question: &str, qtype| lines(&zone, Mechanism::Compact, question, qtype);
    // RFC 9824 §3.1, in the form of its example.
    assert_eq!(made("zz.example.", Rtype::A), ["zz.example. \\000.zz.example. RRSIG NSEC NXNAME"]);
    assert_eq!(
        made("P.q.zz.example.", Rtype::A),
        ["p.q.zz.example. \\000.p.q.zz.example. RRSIG NSEC NXNAME"]
    );
    assert_eq!(made("q.v.example.", Rtype::A), ["q.v.example. \\000.q.v.example. RRSIG NSEC NXNAME"]);
    // §3.2.
    assert_eq!(made("b.a.a.example.", Rtype::A), ["b.a.a.example. \\000.b.a.a.example. TXT RRSIG NSEC"]);
    assert_eq!(made("ent.example.", Rtype::A), ["ent.example. \\000.ent.example. RRSIG NSEC"]);
    assert_eq!(made("example.", Rtype::A), ["example. \\000.example. NS SOA RRSIG NSEC"]);
    // §3.3.
    assert_eq!(made("q.w.example.", Rtype::A), [""; 0]);
    assert_eq!(made("r.q.w.example.", Rtype::TXT), ["r.q.w.example. \\000.r.q.w.example. A RRSIG NSEC"]);
    assert_eq!(made("q.star.example.", Rtype::A), ["q.star.example. \\000.q.star.example. RRSIG NSEC"]);
    // §3.4.
    assert_eq!(made("x.d.example.", Rtype::A), ["d.example. d\\000.example. NS RRSIG NSEC"]);
    assert_eq!(made("d.example.", Rtype::DS), ["d.example. d\\000.example. NS RRSIG NSEC"]);
}

#[test]
fn validators_conclude_what_they_are_to() {
    check_all(&Zone::of(EVERY_CASE));
    check_all(&Zone::of(""));
    // A wildcard below a wildcard, a DNAME at the apex, a name that is a neighbour of its own
    // wildcard.
    check_all(&Zone::of("*.*.* A 192.0.2.1\n*\\000.* A 192.0.2.1\n"));
    check_all(&Zone::of("@ DNAME target.test.\n"));
    // Names that end in labels of 63 octets 255 are the last ones below other names: data, a zone
    // cut, a DNAME.
    let last = name(&last_below("a.example.")).to_string();
    let cut = full(&[255]);
    for below in [
        format!("{last} A 192.0.2.1\n"),
        format!("{cut}.a NS ns.elsewhere.test.\n"),
        format!("{cut}.a DNAME target.test.\nx.a A 192.0.2.1\n"),
        format!("x.{cut}.a NS ns.elsewhere.test.\n"),
        format!("*.a A 192.0.2.1\n*.{cut}.a A 192.0.2.1\n"),
    ] {
        check_all(&Zone::of(&format!("a A 192.0.2.1\n{below}")));
    }
}

#[test]
fn the_root_and_an_apex_of_the_greatest_length() {
    let text = |apex: &str, records: &str| {
        format!(
            "$ORIGIN {apex}\n$TTL 3600\n@ SOA ns. host. 7 3600 300 3600000 900\n@ NS ns.elsewhere.\n{records}"
        )
    };
    let long = |octets: usize| {
        let mut apex = name("example.");
        while apex.wire().len() < octets {
            let room = (octets - apex.wire().len() - 1).min(62);
            let room = if octets - apex.wire().len() - 1 - room == 1 { room - 1 } else { room };
            apex = Name::prepend(&vec![b'x'; room], apex.view()).unwrap();
        }
        assert_eq!(apex.wire().len(), octets);
        apex
    };
    let root = read_zone(&text(".", "a. NS ns.a.\nb. A 192.0.2.1\nx.y. A 192.0.2.1\n"), &Name::root());
    check_all(&Zone::new(&root));
    for octets in [200, 250, 251, 252] {
        let apex = long(octets);
        check_all(&Zone::new(&read_zone(&text(&apex.to_string(), "a A 192.0.2.1\n"), &apex)));
    }
    for octets in [253, 254, 255] {
        let apex = long(octets);
        check_all(&Zone::new(&read_zone(&text(&apex.to_string(), ""), &apex)));
    }
}

/// Asserts that the records for a zone signed with `mechanism` equal those for the unsigned zone.
/// With compact denial, the record of minimally covering NSEC denies closer matches than a
/// wildcard.
fn check_over_signed(records: &str, mechanism: Mechanism) {
    let (unsigned, keys) = (zone(records), csk_of("example."));
    let signed = sign(&unsigned, &keys, &options(mechanism)).unwrap();
    let (plain, over) =
        (Zone::new(&unsigned), Zone::new(&remove_chain_add_dnskeys(signed.contents(), 0, &[])));
    for question in plain.questions().iter().filter(|question| **question != plain.apex) {
        for qtype in QTYPES {
            let case = plain.case(question.view(), qtype);
            let made = |zone: &Zone, mechanism| zone.made(mechanism, &case, question.view());
            let minimal = made(&plain, Mechanism::MinimalNsec);
            let is_apex = |record: &GeneratedRecord| record.owner == plain.apex;
            if minimal.iter().any(is_apex) {
                continue;
            }
            assert_eq!(made(&over, Mechanism::MinimalNsec), minimal, "{question} {qtype}");
            let compact = match &case {
                Case::WildcardAnswer { .. } => minimal,
                _ => made(&plain, Mechanism::Compact),
            };
            assert_eq!(made(&over, Mechanism::Compact), compact, "{question} {qtype}");
        }
    }
}

/// Online denial for a signed zone ignores the chain of the zone. The signature of a wildcard does
/// not disclose the names to which it expands.
#[test]
fn over_signed_zones() {
    NSEC_AND_NSEC3.into_iter().for_each(|mechanism| check_over_signed(EVERY_CASE, mechanism));
}

proptest! {
    #![proptest_config(config(30, 4470))]

    #[test]
    fn on_random_zones(records in any_zone()) {
        check_all(&Zone::of(&records));
        check_over_signed(&records, Mechanism::Nsec);
    }
}
