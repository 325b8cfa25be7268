//! Signing a zone that was signed before: only what has changed or expires soon is signed anew.
//!
//! Two ways lead to the same zone. [`resign`] plans the whole zone from its unsigned contents, as signing does, and
//! takes signatures over from the previous one (`reuse`). [`resign_changes`] starts from the previous signed zone
//! and a change set: it plans the names that the changes touch, directly or through the chain (`dirty`, `chain`), and
//! copies all others as they are (`mend`). [`resign_stored`] does the same with a compiled zone of which it loads no
//! more than what the changes concern.

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

/// Signs `contents` and keeps what may be kept of `options.previous`. `None` where the previous zone is what signing
/// would make, and none of its signatures expires within the refresh window: it stays as it is, with its serial.
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

/// Signs what comes of the previous zone of `options` by `changes`, which are changes of unsigned data: what signing
/// makes is not among them. `None` as for [`resign`].
///
/// DNSKEY, CDS and CDNSKEY records of the previous zone count as data of the zone file: those of a key that has been
/// removed stay until the changes, or [`SignOptions::drop_foreign_dnskeys`], remove them.
///
/// # Errors
/// Where a change does not fit the zone, or as [`sign`]; also where `options` have no previous zone.
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
        return Ok(outcome.map(|mended| ResignedZone::incremental(previous.into(), mended)));
    }
    let contents = edits.apply_to_all()?;
    let signed = resign(&contents, keys, options)?;
    Ok(signed.map(|signed| ResignedZone::whole(previous.into(), signed)))
}

/// What became of a compiled zone.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a run")]
pub enum IncrementalResult<'a> {
    /// The zone must be planned as a whole: load it, and use [`resign_changes`].
    Impossible,
    /// There is nothing to sign: the zone stays as it is.
    Unchanged,
    /// The new zone, of which what stays is still in the compiled one.
    Signed(ResignedZone<'a>),
}

/// As [`resign_changes`] with the compiled zone `previous`, of which it loads no more than it needs. `options.previous`
/// has the head of that zone for contents.
///
/// # Errors
/// As [`resign_changes`], and where a part of the previous zone cannot be loaded.
pub fn resign_stored<'a>(
    previous: &'a StoredZone,
    changes: &ChangeSet,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> Result<IncrementalResult<'a>, SignError> {
    mend_stored(previous, changes, None, keys, options)
}

fn mend_stored<'a>(
    previous: &'a StoredZone,
    changes: &ChangeSet,
    contents: Option<&Contents>,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> Result<IncrementalResult<'a>, SignError> {
    let refresh = options.previous.ok_or(SignError::NoPrevious)?;
    let options = &SignOptions {
        previous: Some(PreviousZone { contents: previous.head(), ..refresh }),
        ..options.clone()
    };
    check(previous.head(), keys, options)?;
    let edits = view::Edits::new(previous.into(), changes);
    previous.failure().map_or(Ok(()), Err)?;
    let outcome = incremental::sign_incrementally(&edits?, keys, options, contents)?;
    previous.failure().map_or(Ok(()), Err)?;
    Ok(match outcome {
        None => IncrementalResult::Impossible,
        Some(None) => IncrementalResult::Unchanged,
        Some(Some(mended)) => IncrementalResult::Signed(ResignedZone::incremental(previous.into(), mended)),
    })
}

/// As [`resign_stored`], with the data of the whole new zone too, which the changes make: so what is wrong with the
/// number of signatures and of records of the chain in the previous zone is seen, and the zone is planned as a whole then.
///
/// # Errors
/// As [`resign_stored`].
pub fn resign_compared<'a>(
    previous: &'a StoredZone,
    changes: &ChangeSet,
    contents: &Contents,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> Result<IncrementalResult<'a>, SignError> {
    let mut outcome = mend_stored(previous, changes, Some(contents), keys, options)?;
    if let IncrementalResult::Signed(resigned) = &mut outcome {
        if !count::is_complete(contents, resigned, options) {
            return Ok(IncrementalResult::Impossible);
        }
        resigned.warn(stray_records::check_below_apex(contents, options));
    }
    Ok(outcome)
}
