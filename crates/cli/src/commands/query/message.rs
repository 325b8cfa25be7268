//! Encoding of the query, and the check whether a message answers it.

use super::error::QueryError;
use crate::arguments::{QueryMessage, QueryTransport};
use nonesuch_proto::edns::{self, CO, DO};
use nonesuch_proto::message::{Header, Message, flags};
use nonesuch_proto::{Class, Name, Rtype};
use std::net::SocketAddr;

/// Length of a client cookie, in octets (RFC 7873 section 4.1).
const CLIENT_COOKIE_OCTETS: usize = 8;
/// Padding block of queries over TLS, in octets (RFC 8467 section 4.1).
const PADDING_BLOCK_OCTETS: usize = 128;
/// Maximum length of a message, in octets (RFC 1035 section 4.2.2).
pub(super) const MESSAGE_MAX: usize = u16::MAX as usize;
/// Code and length of an EDNS option, in octets.
const OPTION_HEADER_OCTETS: usize = 4;

/// The question of the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) name: Name,
    pub(super) rtype: Rtype,
    pub(super) class: Class,
    /// For IXFR, the serial of the version that the client has.
    pub(super) serial: Option<u32>,
}

/// The settings of the query other than its identifier, question and signature.
#[derive(Clone, Debug)]
pub(super) struct QueryTemplate {
    flags: u16,
    edns: Option<Edns>,
}

/// The content of the OPT record.
#[derive(Clone, Debug)]
struct Edns {
    /// Payload size that is announced to the server, in octets.
    payload: u16,
    flags: u16,
    options: Vec<(u16, Vec<u8>)>,
    /// Whether the query has the Padding option, as over TLS.
    is_padded: bool,
}

impl QueryTemplate {
    /// Reads the settings from the arguments. With a payload size of 0, the query has no OPT
    /// record: the DO and CO flags, all options and the padding are omitted.
    pub(super) fn new(message: &QueryMessage, transport: &QueryTransport) -> Result<Self, QueryError> {
        let rd = if message.no_recurse { 0 } else { flags::RD };
        let cd = if message.checking_disabled { flags::CD } else { 0 };
        let edns = (message.bufsize > 0).then(|| Edns::new(message, transport)).transpose()?;
        Ok(Self { flags: rd | cd, edns })
    }

    /// The client cookie, which is the first part of the cookie that is sent; `None` without a
    /// cookie.
    pub(super) fn client_cookie(&self) -> Option<&[u8]> {
        let options = &self.edns.as_ref()?.options;
        let (_, cookie) = options.iter().find(|(code, _)| *code == edns::COOKIE)?;
        cookie.get(..CLIENT_COOKIE_OCTETS)
    }

    /// Replaces the cookie of the query with `cookie`, the cookie of a response. It must consist of
    /// the client cookie of the query and a server cookie; otherwise, returns false and changes
    /// nothing.
    pub(super) fn add_server_cookie(&mut self, cookie: &[u8]) -> bool {
        let is_own =
            self.client_cookie().is_some_and(|own| cookie.starts_with(own) && cookie.len() > own.len());
        if !is_own {
            return false;
        }
        let options = self.edns.iter_mut().flat_map(|edns| &mut edns.options);
        for (_, data) in options.filter(|(code, _)| *code == edns::COOKIE) {
            *data = cookie.to_vec();
        }
        true
    }

    /// The wire format of the query, with a random identifier and without a TSIG record.
    /// `tsig_octets` is the length of the TSIG record that the caller appends, or 0.
    pub(super) fn encode(&self, question: &Question, tsig_octets: usize) -> Result<Vec<u8>, QueryError> {
        let mut id = [0; 2];
        getrandom::fill(&mut id).map_err(QueryError::Random)?;
        let counts = [1, 0, u16::from(question.serial.is_some()), u16::from(self.edns.is_some())];
        let is_transfer = matches!(question.rtype, Rtype::AXFR | Rtype::IXFR);
        // RFC 5936 section 2.1.1: RD and CD have no meaning in a query for AXFR, and should be 0. A
        // query for IXFR is treated in the same way.
        let header_flags = if is_transfer { 0 } else { self.flags };
        let mut out = Header { id: u16::from_be_bytes(id), flags: header_flags, counts }.to_octets().to_vec();
        out.extend_from_slice(question.name.wire());
        out.extend_from_slice(&question.rtype.0.to_be_bytes());
        out.extend_from_slice(&question.class.0.to_be_bytes());
        if let Some(serial) = question.serial {
            push_soa(question, serial, &mut out);
        }
        if let Some(edns) = &self.edns {
            edns.push(tsig_octets, &mut out)?;
        }
        Ok(out)
    }
}

