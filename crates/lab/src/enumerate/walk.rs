//! Walks a chain of NSEC records: each record has the next name (RFC 4034 §4.1.1).

use super::StopReason;
use super::client::{Client, RECORDS_MAX, records_of, types_of};
use nonesuch_proto::message::Message;
use nonesuch_proto::{Name, NameRef, Rtype};
use std::collections::BTreeMap;

/// The NSEC records found so far, by owner in canonical order.
#[derive(Clone, Debug, Default)]
pub struct NsecChain {
    records: BTreeMap<Name, NsecRecord>,
}

/// An NSEC record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NsecRecord {
    /// The next name.
    pub next: Name,
    /// The types of the owner.
    pub types: Vec<Rtype>,
}

impl NsecChain {
    /// The records in canonical order of their owners.
    pub fn records(&self) -> impl Iterator<Item = (&Name, &NsecRecord)> {
        self.records.iter()
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Adds a record, as of a state.
    pub(super) fn insert(&mut self, owner: Name, record: NsecRecord) {
        self.records.insert(owner, record);
    }

    /// Adds the NSEC records of the zone in a response. A server that also has a child zone answers with the
    /// record at the apex of the child, which has the SOA bit (RFC 4035 §2.3), and not with that of the delegation.
    fn add(&mut self, response: &Message, apex: NameRef<'_>) {
        for (owner, rdata) in records_of(response, apex, Rtype::NSEC).take(RECORDS_MAX) {
            let Ok((next, map)) = NameRef::split_from(rdata) else { continue };
            let record = NsecRecord { next: next.to_canonical(), types: types_of(map) };
            if owner != apex && record.types.contains(&Rtype::SOA) {
                continue;
            }
            self.records.insert(owner.to_canonical(), record);
        }
    }
}

/// Walks the chain from the apex until it returns to the apex. `on_step` is called after each record.
///
/// # Errors
/// The chain is interrupted or loops, a limit is reached, or the server does not answer.
pub(super) fn walk(
    client: &mut Client,
    zone: &Name,
    chain: &mut NsecChain,
    mut on_step: impl FnMut(&NsecChain, u64),
) -> Result<(), StopReason> {
    let apex = zone.view().to_canonical();
    let mut name = apex.clone();
    loop {
        let next = find_record(client, &apex, &name, chain)?;
        if next == apex {
            return Ok(());
        }
        if next.view() <= name.view() || !next.view().is_at_or_below(apex.view()) {
            return Err(StopReason::Backwards { owner: name, next });
        }
        on_step(chain, client.queries());
        name = next;
    }
}

/// Returns the next name of the record at `name`; sends queries unless the record is known.
///
/// The query for the NSEC record itself finds it, except at a secure delegation: its response is a
/// referral without NSEC records. There, the denial of the first name after the delegation and all
/// names below it has the record.
fn find_record(
    client: &mut Client,
    apex: &Name,
    name: &Name,
    chain: &mut NsecChain,
) -> Result<Name, StopReason> {
    let after = name.view().successor_of_subtree(apex.view());
    let questions = [Some((name.clone(), Rtype::NSEC)), (after != *apex).then_some((after, Rtype::A))];
    let known = |chain: &NsecChain| chain.records.get(name).map(|record| record.next.clone());
    if let Some(next) = known(chain) {
        return Ok(next);
    }
    for (question, rtype) in questions.into_iter().flatten() {
        let response = client.query(question.view(), rtype)?;
        chain.add(&response, apex.view());
        if let Some(next) = known(chain) {
            return Ok(next);
        }
    }
    Err(StopReason::NoRecord(name.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Class;
    use nonesuch_proto::message::{Header, Record, Section, flags};

    #[test]
    fn the_record_at_the_apex_of_a_child_is_not_part_of_the_chain() {
        let apex: Name = "example.".parse().expect("a name");
        let record = |owner: &str, bitmap: u8| Record {
            section: Section::Authority,
            owner: owner.parse().expect("a name"),
            rtype: Rtype::NSEC,
            class: Class::IN,
            ttl: 60,
            rdata: [apex.wire(), &[0, 1, bitmap]].concat(),
        };
        // NS and SOA; NS.
        let records = vec![
            record("example.", 0b0010_0010),
            record("child.example.", 0b0010_0010),
            record("a.example.", 0b0010_0000),
        ];
        let response = Message {
            header: Header { id: 0, flags: flags::QR, counts: [0; 4] },
            questions: Vec::new(),
            records,
        };
        let mut chain = NsecChain::default();
        chain.add(&response, apex.view());
        let owners: Vec<String> = chain.records().map(|(owner, _)| owner.to_string()).collect();
        assert_eq!(owners, ["example.", "a.example."]);
    }
}
