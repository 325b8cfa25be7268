//! From query to response, for zones without DNSSEC and with each denial mechanism: what the tests share.

mod cases;
mod checker;
mod form;
mod oracle;
mod random;
mod rfc;
mod size;

use crate::{Transport, answer};
use checker::Chain;
use nonesuch_crypto::{Algorithm, PrivateKey};
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, Nsec3Params, SignOptions, sign};
use nonesuch_proto::message::{HEADER, Message, Rcode, Record, Section, flags, push_query};
use nonesuch_proto::{Name, Rtype, edns, rdata};
use nonesuch_zone::{Contents, Image, ImageFile, Verification, image, read};
use std::collections::BTreeSet;
use std::path::Path;

const INCEPTION: u32 = 1_750_000_000;
const ID: u16 = 0x5a17;
/// Without DNSSEC, and signed in each way.
const SIGNINGS: [Option<Mechanism>; 4] =
    [None, Some(Mechanism::Nsec), Some(Mechanism::Nsec3), Some(Mechanism::Nsec3OptOut)];

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// A key that is the same in every run.
fn keys(zone: &Name) -> KeySet {
    let scalar = data_encoding::BASE64.encode(&[7; 32]);
    let text =
        format!("Private-key-format: v1.3\nAlgorithm: {} (X)\nPrivateKey: {scalar}\n", Algorithm::ED25519.0);
    let key = KeyPair::new(zone.clone(), 257, PrivateKey::from_bind(&text).unwrap());
    KeySet::new(zone, vec![key]).unwrap()
}

/// A zone as it was before signing and as it is served.
struct Zone {
    plain: Contents,
    image: Image,
    /// The same image, written to a file and opened.
    from_file: Image,
    signing: Option<Mechanism>,
}

impl Zone {
    fn new(text: &str, apex: &str, signing: Option<Mechanism>) -> Self {
        let read = read::read_text(text.as_bytes(), Path::new("test"), Some(&name(apex)));
        let plain = read.unwrap_or_else(|error| panic!("{error}\n{text}")).contents;
        Self::from_contents(plain, signing, Nsec3Params::default())
    }

    fn from_contents(plain: Contents, signing: Option<Mechanism>, nsec3: Nsec3Params) -> Self {
        let (image, from_file) = match signing {
            None => images(&plain),
            Some(mechanism) => {
                let options = SignOptions {
                    nsec3,
                    drop_foreign_dnskeys: true,
                    ..SignOptions::new(mechanism, INCEPTION, INCEPTION + 86_400)
                };
                let signed = sign(&plain, &keys(plain.apex()), &options).unwrap();
                images(signed.contents())
            }
        };
        Self { plain, image, from_file, signing }
    }

    /// The response over TCP.
    fn ask(&self, qname: &Name, qtype: Rtype, dnssec_ok: bool) -> Message {
        let octets = self.send(&query(qname, qtype, Some((1232, dnssec_ok))), Transport::Tcp).unwrap();
        let message = Message::parse(&octets).unwrap_or_else(|error| panic!("{qname} {qtype}: {error}"));
        assert_eq!(message.header.id, ID);
        assert_eq!(message.questions.len(), 1);
        assert_eq!(message.questions[0].0.wire(), qname.wire(), "the question is repeated octet by octet");
        assert_eq!(message.questions[0].1, qtype);
        assert_eq!(message.header.flags & (flags::TC | flags::RA | flags::AD), 0);
        message
    }

    fn send(&self, octets: &[u8], transport: Transport) -> Option<Vec<u8>> {
        let [memory, file] = [&self.image, &self.from_file].map(|image| {
            let mut out = vec![1, 2, 3];
            answer(image, octets, transport, &mut out).then_some(out)
        });
        assert_eq!(memory, file, "an image answers the same from a file");
        memory
    }

    /// Asks, and judges the response by the oracle and the checker.
    fn judge(&self, qname: &Name, qtype: Rtype, dnssec_ok: bool) -> Result<Message, String> {
        let message = self.ask(qname, qtype, dnssec_ok);
        let expected = oracle::Oracle::new(&self.plain).resolve(qname, qtype);
        let fail = |what: &str| {
            Err(format!(
                "{qname} {qtype} {:?} DO {dnssec_ok}: {what}\nexpected {expected:#?}\n{}",
                self.signing,
                shown(&message)
            ))
        };
        if message.rcode() != expected.rcode {
            return fail("rcode");
        }
        if (message.header.flags & flags::AA != 0) != expected.authoritative {
            return fail("AA");
        }
        let data = |section| -> Vec<String> {
            message.section(section).filter(|r| !is_dnssec(r.rtype)).map(line).collect()
        };
        for section in [Section::Answer, Section::Authority, Section::Additional] {
            let lines: Vec<String> = message.section(section).map(whole_line).collect();
            if lines.len() != lines.iter().collect::<BTreeSet<_>>().len() {
                return fail("a record stands twice in a section");
            }
        }
        let signed = self.signing.is_some();
        if !expected.accepts_answer(data(Section::Answer)) {
            return fail("answer");
        }
        let mut authority = expected.authority.clone();
        if dnssec_ok {
            authority.extend(expected.delegation_signers.iter().cloned());
        }
        if data(Section::Authority).into_iter().collect::<BTreeSet<_>>() != authority {
            return fail("authority");
        }
        if data(Section::Additional).into_iter().collect::<BTreeSet<_>>() != expected.additional {
            return fail("additional");
        }
        if let Err(what) = check_signatures(&message, &expected, signed && dnssec_ok) {
            return fail(&what);
        }
        if signed && dnssec_ok {
            let chain = Chain::of(&message, self.plain.apex());
            for need in &expected.needs {
                if let Err(what) = chain.prove(need, &expected) {
                    return fail(&what);
                }
            }
            if expected.needs.is_empty() && !chain.is_empty() {
                return fail("a proof that nothing needs");
            }
        }
        Ok(message)
    }

