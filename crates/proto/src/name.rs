//! Domain names in uncompressed wire form (RFC 1035 §3.1) and their canonical order (RFC 4034
//! §6.1).
//!
//! [`Name`] owns its octets, [`NameRef`] borrows them. Both preserve the case of letters.
//! Comparison, hashing and order ignore the case of ASCII letters (RFC 4343).

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// Maximum length of a name in octets, including the root label (RFC 1035 §2.3.4).
pub const MAX_NAME: usize = 255;
/// Maximum length of a label in octets (RFC 1035 §2.3.4).
pub const MAX_LABEL: usize = 63;

/// Buffer for a name with a prepended `*` label; see [`NameRef::write_wildcard`].
pub type WildcardBuffer = [u8; MAX_NAME + 2];

/// The reason why octets or text are not a domain name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// A label has more than 63 octets.
    #[error("a label has more than 63 octets")]
    LabelTooLong,
    /// The name has more than 255 octets.
    #[error("the name has more than 255 octets")]
    NameTooLong,
    /// The name has an empty label: two consecutive dots, or a leading dot.
    #[error("the name has an empty label")]
    EmptyLabel,
    /// A backslash is not followed by a character or by three digits up to 255.
    #[error("the name has a malformed escape (write \\. or \\DDD with DDD up to 255)")]
    BadEscape,
    /// The octets end inside the name.
    #[error("the name is incomplete: the data end before its last label")]
    Truncated,
    /// A compression pointer does not point backwards, or a label type is unknown (RFC 6891 §5).
    #[error("the name has an invalid compression pointer or label type")]
    BadPointer,
    /// The name is relative, and there is no origin to complete it.
    #[error("the name is relative and there is no origin (end it with a dot, or give $ORIGIN)")]
    NoOrigin,
}

/// A borrowed domain name in uncompressed wire form, including the root label.
#[derive(Clone, Copy)]
pub struct NameRef<'a>(&'a [u8]);

/// An owned domain name. Short names need no allocation.
#[derive(Clone)]
pub struct Name(Octets);

/// Maximum length of a name that is stored in place, in octets: a [`Name`] has 24 octets.
const IN_PLACE_MAX: usize = 22;

/// The octets of a [`Name`].
#[derive(Clone)]
enum Octets {
    InPlace { length: u8, octets: [u8; IN_PLACE_MAX] },
    Allocated(Box<[u8]>),
}

impl Octets {
    fn new(wire: &[u8]) -> Self {
        match u8::try_from(wire.len()) {
            Ok(length) if wire.len() <= IN_PLACE_MAX => {
                let mut octets = [0; IN_PLACE_MAX];
                octets[..wire.len()].copy_from_slice(wire);
                Self::InPlace { length, octets }
            }
            _ => Self::Allocated(wire.into()),
        }
    }
}

impl<'a> NameRef<'a> {
    /// The root name.
    pub const ROOT: NameRef<'static> = NameRef(&[0]);

    /// Reads an uncompressed name from the start of `octets`. Returns the name and the octets after
    /// it.
    ///
    /// # Errors
    /// [`NameError::Truncated`], [`NameError::NameTooLong`], or [`NameError::BadPointer`] for a
    /// compression pointer or unknown label type.
    pub fn split_from(octets: &'a [u8]) -> Result<(Self, &'a [u8]), NameError> {
        let mut at = 0;
        loop {
            let length = usize::from(*octets.get(at).ok_or(NameError::Truncated)?);
            if length > MAX_LABEL {
                return Err(NameError::BadPointer);
            }
            at += 1 + length;
            if at > MAX_NAME {
                return Err(NameError::NameTooLong);
            }
            if length == 0 {
                let (name, rest) = octets.split_at(at);
                return Ok((NameRef(name), rest));
            }
        }
    }

    /// Reads `octets` as exactly one uncompressed name.
    ///
    /// # Errors
    /// Those of [`NameRef::split_from`], and [`NameError::BadPointer`] if octets follow the name.
    pub fn from_wire(octets: &'a [u8]) -> Result<Self, NameError> {
        match Self::split_from(octets)? {
            (name, []) => Ok(name),
            _ => Err(NameError::BadPointer),
        }
    }

    /// Wraps `octets` without a check. The caller must know that they are one name in wire form.
    ///
    /// If `octets` is not a name, methods return meaningless results or panic, but there is no
    /// undefined behaviour. Call it only with octets that this type produced.
    #[must_use]
    pub const fn from_wire_unchecked(octets: &'a [u8]) -> Self {
        NameRef(octets)
    }

