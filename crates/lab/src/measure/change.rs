//! Changes a share of the records of a zone, like the half-hourly update of a registry.
//!
//! The changes alternate between three kinds:
//!
//! - Remove a delegation and all names below it.
//! - Add a delegation next to an existing one.
//! - Replace the DS records of a delegation. If it has no DS records, replace its name servers. NS
//!   records of delegations are not signed (RFC 4035 §2.2), so this change needs no new signature.
//!
//! The serial increases by one.

use nonesuch_proto::{Name, Rtype, rdata};
use nonesuch_zone::{Contents, NameStatus, Node, NodesBuilder, name_statuses};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts of the changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    pub removed_delegations: u64,
    pub added_delegations: u64,
    /// Delegations with different DS records or different name servers.
    pub altered_delegations: u64,
    /// Removed records, including replaced records.
    pub removed_records: u64,
    pub added_records: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Remove,
    AddBeside,
    Alter,
}

const ACTIONS: [Action; 3] = [Action::Remove, Action::AddBeside, Action::Alter];

/// Returns the zone with about `share` of its records removed or added. `seed` determines the
/// changes. In a zone without delegations, only the serial changes.
pub(crate) fn change(contents: &Contents, share: f64, seed: u64) -> (Contents, Changes) {
    let wanted = (contents.record_count() as f64 * share).ceil() as u64;
    let delegations: Vec<Node<'_>> = contents
        .nodes()
        .zip(name_statuses(contents))
        .filter(|(_, standing)| *standing == NameStatus::Delegation)
        .map(|(node, _)| node)
        .collect();
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let mut changer =
        Changer { contents, done: Changes::default(), chosen: BTreeMap::new(), added: Vec::new() };
    // Limit: half of the delegations, so that a random choice soon finds an unused delegation.
    while changer.touched() < wanted && changer.chosen.len() < delegations.len() / 2 {
        let place = generator.random_range(0..delegations.len());
        changer.choose(&delegations, place);
    }
    changer.finish(&delegations)
}

struct Changer<'z> {
    contents: &'z Contents,
    done: Changes,
    /// Actions by index of the delegation.
    chosen: BTreeMap<usize, Action>,
    added: Vec<(Name, Node<'z>)>,
}

fn records(node: Node<'_>) -> u64 {
    node.rrsets().map(|rrset| rrset.count() as u64).sum()
}

impl<'z> Changer<'z> {
    fn touched(&self) -> u64 {
        self.done.removed_records + self.done.added_records
    }

