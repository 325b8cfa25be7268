//! The words of the lines MATCH, ADJUST and REPLY, of both dialects.

use super::super::error::RplFault;
use super::super::lines::number;
use super::{Adjust, MatchRule};
use crate::describe::FLAGS;
use std::time::Duration;

/// The words of MATCH without a value.
const RULES: [(&str, MatchRule); 26] = [
    ("opcode", MatchRule::Opcode),
    ("qtype", MatchRule::Qtype),
    ("qname", MatchRule::Qname),
    ("qcase", MatchRule::Qcase),
    ("subdomain", MatchRule::Subdomain),
    ("flags", MatchRule::Flags),
    ("rcode", MatchRule::Rcode),
    ("question", MatchRule::Question),
    ("answer", MatchRule::Answer),
    ("answertypes", MatchRule::AnswerTypes),
    ("answerrrsigs", MatchRule::AnswerSignatures),
    ("authority", MatchRule::Authority),
    ("additional", MatchRule::Additional),
    ("edns", MatchRule::Edns),
    ("nsid", MatchRule::Nsid),
    ("all", MatchRule::All),
    ("all_noedns", MatchRule::AllWithoutEdns),
    ("ttl", MatchRule::Ttl),
    ("DO", MatchRule::DnssecOk),
    ("CO", MatchRule::CompactOk),
    ("noedns", MatchRule::WithoutEdns),
    ("ednsdata", MatchRule::EdnsData),
    ("UDP", MatchRule::Udp),
    ("TCP", MatchRule::Tcp),
    ("client_cookie", MatchRule::ClientCookie),
    ("server_cookie", MatchRule::ServerCookie),
];

/// The opcodes of REPLY.
const OPCODES: [(&str, u8); 5] = [("QUERY", 0), ("IQUERY", 1), ("STATUS", 2), ("NOTIFY", 4), ("UPDATE", 5)];

/// The response codes of REPLY.
const RCODES: [(&str, u16); 20] = [
    ("NOERROR", 0),
    ("FORMERR", 1),
    ("SERVFAIL", 2),
    ("NXDOMAIN", 3),
    ("NOTIMP", 4),
    ("NOTIMPL", 4),
    ("REFUSED", 5),
    ("YXDOMAIN", 6),
    ("YXRRSET", 7),
    ("NXRRSET", 8),
    ("NOTAUTH", 9),
    ("NOTZONE", 10),
    ("BADVERS", 16),
    ("BADSIG", 16),
    ("BADKEY", 17),
    ("BADTIME", 18),
    ("BADMODE", 19),
    ("BADNAME", 20),
    ("BADALG", 21),
    ("BADCOOKIE", 23),
];

/// Returns the value of `word` in a table.
fn find<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

/// Reads the words of MATCH.
pub(super) fn read_match<'w>(
    words: impl Iterator<Item = &'w str>,
    rules: &mut Vec<MatchRule>,
) -> Result<(), RplFault> {
    for word in words {
        let rule = match word.split_once(['=', ':']) {
            Some(("serial", value)) => MatchRule::Serial(number(Some(value))?),
            Some(("ede", "any")) => MatchRule::ExtendedError(None),
            Some(("ede", value)) => {
                let code = u16::try_from(number(Some(value))?);
                MatchRule::ExtendedError(Some(code.map_err(|_| unknown("MATCH", word))?))
            }
            _ => find(&RULES, word).ok_or_else(|| unknown("MATCH", word))?,
        };
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    Ok(())
}

/// Reads the words of ADJUST.
pub(super) fn read_adjust<'w>(
    words: impl Iterator<Item = &'w str>,
    adjust: &mut Adjust,
) -> Result<(), RplFault> {
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("copy_id", _) => adjust.copies_id = true,
            ("copy_query", _) => adjust.copies_question = true,
            ("raw_id", _) => adjust.copies_id_to_raw = true,
            ("do_not_answer", _) => adjust.is_silent = true,
            ("copy_ednsdata_assume_clientsubnet" | "increment_ecs_scope", _) => {
                adjust.copies_client_subnet = true;
            }
            ("sleep" | "packet_sleep", seconds) => {
                adjust.delay += Duration::from_secs(u64::from(number(Some(seconds))?));
            }
            _ => return Err(unknown("ADJUST", word)),
        }
    }
    Ok(())
}

/// The contents of a REPLY line.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) flags: u16,
    pub(super) opcode: Option<u8>,
    pub(super) rcode: Option<u16>,
    pub(super) has_do: bool,
    pub(super) has_co: bool,
}

/// Reads the words of REPLY.
pub(super) fn read_reply<'w>(words: impl Iterator<Item = &'w str>) -> Result<Reply, RplFault> {
    let mut reply = Reply::default();
    for word in words {
        if let Some((bit, _)) = FLAGS.iter().find(|(_, name)| *name == word) {
            reply.flags |= bit;
        } else if let Some(opcode) = find(&OPCODES, word) {
            reply.opcode = Some(opcode);
        } else if let Some(rcode) = find(&RCODES, word) {
            reply.rcode = Some(rcode);
        } else if word == "DO" {
            reply.has_do = true;
        } else if word == "CO" {
            reply.has_co = true;
        } else {
            return Err(unknown("REPLY", word));
        }
    }
    Ok(reply)
}

fn unknown(keyword: &'static str, word: &str) -> RplFault {
    RplFault::UnknownWord { keyword, word: word.to_owned() }
}
