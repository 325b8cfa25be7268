//! The primitive that MAYO uses from aws-lc besides SHAKE256: AES-128 in counter mode.

use aws_lc_rs::cipher::{AES_128, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;

use crate::hash::LibraryFailed;

/// The key stream of AES-128 in counter mode, from counter zero (SP 800-38A).
pub(super) struct KeyStream {
    key: EncryptingKey,
    /// The number of the next block.
    block: u128,
}

impl KeyStream {
    /// Creates the stream of a key.
    ///
    /// # Errors
    /// If the library has no memory for its state.
    pub(super) fn new(key: &[u8; 16]) -> Result<Self, LibraryFailed> {
        let key = UnboundCipherKey::new(&AES_128, key).map_err(|_| LibraryFailed)?;
        let key = EncryptingKey::ctr(key).map_err(|_| LibraryFailed)?;
        Ok(Self { key, block: 0 })
    }

    /// Replaces `blocks` by the next blocks of the stream.
    ///
    /// # Errors
    /// If the library fails.
    pub(super) fn next(&mut self, blocks: &mut [[u8; 32]]) -> Result<(), LibraryFailed> {
        let octets = blocks.as_flattened_mut();
        octets.fill(0);
        let counter = EncryptionContext::Iv128(FixedLength::from(self.block.to_be_bytes()));
        self.block += octets.len() as u128 / 16;
        // This use is safe: one key has one stream, the counter never repeats, and the stream does
        // not encrypt data.
        self.key.less_safe_encrypt(octets, counter).map_err(|_| LibraryFailed)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

    /// AES of the blocks 0 and 1 with the key 0: the hash key and the tag of test case 1 of the GCM
    /// specification.
    #[test]
    fn known_answer() {
        let mut blocks = [[9; 32]];
        KeyStream::new(&[0; 16]).unwrap().next(&mut blocks).unwrap();
        let expected = "66e94bd4ef8a2c3b884cfa59ca342b2e58e2fccefa7e3061367f1d57a4e7455a";
        assert_eq!(HEXLOWER.encode(&blocks[0]), expected);
    }

    #[test]
    fn a_stream_read_in_pieces_equals_the_whole_stream() {
        let (mut whole, mut pieces) = ([[0; 32]; 300], [[0; 32]; 300]);
        KeyStream::new(&[5; 16]).unwrap().next(&mut whole).unwrap();
        let mut stream = KeyStream::new(&[5; 16]).unwrap();
        for piece in pieces.chunks_mut(7) {
            stream.next(piece).unwrap();
        }
        assert_eq!(pieces, whole);
    }
}
