//! The picture of a chain is bounded, whatever a server sends.

use super::*;
use crate::report::Form;
use nonesuch_proto::message::{Header, Record, flags};
use nonesuch_proto::{Class, Name};

fn message(name: &Name, rtype: Rtype, rdatas: impl Iterator<Item = Vec<u8>>) -> Message {
    let record = |rdata| Record {
        section: Section::Answer,
        owner: name.clone(),
        rtype,
        class: Class::IN,
        ttl: 60,
        rdata,
    };
    let header = Header { id: 0, flags: flags::QR | flags::AA, counts: [0; 4] };
    Message { header, questions: Vec::new(), records: rdatas.map(record).collect() }
}

#[test]
fn the_number_of_keys_and_zones_is_bounded() {
    let names: Vec<Name> =
        (0..100).map(|number| format!("z{number}.example.").parse().expect("a name")).collect();
    let messages: Vec<Message> = names
        .iter()
        .map(|name| message(name, Rtype::DNSKEY, (0..200).map(|number| vec![1, 1, 3, 200, number])))
        .collect();
    let verdict = Verdict::NoKeys { reason: "no reason" };
    let steps: Vec<ChainStep<'_>> = names
        .iter()
        .zip(&messages)
        .map(|(name, message)| ChainStep { name, rtype: Rtype::DNSKEY, message, verdict })
        .collect();
    let picture = chain_picture("many", &steps, 0);
    assert_eq!(picture.zones.len(), ZONES_MAX);
    for zone in &picture.zones {
        let keys = zone.shapes.iter().filter(|shape| matches!(shape.form, Form::Key { .. })).count();
        assert_eq!((keys, zone.omitted, zone.status), (8, 192, PartStatus::Bogus));
    }
    assert!(picture.to_svg().expect("a picture").len() < 400_000);
}

#[test]
fn a_response_without_keys_and_answer_is_shown() {
    let apex: Name = "example.".parse().expect("a name");
    let keys = message(&apex, Rtype::DNSKEY, [vec![1, 1, 3, 13, 7]].into_iter());
    let name: Name = "www.example.".parse().expect("a name");
    let empty = message(&name, Rtype::A, std::iter::empty());
    let steps = [
        ChainStep {
            name: &apex,
            rtype: Rtype::DNSKEY,
            message: &keys,
            verdict: Verdict::NoKeys { reason: "r1" },
        },
        ChainStep {
            name: &name,
            rtype: Rtype::A,
            message: &empty,
            verdict: Verdict::NoKeys { reason: "r2" },
        },
    ];
    let picture = chain_picture("failure", &steps, 0);
    let denial = picture.zones[0].shapes.iter().find(|shape| shape.form == Form::Denial).expect("a shape");
    assert_eq!((denial.status, denial.lines[0].as_str()), (PartStatus::Bogus, "www.example. A"));
    assert!(picture.notes.iter().any(|note| note.ends_with("r2")), "{:?}", picture.notes);
}
