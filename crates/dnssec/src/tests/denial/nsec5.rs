//! NSEC5: the records and proofs of each response are those of the table "What a signed response
//! carries". One round of proving is sufficient for all names without a stored proof.

use super::*;
use crate::denial::nsec5::{Nsec5, OPT_OUT_FLAG, WILDCARD_FLAG, decode_owner as hash_of_owner};
use crate::denial::prove::prove_nsec5;
use crate::tests::nsec5::vrf;
use std::collections::HashMap;

const QTYPES: [Rtype; 3] = [Rtype::A, Rtype::TXT, Rtype::DS];

type Hash = [u8; 32];

/// A signed zone, with hashes that are computed once.
struct Served {
    zone: Zone,
    opt_out: bool,
    /// The hashes of the names of the chain, which are stored with the zone.
    stored: HashMap<Name, Hash>,
    all: HashMap<Name, Hash>,
}

/// An NSEC5 record of a response.
#[derive(Debug)]
struct Record {
    owner: Hash,
    flags: u8,
    next: Hash,
    types: BTreeSet<Rtype>,
}

impl Served {
    fn new(records: &str, mechanism: Mechanism) -> Self {
        let contents = zone(records);
        let algorithm = number_for(Algorithm::ED25519, mechanism);
        let keys = KeySet::new(&name("example."), vec![key("example.", 257, algorithm, 1)]).unwrap();
        let (signed, proofs) = sign_any(&contents, &keys, &options(mechanism));
        let image = Image::compile(&signed).unwrap();
        let apex = name("example.");
        let mut names = names(&contents, apex.view());
        names.get_mut(&apex).unwrap().extend([Rtype::DNSKEY, Rtype::NSEC5KEY]);
        let stored: HashMap<Name, Hash> =
            proofs.unwrap().entries().map(|entry| (entry.full_name(apex.view()), *entry.hash)).collect();
        let opt_out = mechanism == Mechanism::Nsec5OptOut;
        Self { zone: Zone { image, apex, names }, opt_out, all: stored.clone(), stored }
    }

    fn hash(&mut self, owner: NameRef<'_>) -> Hash {
        let prove = || vrf().prove(owner.to_canonical().wire(), &mut Vec::new()).unwrap();
        *self.all.entry(owner.to_canonical()).or_insert_with(prove)
    }

    /// Builds the response twice. The hashes that the first attempt requests are available to the
    /// second, which requests no more. Returns the requested names, the records, and the proved
    /// names.
    fn answer(
        &mut self,
        case: &Case,
        qname: NameRef<'_>,
        with_stored: bool,
    ) -> (BTreeSet<Name>, Vec<Record>, Vec<Name>) {
        let mut known = if with_stored { self.stored.clone() } else { HashMap::new() };
        let mut wanted = BTreeSet::new();
        if let Some(denied) = self.zone.denied(case, qname) {
            let _ = prove_nsec5(&self.zone.image, denied, &mut |owner| {
                let hash = known.get(&owner.to_name()).copied();
                if hash.is_none() {
                    wanted.insert(owner.to_name());
                }
                hash
            });
        }
        for owner in &wanted {
            known.insert(owner.clone(), self.hash(owner.view()));
        }
        let Some(denied) = self.zone.denied(case, qname) else { return (wanted, Vec::new(), Vec::new()) };
        let proof = prove_nsec5(&self.zone.image, denied, &mut |owner| {
            let hash = known.get(&owner.to_name()).copied();
            assert!(hash.is_some(), "{owner} is asked for in the second round; {qname} {case:?}");
            hash
        });
        let (mut records, mut proved) = (Vec::new(), Vec::new());
        for piece in &proof.clone().into_pieces() {
            match piece {
                ProofPiece::Stored(template) => records.push(self.read(*template)),
                ProofPiece::Proven { name, ttl } => {
                    assert_eq!(*ttl, DENIAL_TTL);
                    proved.push(name.clone());
                }
                ProofPiece::Generated(record) => panic!("{record:?}"),
            }
        }
        (wanted, records, proved)
    }

    fn read(&self, template: nonesuch_zone::image::Template<'_>) -> Record {
        assert_eq!(
            (template.rtype(), template.record_count(), template.signature_count()),
            (Rtype::NSEC5, 1, 1)
        );
        let record = template.expand().swap_remove(0);
        assert_eq!(record.ttl, DENIAL_TTL);
        let fields = Nsec5::parse(&record.rdata).unwrap();
        Record {
            owner: hash_of_owner(record.owner.view(), self.zone.apex.view()).unwrap(),
            flags: fields.flags,
            next: fields.next.try_into().unwrap(),
            types: bitmap::types(fields.bitmap).collect(),
        }
    }

    fn is_left_out(&self, owner: NameRef<'_>) -> bool {
        let has_ds = self.zone.types(owner).is_some_and(|types| types.contains(&Rtype::DS));
        self.opt_out && self.zone.is_cut(owner) && !has_ds
    }

