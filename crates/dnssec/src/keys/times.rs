//! The times of the events in the lifetime of a key, such as its publication and its revocation.
//! The format is that of BIND's tools (`dnssec-keygen`, `dnssec-settime`), and the rules are those
//! of `dnssec-signzone -S`. The times are in the `.private` file; comments in the `.key` file
//! repeat them for human readers and are not read.

use super::KeyFileError;
use nonesuch_proto::timestamp;
use std::fmt;
use std::fmt::Write as _;

/// An event in the lifetime of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyEvent {
    /// The key was generated.
    Created,
    /// Start of the publication of the DNSKEY record.
    Publish,
    /// The key starts to sign.
    Activate,
    /// The key gets the REVOKE flag (RFC 5011 §2.1).
    Revoke,
    /// The key stops signing.
    Inactive,
    /// End of the publication of the DNSKEY record.
    Delete,
    /// The parent publishes its DS record.
    DsPublish,
    /// Start of the publication of the CDS and CDNSKEY records (RFC 7344).
    SyncPublish,
    /// End of the publication of the CDS and CDNSKEY records.
    SyncDelete,
}

/// All events, in the order of BIND's files.
const EVENTS: [KeyEvent; 9] = [
    KeyEvent::Created,
    KeyEvent::Publish,
    KeyEvent::Activate,
    KeyEvent::Revoke,
    KeyEvent::Inactive,
    KeyEvent::Delete,
    KeyEvent::DsPublish,
    KeyEvent::SyncPublish,
    KeyEvent::SyncDelete,
];

/// The events that determine the phases of a key and of its CDS and CDNSKEY records.
const PHASE_EVENTS: [KeyEvent; 7] = [
    KeyEvent::Publish,
    KeyEvent::Activate,
    KeyEvent::Revoke,
    KeyEvent::Inactive,
    KeyEvent::Delete,
    KeyEvent::SyncPublish,
    KeyEvent::SyncDelete,
];

impl KeyEvent {
    /// The name in key files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "Created",
            Self::Publish => "Publish",
            Self::Activate => "Activate",
            Self::Revoke => "Revoke",
            Self::Inactive => "Inactive",
            Self::Delete => "Delete",
            Self::DsPublish => "DSPublish",
            Self::SyncPublish => "SyncPublish",
            Self::SyncDelete => "SyncDelete",
        }
    }
}

/// The phase of a key at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyPhase {
    /// The key is not published yet.
    Future,
    /// The key is published and does not sign yet.
    Published,
    /// The key is published and signs.
    Active,
    /// The key is published and no longer signs.
    Inactive,
    /// The key is published with the REVOKE flag, and signs the DNSKEY RRset (RFC 5011 §2.1).
    Revoked,
    /// The key is no longer published.
    Deleted,
}

impl KeyPhase {
    /// Whether the DNSKEY record is published.
    #[must_use]
    pub const fn is_published(self) -> bool {
        !matches!(self, Self::Future | Self::Deleted)
    }

    /// Whether the signer signs with the key. A revoked key signs only the DNSKEY RRset.
    #[must_use]
    pub const fn signs(self) -> bool {
        matches!(self, Self::Active | Self::Revoked)
    }
}

impl fmt::Display for KeyPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Future => "future",
            Self::Published => "published",
            Self::Active => "active",
            Self::Inactive => "inactive",
            Self::Revoked => "revoked",
            Self::Deleted => "deleted",
        })
    }
}

/// The phase of the CDS and CDNSKEY records of a key at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CdsPhase {
    /// The file has no publication time, and no withdrawal time in the past.
    Unset,
    /// The records are not published yet.
    Future,
    /// The records are published.
    Published,
    /// The records are withdrawn.
    Deleted,
}

/// The times of the events of a key, in seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyTimes([Option<u32>; EVENTS.len()]);

impl KeyTimes {
    /// The times of a key that is published and signs since `since` (seconds since 1970).
    #[must_use]
    pub fn active_since(since: u32) -> Self {
        let mut times = Self::default();
        for event in [KeyEvent::Created, KeyEvent::Publish, KeyEvent::Activate] {
            times.0[event as usize] = Some(since);
        }
        times
    }

    /// The times in a `.private` file; `None` if it has none, as in files of ldns and PowerDNS.
    ///
    /// # Errors
    /// [`KeyFileError::Time`] if a time is malformed.
    pub fn parse(private_file: &str) -> Result<Option<Self>, KeyFileError> {
        let mut times = Self::default();
        for (name, value) in private_file.lines().filter_map(|line| line.split_once(':')) {
            let Some(event) = EVENTS.into_iter().find(|event| event.name() == name.trim()) else { continue };
            // BIND may write the date as text after the digits.
            let digits = value.split_whitespace().next();
            let time = digits.and_then(|digits| timestamp::parse_absolute(digits.as_bytes()));
            let malformed = || KeyFileError::Time { event: event.name(), value: value.trim().to_owned() };
            times.0[event as usize] = Some(time.ok_or_else(malformed)?);
        }
        Ok((times != Self::default()).then_some(times))
    }

