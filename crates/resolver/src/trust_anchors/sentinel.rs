//! The root key trust anchor sentinel: clients ask whether a resolver trusts a key of the root zone
//! (RFC 8509).

use nonesuch_proto::{NameRef, Rtype};

/// Whether a client asks for a key that is trusted or for one that is not (RFC 8509 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentinelKind {
    /// `root-key-sentinel-is-ta-NNNNN`: the answer shows that the key is trusted.
    IsTa,
    /// `root-key-sentinel-not-ta-NNNNN`: the answer shows that the key is not trusted.
    NotTa,
}

/// The first label of a query name that asks for the trust in a key of the root zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sentinel {
    /// The kind of question.
    pub kind: SentinelKind,
    /// The key tag.
    pub tag: u16,
}

/// The preconditions for processing a sentinel (RFC 8509 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentinelQuery {
    /// The type of the question.
    pub rtype: Rtype,
    /// Whether the OPCODE is QUERY.
    pub is_query: bool,
    /// Whether the client set the CD bit.
    pub checking_disabled: bool,
    /// Whether the answer was validated and is Secure.
    pub is_secure: bool,
}

/// What a resolver does with its answer (RFC 8509 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentinelAction {
    /// Send the answer unchanged.
    ReturnAnswer,
    /// Send SERVFAIL with an empty answer section.
    ReturnServfail,
}

/// Returns the sentinel in the first label of `name`; `None` if the label is not of the form
/// `root-key-sentinel-is-ta-NNNNN` or `root-key-sentinel-not-ta-NNNNN`, in any letter case, with five
/// decimal digits of a number below 65,536 (RFC 8509 §2.1).
#[must_use]
pub fn sentinel(name: NameRef<'_>) -> Option<Sentinel> {
    let label = name.labels().next()?;
    let kinds = [
        (&b"root-key-sentinel-is-ta-"[..], SentinelKind::IsTa),
        (&b"root-key-sentinel-not-ta-"[..], SentinelKind::NotTa),
    ];
    kinds.into_iter().find_map(|(prefix, kind)| {
        let (head, digits) = label.split_at_checked(prefix.len())?;
        let is_number = digits.len() == 5 && digits.iter().all(u8::is_ascii_digit);
        if !head.eq_ignore_ascii_case(prefix) || !is_number {
            return None;
        }
        let number = digits.iter().fold(0u32, |number, digit| number * 10 + u32::from(digit - b'0'));
        u16::try_from(number).ok().map(|tag| Sentinel { kind, tag })
    })
}

/// Returns what to do with the answer to a query with a sentinel. `root_tags` are the tags of the
/// current trust anchors of the root zone; keys in the hold-down time and revoked keys do not count
/// (RFC 8509 §3.2).
#[must_use]
pub fn sentinel_action(sentinel: Sentinel, query: SentinelQuery, root_tags: &[u16]) -> SentinelAction {
    let applies = matches!(query.rtype, Rtype::A | Rtype::AAAA)
        && query.is_query
        && !query.checking_disabled
        && query.is_secure;
    let is_trusted = root_tags.contains(&sentinel.tag);
    let fails = match sentinel.kind {
        SentinelKind::IsTa => !is_trusted,
        SentinelKind::NotTa => is_trusted,
    };
    if applies && fails { SentinelAction::ReturnServfail } else { SentinelAction::ReturnAnswer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Name;

    fn read(name: &str) -> Option<Sentinel> {
        let name: Name = name.parse().unwrap();
        sentinel(name.view())
    }

    const QUERY: SentinelQuery =
        SentinelQuery { rtype: Rtype::A, is_query: true, checking_disabled: false, is_secure: true };

    #[test]
    fn the_first_label_has_exactly_five_digits() {
        let is_ta = |tag| Some(Sentinel { kind: SentinelKind::IsTa, tag });
        let not_ta = |tag| Some(Sentinel { kind: SentinelKind::NotTa, tag });
        for (name, expected) in [
            ("root-key-sentinel-is-ta-20326.example.", is_ta(20326)),
            ("Root-Key-Sentinel-Not-TA-00010.a.b.", not_ta(10)),
            ("root-key-sentinel-not-ta-65535.", not_ta(65535)),
            ("root-key-sentinel-is-ta-65536.example.", None),
            ("root-key-sentinel-is-ta-99999.example.", None),
            ("root-key-sentinel-is-ta-2032.example.", None),
            ("root-key-sentinel-is-ta-020326.example.", None),
            ("root-key-sentinel-is-ta-+2326.example.", None),
            ("root-key-sentinel-is-ta-2032a.example.", None),
            ("root-key-sentinel-is-not-20326.example.", None),
            ("www.root-key-sentinel-is-ta-20326.example.", None),
            ("root-key-sentinel-is-ta-.example.", None),
            (".", None),
        ] {
            assert_eq!(read(name), expected, "{name}");
        }
    }

    #[test]
    fn the_truth_table_of_rfc_8509_section_3_2() {
        use SentinelAction::{ReturnAnswer, ReturnServfail};
        for (kind, tag, expected) in [
            (SentinelKind::IsTa, 20326, ReturnAnswer),
            (SentinelKind::IsTa, 1, ReturnServfail),
            (SentinelKind::NotTa, 20326, ReturnServfail),
            (SentinelKind::NotTa, 1, ReturnAnswer),
        ] {
            assert_eq!(sentinel_action(Sentinel { kind, tag }, QUERY, &[20326, 38696]), expected);
        }
    }

    #[test]
    fn without_a_precondition_the_answer_is_unchanged() {
        let sentinel = Sentinel { kind: SentinelKind::IsTa, tag: 1 };
        let action = |query| sentinel_action(sentinel, query, &[]);
        assert_eq!(action(SentinelQuery { rtype: Rtype::AAAA, ..QUERY }), SentinelAction::ReturnServfail);
        for query in [
            SentinelQuery { rtype: Rtype::TXT, ..QUERY },
            SentinelQuery { is_query: false, ..QUERY },
            SentinelQuery { checking_disabled: true, ..QUERY },
            SentinelQuery { is_secure: false, ..QUERY },
        ] {
            assert_eq!(action(query), SentinelAction::ReturnAnswer, "{query:?}");
        }
    }
}
