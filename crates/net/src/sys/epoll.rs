//! Readiness of many file descriptors (epoll(7)), and a descriptor that wakes a waiting thread
//! (eventfd(2)).

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libc::c_int;

/// What a file descriptor is watched for. Errors and the end of a connection are always reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interest {
    /// Something can be received.
    pub(crate) reads: bool,
    /// Something can be sent.
    pub(crate) writes: bool,
}

impl Interest {
    pub(crate) const READS: Self = Self { reads: true, writes: false };

    const fn flags(self) -> u32 {
        let reads = if self.reads { libc::EPOLLIN } else { 0 };
        let writes = if self.writes { libc::EPOLLOUT } else { 0 };
        (reads | writes) as u32
    }
}

/// A file descriptor that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Readiness {
    /// The value that the descriptor was added with.
    pub(crate) source: u64,
    pub(crate) is_readable: bool,
    pub(crate) is_writable: bool,
    /// There is an error, or both directions of the connection have ended.
    pub(crate) has_ended: bool,
}

/// Watches file descriptors. A descriptor is reported in each wait for as long as it is ready.
pub(crate) struct Epoll {
    descriptor: OwnedFd,
    events: Box<[libc::epoll_event]>,
    ready: usize,
}

impl Epoll {
    /// Returns an object whose waits report at most `events_max` descriptors at once.
    pub(crate) fn new(events_max: usize) -> io::Result<Self> {
        // SAFETY: no memory is passed.
        let descriptor = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; events_max.max(1)].into();
        Ok(Self { descriptor, events, ready: 0 })
    }

    /// Watches `target`. A closed descriptor is no longer watched, unless it has a duplicate.
    pub(crate) fn add(&self, target: impl AsFd, source: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, target.as_fd(), source, interest.flags())
    }

    /// Watches a listener that several threads share for connections. The kernel wakes only some
    /// of the waiting threads for each connection. [`modify`](Self::modify) is not permitted.
    pub(crate) fn add_shared_listener(&self, target: impl AsFd, source: u64) -> io::Result<()> {
        let flags = (libc::EPOLLIN | libc::EPOLLEXCLUSIVE) as u32;
        self.control(libc::EPOLL_CTL_ADD, target.as_fd(), source, flags)
    }

    /// Changes what `target` is watched for.
    pub(crate) fn modify(&self, target: impl AsFd, source: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, target.as_fd(), source, interest.flags())
    }

    /// Watches `target` no longer.
    pub(crate) fn remove(&self, target: impl AsFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, target.as_fd(), 0, 0)
    }

    fn control(&self, operation: c_int, target: BorrowedFd<'_>, source: u64, events: u32) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: source };
        // SAFETY: `event` is valid for the call, which only reads it. Both descriptors are open,
        // because they are borrowed.
        check(unsafe {
            libc::epoll_ctl(self.descriptor.as_raw_fd(), operation, target.as_raw_fd(), &raw mut event)
        })?;
        Ok(())
    }

    /// Waits until a descriptor is ready, for at most `limit`, rounded up to milliseconds. A signal
    /// ends the wait. Returns the number of ready descriptors.
    pub(crate) fn wait(&mut self, limit: Duration) -> io::Result<usize> {
        self.ready = 0;
        // A wait that is rounded down would end before the time, and be repeated many times.
        let milliseconds = c_int::try_from(limit.as_nanos().div_ceil(1_000_000)).unwrap_or(c_int::MAX);
        let length = c_int::try_from(self.events.len()).unwrap_or(c_int::MAX);
        let events = self.events.as_mut_ptr();
        // SAFETY: `events` points to at least `length` entries, which this object owns exclusively.
        let result = unsafe { libc::epoll_wait(self.descriptor.as_raw_fd(), events, length, milliseconds) };
        match check(result) {
            Ok(ready) => self.ready = usize::try_from(ready).unwrap_or(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(self.ready)
    }

    /// Returns descriptor `index` of the last wait.
    pub(crate) fn readiness(&self, index: usize) -> Option<Readiness> {
        let event = self.events.get(..self.ready)?.get(index)?;
        let flags = event.events;
        let has = |flag: c_int| flags & flag as u32 != 0;
        Some(Readiness {
            source: event.u64,
            is_readable: has(libc::EPOLLIN),
            is_writable: has(libc::EPOLLOUT),
            has_ended: has(libc::EPOLLERR | libc::EPOLLHUP),
        })
    }
}

/// A descriptor that any thread can make readable.
#[derive(Debug)]
pub(crate) struct EventDescriptor(File);

impl EventDescriptor {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed.
        let descriptor = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }.into()))
    }

    /// Makes the descriptor readable.
    pub(crate) fn signal(&self) {
        // This fails only if the counter is at its maximum. The descriptor is readable then.
        let _ = (&self.0).write(&1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable until the next [`signal`](Self::signal).
    pub(crate) fn clear(&self) {
        // This fails only if the descriptor is not readable.
        let _ = (&self.0).read(&mut [0; size_of::<u64>()]);
    }
}

impl AsFd for EventDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Fills `octets` with unpredictable values from the kernel (getrandom(2)). Waits only before the
/// kernel's generator is initialised, early after the start of the machine.
pub(crate) fn fill_random(mut octets: &mut [u8]) -> io::Result<()> {
    while !octets.is_empty() {
        // SAFETY: the pointer and the length belong to `octets`, which is borrowed exclusively.
        let result = unsafe { libc::getrandom(octets.as_mut_ptr().cast(), octets.len(), 0) };
        match usize::try_from(result) {
            Ok(filled) => octets = octets.get_mut(filled..).unwrap_or_default(),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
    Ok(())
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    const NO_WAIT: Duration = Duration::ZERO;

    #[test]
    fn a_signal_is_reported_until_it_is_cleared() {
        let mut epoll = Epoll::new(4).expect("opened");
        let event = EventDescriptor::new().expect("opened");
        epoll.add(&event, 7, Interest::READS).expect("added");
        assert_eq!(epoll.wait(NO_WAIT).expect("waited"), 0);
        assert_eq!(epoll.readiness(0), None);
        event.signal();
        event.signal();
        for _ in 0..2 {
            assert_eq!(epoll.wait(Duration::from_secs(60)).expect("waited"), 1);
            let expected = Readiness { source: 7, is_readable: true, is_writable: false, has_ended: false };
            assert_eq!((epoll.readiness(0), epoll.readiness(1)), (Some(expected), None));
        }
        event.clear();
        event.clear();
        assert_eq!(epoll.wait(NO_WAIT).expect("waited"), 0);
    }

    #[test]
    fn interest_can_change_and_closed_descriptors_are_not_watched() {
        let mut epoll = Epoll::new(4).expect("opened");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
        epoll.add(&socket, 1, Interest::default()).expect("added");
        assert_eq!(epoll.wait(NO_WAIT).expect("waited"), 0);
        epoll.modify(&socket, 2, Interest { reads: false, writes: true }).expect("modified");
        assert_eq!(epoll.wait(NO_WAIT).expect("waited"), 1);
        let ready = epoll.readiness(0).expect("ready");
        assert_eq!((ready.source, ready.is_readable, ready.is_writable), (2, false, true));
        drop(socket);
        assert_eq!(epoll.wait(NO_WAIT).expect("waited"), 0);
    }

    #[test]
    fn random_octets_differ() {
        let (mut one, mut other) = ([0; 32], [0; 32]);
        fill_random(&mut one).expect("filled");
        fill_random(&mut other).expect("filled");
        assert!(one != other && one != [0; 32]);
    }
}
