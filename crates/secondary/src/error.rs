//! Errors of exchanges with primaries and secondaries.

use super::PublishError;
use super::inbound::{InboundError, IxfrApplyError};
use nonesuch_net::{ClientError, TlsError};
use nonesuch_proto::Name;
use nonesuch_proto::message::{Header, MessageError, Rcode};
use nonesuch_server::tsig::ResponseTsigError;

/// Why an exchange with another server failed. The cause is the configuration, this server, the
/// network or the other server.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExchangeError {
    #[error("the TSIG key {0} is not configured: define it")]
    NoKey(Name),
    #[error("cannot authenticate {0}: configure the file with the certificates of its authority")]
    NoAuthorities(String),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the primary was removed from the configuration")]
    NoPrimary,
    #[error("the transfer took longer than {0} s: increase transfer-in-time if appropriate")]
    TimedOut(u64),

    #[error("cannot get random octets from the system: {0}")]
    Random(getrandom::Error),
    #[error("internal error in this server: see the log, and report it")]
    Panicked,
    #[error("internal error while publishing the zone: see the log")]
    PublishingPanicked,
    #[error(transparent)]
    Publish(#[from] PublishError),

    #[error(transparent)]
    Client(#[from] ClientError),

    #[error(transparent)]
    Tsig(#[from] ResponseTsigError),
    /// The TSIG record of an error response does not verify. The response code is not
    /// authenticated, but may explain why.
    #[error("{fault}; the response code is {rcode}")]
    TsigWithRcode { fault: ResponseTsigError, rcode: Rcode },
    #[error("the response does not match the query")]
    QueryMismatch,
    #[error("the response is not a valid response to the query")]
    InvalidResponse,
    #[error("the response is malformed: {0}")]
    Malformed(#[from] MessageError),
    #[error("the primary is not authoritative for the zone: the zone may have expired there")]
    NotAuthoritative,
    #[error("the response has no SOA record")]
    NoSoa,
    #[error(transparent)]
    Inbound(#[from] InboundError),
    #[error("the response ended after its first record")]
    OnlyFirstSoa,
    #[error("the primary sent an incremental transfer that was not requested")]
    UnrequestedIxfr,
    #[error(transparent)]
    IxfrApply(#[from] IxfrApplyError),
    #[error("the transferred zone has no SOA record")]
    NoZoneSoa,
}

impl ExchangeError {
    /// Returns the error for a TSIG record of `answer` that does not verify.
    pub(super) fn from_tsig(fault: ResponseTsigError, answer: &[u8]) -> Self {
        match Header::read(answer).map(Header::rcode) {
            None | Some(Rcode::NOERROR) => Self::Tsig(fault),
            Some(rcode) => Self::TsigWithRcode { fault, rcode },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::message::flags;

    #[test]
    fn an_answer_that_is_not_signed_is_told_with_its_error() {
        let answer = |rcode: Rcode| Header { id: 1, flags: flags::QR | rcode.0, counts: [0; 4] }.to_octets();
        let of = |rcode| ExchangeError::from_tsig(ResponseTsigError::Unsigned, &answer(rcode));
        let refused = of(Rcode::NOTAUTH);
        assert!(
            matches!(
                refused,
                ExchangeError::TsigWithRcode { fault: ResponseTsigError::Unsigned, rcode: Rcode::NOTAUTH }
            ),
            "{refused:?}"
        );
        let unsigned = of(Rcode::NOERROR);
        assert!(matches!(unsigned, ExchangeError::Tsig(ResponseTsigError::Unsigned)), "{unsigned:?}");
    }
}
