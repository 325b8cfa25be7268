//! Computes the size of a zone transfer by packing the zone into messages (RFC 5936 §2.2).
//!
//! Names are compressed where RFC 3597 §4 permits it: owner names and names in the RDATA of the
//! types in RFC 1035. A message has at most the size that compression pointers can reach, as with
//! Knot DNS and NSD. In larger messages, names beyond this offset would be uncompressed, which
//! needs more octets than the headers of additional messages. Only the first message has a
//! question.

use nonesuch_proto::message::{Header, flags};
use nonesuch_proto::{Class, Rtype, rdata};
use nonesuch_zone::{Contents, Rrset};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Maximum offset of a compression pointer: 14 bits (RFC 1035 §4.1.4).
const POINTER_MAX: usize = 0x3fff;
/// Maximum octets of a message, unless a single record needs more.
const MESSAGE_MAX: usize = POINTER_MAX + 1;
/// Maximum octets of a message over TCP (RFC 1035 §4.2.2).
const TCP_MAX: usize = 65_535;
const AXFR: u16 = 252;

/// Size of a zone transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    pub messages: u64,
    /// Number of records. The SOA record counts twice: at the start and at the end.
    pub records: u64,
    /// Octets of all messages, without the two-octet length fields of TCP.
    pub octets: u64,
}

/// Computes the size of a transfer of the zone.
pub(crate) fn transfer(contents: &Contents) -> Transfer {
    pack(contents, |_| {})
}

/// Packs the zone into messages and calls `take` with each message.
pub(crate) fn pack(contents: &Contents, take: impl FnMut(&[u8])) -> Transfer {
    let mut packer = Packer::new(contents, take);
    let soa = contents.apex_rrset(Rtype::SOA);
    let apex = contents.apex().wire();
    packer.push_rrset(apex, soa);
    for node in contents.nodes() {
        for rrset in node.rrsets().filter(|rrset| rrset.rtype() != Rtype::SOA) {
            packer.push_rrset(node.name().wire(), Some(rrset));
        }
    }
    packer.push_rrset(apex, soa);
    packer.flush();
    packer.done
}

struct Packer<F> {
    take: F,
    message: Vec<u8>,
    /// Number of records in the current message.
    count: u16,
    /// Offsets of names in the current message, by lower-case wire form.
    names: HashMap<Vec<u8>, u16>,
    done: Transfer,
}

impl<F: FnMut(&[u8])> Packer<F> {
    fn new(contents: &Contents, take: F) -> Self {
        let mut packer =
            Self { take, message: Vec::new(), count: 0, names: HashMap::new(), done: Transfer::default() };
        packer.begin(1);
        packer.push_name(contents.apex().wire());
        packer.message.extend_from_slice(&AXFR.to_be_bytes());
        packer.message.extend_from_slice(&Class::IN.0.to_be_bytes());
        packer
    }

    fn begin(&mut self, questions: u16) {
        let header = Header { id: 0, flags: flags::QR | flags::AA, counts: [questions, 0, 0, 0] };
        self.message.clear();
        self.message.extend_from_slice(&header.to_octets());
        self.names.clear();
        self.count = 0;
    }

    fn flush(&mut self) {
        self.message[6..8].copy_from_slice(&self.count.to_be_bytes());
        (self.take)(&self.message);
        self.done.messages += 1;
        self.done.records += u64::from(self.count);
        self.done.octets += self.message.len() as u64;
    }

    fn push_rrset(&mut self, owner: &[u8], rrset: Option<Rrset<'_>>) {
        for rdata in rrset.iter().flat_map(|rrset| rrset.rdatas()) {
            let Some(rrset) = rrset else { continue };
            let begun = self.message.len();
            self.push_record(owner, rrset, rdata);
            if self.message.len() > MESSAGE_MAX && self.count > 0 {
                self.message.truncate(begun);
                self.flush();
                self.begin(0);
                self.push_record(owner, rrset, rdata);
            }
            // Skip a record that does not fit into any message: it cannot be transferred.
            if self.message.len() > TCP_MAX {
                self.begin(0);
            } else {
                self.count += 1;
            }
        }
    }

