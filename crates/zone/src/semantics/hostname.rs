//! Hostnames (RFC 952, RFC 1123 §2.1), and names that are probably mistakes.

use nonesuch_proto::NameRef;

/// Whether an octet is allowed in a label of a hostname.
const IS_HOSTNAME_OCTET: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut octet = 0u8;
    while octet < 128 {
        allowed[octet as usize] = octet.is_ascii_alphanumeric() || octet == b'-';
        octet += 1;
    }
    allowed
};

/// Whether all labels consist of letters, digits and inner hyphens.
pub(super) fn is_hostname(name: NameRef<'_>) -> bool {
    name.labels().all(|label| {
        label.first() != Some(&b'-')
            && label.last() != Some(&b'-')
            && label.iter().all(|octet| IS_HOSTNAME_OCTET[usize::from(*octet)])
    })
}

/// Whether the name can be the owner of host records: a hostname, or a wildcard below one.
pub(super) fn is_host_owner(name: NameRef<'_>) -> bool {
    is_hostname(name) || name.is_wildcard() && name.parent().is_some_and(is_hostname)
}

/// Whether a label other than the first is `*`.
pub(super) fn has_internal_wildcard(name: NameRef<'_>) -> bool {
    // Fast path: most names contain no `*`.
    memchr::memchr(b'*', name.wire()).is_some() && name.labels().skip(1).any(|label| label == b"*")
}

/// Whether the name is in the reverse tree (in-addr.arpa or ip6.arpa).
pub(super) fn is_reverse(name: NameRef<'_>) -> bool {
    let mut labels = name.labels().collect::<Vec<_>>().into_iter().rev();
    let (top, second) = (labels.next().unwrap_or_default(), labels.next().unwrap_or_default());
    top.eq_ignore_ascii_case(b"arpa")
        && [&b"in-addr"[..], b"ip6"].iter().any(|zone| second.eq_ignore_ascii_case(zone))
}

/// Whether the name has the form of an IPv4 address: four numbers, either alone or followed by the
/// apex.
pub(super) fn is_address(name: NameRef<'_>, apex: NameRef<'_>) -> bool {
    let is_number = |label: &[u8]| std::str::from_utf8(label).is_ok_and(|text| text.parse::<u8>().is_ok());
    let has_address_length =
        || name.label_count() == 4 || name.is_below(apex) && name.label_count() == apex.label_count() + 4;
    name.labels().next().is_some_and(is_number)
        && has_address_length()
        && name.labels().take(4).all(is_number)
}
