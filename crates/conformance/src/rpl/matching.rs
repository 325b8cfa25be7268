//! Compares a received message with an entry.
//!
//! The rules are those of `pydnstest/matchpart.py` (Deckard) and `find_match` of
//! `testcode/testpkts.c` (Unbound). There are two deliberate differences from Unbound: names are
//! compared in any case, and the records of a section are compared in any order, because DNS gives
//! them no order.

use super::Dialect;
use super::entry::{Entry, MatchRule};
use crate::describe::{QuestionText, RecordText, read_opt};
use nonesuch_net::Transport;
use nonesuch_proto::Rtype;
use nonesuch_proto::edns::{CO, COOKIE, DO, EXTENDED_ERROR, NSID, read_extended_error};
use nonesuch_proto::message::{Message, Rcode, Section};
use property::{
    Hex, Pair, comparable_records, edns_text, flags, key, option, question, soa_serial, text, types,
};
use std::fmt;

mod property;

/// The first rule that a message does not fulfil.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The rule.
    pub rule: MatchRule,
    /// What the entry has.
    pub expected: String,
    /// What the message has.
    pub received: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: expected {}, received {}", self.rule, quote(&self.expected), quote(&self.received))
    }
}

/// Shows an empty text as such, and several lines below their title.
fn quote(text: &str) -> String {
    match text {
        "" => "nothing".to_owned(),
        text if text.contains('\n') => format!("\n    {}\n ", text.replace('\n', "\n    ")),
        text => format!("`{text}`"),
    }
}

/// Compares `message`, which came over `transport`, with `entry`.
///
/// # Errors
/// The first rule that the message does not fulfil.
pub fn check(
    entry: &Entry,
    dialect: Dialect,
    message: &Message,
    transport: Transport,
) -> Result<(), Mismatch> {
    let mut received = message.clone();
    let rules = expand(&entry.rules, dialect);
    let compares_ttl = rules.contains(&MatchRule::Ttl);
    for rule in rules {
        let comparison = Comparison { expected: &entry.message, received: &received, dialect, compares_ttl };
        comparison.check(rule, transport).map_err(|(expected, received)| Mismatch {
            rule,
            expected,
            received,
        })?;
        // Unbound removes these options, so that the following rules need not consider them.
        match rule {
            MatchRule::ExtendedError(_) => remove_option(&mut received, EXTENDED_ERROR),
            MatchRule::ClientCookie | MatchRule::ServerCookie => remove_option(&mut received, COOKIE),
            _ => {}
        }
    }
    Ok(())
}

/// Replaces rules that stand for several others, and sorts those first that change the message.
fn expand(rules: &[MatchRule], dialect: Dialect) -> Vec<MatchRule> {
    use MatchRule as Rule;
    let mut expanded = Vec::new();
    for rule in rules {
        match (dialect, rule) {
            (Dialect::Deckard, Rule::All) => expanded.extend([
                Rule::Opcode,
                Rule::Qtype,
                Rule::Qname,
                Rule::Flags,
                Rule::Rcode,
                Rule::Answer,
                Rule::Authority,
                Rule::Additional,
            ]),
            (Dialect::Deckard, Rule::Question) => expanded.extend([Rule::Qtype, Rule::Qname]),
            _ => expanded.push(*rule),
        }
    }
    let changes =
        |rule: &Rule| matches!(rule, Rule::ExtendedError(_) | Rule::ClientCookie | Rule::ServerCookie);
    expanded.sort_by_key(|rule| !changes(rule));
    expanded
}

/// The two messages of a comparison.
struct Comparison<'m> {
    expected: &'m Message,
    received: &'m Message,
    dialect: Dialect,
    compares_ttl: bool,
}

/// What was expected and what was received.
type Difference = (String, String);

