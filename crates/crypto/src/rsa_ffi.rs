//! RSA operations of aws-lc that `aws-lc-rs` does not offer. `aws-lc-rs` can verify with keys below
//! 2048 bits, but can neither generate them nor sign with them, and it does not support public
//! exponents above 33 bits. [`rsa`](crate::rsa) needs these operations. `aws-lc-rs` also does not
//! offer the raw RSA operations (without padding), which the VRF RSA-FDH needs.
//!
//! Threads: `openssl/rsa.h` allows several threads to use an `RSA` object at once in functions that
//! do not mutate it. A function that takes a `const` pointer does not mutate it: `RSA_size` and
//! `RSA_private_key_to_bytes`. The functions for signing and verifying (`RSA_sign`, `RSA_verify`,
//! `RSA_sign_raw`, `RSA_verify_raw`) take a mutable pointer, because they cache values in the
//! object under a lock of their own. The header states that they are "considered non-mutating for
//! thread-safety purposes and may be used concurrently".

use std::ffi::{c_int, c_uint};
use std::ptr::{self, NonNull};

use aws_lc_rs::digest::{self, Digest};
use aws_lc_sys as lc;
use zeroize::Zeroizing;

/// The hash function of a signature.
#[derive(Clone, Copy)]
pub(crate) enum Hash {
    /// Only for verification.
    Sha1,
    Sha256,
    Sha512,
}

impl Hash {
    fn digest(self, message: &[u8]) -> Digest {
        match self {
            Self::Sha1 => digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, message),
            Self::Sha256 => digest::digest(&digest::SHA256, message),
            Self::Sha512 => digest::digest(&digest::SHA512, message),
        }
    }

    /// Returns the identifier of the hash function in aws-lc.
    fn nid(self) -> c_int {
        match self {
            Self::Sha1 => lc::NID_sha1,
            Self::Sha256 => lc::NID_sha256,
            Self::Sha512 => lc::NID_sha512,
        }
    }
}

/// The C prototype of `RSA_sign_raw` and `RSA_verify_raw`: key, number of octets written, output
/// and its length, input and its length, padding.
type RawOperation =
    unsafe extern "C" fn(*mut lc::RSA, *mut usize, *mut u8, usize, *const u8, usize, c_int) -> c_int;

/// An RSA key of aws-lc. It is freed on drop, which also wipes it: `OPENSSL_free` clears the memory
/// that it frees.
pub(crate) struct Rsa(NonNull<lc::RSA>);

// SAFETY: only this value refers to the object, and aws-lc does not bind an RSA object to the
// thread that created it.
unsafe impl Send for Rsa {}

// SAFETY: with a shared reference, only `modulus_octets`, `sign`, `verify`, `raw_operation` and
// `private_der` access the object. "Threads" in the documentation of this module names the
// functions that they call, and why several threads may call these at once.
unsafe impl Sync for Rsa {}

impl Drop for Rsa {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a function that transferred ownership of the object, and is
        // not used after this call.
        unsafe { lc::RSA_free(self.0.as_ptr()) }
    }
}

impl Rsa {
    /// Reads an `RSAPrivateKey` and checks that its numbers are consistent. Returns `None` if it is
    /// malformed or inconsistent.
    pub(crate) fn from_private_der(der: &[u8]) -> Option<Self> {
        // SAFETY: pointer and length are those of one slice, which the function does not use after
        // its return. It returns an object that we own, or null.
        NonNull::new(unsafe { lc::RSA_private_key_from_bytes(der.as_ptr(), der.len()) }).map(Self)
    }

    /// Creates a public key with an exponent of any length up to that of the modulus. Both numbers
    /// are big-endian. Returns `None` if aws-lc rejects the numbers, or memory is exhausted.
    pub(crate) fn from_public(modulus: &[u8], exponent: &[u8]) -> Option<Self> {
        let (modulus, exponent) = (BigNumber::new(modulus)?, BigNumber::new(exponent)?);
        // SAFETY: both numbers live until the end of this function, and the call copies them. It
        // returns an object that we own, or null.
        NonNull::new(unsafe { lc::RSA_new_public_key_large_e(modulus.0.as_ptr(), exponent.0.as_ptr()) })
            .map(Self)
    }

    /// Generates a key with the public exponent 65537. `bits`, the length of the modulus, must be a
    /// multiple of 128 and at least 256. Returns `None` for another length, or if the generation
    /// fails.
    pub(crate) fn generate(bits: u16) -> Option<Self> {
        // aws-lc would round the length down, and return a weaker key than requested.
        if !bits.is_multiple_of(128) {
            return None;
        }
        let exponent = BigNumber::new(&[1, 0, 1])?;
        // SAFETY: the call has no arguments. It returns an object that we own, or null.
        let key = Self(NonNull::new(unsafe { lc::RSA_new() })?);
        // SAFETY: no other reference to the key exists. The exponent lives until the end of this
        // function and is copied. The callback may be null.
        let generated = unsafe {
            lc::RSA_generate_key_ex(key.0.as_ptr(), c_int::from(bits), exponent.0.as_ptr(), ptr::null_mut())
        };
        (generated == 1).then_some(key)
    }

