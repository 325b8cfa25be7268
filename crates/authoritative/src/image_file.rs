//! Opens zone image files.

use nonesuch_net::Map;
use nonesuch_zone::image::file::{PAGE, contents_range, is_image};
use nonesuch_zone::read::read_remedy;
use nonesuch_zone::{ImageFile, ImageFileError, LoadError, open_regular};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Errors of opening an image file.
#[derive(Debug, thiserror::Error)]
pub enum OpenImageError {
    /// The operating system reports an error.
    #[error("{}: cannot be read: {source}{}", path.display(), read_remedy(source))]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is not a usable image.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Returns whether the file at `path` begins as an image does, without mapping any of it.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub(crate) fn begins_as_image(path: &Path) -> Result<bool, OpenImageError> {
    let unreadable = |source| OpenImageError::Read { path: path.to_path_buf(), source };
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Ok(false);
    }
    let mut first_page = Vec::with_capacity(PAGE);
    let file = open_regular(path).map_err(unreadable)?;
    file.take(PAGE as u64).read_to_end(&mut first_page).map_err(unreadable)?;
    Ok(is_image(&first_page))
}

/// Maps the image at the start of the file at `path`. Returns `None` if the path is not a regular
/// file, if the file does not begin as an image does, or if the image has an older format version;
/// the records of the zone, which follow the image, can be read in the last case.
///
/// Also rejects a file that ends before its recorded end, although the image itself is complete:
/// the file is damaged.
///
/// # Errors
/// Returns an error if the file cannot be read or the image is not valid.
pub fn open_image(path: &Path) -> Result<Option<ImageFile>, OpenImageError> {
    let unreadable = |source| OpenImageError::Read { path: path.to_path_buf(), source };
    let unusable = |source| LoadError::Image { path: path.to_path_buf(), source };
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Ok(None);
    }
    // Another file may have replaced it since the check above.
    let file = open_regular(path).map_err(unreadable)?;
    let mut first_page = Vec::with_capacity(PAGE);
    (&file).take(PAGE as u64).read_to_end(&mut first_page).map_err(unreadable)?;
    if !is_image(&first_page) {
        return Ok(None);
    }
    let contents = contents_range(&first_page).map_err(unusable)?;
    let found = file.metadata().map_err(unreadable)?.len();
    if found < contents.end {
        return Err(unusable(ImageFileError::Truncated { expected: contents.end, found }).into());
    }
    let map =
        Map::of_file(&file, usize::try_from(contents.start).unwrap_or(usize::MAX)).map_err(unreadable)?;
    match ImageFile::open(map) {
        Err(ImageFileError::Version(_)) => Ok(None),
        opened => Ok(Some(opened.map_err(unusable)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_zone::{Image, Verification, image, read};

    #[test]
    fn a_file_that_is_truncated_after_its_image_is_rejected() {
        let text = "$ORIGIN example.\n@ 60 SOA . . 7 1 1 1 1\n@ 60 NS ns.other.\n";
        let contents = read::read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
        let compiled = Image::compile(&contents).unwrap();
        let mut octets = Vec::new();
        let nothing = Verification::Nothing;
        image::file::write(&compiled, nothing, &contents, nothing, &mut octets).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("zone");
        std::fs::write(&path, &octets).unwrap();
        assert_eq!(open_image(&path).unwrap().unwrap().image().serial(), 7);
        std::fs::write(&path, &octets[..octets.len() - 1]).unwrap();
        assert!(begins_as_image(&path).unwrap());
        let error = open_image(&path).unwrap_err();
        let expected = octets.len() as u64;
        assert!(
            matches!(error, OpenImageError::Load(LoadError::Image { source: ImageFileError::Truncated { expected: all, .. }, .. }) if all == expected)
        );
        std::fs::write(&path, text).unwrap();
        assert!(!begins_as_image(&path).unwrap() && !begins_as_image(dir.path()).unwrap());
        assert!(open_image(&path).unwrap().is_none() && open_image(dir.path()).unwrap().is_none());
        assert!(matches!(open_image(&dir.path().join("none")), Err(OpenImageError::Read { .. })));
    }
}
