//! Trust in data by the part of the response that they come from (RFC 2181 §5.4.1).

/// The rank of an RRset. An RRset replaces an unexpired one only if its rank is at least as high.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank {
    /// The additional section: glue and other addresses. Used to reach servers.
    Additional = 1,
    /// The authority section of a response without the AA bit: the NS RRset of a referral. Used to
    /// reach servers.
    Referral = 2,
    /// The answer section of a response without the AA bit, such as that of a forwarder, and data
    /// after the first alias in the answer section of a response with it.
    Answer = 3,
    /// The authority section of a response with the AA bit.
    AuthorityAa = 4,
    /// The answer section of a response with the AA bit: the data of the query name.
    AnswerAa = 5,
}

impl Rank {
    /// The lowest rank of data that may answer a client (RFC 2181 §5.4.1, last paragraph).
    pub const CLIENT_MIN: Self = Self::Answer;

    /// Whether the data may answer a client.
    #[must_use]
    pub fn may_answer_clients(self) -> bool {
        self >= Self::CLIENT_MIN
    }

    /// Reads the number of a rank, as in `rank as u8`.
    pub(super) const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Additional,
            2 => Self::Referral,
            3 => Self::Answer,
            4 => Self::AuthorityAa,
            5 => Self::AnswerAa,
            _ => return None,
        })
    }
}
