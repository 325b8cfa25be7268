//! Counts queries and responses.

use super::ThreadState;
use crate::zones::ZoneEntry;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{HEADER, Header, Rcode, flags};
use nonesuch_server::cookies::CookieStatus;
use nonesuch_server::query::Query;
use nonesuch_server::statistics::{self, Observation, QueryFlags};

impl ThreadState {
    /// Counts a query and its response. The upper bits of the response code are in the OPT record
    /// (RFC 6891 §6.1.3). Only responses without answer and authority records can have such bits,
    /// so only those are searched for an OPT record.
    #[inline]
    pub(super) fn count_response(&mut self, query: &Query<'_>, message: &[u8], response: &[u8]) {
        let has_records = response.get(6..10).is_some_and(|counts| counts != [0; 4]);
        if has_records {
            self.statistics.count_query(query, message, response);
        } else {
            self.count_without_records(query, message, response);
        }
    }

    /// Counts a query and its response, which has no answer or authority records.
    #[cold]
    fn count_without_records(&mut self, query: &Query<'_>, message: &[u8], response: &[u8]) {
        let Some(header) = Header::read(response) else { return };
        let observed_flags = QueryFlags::default()
            .with(QueryFlags::TRUNCATED, header.flags & flags::TC != 0)
            .with(QueryFlags::EDNS, query.opt.is_some())
            .with(QueryFlags::DNSSEC_OK, query.opt.is_some_and(|opt| opt.dnssec_ok()));
        self.statistics.count_observation(&Observation {
            qtype: query.qtype,
            rcode: extended_rcode(response, HEADER + query.question.len()),
            query_octets: message.len(),
            response_octets: response.len(),
            flags: observed_flags,
        });
    }

    /// Counts a query for a name in the zone of `entry`, once for both passes of a batch.
    #[cold]
    pub(super) fn count_zone_query(&self, entry: &ZoneEntry) {
        if !self.is_second_pass {
            entry.count_query();
        }
    }

    /// Counts the cookie of a query.
    pub(super) fn count_cookie(&mut self, status: CookieStatus) {
        self.statistics.count_cookie(match status {
            CookieStatus::Absent => return,
            CookieStatus::ClientOnly => statistics::CookieResult::Client,
            CookieStatus::Valid => statistics::CookieResult::Valid,
            CookieStatus::Invalid => statistics::CookieResult::Invalid,
            CookieStatus::Malformed => statistics::CookieResult::Malformed,
        });
    }
}

/// Returns the response code, with its upper bits if the record at `offset` is an OPT record.
fn extended_rcode(response: &[u8], offset: usize) -> Rcode {
    let lower = Header::read(response).map_or(0, |header| header.flags & 0x0f);
    // The root name, two octets for the type, two for the class, and the first octet of the TTL.
    match response.get(offset..offset + 6) {
        Some(&[0, a, b, _, _, upper]) if Rtype(u16::from_be_bytes([a, b])) == Rtype::OPT => {
            Rcode(u16::from(upper) << 4 | lower)
        }
        _ => Rcode(lower),
    }
}
