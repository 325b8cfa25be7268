//! System calls that the standard library lacks: datagrams in batches, readiness, socket options,
//! CPU pinning, random octets, the resource usage of an ended process, and network namespaces.
//!
//! Every `unsafe` block of this crate is here, in a submodule, in `map` or in `memory`. The batch types own the
//! arrays that the kernel reads and writes. Their pointers are taken again before each call, so no
//! pointer outlives a borrow.

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::ptr;
use std::time::Duration;

use libc::{c_int, c_uint, c_void, iovec, mmsghdr, socklen_t};

mod epoll;
pub(crate) mod namespace;
mod reply;

pub(crate) use epoll::{Epoll, EventDescriptor, Interest, Readiness, fill_random};
pub(crate) use reply::{ReplyAddress, ReplySender};

/// Number of datagrams in one batch: the maximum that one system call receives or sends.
pub const BATCH: usize = 64;

/// Size of the buffer for one IP_PKTINFO or IPV6_PKTINFO control message (28 and 36 octets,
/// padded).
const CONTROL_SIZE: usize = 64;

/// An IPv4 or IPv6 socket address in the kernel's format.
#[repr(C)]
#[derive(Clone, Copy)]
union PeerAddress {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_SIZE]);

impl Control {
    const EMPTY: Self = Self([0; CONTROL_SIZE]);
}

const EMPTY_VECTOR: iovec = iovec { iov_base: ptr::null_mut(), iov_len: 0 };

fn empty_header() -> mmsghdr {
    // SAFETY: mmsghdr consists of integers and raw pointers, for which all zeroes is a valid value.
    unsafe { mem::zeroed() }
}

fn empty_peer() -> PeerAddress {
    // SAFETY: both members of the union consist of integers, for which all zeroes is a valid value.
    unsafe { mem::zeroed() }
}

impl PeerAddress {
    /// Returns the address, or `None` if the kernel wrote none.
    fn to_socket_addr(self, length: socklen_t) -> Option<SocketAddr> {
        // SAFETY: the union was zeroed or written by the kernel, so all its octets are initialised.
        // Each member consists of integers, and the family is at the same offset in both.
        let family = c_int::from(unsafe { self.v4.sin_family });
        if family == libc::AF_INET && length as usize >= size_of::<libc::sockaddr_in>() {
            // SAFETY: as above; the family shows that the kernel wrote this member.
            let v4 = unsafe { self.v4 };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(v4.sin_port))))
        } else if family == libc::AF_INET6 && length as usize >= size_of::<libc::sockaddr_in6>() {
            // SAFETY: as above; the family shows that the kernel wrote this member.
            let v6 = unsafe { self.v6 };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            Some(SocketAddr::V6(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id)))
        } else {
            None
        }
    }
}

/// Whether a receive call waits for the first datagram (up to the socket's receive timeout).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    ForOne,
    No,
}

/// Buffers for one batch of received datagrams, allocated once.
pub struct ReceiveBatch {
    octets: Box<[u8]>,
    message_size: usize,
    /// Empty if senders are not requested, as on connected sockets.
    peers: Box<[PeerAddress]>,
    /// Empty if the local address is not requested.
    controls: Box<[Control]>,
    vectors: Box<[iovec]>,
    headers: Box<[mmsghdr]>,
    received: usize,
}

// SAFETY: the pointers in the headers and vectors point only to memory that the object owns. They
// are written again before each call, and are not dereferenced between calls.
unsafe impl Send for ReceiveBatch {}

impl ReceiveBatch {
    /// Returns buffers for `messages` datagrams of at most `message_size` octets each from a
    /// connected peer.
    #[must_use]
    pub fn new(messages: usize, message_size: usize) -> Self {
        Self {
            octets: vec![0; messages * message_size].into(),
            message_size,
            peers: Box::default(),
            controls: Box::default(),
            vectors: vec![EMPTY_VECTOR; messages].into(),
            headers: vec![empty_header(); messages].into(),
            received: 0,
        }
    }