    /// Returns the octets of the wire form.
    #[must_use]
    pub const fn wire(self) -> &'a [u8] {
        self.0
    }

    /// Returns the length of the wire form in octets, 1 to 255.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // a name is never empty: the root has one octet
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// Returns whether this is the root name.
    #[must_use]
    pub const fn is_root(self) -> bool {
        self.0.len() == 1
    }

    /// Returns the labels from left to right, without the root label.
    #[must_use]
    pub const fn labels(self) -> Labels<'a> {
        Labels(self.0)
    }

    /// Returns the number of labels. A leading `*` is counted; the root label is not.
    #[must_use]
    pub fn label_count(self) -> usize {
        self.labels().count()
    }

    /// Returns the Labels field of an RRSIG for this owner (RFC 4034 §3.1.3). A leading `*` is not
    /// counted.
    #[must_use]
    pub fn rrsig_labels(self) -> u8 {
        let count = self.label_count() - usize::from(self.is_wildcard());
        u8::try_from(count).unwrap_or(u8::MAX)
    }

    /// Returns the name without its first label, or `None` for the root.
    #[must_use]
    pub fn parent(self) -> Option<Self> {
        match self.0 {
            [0] => None,
            octets => octets.get(1 + usize::from(octets[0])..).map(NameRef),
        }
    }

    /// Returns the name that consists of the last `count` labels of this name, or this name if it
    /// has fewer labels.
    #[must_use]
    pub fn suffix(self, count: usize) -> Self {
        let mut name = self;
        for _ in count..self.label_count() {
            name = name.parent().unwrap_or(name);
        }
        name
    }

    /// Writes the wildcard below this name (`*` and this name) to `buffer` and returns it. This
    /// allows the lookup of a wildcard without an allocation.
    ///
    /// If this name has more than 253 octets, the result exceeds the maximum length of a name, and
    /// a lookup never finds it.
    #[must_use]
    pub fn write_wildcard(self, buffer: &mut WildcardBuffer) -> NameRef<'_> {
        let length = 2 + self.len();
        buffer[..2].copy_from_slice(b"\x01*");
        buffer[2..length].copy_from_slice(self.0);
        NameRef(&buffer[..length])
    }

    /// Returns whether the first label is `*` (RFC 4592 §2.1.1).
    #[must_use]
    pub const fn is_wildcard(self) -> bool {
        matches!(self.0, [1, b'*', ..])
    }

    /// Returns whether this name is `ancestor` or below it.
    #[must_use]
    pub fn is_at_or_below(self, ancestor: NameRef<'_>) -> bool {
        let Some(start) = self.0.len().checked_sub(ancestor.len()) else { return false };
        if !self.0[start..].eq_ignore_ascii_case(ancestor.0) {
            return false;
        }
        // The octets match. The match must also begin at a label boundary.
        let mut at = 0;
        while at < start {
            at += 1 + usize::from(self.0[at]);
        }
        at == start
    }

    /// Returns whether this name is strictly below `ancestor`.
    #[must_use]
    pub fn is_below(self, ancestor: NameRef<'_>) -> bool {
        self.len() > ancestor.len() && self.is_at_or_below(ancestor)
    }

    /// Compares in canonical order (RFC 4034 §6.1): label by label from the right, as lower-case
    /// octets.
    #[must_use]
    pub fn cmp_canonical(self, other: NameRef<'_>) -> Ordering {
        let (mine, my_count) = self.label_starts();
        let (theirs, their_count) = other.label_starts();
        for depth in 1..=my_count.min(their_count) {
            let a = label_from(self.0, mine[my_count - depth]);
            let b = label_from(other.0, theirs[their_count - depth]);
            let order = cmp_ignore_case(a, b);
            if order != Ordering::Equal {
                return order;
            }
        }
        my_count.cmp(&their_count)
    }

    /// Returns the offsets of the length octets of all labels, and the number of labels. The
    /// offsets after this number are meaningless.
    fn label_starts(self) -> ([u8; 128], usize) {
        let mut starts = [0u8; 128];
        let mut count = 0;
        let mut at = 0usize;
        while self.0[at] != 0 {
            starts[count] = at as u8;
            count += 1;
            at += 1 + usize::from(self.0[at]);
        }
        (starts, count)
    }

    /// Appends a sort key. The octet order of sort keys is the canonical order of the names (RFC
    /// 4034 §6.1).
    ///
    /// The key contains the labels from right to left in lower case, each terminated by the octet
    /// 0. The octets 0 and 1 inside a label are encoded as 1 1 and 1 2. Therefore a label sorts
    /// before all labels of which it is a prefix. The key of a name is a prefix of the keys of all
    /// names below it.
    pub fn push_sort_key(self, key: &mut Vec<u8>) {
        let (starts, count) = self.label_starts();
        for depth in (0..count).rev() {
            for &octet in label_from(self.0, starts[depth]) {
                match octet {
                    0 => key.extend_from_slice(&[1, 1]),
                    1 => key.extend_from_slice(&[1, 2]),
                    _ => key.push(octet.to_ascii_lowercase()),
                }
            }
            key.push(0);
        }
    }

    /// Appends the canonical wire form (RFC 4034 §6.2), with ASCII letters in lower case.
    pub fn push_canonical(self, out: &mut Vec<u8>) {
        // Length octets are at most 63, so the conversion does not change them: upper-case letters
        // are 65 to 90.
        out.extend(self.0.iter().map(u8::to_ascii_lowercase));
    }

    /// Returns an owned copy.
    #[must_use]
    pub fn to_name(self) -> Name {
        Name(Octets::new(self.0))
    }

    /// Returns an owned copy in lower case.
    #[must_use]
    pub fn to_canonical(self) -> Name {
        let mut name = self.to_name();
        match &mut name.0 {
            Octets::InPlace { octets, .. } => octets.make_ascii_lowercase(),
            Octets::Allocated(octets) => octets.make_ascii_lowercase(),
        }
        name
    }
}

