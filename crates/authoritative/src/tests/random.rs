//! Random zones with few labels, so that names collide. The oracle and the checker check each
//! response, and each response stays within its limits.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The labels and the apex of the names in a random zone.
pub(super) struct Names {
    pub(super) labels: [&'static str; 4],
    pub(super) apex: &'static str,
}

/// Plain labels; octets that sort before all letters; labels that differ only at the end; the root
/// zone; neighbours.
pub(super) const NAMES: [Names; 5] = [
    Names { labels: ["a", "b", "c", "*"], apex: "example." },
    Names { labels: ["a", "\\000", "a\\001", "*"], apex: "Example." },
    Names { labels: ["long-label", "long-labels", "long-labelt", "*"], apex: "zone.example." },
    Names { labels: ["a", "test", "c", "*"], apex: "." },
    NEIGHBOURS,
];

/// Labels that are adjacent or the first of all (RFC 4471 §3.1).
pub(super) const NEIGHBOURS: Names = Names { labels: ["a", "a\\000", "\\000", "*"], apex: "example." };

/// The labels of a name below the apex, from left to right.
pub(super) fn labels(least: usize, most: usize) -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(prop_oneof![4 => 0..3usize, 1 => Just(3usize)], least..=most)
}

impl Names {
    pub(super) fn text_of(&self, labels: &[usize]) -> String {
        let mut text: String = labels.iter().map(|label| format!("{}.", self.labels[*label])).collect();
        text.push_str(self.apex.strip_prefix('.').unwrap_or(self.apex));
        if text.is_empty() { String::from(".") } else { text }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Data {
    Address(u8),
    Text,
    Cname(Vec<usize>),
    Dname(Vec<usize>),
    Cut(Vec<usize>, bool),
    Outside,
}

fn data() -> impl Strategy<Value = Data> {
    prop_oneof![
        4 => any::<u8>().prop_map(Data::Address),
        2 => Just(Data::Text),
        3 => labels(0, 3).prop_map(Data::Cname),
        1 => labels(0, 2).prop_map(Data::Dname),
        3 => (labels(1, 3), any::<bool>()).prop_map(|(server, secure)| Data::Cut(server, secure)),
        1 => Just(Data::Outside),
    ]
}

/// Returns a zone file of these records. Omits records that no zone may contain (CNAME with other
/// data, a second DNAME) and records without a meaning defined by an RFC: cuts and DNAMEs at
/// wildcards (RFC 4592 §4.2, §4.4).
pub(super) fn zone_text(names: &Names, records: &[(Vec<usize>, Data)]) -> String {
    let text_of = |labels: &[usize]| names.text_of(labels);
    let mut owners: BTreeMap<&[usize], Vec<&Data>> = BTreeMap::new();
    for (owner, data) in records {
        let present = owners.entry(owner).or_default();
        let is_wildcard = owner.first() == Some(&3);
        let is_allowed = match data {
            Data::Cname(_) | Data::Outside => present.is_empty(),
            _ if present.iter().any(|other| matches!(other, Data::Cname(_) | Data::Outside)) => false,
            Data::Dname(_) => {
                !is_wildcard && !present.iter().any(|other| matches!(other, Data::Dname(_) | Data::Cut(..)))
            }
            Data::Cut(..) => !is_wildcard && !present.iter().any(|other| matches!(other, Data::Dname(_))),
            _ => true,
        };
        if is_allowed {
            present.push(data);
        }
    }
    let apex = names.apex;
    let mut text =
        format!("$TTL 3600\n{apex} SOA ns.test. h.test. 7 3600 300 3600000 900\n{apex} NS ns.test.\n");
    for (owner, all) in owners {
        let owner = text_of(owner);
        for data in all {
            text.push_str(&match data {
                Data::Address(last) => format!("{owner} A 192.0.2.{last}\n"),
                Data::Text => format!("{owner} TXT \"text\"\n"),
                Data::Cname(target) => format!("{owner} CNAME {}\n", text_of(target)),
                Data::Dname(target) => format!("{owner} DNAME {}\n", text_of(target)),
                Data::Cut(server, false) => format!("{owner} NS {}\n", text_of(server)),
                Data::Cut(server, true) => format!(
                    "{owner} NS {}\n{owner} DS 1 13 2 {}\n",
                    text_of(server),
                    "00112233445566778899AABBCCDDEEFF".repeat(2)
                ),
                Data::Outside => format!("{owner} CNAME outside.test.\n"),
            });
        }
    }
    text
}

pub(super) fn records() -> impl Strategy<Value = Vec<(Vec<usize>, Data)>> {
    proptest::collection::vec((labels(1, 4), data()), 0..14)
}

pub(super) const TYPES: [Rtype; 9] = [
    Rtype::A,
    Rtype::TXT,
    Rtype::AAAA,
    Rtype::NS,
    Rtype::DS,
    Rtype::CNAME,
    Rtype::DNAME,
    Rtype::SOA,
    Rtype::ANY,
];

/// Checks that the response to any query can be parsed, has the identifier and question of the
/// query, and stays within its limit.
pub(super) fn keep_limits(
    zone: &Zone,
    qname: &Name,
    qtype: Rtype,
    opt: Option<(u16, bool)>,
) -> Result<(), TestCaseError> {
    let octets = zone.send(&query(qname, qtype, opt), Transport::Udp).unwrap();
    let limit = opt.map_or(512, |(payload, _)| usize::from(payload.clamp(512, 1232)));
    prop_assert!(octets.len() <= limit);
    let message = Message::parse(&octets).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(message.header.id, ID);
    prop_assert_eq!(message.questions[0].name.wire(), qname.wire());
    prop_assert_eq!(message.opt().is_some(), opt.is_some());
    prop_assert!(
        has_one_denial_for_each_owner(&message),
        "two records at one owner\n{}",
        display_message(&message)
    );
    for section in [Section::Answer, Section::Authority, Section::Additional] {
        let mut lines: Vec<String> = message.section(section).map(whole_line).collect();
        lines.sort_unstable();
        prop_assert!(
            lines.windows(2).all(|pair| pair[0] != pair[1]),
            "twice in a section\n{}",
            display_message(&message)
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1500,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(4035),
        ..ProptestConfig::default()
    })]

    #[test]
    fn responses_are_as_the_oracle_says(
        records in records(),
        queries in proptest::collection::vec((labels(0, 5), 0..TYPES.len(), any::<bool>()), 12),
        names in 0..NAMES.len(),
        signing in 0..SIGNINGS.len(),
        salt in proptest::collection::vec(any::<u8>(), 0..3),
        iterations in 0..3u16,
        payload: u16,
    ) {
        let names = &NAMES[names];
        let text = zone_text(names, &records);
        let plain = read::read_text(text.as_bytes(), Path::new("test"), Some(&name(names.apex)));
        let plain = plain.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?.contents;
        let setup = SigningSetup { nsec3: Nsec3Params { salt, iterations }, ..SigningSetup::new(SIGNINGS[signing]) };
        let zone = Zone::from_contents(plain, &setup);
        for (labels, qtype, upper) in queries {
            let qname = names.text_of(&labels);
            let qname = name(&if upper { qname.to_uppercase() } else { qname });
            for dnssec_ok in [false, true] {
                if let Err(what) = zone.check_response(&qname, TYPES[qtype], dnssec_ok) {
                    return Err(TestCaseError::fail(format!("{what}\n{text}")));
                }
            }
            for qtype in [TYPES[qtype], Rtype::RRSIG, Rtype::NSEC, Rtype::NSEC3] {
                for opt in [None, Some((payload, false)), Some((payload, true))] {
                    keep_limits(&zone, &qname, qtype, opt)?;
                }
            }
        }
    }

    #[test]
    fn arbitrary_octets_are_answered_or_ignored(octets in proptest::collection::vec(any::<u8>(), 0..80), flip: bool) {
        let zone = Zone::new("example. 1 SOA a. b. 1 2 3 4 5\nexample. 1 NS a.\n", "example.", None);
        let mut octets = octets;
        if flip && octets.len() > HEADER {
            // The header of a query, so that the server parses the rest.
            octets[2..HEADER].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        }
        if let Some(response) = zone.send(&octets, Transport::Udp) {
            prop_assert!(Message::parse(&response).is_ok());
            prop_assert_eq!(&response[..2], &octets[..2]);
            prop_assert!(response.len() <= 512);
        }
    }
}
