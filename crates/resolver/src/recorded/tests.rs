use super::*;
use crate::testing::name;
use crate::trust_anchors::AnchorRecord;
use nonesuch_crypto::{DigestType, PrivateKey};
use nonesuch_dnssec::keys::ds_rdata;
use nonesuch_dnssec::validate::InsecureReason;
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, sign};
use nonesuch_proto::message::{Header, flags};
use nonesuch_zone::{Contents, read};

const NOW: u32 = 1_750_000_000;

/// A signed zone with a KSK and a ZSK.
struct Zone {
    contents: Contents,
    ksk: Vec<u8>,
}

impl Zone {
    /// Signs with keys of `seed`.
    fn new(apex: &str, seed: u8, records: &str) -> Self {
        let text = format!(
            "$ORIGIN {apex}\n$TTL 3600\n@ SOA ns.test. h.test. 7 3600 300 3600000 900\n@ NS ns.test.\n{records}"
        );
        let apex = name(apex);
        let source = read::read_text(text.as_bytes(), "test".as_ref(), Some(&apex)).unwrap().contents;
        let pair = |flags, seed: u8| {
            let secret = data_encoding::BASE64.encode(&[seed; 32]);
            let secret = format!("Private-key-format: v1.3\nAlgorithm: 15 (X)\nPrivateKey: {secret}\n");
            KeyPair::new(apex.clone(), flags, PrivateKey::from_bind(&secret).unwrap())
        };
        let pairs = vec![pair(257, seed), pair(256, seed + 1)];
        let ksk = pairs[0].dnskey_rdata();
        let options = SignOptions::new(Mechanism::Nsec, NOW - 3600, NOW + 86_400);
        let contents = sign(&source, &KeySet::new(&apex, pairs).unwrap(), &options).unwrap().into_contents();
        Self { contents, ksk }
    }

    fn apex(&self) -> &Name {
        self.contents.apex()
    }

    fn ds(&self) -> Vec<u8> {
        ds_rdata(self.apex().view(), &self.ksk, DigestType::SHA256).unwrap()
    }

    /// The DS record in zone file form.
    fn ds_line(&self) -> String {
        let ds = self.ds();
        let tag = u16::from_be_bytes([ds[0], ds[1]]);
        format!("{} DS {tag} 15 2 {}\n", self.apex(), data_encoding::HEXUPPER.encode(&ds[4..]))
    }

    /// The RRset with its signatures.
    fn rrset(&self, section: Section, owner: &str, rtype: Rtype) -> Vec<Record> {
        let owner = name(owner);
        let node = self.contents.find(owner.view()).unwrap();
        let found = [node.rrset(rtype).unwrap()].into_iter().chain(node.signatures(rtype));
        let record = |rrset: nonesuch_zone::Rrset<'_>, rdata: &[u8]| Record {
            section,
            owner: owner.clone(),
            rtype: rrset.rtype(),
            class: Class::IN,
            ttl: rrset.ttl(),
            rdata: rdata.to_vec(),
        };
        found
            .flat_map(|rrset| rrset.rdatas().map(move |rdata| (rrset, rdata)))
            .map(|(rrset, rdata)| record(rrset, rdata))
            .collect()
    }

    fn answer(&self, owner: &str, rtype: Rtype) -> Arc<Message> {
        response(owner, rtype, self.rrset(Section::Answer, owner, rtype))
    }

    /// The denial of a type by the NSEC record of its owner.
    fn no_data(&self, owner: &str, rtype: Rtype) -> Arc<Message> {
        let apex = self.apex().to_string();
        let soa = self.rrset(Section::Authority, &apex, Rtype::SOA);
        response(owner, rtype, [soa, self.rrset(Section::Authority, owner, Rtype::NSEC)].concat())
    }

    fn anchors(&self) -> TrustAnchors {
        let mut anchors = TrustAnchors::default();
        anchors.insert(self.apex().view(), AnchorRecord::Ds(self.ds()));
        anchors
    }
}

fn response(owner: &str, rtype: Rtype, records: Vec<Record>) -> Arc<Message> {
    let questions = vec![message::Question { name: name(owner), rtype, class: Class::IN }];
    Arc::new(Message { header: Header { id: 1, flags: flags::QR, counts: [0; 4] }, questions, records })
}

fn without_signatures(message: &Message) -> Arc<Message> {
    let mut message = message.clone();
    message.records.retain(|record| record.rtype != Rtype::RRSIG);
    Arc::new(message)
}

fn validate_all(
    anchors: TrustAnchors,
    messages: &[Arc<Message>],
) -> (RecordedResponses, Vec<RecordedValidation>) {
    let mut recorded = RecordedResponses::new(anchors, NOW);
    let question = |message: &Arc<Message>| (message.questions[0].name.clone(), message.questions[0].rtype);
    for message in messages {
        let (name, rtype) = question(message);
        recorded.add(Question { name: name.view(), rtype }, message);
    }
    let validate = |message| {
        let (name, rtype) = question(message);
        recorded.validate(Question { name: name.view(), rtype }, message)
    };
    let validations = messages.iter().map(validate).collect();
    (recorded, validations)
}