/// Returns the label whose length octet is at `start`.
fn label_from(wire: &[u8], start: u8) -> &[u8] {
    let start = usize::from(start);
    &wire[start + 1..start + 1 + usize::from(wire[start])]
}

fn cmp_ignore_case(a: &[u8], b: &[u8]) -> Ordering {
    a.iter().map(u8::to_ascii_lowercase).cmp(b.iter().map(u8::to_ascii_lowercase))
}

/// Iterator over the labels of a name from left to right, without the root label.
#[derive(Clone, Debug)]
pub struct Labels<'a>(&'a [u8]);

impl<'a> Iterator for Labels<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (&length, rest) = self.0.split_first()?;
        if length == 0 {
            return None;
        }
        let (label, rest) = rest.split_at_checked(usize::from(length))?;
        self.0 = rest;
        Some(label)
    }
}

impl Name {
    /// Returns the root name.
    #[must_use]
    pub fn root() -> Self {
        NameRef::ROOT.to_name()
    }

    /// Returns a borrowed view of the name.
    #[inline]
    #[must_use]
    pub const fn view(&self) -> NameRef<'_> {
        NameRef(self.wire())
    }

    /// Returns the octets of the wire form.
    #[inline]
    #[must_use]
    pub const fn wire(&self) -> &[u8] {
        match &self.0 {
            Octets::InPlace { length, octets } => octets.split_at(*length as usize).0,
            Octets::Allocated(octets) => octets,
        }
    }

    /// Returns the name that consists of `label` and `parent`.
    ///
    /// # Errors
    /// [`NameError::EmptyLabel`], [`NameError::LabelTooLong`] or [`NameError::NameTooLong`].
    pub fn prepend(label: &[u8], parent: NameRef<'_>) -> Result<Self, NameError> {
        if label.is_empty() {
            return Err(NameError::EmptyLabel);
        }
        let length = u8::try_from(label.len()).ok().filter(|&n| usize::from(n) <= MAX_LABEL);
        let length = length.ok_or(NameError::LabelTooLong)?;
        if 1 + label.len() + parent.len() > MAX_NAME {
            return Err(NameError::NameTooLong);
        }
        let mut wire = Vec::with_capacity(1 + label.len() + parent.len());
        wire.push(length);
        wire.extend_from_slice(label);
        wire.extend_from_slice(parent.wire());
        Ok(Self(Octets::new(&wire)))
    }

    /// Returns `*.parent`.
    ///
    /// # Errors
    /// [`NameError::NameTooLong`] if the resulting name has more than 255 octets.
    pub fn wildcard_below(parent: NameRef<'_>) -> Result<Self, NameError> {
        Self::prepend(b"*", parent)
    }

    /// Reads a name in presentation form. `origin` completes a relative name.
    ///
    /// # Errors
    /// If the text is not a name, the name or a label is too long, or a relative name has no
    /// origin.
    pub fn from_text(text: &[u8], origin: Option<NameRef<'_>>) -> Result<Self, NameError> {
        let mut wire = Vec::with_capacity(text.len() + 2);
        push_from_text(text, origin, &mut wire)?;
        Ok(Self(Octets::new(&wire)))
    }

    /// Reads the name at the offset `at` of a message and follows compression pointers (RFC 1035
    /// §4.1.4), which must point backwards. Returns the name and the offset after it in the
    /// message.
    ///
    /// # Errors
    /// [`NameError::Truncated`], [`NameError::NameTooLong`], or [`NameError::BadPointer`] for a
    /// pointer that does not point backwards or an unknown label type.
    pub fn from_message(message: &[u8], at: usize) -> Result<(Self, usize), NameError> {
        let mut buffer = [0; MAX_NAME];
        let (length, end) = read_from_message(message, at, &mut buffer)?;
        Ok((Self(Octets::new(&buffer[..length])), end))
    }
}

