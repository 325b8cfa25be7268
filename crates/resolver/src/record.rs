//! RRsets, as the resolver stores them.

use nonesuch_dnssec::validate::InsecureReason;
use nonesuch_proto::{Class, Name, Rtype};

/// What validation has shown (RFC 4033 §5). Bogus data are not stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Security {
    /// The data were not validated.
    #[default]
    Unchecked,
    /// The data are outside the chain of trust, or their proof has a gap.
    Insecure,
    /// A chain of trust from a trust anchor proves the data.
    Secure,
}

impl Security {
    const ALL: [Self; 3] = [Self::Unchecked, Self::Insecure, Self::Secure];

    /// Reads the number of a status, as in `security as u8`.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// An RRset with its signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rrset {
    /// Owner name, in the case of the response.
    pub owner: Name,
    /// Type.
    pub rtype: Rtype,
    /// Class.
    pub class: Class,
    /// Time to live in seconds: the lowest of the records (RFC 2181 §5.2), within the configured
    /// bounds.
    pub ttl: u32,
    /// The records, without duplicates, in the order of the response.
    pub records: RecordData,
    /// The RRSIG records that cover the RRset.
    pub signatures: RecordData,
    /// What validation has shown about the answer that the RRset belongs to.
    pub security: Security,
    /// Why the answer is insecure, if the registry of extended errors has a code for it.
    pub insecure: Option<InsecureReason>,
}

/// RDATA of several records with uncompressed names. Each has its length in two octets before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordData(Vec<u8>);

impl RecordData {
    /// Wraps octets that [`octets`](Self::octets) returned.
    #[must_use]
    pub(crate) const fn from_octets(octets: Vec<u8>) -> Self {
        Self(octets)
    }

    /// Returns the octets with all lengths.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.0
    }

    /// Appends a record. RDATA has at most 65,535 octets.
    pub fn push(&mut self, rdata: &[u8]) {
        let length = u16::try_from(rdata.len()).expect("RDATA of a message has a length of 16 bits");
        self.0.reserve(2 + rdata.len());
        self.0.extend_from_slice(&length.to_be_bytes());
        self.0.extend_from_slice(rdata);
    }

    /// Whether there is no record.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the RDATA of each record.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first_chunk()?;
            let (rdata, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            rest = after;
            Some(rdata)
        })
    }
}

impl<'r> FromIterator<&'r [u8]> for RecordData {
    fn from_iter<I: IntoIterator<Item = &'r [u8]>>(records: I) -> Self {
        let mut data = Self::default();
        records.into_iter().for_each(|rdata| data.push(rdata));
        data
    }
}