    fn choose(&mut self, delegations: &[Node<'z>], place: usize) {
        if self.chosen.contains_key(&place) {
            return;
        }
        let node = delegations[place];
        let mut action = ACTIONS[self.chosen.len() % ACTIONS.len()];
        let new_name = if action == Action::AddBeside { self.name_beside(node) } else { None };
        // Every call must make progress, also where no delegation can get a neighbour.
        if action == Action::AddBeside && new_name.is_none() {
            action = Action::Alter;
        }
        match action {
            Action::Remove => {
                self.done.removed_delegations += 1;
                self.done.removed_records += records(node) + below(node).map(records).sum::<u64>();
            }
            Action::AddBeside => {
                self.done.added_delegations += 1;
                self.done.added_records += records(node);
                self.added.extend(new_name.map(|name| (name, node)));
            }
            Action::Alter => {
                let altered = records_of(node, altered_type(node));
                self.done.altered_delegations += 1;
                self.done.removed_records += altered;
                self.done.added_records += altered;
            }
        }
        self.chosen.insert(place, action);
    }

    /// Returns the name of the delegation with `-n` appended to the first label. Returns `None` if
    /// the zone has this name or the label is too long.
    fn name_beside(&self, node: Node<'_>) -> Option<Name> {
        let parent = node.name().parent()?;
        let label = node.name().labels().next()?;
        let name = Name::prepend(&[label, b"-n"].concat(), parent).ok()?;
        self.contents.find(name.view()).is_err().then_some(name)
    }

    fn finish(mut self, delegations: &[Node<'z>]) -> (Contents, Changes) {
        // The added names are unique: each delegation is chosen at most once, and `name_beside`
        // returns no name of the zone.
        self.added.sort_by(|a, b| a.0.cmp(&b.0));
        let chosen: Vec<(Node<'_>, Action)> =
            self.chosen.iter().map(|(place, action)| (delegations[*place], *action)).collect();
        let (mut chosen, mut added) = (chosen.into_iter().peekable(), self.added.into_iter().peekable());
        let mut run = NodesBuilder::default();
        let mut gone: Option<Node<'_>> = None;
        for node in self.contents.nodes() {
            while let Some((name, like)) =
                added.next_if(|(name, _)| name.view().cmp_canonical(node.name()).is_lt())
            {
                push(&mut run, &name, like);
            }
            let action = chosen.next_if(|(other, _)| other.name() == node.name()).map(|(_, action)| action);
            if action == Some(Action::Remove) {
                gone = Some(node);
            }
            if gone.is_some_and(|gone| node.name().is_at_or_below(gone.name())) {
                continue;
            }
            push_changed(&mut run, node, action == Some(Action::Alter));
        }
        added.for_each(|(name, like)| push(&mut run, &name, like));
        (Contents::from_parts(self.contents.apex(), vec![run]), self.done)
    }
}

/// Returns the nodes below a node.
fn below<'z>(node: Node<'z>) -> impl Iterator<Item = Node<'z>> {
    std::iter::successors(node.next(), |next| next.next())
        .take_while(move |next| next.name().is_below(node.name()))
}

fn records_of(node: Node<'_>, rtype: Rtype) -> u64 {
    node.rrset(rtype).map_or(0, |rrset| rrset.count() as u64)
}

/// Returns the type of the records that `Action::Alter` replaces at a delegation.
fn altered_type(node: Node<'_>) -> Rtype {
    if node.has(Rtype::DS) { Rtype::DS } else { Rtype::NS }
}

fn push(run: &mut NodesBuilder, name: &Name, like: Node<'_>) {
    run.begin_node(name.view());
    like.rrsets().for_each(|rrset| run.push_rrset(rrset));
}

fn push_changed(run: &mut NodesBuilder, node: Node<'_>, altered: bool) {
    run.begin_node(node.name());
    let altered = altered.then(|| altered_type(node));
    for rrset in node.rrsets() {
        let rtype = rrset.rtype();
        if Some(rtype) != altered && rtype != Rtype::SOA {
            run.push_rrset(rrset);
            continue;
        }
        let mut altered: Vec<Vec<u8>> = rrset.rdatas().map(|rdata| alter(rtype, rdata)).collect();
        altered.sort_by(|a, b| rdata::cmp_canonical(rtype, a, b));
        run.begin_rrset(rtype, rrset.covered(), rrset.ttl());
        altered.iter().for_each(|rdata| run.push_record(|out| out.extend_from_slice(rdata)));
    }
}

/// Returns changed RDATA. Different RDATA stay different.
fn alter(rtype: Rtype, rdata: &[u8]) -> Vec<u8> {
    let mut altered = rdata.to_vec();
    match rtype {
        // The RDATA end with five 4-octet numbers. The first is the serial (RFC 1035 §3.3.13).
        Rtype::SOA => {
            let serial = altered.len().checked_sub(20).and_then(|at| altered[at..].first_chunk_mut::<4>());
            if let Some(serial) = serial {
                *serial = u32::from_be_bytes(*serial).wrapping_add(1).to_be_bytes();
            }
        }
        // Change the last octet of the digest.
        Rtype::DS => {
            if let Some(last) = altered.last_mut() {
                *last ^= 1;
            }
        }
        // Insert one letter at the start of the server name if the label and the name have room for
        // it.
        _ => {
            if altered.len() < 255 && (1..63).contains(&altered[0]) {
                altered[0] += 1;
                altered.insert(1, b'x');
            }
        }
    }
    altered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{GenerateOptions, ZoneModel, generate};
    use nonesuch_zone::read::read_text;
    use nonesuch_zone::write::write_zone;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn read(text: &[u8]) -> Contents {
        read_text(text, Path::new("test"), Some(&"zz".parse().expect("a name"))).expect("a zone").contents
    }

    fn lines(contents: &Contents) -> BTreeSet<String> {
        let mut text = Vec::new();
        write_zone(contents, &mut text).expect("written");
        String::from_utf8(text).expect("UTF-8").lines().map(str::to_owned).collect()
    }

    #[test]
    fn delegations_without_room_for_a_neighbour_are_altered() {
        // "-n" makes the label longer than 63 octets.
        let label = |index: u32| format!("{index}{}", "x".repeat(61));
        let delegations: String = (0..8).map(|index| format!("{} NS ns.test.\n", label(index))).collect();
        let zone = read(format!("$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns.test.\n{delegations}").as_bytes());
        let (_, done) = change(&zone, 1.0, 7);
        assert_eq!((done.removed_delegations, done.added_delegations, done.altered_delegations), (2, 0, 2));
    }

    #[test]
    fn as_many_records_change_as_requested() {
        let mut text = Vec::new();
        generate(&GenerateOptions { like: ZoneModel::Tld, names: 2000, seed: 1, origin: "zz." }, &mut text)
            .expect("generated");
        let zone = read(&text);
        let (changed, done) = change(&zone, 0.05, 7);
        let (before, after) = (lines(&zone), lines(&changed));
        // The SOA record changes too.
        assert_eq!(before.difference(&after).count() as u64, done.removed_records + 1);
        assert_eq!(after.difference(&before).count() as u64, done.added_records + 1);
        let share = (done.removed_records + done.added_records) as f64 / zone.record_count() as f64;
        assert!((0.05..0.052).contains(&share), "{share}");
        assert!(
            done.removed_delegations > 10 && done.added_delegations > 10 && done.altered_delegations > 10
        );
        // The output is a valid zone in canonical order.
        let mut again = Vec::new();
        write_zone(&changed, &mut again).expect("written");
        assert_eq!(lines(&read(&again)), after);
        assert_eq!(changed.record_count(), zone.record_count() + done.added_records - done.removed_records);
        let names: Vec<_> = changed.nodes().map(|node| node.name()).collect();
        assert!(names.is_sorted_by(|a, b| a.cmp_canonical(*b).is_lt()));
        assert_eq!(lines(&change(&zone, 0.05, 7).0), after, "the same seed makes the same changes");
        assert_ne!(lines(&change(&zone, 0.05, 8).0), after);
    }

    #[test]
    fn a_zone_without_delegations_moves_its_serial() {
        let zone = read(b"@ 60 SOA ns h 4294967295 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n");
        let (changed, done) = change(&zone, 0.5, 1);
        assert_eq!((changed.soa().map(|soa| soa.serial), done), (Some(0), Changes::default()));
    }
}