    /// As [`new`](Self::new), with the sender of each datagram and, if `local_address` is true, its
    /// local address.
    pub(crate) fn with_peers(messages: usize, message_size: usize, local_address: bool) -> Self {
        let controls = if local_address { messages } else { 0 };
        Self {
            peers: vec![empty_peer(); messages].into(),
            controls: vec![Control::EMPTY; controls].into(),
            ..Self::new(messages, message_size)
        }
    }

    /// The datagrams of the last call, in order of arrival. A datagram that was too long is
    /// truncated to `message_size`.
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        self.octets
            .chunks(self.message_size)
            .zip(&self.headers)
            .take(self.received)
            .map(|(octets, header)| octets.get(..header.msg_len as usize).unwrap_or(octets))
    }

    /// Returns datagram `index` of the last call with its sender; `None` if it was truncated or has
    /// no sender.
    pub(crate) fn datagram(&self, index: usize) -> Option<(&[u8], SocketAddr)> {
        let header = self.headers.get(index)?;
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            return None;
        }
        let peer = self.peers.get(index)?.to_socket_addr(header.msg_hdr.msg_namelen)?;
        let start = index * self.message_size;
        Some((self.octets.get(start..start + header.msg_len as usize)?, peer))
    }

    /// Receives the waiting datagrams, up to the size of the batch, in one call. Returns their
    /// number.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>, wait: Wait) -> io::Result<usize> {
        self.receive_at_most(usize::MAX, socket, wait)
    }

    /// As [`receive`](Self::receive), but at most `limit` datagrams.
    pub(crate) fn receive_at_most(
        &mut self,
        limit: usize,
        socket: BorrowedFd<'_>,
        wait: Wait,
    ) -> io::Result<usize> {
        self.received = 0;
        self.prepare();
        let flags = match wait {
            Wait::ForOne => libc::MSG_WAITFORONE,
            Wait::No => libc::MSG_DONTWAIT,
        };
        // SAFETY: `headers` has at least as many entries as passed. `prepare` has pointed each
        // entry to memory that this object owns exclusively, with its true sizes, and the call
        // keeps no pointer.
        let result = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len().min(limit) as c_uint,
                flags,
                ptr::null_mut(),
            )
        };
        self.received = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
        Ok(self.received)
    }

    /// Points the headers to the buffers. This is needed before each call, because the kernel
    /// overwrites the lengths.
    fn prepare(&mut self) {
        let octets = self.octets.as_mut_ptr();
        for (index, vector) in self.vectors.iter_mut().enumerate() {
            let base = octets.wrapping_add(index * self.message_size).cast();
            *vector = iovec { iov_base: base, iov_len: self.message_size };
        }
        let vectors = self.vectors.as_mut_ptr();
        let (peers, with_peers) = (self.peers.as_mut_ptr(), !self.peers.is_empty());
        let (controls, with_controls) = (self.controls.as_mut_ptr(), !self.controls.is_empty());
        for (index, header) in self.headers.iter_mut().enumerate() {
            let message = &mut header.msg_hdr;
            message.msg_iov = vectors.wrapping_add(index);
            message.msg_iovlen = 1;
            if with_peers {
                message.msg_name = peers.wrapping_add(index).cast();
                message.msg_namelen = size_of::<PeerAddress>() as socklen_t;
            }
            if with_controls {
                message.msg_control = controls.wrapping_add(index).cast();
                message.msg_controllen = CONTROL_SIZE as _;
            }
        }
    }

    /// Converts the control message of datagram `index` in place to one that sends the response
    /// from the same local address. Returns its length; 0 if there is no control message.
    fn prepare_reply_control(&mut self, index: usize) -> usize {
        let (Some(control), Some(header)) = (self.controls.get_mut(index), self.headers.get(index)) else {
            return 0;
        };
        let length = header.msg_hdr.msg_controllen.min(CONTROL_SIZE);
        let cut = header.msg_hdr.msg_flags & libc::MSG_CTRUNC != 0;
        if cut || length < size_of::<libc::cmsghdr>() {
            return 0;
        }
        let start: *mut u8 = control.0.as_mut_ptr();
        // SAFETY: the buffer is aligned for cmsghdr (8) and is at least as large.
        let message = unsafe { ptr::read(start.cast::<libc::cmsghdr>()) };
        // SAFETY: CMSG_LEN only computes a length.
        let data = unsafe { libc::CMSG_LEN(0) } as usize;
        let fits = |size: usize| message.cmsg_len >= data + size && length >= data + size;
        match (message.cmsg_level, message.cmsg_type) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) if fits(size_of::<libc::in_pktinfo>()) => {
                let place = start.wrapping_add(data).cast::<libc::in_pktinfo>();
                // SAFETY: `fits` has checked that the buffer contains the whole structure at this
                // place. The structure consists of integers, and unaligned accesses need no
                // alignment.
                let mut info = unsafe { ptr::read_unaligned(place) };
                // The routing table selects the interface; only the source address is fixed.
                info.ipi_ifindex = 0;
                // SAFETY: as above.
                unsafe { ptr::write_unaligned(place, info) };
                length
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) if fits(size_of::<libc::in6_pktinfo>()) => {
                let place = start.wrapping_add(data).cast::<libc::in6_pktinfo>();
                // SAFETY: as for IPv4.
                let mut info = unsafe { ptr::read_unaligned(place) };
                // A link-local address has no meaning without its interface (RFC 4007 section 4).
                if !Ipv6Addr::from(info.ipi6_addr.s6_addr).is_unicast_link_local() {
                    info.ipi6_ifindex = 0;
                }
                // SAFETY: as above.
                unsafe { ptr::write_unaligned(place, info) };
                length
            }
            _ => 0,
        }
    }
}