/// The result for the first message.
fn first(anchors: TrustAnchors, messages: &[Arc<Message>]) -> RecordedValidation {
    validate_all(anchors, messages).1.swap_remove(0)
}

#[track_caller]
fn expect(validation: &RecordedValidation, status: &str, reason: &str) {
    let found = validation.reason().map_or_else(String::new, |(reason, _)| reason);
    assert!(validation.status() == status && found.contains(reason), "{} {found}", validation.status());
}

/// The root zone, two child zones, and the responses of the chain of trust for the first child zone.
fn tree() -> (Zone, Zone, Zone, Vec<Arc<Message>>) {
    let example = Zone::new("example.", 10, "a A 192.0.2.1\nc CNAME x.other.\nu NS ns.test.\n");
    let other = Zone::new("other.", 20, "x A 192.0.2.2\n");
    let delegations = "example. NS ns.test.\nother. NS ns.test.\nplain. NS ns.test.\n\
        odd. NS ns.test.\nodd. DS 1 3 2 0123456789012345678901234567890123456789012345678901234567890123\n";
    let root = Zone::new(".", 1, &format!("{delegations}{}{}", example.ds_line(), other.ds_line()));
    let chain = vec![
        root.answer(".", Rtype::DNSKEY),
        root.answer("example.", Rtype::DS),
        example.answer("example.", Rtype::DNSKEY),
    ];
    (root, example, other, chain)
}

#[test]
fn an_alias_is_followed_into_another_zone_of_the_same_response() {
    let (root, example, other, mut messages) = tree();
    let alias = example.rrset(Section::Answer, "c.example.", Rtype::CNAME);
    let target = other.rrset(Section::Answer, "x.other.", Rtype::A);
    messages.insert(0, response("c.example.", Rtype::A, [alias.clone(), target.clone()].concat()));
    expect(&first(root.anchors(), &messages), "indeterminate", "no response for other. DS");
    messages.push(root.answer("other.", Rtype::DS));
    expect(&first(root.anchors(), &messages), "indeterminate", "no response for other. DNSKEY");
    messages.push(other.answer("other.", Rtype::DNSKEY));
    let found = first(root.anchors(), &messages);
    expect(&found, "secure", "");
    assert_eq!((found.proved(), found.zone.clone()), (Some(&ProvedAnswer::Answer), Some(name("other."))));
    let mut changed = target;
    changed[0].rdata[3] ^= 1;
    messages[0] = response("c.example.", Rtype::A, [alias.clone(), changed].concat());
    expect(&first(root.anchors(), &messages), "bogus", "zone other.: x.other. A");
    messages[0] = response("c.example.", Rtype::A, alias);
    let found = first(root.anchors(), &messages);
    expect(&found, "secure", "");
    assert!(matches!(found.proved(), Some(ProvedAnswer::Alias { .. })));
}

/// A zone with its own trust anchor depends neither on its parent nor on records that the parent signs.
#[test]
fn the_closest_trust_anchor_decides() {
    let (root, example, _, chain) = tree();
    let mut anchors = root.anchors();
    anchors.insert(example.apex().view(), AnchorRecord::Dnskey(example.ksk.clone()));
    let answer = example.answer("a.example.", Rtype::A);
    let messages = [answer.clone(), chain[2].clone()];
    expect(&first(anchors.clone(), &messages), "secure", "");
    // The root zone signs a record of the child zone.
    let parent = Zone::new(".", 1, "a.example. A 192.0.2.66\n");
    let forged = parent.answer("a.example.", Rtype::A);
    expect(&first(root.anchors(), &[forged.clone(), chain[0].clone()]), "secure", "");
    let messages = [forged.clone(), chain[0].clone(), chain[2].clone()];
    expect(&first(anchors, &messages), "indeterminate", "no signature");
    // The DS RRset in the input shows that this record is not of the root zone.
    expect(&first(root.anchors(), &[&[forged], &*chain].concat()), "bogus", "its signer");
    // Another key as trust anchor.
    let other = Zone::new("example.", 30, "");
    expect(
        &first(other.anchors(), &[answer, chain[2].clone()]),
        "bogus",
        "example. DNSKEY: no DNSKEY record matches",
    );
}

#[test]
fn keys_of_a_trust_anchor_are_enough_only_if_they_sign() {
    let (_, example, ..) = tree();
    let anchors = |rdatas: &[&[u8]]| {
        let mut anchors = TrustAnchors::default();
        rdatas
            .iter()
            .for_each(|rdata| anchors.insert(name("example.").view(), AnchorRecord::Dnskey(rdata.to_vec())));
        anchors
    };
    let answer = [example.answer("a.example.", Rtype::A)];
    let dnskeys: Vec<&[u8]> = example.contents.apex_rrset(Rtype::DNSKEY).unwrap().rdatas().collect();
    expect(&first(anchors(&dnskeys), &answer), "secure", "");
    expect(&first(anchors(&[&example.ksk]), &answer), "indeterminate", "no response for example. DNSKEY");
    expect(&first(example.anchors(), &answer), "indeterminate", "no response for example. DNSKEY");
    expect(&first(TrustAnchors::default(), &answer), "indeterminate", "no trust anchor");
}

