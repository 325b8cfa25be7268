//! DNS messages in dnstap files.

use super::error::CaptureError;
use super::input::Input;
use super::skip::{SkipCounts, SkipReason};
use super::{CapturedMessage, Transport};
use nonesuch_proto::dnstap::{
    CONTENT_TYPE, CONTROL_MAX, Control, ControlFrame, DATA_MAX, Dnstap, Message, MessageKind, family,
    protocol,
};
use nonesuch_proto::message::HEADER;
use prost::Message as _;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Port of the server in a message whose frame omits it.
const SERVER_PORT: u16 = 53;
/// Length of a length field of a frame in octets. A control frame has two, the first of which is 0.
const LENGTH_SIZE: usize = 4;

/// The messages of a dnstap file.
#[derive(Debug, Default)]
pub(super) struct DnstapSource {
    /// Whether a frame for a query was read. Then the copies of queries in the frames of responses
    /// are ignored.
    has_queries: bool,
    /// Whether the STOP frame was read.
    has_stopped: bool,
}

/// The next frame. The values are the lengths of the contents, which are in the buffer of the
/// input.
enum NextFrame {
    Data(usize),
    Control(usize),
    /// The file ends at the end of a frame.
    End,
    /// The file ends inside a frame.
    CutShort,
}

impl DnstapSource {
    /// Reads the START frame. Returns `None` if the file does not begin with one.
    pub(super) fn open(input: &mut Input) -> Result<Option<Self>, CaptureError> {
        if !input.fill_to(2 * LENGTH_SIZE)? || !input.available().starts_with(&[0; LENGTH_SIZE]) {
            return Ok(None);
        }
        let NextFrame::Control(length) = next_frame(input)? else { return Ok(None) };
        let Some(frame) = ControlFrame::read(&input.available()[..length]) else { return Ok(None) };
        if frame.control != Control::Start {
            return Ok(None);
        }
        if !frame.permits(CONTENT_TYPE) {
            return Err(CaptureError::ContentType { path: input.path().to_path_buf() });
        }
        input.consume(length);
        Ok(Some(Self::default()))
    }

    /// Whether the writer has ended the frames. A writer that is killed does not.
    pub(super) const fn has_stopped(&self) -> bool {
        self.has_stopped
    }

    /// Reads the next frame and appends its messages to `ready`. Returns false at the end.
    pub(super) fn read_frame(
        &mut self,
        input: &mut Input,
        ready: &mut VecDeque<CapturedMessage>,
        skipped: &mut SkipCounts,
    ) -> Result<bool, CaptureError> {
        match next_frame(input)? {
            NextFrame::Data(length) => {
                if let Err(reason) = self.take_data(&input.available()[..length], ready) {
                    skipped.count(reason);
                }
                input.consume(length);
                Ok(true)
            }
            NextFrame::Control(length) => {
                let frame = ControlFrame::read(&input.available()[..length]);
                let control = frame.ok_or_else(|| input.malformed("control frame"))?.control;
                input.consume(length);
                self.has_stopped = control == Control::Stop;
                Ok(!self.has_stopped)
            }
            // A server that is killed writes no STOP frame.
            NextFrame::End => Ok(false),
            NextFrame::CutShort => {
                skipped.count(SkipReason::EndOfFile);
                Ok(false)
            }
        }
    }

    fn take_data(&mut self, data: &[u8], ready: &mut VecDeque<CapturedMessage>) -> Result<(), SkipReason> {
        let frame = Dnstap::decode(data).map_err(|_| SkipReason::Malformed)?;
        let message = frame.message.ok_or(SkipReason::OtherTraffic)?;
        let (_, is_response) = MessageKind::from_number(message.kind).ok_or(SkipReason::OtherTraffic)?;
        self.has_queries |= !is_response;
        let query = message.query_message.as_ref().filter(|_| !is_response || !self.has_queries);
        let response = message.response_message.as_ref().filter(|_| is_response);
        if query.is_none() && response.is_none() {
            return Err(SkipReason::NotMessage);
        }
        for (octets, is_response) in [(query, false), (response, true)] {
            if let Some(octets) = octets {
                ready.push_back(captured_message(&message, octets, is_response)?);
            }
        }
        Ok(())
    }
}

