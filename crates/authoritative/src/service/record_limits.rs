//! Limits for names with many records of one type, or many types. The cost of a query for such a
//! name grows with their number.

use super::VersionError;
use super::settings::{RecordLimits, WARNING_LIMIT};
use nonesuch_zone::Image;
use nonesuch_zone::image::{LargestCounts, RrsetCount};

/// Checks the limits of a zone. Rejects a zone that exceeds a configured limit. Returns at most one
/// warning for each of the two limits that is not configured, if the zone exceeds
/// [`WARNING_LIMIT`]. 0 permits any number.
///
/// # Errors
/// Returns [`VersionError::TooManyRecords`] or [`VersionError::TooManyTypes`].
pub(super) fn check(image: &Image, limits: RecordLimits) -> Result<Vec<String>, VersionError> {
    let RecordLimits { records_per_type, types_per_name } = limits;
    let mut warnings = Vec::new();
    if (records_per_type, types_per_name) == (Some(0), Some(0)) {
        return Ok(warnings);
    }
    let LargestCounts { rrset: RrsetCount { owner, rtype, count }, types } = image.largest_counts();
    match records_per_type {
        Some(limit) if limit > 0 && count > limit as usize => {
            return Err(VersionError::TooManyRecords { owner: owner.to_name(), rtype, count, limit });
        }
        None if count > WARNING_LIMIT as usize => warnings.push(format!(
            "{owner} has {count} {rtype} records, more than {WARNING_LIMIT}: set max-records-per-type to reject such versions, or to 0 to \
             allow them"
        )),
        _ => {}
    }
    match types_per_name {
        Some(limit) if limit > 0 && types.count > limit as usize => {
            return Err(VersionError::TooManyTypes { owner: types.owner.to_name(), count: types.count, limit });
        }
        None if types.count > WARNING_LIMIT as usize => warnings.push(format!(
            "{} has {} types, more than {WARNING_LIMIT}: set max-types-per-name to reject such versions, or to 0 to allow them",
            types.owner, types.count
        )),
        _ => {}
    }
    Ok(warnings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Rtype;
    use nonesuch_zone::read;
    use std::path::Path;

    fn image(records: usize, types: usize) -> Image {
        let mut text = String::from("$ORIGIN example.\n$TTL 60\n@ SOA . . 1 1 1 1 1\n@ NS ns.other.\n");
        (0..records).for_each(|number| text.push_str(&format!("a TXT {number}\n")));
        (0..types).for_each(|number| text.push_str(&format!("b TYPE{} \\# 1 00\n", 1000 + number)));
        let contents = read::read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
        Image::compile(&contents).unwrap()
    }

    #[test]
    fn more_than_a_hundred_cause_a_warning_if_no_limit_is_configured() {
        let none = RecordLimits::default();
        let warnings = |image: &Image, limits| check(image, limits).unwrap();
        assert_eq!(warnings(&image(100, 100), none), [""; 0]);
        let found = warnings(&image(101, 102), none);
        let has_all = |warning: &str, parts: &[&str]| parts.iter().all(|part| warning.contains(part));
        let of_types = ["b.example. ", " 102 types", " 100:", " max-types-per-name "];
        assert!(
            has_all(&found[0], &["a.example. ", " 101 TXT ", " 100:", " max-records-per-type "]),
            "{found:?}"
        );
        assert!(has_all(&found[1], &of_types), "{found:?}");
        assert_eq!(found.len(), 2);
        for limit in [0, 777] {
            let configured = RecordLimits { records_per_type: Some(limit), types_per_name: Some(limit) };
            assert_eq!(warnings(&image(101, 102), configured), [""; 0], "{limit}");
        }
        // A configured limit causes no warning.
        let one = RecordLimits { records_per_type: Some(777), types_per_name: None };
        let found = warnings(&image(101, 102), one);
        assert!(found.len() == 1 && has_all(&found[0], &of_types), "{found:?}");
    }

    #[test]
    fn versions_above_a_configured_limit_are_rejected_and_0_permits_any_number() {
        let image = image(101, 102);
        let of = |records_per_type, types_per_name| {
            check(&image, RecordLimits { records_per_type, types_per_name })
        };
        assert_eq!(of(Some(0), Some(0)).unwrap(), [""; 0]);
        assert_eq!(of(Some(101), Some(102)).unwrap(), [""; 0]);
        let name = |text: &str| text.parse().unwrap();
        let error = of(Some(100), None).unwrap_err();
        let expected = VersionError::TooManyRecords {
            owner: name("a.example."),
            rtype: Rtype::TXT,
            count: 101,
            limit: 100,
        };
        assert_eq!(format!("{error:?}"), format!("{expected:?}"));
        let error = of(None, Some(101)).unwrap_err();
        let expected = VersionError::TooManyTypes { owner: name("b.example."), count: 102, limit: 101 };
        assert_eq!(format!("{error:?}"), format!("{expected:?}"));
    }
}
