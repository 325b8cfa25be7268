//! Tests of certificate expiration.

use super::*;
use proptest::prelude::*;
use std::fs;

/// Writes a certificate that expires at the end of the day to the file `c.pem`.
fn write(dir: &Path, year: i32, month: u8, day: u8) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["ns.example".to_owned()]).unwrap();
    parameters.not_after = rcgen::date_time_ymd(year, month, day);
    let certificate = parameters.self_signed(&key).unwrap();
    fs::write(dir.join("c.pem"), format!("notes\n{}more\n", certificate.pem())).unwrap();
}

/// Compares a warning with the section `case` of the snapshot.
#[track_caller]
fn check_message(case: &str, found: &str) {
    crate::snapshot::check("serve configuration", case, found);
}

#[test]
fn expired_and_soon_expiring_certificates_cause_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.pem");
    let at = |now: &str| expiry_warning(&path, now.parse().unwrap());
    assert_eq!(at("2026-01-01T00:00:00Z"), None, "there is none");
    // With a two-digit year and with a four-digit year.
    for (year, month) in [(2026, 3), (2055, 3)] {
        write(directory.path(), year, month, 20);
        assert_eq!(at(&format!("{year}-03-05T23:59:59Z")), None);
        let soon = at(&format!("{year}-03-18T23:00:00Z")).expect("it ends soon");
        assert!(soon.contains(&format!(" {year}-03-20T00:00:00Z")) && soon.contains(" 25 h"), "{soon}");
        check_message(&format!("certificate that expires soon, in {year}"), &soon);
        let late = at(&format!("{year}-03-20T00:00:01Z")).expect("it has ended");
        assert!(late.contains(&format!(" {year}-03-20T00:00:00Z")), "{late}");
        check_message(&format!("certificate that expired, in {year}"), &late);
    }
}

proptest! {
    #[test]
    fn arbitrary_octets_have_no_expiration(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = not_after(&octets);
    }

    #[test]
    fn damaged_certificates_cause_no_panic(at in 0usize..400, octet: u8) {
        let key = rcgen::generate_simple_self_signed(vec!["ns.example".to_owned()]).unwrap();
        let mut octets = key.cert.der().to_vec();
        let at = at % octets.len();
        octets[at] = octet;
        let _ = not_after(&octets);
        octets.truncate(at);
        prop_assert_eq!(not_after(&octets), None);
    }
}
