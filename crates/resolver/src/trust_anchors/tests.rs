use super::*;
use nonesuch_proto::Rtype;
use nonesuch_proto::rdata::push_from_tokens;
use nonesuch_proto::text::Token;

/// DNSKEY records of the root zone: KSK-2017 and KSK-2024.
pub(super) const ROOT_KEYS: &str = "\
. IN DNSKEY 257 3 8 AwEAAaz/tAm8yTn4Mfeh5eyI96WSVexTBAvkMgJzkKTOiW1vkIbzxeF3+/4RgWOq7HrxRixHlFlExOLAJr5emLvN7SWXgnLh4+B5xQlNVz8Og8kvArMtNROxVQuCaSnIDdD5LKyWbRd2n9WGe2R8PzgCmr3EgVLrjyBxWezF0jLHwVN8efS3rCj/EWgvIWgb9tarpVUDK/b58Da+sqqls3eNbuv7pr+eoZG+SrDK6nWeL3c6H5Apxz7LjVc1uTIdsIXxuOLYA4/ilBmSVIzuDWfdRUfhHdY6+cn8HFRm+2hM8AnXGXws9555KrUB5qihylGa8subX2Nn6UwNR1AkUTV74bU= ; keytag 20326
. IN DNSKEY 257 3 8 AwEAAa96jeuknZlaeSrvyAJj6ZHv28hhOKkx3rLGXVaC6rXTsDc449/cidltpkyGwCJNnOAlFNKF2jBosZBU5eeHspaQWOmOElZsjICMQMC3aeHbGiShvZsx4wMYSjH8e7Vrhbu6irwCzVBApESjbUdpWWmEnhathWu1jo+siFUiRAAxm9qyJNg/wOZqqzL/dL/q8PkcRU5oUKEpUge71M3ej2/7CPqpdVwuMoTvoB+ZOT4YeGyxMvHmbrxlFzGOHOijtzN+u1TQNatX2XBuzZNQ1K+s2CXkPIZo7s6JgZyvaBevYtxPvYLw4z9mR7K2vaF18UYH9Z9GNUUeayffKC73PYc= ; keytag 38696
";

pub(super) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Returns a DS record from the text of its RDATA.
pub(super) fn ds(text: &str) -> AnchorRecord {
    let words = text.split_ascii_whitespace();
    let tokens: Vec<Token<'_>> =
        words.map(|word| Token { octets: word.as_bytes(), quoted: false, at: 0 }).collect();
    let mut rdata = Vec::new();
    push_from_tokens(Rtype::DS, &tokens, None, &mut rdata).unwrap();
    AnchorRecord::Ds(rdata)
}

/// Returns a DS record with the digest type 2.
fn any_ds(tag: u16) -> AnchorRecord {
    ds(&format!("{tag} 13 2 {}", "ab".repeat(32)))
}

#[test]
fn the_built_in_anchors_are_the_digests_of_both_keys_of_the_root_zone() {
    let (anchors, keys) = (TrustAnchors::iana(), TrustAnchors::read(ROOT_KEYS).unwrap());
    let (anchors, keys) = (anchors.closest(NameRef::ROOT).unwrap(), keys.closest(NameRef::ROOT).unwrap());
    assert_eq!(anchors.tags(), [20326, 38696]);
    assert_eq!(keys.tags(), [20326, 38696]);
    for (anchor, key) in anchors.records.iter().zip(&keys.records) {
        let AnchorRecord::Dnskey(dnskey) = key else { panic!("{key:?}") };
        assert!(anchor.matches(NameRef::ROOT, dnskey), "{:?}", key.tag());
        assert!(!anchor.matches(name("example.").view(), dnskey), "the digest covers the owner");
    }
}

#[test]
fn the_closest_anchor_is_that_of_the_deepest_zone_at_or_above_the_name() {
    let mut anchors = TrustAnchors::default();
    assert_eq!(anchors.closest(NameRef::ROOT), None);
    for (tag, apex) in [(1, "example."), (2, "b.Example."), (3, "z.")] {
        anchors.insert(name(apex).view(), any_ds(tag));
    }
    let tags = |anchors: &TrustAnchors, of: &str| anchors.closest(name(of).view()).map(ZoneAnchor::tags);
    assert_eq!(tags(&anchors, "EXAMPLE."), Some(vec![1]));
    assert_eq!(tags(&anchors, "a.example."), Some(vec![1]));
    assert_eq!(tags(&anchors, "b.example."), Some(vec![2]));
    assert_eq!(tags(&anchors, "a.B.example."), Some(vec![2]));
    assert_eq!(tags(&anchors, "ab.example."), Some(vec![1]));
    assert_eq!(tags(&anchors, "org."), None);
    assert_eq!(tags(&anchors, "."), None);
    anchors.insert(NameRef::ROOT, any_ds(4));
    assert_eq!(tags(&anchors, "org."), Some(vec![4]));
    anchors.remove(name("B.example.").view());
    assert_eq!(tags(&anchors, "a.b.example."), Some(vec![1]));
    let apexes: Vec<String> = anchors.iter().map(|zone| zone.apex.to_string()).collect();
    assert_eq!(apexes, [".", "example.", "z."], "canonical order, in lower case");
}

#[test]
fn a_record_is_added_once() {
    let mut anchors = TrustAnchors::default();
    assert!(anchors.is_empty());
    for tag in [1, 2, 1] {
        anchors.insert(name("example.").view(), any_ds(tag));
        anchors.insert(name("EXAMPLE.").view(), any_ds(tag));
    }
    assert_eq!(anchors.iter().map(|zone| zone.records.len()).collect::<Vec<_>>(), [2]);
}

#[test]
fn truncated_records_have_no_tag_and_match_nothing() {
    for record in [AnchorRecord::Ds(vec![1]), AnchorRecord::Dnskey(vec![1, 1, 3])] {
        assert_eq!(record.tag(), None);
        assert!(!record.matches(NameRef::ROOT, &[1, 1, 3, 13]));
    }
    assert!(!any_ds(1).matches(NameRef::ROOT, &[]));
    assert!(!ds("1 13 200 ab").matches(NameRef::ROOT, &[1, 1, 3, 13]), "unknown digest type");
}
