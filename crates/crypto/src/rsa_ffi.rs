//! RSA operations of aws-lc that `aws-lc-rs` does not offer. `aws-lc-rs` can verify with keys below
//! 2048 bits, but can neither generate them nor sign with them, and it does not support public
//! exponents above 33 bits. It also does not offer the raw RSA operation. This module has an owned
//! key, an owned number, and functions for the few calls with them.
//!
//! Threads: `openssl/rsa.h` allows several threads to use an `RSA` object at once in functions that
//! do not mutate it. It lists signing and verifying among these ("considered non-mutating for
//! thread-safety purposes and may be used concurrently"): these functions protect the values that
//! they cache in the object with their own lock.

use std::ffi::{c_int, c_uint};
use std::ptr::{self, NonNull};

use aws_lc_rs::digest::{self, Digest};
use aws_lc_sys as lc;
use zeroize::Zeroizing;

/// The hash function of a signature.
#[derive(Clone, Copy)]
pub(crate) enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    fn digest(self, message: &[u8]) -> Digest {
        match self {
            Self::Sha256 => digest::digest(&digest::SHA256, message),
            Self::Sha512 => digest::digest(&digest::SHA512, message),
        }
    }

    fn identifier(self) -> c_int {
        match self {
            Self::Sha256 => lc::NID_sha256,
            Self::Sha512 => lc::NID_sha512,
        }
    }
}

/// The common signature of `RSA_sign_raw` and `RSA_verify_raw`: key, number of octets written,
/// output and its length, input and its length, padding.
type RawOperation =
    unsafe extern "C" fn(*mut lc::RSA, *mut usize, *mut u8, usize, *const u8, usize, c_int) -> c_int;

/// An RSA key of aws-lc. It is freed on drop, which also wipes it: `OPENSSL_free` clears the memory
/// that it frees.
pub(crate) struct Rsa(NonNull<lc::RSA>);

// SAFETY: only this value refers to the object, and aws-lc does not bind an RSA object to the
// thread that created it.
unsafe impl Send for Rsa {}

