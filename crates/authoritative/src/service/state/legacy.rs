//! Legacy state files: text files in which builds without the state file `ZONE.state` stored the
//! state of a zone, one file for each part of the state. [`StateDirectory::open`] merges them into
//! the state file and removes them. If that fails, they are read together with the state file.
//!
//! | suffix | part of the state |
//! | --- | --- |
//! | `origin` | fingerprints of the files that the stored version was read from |
//! | `made` | inputs of the stored image of a zone that is signed online |
//! | `member` | the catalog that lists the zone as a member |
//! | `reused` | the highest serial that was published with different records |
//! | `timers` | time at which a primary last confirmed the stored version |
//! | `rejected` | versions of primaries that were rejected |
//!
//! The first line of a file is `nonesuch`, the suffix, and the number of the file format.
//!
//! [`StateDirectory::open`]: super::StateDirectory::open

use super::super::image_inputs::ImageInputs;
use super::file::{ImageState, StateFile};
use super::member::Membership;
use super::{Fingerprint, ZONE_SUFFIX, is_written_by_server};
use crate::catalog::Group;
use data_encoding::HEXLOWER;
use nonesuch_secondary::{RejectedVersions, Timers};
use nonesuch_zone::Verification;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::str::{FromStr, Lines};
use std::time::SystemTime;

/// Suffixes of legacy state files.
pub(super) const SUFFIXES: [&str; 6] = ["origin", "made", "member", "reused", "timers", "rejected"];
/// The first bytes of every legacy state file.
pub(super) const MAGIC: &[u8] = b"nonesuch ";
/// Maximum size of a legacy state file, in bytes. A larger file is ignored.
const MAX_OCTETS: u64 = 16 << 20;

/// Returns the stems of the legacy state files in `directory`, without duplicates. Ignores files
/// that no server wrote.
pub(super) fn stems(directory: &Path) -> BTreeSet<String> {
    let mut stems = BTreeSet::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some((stem, suffix)) = name.rsplit_once('.')
            && SUFFIXES.contains(&suffix)
            && !stem.is_empty()
            && is_written_by_server(&entry.path(), suffix)
        {
            stems.insert(stem.to_owned());
        }
    }
    stems
}

/// The legacy state files of one zone.
pub(super) struct LegacyFiles<'f> {
    pub(super) directory: &'f Path,
    /// The common part of the file names ([`file_stem`](super::file_stem)).
    pub(super) stem: &'f str,
}

