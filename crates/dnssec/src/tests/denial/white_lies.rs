//! NSEC3 white lies: each record covers one hash, and validators draw the intended conclusions (RFC
//! 5155 §8).

use super::*;
use crate::denial::nsec3::{self, Nsec3};
use crate::denial::white_lies::MAX_APEX_OCTETS;

const QTYPES: [Rtype; 3] = [Rtype::A, Rtype::TXT, Rtype::DS];

type Hash = [u8; 20];

/// A parsed NSEC3 record.
#[derive(Debug)]
struct Lie {
    owner: Hash,
    next: Hash,
    types: BTreeSet<Rtype>,
}

impl Lie {
    fn read(record: &GeneratedRecord, apex: &Name) -> Self {
        assert_eq!((record.rtype, record.ttl), (Rtype::NSEC3, DENIAL_TTL));
        assert_eq!(record.owner.wire(), record.owner.view().to_canonical().wire());
        let fields = Nsec3::parse(&record.rdata).unwrap();
        assert_eq!((fields.algorithm, fields.flags, fields.iterations), (nsec3::SHA1, 0, 0));
        assert!(fields.salt.is_empty() && bitmap::is_valid(fields.bitmap));
        Self {
            owner: nsec3::chain::decode_owner(record.owner.view(), apex.view()).unwrap(),
            next: fields.next.try_into().unwrap(),
            types: bitmap::types(fields.bitmap).collect(),
        }
    }

    /// Whether the record covers `hash` (RFC 5155 §1.3).
    fn covers(&self, hash: &Hash) -> bool {
        match self.owner < self.next {
            true => self.owner < *hash && *hash < self.next,
            false => self.owner < *hash || *hash < self.next,
        }
    }
}

fn hash(owner: NameRef<'_>) -> Hash {
    nonesuch_crypto::nsec3_hash(owner.to_canonical().wire(), &[], 0)
}

/// The types in the bit map of the record of an existing name (RFC 5155 §7.1).
fn shown(zone: &Zone, owner: NameRef<'_>) -> BTreeSet<Rtype> {
    let mut types = zone.types(owner).unwrap().clone();
    let is_signed = if zone.is_cut(owner) { types.contains(&Rtype::DS) } else { !types.is_empty() };
    types.extend(is_signed.then_some(Rtype::RRSIG));
    types
}

fn check(zone: &Zone, qname: NameRef<'_>, qtype: Rtype) {
    let case = zone.case(qname, qtype);
    let made = zone.made(Mechanism::WhiteLies, &case, qname);
    let lies: Vec<Lie> = made.iter().map(|record| Lie::read(record, &zone.apex)).collect();
    for exists in zone.names.keys() {
        let hash = hash(exists.view());
        assert!(lies.iter().all(|lie| !lie.covers(&hash)), "{exists} is denied: {lies:?}");
        let matching = lies.iter().filter(|lie| lie.owner == hash);
        matching.for_each(|lie| assert_eq!(lie.types, shown(zone, exists.view()), "{exists}"));
    }
    let matches = |owner: NameRef<'_>| lies.iter().any(|lie| lie.owner == hash(owner));
    let covers = |owner: NameRef<'_>| lies.iter().any(|lie| lie.covers(&hash(owner)));
    let next_closer = |encloser: &Name| qname.suffix(encloser.view().label_count() + 1);
    let wildcard = |encloser: &Name| Name::wildcard_below(encloser.view()).unwrap();
    let expected = match &case {
        Case::Nothing => 0,
        // §8.4.
        Case::NameError { encloser } | Case::CutWildcard { encloser } => {
            let wildcard = wildcard(encloser);
            assert!(matches(encloser.view()) && covers(next_closer(encloser)));
            let is_cut = matches!(case, Case::CutWildcard { .. });
            assert!(if is_cut { matches(wildcard.view()) } else { covers(wildcard.view()) });
            // If the next closer name is the wildcard, one record covers both.
            3 - usize::from(next_closer(encloser) == wildcard.view())
        }
        // §8.5.
        Case::NoData => {
            assert!(matches(qname));
            1
        }
        // §8.8.
        Case::WildcardAnswer { encloser } => {
            assert!(covers(next_closer(encloser)));
            1
        }
        // §8.7.
        Case::WildcardNoData { encloser } => {
            let wildcard = wildcard(encloser);
            assert!(matches(encloser.view()) && covers(next_closer(encloser)) && matches(wildcard.view()));
            3
        }
        // §8.6 and §8.9.
        Case::NoDs { cut } => {
            assert!(matches(cut.view()));
            assert_eq!(lies[0].types, BTreeSet::from([Rtype::NS]));
            1
        }
    };
    assert_eq!(lies.len(), expected, "{qname} {qtype} {case:?}");
}

fn check_all(zone: &Zone) {
    for question in zone.questions() {
        QTYPES.iter().for_each(|qtype| check(zone, question.view(), *qtype));
    }
}

#[test]
fn every_case() {
    check_all(&Zone::of(EVERY_CASE));
    check_all(&Zone::of(""));
}

/// The records of the encloser and the wildcard are the same for all names below the encloser: a
/// cache can reuse them.
#[test]
fn two_of_three_records_serve_again() {
    let zone = Zone::of(EVERY_CASE);
    let made = |question: &str| {
        let qname = name(question);
        zone.made(Mechanism::WhiteLies, &zone.case(qname.view(), Rtype::A), qname.view())
    };
    let (first, second) = (made("x1.example."), made("x2.example."));
    assert_eq!((&first[0], &first[2]), (&second[0], &second[2]));
    assert_ne!(first[1], second[1]);
}

/// RFC 5155, appendix A: the hash of `a.example` with the salt and iterations of the zone, from its
/// chain.
#[test]
fn the_parameters_of_a_chain_are_kept() {
    let params = Nsec3Params { salt: vec![0xaa, 0xbb, 0xcc, 0xdd], iterations: 12 };
    let options = SignOptions { nsec3: params, ..options(Mechanism::Nsec3) };
    let signed = sign(&zone("a A 192.0.2.1"), &csk_of("example."), &options).unwrap();
    let zone = Zone::new(signed.contents());
    let qname = name("a.example.");
    let made = zone.made(Mechanism::WhiteLies, &Case::NoData, qname.view());
    assert_eq!(made[0].owner, name("35mthgpgcu1qg68fab165klnsnk3dpvl.example."));
    let fields = Nsec3::parse(&made[0].rdata).unwrap();
    assert_eq!((fields.flags, fields.iterations, fields.salt), (0, 12, &[0xaa, 0xbb, 0xcc, 0xdd][..]));
}

#[test]
fn an_apex_may_be_too_long_for_hashes() {
    for (octets, fits) in [(MAX_APEX_OCTETS, true), (MAX_APEX_OCTETS + 1, false)] {
        let mut apex = Name::root();
        for length in [62, 62, 62, octets - 3 * 63 - 2] {
            apex = Name::prepend(&vec![b'x'; length], apex.view()).unwrap();
        }
        assert_eq!(apex.wire().len(), octets);
        let text =
            format!("$TTL 3600\n{apex} SOA ns. host. 7 3600 300 3600000 900\n{apex} NS ns.elsewhere.\n");
        let zone = Zone::new(&read_zone(&text, &apex));
        assert_eq!(zone.made(Mechanism::WhiteLies, &Case::NoData, apex.view()).len(), usize::from(fits));
    }
}

proptest! {
    #![proptest_config(config(60, 7129))]

    #[test]
    fn on_random_zones(records in any_zone()) {
        check_all(&Zone::of(&records));
    }
}
