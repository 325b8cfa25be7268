//! What a file descriptor of the loop belongs to, as the number that the kernel reports.

use super::slots::Key;

/// What a file descriptor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Mailbox,
    /// The UDP socket for clients with this index.
    ClientSocket(usize),
    /// The TCP listener with this index.
    Listener(usize),
    ClientConnection(Key),
    UpstreamSocket(Key),
    UpstreamConnection(Key),
}

impl Source {
    /// Whether it is a socket or a connection to a server.
    pub(super) const fn is_upstream(self) -> bool {
        matches!(self, Self::UpstreamSocket(_) | Self::UpstreamConnection(_))
    }

    pub(super) const fn to_bits(self) -> u64 {
        let (kind, value) = match self {
            Self::Mailbox => (0, 0),
            Self::ClientSocket(index) => (1, index as u64),
            Self::Listener(index) => (2, index as u64),
            Self::ClientConnection(key) => (3, key.to_bits()),
            Self::UpstreamSocket(key) => (4, key.to_bits()),
            Self::UpstreamConnection(key) => (5, key.to_bits()),
        };
        (kind << Key::BITS) | value
    }

    pub(super) const fn from_bits(bits: u64) -> Option<Self> {
        let value = bits & ((1 << Key::BITS) - 1);
        Some(match bits >> Key::BITS {
            0 => Self::Mailbox,
            1 => Self::ClientSocket(value as usize),
            2 => Self::Listener(value as usize),
            3 => Self::ClientConnection(Key::from_bits(value)),
            4 => Self::UpstreamSocket(Key::from_bits(value)),
            5 => Self::UpstreamConnection(Key::from_bits(value)),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_survives_the_kernel() {
        let key = Key::from_bits((1 << Key::BITS) - 1);
        for source in [
            Source::Mailbox,
            Source::ClientSocket(3),
            Source::Listener(0),
            Source::ClientConnection(key),
            Source::UpstreamSocket(Key::from_bits(0)),
            Source::UpstreamConnection(key),
        ] {
            assert_eq!(Source::from_bits(source.to_bits()), Some(source));
        }
        assert_eq!(Source::from_bits(u64::MAX), None);
    }
}
