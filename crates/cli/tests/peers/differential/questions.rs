//! The questions: every name with each of its types and some types that it lacks, and many missing
//! names.

use super::exchange::Question;
use super::zone::Zone;
use nonesuch_proto::{Name, NameRef, Rtype};
use std::collections::BTreeSet;

/// Number of missing names in each mode, unless the environment sets a number of questions.
const MISSING: usize = 10_000;
/// Seed for the missing names.
const SEED: u64 = 0x6e6f_6e65_7375_6368;
/// Types in questions for missing names; most of them are A.
const TYPES: [Rtype; 8] =
    [Rtype::A, Rtype::A, Rtype::A, Rtype::A, Rtype::TXT, Rtype::DS, Rtype::CNAME, Rtype::NS];

/// All questions about the zone, with and without DO.
#[allow(dead_code)] // `peers_online` uses only questions with DO
pub(crate) fn questions(zone: &Zone) -> Vec<Question> {
    let pairs = pairs(zone, 2);
    let both = |dnssec_ok| {
        let ask =
            move |(name, rtype): &(Name, Rtype)| Question { name: name.clone(), rtype: *rtype, dnssec_ok };
        pairs.iter().map(ask)
    };
    both(true).chain(both(false)).collect()
}

/// All questions about the zone, with DO.
#[allow(dead_code)] // `differential` also uses questions without DO
pub(crate) fn questions_with_do(zone: &Zone) -> Vec<Question> {
    pairs(zone, 1).into_iter().map(|(name, rtype)| Question { name, rtype, dnssec_ok: true }).collect()
}

/// Names and types; each pair occurs `times` times.
fn pairs(zone: &Zone, times: usize) -> Vec<(Name, Rtype)> {
    let mut pairs: Vec<(Name, Rtype)> = Vec::new();
    for name in zone.all_names() {
        let mut types: BTreeSet<Rtype> = zone.types(name.view()).into_iter().collect();
        let candidates = [Rtype::A, Rtype::TXT, Rtype::AAAA, Rtype::MX];
        types.extend(candidates.into_iter().find(|rtype| !types.contains(rtype)));
        types.extend([Rtype::DS, Rtype::ANY, Rtype::RRSIG, Rtype::NSEC, Rtype::NSEC3]);
        pairs.extend(types.into_iter().map(|rtype| (name.clone(), rtype)));
    }
    let mut random = Random(SEED);
    let wanted = std::env::var("NONESUCH_DIFFERENTIAL_QUESTIONS").ok().and_then(|count| count.parse().ok());
    let count = wanted.map_or(MISSING, |questions: usize| (questions / times).saturating_sub(pairs.len()));
    let missing = missing_names(zone, count, &mut random);
    pairs.extend(missing.into_iter().map(|name| (name, *random.pick(&TYPES))));
    pairs
}

/// Names without records at different positions in the zone, some in mixed case.
fn missing_names(zone: &Zone, count: usize, random: &mut Random) -> Vec<Name> {
    let all: Vec<&Name> = zone.all_names().collect();
    let present: BTreeSet<&Name> = all.iter().copied().collect();
    let below: Vec<Vec<&Name>> = [
        |zone: &Zone, name: NameRef<'_>| {
            Name::wildcard_below(name).is_ok_and(|wildcard| zone.holds(wildcard.view()))
        },
        |zone: &Zone, name: NameRef<'_>| zone.cut(name).is_some(),
        |zone: &Zone, name: NameRef<'_>| zone.types(name).is_empty(),
        |zone: &Zone, name: NameRef<'_>| zone.has(name, Rtype::DNAME),
        |zone: &Zone, name: NameRef<'_>| !zone.has(name, Rtype::NSEC3),
    ]
    .into_iter()
    .map(|wanted| all.iter().copied().filter(|name| wanted(zone, name.view())).collect())
    .collect();
    let mut names = BTreeSet::new();
    while names.len() < count {
        let any = random.pick(&all);
        let candidate = match random.below(5) {
            0 => neighbour(any, random),
            1 => sibling(any, random),
            2 => Name::prepend(b"*", any.view()).ok(),
            _ => {
                let kind: usize = random.below(below.len());
                let above = random.pick(&below[kind]);
                descend(above, random)
            }
        };
        let inside = |name: &Name| name.view().is_at_or_below(zone.contents.apex().view());
        if let Some(name) = candidate.filter(|name| inside(name) && !present.contains(name)) {
            names.insert(if random.below(4) == 0 { mix_case(&name, random) } else { name });
        }
    }
    names.into_iter().collect()
}

/// Adds one to three random labels in front of the name.
fn descend(name: &Name, random: &mut Random) -> Option<Name> {
    let mut name = name.clone();
    for _ in 0..=random.below(3) {
        name = Name::prepend(&label(random), name.view()).ok()?;
    }
    Some(name)
}

/// Replaces the first label with a random one.
fn sibling(name: &Name, random: &mut Random) -> Option<Name> {
    Name::prepend(&label(random), name.view().parent()?).ok()
}

/// A name that is adjacent or nearly adjacent to the name in canonical order (RFC 4034 §6.1).
fn neighbour(name: &Name, random: &mut Random) -> Option<Name> {
    let mut first = name.view().labels().next()?.to_vec();
    match random.below(4) {
        0 => first.push(0),
        1 => *first.last_mut()? = first.last()?.wrapping_add(1),
        2 => *first.last_mut()? = first.last()?.wrapping_sub(1),
        _ => return Name::prepend(&[0], name.view()).ok(),
    }
    Name::prepend(&first, name.view().parent()?).ok()
}

fn label(random: &mut Random) -> Vec<u8> {
    let alphabet = b"abcdefghijklmnopqrstuvwxyz0123456789-_";
    match random.below(20) {
        0 => b"*".to_vec(),
        1 => (0..=random.below(4)).map(|_| random.below(256) as u8).collect(),
        _ => (0..=random.below(9)).map(|_| *random.pick(alphabet)).collect(),
    }
}

fn mix_case(name: &Name, random: &mut Random) -> Name {
    let mut wire = name.wire().to_vec();
    for octet in &mut wire {
        // Length octets are not letters.
        if random.below(2) == 0 {
            octet.make_ascii_uppercase();
        }
    }
    NameRef::from_wire(&wire).expect("a name").to_name()
}

/// SplitMix64: small, seeded, identical on all platforms.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