impl Edns {
    fn new(message: &QueryMessage, transport: &QueryTransport) -> Result<Self, QueryError> {
        let mut options = message.edns_option.clone();
        if message.nsid {
            options.push((edns::NSID, Vec::new()));
        }
        if let Some(cookie) = &message.cookie {
            let mut octets = cookie.0.clone();
            if octets.is_empty() {
                octets.resize(CLIENT_COOKIE_OCTETS, 0);
                getrandom::fill(&mut octets).map_err(QueryError::Random)?;
            }
            options.push((edns::COOKIE, octets));
        }
        if message.keepalive {
            options.push((edns::KEEPALIVE, Vec::new()));
        }
        if message.expire {
            options.push((edns::EXPIRE, Vec::new()));
        }
        let dnssec_ok = if message.dnssec_ok() { DO } else { 0 };
        let compact_ok = if message.compact_ok { CO } else { 0 };
        let flags = dnssec_ok | compact_ok;
        Ok(Self { payload: message.bufsize, flags, options, is_padded: transport.tls })
    }

    /// Appends the OPT record (RFC 6891 section 6.1.2), which only a TSIG record of `tsig_octets`
    /// follows. With padding, the length of the complete message is a multiple of
    /// [`PADDING_BLOCK_OCTETS`], or [`MESSAGE_MAX`] if the next multiple exceeds it.
    fn push(&self, tsig_octets: usize, out: &mut Vec<u8>) -> Result<(), QueryError> {
        let mut option_octets: usize =
            self.options.iter().map(|(_, data)| OPTION_HEADER_OCTETS + data.len()).sum();
        if self.is_padded {
            option_octets += OPTION_HEADER_OCTETS;
        }
        let octets = out.len() + edns::OPT_OCTETS + option_octets + tsig_octets;
        if octets > MESSAGE_MAX {
            return Err(QueryError::TooLarge { octets });
        }
        let start = out.len();
        edns::push_opt(self.payload, 0, self.flags, out);
        for (code, data) in &self.options {
            push_option(*code, data, out);
        }
        if self.is_padded {
            let padded_octets = octets.next_multiple_of(PADDING_BLOCK_OCTETS).min(MESSAGE_MAX);
            push_option(edns::PADDING, &vec![0; padded_octets - octets], out);
        }
        edns::set_options_length(start, out);
        Ok(())
    }
}

/// Appends an option. `data` fits into a message, so its length has at most 16 bits.
fn push_option(code: u16, data: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(&(data.len() as u16).to_be_bytes());
    out.extend_from_slice(data);
}

/// Appends the SOA record with the serial of the client's version (RFC 1995 section 3). The other
/// fields are unused.
fn push_soa(question: &Question, serial: u32, out: &mut Vec<u8>) {
    /// Two root names and five numbers.
    const SOA_RDATA_OCTETS: u16 = 2 + 5 * 4;
    out.extend_from_slice(question.name.wire());
    out.extend_from_slice(&Rtype::SOA.0.to_be_bytes());
    out.extend_from_slice(&question.class.0.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&SOA_RDATA_OCTETS.to_be_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&serial.to_be_bytes());
    out.extend_from_slice(&[0; 16]);
}

/// Parses a response.
pub(super) fn read_message(octets: &[u8], server: SocketAddr) -> Result<Message, QueryError> {
    Message::parse(octets).map_err(|source| {
        let octets = data_encoding::HEXLOWER.encode(octets);
        QueryError::Unreadable { server, source, octets }
    })
}

/// Whether `message` is a response to `query`: it has the same opcode and either the same question,
/// or no question and an error as response code. The code that receives messages compares the
/// identifier.
pub(super) fn is_answer(query: &[u8], message: &[u8]) -> bool {
    let (Some(sent), Some(received)) = (Header::read(query), Header::read(message)) else { return false };
    if received.flags & flags::QR == 0 || received.opcode() != sent.opcode() {
        return false;
    }
    match received.counts[0] {
        0 => received.rcode().0 != 0,
        1 => read_question(query).is_some_and(|question| read_question(message) == Some(question)),
        _ => false,
    }
}