/// The result of sending a batch.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SendOutcome {
    pub(crate) sent: u64,
    pub(crate) failed: u64,
    pub(crate) calls: u64,
}

impl std::ops::AddAssign for SendOutcome {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.failed += other.failed;
        self.calls += other.calls;
    }
}

/// The headers for the responses to a [`ReceiveBatch`], allocated once.
pub(crate) struct ReplyBatch {
    /// The index of the datagram that each message answers.
    order: Vec<usize>,
    vectors: Box<[iovec]>,
    headers: Box<[mmsghdr]>,
}

impl ReplyBatch {
    pub(crate) fn new(messages: usize) -> Self {
        Self {
            order: Vec::with_capacity(messages),
            vectors: vec![EMPTY_VECTOR; messages].into(),
            headers: vec![empty_header(); messages].into(),
        }
    }

    /// Sends `responses[i]` to the sender of datagram `i` for each `i` in `answered`, normally in
    /// one call. A message that the system does not send is skipped.
    pub(crate) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        received: &mut ReceiveBatch,
        answered: &[usize],
        responses: &[Vec<u8>],
    ) -> SendOutcome {
        self.prepare(received, answered, responses);
        let headers = &mut self.headers[..self.order.len()];
        // SAFETY: `prepare` has pointed each header of the slice to a response, an address and a
        // control message. `responses` and `received` own them with their true lengths, and are
        // borrowed during the whole call.
        unsafe { send_each(socket, headers) }
    }

    /// Points a header to each response, its receiver and its control message.
    fn prepare(&mut self, received: &mut ReceiveBatch, answered: &[usize], responses: &[Vec<u8>]) {
        let valid = received.received.min(received.peers.len()).min(responses.len());
        self.order.clear();
        self.order.extend(answered.iter().copied().filter(|&index| index < valid).take(self.headers.len()));
        for (&index, (vector, header)) in
            self.order.iter().zip(self.vectors.iter_mut().zip(&mut self.headers))
        {
            let response = &responses[index];
            // The kernel only reads the data to send; the interface requires a mutable pointer.
            *vector = iovec { iov_base: response.as_ptr().cast_mut().cast(), iov_len: response.len() };
            header.msg_hdr.msg_namelen = received.headers[index].msg_hdr.msg_namelen;
            header.msg_hdr.msg_controllen = received.prepare_reply_control(index) as _;
        }
        let vectors = self.vectors.as_mut_ptr();
        let peers = received.peers.as_mut_ptr();
        let controls = received.controls.as_mut_ptr();
        for (place, (&index, header)) in self.order.iter().zip(&mut self.headers).enumerate() {
            let message = &mut header.msg_hdr;
            message.msg_name = peers.wrapping_add(index).cast();
            message.msg_iov = vectors.wrapping_add(place);
            message.msg_iovlen = 1;
            message.msg_control = match message.msg_controllen {
                0 => ptr::null_mut(),
                _ => controls.wrapping_add(index).cast(),
            };
        }
    }
}