/// Appends the wire form of a name in presentation form (RFC 1035 §5.1). `origin` completes a
/// relative name; the text `@` stands for the origin.
///
/// # Errors
/// If the text is not a name, the name or a label is too long, or a relative name has no origin.
/// `wire` may then end with a part of the name.
pub fn push_from_text(text: &[u8], origin: Option<NameRef<'_>>, wire: &mut Vec<u8>) -> Result<(), NameError> {
    let start = wire.len();
    if text == b"@" {
        wire.extend_from_slice(origin.ok_or(NameError::NoOrigin)?.wire());
        return Ok(());
    }
    if text == b"." {
        wire.push(0);
        return Ok(());
    }
    let is_absolute = push_labels(text, wire)?;
    match (is_absolute, origin) {
        (true, _) => wire.push(0),
        (false, Some(origin)) => wire.extend_from_slice(origin.wire()),
        (false, None) => return Err(NameError::NoOrigin),
    }
    if wire.len() - start > MAX_NAME { Err(NameError::NameTooLong) } else { Ok(()) }
}

/// Appends the labels of `text`. Returns whether `text` ends in a dot.
fn push_labels(text: &[u8], wire: &mut Vec<u8>) -> Result<bool, NameError> {
    let (labels, is_absolute) = match text {
        [labels @ .., b'.'] => (labels, true),
        _ => (text, false),
    };
    let start = wire.len();
    wire.push(0);
    wire.extend_from_slice(labels);
    // Without escapes, the octets of the labels are already in place. Each length octet replaces
    // the dot before its label.
    let mut label = 0;
    for (at, octet) in labels.iter().enumerate() {
        if *octet == b'.' {
            wire[start + label] = label_length(at - label)?;
            label = at + 1;
        } else if *octet == b'\\' {
            wire.truncate(start);
            return push_escaped_labels(text, wire);
        }
    }
    wire[start + label] = label_length(labels.len() - label)?;
    Ok(is_absolute)
}

/// Checks the number of octets of a label and returns it as a length octet.
fn label_length(octets: usize) -> Result<u8, NameError> {
    match octets {
        0 => Err(NameError::EmptyLabel),
        1..=MAX_LABEL => Ok(octets as u8),
        _ => Err(NameError::LabelTooLong),
    }
}

fn push_escaped_labels(text: &[u8], wire: &mut Vec<u8>) -> Result<bool, NameError> {
    let mut at = 0;
    loop {
        let length_at = wire.len();
        wire.push(0);
        let ended_by_dot = push_label(text, &mut at, wire)?;
        wire[length_at] = label_length(wire.len() - length_at - 1)?;
        if !ended_by_dot {
            return Ok(false);
        }
        if at == text.len() {
            return Ok(true);
        }
    }
}

/// Appends the octets of one label. Returns whether a dot ended the label.
fn push_label(text: &[u8], at: &mut usize, wire: &mut Vec<u8>) -> Result<bool, NameError> {
    while let Some(&octet) = text.get(*at) {
        *at += 1;
        match octet {
            b'.' => return Ok(true),
            b'\\' => {
                let (octet, used) = crate::escape::unescape(text.get(*at..).unwrap_or_default())
                    .ok_or(NameError::BadEscape)?;
                wire.push(octet);
                *at += used;
            }
            _ => wire.push(octet),
        }
    }
    Ok(false)
}