impl LegacyFiles<'_> {
    fn path(&self, suffix: &str) -> PathBuf {
        self.directory.join(format!("{}.{suffix}", self.stem))
    }

    /// Replaces the parts of `state` that these files contain. `written_at` is the modification
    /// time of the state file that `state` was read from; `None` if there is none. Files that are
    /// older are ignored: the state file contains their content, or newer state. A file can be
    /// newer if the operator ran an older build in the meantime.
    ///
    /// A missing, unreadable or invalid file leaves its part of `state` unchanged. `origin` and
    /// `made` belong to one part: if only one of them is valid, the other half becomes empty.
    pub(super) fn merge_into(&self, state: &mut StateFile, written_at: Option<SystemTime>) {
        let text = |suffix: &str| {
            let path = self.path(suffix);
            let is_older = |time: SystemTime| modified_at(&path).is_none_or(|modified| modified < time);
            if written_at.is_some_and(is_older) { None } else { read_text(&path, suffix) }
        };
        if let Ok(fingerprint) = Fingerprint::of(&self.path(ZONE_SUFFIX)) {
            let origin = text("origin").and_then(|text| parse_origin(&text, fingerprint));
            let inputs = text("made").and_then(|text| parse_inputs(&text, fingerprint));
            if origin.is_some() || inputs.is_some() {
                let origin = origin.unwrap_or_default();
                state.image = Some(ImageState { fingerprint, origin, inputs });
            }
        }
        state.member = text("member").and_then(|text| parse_member(&text)).or_else(|| state.member.take());
        state.reused_serial = text("reused").and_then(|text| parse_reused(&text)).or(state.reused_serial);
        state.timers = text("timers").and_then(|text| parse_timers(&text)).or(state.timers);
        state.rejected =
            text("rejected").and_then(|text| parse_rejected(&text)).or_else(|| state.rejected.take());
    }

    /// Removes the files, except those that no server wrote.
    pub(super) fn remove(&self) {
        for suffix in SUFFIXES {
            let path = self.path(suffix);
            if is_written_by_server(&path, suffix) {
                // A file that remains is older than the state file, and therefore ignored.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Returns the modification time of a file; `None` if it is missing or cannot be examined.
pub(super) fn modified_at(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// Returns the text of a file; `None` if it is missing, unreadable, larger than [`MAX_OCTETS`] or
/// not valid UTF-8, or if no server wrote it.
fn read_text(path: &Path, suffix: &str) -> Option<String> {
    if !is_written_by_server(path, suffix) {
        return None;
    }
    let file = File::open(path).ok()?;
    if file.metadata().ok()?.len() > MAX_OCTETS {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_OCTETS).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns the value of the next line. Returns `None` unless the line begins with `key` and a
/// space.
fn next_value<'t>(lines: &mut Lines<'t>, key: &str) -> Option<&'t str> {
    lines.next()?.strip_prefix(key)?.strip_prefix(' ')
}

/// Parses the value of the next line, as [`next_value`] returns it.
fn parse_next_value<N: FromStr>(lines: &mut Lines<'_>, key: &str) -> Option<N> {
    next_value(lines, key)?.parse().ok()
}

/// Parses a fingerprint: seconds and nanoseconds of the modification time, size, inode and device,
/// in decimal and separated by spaces.
fn parse_fingerprint(text: &str) -> Option<Fingerprint> {
    let mut words = text.split(' ');
    let mut time = || words.next()?.parse().ok();
    let modified = (time()?, time()?);
    let mut number = || words.next()?.parse().ok();
    let (octets, inode, device) = (number()?, number()?, number()?);
    words.next().is_none().then_some(Fingerprint { modified, octets, inode, device })
}

/// Parses the file `origin`: the fingerprint of the stored version, then the fingerprints of the
/// files that it was read from. Returns `None` if it describes another stored version than `image`.
fn parse_origin(text: &str, image: Fingerprint) -> Option<Vec<Fingerprint>> {
    let mut lines = text.lines();
    let is_of_image = lines.next()? == "nonesuch origin 1" && parse_fingerprint(lines.next()?)? == image;
    if is_of_image { lines.map(parse_fingerprint).collect() } else { None }
}

/// Parses the file `made`. Returns `None` if it describes another stored version than `image`.
fn parse_inputs(text: &str, image: Fingerprint) -> Option<ImageInputs> {
    let mut lines = text.lines();
    if lines.next()? != "nonesuch made 1" || parse_fingerprint(next_value(&mut lines, "image")?)? != image {
        return None;
    }
    let digest = next_value(&mut lines, "by")?.to_owned();
    let has_signed_keys = match next_value(&mut lines, "keys")? {
        "signed" => true,
        "unsigned" => false,
        _ => return None,
    };
    let verified = next_value(&mut lines, "verified")?;
    let verification = match verified.split_once(' ').unwrap_or((verified, "")) {
        ("nothing", "") => Verification::Nothing,
        ("structural", at) => Verification::Structural { at: at.parse().ok()? },
        ("full", at) => Verification::Full { at: at.parse().ok()? },
        _ => return None,
    };
    lines.next().is_none().then_some(ImageInputs { digest, verification, has_signed_keys })
}

/// Parses the file `member`. A group is in hexadecimal: its text in format 1, its RDATA in format
/// 2.
fn parse_member(text: &str) -> Option<Membership> {
    let mut lines = text.lines();
    let has_texts = match lines.next()? {
        "nonesuch member 2" => false,
        "nonesuch member 1" => true,
        _ => return None,
    };
    let (zone, catalog) = (parse_next_value(&mut lines, "zone")?, parse_next_value(&mut lines, "catalog")?);
    let decode = |hex: &str| HEXLOWER.decode(hex.as_bytes()).ok();
    let label = decode(next_value(&mut lines, "label")?)?;
    let group = |octets: Vec<u8>| {
        if has_texts { Group::from_octets(&octets) } else { Some(Group::from_rdata(&octets)) }
    };
    let groups: Option<_> = lines.map(|line| group(decode(line.strip_prefix("group ")?)?)).collect();
    Some(Membership { zone, catalog, label, groups: groups? })
}

/// Parses the file `reused`.
fn parse_reused(text: &str) -> Option<u32> {
    let mut lines = text.lines();
    if lines.next()? == "nonesuch reused 1" { parse_next_value(&mut lines, "serial") } else { None }
}

/// Parses the file `timers`. The line `left` is missing in format 1. Its value is the number of
/// seconds until the zone expires, or `whole` if this is the expire time of the SOA record.
fn parse_timers(text: &str) -> Option<Timers> {
    let mut lines = text.lines();
    let has_line_left = match lines.next()? {
        "nonesuch timers 2" => true,
        "nonesuch timers 1" => false,
        _ => return None,
    };
    let (serial, refreshed) =
        (parse_next_value(&mut lines, "serial")?, parse_next_value(&mut lines, "refreshed")?);
    let left = match has_line_left.then(|| next_value(&mut lines, "left")) {
        None | Some(Some("whole")) => None,
        Some(seconds) => Some(seconds?.parse().ok()?),
    };
    lines.next().is_none().then_some(Timers { serial, refreshed, left })
}

/// Parses the file `rejected`: a digest of the settings, then the address of a primary and a serial
/// on each line.
fn parse_rejected(text: &str) -> Option<RejectedVersions> {
    let mut lines = text.lines();
    if lines.next()? != "nonesuch rejected 1" {
        return None;
    }
    let judged_by = next_value(&mut lines, "by")?.to_owned();
    let serials = lines.map(|line| {
        let (address, serial) = line.strip_prefix("primary ")?.split_once(" serial ")?;
        Some((address.parse().ok()?, serial.parse().ok()?))
    });
    Some(RejectedVersions { judged_by, serials: serials.collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::super::{STATE_SUFFIX, StateDirectory};
    use super::*;
    use nonesuch_proto::Name;
    use std::io::Write as _;

    /// Creates a state directory with the stored version of `example.` and its legacy state files.
    /// Returns it, its subdirectory for zones, and the fingerprint of the stored version as text.
    fn create_legacy_directory() -> (tempfile::TempDir, PathBuf, String) {
        let dir = tempfile::tempdir().unwrap();
        let zones = StateDirectory::zones_directory(dir.path());
        fs::create_dir_all(&zones).unwrap();
        fs::write(zones.join("example.kept"), b"\x89NSCI\r\n\x1aimage").unwrap();
        let Fingerprint { modified, octets, inode, device } =
            Fingerprint::of(&zones.join("example.kept")).unwrap();
        let image = format!("{} {} {octets} {inode} {device}", modified.0, modified.1);
        for (suffix, text) in [
            ("origin", format!("nonesuch origin 1\n{image}\n1 2 3 4 5\n-6 7 8 9 10\n")),
            ("made", format!("nonesuch made 1\nimage {image}\nby abcd\nkeys signed\nverified full 7\n")),
            ("member", "nonesuch member 2\nzone example.\ncatalog c.\nlabel 006c\ngroup 036f6e65\n".to_owned()),
            ("reused", "nonesuch reused 1\nserial 9\n".to_owned()),
            ("timers", "nonesuch timers 2\nserial 7\nrefreshed 1750000000\nleft 500\n".to_owned()),
            (
                "rejected",
                "nonesuch rejected 1\nby settings\nprimary 192.0.2.1:53 serial 8\nprimary [::1]:53 serial 9\n"
                    .to_owned(),
            ),
        ] {
            fs::write(zones.join(format!("example.{suffix}")), text).unwrap();
        }
        (dir, zones, image)
    }

    fn expected(zones: &Path) -> StateFile {
        let file = |modified, octets, inode, device| Fingerprint { modified, octets, inode, device };
        let inputs = ImageInputs {
            digest: "abcd".into(),
            verification: Verification::Full { at: 7 },
            has_signed_keys: true,
        };
        let address = |text: &str| text.parse().unwrap();
        StateFile {
            image: Some(ImageState {
                fingerprint: Fingerprint::of(&zones.join("example.kept")).unwrap(),
                origin: vec![file((1, 2), 3, 4, 5), file((-6, 7), 8, 9, 10)],
                inputs: Some(inputs),
            }),
            member: Some(Membership {
                zone: "example.".parse().unwrap(),
                catalog: "c.".parse().unwrap(),
                label: b"\0l".to_vec(),
                groups: vec![Group::from_rdata(b"\x03one")],
            }),
            reused_serial: Some(9),
            timers: Some(Timers { serial: 7, refreshed: 1_750_000_000, left: Some(500) }),
            rejected: Some(RejectedVersions {
                judged_by: "settings".into(),
                serials: vec![(address("192.0.2.1:53"), 8), (address("[::1]:53"), 9)],
            }),
        }
    }

    fn names(zones: &Path) -> Vec<String> {
        let entries = fs::read_dir(zones).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn legacy_files_are_replaced_by_the_state_file() {
        let (dir, zones, _) = create_legacy_directory();
        fs::write(zones.join("other.timers"), "nonesuch timers 1\nserial 7\nrefreshed 9\n").unwrap();
        // A foreign file, and an invalid one.
        fs::write(zones.join("mine.timers"), "precious").unwrap();
        fs::write(zones.join("broken.made"), "nonesuch made 1\nimage 1 2\n").unwrap();
        let apex: Name = "example.".parse().unwrap();
        for _ in 0..2 {
            let state = StateDirectory::open(dir.path()).unwrap();
            assert_eq!(state.read_state(&apex), expected(&zones));
            let other = state.read_state(&"other.".parse().unwrap());
            assert_eq!(other.timers, Some(Timers { serial: 7, refreshed: 9, left: None }));
            assert_eq!(names(&zones), ["example.kept", "example.state", "mine.timers", "other.state"]);
        }
        assert_eq!(fs::read(zones.join("mine.timers")).unwrap(), b"precious");
    }

    /// The operator ran an older build after the state file was written.
    #[test]
    fn legacy_files_newer_than_the_state_file_replace_its_parts() {
        let (dir, zones, _) = create_legacy_directory();
        drop(StateDirectory::open(dir.path()).unwrap());
        let text = "nonesuch timers 2\nserial 8\nrefreshed 9\nleft whole\n";
        fs::write(zones.join("example.timers"), text).unwrap();
        let state = StateDirectory::open(dir.path()).unwrap();
        let timers = Some(Timers { serial: 8, refreshed: 9, left: None });
        assert_eq!(state.read_state(&"example.".parse().unwrap()), StateFile { timers, ..expected(&zones) });
    }

    /// A file that could not be removed must not undo later changes of the state.
    #[test]
    fn a_file_older_than_the_state_file_is_ignored() {
        let (dir, zones, _) = create_legacy_directory();
        let (apex, path): (Name, _) = ("example.".parse().unwrap(), zones.join("example.timers"));
        let text = fs::read(&path).unwrap();
        let state = StateDirectory::open(dir.path()).unwrap();
        state.update(&apex, |stored| stored.timers = None).unwrap();
        drop(state);
        fs::write(&path, text).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let state = StateDirectory::open(dir.path()).unwrap();
        assert_eq!(state.read_state(&apex), StateFile { timers: None, ..expected(&zones) });
        assert_eq!(names(&zones), ["example.kept", "example.state"]);
    }

    /// A foreign file prevents writing the state file.
    #[test]
    fn legacy_files_that_cannot_be_replaced_are_still_read() {
        let (dir, zones, _) = create_legacy_directory();
        let apex: Name = "example.".parse().unwrap();
        fs::write(zones.join(format!("example.{STATE_SUFFIX}")), "precious").unwrap();
        let state = StateDirectory::open(dir.path()).unwrap();
        assert_eq!(state.read_state(&apex), expected(&zones));
        assert!(state.update(&apex, |stored| stored.timers = None).is_err());
        assert_eq!(state.read_state(&apex), expected(&zones));
        fs::remove_file(zones.join(format!("example.{STATE_SUFFIX}"))).unwrap();
        state.update(&apex, |stored| stored.timers = None).unwrap();
        assert_eq!(state.read_state(&apex), StateFile { timers: None, ..expected(&zones) });
        assert_eq!(names(&zones), ["example.kept", "example.state"]);
    }

    #[test]
    fn invalid_legacy_files_are_ignored() {
        let (_dir, zones, image) = create_legacy_directory();
        let image = parse_fingerprint(&image).unwrap();
        let read = |suffix: &str| fs::read_to_string(zones.join(format!("example.{suffix}"))).unwrap();
        let is_read = |suffix: &str, text: &str| match suffix {
            "origin" => parse_origin(text, image).is_some(),
            "made" => parse_inputs(text, image).is_some(),
            "member" => parse_member(text).is_some(),
            "reused" => parse_reused(text).is_some(),
            "timers" => parse_timers(text).is_some(),
            _ => parse_rejected(text).is_some(),
        };
        for suffix in SUFFIXES {
            let text = read(suffix);
            assert!(is_read(suffix, &text));
            assert!(!is_read(suffix, &format!("{text}more\n")) || suffix == "reused", "{suffix}");
            assert!(
                !is_read(suffix, &text.replacen(" 1\n", " 3\n", 1).replacen(" 2\n", " 3\n", 1)),
                "{suffix}"
            );
            // No truncated input causes a panic.
            (0..text.len()).for_each(|end| _ = is_read(suffix, &text[..end]));
        }
        for (suffix, from, to) in [
            ("timers", "left 500", "left all"),
            ("timers", "serial 7", "serial 4294967296"),
            ("made", "full 7", "full"),
            ("made", "keys signed", "keys"),
            ("member", "label 006c", "label x006c"),
            ("rejected", "serial 8", "serial"),
        ] {
            let text = read(suffix);
            assert!(text.contains(from) && !is_read(suffix, &text.replace(from, to)), "{to}");
        }
        let other = Fingerprint { octets: image.octets + 1, ..image };
        assert!(
            parse_origin(&read("origin"), other).is_none() && parse_inputs(&read("made"), other).is_none()
        );
        let text = "nonesuch member 1\nzone member.\ncatalog a.\nlabel 6c\ngroup 6f6e65\n";
        assert_eq!(parse_member(text).unwrap().groups, [Group::from_octets(b"one").unwrap()]);
        let mut file = File::create(zones.join("example.member")).unwrap();
        file.write_all(&[0xff; 100]).unwrap();
        assert_eq!(read_text(&zones.join("example.member"), "member"), None);
    }

    #[test]
    fn a_file_above_the_maximum_size_is_rejected() {
        let (_dir, zones, _) = create_legacy_directory();
        let path = zones.join("example.reused");
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(MAX_OCTETS).unwrap();
        assert_eq!(parse_reused(&read_text(&path, "reused").unwrap()), Some(9));
        file.set_len(MAX_OCTETS + 1).unwrap();
        assert_eq!(read_text(&path, "reused"), None);
    }
}