/// Sends messages, normally in one call. A message that the system does not send is skipped.
///
/// # Safety
/// As for [`send_headers`].
unsafe fn send_each(socket: BorrowedFd<'_>, headers: &mut [mmsghdr]) -> SendOutcome {
    let mut outcome = SendOutcome::default();
    let mut next = 0;
    while next < headers.len() {
        outcome.calls += 1;
        // SAFETY: guaranteed by the caller.
        match unsafe { send_headers(socket, &mut headers[next..]) } {
            Ok(sent) => {
                next += sent;
                outcome.sent += sent as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                next += 1;
                outcome.failed += 1;
            }
        }
    }
    outcome
}

/// Sends messages from the front in one call. Returns the number of messages sent, at least one.
///
/// # Safety
/// Each header must point to memory that is valid for reading with the given lengths.
unsafe fn send_headers(socket: BorrowedFd<'_>, headers: &mut [mmsghdr]) -> io::Result<usize> {
    // SAFETY: the slice is valid for writing (the kernel sets msg_len). The caller guarantees the
    // memory that it points to.
    let result =
        unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), headers.len() as c_uint, 0) };
    match usize::try_from(result) {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        Ok(sent) => Ok(sent),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// A control message that makes the kernel split one long datagram into datagrams of a given size
/// (UDP_SEGMENT, udp(7)).
#[repr(C, align(8))]
struct SegmentControl {
    header: libc::cmsghdr,
    size: u16,
}

impl SegmentControl {
    fn new(size: u16) -> Self {
        // SAFETY: cmsghdr consists of integers, for which all zeroes is a valid value.
        let mut header: libc::cmsghdr = unsafe { mem::zeroed() };
        // SAFETY: CMSG_LEN only computes a length.
        header.cmsg_len = unsafe { libc::CMSG_LEN(size_of::<u16>() as c_uint) } as _;
        (header.cmsg_level, header.cmsg_type) = (libc::SOL_UDP, libc::UDP_SEGMENT);
        Self { header, size }
    }
}

/// Maximum octets of a run of messages that are passed to the kernel as one datagram: less than the
/// longest datagram, with room for headers.
const RUN_OCTETS_MAX: usize = 60_000;
/// Maximum number of messages of a run: the kernel splits a datagram into at most this many.
const RUN_MESSAGES_MAX: usize = 64;

/// Messages to send on a connected socket, in buffers that are allocated once.
pub struct SendBatch {
    octets: Box<[u8]>,
    message_size: usize,
    vectors: Box<[iovec]>,
    headers: Box<[mmsghdr]>,
    controls: Box<[SegmentControl]>,
    /// Number of messages of each header in the last call. A run is a sequence of adjacent messages
    /// of the same length, which the kernel gets as one datagram and splits.
    runs: Vec<usize>,
    /// Whether the system has rejected a run of messages. If so, single messages are sent from then
    /// on.
    has_rejected_run: bool,
    /// Messages before `start` are sent; messages before `filled` are written.
    start: usize,
    filled: usize,
}

// SAFETY: as for ReceiveBatch.
unsafe impl Send for SendBatch {}

impl SendBatch {
    /// Returns buffers for `messages` datagrams of at most `message_size` octets each.
    #[must_use]
    pub fn new(messages: usize, message_size: usize) -> Self {
        Self {
            octets: vec![0; messages * message_size].into(),
            message_size,
            vectors: vec![EMPTY_VECTOR; messages].into(),
            headers: vec![empty_header(); messages].into(),
            controls: (0..messages).map(|_| SegmentControl::new(0)).collect(),
            runs: Vec::with_capacity(messages),
            has_rejected_run: false,
            start: 0,
            filled: 0,
        }
    }

    /// Number of messages that wait to be sent.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.filled - self.start
    }

    /// Adds a message. `write` gets a whole slot with the contents of its last message, and returns
    /// the number of octets of the new message. Returns `false` without calling `write` if the
    /// batch is full.
    pub fn push_with(&mut self, write: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let offset = self.filled * self.message_size;
        let Some(vector) = self.vectors.get_mut(self.filled) else { return false };
        let Some(slot) = self.octets.get_mut(offset..offset + self.message_size) else { return false };
        vector.iov_len = write(slot).min(self.message_size);
        self.filled += 1;
        true
    }

    /// Discards the first waiting message.
    pub fn skip_first(&mut self) {
        self.advance(self.pending().min(1));
    }

    fn advance(&mut self, messages: usize) {
        self.start += messages;
        if self.start == self.filled {
            (self.start, self.filled) = (0, 0);
        }
    }

    /// Sends waiting messages from the front in one call. Returns the number of messages sent. With
    /// `has_gso`, adjacent messages of the same length are passed as one long datagram, which
    /// the kernel splits. So they pass through the layers of the network stack once.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>, has_gso: bool) -> io::Result<usize> {
        if self.pending() == 0 {
            return Ok(0);
        }
        loop {
            self.prepare(has_gso && !self.has_rejected_run);
            let headers = self.runs.len();
            // SAFETY: `prepare` has pointed these headers to vectors, slots of `octets` and
            // controls that this object owns, with their true numbers and sizes. `push_with` keeps
            // each length within its slot, and the name stays null.
            match unsafe { send_headers(socket, &mut self.headers[..headers]) } {
                Ok(sent) => {
                    let messages = self.runs[..sent].iter().sum();
                    self.advance(messages);
                    return Ok(messages);
                }
                // The route may not support segmentation. The system reports this error before it
                // sends anything.
                Err(error) if self.runs[0] > 1 && may_concern_run(&error) => self.has_rejected_run = true,
                Err(error) => return Err(error),
            }
        }
    }

    /// Points a header to each run of waiting messages: adjacent messages of the same length with
    /// `has_gso`, else single messages.
    fn prepare(&mut self, has_gso: bool) {
        let octets = self.octets.as_mut_ptr();
        for index in self.start..self.filled {
            self.vectors[index].iov_base = octets.wrapping_add(index * self.message_size).cast();
        }
        self.runs.clear();
        let mut first = self.start;
        while first < self.filled {
            let run = if has_gso { self.run_from(first) } else { 1 };
            self.controls[self.runs.len()].size = self.vectors[first].iov_len as u16;
            self.runs.push(run);
            first += run;
        }
        let (vectors, controls) = (self.vectors.as_mut_ptr(), self.controls.as_mut_ptr());
        let mut first = self.start;
        for (place, (&run, header)) in self.runs.iter().zip(&mut self.headers).enumerate() {
            let message = &mut header.msg_hdr;
            message.msg_iov = vectors.wrapping_add(first);
            message.msg_iovlen = run as _;
            (message.msg_control, message.msg_controllen) = match run {
                1 => (ptr::null_mut(), 0),
                _ => (controls.wrapping_add(place).cast(), size_of::<SegmentControl>() as _),
            };
            first += run;
        }
    }

    /// Returns the number of messages from `first` on that have its length and fit into one run: at
    /// least one.
    fn run_from(&self, first: usize) -> usize {
        let size = self.vectors[first].iov_len;
        let messages_max = RUN_OCTETS_MAX.checked_div(size).unwrap_or(1).clamp(1, RUN_MESSAGES_MAX);
        let same_size = self.vectors[first..self.filled].iter().take_while(|vector| vector.iov_len == size);
        same_size.take(messages_max).count()
    }
}

