//! Signs a zone again: replaces only signatures of changed data and signatures that expire soon.
//!
//! Two methods give the same result. [`resign`] plans the whole zone from its unsigned contents, as
//! [`sign`] does, and reuses signatures of the previous zone (`reuse`). [`resign_changes`] starts
//! from the previous signed zone and a change set. It plans only the names that the changes affect,
//! directly or through the chain (`affected`, `chain`), and copies all other names (`incremental`).
//! [`resign_stored`] starts from a compiled zone instead, of which it loads only the parts that it
//! needs.

mod affected;
mod chain;
mod count;
mod incremental;
mod outcome;
mod scan;
mod up_to_date;
mod view;

pub use outcome::ResignedZone;
pub use up_to_date::is_current;

use super::options::check;
use super::{PreviousZone, SignError, SignOptions, Signed, sign, stray_records};
use crate::keys::KeySet;
use nonesuch_zone::change::ChangeSet;
use nonesuch_zone::{Contents, StoredZone};

/// Signs the unsigned `contents` and reuses signatures of `options.previous`. Returns `None` if the
/// previous zone is current ([`is_current`]): it remains valid with its serial.
///
/// # Errors
/// As [`sign`].
pub fn resign(
    contents: &Contents,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> Result<Option<Signed>, SignError> {
    if is_current(contents, keys, options)? { Ok(None) } else { sign(contents, keys, options).map(Some) }
}

/// Applies `changes` to the previous zone of `options` and signs the result. The changes must be
/// changes of unsigned data, without records that the signer generates. Returns `None` if the
/// previous zone remains unchanged, as [`resign`] does.
///
/// DNSKEY, CDS and CDNSKEY records of the previous zone count as data of the zone file. If a key
/// was removed from `keys`, its records remain until the changes or
/// [`SignOptions::drop_foreign_dnskeys`] remove them.
///
/// # Errors
/// As [`sign`]; [`SignError::Change`] if a change does not match the zone;
/// [`SignError::NoPrevious`] if `options` has no previous zone.
pub fn resign_changes<'a>(
    changes: &ChangeSet,
    keys: &KeySet,
    options: &SignOptions<'a>,
) -> Result<Option<ResignedZone<'a>>, SignError> {
    let previous = options.previous.ok_or(SignError::NoPrevious)?.contents;
    check(previous, keys, options)?;
    if previous.soa().is_none() {
        return Err(SignError::NoSoa(previous.apex().clone()));
    }
    let edits = view::Edits::new(previous.into(), changes)?;
    if let Some(outcome) = incremental::sign_incrementally(&edits, keys, options, None)? {
        return Ok(outcome.map(|patch| ResignedZone::incremental(previous.into(), patch)));
    }
    let contents = edits.apply_to_all()?;
    let signed = resign(&contents, keys, options)?;
    Ok(signed.map(|signed| ResignedZone::whole(previous.into(), signed)))
}

/// The result of signing a compiled zone again.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a run")]
pub enum IncrementalResult<'a> {
    /// The whole zone must be planned: the caller must load it and use [`resign_changes`].
    Impossible,
    /// The previous zone is current and remains unchanged.
    Unchanged,
    /// The new zone. It refers to the compiled zone for unchanged parts.
    Signed(ResignedZone<'a>),
}

/// As [`resign_changes`], with the compiled zone `previous`, of which it loads only the necessary
/// parts. `options.previous` must be set; its contents are ignored in favour of those of
/// `previous`.
///
/// # Errors
/// As [`resign_changes`], and if a part of the previous zone cannot be loaded.
pub fn resign_stored<'a>(
    previous: &'a StoredZone,
    changes: &ChangeSet,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> Result<IncrementalResult<'a>, SignError> {
    resign_stored_zone(previous, changes, None, keys, options)
}

/// As [`resign_stored`]. `contents` is the whole unsigned new zone, if it is available.
fn resign_stored_zone<'a>(
    previous: &'a StoredZone,
    changes: &ChangeSet,
    contents: Option<&Contents>,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> Result<IncrementalResult<'a>, SignError> {
    let previous_options = options.previous.ok_or(SignError::NoPrevious)?;
    let options = &SignOptions {
        previous: Some(PreviousZone { contents: previous.first_chunk(), ..previous_options }),
        ..options.clone()
    };
    check(previous.first_chunk(), keys, options)?;
    let edits = view::Edits::new(previous.into(), changes);
    // Names in a part that cannot be loaded seem to be missing, so this error is the cause of
    // others.
    previous.take_failure().map_or(Ok(()), Err)?;
    let outcome = incremental::sign_incrementally(&edits?, keys, options, contents)?;
    previous.take_failure().map_or(Ok(()), Err)?;
    Ok(match outcome {
        None => IncrementalResult::Impossible,
        Some(None) => IncrementalResult::Unchanged,
        Some(Some(patch)) => IncrementalResult::Signed(ResignedZone::incremental(previous.into(), patch)),
    })
}

/// As [`resign_stored`], with the unsigned `contents` of the whole new zone, which must equal the
/// result of the changes. They show how many signatures and chain records the new zone must have.
/// If it would have another number, because the previous zone is faulty, the result is
/// [`IncrementalResult::Impossible`].
///
/// # Errors
/// As [`resign_stored`].
pub fn resign_stored_with_contents<'a>(
    previous: &'a StoredZone,
    changes: &ChangeSet,
    contents: &Contents,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> Result<IncrementalResult<'a>, SignError> {
    let mut outcome = resign_stored_zone(previous, changes, Some(contents), keys, options)?;
    if let IncrementalResult::Signed(resigned) = &mut outcome {
        if !count::is_complete(contents, resigned, options) {
            return Ok(IncrementalResult::Impossible);
        }
        resigned.add_warnings(stray_records::check_below_apex(contents, options));
    }
    Ok(outcome)
}
