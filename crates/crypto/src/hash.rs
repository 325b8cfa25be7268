//! Hash functions of aws-lc that write where the caller says, so that what is secret can be wiped.

use aws_lc_sys as lc;

/// SHA-256 of `message`.
pub(crate) fn sha256(message: &[u8]) -> [u8; 32] {
    let mut digest = [0; 32];
    // SAFETY: the pointer and the length are those of one slice, which is only read; a SHA-256 digest has the 32
    // octets that `digest` has room for.
    unsafe { lc::SHA256(message.as_ptr(), message.len(), digest.as_mut_ptr()) };
    digest
}

/// SHA-512 of `message`, into `digest`.
pub(crate) fn sha512_into(message: &[u8], digest: &mut [u8; 64]) {
    // SAFETY: the pointer and the length are those of one slice, which is only read; a SHA-512 digest has the 64
    // octets that `digest` has room for.
    unsafe { lc::SHA512(message.as_ptr(), message.len(), digest.as_mut_ptr()) };
}

/// SHA-512 of `message`.
pub(crate) fn sha512(message: &[u8]) -> [u8; 64] {
    let mut digest = [0; 64];
    sha512_into(message, &mut digest);
    digest
}