/// Whether a send error may concern the run instead of its messages.
fn may_concern_run(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

/// Whether the kernel has UDP segmentation offload (`UDP_SEGMENT`) for this socket.
pub(crate) fn has_gso(socket: &impl AsFd) -> bool {
    // The size 0 sets no segment size for the socket. The call only checks whether the option is
    // known.
    set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
}

/// Waits for several sockets or devices together, with an array that is allocated once.
#[derive(Default)]
pub struct Poll {
    entries: Vec<libc::pollfd>,
}

impl Poll {
    /// Waits until one of `sockets` has something to receive, or with `true` can send, for at most
    /// `limit`. A signal ends the wait.
    ///
    /// # Errors
    /// Errors of ppoll(2), for example lack of memory.
    pub fn wait<'a>(
        &mut self,
        sockets: impl Iterator<Item = (BorrowedFd<'a>, bool)>,
        limit: Duration,
    ) -> io::Result<()> {
        self.entries.clear();
        self.entries.extend(sockets.map(|(socket, sends)| libc::pollfd {
            fd: socket.as_raw_fd(),
            events: if sends { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN },
            revents: 0,
        }));
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: limit.subsec_nanos() as _,
        };
        let count = self.entries.len() as libc::nfds_t;
        // SAFETY: `count` is the number of entries in `entries`, which is borrowed exclusively. The
        // timeout is on the stack. Both are valid for the whole call. There is no signal mask.
        let result =
            unsafe { libc::ppoll(self.entries.as_mut_ptr(), count, &raw const timeout, ptr::null()) };
        match result {
            0.. => Ok(()),
            _ => {
                self.entries.clear();
                match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                    error => Err(error),
                }
            }
        }
    }

    /// The indexes of the sockets of the last wait that are ready or have an error.
    pub fn ready(&self) -> impl Iterator<Item = usize> {
        self.entries.iter().enumerate().filter(|(_, entry)| entry.revents != 0).map(|(place, _)| place)
    }
}

