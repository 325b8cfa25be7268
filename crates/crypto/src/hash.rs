//! Hash functions of aws-lc that write where the caller says, so that what is secret can be wiped.

use std::ffi::c_uint;

use aws_lc_sys as lc;
use zeroize::Zeroizing;

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

/// HMAC-SHA-256 of `message` under `key`; `None` where the library has no memory.
pub(crate) fn hmac_sha256(key: &[u8; 32], message: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    let mut code = Zeroizing::new([0; 32]);
    let mut written: c_uint = 0;
    // SAFETY: `EVP_sha256` returns a constant of the library. Key and message are given with their lengths and only read;
    // the code has the 32 octets that there is room for; `written` outlives the call.
    let made = unsafe {
        lc::HMAC(
            lc::EVP_sha256(),
            key.as_ptr().cast(),
            key.len(),
            message.as_ptr(),
            message.len(),
            code.as_mut_ptr(),
            &raw mut written,
        )
    };
    (!made.is_null() && written == 32).then_some(code)
}
