//! Hash chains: the owners of NSEC3 records (RFC 5155) and of NSEC5 records (draft-vcelak-nsec5),
//! in the order of their hashes.

use super::Image;
use super::node::ImageNode;

/// Octets of the label of an NSEC5 hash, the longest hash (base32hex without padding).
const MAX_LABEL_OCTETS: usize = 52;

/// The owners of a chain with hashes of `N` octets.
pub(super) struct HashChain<'i, const N: usize> {
    image: &'i Image,
    hashes: &'i [[u8; N]],
    /// Positions of the blocks of the owners, in the order of `hashes`.
    nodes: &'i [[u8; 4]],
}

impl<'i, const N: usize> HashChain<'i, N> {
    /// Creates a chain. `hashes` are the hashes of the owners, `nodes` the positions of their
    /// blocks.
    pub(super) fn new(image: &'i Image, hashes: &'i [u8], nodes: &'i [u8]) -> Self {
        Self { image, hashes: hashes.as_chunks().0, nodes: nodes.as_chunks().0 }
    }

    /// Returns the owner whose hash is `hash`.
    pub(super) fn matching(&self, hash: &[u8; N]) -> Option<ImageNode<'i>> {
        let position = self.position_at_or_before(hash)?;
        (self.hashes[position] == *hash).then(|| self.node(position))
    }

    /// Returns the owner of the record that covers `hash`; `None` if an owner matches it.
    pub(super) fn covering(&self, hash: &[u8; N]) -> Option<ImageNode<'i>> {
        let last = self.hashes.len().checked_sub(1)?;
        let position = self.position_at_or_before(hash).unwrap_or(last);
        (self.hashes[position] != *hash).then(|| self.node(position))
    }

    fn node(&self, position: usize) -> ImageNode<'i> {
        self.image.node(u32::from_le_bytes(self.nodes[position]))
    }

    /// Returns the first octets of the hash at `position` as a number.
    fn prefix(&self, position: usize) -> u64 {
        prefix(&self.hashes[position])
    }

    /// Returns the position of the last owner at or before `hash`.
    fn position_at_or_before(&self, hash: &[u8; N]) -> Option<usize> {
        let prefix = prefix(hash);
        let after = self.index_after(prefix);
        let last = after.checked_sub(1)?;
        if self.hashes[last] <= *hash {
            return Some(last);
        }
        // Usually at most one hash has these first octets, but a malicious zone may have any number
        // of such hashes.
        self.hashes[..last].partition_point(|other| other <= hash).checked_sub(1)
    }

    /// Returns the position of the first hash whose first octets are greater than `wanted`. Hashes
    /// are evenly distributed, so the search starts at an estimate from the first octets.
    fn index_after(&self, wanted: u64) -> usize {
        let count = self.hashes.len();
        let guess = ((u128::from(wanted) * count as u128) >> 64) as usize;
        let (mut low, mut high) = (0, count);
        let mut step = 8;
        // Invariant: each hash before `low` is at or before `wanted`, and each hash from `high` on
        // is after `wanted`.
        if count > 0 && self.prefix(guess) <= wanted {
            low = guess + 1;
            while low < count && self.prefix((low + step).min(count) - 1) <= wanted {
                low = (low + step).min(count);
                step *= 2;
            }
            high = (low + step).min(count);
        } else if count > 0 {
            high = guess;
            while high > 0 && self.prefix(high.saturating_sub(step)) > wanted {
                high = high.saturating_sub(step);
                step *= 2;
            }
            low = high.saturating_sub(step);
        }
        low + self.hashes[low..high].partition_point(|hash| prefix(hash) <= wanted)
    }
}

/// Returns the first octets of a hash as a number.
fn prefix(hash: &[u8]) -> u64 {
    hash.first_chunk().map_or(0, |prefix| u64::from_be_bytes(*prefix))
}

/// Decodes the hash from the first label of an owner; `None` if it is not a hash of `N` octets.
pub(super) fn decode<const N: usize>(label: &[u8]) -> Option<[u8; N]> {
    let mut hash = [0; N];
    let mut upper_case = [0; MAX_LABEL_OCTETS];
    let upper_case =
        upper_case.get_mut(..label.len()).filter(|upper_case| upper_case.len() == (N * 8).div_ceil(5))?;
    upper_case.copy_from_slice(label);
    upper_case.make_ascii_uppercase();
    data_encoding::BASE32HEX_NOPAD.decode_mut(upper_case, &mut hash).ok()?;
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn labels_are_those_of_base32hex(short in any::<[u8; 20]>(), long in any::<[u8; 32]>()) {
            let label = |hash: &[u8]| data_encoding::BASE32HEX_NOPAD.encode(hash).to_lowercase();
            prop_assert_eq!(decode(label(&short).as_bytes()), Some(short));
            prop_assert_eq!(decode(label(&long).as_bytes()), Some(long));
        }

        #[test]
        fn every_position_between_hashes_is_found(
            tails in proptest::collection::btree_set(any::<(u8, u8)>(), 0..40),
            wanted in any::<(u8, u8)>(),
        ) {
            // Some hashes have the same first octets, which the estimate cannot distinguish.
            let hash = |(first, last): &(u8, u8)| {
                let mut hash = [0; 20];
                (hash[0], hash[19]) = (first & 0xf0, *last);
                hash
            };
            let hashes: std::collections::BTreeSet<[u8; 20]> = tails.iter().map(hash).collect();
            let hashes: Vec<[u8; 20]> = hashes.into_iter().collect();
            let image = Image::compile(&one_name()).unwrap();
            let nodes = vec![0; hashes.len() * 4];
            let chain = HashChain::<20>::new(&image, hashes.as_flattened(), &nodes);
            let expected = hashes.partition_point(|other| *other <= hash(&wanted)).checked_sub(1);
            prop_assert_eq!(chain.position_at_or_before(&hash(&wanted)), expected);
            prop_assert_eq!(chain.matching(&hash(&wanted)).is_some(), hashes.contains(&hash(&wanted)));
        }
    }

    fn one_name() -> crate::Contents {
        let text = b"example. 1 SOA . . 1 1 1 1 1\n";
        crate::read::read_text(text, std::path::Path::new("zone"), None).unwrap().contents
    }

    #[test]
    fn other_labels_are_not_decoded() {
        assert_eq!(decode::<20>(b"0p9mhaveqvm6t7vbl5lop2u3t2rp3to"), None);
        assert_eq!(decode::<20>(b"wp9mhaveqvm6t7vbl5lop2u3t2rp3tom"), None);
        assert_eq!(decode::<32>(&[b'z'; 52]), None);
        assert_eq!(decode::<20>(&[b'0'; 63]), None);
    }
}