    #[track_caller]
    fn judged(&self, qname: &str, qtype: Rtype, dnssec_ok: bool) -> Message {
        self.judge(&name(qname), qtype, dnssec_ok).unwrap_or_else(|what| panic!("{what}"))
    }
}

/// The image of a zone, and the same from a file.
fn images(contents: &Contents) -> (Image, Image) {
    let image = Image::compile(contents).unwrap();
    let mut octets = Vec::new();
    let nothing = Verification::Nothing;
    image::file::write(&image, nothing, (contents, nothing), &mut octets).unwrap();
    (image, ImageFile::open(octets).unwrap().into_image())
}

/// A query; with EDNS: payload size and DO.
fn query(qname: &Name, qtype: Rtype, opt: Option<(u16, bool)>) -> Vec<u8> {
    let mut octets = Vec::new();
    push_query(qname, qtype, ID, 0, &mut octets);
    if let Some((payload, dnssec_ok)) = opt {
        edns::push_opt(payload, 0, if dnssec_ok { edns::DO } else { 0 }, &mut octets);
        octets[HEADER - 1] = 1;
    }
    octets
}

const fn is_dnssec(rtype: Rtype) -> bool {
    matches!(rtype, Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3)
}

/// Type covered and labels of an RRSIG record.
fn covered(record: &Record) -> (Rtype, u8) {
    (Rtype(u16::from_be_bytes([record.rdata[0], record.rdata[1]])), record.rdata[3])
}

/// A record in lower case; of a signature what does not depend on the key and the time.
fn line(record: &Record) -> String {
    let (owner, ttl, rtype) = (&record.owner, record.ttl, record.rtype);
    if rtype == Rtype::RRSIG {
        let (covered, labels) = covered(record);
        return format!("{owner} {ttl} {rtype} {covered} {labels}").to_lowercase();
    }
    whole_line(record)
}

fn whole_line(record: &Record) -> String {
    text_line(&record.owner, record.ttl, record.rtype, &record.rdata)
}

fn text_line(owner: &Name, ttl: u32, rtype: Rtype, octets: &[u8]) -> String {
    let mut text = Vec::new();
    rdata::push_text(rtype, octets, &mut text);
    format!("{owner} {ttl} {rtype} {}", String::from_utf8_lossy(&text)).to_lowercase()
}

fn lines(message: &Message, section: Section) -> BTreeSet<String> {
    message.section(section).map(line).collect()
}

fn set(lines: &[&str]) -> BTreeSet<String> {
    lines.iter().map(|line| line.to_lowercase()).collect()
}

/// The whole response, for the message of a failure.
fn shown(message: &Message) -> String {
    let mut text = format!("{} flags {:04x}\n", message.rcode(), message.header.flags);
    for record in &message.records {
        let rest = if record.rtype == Rtype::OPT { String::from("OPT") } else { line(record) };
        text.push_str(&format!("{:?}: {rest}\n", record.section));
    }
    text
}

/// RFC 4035 §3.1.1: with DO every RRset that the zone signs stands with its signatures, of the same TTL; without DO
/// there is no DNSSEC record at all.
fn check_signatures(message: &Message, expected: &oracle::Expected, wanted: bool) -> Result<(), String> {
    if !wanted {
        let stray = message.records.iter().find(|record| is_dnssec(record.rtype));
        return stray.map_or(Ok(()), |record| Err(format!("not asked for: {}", line(record))));
    }
    for record in message.records.iter().filter(|r| r.rtype != Rtype::OPT) {
        let signatures = |rtype: Rtype| {
            message.records.iter().filter(move |other| {
                other.rtype == Rtype::RRSIG
                    && other.section == record.section
                    && other.owner == record.owner
                    && covered(other).0 == rtype
            })
        };
        if record.rtype == Rtype::RRSIG {
            let rtype = covered(record).0;
            let same = |other: &&Record| {
                other.rtype == rtype && other.owner == record.owner && other.section == record.section
            };
            if !message.records.iter().any(|other| same(&other)) {
                return Err(format!("nothing that it covers: {}", line(record)));
            }
            continue;
        }
        let count = signatures(record.rtype).count();
        let signed = expected.is_signed(record);
        if (count > 0) != signed {
            return Err(format!("{count} signatures: {}", line(record)));
        }
        if signatures(record.rtype).any(|signature| signature.ttl != record.ttl) {
            return Err(format!("TTL of the signature: {}", line(record)));
        }
    }
    Ok(())
}
