//! Messages: parsing never panics. The RDATA of a parsed record is well formed, and reading its
//! presentation form gives the same octets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_proto::message::{HEADER, Header, Message, Record};
use nonesuch_proto::{Class, Name, rdata};
use nonesuch_zone::read::read_records;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let header = Header::read(data);
    assert_eq!(header.is_some(), data.len() >= HEADER);
    let Ok(message) = Message::parse(data) else { return };
    assert_eq!(header, Some(message.header));
    assert_eq!(usize::from(message.header.counts[0]), message.questions.len());
    let _ = (message.rcode(), message.opt());
    for record in &message.records {
        check_record(record);
    }
});

fn check_record(record: &Record) {
    let rtype = record.rtype;
    let mut canonical = Vec::new();
    rdata::push_canonical(rtype, &record.rdata, &mut canonical);
    assert_eq!(canonical.len(), record.rdata.len(), "{rtype}: only the case of names changes");
    // The fields of OPT have another meaning, and meta types do not occur in zone files.
    if record.class != Class::IN || rtype.is_meta() {
        return;
    }
    assert!(rdata::is_well_formed(rtype, &record.rdata), "{rtype}");
    let mut text = format!(". 0 IN {rtype} ").into_bytes();
    rdata::push_text(rtype, &record.rdata, &mut text);
    text.push(b'\n');
    match read_records(&text, Path::new("fuzz"), &Name::root()) {
        Ok(records) => match records.as_slice() {
            [(_, read, octets)] => assert_eq!((*read, octets), (rtype, &record.rdata)),
            _ => panic!("{} records in: {}", records.len(), String::from_utf8_lossy(&text)),
        },
        Err(error) => panic!("{error}\n{}", String::from_utf8_lossy(&text)),
    }
}
