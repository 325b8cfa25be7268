//! NSEC3 (RFC 5155): each record contains the next hash; opt-out omits insecure delegations (§6).

pub(crate) mod chain;
pub(crate) mod check;
pub(in crate::denial) mod prove;
pub(crate) mod validate;

pub use chain::{decode_owner, label};
use nonesuch_proto::NameRef;
pub use nonesuch_zone::MAX_NSEC3_ITERATIONS as MAX_ITERATIONS;
pub use validate::hash_block_count;

/// SHA-1, the only hash algorithm that is defined (RFC 5155 §11).
pub const SHA1: u8 = 1;
/// The opt-out flag (RFC 5155 §3.1.2.1).
pub const OPT_OUT_FLAG: u8 = 1;
/// Length of the first label of a hashed owner name: 20 octets in base32hex.
pub(crate) const HASH_LABEL_OCTETS: usize = 32;

/// The hash of a name.
pub(crate) type Hash = [u8; 20];

/// Salt and iterations of an NSEC3 chain (RFC 5155 §3.1). The default is no salt and no additional
/// iterations (RFC 9276 §3.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Nsec3Params {
    /// The salt, 0 to 255 octets.
    pub salt: Vec<u8>,
    /// Additional iterations.
    pub iterations: u16,
}

impl Nsec3Params {
    /// Appends NSEC3PARAM RDATA (RFC 5155 §4.2); its flags are 0 (§4.1.2).
    pub fn push_param_rdata(&self, out: &mut Vec<u8>) {
        self.push_fields(0, out);
    }

    /// Appends the fields that NSEC3 and NSEC3PARAM have in common.
    pub(crate) fn push_fields(&self, flags: u8, out: &mut Vec<u8>) {
        out.extend_from_slice(&[SHA1, flags]);
        out.extend_from_slice(&self.iterations.to_be_bytes());
        out.push(self.salt.len() as u8);
        out.extend_from_slice(&self.salt);
    }

    /// The hash of `name`. `canonical` is a buffer for its canonical form.
    pub(crate) fn hash(&self, name: NameRef<'_>, canonical: &mut Vec<u8>) -> Hash {
        canonical.clear();
        name.push_canonical(canonical);
        nonesuch_crypto::nsec3_hash(canonical, &self.salt, self.iterations)
    }
}

/// The fields of NSEC3 RDATA (RFC 5155 §3.2). Those before `next` are also the fields of
/// NSEC3PARAM.
#[derive(Clone, Copy, Debug)]
pub struct Nsec3<'a> {
    /// The hash algorithm.
    pub algorithm: u8,
    /// The flags.
    pub flags: u8,
    /// Additional iterations.
    pub iterations: u16,
    /// The salt.
    pub salt: &'a [u8],
    /// The next hashed owner name, unencoded.
    pub next: &'a [u8],
    /// The type bit map.
    pub bitmap: &'a [u8],
}

impl<'a> Nsec3<'a> {
    /// Parses NSEC3 RDATA; `None` if they are truncated.
    #[must_use]
    pub fn parse(rdata: &'a [u8]) -> Option<Self> {
        let (fields, rest) = Self::parse_param(rdata)?;
        let (length, rest) = rest.split_first()?;
        let (next, bitmap) = rest.split_at_checked(usize::from(*length))?;
        Some(Self { next, bitmap, ..fields })
    }

    /// Parses the fields that NSEC3PARAM also has; returns them and the rest of the RDATA.
    pub(crate) fn parse_param(rdata: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let [algorithm, flags, high, low, length, rest @ ..] = rdata else { return None };
        let (salt, rest) = rest.split_at_checked(usize::from(*length))?;
        let iterations = u16::from_be_bytes([*high, *low]);
        let fields = Self { algorithm: *algorithm, flags: *flags, iterations, salt, next: &[], bitmap: &[] };
        Some((fields, rest))
    }

    pub(crate) fn has_params(&self, params: &Nsec3Params) -> bool {
        self.algorithm == SHA1 && self.iterations == params.iterations && self.salt == params.salt
    }
}
