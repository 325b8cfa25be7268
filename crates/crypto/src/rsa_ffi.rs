//! RSA operations of aws-lc that `aws-lc-rs` does not offer: keys below 2048 bits can be verified with there, but
//! neither made nor signed with, and public exponents above 33 bits not be used at all; and the bare RSA operation. An
//! owned key, an owned number, and the few calls on them.
//!
//! Threads: `openssl/rsa.h` allows an `RSA` object to be used by several threads at once in functions that do not
//! mutate it, and names signing and verifying among these ("considered non-mutating for thread-safety purposes
//! and may be used concurrently"): what they cache in the object, they guard with a lock of their own.

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

/// The common form of `RSA_sign_raw` and `RSA_verify_raw`: key, octets written, output and its length, input and its
/// length, padding.
type RawOperation =
    unsafe extern "C" fn(*mut lc::RSA, *mut usize, *mut u8, usize, *const u8, usize, c_int) -> c_int;

/// An RSA key of aws-lc. Freed when dropped, which also wipes it: `OPENSSL_free` clears what it frees.
pub(crate) struct Rsa(NonNull<lc::RSA>);

// SAFETY: the object belongs to this value alone (no other reference to it was taken), and aws-lc ties no RSA object
// to the thread that made it.
unsafe impl Send for Rsa {}

// SAFETY: behind a shared reference only `octets`, `sign`, `verify`, `operate` and `private_der` reach the object; see the head of this
// module on why aws-lc allows these on several threads at once.
unsafe impl Sync for Rsa {}

impl Drop for Rsa {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a function that gave ownership of the object, and is not used after this.
        unsafe { lc::RSA_free(self.0.as_ptr()) }
    }
}

impl Rsa {
    /// Reads an `RSAPrivateKey` and checks that its numbers belong together.
    pub(crate) fn from_private_der(der: &[u8]) -> Option<Self> {
        // SAFETY: the pointer and the length are those of one slice, of which the function makes no use later. It
        // returns an object of ours, or null.
        NonNull::new(unsafe { lc::RSA_private_key_from_bytes(der.as_ptr(), der.len()) }).map(Self)
    }

    /// A public key with an exponent of any length up to that of the modulus; both numbers big-endian.
    pub(crate) fn from_public(modulus: &[u8], exponent: &[u8]) -> Option<Self> {
        let (modulus, exponent) = (Number::new(modulus)?, Number::new(exponent)?);
        // SAFETY: both numbers live until the end of this function, and the function copies them. It returns an
        // object of ours, or null.
        NonNull::new(unsafe { lc::RSA_new_public_key_large_e(modulus.0.as_ptr(), exponent.0.as_ptr()) })
            .map(Self)
    }

    /// Makes a key with public exponent 65537.
    pub(crate) fn generate(bits: u16) -> Option<Self> {
        let exponent = Number::new(&[1, 0, 1])?;
        // SAFETY: takes nothing, returns an object of ours, or null.
        let key = Self(NonNull::new(unsafe { lc::RSA_new() })?);
        // SAFETY: the key is ours alone; the exponent lives until the end of this function and is copied; a null
        // callback is allowed.
        let made = unsafe {
            lc::RSA_generate_key_ex(key.0.as_ptr(), c_int::from(bits), exponent.0.as_ptr(), ptr::null_mut())
        };
        (made == 1).then_some(key)
    }

    /// The key as an `RSAPrivateKey`.
    pub(crate) fn private_der(&self) -> Option<Zeroizing<Vec<u8>>> {
        let (mut octets, mut length) = (ptr::null_mut(), 0);
        // SAFETY: both out-parameters outlive the call, which only reads the key.
        if unsafe { lc::RSA_private_key_to_bytes(&raw mut octets, &raw mut length, self.0.as_ptr()) } != 1 {
            return None;
        }
        // SAFETY: on success `octets` points to `length` octets that are now ours.
        let copy = unsafe { std::slice::from_raw_parts(octets, length) }.to_vec();
        // SAFETY: the memory is aws-lc's and ours to free, once; nothing points to it any more.
        unsafe { lc::OPENSSL_free(octets.cast()) };
        Some(Zeroizing::new(copy))
    }

    /// Octets of the modulus, and so of a signature.
    fn octets(&self) -> usize {
        // SAFETY: only reads the modulus, which every key here has.
        unsafe { lc::RSA_size(self.0.as_ptr()) as usize }
    }

    /// Writes a PKCS#1 v1.5 signature over `message` into `signature`, which has the length of the modulus.
    ///
    /// aws-lc blinds the computation and checks the result with the public key before it gives it out.
    pub(crate) fn sign(&self, hash: Hash, message: &[u8], signature: &mut [u8]) -> bool {
        if signature.len() != self.octets() {
            return false;
        }
        let digest = hash.digest(message);
        let digest = digest.as_ref();
        let mut written: c_uint = 0;
        // SAFETY: `digest` is a slice with its length; `signature` has room for the `RSA_size` octets that are written
        // at most, as checked above; `written` outlives the call.
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

    /// The private operation (RSASP1 of RFC 8017) on `input`, big-endian and below the modulus; input and output have the
    /// length of the modulus. aws-lc blinds it, uses the Chinese remainder theorem, and checks the outcome with the
    /// public key.
    pub(crate) fn private_operation(&self, input: &[u8], output: &mut [u8]) -> bool {
        self.has_length(input, output) && self.operate(lc::RSA_sign_raw, input, output)
    }

    /// The public operation (RSAVP1 of RFC 8017) on `input`, big-endian; input and output have the length of the modulus.
    /// False from the modulus on.
    pub(crate) fn public_operation(&self, input: &[u8], output: &mut [u8]) -> bool {
        self.has_length(input, output) && self.operate(lc::RSA_verify_raw, input, output)
    }

    fn has_length(&self, input: &[u8], output: &[u8]) -> bool {
        input.len() == self.octets() && output.len() == self.octets()
    }

    fn operate(&self, operation: RawOperation, input: &[u8], output: &mut [u8]) -> bool {
        let mut written = 0;
        // SAFETY: `operation` is `RSA_sign_raw` or `RSA_verify_raw`. Both write at most as many octets as `output` is said
        // to have, read `input`, and keep neither; `written` outlives the call. Like signing and verifying above, they do
        // not mutate the key for other threads to see.
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

    /// Whether `signature` is a PKCS#1 v1.5 signature over `message`.
    pub(crate) fn verify(&self, hash: Hash, message: &[u8], signature: &[u8]) -> bool {
        let digest = hash.digest(message);
        let digest = digest.as_ref();
        // SAFETY: two slices with their lengths, only read, as is the key.
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
        // SAFETY: the pointer and the length are those of one slice, which is copied. With a null third argument the
        // function returns a number of ours, or null.
        NonNull::new(unsafe { lc::BN_bin2bn(octets.as_ptr(), octets.len(), ptr::null_mut()) }).map(Self)
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        // SAFETY: the number is ours, and is not used after this.
        unsafe { lc::BN_free(self.0.as_ptr()) }
    }
}