/// The question of a message: name, and type and class as octets.
fn read_question(message: &[u8]) -> Option<(Name, [u8; 4])> {
    let (name, end) = Name::from_message(message, nonesuch_proto::message::HEADER).ok()?;
    Some((name, message.get(end..end + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::tsig::TsigSigner;
    use super::*;

    fn question(serial: Option<u32>) -> Question {
        let rtype = if serial.is_some() { Rtype::IXFR } else { Rtype::MX };
        Question { name: "Example.com".parse().expect("a name"), rtype, class: Class::IN, serial }
    }

    fn template(options: Vec<(u16, Vec<u8>)>, is_padded: bool) -> QueryTemplate {
        let edns = Edns { payload: 1232, flags: DO, options, is_padded };
        QueryTemplate { flags: flags::RD, edns: Some(edns) }
    }

    #[test]
    fn encoded_queries_can_be_parsed() {
        for (serial, is_padded) in [(None, false), (None, true), (Some(7), false)] {
            let octets = template(vec![(3, vec![]), (10, vec![1; 8])], is_padded)
                .encode(&question(serial), 0)
                .expect("written");
            let message = Message::parse(&octets).expect("a message");
            assert_eq!(message.questions[0].name, question(serial).name);
            assert_eq!(message.header.flags, if serial.is_some() { 0 } else { flags::RD });
            let opt = message.opt().expect("an OPT record");
            assert_eq!((opt.class.0, opt.ttl), (1232, u32::from(DO)));
            assert!(opt.rdata.starts_with(&[0, 3, 0, 0, 0, 10, 0, 8, 1]));
            assert_eq!(octets.len().is_multiple_of(PADDING_BLOCK_OCTETS), is_padded);
            let soa = message.records.iter().find(|record| record.rtype == Rtype::SOA);
            assert_eq!(
                soa.map(|soa| soa.rdata[2..6].to_vec()),
                serial.map(|serial| serial.to_be_bytes().to_vec())
            );
        }
    }

    #[test]
    fn a_signed_query_is_padded_as_a_whole() {
        for algorithm in ["hmac-sha256", "hmac-sha384", "hmac-sha512"] {
            let key = format!("key.example:{algorithm}:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
            let signer = TsigSigner::read(&key).expect("a key");
            for data_octets in [0, 1, 127, 300] {
                let template = template(vec![(65_001, vec![1; data_octets])], true);
                let mut octets = template.encode(&question(None), signer.octets()).expect("written");
                let unsigned_octets = octets.len();
                signer.sign(&mut octets);
                assert_eq!(octets.len(), unsigned_octets + signer.octets());
                assert!(octets.len().is_multiple_of(PADDING_BLOCK_OCTETS), "{algorithm}: {}", octets.len());
                assert!(Message::parse(&octets).is_ok());
            }
        }
    }

    #[test]
    fn options_that_do_not_fit_into_a_message_are_an_error() {
        // Header, question, OPT record and the header of one option.
        let other_octets = 12 + 13 + 4 + 11 + 4;
        let encode = |data_octets: Vec<usize>, is_padded: bool, tsig_octets: usize| {
            let options = data_octets.into_iter().map(|octets| (65_001, vec![1; octets])).collect();
            match template(options, is_padded).encode(&question(None), tsig_octets) {
                Ok(octets) => {
                    assert!(Message::parse(&octets).is_ok());
                    Ok(octets.len())
                }
                Err(QueryError::TooLarge { octets }) => Err(octets),
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(encode(vec![65_535 - other_octets], false, 0), Ok(65_535));
        assert_eq!(encode(vec![65_535 - other_octets], false, 1), Err(65_536));
        assert_eq!(encode(vec![65_535 - other_octets], true, 0), Err(65_539));
        assert_eq!(encode(vec![40_000, 30_000], false, 0), Err(other_octets + 4 + 70_000));
        assert_eq!(encode(vec![70_000], false, 0), Err(other_octets + 70_000));
        // The padding ends at the maximum, which is no multiple of its block.
        assert_eq!(encode(vec![65_500 - other_octets], true, 0), Ok(65_535));
        let error = QueryError::TooLarge { octets: 70_044 }.to_string();
        assert!(error.starts_with("--edns-option: the query takes 70044 octets"), "{error}");
    }

    #[test]
    fn a_server_cookie_is_accepted_only_with_the_client_cookie_of_the_query() {
        let mut template = template(vec![(10, vec![1; 8])], false);
        assert!(!template.add_server_cookie(&[2; 16]));
        assert!(!template.add_server_cookie(&[1; 8]));
        assert!(template.add_server_cookie(&[1; 16]));
        assert_eq!(template.edns.as_ref().expect("EDNS").options[0].1, [1; 16]);
        assert_eq!(template.client_cookie(), Some(&[1; 8][..]));
    }

    #[test]
    fn a_response_has_the_question_of_the_query() {
        let query = template(Vec::new(), false).encode(&question(None), 0).expect("written");
        let answer = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut octets = query.clone();
            octets[2] |= 0x80;
            change(&mut octets);
            is_answer(&query, &octets)
        };
        assert!(answer(&|_| {}));
        assert!(answer(&|octets| octets[13] = b'e'));
        assert!(!answer(&|octets| octets[13] = b'f'));
        assert!(!answer(&|octets| octets[2] &= 0x7f));
        assert!(!answer(&|octets| octets[2] |= 0x20));
        assert!(!answer(&|octets| octets[26] = 1));
        assert!(!answer(&|octets| octets.truncate(12)));
        assert!(!answer(&|octets| octets[5] = 0));
        assert!(answer(&|octets| {
            octets[5] = 0;
            octets[3] = 1;
            octets.truncate(12);
        }));
        assert!(!is_answer(&query, &[]));
    }
}