impl std::fmt::Debug for Poll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Poll").field(&self.entries.len()).finish()
    }
}

pub(crate) fn set_option(socket: &impl AsFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let length = size_of::<c_int>() as socklen_t;
    let place: *const c_void = (&raw const value).cast();
    // SAFETY: `place` points to an integer of the given length, which is valid for the call.
    let result = unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, place, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ignores the path MTU in ICMP messages. Otherwise an attacker could lower the path MTU to cause
/// fragmentation of responses (the risk that RFC 9715 describes).
pub(crate) fn ignore_path_mtu(socket: &impl AsFd, address: SocketAddr) -> io::Result<()> {
    match address {
        SocketAddr::V4(_) => {
            set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_OMIT)
        }
        SocketAddr::V6(_) => {
            set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_OMIT)
        }
    }
}

/// Returns the octets that the peer of a TCP connection has acknowledged (`tcpi_bytes_acked` of
/// tcp(7), Linux 4.1); `None` if the system does not count them.
#[cfg(target_os = "linux")]
pub(crate) fn acknowledged_octets(socket: &impl AsFd) -> Option<u64> {
    // SAFETY: tcp_info consists of integers, for which all zeroes is a valid value.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as socklen_t;
    let place: *mut c_void = (&raw mut info).cast();
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `place` points to a structure of the given length; both are valid for the call.
    let result = unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, place, &raw mut length) };
    // An older kernel writes a shorter structure.
    let end = mem::offset_of!(libc::tcp_info, tcpi_bytes_acked) + size_of::<u64>();
    (result == 0 && length as usize >= end).then_some(info.tcpi_bytes_acked)
}

/// As on Linux. Other systems do not count acknowledged octets.
#[cfg(not(target_os = "linux"))]
pub(crate) fn acknowledged_octets(_socket: &impl AsFd) -> Option<u64> {
    None
}