impl Comparison<'_> {
    fn check(&self, rule: MatchRule, transport: Transport) -> Result<(), Difference> {
        match rule {
            MatchRule::Opcode => self.equal(|message| message.header.opcode()),
            MatchRule::Qtype => self.equal(|message| text(question(message).map(|q| q.rtype))),
            MatchRule::Qname => self.equal(|message| {
                text(question(message).map(|q| q.name.view().to_canonical().view().to_string()))
            }),
            MatchRule::Qcase => {
                self.equal(|message| text(question(message).map(|q| q.name.view().to_string())))
            }
            MatchRule::Subdomain => self.check_subdomain(),
            MatchRule::Flags => self.equal(flags),
            MatchRule::Rcode => self.equal(|message| self.rcode(message)),
            MatchRule::Question => self.check_questions(),
            MatchRule::Answer => self.check_section(Section::Answer),
            MatchRule::AnswerTypes => self.equal(|message| types(message, false)),
            MatchRule::AnswerSignatures => self.equal(|message| types(message, true)),
            MatchRule::Authority => self.check_section(Section::Authority),
            MatchRule::Additional => self.check_section(Section::Additional),
            MatchRule::Edns => {
                self.equal(|message| text(read_opt(message).map(|o| (o.version, o.payload)).map(Pair)))
            }
            MatchRule::Nsid => self.equal(|message| option(message, NSID)),
            MatchRule::All => self.check_all().and_then(|()| self.equal(edns_text)),
            MatchRule::AllWithoutEdns => self.check_all(),
            // The other rules consider this one.
            MatchRule::Ttl => Ok(()),
            MatchRule::EdnsData => self.equal(|message| text(read_opt(message).map(|opt| Hex(opt.options)))),
            _ => self.check_received(rule, transport),
        }
    }

    /// Checks a rule that considers only the received message.
    fn check_received(&self, rule: MatchRule, transport: Transport) -> Result<(), Difference> {
        let opt = read_opt(self.received);
        let flags = opt.map_or(0, |opt| opt.flags);
        let cookie = opt.and_then(|opt| opt.option(COOKIE)).map_or(0, <[u8]>::len);
        let error = opt.and_then(|opt| opt.option(EXTENDED_ERROR)).and_then(read_extended_error);
        let is_met = match rule {
            MatchRule::DnssecOk => flags & DO != 0,
            MatchRule::CompactOk => flags & CO != 0,
            MatchRule::WithoutEdns => self.received.opt().is_none(),
            MatchRule::Udp => transport == Transport::Udp,
            MatchRule::Tcp => transport == Transport::Tcp,
            MatchRule::Serial(serial) => soa_serial(self.received) == Some(serial),
            MatchRule::ExtendedError(None) => error.is_some(),
            MatchRule::ExtendedError(Some(code)) => error.is_some_and(|(found, _)| found == code),
            MatchRule::ClientCookie => cookie == 8,
            MatchRule::ServerCookie => cookie == 24,
            _ => true,
        };
        if is_met {
            Ok(())
        } else {
            Err((format!("{rule:?}"), format!("{transport}, {}", edns_text(self.received))))
        }
    }

    /// Compares a property of the messages.
    fn equal<T: PartialEq + fmt::Display>(&self, property: impl Fn(&Message) -> T) -> Result<(), Difference> {
        let (expected, received) = (property(self.expected), property(self.received));
        if expected == received { Ok(()) } else { Err((expected.to_string(), received.to_string())) }
    }

    /// Returns the response code; Unbound ignores its upper bits.
    fn rcode(&self, message: &Message) -> Rcode {
        match self.dialect {
            Dialect::Deckard => message.rcode(),
            Dialect::Unbound => message.header.rcode(),
        }
    }

    fn check_subdomain(&self) -> Result<(), Difference> {
        let (expected, received) = (question(self.expected), question(self.received));
        let is_below = match (expected, received) {
            (Some(expected), Some(received)) => received.name.view().is_at_or_below(expected.name.view()),
            // Without a question, Deckard takes the root.
            (Some(expected), None) => self.dialect == Dialect::Deckard && expected.name.view().is_root(),
            (None, _) => self.dialect == Dialect::Deckard,
        };
        let difference = || (text(expected.map(QuestionText)), text(received.map(QuestionText)));
        if is_below { Ok(()) } else { Err(difference()) }
    }

    fn check_questions(&self) -> Result<(), Difference> {
        let list = |message: &Message| {
            let lines = message.questions.iter().map(|question| QuestionText(question).to_string());
            lines.map(|line| line.to_ascii_lowercase()).collect::<Vec<_>>().join(", ")
        };
        self.equal(list)
    }

    fn check_section(&self, section: Section) -> Result<(), Difference> {
        let keys = |message: &Message| {
            let records = comparable_records(message, section);
            let mut keys: Vec<Vec<u8>> = records.map(|record| key(record, self.compares_ttl)).collect();
            keys.sort_unstable();
            keys
        };
        let list = |message: &Message| {
            let lines = comparable_records(message, section).map(|record| RecordText(record).to_string());
            lines.collect::<Vec<_>>().join("\n")
        };
        let difference = || (list(self.expected), list(self.received));
        if keys(self.expected) == keys(self.received) { Ok(()) } else { Err(difference()) }
    }

    /// Compares everything except EDNS (Unbound).
    fn check_all(&self) -> Result<(), Difference> {
        self.equal(|message| format!("id {}", message.header.id))?;
        self.equal(|message| format!("opcode {}", message.header.opcode()))?;
        self.equal(|message| format!("flags {}", flags(message)))?;
        self.equal(|message| message.header.rcode())?;
        self.check_questions()?;
        [Section::Answer, Section::Authority, Section::Additional]
            .into_iter()
            .try_for_each(|section| self.check_section(section))
    }
}

/// Removes all options with the code `code`.
fn remove_option(message: &mut Message, code: u16) {
    let Some(opt) = message.records.iter_mut().find(|record| record.rtype == Rtype::OPT) else { return };
    let mut rest = std::mem::take(&mut opt.rdata);
    while let Some((head, _)) = rest.split_first_chunk::<4>() {
        let [a, b, c, d] = *head;
        let end = (4 + usize::from(u16::from_be_bytes([c, d]))).min(rest.len());
        if u16::from_be_bytes([a, b]) != code {
            opt.rdata.extend_from_slice(&rest[..end]);
        }
        rest.drain(..end);
    }
}
