//! Messages without a valid question. The server answers FORMERR, or a cookie if the message
//! requests only that (RFC 7873 §5.4).

use super::tsig_and_opcodes::push_opt_if_requested;
use super::{AnswerKind, Batch, ThreadState};
use nonesuch_proto::edns;
use nonesuch_proto::message::{HEADER, Header, Rcode};
use nonesuch_server::cookies::CookieStatus;
use nonesuch_server::query::read_opt_alone;
use nonesuch_server::reply_options::ReplyOptions;
use nonesuch_server::trailer::push_header_only;
use std::net::SocketAddr;

impl ThreadState {
    /// Answers a message with opcode QUERY that is not a valid query.
    #[cold]
    pub(super) fn answer_malformed(
        &mut self,
        batch: &Batch,
        header: Header,
        message: &[u8],
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> AnswerKind {
        if let Some(outcome) = self.answer_cookie_request(batch, header, message, sender, out) {
            return outcome;
        }
        // RFC 6891 §6.1.3: the server does not know whether another EDNS version permits messages
        // without a question.
        let is_other_version = read_opt_alone(message).is_some_and(|opt| opt.version != 0);
        let rcode = if is_other_version { Rcode::BADVERS } else { Rcode::FORMERR };
        push_header_only(header, rcode, out);
        push_opt_if_requested(batch, message, rcode, None, out);
        self.finish_bare(batch, header, rcode, sender, out)
    }

    /// Answers a message that has no question and whose OPT record contains a cookie. The response
    /// contains the client cookie and the server cookie: such a message requests the server cookie
    /// (RFC 7873 §5.4; RFC 9619 §4 permits it). Returns `None` for all other messages.
    fn answer_cookie_request(
        &mut self,
        batch: &Batch,
        header: Header,
        message: &[u8],
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> Option<AnswerKind> {
        let opt = read_opt_alone(message).filter(|opt| opt.version == 0)?;
        let cookies = batch.settings.cookies.as_ref()?;
        let now = batch.now as u32;
        let reply =
            ReplyOptions::read(&opt, self.transport, &batch.reply_settings, Some(cookies), sender.ip(), now)
                .ok()?;
        let rcode = match reply.cookie_status() {
            CookieStatus::Absent | CookieStatus::Malformed => return None,
            CookieStatus::ClientOnly | CookieStatus::Valid => Rcode::NOERROR,
            CookieStatus::Invalid => Rcode::BADCOOKIE,
        };
        self.statistics.count_cookie(reply.cookie_status());
        push_header_only(header, rcode, out);
        let size = batch.reply_settings.max_udp_size;
        edns::push_opt(size, (rcode.0 >> 4) as u8, 0, out);
        out[10..HEADER].copy_from_slice(&1u16.to_be_bytes());
        reply.without_padding().push(&batch.reply_settings, None, usize::from(size), 0, out);
        Some(self.finish_bare_with_cookie(batch, header, rcode, sender, reply.cookie_status(), out))
    }
}
