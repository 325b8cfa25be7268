//! Counters of skipped packets, segments, frames and messages.

/// Why a packet, segment or frame is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// The link type is not supported.
    LinkType,
    /// Not UDP or TCP over IP to or from a DNS port, or not a dnstap message.
    OtherTraffic,
    /// A fragment of an IP packet. Fragments are not reassembled.
    Fragment,
    /// The capture contains only a part of the packet.
    Truncated,
    /// The headers of the packet, or the dnstap message, are malformed.
    Malformed,
    /// The packet has no time.
    NoTime,
    /// Shorter than the header of a DNS message.
    NotMessage,
    /// A TCP segment of a connection that began before the capture.
    NoConnection,
    /// A TCP connection with a gap: the capture lacks segments, or they are out of order by more
    /// than the window. The rest of the connection is skipped.
    Gap,
    /// A TCP connection that the reader dropped because too many were open.
    TooManyConnections,
    /// The file ends inside a packet or frame.
    EndOfFile,
    /// The message cannot be written in the format of the output.
    Unwritable,
    /// The message cannot be parsed, so its names cannot be anonymised.
    Unparsable,
}

impl SkipReason {
    /// All reasons.
    pub const ALL: [Self; 13] = [
        Self::LinkType,
        Self::OtherTraffic,
        Self::Fragment,
        Self::Truncated,
        Self::Malformed,
        Self::NoTime,
        Self::NotMessage,
        Self::NoConnection,
        Self::Gap,
        Self::TooManyConnections,
        Self::EndOfFile,
        Self::Unwritable,
        Self::Unparsable,
    ];

    /// Returns the name of the reason in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LinkType => "link-type",
            Self::OtherTraffic => "other-traffic",
            Self::Fragment => "fragment",
            Self::Truncated => "truncated",
            Self::Malformed => "malformed",
            Self::NoTime => "no-time",
            Self::NotMessage => "not-message",
            Self::NoConnection => "no-connection",
            Self::Gap => "gap",
            Self::TooManyConnections => "too-many-connections",
            Self::EndOfFile => "end-of-file",
            Self::Unwritable => "unwritable",
            Self::Unparsable => "unparsable",
        }
    }
}

/// Number of skipped packets, segments and frames for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkipCounts {
    counts: [u64; SkipReason::ALL.len()],
}

impl SkipCounts {
    /// Adds 1 to the count of a reason.
    pub const fn count(&mut self, reason: SkipReason) {
        self.add(reason, 1);
    }

    /// Adds `number` to the count of a reason.
    pub const fn add(&mut self, reason: SkipReason, number: u64) {
        self.counts[reason as usize] += number;
    }

    /// Returns the count of a reason.
    #[must_use]
    pub const fn get(&self, reason: SkipReason) -> u64 {
        self.counts[reason as usize]
    }

    /// Returns the reasons with a count greater than 0.
    pub fn iter(&self) -> impl Iterator<Item = (SkipReason, u64)> + '_ {
        SkipReason::ALL.into_iter().map(|reason| (reason, self.get(reason))).filter(|(_, count)| *count > 0)
    }

    /// Returns the sum of all counts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_counter_and_name() {
        let mut counts = SkipCounts::default();
        for (number, reason) in (1..).zip(SkipReason::ALL) {
            counts.add(reason, number);
        }
        assert_eq!(counts.iter().map(|(_, count)| count).collect::<Vec<_>>(), (1..=13).collect::<Vec<_>>());
        assert_eq!(counts.total(), 91);
        let mut names = SkipReason::ALL.map(SkipReason::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SkipReason::ALL.len());
    }
}