    /// The time of an event; `None` if it is not set.
    #[must_use]
    pub const fn get(&self, event: KeyEvent) -> Option<u32> {
        self.0[event as usize]
    }

    /// The phase of the key at `now`, according to the rules of dnssec-signzone(1), option -S. A
    /// key without any of the times is published and signs. A key that is not published never
    /// signs, because no validator could verify its signatures.
    #[must_use]
    pub fn phase(&self, now: u32) -> KeyPhase {
        use KeyEvent::{Activate, Delete, Inactive, Publish, Revoke};
        if PHASE_EVENTS.iter().all(|event| self.get(*event).is_none()) {
            return KeyPhase::Active;
        }
        let is_past = |event| self.get(event).is_some_and(|time| time <= now);
        // A key with an activation time and no publication time is published at once.
        let is_published = match self.get(Publish) {
            Some(publish) => publish <= now,
            None => self.get(Activate).is_some(),
        };
        match () {
            () if is_past(Delete) => KeyPhase::Deleted,
            () if !is_published => KeyPhase::Future,
            () if is_past(Revoke) => KeyPhase::Revoked,
            () if is_past(Inactive) => KeyPhase::Inactive,
            () if is_past(Activate) => KeyPhase::Active,
            () => KeyPhase::Published,
        }
    }

    /// The phase of the CDS and CDNSKEY records of the key at `now`. After the deletion of the key,
    /// they are withdrawn too.
    #[must_use]
    pub fn cds_phase(&self, now: u32) -> CdsPhase {
        let (publish, delete) = (self.get(KeyEvent::SyncPublish), self.get(KeyEvent::SyncDelete));
        let is_past = |time: Option<u32>| time.is_some_and(|time| time <= now);
        match (publish, delete) {
            _ if is_past(delete) || is_past(self.get(KeyEvent::Delete)) => CdsPhase::Deleted,
            (None, _) => CdsPhase::Unset,
            _ if is_past(publish) => CdsPhase::Published,
            _ => CdsPhase::Future,
        }
    }

    /// The first event after `now` that determines the phase of the key or of its CDS and CDNSKEY
    /// records, and its time; `None` if there is none.
    #[must_use]
    pub fn next_event(&self, now: u32) -> Option<(KeyEvent, u32)> {
        let times = PHASE_EVENTS.iter().filter_map(|event| Some((*event, self.get(*event)?)));
        times.filter(|(_, time)| *time > now).min_by_key(|(_, time)| *time)
    }

    /// Appends the lines for a `.private` file, such as `Publish: 20260101000000`.
    pub(super) fn push_private_file_lines(&self, text: &mut String) {
        for (event, seconds) in self.iter() {
            push_time(event, seconds, text);
            text.push('\n');
        }
    }

    /// The comments for a `.key` file, which also have the date as text.
    pub(super) fn key_file_comments(&self) -> String {
        let mut text = String::new();
        for (event, seconds) in self.iter() {
            text.push_str("; ");
            push_time(event, seconds, &mut text);
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, " ({})", BindDate(seconds));
        }
        text
    }

    /// The events with a time, in the order of BIND's files, and their times.
    pub fn iter(&self) -> impl Iterator<Item = (KeyEvent, u32)> + '_ {
        EVENTS.into_iter().filter_map(|event| Some((event, self.get(event)?)))
    }

    /// The number of events with a time.
    pub(super) fn len(&self) -> usize {
        self.iter().count()
    }
}

/// Appends the name of the event and the time as `YYYYMMDDHHmmSS`.
fn push_time(event: KeyEvent, seconds: u32, text: &mut String) {
    let mut digits = Vec::with_capacity(14);
    timestamp::push(seconds, &mut digits);
    for part in [event.name(), ": ", &String::from_utf8_lossy(&digits)] {
        text.push_str(part);
    }
}

/// A time in UTC in the text form of BIND's files: `Thu Jan  1 00:00:00 2026`.
struct BindDate(u32);