/// Reads the length of the next frame, and its content into the buffer of the input.
fn next_frame(input: &mut Input) -> Result<NextFrame, CaptureError> {
    if !input.fill_to(LENGTH_SIZE)? {
        return Ok(if input.available().is_empty() { NextFrame::End } else { NextFrame::CutShort });
    }
    let mut length = u32_be(input.available());
    let is_control = length == 0;
    if is_control {
        if !input.fill_to(2 * LENGTH_SIZE)? {
            return Ok(NextFrame::CutShort);
        }
        length = u32_be(&input.available()[LENGTH_SIZE..]);
        if !(LENGTH_SIZE as u32..=CONTROL_MAX).contains(&length) {
            return Err(input.malformed("control frame"));
        }
    } else if length > DATA_MAX {
        return Err(input.malformed("length of a data frame"));
    }
    let (prefix, length) = (if is_control { 2 * LENGTH_SIZE } else { LENGTH_SIZE }, length as usize);
    if !input.fill_to(prefix + length)? {
        return Ok(NextFrame::CutShort);
    }
    input.consume(prefix);
    Ok(if is_control { NextFrame::Control(length) } else { NextFrame::Data(length) })
}

fn u32_be(octets: &[u8]) -> u32 {
    octets.first_chunk().map_or(0, |octets| u32::from_be_bytes(*octets))
}

/// Creates the message for the query or the response in a frame.
fn captured_message(
    message: &Message,
    octets: &[u8],
    is_response: bool,
) -> Result<CapturedMessage, SkipReason> {
    if octets.len() < HEADER {
        return Err(SkipReason::NotMessage);
    }
    let (kind, _) = MessageKind::from_number(message.kind).ok_or(SkipReason::OtherTraffic)?;
    let query_time = time_ns(message.query_time_sec, message.query_time_nsec);
    let response_time = time_ns(message.response_time_sec, message.response_time_nsec);
    let time = if is_response { response_time.or(query_time) } else { query_time };
    let (client, server) = addresses(message).ok_or(SkipReason::Malformed)?;
    Ok(CapturedMessage {
        time_ns: time.ok_or(SkipReason::NoTime)?,
        client,
        server,
        transport: transport(message.socket_protocol).ok_or(SkipReason::OtherTraffic)?,
        is_response,
        kind,
        octets: octets.to_vec(),
    })
}

fn time_ns(seconds: Option<u64>, nanoseconds: Option<u32>) -> Option<u64> {
    seconds?.checked_mul(1_000_000_000)?.checked_add(u64::from(nanoseconds.unwrap_or(0)))
}

fn transport(number: Option<u32>) -> Option<Transport> {
    match number {
        None | Some(protocol::UDP) => Some(Transport::Udp),
        Some(protocol::TCP) => Some(Transport::Tcp),
        Some(protocol::TLS) => Some(Transport::Tls),
        Some(protocol::HTTPS) => Some(Transport::Https),
        Some(protocol::QUIC) => Some(Transport::Quic),
        Some(_) => None,
    }
}

/// Returns the addresses of client and server. A missing address is unspecified.
fn addresses(message: &Message) -> Option<(SocketAddr, SocketAddr)> {
    let (client, server) = (message.query_address.as_deref(), message.response_address.as_deref());
    let is_ipv6 = [client, server].into_iter().flatten().any(|octets| octets.len() == 16);
    let is_ipv6 = is_ipv6 || message.socket_family == Some(family::INET6);
    let unspecified: IpAddr =
        if is_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let address = |octets: Option<&[u8]>| octets.map_or(Some(unspecified), address_of);
    let port =
        |number: Option<u32>, default| number.map_or(Some(default), |number| u16::try_from(number).ok());
    Some((
        SocketAddr::new(address(client)?, port(message.query_port, 0)?),
        SocketAddr::new(address(server)?, port(message.response_port, SERVER_PORT)?),
    ))
}

fn address_of(octets: &[u8]) -> Option<IpAddr> {
    let ipv4 = || <[u8; 4]>::try_from(octets).ok().map(IpAddr::from);
    ipv4().or_else(|| <[u8; 16]>::try_from(octets).ok().map(IpAddr::from))
}