    fn push_record(&mut self, owner: &[u8], rrset: Rrset<'_>, rdata: &[u8]) {
        self.push_name(owner);
        for word in [rrset.rtype().0, Class::IN.0] {
            self.message.extend_from_slice(&word.to_be_bytes());
        }
        self.message.extend_from_slice(&rrset.ttl().to_be_bytes());
        let length_at = self.message.len();
        self.message.extend_from_slice(&[0, 0]);
        let mut written = 0;
        for field in rdata::names(rrset.rtype(), rdata).filter(|field| field.compress) {
            self.message.extend_from_slice(&rdata[written..field.range.start]);
            self.push_name(&rdata[field.range.clone()]);
            written = field.range.end;
        }
        self.message.extend_from_slice(&rdata[written..]);
        let length = (self.message.len() - length_at - 2) as u16;
        self.message[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
    }

    /// Writes a name. A compression pointer replaces its longest suffix that the message already
    /// contains.
    fn push_name(&mut self, wire: &[u8]) {
        let lower = wire.to_ascii_lowercase();
        let mut at = 0;
        while lower[at] != 0 {
            if let Some(target) = self.names.get(&lower[at..]) {
                self.message.extend_from_slice(&(0xc000 | target).to_be_bytes());
                return;
            }
            if self.message.len() <= POINTER_MAX {
                self.names.insert(lower[at..].to_vec(), self.message.len() as u16);
            }
            let end = at + 1 + usize::from(lower[at]);
            self.message.extend_from_slice(&wire[at..end]);
            at = end;
        }
        self.message.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Name;
    use nonesuch_proto::message::{Message, Section};
    use nonesuch_zone::read::read_text;
    use std::path::Path;

    fn zone(text: &str) -> Contents {
        read_text(text.as_bytes(), Path::new("test"), Some(&"example".parse().expect("a name")))
            .expect("a zone")
            .contents
    }

    fn packed(contents: &Contents) -> (Transfer, Vec<Vec<u8>>) {
        let mut messages = Vec::new();
        let transfer = pack(contents, |message| messages.push(message.to_vec()));
        (transfer, messages)
    }

    #[test]
    fn a_small_zone_is_one_message_of_known_size() {
        let contents = zone("@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n");
        let (transfer, messages) = packed(&contents);
        // Header 12, question 9 + 4; SOA 12 + 5 (ns) + 4 (h) + 20; NS 12 + 2; A 12 + 4; SOA with
        // pointers 12 + 2 + 2 + 20.
        let octets = 12 + 13 + 41 + 14 + 16 + 36;
        assert_eq!(transfer, Transfer { messages: 1, records: 4, octets });
        assert_eq!(messages[0].len() as u64, octets);
    }

    #[test]
    fn every_record_comes_through_in_messages_that_can_be_read() {
        let mut text = "@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\n".to_owned();
        for index in 0..3000 {
            text.push_str(&format!(
                "d{index} 60 NS ns.d{index}\nd{index} 60 NS NS\nns.D{index} 60 A 192.0.2.1\n"
            ));
            text.push_str(&format!("d{index} 60 TXT \"{}\"\n", "x".repeat(index % 200)));
        }
        let contents = zone(&text);
        let (transfer, messages) = packed(&contents);
        assert!(transfer.messages > 5 && messages.iter().all(|message| message.len() <= MESSAGE_MAX));
        let parsed: Vec<Message> =
            messages.iter().map(|octets| Message::parse(octets).expect("sound")).collect();
        let questions: Vec<usize> = parsed.iter().map(|message| message.questions.len()).collect();
        assert!(questions[0] == 1 && questions[1..].iter().all(|count| *count == 0));
        let records: Vec<_> = parsed.iter().flat_map(|message| message.section(Section::Answer)).collect();
        assert_eq!(records.len() as u64, contents.record_count() + 1);
        assert_eq!(transfer.records, contents.record_count() + 1);
        let ends = [records[0], records[records.len() - 1]];
        assert!(ends.iter().all(|record| record.rtype == Rtype::SOA));
        let expected = contents.nodes().flat_map(|node| {
            let of = move |rrset: Rrset<'_>| {
                let head = (node.name().to_name(), rrset.rtype(), rrset.ttl());
                rrset.rdatas().map(|rdata| (head.clone(), rdata.to_vec())).collect::<Vec<_>>()
            };
            node.rrsets().filter(|rrset| rrset.rtype() != Rtype::SOA).flat_map(of).collect::<Vec<_>>()
        });
        let lower = |rdata: &[u8]| rdata.to_ascii_lowercase();
        let text = |name: &Name| name.to_string().to_ascii_lowercase();
        let mut seen = records[1..records.len() - 1].iter();
        for ((owner, rtype, ttl), rdata) in expected {
            let record = seen.next().expect("as many");
            // A compression pointer can refer to a name with different case.
            assert_eq!((text(&record.owner), record.rtype, record.ttl), (text(&owner), rtype, ttl));
            assert_eq!(lower(&record.rdata), lower(&rdata));
        }
    }
}