/// Appends the uncompressed form of the name at the offset `at` of a message. Returns the offset
/// after the name.
pub(crate) fn push_from_message(message: &[u8], at: usize, wire: &mut Vec<u8>) -> Result<usize, NameError> {
    let mut buffer = [0; MAX_NAME];
    let (length, end) = read_from_message(message, at, &mut buffer)?;
    wire.extend_from_slice(&buffer[..length]);
    Ok(end)
}

/// Writes the uncompressed form of the name at the offset `at` of a message to the start of `wire`.
/// Returns its length, and the offset after the name in the message.
fn read_from_message(
    message: &[u8],
    mut at: usize,
    wire: &mut [u8; MAX_NAME],
) -> Result<(usize, usize), NameError> {
    let mut written = 0;
    // Offset after the first pointer, where the name ends in the message.
    let mut end = None;
    // Pointers must refer to an offset below this one.
    let mut pointer_limit = at;
    loop {
        let length = *message.get(at).ok_or(NameError::Truncated)?;
        match length {
            // The root label. The buffer has room for it, and is zero.
            0 => return Ok((written + 1, end.unwrap_or(at + 1))),
            1..=63 => {
                let next = at + 1 + usize::from(length);
                let label = message.get(at..next).ok_or(NameError::Truncated)?;
                let after = written + label.len();
                // One octet must remain for the root label.
                if after >= MAX_NAME {
                    return Err(NameError::NameTooLong);
                }
                wire[written..after].copy_from_slice(label);
                (written, at) = (after, next);
            }
            192..=255 => {
                let low = *message.get(at + 1).ok_or(NameError::Truncated)?;
                let target = usize::from(length & 0x3f) << 8 | usize::from(low);
                // A pointer refers to a prior occurrence of a name (RFC 1035 §4.1.4). Each pointer
                // must point further back than the previous one, so a loop is impossible.
                if target >= pointer_limit {
                    return Err(NameError::BadPointer);
                }
                end.get_or_insert(at + 2);
                pointer_limit = target;
                at = target;
            }
            _ => return Err(NameError::BadPointer),
        }
    }
}

impl FromStr for Name {
    type Err = NameError;

    /// Reads a name in presentation form. A missing final dot is added: the name is always
    /// absolute.
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::from_text(text.as_bytes(), Some(NameRef::ROOT))
    }
}

impl fmt::Debug for NameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.view(), f)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.view(), f)
    }
}

impl PartialEq for NameRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(other.0)
    }
}
impl Eq for NameRef<'_> {}

/// Octets of a name that are hashed at once.
const HASHED_AT_ONCE: usize = 32;

impl Hash for NameRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Few writes: a hasher works on several octets at a time.
        for chunk in self.0.chunks(HASHED_AT_ONCE) {
            let mut lower = [0; HASHED_AT_ONCE];
            let lower = &mut lower[..chunk.len()];
            lower.copy_from_slice(chunk);
            lower.make_ascii_lowercase();
            state.write(lower);
        }
    }
}

