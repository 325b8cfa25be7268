//! A resolver on a local tree with a zone for each fault: outcome and extended error are the expected ones,
//! in the first reply and in that of the cache (XF-080).

use super::resolve::{start_tree_with, start_validating};
use crate::common;
use common::configured::ask;
use nonesuch_lab::tree::{FAULTS, Fault};
use nonesuch_proto::Rtype;
use nonesuch_proto::edns::{self, Options};
use nonesuch_proto::message::{Message, Rcode, flags};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

/// Questions to ask of each zone, fault and type.
const QUESTIONS: usize = 2;

/// Other codes than those of the table of faults.
const DIFFERENT: [(Fault, u16); 8] = [
    // Most questions reach the limit of bad signatures of a client query.
    (Fault::CollidingKeyTags, 0),
    // The server omits the records of a faulty denial.
    (Fault::LyingBitmap, 12),
    (Fault::NextNameOutsideZone, 12),
    (Fault::UnknownNsec3Hash, 12),
    (Fault::UnknownNsec3Flags, 12),
    (Fault::ExcessiveNsec3Iterations, 12),
    // These have no code of their own.
    (Fault::DeepNsec3, 0),
    (Fault::CnameLoop, 0),
];

fn zones() -> String {
    let mut text = String::new();
    for row in FAULTS {
        let is_of_servers = row.scope == nonesuch_lab::tree::FaultScope::Servers;
        let denials = match row.fault {
            Fault::NextNameOutsideZone => &["nsec"][..],
            _ if row.name.contains("nsec3") => &["nsec3"],
            _ => &["nsec", "nsec3"],
        };
        for denial in denials {
            let _ = write!(
                text,
                "[[zone]]\norigin = \"{0}-{denial}.example.\"\ndenial = \"{denial}\"\nsigned = {1}\n{2}\
                 faults = [{{ fault = \"{0}\" }}]\n",
                row.name,
                row.fault != Fault::DsForUnsignedZone,
                if is_of_servers { "" } else { "server = \"127.53.50.200\"\n" }
            );
        }
    }
    text
}

/// Outcome as in `expected.csv`, and the extended error.
fn result_of(reply: &Message) -> (&'static str, Option<(u16, String)>) {
    let outcome = match (reply.rcode(), reply.header.flags & flags::AD != 0) {
        (Rcode::SERVFAIL, _) => "bogus",
        (_, true) => "secure",
        (_, false) => "insecure",
    };
    let opt = reply.opt().expect("an OPT record");
    let error = Options::new(&opt.rdata).find(|(code, _)| *code == edns::EXTENDED_ERROR);
    let error = error.and_then(|(_, data)| edns::read_extended_error(data));
    (outcome, error.map(|(code, text)| (code, String::from_utf8_lossy(text).into_owned())))
}

#[test]
fn the_faults_of_a_tree_have_their_extended_errors() {
    let folder = common::folder();
    let Some((_servers, hints)) = start_tree_with(folder.path(), 50, &zones()) else { return };
    let resolver = start_validating(folder.path(), &hints, &[]);
    let expected = fs::read_to_string(hints.with_file_name("expected.csv")).expect("expected results");
    let (mut asked, mut differ): (BTreeMap<String, usize>, Vec<String>) = Default::default();
    for line in expected.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [name, rtype, outcome, code, fault] = fields[..] else { panic!("{line}") };
        let name = name.trim_matches('"');
        let zone = name.rsplit('.').nth(2).unwrap_or_default();
        let count = asked.entry(format!("{zone} {fault} {rtype}")).or_default();
        *count += 1;
        // The large RRset does not fit into a datagram.
        if *count > QUESTIONS || fault == "large-rrset" {
            continue;
        }
        let rtype: Rtype = rtype.parse().expect("a type");
        let [first, cached] = [(), ()].map(|()| result_of(&ask(resolver.address, name, rtype)));
        let known = DIFFERENT.iter().find(|(known, _)| known.to_string() == fault);
        let other = known.map(|(_, code)| *code);
        let found = first.1.as_ref().map(|(code, _)| *code);
        let has_code = found == code.parse().ok() || found.is_some() && found == other || fault.is_empty();
        let is_right = first.0 == outcome.replace("failure", "bogus") && has_code;
        if !is_right || first != cached {
            differ.push(format!("{line}: {first:?}, from the cache {cached:?}"));
        }
    }
    assert!(asked.len() > 300 && differ.is_empty(), "{} questions:\n{}", asked.len(), differ.join("\n"));
}