#[test]
fn the_chain_ends_at_unsigned_delegations_and_unknown_algorithms() {
    let (root, example, _, mut messages) = tree();
    let address = without_signatures(&example.answer("a.example.", Rtype::A));
    let unsigned_answer = |owner: &str| {
        let mut message = Message {
            questions: response(owner, Rtype::A, Vec::new()).questions.clone(),
            ..(*address).clone()
        };
        message.records[0].owner = name(owner);
        Arc::new(message)
    };
    for (owner, proof, reason) in [
        ("www.plain.", root.no_data("plain.", Rtype::DS), InsecureReason::UnsignedDelegation),
        ("odd.", root.answer("odd.", Rtype::DS), InsecureReason::UnsupportedAlgorithms),
        ("b.u.example.", example.no_data("u.example.", Rtype::DS), InsecureReason::UnsignedDelegation),
    ] {
        messages.insert(0, unsigned_answer(owner));
        expect(&first(root.anchors(), &messages), "indeterminate", "has no signature");
        messages.push(proof);
        let found = first(root.anchors(), &messages);
        expect(&found, "insecure", &reason.to_string());
        assert!(matches!(found.result, RecordedResult::Insecure(_, found) if found == reason));
        // A forged proof is none.
        let last = messages.len() - 1;
        messages[last] = without_signatures(&messages[last]);
        expect(&first(root.anchors(), &messages), "indeterminate", "has no signature");
        messages.truncate(last);
        messages.remove(0);
    }
    // A response for DS shows that the name is no zone cut: the zone must sign its records.
    messages.insert(0, address);
    messages.push(example.no_data("a.example.", Rtype::DS));
    expect(&first(root.anchors(), &messages), "bogus", "zone example.: a.example. A: ");
}

#[test]
fn one_valid_response_of_the_chain_is_enough() {
    let (root, example, _, chain) = tree();
    let answer = example.answer("a.example.", Rtype::A);
    for position in 0..chain.len() {
        let mut forged = (*chain[position]).clone();
        forged.records[0].rdata[4] ^= 1;
        let forged = Arc::new(forged);
        let mut messages = [&[answer.clone(), forged.clone()], &*chain].concat();
        let (_, found) = validate_all(root.anchors(), &messages);
        expect(&found[0], "secure", "");
        expect(&found[1], "bogus", "");
        messages.remove(position + 2);
        expect(&first(root.anchors(), &messages), "bogus", &format!("{} ", forged.questions[0].name));
    }
}

/// A forged copy with the same records does not hide the response, whatever comes first.
#[test]
fn the_order_of_responses_with_equal_records_does_not_matter() {
    let (root, example, _, chain) = tree();
    let answer = example.answer("a.example.", Rtype::A);
    for index in 0..chain.len() {
        let mut failed = Message::clone(&chain[index]);
        failed.header.flags |= Rcode::SERVFAIL.0;
        let mut other = Message::clone(&chain[index]);
        other.questions[0].name = name("other.example.");
        for forged in [failed, other].map(Arc::new) {
            let (asked, rtype) = (chain[index].questions[0].name.clone(), chain[index].questions[0].rtype);
            let mut recorded = RecordedResponses::new(root.anchors(), NOW);
            recorded.add(Question { name: asked.view(), rtype }, &forged);
            for message in &chain {
                let (name, rtype) = (message.questions[0].name.clone(), message.questions[0].rtype);
                recorded.add(Question { name: name.view(), rtype }, message);
            }
            let asked = name("a.example.");
            let found = recorded.validate(Question { name: asked.view(), rtype: Rtype::A }, &answer);
            expect(&found, "secure", "");
        }
    }
}

/// Names without responses take no memory, and the number of responses to one question is limited.
#[test]
fn memory_is_bounded() {
    let (root, example, _, mut messages) = tree();
    let deep = format!("{}example.", "x.".repeat(120));
    let mut records = example.rrset(Section::Answer, "a.example.", Rtype::A);
    records.iter_mut().for_each(|record| record.owner = name(&deep));
    messages.insert(0, response(&deep, Rtype::A, records));
    let mut without = (*messages[0]).clone();
    without.records.truncate(1);
    messages.push(Arc::new(without));
    let (mut recorded, found) = validate_all(root.anchors(), &messages);
    assert_eq!((found[0].status(), found[4].status()), ("bogus", "indeterminate"));
    assert!(recorded.cuts.len() + recorded.zones.len() <= 3, "{recorded:?}");
    for octet in 0..=255 {
        let mut message = (*messages[2]).clone();
        message.records[0].rdata = vec![octet; 40];
        recorded.add(Question { name: name("example.").view(), rtype: Rtype::DS }, &Arc::new(message));
    }
    assert!(recorded.responses.values().all(|known| known.len() <= RESPONSES_PER_QUESTION));
    let owner = name("a.example.");
    let answer = example.answer("a.example.", Rtype::A);
    expect(&recorded.validate(Question { name: owner.view(), rtype: Rtype::A }, &answer), "secure", "");
}