impl PartialOrd for NameRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for NameRef<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cmp_canonical(*other)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.view() == other.view()
    }
}
impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.view().hash(state);
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.view().cmp_canonical(other.view())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn rfc4034_section_6_1_order() {
        let order = [
            "example.",
            "a.example.",
            "yljkjljk.a.example.",
            "Z.a.example.",
            "zABC.a.EXAMPLE.",
            "z.example.",
            "\\001.z.example.",
            "*.z.example.",
            "\\200.z.example.",
        ];
        for pair in order.windows(2) {
            assert!(name(pair[0]) < name(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn escapes_and_limits() {
        assert_eq!(name("a\\.b.c").wire(), b"\x03a.b\x01c\0");
        assert_eq!(name("\\000\\255.").wire(), b"\x02\x00\xff\0");
        assert_eq!(name("a\\.b.\\000").to_string(), "a\\.b.\\000.");
        assert_eq!("a..b".parse::<Name>().unwrap_err(), NameError::EmptyLabel);
        assert_eq!(".a".parse::<Name>().unwrap_err(), NameError::EmptyLabel);
        assert_eq!("a\\25".parse::<Name>().unwrap_err(), NameError::BadEscape);
        assert_eq!("a\\256".parse::<Name>().unwrap_err(), NameError::BadEscape);
        assert_eq!("x".repeat(64).parse::<Name>().unwrap_err(), NameError::LabelTooLong);
        let long = format!("{0}.{0}.{0}.{1}", "x".repeat(63), "y".repeat(61));
        assert_eq!(name(&long).wire().len(), 255);
        assert_eq!(format!("{long}y").parse::<Name>().unwrap_err(), NameError::NameTooLong);
    }

    #[test]
    fn subdomains_begin_at_labels() {
        assert!(name("a.b.example").view().is_below(name("B.EXAMPLE").view()));
        assert!(!name("ab.example").view().is_at_or_below(name("b.example").view()));
        assert!(!name("example").view().is_below(name("example").view()));
        // In the label `x\001b`, the octets `\001b` look like a length octet and the label `b`, but
        // no label begins there.
        assert!(!name("x\\001b.").view().is_at_or_below(name("b.").view()));
        assert_eq!(name("*.a.b").view().rrsig_labels(), 2);
        assert_eq!(name("x.a.b").view().suffix(2), name("a.b").view());
    }

    #[test]
    fn written_and_owned_wildcards_are_equal() {
        let long = format!("{0}.{0}.{0}.{1}", "x".repeat(63), "y".repeat(59));
        for parent in [".", "Example.", &long] {
            let (parent, mut buffer) = (name(parent), [0; MAX_NAME + 2]);
            let owned = Name::wildcard_below(parent.view()).unwrap();
            assert_eq!(parent.view().write_wildcard(&mut buffer).wire(), owned.wire());
        }
        let (longest, mut buffer) = (name(&format!("{long}yy")), [0; MAX_NAME + 2]);
        assert_eq!(longest.view().write_wildcard(&mut buffer).len(), MAX_NAME + 2);
    }

    #[test]
    fn pointers_go_backwards_only() {
        let message = b"\x01a\0\x01b\xc0\x00\xc0\x07";
        let (read, end) = Name::from_message(message, 3).unwrap();
        assert_eq!((read.to_string().as_str(), end), ("b.a.", 7));
        assert_eq!(Name::from_message(message, 7).unwrap_err(), NameError::BadPointer);
        assert_eq!(Name::from_message(b"\xc0\x00", 0).unwrap_err(), NameError::BadPointer);
        assert_eq!(Name::from_message(b"\x40a", 0).unwrap_err(), NameError::BadPointer);
    }

    fn any_name() -> impl Strategy<Value = Name> {
        let label = prop_oneof![
            proptest::collection::vec(any::<u8>(), 1..6),
            proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(2), Just(b'a'), Just(b'A')], 1..4),
        ];
        proptest::collection::vec(label, 0..6).prop_map(|labels| {
            labels.iter().fold(Name::root(), |name, label| Name::prepend(label, name.view()).unwrap())
        })
    }

    proptest! {
        #[test]
        fn plain_labels_are_read_as_escaped_ones_are(text in "[a-b.]{0,8}|a{60,66}[.]?a?") {
            let (mut plain, mut escaped) = (Vec::new(), Vec::new());
            let outcome = push_labels(text.as_bytes(), &mut plain);
            prop_assert_eq!(outcome, push_escaped_labels(text.as_bytes(), &mut escaped));
            if outcome.is_ok() {
                prop_assert_eq!(plain, escaped);
            }
        }

        #[test]
        fn text_round_trip(name in any_name()) {
            let again: Name = name.to_string().parse().unwrap();
            prop_assert_eq!(again.wire(), name.wire());
        }

        #[test]
        fn sort_key_is_the_canonical_order(a in any_name(), b in any_name()) {
            let (mut x, mut y) = (Vec::new(), Vec::new());
            a.view().push_sort_key(&mut x);
            b.view().push_sort_key(&mut y);
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(y.starts_with(&x), b.view().is_at_or_below(a.view()));
        }

        #[test]
        fn arbitrary_octets_never_panic(octets in proptest::collection::vec(any::<u8>(), 0..300), at in 0usize..310) {
            let _ = NameRef::split_from(&octets);
            if let Ok((name, _)) = Name::from_message(&octets, at) {
                prop_assert!(NameRef::from_wire(name.wire()).is_ok());
            }
        }

        #[test]
        fn arbitrary_text_never_panics(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(name) = Name::from_text(&text, Some(NameRef::ROOT)) {
                prop_assert!(NameRef::from_wire(name.wire()).is_ok());
            }
        }
    }
}