    fn check(&mut self, qname: NameRef<'_>, qtype: Rtype, with_stored: bool) {
        let case = self.zone.case(qname, qtype);
        let (wanted, records, proved) = self.answer(&case, qname, with_stored);
        if with_stored {
            let online = wanted.iter().filter(|name| !self.stored.contains_key(*name)).count();
            assert!(wanted.len() == online && online <= 1, "{qname} {case:?}: {wanted:?}");
        }
        let (matched, covered) = match &case {
            Case::Nothing => (None, None),
            Case::NameError { encloser } | Case::CutWildcard { encloser } => {
                (Some(encloser.clone()), Some(next_closer(qname, encloser)))
            }
            Case::NoData => (Some(qname.to_name()), None),
            Case::NoDs { cut } if self.is_left_out(cut.view()) => {
                (Some(cut.view().parent().unwrap().to_name()), Some(cut.clone()))
            }
            Case::NoDs { cut } => (Some(cut.clone()), None),
            Case::WildcardAnswer { encloser } => (None, Some(next_closer(qname, encloser))),
            Case::WildcardNoData { encloser } => {
                (self.zone.wildcard(encloser.view()), Some(next_closer(qname, encloser)))
            }
        };
        // A wildcard that is an insecure delegation cannot be distinguished from one that answers:
        // the wildcard flag is set.
        let expected: Vec<Name> = matched.iter().chain(&covered).cloned().collect();
        assert_eq!(proved, expected, "{qname} {qtype} {case:?}");
        let owners: BTreeSet<Hash> = records.iter().map(|record| record.owner).collect();
        assert!(owners.len() == records.len() && records.len() <= expected.len(), "{records:?}");
        if let Some(matched) = matched {
            let hash = self.hash(matched.view());
            let record = records.iter().find(|record| record.owner == hash).unwrap();
            self.check_matched(record, &matched, &case, qtype);
        }
        if let Some(covered) = covered {
            let hash = self.hash(covered.view());
            let covers = |record: &&Record| match record.owner < record.next {
                true => record.owner < hash && hash < record.next,
                false => record.owner < hash || hash < record.next,
            };
            let record = records.iter().find(covers).unwrap_or_else(|| panic!("{covered}: {records:?}"));
            assert_eq!(record.flags & OPT_OUT_FLAG != 0, self.opt_out);
        }
    }

    fn check_matched(&self, record: &Record, matched: &Name, case: &Case, qtype: Rtype) {
        let types = self.zone.types(matched.view()).unwrap();
        assert!(types.iter().all(|rtype| record.types.contains(rtype)), "{matched}: {record:?}");
        match case {
            Case::NameError { .. } => assert_eq!(record.flags & WILDCARD_FLAG, 0),
            Case::CutWildcard { .. } => assert_eq!(record.flags & WILDCARD_FLAG, WILDCARD_FLAG),
            Case::NoDs { cut } if cut != matched => {}
            Case::NoDs { .. } => assert!(!record.types.contains(&Rtype::DS)),
            _ => assert!(!record.types.contains(&qtype) && !record.types.contains(&Rtype::CNAME)),
        }
    }
}

fn next_closer(qname: NameRef<'_>, encloser: &Name) -> Name {
    qname.suffix(encloser.view().label_count() + 1).to_canonical()
}

fn check_all(records: &str, questions: usize) {
    for mechanism in [Mechanism::Nsec5, Mechanism::Nsec5OptOut] {
        let mut served = Served::new(records, mechanism);
        let all: Vec<Name> = served.zone.questions().into_iter().collect();
        for question in all.iter().step_by(1 + all.len() / questions) {
            for (place, qtype) in QTYPES.into_iter().enumerate() {
                served.check(question.view(), qtype, place != 0);
                served.check(question.view(), qtype, place == 0);
            }
        }
    }
}

#[test]
fn every_case() {
    check_all(EVERY_CASE, 10_000);
    check_all("", 100);
}

/// A query for the owner of an NSEC5 record is a query for a nonexistent name (RFC 5155 §7.2.8).
#[test]
fn owners_of_records_do_not_exist() {
    let mut served = Served::new(EVERY_CASE, Mechanism::Nsec5);
    let owner = name(&crate::tests::nsec5::hashed("a.example."));
    assert_eq!(served.zone.image.find_exact(owner.view()).map(|node| node.name().to_name()), None);
    served.check(owner.view(), Rtype::NSEC5, true);
}

/// One record may match the encloser and cover the next closer name. The response has it once, with
/// two proofs.
#[test]
fn a_record_stands_once() {
    let mut served = Served::new("", Mechanism::Nsec5);
    let qname = name("x.example.");
    let case = served.zone.case(qname.view(), Rtype::A);
    let (wanted, records, proved) = served.answer(&case, qname.view(), true);
    assert_eq!((wanted.len(), records.len(), proved.len()), (1, 1, 2));
}

proptest! {
    #![proptest_config(config(40, 5))]

    #[test]
    fn on_random_zones(records in any_zone()) {
        check_all(&records, 20);
    }
}