/// Makes the kernel report the local address of each datagram.
pub(crate) fn receive_local_address(socket: &impl AsFd, address: SocketAddr) -> io::Result<()> {
    match address {
        SocketAddr::V4(_) => set_option(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
        SocketAddr::V6(_) => set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
    }
}

/// Pins the calling thread to one CPU, numbered from 0.
///
/// # Errors
/// Fails if there is no such CPU, or if this process may not use it.
pub fn pin_current_thread(cpu: usize) -> io::Result<()> {
    if cpu >= 8 * size_of::<libc::cpu_set_t>() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: cpu_set_t is an array of integers, for which all zeroes is a valid value (the empty
    // set).
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `cpu` is within the set, as checked above.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is valid for the call and has the given size; 0 is the calling thread.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lowers the priority of the current thread (nice(2)): it gives way to threads of the default
/// priority.
pub(crate) fn lower_thread_priority() {
    const NICE: c_int = 10;
    // SAFETY: no memory is passed. On Linux, 0 is the calling thread (setpriority(2), "Bugs"). If a
    // policy forbids the call, the thread keeps its priority.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}

/// Resource usage of an ended process, including the children that it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildUsage {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in kernel mode.
    pub system: Duration,
    /// Maximum resident memory in KiB. Linux includes the resident memory of the parent at the
    /// start of the child, so the value is meaningless for a child that is smaller than its parent.
    pub peak_resident_kib: u64,
}

/// Waits for the end of a child, and returns its resource usage (wait4(2)). `/proc` is not
/// sufficient: it counts CPU time in steps of 10 ms, and its entry disappears when the process
/// ends.
///
/// # Errors
/// Fails if the child was waited for before.
pub fn wait_with_usage(child: Child) -> io::Result<(ExitStatus, ChildUsage)> {
    let mut status: c_int = 0;
    // SAFETY: rusage consists of integers, for which all zeroes is a valid value.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // The conversion is lossless, because the kernel assigned the number as a pid_t.
    let pid = child.id() as libc::pid_t;
    loop {
        // SAFETY: `status` and `usage` are valid for the call. This function consumes `child`, so
        // no code signals or waits for a new process with the same number.
        if unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // The process has ended; only pipe ends are left.
    drop(child);
    let time = |time: libc::timeval| {
        let (seconds, micros) = (time.tv_sec.max(0), time.tv_usec.max(0));
        Duration::from_secs(seconds as u64) + Duration::from_micros(micros as u64)
    };
    let usage = ChildUsage {
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        peak_resident_kib: usage.ru_maxrss.max(0) as u64,
    };
    Ok((ExitStatus::from_raw(status), usage))
}

/// A signal to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessSignal {
    /// SIGHUP: DNS servers reload their configuration or zones.
    HangUp,
    /// SIGTERM: the process can end in order.
    Terminate,
    /// SIGKILL: the kernel ends the process.
    Kill,
}

/// Sends a signal to the process with the number `pid`.
///
/// # Errors
/// Fails if there is no such process, if it belongs to another user, or if `pid` is 0 or not a
/// process number.
pub fn signal_process(pid: u32, signal: ProcessSignal) -> io::Result<()> {
    // 0 and negative numbers are process groups (kill(2)).
    let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0);
    let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
    let number = match signal {
        ProcessSignal::HangUp => libc::SIGHUP,
        ProcessSignal::Terminate => libc::SIGTERM,
        ProcessSignal::Kill => libc::SIGKILL,
    };
    // SAFETY: no memory is passed.
    if unsafe { libc::kill(pid, number) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends `octets` on the inherited socket `descriptor`.
///
/// # Errors
/// Errors of send(2), for example if no process reads at the other end, or if `descriptor` is not a
/// socket.
pub fn send_inherited(descriptor: RawFd, octets: &[u8]) -> io::Result<()> {
    // SAFETY: the pointer and the length belong to `octets`, which the kernel only reads. The
    // descriptor is neither closed nor owned, so any other number is harmless for memory safety.
    let sent = unsafe { libc::send(descriptor, octets.as_ptr().cast(), octets.len(), libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Shuts down the receiving side of a datagram socket, which wakes a thread that waits in a receive
/// call.
pub(crate) fn wake_receiver(socket: &impl AsFd) {
    // SAFETY: no memory is passed. Linux wakes the receiver, and reports ENOTCONN for an
    // unconnected socket. After a failure, the receiver only notices the stop after its receive
    // timeout.
    let _ = unsafe { libc::shutdown(socket.as_fd().as_raw_fd(), libc::SHUT_RD) };
}
