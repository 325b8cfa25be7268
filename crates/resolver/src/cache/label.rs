//! Keys of the cache: names in lower case, and what an entry of a name is.

use super::FailureCause;
use super::ring::Label;
use nonesuch_proto::{Class, MAX_NAME, NameRef, Rtype, WildcardBuffer};

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rrset = 1,
    NoData = 2,
    NxDomain = 3,
    ResolutionFailure = 4,
    ValidationFailure = 5,
    CostlyZone = 6,
}

const fn label(kind: Kind, class: Class, rtype: Rtype) -> Label {
    Label((kind as u64) << 32 | (class.0 as u64) << 16 | rtype.0 as u64)
}

impl Label {
    /// The label of an RRset.
    pub(super) const fn rrset(rtype: Rtype, class: Class) -> Self {
        label(Kind::Rrset, class, rtype)
    }

    /// The label of the answer that a name has no RRset of this type.
    pub(super) const fn no_data(rtype: Rtype, class: Class) -> Self {
        label(Kind::NoData, class, rtype)
    }

    /// The label of the answer that a name does not exist.
    pub(super) const fn nx_domain(class: Class) -> Self {
        label(Kind::NxDomain, class, Rtype(0))
    }

    /// The label of a failure to resolve a type of a name.
    pub(super) const fn failure(cause: FailureCause, rtype: Rtype, class: Class) -> Self {
        let kind = match cause {
            FailureCause::Resolution => Kind::ResolutionFailure,
            FailureCause::Validation => Kind::ValidationFailure,
        };
        label(kind, class, rtype)
    }

    /// The label of a zone with many signatures that do not verify.
    pub(super) const fn costly_zone(class: Class) -> Self {
        label(Kind::CostlyZone, class, Rtype(0))
    }

    /// Whether the entry is an RRset.
    pub(super) const fn is_rrset(self) -> bool {
        self.0 >> 32 == Kind::Rrset as u64
    }

    /// Whether the entry is a failure.
    pub(super) const fn is_failure(self) -> bool {
        let kind = self.0 >> 32;
        kind >= Kind::ResolutionFailure as u64
    }

    /// The class.
    pub(super) const fn class(self) -> Class {
        Class((self.0 >> 16) as u16)
    }

    /// The type.
    pub(super) const fn rtype(self) -> Rtype {
        Rtype(self.0 as u16)
    }
}

/// A name in lower case, without an allocation.
#[derive(Clone, Copy, Debug)]
pub(super) struct LowerName {
    octets: WildcardBuffer,
    length: usize,
}

impl LowerName {
    /// Returns the name in lower case; `None` if it is longer than a name can be.
    pub(super) fn of(name: NameRef<'_>) -> Option<Self> {
        let length = Some(name.len()).filter(|length| *length <= MAX_NAME)?;
        let mut octets = [0; MAX_NAME + 2];
        octets[..length].copy_from_slice(name.wire());
        // Length octets are at most 63, below the upper-case letters.
        octets[..length].make_ascii_lowercase();
        Some(Self { octets, length })
    }

    /// The octets.
    pub(super) fn octets(&self) -> &[u8] {
        &self.octets[..self.length]
    }

    /// The name and its ancestors up to the root.
    pub(super) fn at_and_above(&self) -> impl Iterator<Item = NameRef<'_>> {
        let name = NameRef::from_wire_unchecked(self.octets());
        std::iter::successors(Some(name), |name| name.parent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Name;

    #[test]
    fn labels_keep_type_and_class_and_differ_by_kind() {
        let labels = [
            Label::rrset(Rtype(0xffff), Class::CH),
            Label::no_data(Rtype(0xffff), Class::CH),
            Label::failure(FailureCause::Resolution, Rtype(0xffff), Class::CH),
            Label::failure(FailureCause::Validation, Rtype(0xffff), Class::CH),
        ];
        assert!(labels.iter().all(|label| label.rtype() == Rtype(0xffff) && label.class() == Class::CH));
        assert!(
            Label::costly_zone(Class::CH).is_failure() && !labels.contains(&Label::costly_zone(Class::CH))
        );
        assert!(labels.iter().enumerate().all(|(at, label)| !labels[..at].contains(label)));
        assert_eq!(labels.map(Label::is_rrset), [true, false, false, false]);
        assert_eq!(labels.map(Label::is_failure), [false, false, true, true]);
    }

    #[test]
    fn a_lower_name_has_its_ancestors() {
        let name: Name = "a.EXAMPLE.Org".parse().unwrap();
        let lower = LowerName::of(name.view()).unwrap();
        let names: Vec<String> = lower.at_and_above().map(|name| name.to_string()).collect();
        assert_eq!(names, ["a.example.org.", "example.org.", "org.", "."]);
        let mut buffer = [0; MAX_NAME + 2];
        let longest = format!("{0}.{0}.{0}.{1}", "x".repeat(63), "y".repeat(61)).parse::<Name>().unwrap();
        assert!(LowerName::of(longest.view()).is_some());
        assert!(LowerName::of(longest.view().write_wildcard(&mut buffer)).is_none());
    }
}