// SAFETY: with a shared reference, only `octets`, `sign`, `verify`, `operate` and `private_der`
// access the object. The documentation of this module explains why aws-lc allows these on several
// threads at once.
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
    /// are big-endian.
    pub(crate) fn from_public(modulus: &[u8], exponent: &[u8]) -> Option<Self> {
        let (modulus, exponent) = (Number::new(modulus)?, Number::new(exponent)?);
        // SAFETY: both numbers live until the end of this function, and the call copies them. It
        // returns an object that we own, or null.
        NonNull::new(unsafe { lc::RSA_new_public_key_large_e(modulus.0.as_ptr(), exponent.0.as_ptr()) })
            .map(Self)
    }

    /// Generates a key with the public exponent 65537.
    pub(crate) fn generate(bits: u16) -> Option<Self> {
        let exponent = Number::new(&[1, 0, 1])?;
        // SAFETY: the call has no arguments. It returns an object that we own, or null.
        let key = Self(NonNull::new(unsafe { lc::RSA_new() })?);
        // SAFETY: no other reference to the key exists. The exponent lives until the end of this
        // function and is copied. The callback may be null.
        let made = unsafe {
            lc::RSA_generate_key_ex(key.0.as_ptr(), c_int::from(bits), exponent.0.as_ptr(), ptr::null_mut())
        };
        (made == 1).then_some(key)
    }

    /// Returns the key as an `RSAPrivateKey`.
    pub(crate) fn private_der(&self) -> Option<Zeroizing<Vec<u8>>> {
        let (mut octets, mut length) = (ptr::null_mut(), 0);
        // SAFETY: both out-parameters outlive the call, which only reads the key.
        if unsafe { lc::RSA_private_key_to_bytes(&raw mut octets, &raw mut length, self.0.as_ptr()) } != 1 {
            return None;
        }
        // SAFETY: after success, `octets` points to `length` octets that we own.
        let copy = unsafe { std::slice::from_raw_parts(octets, length) }.to_vec();
        // SAFETY: aws-lc allocated the memory and we own it. It is freed once, and no pointer to it
        // is used afterwards.
        unsafe { lc::OPENSSL_free(octets.cast()) };
        Some(Zeroizing::new(copy))
    }

    /// Returns the length of the modulus in octets, which is the length of a signature.
    fn octets(&self) -> usize {
        // SAFETY: the call only reads the modulus, which every key of this type has.
        unsafe { lc::RSA_size(self.0.as_ptr()) as usize }
    }

    /// Writes a PKCS#1 v1.5 signature over `message` to `signature`, which must have the length of
    /// the modulus. Returns false if this fails.
    ///
    /// aws-lc blinds the computation, and checks the result with the public key before it returns
    /// it.
    pub(crate) fn sign(&self, hash: Hash, message: &[u8], signature: &mut [u8]) -> bool {
        if signature.len() != self.octets() {
            return false;
        }
        let digest = hash.digest(message);
        let digest = digest.as_ref();
        let mut written: c_uint = 0;
        // SAFETY: `digest` is a slice with its length. `signature` has the `RSA_size` octets that
        // the call writes at most, as checked above. `written` outlives the call.
        let done = unsafe {
            lc::RSA_sign(
                hash.identifier(),
                digest.as_ptr(),
                digest.len(),
                signature.as_mut_ptr(),
                &raw mut written,
                self.0.as_ptr(),
            )
        };
        done == 1 && written as usize == signature.len()
    }

    /// The private operation (RSASP1 of RFC 8017) on `input`, which is big-endian and below the
    /// modulus. Input and output must have the length of the modulus. aws-lc blinds the operation,
    /// uses the Chinese remainder theorem, and checks the result with the public key. Returns false
    /// if this fails.
    pub(crate) fn private_operation(&self, input: &[u8], output: &mut [u8]) -> bool {
        self.has_length(input, output) && self.operate(lc::RSA_sign_raw, input, output)
    }

    /// The public operation (RSAVP1 of RFC 8017) on `input`, which is big-endian. Input and output
    /// must have the length of the modulus. Returns false if `input` is not below the modulus.
    pub(crate) fn public_operation(&self, input: &[u8], output: &mut [u8]) -> bool {
        self.has_length(input, output) && self.operate(lc::RSA_verify_raw, input, output)
    }

    fn has_length(&self, input: &[u8], output: &[u8]) -> bool {
        input.len() == self.octets() && output.len() == self.octets()
    }

    fn operate(&self, operation: RawOperation, input: &[u8], output: &mut [u8]) -> bool {
        let mut written = 0;
        // SAFETY: `operation` is `RSA_sign_raw` or `RSA_verify_raw`. Both write at most as many
        // octets as the given length of `output`, read `input`, and keep no pointer to either.
        // `written` outlives the call. Like signing and verifying above, they do not mutate the key
        // in a way that is visible to other threads.
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
        // SAFETY: two slices with their lengths. The call only reads them and the key.
        let fits = unsafe {
            lc::RSA_verify(
                hash.identifier(),
                digest.as_ptr(),
                digest.len(),
                signature.as_ptr(),
                signature.len(),
                self.0.as_ptr(),
            )
        };
        fits == 1
    }
}

/// A number of aws-lc.
struct Number(NonNull<lc::BIGNUM>);

impl Number {
    fn new(octets: &[u8]) -> Option<Self> {
        // SAFETY: pointer and length are those of one slice, which the call copies. With a null
        // third argument, the function returns a number that we own, or null.
        NonNull::new(unsafe { lc::BN_bin2bn(octets.as_ptr(), octets.len(), ptr::null_mut()) }).map(Self)
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        // SAFETY: we own the number, and it is not used after this call.
        unsafe { lc::BN_free(self.0.as_ptr()) }
    }
}
