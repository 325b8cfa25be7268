//! The functions that replace those of libcrypto.
//!
//! Unbound calls `EVP_DigestVerify` for all algorithms. BIND calls `EVP_VerifyFinal` for RSA,
//! `EVP_DigestVerifyFinal` for ECDSA and `EVP_DigestVerify` for Ed25519 and Ed448. The others are
//! those of other and older programs.
//!
//! A call with the result 1 (valid) or 0 (not valid) is counted. A negative result states that
//! nothing was verified: the arguments are wrong.
#![allow(non_snake_case)] // the names are those of libcrypto

use libc::{c_int, c_uchar, c_uint, c_void, size_t};
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Names of libcrypto, for programs that have loaded it for a part of themselves only.
const LIBRARIES: [&CStr; 2] = [c"libcrypto.so.3", c"libcrypto.so.1.1"];

thread_local! {
    /// Number of counted functions that the thread is in: libcrypto may call one in another one.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// The replaced function.
struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Returns the address of the function; null if no library has it.
    fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name is a string of C.
        let mut found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        for library in LIBRARIES {
            if found.is_null() {
                // SAFETY: the names are strings of C. RTLD_NOLOAD loads nothing, so that no code of
                // a library runs. The handle keeps the library loaded, as the program does.
                unsafe {
                    let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
                    if !handle.is_null() {
                        found = libc::dlsym(handle, self.name.as_ptr());
                    }
                }
            }
        }
        if found.is_null() {
            crate::output::complain(&format!("no library has the function {}", self.name.to_string_lossy()));
        }
        self.address.store(found, Ordering::Release);
        found
    }
}

/// Calls a function and counts it, unless the thread is in another one.
fn counted(call: impl FnOnce() -> c_int) -> c_int {
    let depth = DEPTH.get();
    DEPTH.set(depth + 1);
    let result = call();
    DEPTH.set(depth);
    if depth == 0 && result >= 0 {
        crate::count();
    }
    result
}

macro_rules! interpose {
    ($($name:ident, $c_name:literal, ($($argument:ident: $type:ty),+);)+) => {$(
        /// Calls the function of libcrypto with this name, and counts the call.
        ///
        /// # Safety
        /// The requirements of the function of libcrypto.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),+) -> c_int {
            type Function = unsafe extern "C" fn($($type),+) -> c_int;
            static NEXT: Next = Next::new($c_name);
            let address = NEXT.address();
            if address.is_null() {
                return -1;
            }
            // SAFETY: the address is that of the function of libcrypto with this name, which has
            // these arguments.
            let next = unsafe { std::mem::transmute::<*mut c_void, Function>(address) };
            // SAFETY: the caller meets the requirements.
            counted(|| unsafe { next($($argument),+) })
        }
    )+};
}

// The pointers to contexts and keys have the type `void *` here: their contents are not used.
interpose! {
    EVP_DigestVerify, c"EVP_DigestVerify",
        (context: *mut c_void, signature: *const c_uchar, length: size_t, data: *const c_uchar, data_length: size_t);
    EVP_DigestVerifyFinal, c"EVP_DigestVerifyFinal",
        (context: *mut c_void, signature: *const c_uchar, length: size_t);
    EVP_VerifyFinal, c"EVP_VerifyFinal",
        (context: *mut c_void, signature: *const c_uchar, length: c_uint, key: *mut c_void);
    EVP_VerifyFinal_ex, c"EVP_VerifyFinal_ex",
        (context: *mut c_void, signature: *const c_uchar, length: c_uint, key: *mut c_void, library: *mut c_void,
         properties: *const libc::c_char);
    EVP_PKEY_verify, c"EVP_PKEY_verify",
        (context: *mut c_void, signature: *const c_uchar, length: size_t, data: *const c_uchar, data_length: size_t);
    RSA_verify, c"RSA_verify",
        (digest: c_int, data: *const c_uchar, data_length: c_uint, signature: *const c_uchar, length: c_uint,
         key: *mut c_void);
    ECDSA_verify, c"ECDSA_verify",
        (digest: c_int, data: *const c_uchar, data_length: c_int, signature: *const c_uchar, length: c_int,
         key: *mut c_void);
    ECDSA_do_verify, c"ECDSA_do_verify",
        (data: *const c_uchar, data_length: c_int, signature: *const c_void, key: *mut c_void);
}
