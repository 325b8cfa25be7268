//! The TSIG record (RFC 8945 §4.2), and the digest over its fields (§4.3).

use super::key::{TsigAlgorithm, TsigKey};
use nonesuch_crypto::hmac::Mac;
use nonesuch_proto::message::{HEADER, Header};
use nonesuch_proto::{Class, Name, NameRef, Rtype};

/// Octets of the fixed fields between owner and RDATA of a record: type, class, TTL and RDLENGTH.
const FIXED_OCTETS: usize = 10;
/// Octets of the RDATA fields of a TSIG record without the algorithm name, the MAC and Other Data.
const FIELD_OCTETS: usize = 16;

/// A message or its TSIG record is malformed, or the TSIG record is in the wrong place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The TSIG record of a message.
#[derive(Clone, Debug)]
pub(super) struct TsigRecord<'m> {
    /// Offset of the record in the message. The signed part of the message ends here.
    pub(super) offset: usize,
    /// The name of the key, in lower case.
    pub(super) key: Name,
    pub(super) algorithm: NameRef<'m>,
    pub(super) time: u64,
    pub(super) fudge: u16,
    pub(super) mac: &'m [u8],
    pub(super) original_id: u16,
    pub(super) error: u16,
    pub(super) other: &'m [u8],
}

impl<'m> TsigRecord<'m> {
    /// Finds the TSIG record of `message`; `None` if there is no such record. The record must be
    /// the last one of the message, and in the additional section (RFC 8945 §5.1).
    pub(super) fn find(message: &'m [u8]) -> Result<Option<Self>, Malformed> {
        let header = Header::read(message).ok_or(Malformed)?;
        let [questions, answers, authorities, additional] = header.counts.map(usize::from);
        let mut offset = HEADER;
        for _ in 0..questions {
            offset = skip_name(message, offset).ok_or(Malformed)? + 4;
        }
        let records = answers + authorities + additional;
        let mut found = None;
        for number in 1..=records {
            let fixed = skip_name(message, offset).ok_or(Malformed)?;
            let fields: &[u8; FIXED_OCTETS] =
                message.get(fixed..).and_then(<[u8]>::first_chunk).ok_or(Malformed)?;
            let [t, y, .., high, low] = *fields;
            let end = fixed + FIXED_OCTETS + usize::from(u16::from_be_bytes([high, low]));
            let rdata = message.get(fixed + FIXED_OCTETS..end).ok_or(Malformed)?;
            if Rtype(u16::from_be_bytes([t, y])) == Rtype::TSIG {
                if number != records || additional == 0 {
                    return Err(Malformed);
                }
                found = Some(Self::read(message, offset, fields, rdata).ok_or(Malformed)?);
            }
            offset = end;
        }
        if offset == message.len() { Ok(found) } else { Err(Malformed) }
    }

    fn read(message: &'m [u8], offset: usize, fixed: &[u8; FIXED_OCTETS], rdata: &'m [u8]) -> Option<Self> {
        // Class ANY, TTL 0.
        if fixed[2..8] != [0, Class::ANY.0 as u8, 0, 0, 0, 0] {
            return None;
        }
        let (key, _) = Name::from_message(message, offset).ok()?;
        let (algorithm, rest) = NameRef::split_from(rdata).ok()?;
        let (&[a, b, c, d, e, f, g, h, i, j], rest) = rest.split_first_chunk()?;
        let (mac, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([i, j])))?;
        let (&[k, l, m, n, o, p], other) = rest.split_first_chunk()?;
        if other.len() != usize::from(u16::from_be_bytes([o, p])) {
            return None;
        }
        Some(Self {
            offset,
            key: key.view().to_canonical(),
            algorithm,
            time: u64::from_be_bytes([0, 0, a, b, c, d, e, f]),
            fudge: u16::from_be_bytes([g, h]),
            mac,
            original_id: u16::from_be_bytes([k, l]),
            error: u16::from_be_bytes([m, n]),
            other,
        })
    }

    /// Whether `now` is within the fudge of the time signed (RFC 8945 §5.2.3).
    pub(super) const fn is_timely(&self, now: u64) -> bool {
        now.abs_diff(self.time) <= self.fudge as u64
    }

    /// Whether the RFC permits the length of the MAC (RFC 8945 §5.2.2.1).
    pub(super) fn has_possible_length(&self, algorithm: TsigAlgorithm) -> bool {
        (algorithm.min_mac_length()..=algorithm.mac_length()).contains(&self.mac.len())
    }

    /// Digests the message as it was before signing: without this record and with the original ID.
    pub(super) fn digest_message(&self, message: &[u8], mac: &mut Mac) {
        if let Some(mut header) = Header::read(message) {
            header.id = self.original_id;
            header.counts[3] = header.counts[3].saturating_sub(1);
            mac.update(&header.to_octets());
            mac.update(message.get(HEADER..self.offset).unwrap_or_default());
        }
    }

    /// Returns the fields of this record that are digested after the message.
    pub(super) const fn variables(&self) -> TsigVariables<'_> {
        TsigVariables { time: self.time, fudge: self.fudge, error: self.error, other: self.other }
    }
}