    /// Returns the key as an `RSAPrivateKey` (RFC 8017, appendix A.1.2), or `None` if it is a
    /// public key.
    pub(crate) fn private_der(&self) -> Option<Zeroizing<Vec<u8>>> {
        let (mut octets, mut length) = (ptr::null_mut(), 0);
        // SAFETY: both out-parameters outlive the call. It only reads the key.
        if unsafe { lc::RSA_private_key_to_bytes(&raw mut octets, &raw mut length, self.0.as_ptr()) } != 1 {
            return None;
        }
        // SAFETY: after success, `octets` points to `length` octets that we own.
        let copy = unsafe { std::slice::from_raw_parts(octets, length) }.to_vec();
        // SAFETY: aws-lc allocated the memory and we own it. It is freed once, and no pointer to it
        // is used afterwards. The call also wipes it.
        unsafe { lc::OPENSSL_free(octets.cast()) };
        Some(Zeroizing::new(copy))
    }

    /// Returns the length of the modulus in octets, which is the length of a signature.
    fn modulus_octets(&self) -> usize {
        // SAFETY: the call only reads the modulus, which every key of this type has.
        unsafe { lc::RSA_size(self.0.as_ptr()) as usize }
    }

    /// Writes a PKCS#1 v1.5 signature over `message` to `signature`, which must have the length of
    /// the modulus. Returns false if this fails.
    ///
    /// aws-lc blinds the computation, and checks the result with the public key before it returns
    /// it.
    pub(crate) fn sign(&self, hash: Hash, message: &[u8], signature: &mut [u8]) -> bool {
        if signature.len() != self.modulus_octets() {
            return false;
        }
        let digest = hash.digest(message);
        let digest = digest.as_ref();
        let mut written: c_uint = 0;
        // SAFETY: `digest` is a slice with its length. `signature` has the `RSA_size` octets that
        // the call writes at most, as checked above. `written` outlives the call.
        let done = unsafe {
            lc::RSA_sign(
                hash.nid(),
                digest.as_ptr(),
                digest.len(),
                signature.as_mut_ptr(),
                &raw mut written,
                self.0.as_ptr(),
            )
        };
        done == 1 && written as usize == signature.len()
    }

    /// Writes the result of the private operation (RSASP1 of RFC 8017) on `input` to `output`.
    /// `input` is big-endian and below the modulus. Both must have the length of the modulus.
    /// aws-lc blinds the operation, uses the Chinese remainder theorem, and checks the result with
    /// the public key. Returns false if a length or `input` is wrong, or the operation or check
    /// fails.
    pub(crate) fn private_operation(&self, input: &[u8], output: &mut [u8]) -> bool {
        self.have_modulus_length(input, output) && self.raw_operation(lc::RSA_sign_raw, input, output)
    }

    /// Writes the result of the public operation (RSAVP1 of RFC 8017) on `input`, which is
    /// big-endian, to `output`. Returns false if one of them does not have the length of the
    /// modulus, or `input` is not below the modulus.
    pub(crate) fn public_operation(&self, input: &[u8], output: &mut [u8]) -> bool {
        self.have_modulus_length(input, output) && self.raw_operation(lc::RSA_verify_raw, input, output)
    }

    fn have_modulus_length(&self, input: &[u8], output: &[u8]) -> bool {
        input.len() == self.modulus_octets() && output.len() == self.modulus_octets()
    }

    /// Calls `operation` with the key. Returns false if it fails.
    fn raw_operation(&self, operation: RawOperation, input: &[u8], output: &mut [u8]) -> bool {
        let mut written = 0;
        // SAFETY: `operation` is `RSA_sign_raw` or `RSA_verify_raw`. Both write at most as many
        // octets as the given length of `output`, read `input`, and keep no pointer to either.
        // `written` outlives the call. Several threads may use the key at once (see the
        // documentation of this module).
        let done = unsafe {
            operation(
                self.0.as_ptr(),
                &raw mut written,
                output.as_mut_ptr(),
                output.len(),
                input.as_ptr(),
                input.len(),
                lc::RSA_NO_PADDING,
            )
        };
        done == 1 && written == output.len()
    }

    /// Returns whether `signature` is a PKCS#1 v1.5 signature over `message`.
    pub(crate) fn verify(&self, hash: Hash, message: &[u8], signature: &[u8]) -> bool {
        let digest = hash.digest(message);
        let digest = digest.as_ref();
        // SAFETY: `digest` and `signature` are slices with their lengths, which the call only
        // reads. Several threads may use the key at once (see the documentation of this module).
        let verified = unsafe {
            lc::RSA_verify(
                hash.nid(),
                digest.as_ptr(),
                digest.len(),
                signature.as_ptr(),
                signature.len(),
                self.0.as_ptr(),
            )
        };
        verified == 1
    }
}

/// An owned number of aws-lc.
struct BigNumber(NonNull<lc::BIGNUM>);

impl BigNumber {
    /// Copies a big-endian number. Returns `None` if memory is exhausted.
    fn new(octets: &[u8]) -> Option<Self> {
        // SAFETY: pointer and length are those of one slice, which the call copies. With a null
        // third argument, the function returns a number that we own, or null.
        NonNull::new(unsafe { lc::BN_bin2bn(octets.as_ptr(), octets.len(), ptr::null_mut()) }).map(Self)
    }
}

impl Drop for BigNumber {
    fn drop(&mut self) {
        // SAFETY: we own the number, and it is not used after this call.
        unsafe { lc::BN_free(self.0.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_aws_lc_would_round_down_are_rejected() {
        for bits in [1023, 1025, 1279, 1281] {
            assert!(Rsa::generate(bits).is_none(), "{bits}");
        }
    }
}
