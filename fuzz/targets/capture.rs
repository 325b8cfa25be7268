//! Captures: reading ends without a panic; the messages survive dnstap, and pcap if it can represent
//! them; anonymisation keeps lengths.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_lab::capture::{
    AnonymisationKey, AnonymizeOptions, Anonymizer, CaptureFormat, CaptureOptions, CaptureReader,
    CaptureWriter, CapturedMessage, MessageKind, Transport,
};
use std::io::Cursor;
use std::path::Path;

fn read(octets: &[u8], ports: Vec<u16>) -> Option<Vec<CapturedMessage>> {
    let input = Box::new(Cursor::new(octets.to_vec()));
    let reader = CaptureReader::new(Path::new("capture"), input, &CaptureOptions { ports }).ok()?;
    Some(reader.map_while(Result::ok).collect())
}

/// Writes the messages, and returns the file and the messages that the format can represent.
fn write(messages: &[CapturedMessage], format: CaptureFormat) -> (Vec<u8>, Vec<CapturedMessage>) {
    let mut writer = CaptureWriter::new(Vec::new(), format).expect("a vector");
    let mut written = messages.to_vec();
    written.retain(|message| writer.write(message).expect("a vector"));
    (writer.finish().expect("a vector"), written)
}

fuzz_target!(|octets: &[u8]| {
    let Some(messages) = read(octets, vec![53]) else { return };
    let (file, written) = write(&messages, CaptureFormat::Dnstap);
    assert_eq!(read(&file, vec![53]), Some(written));

    // Packets have no type, no encryption, and no direction other than that of the QR flag.
    let plain = messages.iter().filter(|message| {
        (message.octets[2] & 0x80 != 0) == message.is_response
            && message.client != message.server
            && message.client.is_ipv4() == message.server.is_ipv4()
    });
    let plain: Vec<CapturedMessage> = plain
        .map(|message| CapturedMessage {
            kind: MessageKind::Auth,
            transport: if message.transport == Transport::Udp { Transport::Udp } else { Transport::Tcp },
            ..message.clone()
        })
        .collect();
    let (file, written) = write(&plain, CaptureFormat::Pcap);
    assert_eq!(read(&file, (0..=u16::MAX).collect()), Some(written));

    let key = AnonymisationKey::from_octets(&[7; 32]);
    let options = AnonymizeOptions { names: true, zone: None };
    let anonymizer = Anonymizer::new(&key, options).expect("a key");
    for mut message in messages {
        let length = message.octets.len();
        anonymizer.apply(&mut message).expect("a cipher");
        assert_eq!(message.octets.len(), length);
    }
});