/// Returns the offset after the name at `offset`. The name may be compressed.
fn skip_name(message: &[u8], mut offset: usize) -> Option<usize> {
    loop {
        match *message.get(offset)? {
            0 => return Some(offset + 1),
            length @ 1..=63 => offset += 1 + usize::from(length),
            192..=255 => return Some(offset + 2),
            _ => return None,
        }
    }
}

/// The fields of the record that differ for each message.
#[derive(Clone, Copy, Debug)]
pub(super) struct TsigVariables<'v> {
    pub(super) time: u64,
    pub(super) fudge: u16,
    pub(super) error: u16,
    pub(super) other: &'v [u8],
}

impl TsigVariables<'_> {
    fn timers(&self) -> [u8; 8] {
        let [_, _, a, b, c, d, e, f] = self.time.to_be_bytes();
        let [g, h] = self.fudge.to_be_bytes();
        [a, b, c, d, e, f, g, h]
    }

    /// Digests all TSIG variables (RFC 8945 §4.3.3).
    pub(super) fn digest(&self, key: &TsigKey, mac: &mut Mac) {
        mac.update(key.name().wire());
        mac.update(&[0, Class::ANY.0 as u8, 0, 0, 0, 0]);
        mac.update(key.algorithm().name().wire());
        mac.update(&self.timers());
        mac.update(&self.error.to_be_bytes());
        mac.update(&(self.other.len() as u16).to_be_bytes());
        mac.update(self.other);
    }

    /// Digests only the time fields, as for every message of a response except the first (RFC 8945
    /// §5.3.1).
    pub(super) fn digest_timers(&self, mac: &mut Mac) {
        mac.update(&self.timers());
    }

    /// Appends the record with `tag` as its MAC, and increments the record count in the header.
    pub(super) fn push(&self, key: NameRef<'_>, algorithm: NameRef<'_>, tag: &[u8], message: &mut Vec<u8>) {
        let (Some(&id), true) = (message.first_chunk::<2>(), message.len() >= HEADER) else { return };
        let length = algorithm.len() + FIELD_OCTETS + tag.len() + self.other.len();
        message.extend_from_slice(key.wire());
        message.extend_from_slice(&Rtype::TSIG.0.to_be_bytes());
        message.extend_from_slice(&[0, Class::ANY.0 as u8, 0, 0, 0, 0]);
        message.extend_from_slice(&(length as u16).to_be_bytes());
        message.extend_from_slice(algorithm.wire());
        message.extend_from_slice(&self.timers());
        message.extend_from_slice(&(tag.len() as u16).to_be_bytes());
        message.extend_from_slice(tag);
        message.extend_from_slice(&id);
        message.extend_from_slice(&self.error.to_be_bytes());
        message.extend_from_slice(&(self.other.len() as u16).to_be_bytes());
        message.extend_from_slice(self.other);
        let count = u16::from_be_bytes([message[10], message[11]]).saturating_add(1);
        message[10..12].copy_from_slice(&count.to_be_bytes());
    }
}

/// Octets of the record with a full MAC and without other data.
pub(super) fn record_octets(key: &TsigKey) -> usize {
    key.name().len()
        + FIXED_OCTETS
        + key.algorithm().name().len()
        + FIELD_OCTETS
        + key.algorithm().mac_length()
}

/// Begins the MAC of a message that follows a message with the MAC `prior_mac` (RFC 8945 §4.3.1 and
/// §5.3.1).
pub(super) fn begin_chained_mac(key: &TsigKey, prior_mac: &[u8]) -> Mac {
    let mut mac = key.begin();
    mac.update(&(prior_mac.len() as u16).to_be_bytes());
    mac.update(prior_mac);
    mac
}