impl fmt::Display for BindDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let mut digits = Vec::with_capacity(14);
        timestamp::push(self.0, &mut digits);
        let field =
            |from: usize, to: usize| digits[from..to].iter().fold(0, |n, d| n * 10 + usize::from(d - b'0'));
        // 1 January 1970 was a Thursday.
        let (weekday, month) = (DAYS[(self.0 / 86_400 % 7) as usize], MONTHS[(field(4, 6) - 1) % 12]);
        let (day, hour, minute, second) = (field(6, 8), field(8, 10), field(10, 12), field(12, 14));
        write!(f, "{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02} {:04}", field(0, 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u32 = 1_000_000;

    fn times(events: &[(KeyEvent, i64)]) -> KeyTimes {
        let mut times = KeyTimes::default();
        for (event, after) in events {
            times.0[*event as usize] = Some((i64::from(NOW) + after) as u32);
        }
        times
    }

    #[test]
    fn phases_follow_the_times_as_bind_has_them() {
        use KeyEvent::{Activate, Created, Delete, Inactive, Publish, Revoke, SyncPublish};
        for (events, phase) in [
            (&[][..], KeyPhase::Active),
            (&[(Created, -1)], KeyPhase::Active),
            (&[(Publish, -1), (Activate, 0)], KeyPhase::Active),
            (&[(Publish, 0), (Activate, 1)], KeyPhase::Published),
            (&[(Publish, 0)], KeyPhase::Published),
            (&[(Publish, 1), (Activate, 2)], KeyPhase::Future),
            // No validator could verify signatures of an unpublished key.
            (&[(Publish, 1), (Activate, -1)], KeyPhase::Future),
            (&[(Activate, 1)], KeyPhase::Published),
            (&[(Activate, -1)], KeyPhase::Active),
            (&[(Inactive, 1)], KeyPhase::Future),
            (&[(SyncPublish, -1)], KeyPhase::Future),
            (&[(Publish, -3), (Activate, -2), (Inactive, 0)], KeyPhase::Inactive),
            (&[(Publish, -3), (Activate, -2), (Inactive, -1), (Delete, 0)], KeyPhase::Deleted),
            (&[(Publish, -3), (Activate, -2), (Inactive, -1), (Revoke, -1)], KeyPhase::Revoked),
            (&[(Publish, -3), (Activate, 3), (Revoke, -1)], KeyPhase::Revoked),
            (&[(Publish, 3), (Activate, 3), (Revoke, -1)], KeyPhase::Future),
            (&[(Publish, -3), (Activate, -2), (Revoke, -1), (Delete, -1)], KeyPhase::Deleted),
        ] {
            assert_eq!(times(events).phase(NOW), phase, "{events:?}");
        }
    }

    #[test]
    fn cds_records_are_published_between_their_two_times() {
        use KeyEvent::{Delete, SyncDelete, SyncPublish};
        for (events, phase) in [
            (&[][..], CdsPhase::Unset),
            (&[(SyncDelete, 1)], CdsPhase::Unset),
            (&[(SyncPublish, 1)], CdsPhase::Future),
            (&[(SyncPublish, 0), (SyncDelete, 1)], CdsPhase::Published),
            (&[(SyncPublish, -2), (SyncDelete, 0)], CdsPhase::Deleted),
            (&[(SyncPublish, -2), (Delete, 0)], CdsPhase::Deleted),
        ] {
            assert_eq!(times(events).cds_phase(NOW), phase, "{events:?}");
        }
    }

    #[test]
    fn the_next_event_is_the_first_that_determines_a_phase() {
        use KeyEvent::{Activate, Created, DsPublish, Inactive, Publish};
        let key = times(&[(Created, 1), (DsPublish, 2), (Publish, 0), (Inactive, 9), (Activate, 3)]);
        assert_eq!(key.next_event(NOW), Some((Activate, NOW + 3)));
        assert_eq!(key.next_event(NOW + 3), Some((Inactive, NOW + 9)));
        assert_eq!(key.next_event(NOW + 9), None);
    }

    #[test]
    fn comments_are_as_bind_writes_them() {
        let text = KeyTimes::active_since(1_767_225_600).key_file_comments();
        let words = "20260101000000 (Thu Jan  1 00:00:00 2026)";
        assert_eq!(text, format!("; Created: {words}\n; Publish: {words}\n; Activate: {words}\n"));
        assert_eq!(BindDate(1_795_374_255).to_string(), "Sun Nov 22 19:04:15 2026");
    }

    #[test]
    fn malformed_times_are_named() {
        let file = "Private-key-format: v1.3\nPublish: 20260101000000 (Thu Jan  1 00:00:00 2026)\nInactive: tomorrow\n";
        let error = KeyTimes::parse(file).unwrap_err();
        assert_eq!(error, KeyFileError::Time { event: "Inactive", value: "tomorrow".to_owned() });
        // As a number of seconds, or modulo 2^32, these times would be in the distant past.
        for value in ["20271231", "1830211200", "21070101000000", "19691231235959"] {
            let error = KeyTimes::parse(&format!("Inactive: {value}\n")).unwrap_err();
            assert_eq!(error, KeyFileError::Time { event: "Inactive", value: value.to_owned() });
        }
        let lines: Vec<&str> = file.lines().take(2).collect();
        let key = KeyTimes::parse(&lines.join("\n")).unwrap().unwrap();
        assert_eq!(key.get(KeyEvent::Publish), Some(1_767_225_600));
        assert_eq!(KeyTimes::parse("Private-key-format: v1.2\n"), Ok(None));
    }
}
