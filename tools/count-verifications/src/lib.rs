//! Counts the signatures that a resolver verifies with libcrypto, and writes time-stamped totals.
//!
//! The library is preloaded into the process of the resolver (`LD_PRELOAD`). It replaces the
//! functions of libcrypto that verify signatures by functions that call them and count. The file
//! that the environment variable `NONESUCH_VERIFICATIONS` names gets a line when the library is
//! loaded, a line each second from the first verification on, and a last line when the process exits:
//!
//!     MICROSECONDS-SINCE-1970 TOTAL PROCESS-ID
//!
//! Each process counts its own calls. It writes a line with the total 0 when it starts, and another
//! one before its first verification.
//!
//! It must not disturb the resolver:
//!
//! - The file is opened when the library is loaded, before the resolver changes its root directory
//!   or drops its privileges.
//! - A thread writes the lines, so that a slow disk delays no query. It starts at the first
//!   verification: after the resolver has become a daemon and has dropped its privileges. All
//!   signals are blocked in it.
//! - A descriptor that no longer belongs to the file is not written: a daemon may have closed all
//!   descriptors and opened other files.
//! - A call of one of the functions inside another one is not counted twice.

mod interpose;
mod output;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Verifications of this process.
static TOTAL: AtomicU64 = AtomicU64::new(0);
/// Whether the thread of this process has been started.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Time between two lines, in microseconds. Lines are written at its multiples.
const INTERVAL: u64 = 1_000_000;
/// Stack of the thread in octets.
const STACK: usize = 128 << 10;

// The dynamic linker calls these functions when it has loaded the library, and when the process
// exits.
#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;
#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = unload;

extern "C" fn load() {
    output::open();
    output::write(output::now(), 0);
    // SAFETY: `forget` only stores to atomics and writes to a descriptor, which is permitted in the
    // child of a process with threads.
    unsafe { libc::pthread_atfork(None, None, Some(forget)) };
}

/// A child process counts from 0, and has no thread yet.
extern "C" fn forget() {
    TOTAL.store(0, Ordering::Relaxed);
    STARTED.store(false, Ordering::Relaxed);
    output::write(output::now(), 0);
}

extern "C" fn unload() {
    if STARTED.load(Ordering::Relaxed) {
        output::write(output::now(), TOTAL.load(Ordering::Relaxed));
    }
}

/// Counts a verification that has ended.
fn count() {
    TOTAL.fetch_add(1, Ordering::Relaxed);
    if !STARTED.load(Ordering::Relaxed) && !STARTED.swap(true, Ordering::Relaxed) && output::is_open() {
        start_writer();
    }
}

/// Starts the thread that writes the totals.
fn start_writer() {
    let begun = output::now();
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut own = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both sets are memory of the right type. sigfillset initializes the first one, and
    // pthread_sigmask the second one. The thread inherits the mask of this one.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), own.as_mut_ptr());
    }
    let thread = thread::Builder::new().name("verifications".to_owned()).stack_size(STACK);
    if let Err(error) = thread.spawn(move || write_totals(begun)) {
        output::complain(&format!("no thread can be started: {error}: no totals are written"));
    }
    // SAFETY: pthread_sigmask has initialized the set above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, own.as_ptr(), std::ptr::null_mut()) };
}

/// Writes a line each second while the file can be written.
fn write_totals(begun: u64) {
    if !output::write(begun, 0) {
        return;
    }
    loop {
        thread::sleep(Duration::from_micros(INTERVAL - output::now() % INTERVAL));
        if !output::write(output::now(), TOTAL.load(Ordering::Relaxed)) {
            return;
        }
    }
}
