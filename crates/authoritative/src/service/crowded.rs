//! Names with many records of one type, or many types: what a query for one of them costs grows with them.

use super::Refused;
use super::settings::{MANY, RecordLimits};
use nonesuch_zone::Image;
use nonesuch_zone::image::Largest;

/// Whether a zone keeps to the limits that are configured.
///
/// # Errors
/// [`Refused::TooManyRecords`], [`Refused::TooManyTypes`].
pub(super) fn check(image: &Image, limits: RecordLimits) -> Result<(), Refused> {
    let configured = |limit: Option<u32>| limit.filter(|limit| *limit > 0);
    let (records, types) = (configured(limits.records_per_type), configured(limits.types_per_name));
    if records.is_none() && types.is_none() {
        return Ok(());
    }
    let Largest { records: (owner, rtype, count), types: (wide, type_count) } = image.largest();
    if let Some(limit) = records.filter(|limit| count > *limit as usize) {
        return Err(Refused::TooManyRecords { owner: owner.to_name(), rtype, count, limit });
    }
    if let Some(limit) = types.filter(|limit| type_count > *limit as usize) {
        return Err(Refused::TooManyTypes { owner: wide.to_name(), count: type_count, limit });
    }
    Ok(())
}

/// Warnings about a zone for which no limit is configured: at most one line for each of the two limits.
pub(super) fn warnings(image: &Image, limits: RecordLimits) -> Vec<String> {
    let mut warnings = Vec::new();
    if limits.records_per_type.is_some() && limits.types_per_name.is_some() {
        return warnings;
    }
    let Largest { records: (owner, rtype, count), types: (wide, type_count) } = image.largest();
    if limits.records_per_type.is_none() && count > MANY as usize {
        warnings.push(format!(
            "{owner} has {count} {rtype} records, more than {MANY}: set max-records-per-type to reject such versions, or to 0 to \
             allow them"
        ));
    }
    if limits.types_per_name.is_none() && type_count > MANY as usize {
        warnings.push(format!(
            "{wide} has {type_count} types, more than {MANY}: set max-types-per-name to reject such versions, or to 0 to allow them"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn more_than_a_hundred_are_warned_of_where_nothing_is_configured() {
        let none = RecordLimits::default();
        assert_eq!(warnings(&image(100, 100), none), [""; 0]);
        let said = warnings(&image(101, 102), none);
        assert!(
            said[0].starts_with("a.example. has 101 TXT records, more than 100: set max-records-per-type")
        );
        assert!(said[1].starts_with("b.example. has 102 types, more than 100: set max-types-per-name"));
        assert_eq!(said.len(), 2);
        assert!(check(&image(101, 102), none).is_ok());
        for limit in [0, 7] {
            let configured = RecordLimits { records_per_type: Some(limit), types_per_name: Some(limit) };
            assert_eq!(warnings(&image(101, 102), configured), [""; 0], "{limit}");
        }
    }

    #[test]
    fn what_is_configured_is_rejected_and_0_is_any_number() {
        let image = image(101, 102);
        let of = |records_per_type, types_per_name| {
            check(&image, RecordLimits { records_per_type, types_per_name })
                .map_err(|error| error.to_string())
        };
        assert_eq!(of(Some(0), Some(0)), Ok(()));
        assert_eq!(of(Some(101), Some(102)), Ok(()));
        let error = of(Some(100), None).unwrap_err();
        assert_eq!(
            error,
            "a.example. has 101 TXT records, and max-records-per-type allows 100: remove some, or raise it"
        );
        let error = of(None, Some(101)).unwrap_err();
        assert_eq!(
            error,
            "b.example. has 102 types, and max-types-per-name allows 101: remove some, or raise it"
        );
    }
}
