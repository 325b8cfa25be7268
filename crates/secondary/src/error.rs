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
    #[error("there is no TSIG key {0}: define it")]
    NoKey(Name),
    #[error("{0} cannot be authenticated: name the file with the certificates of its authority")]
    NoAuthorities(String),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the primary was taken out of the configuration")]
    NoPrimary,
    #[error("the transfer took longer than {0} s: raise transfer-in-time where that is right")]
    TooSlow(u64),

    #[error("the system gives no random octets: {0}")]
    Random(getrandom::Error),
    #[error("it broke off within this server: see the log, and report it")]
    BrokeOff,
    #[error("publishing broke off: see the log")]
    PublishingBrokeOff,
    #[error(transparent)]
    Publish(#[from] PublishError),

    #[error(transparent)]
    Client(#[from] ClientError),

    #[error(transparent)]
    Tsig(#[from] ResponseTsigError),
    /// The response code is not authenticated, but may explain why the TSIG record does not verify.
    #[error("{fault}; it says {rcode}")]
    TsigOfError { fault: ResponseTsigError, rcode: Rcode },
    #[error("what came is not the answer to the question")]
    NotTheAnswer,
    #[error("its answer makes no sense")]
    Nonsense,
    #[error("the answer is malformed: {0}")]
    Malformed(#[from] MessageError),
    #[error("it is not authoritative for the zone: it may have expired there")]
    NotAuthoritative,
    #[error("the answer has no SOA record")]
    NoSoa,
    #[error(transparent)]
    Inbound(#[from] InboundError),
    #[error("the answer ended after its first record")]
    OnlySoa,
    #[error("steps came that were not asked for")]
    UnaskedSteps,
    #[error(transparent)]
    Steps(#[from] IxfrApplyError),
    #[error("the zone has no SOA record")]
    NoZoneSoa,
}

impl ExchangeError {
    /// Returns the error for a TSIG record of `answer` that does not verify.
    pub(super) fn of_tsig(fault: ResponseTsigError, answer: &[u8]) -> Self {
        match Header::read(answer).map(Header::rcode) {
            None | Some(Rcode::NOERROR) => Self::Tsig(fault),
            Some(rcode) => Self::TsigOfError { fault, rcode },
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
        let of = |rcode| ExchangeError::of_tsig(ResponseTsigError::Unsigned, &answer(rcode)).to_string();
        assert_eq!(of(Rcode::NOTAUTH), format!("{}; it says NOTAUTH", ResponseTsigError::Unsigned));
        assert_eq!(of(Rcode::NOERROR), ResponseTsigError::Unsigned.to_string());
    }
}
