//! The file that keeps, over restarts, when a primary last had the version of a zone that is here.

use crate::service::PART;
use std::io::{self, Write as _};
use std::path::Path;

/// The first line.
const HEAD: &str = "nonesuch timers 2";
/// That of files without what was left.
const HEAD_1: &str = "nonesuch timers 1";
/// What is left where the SOA record says it.
const WHOLE: &str = "whole";

/// What the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// Serial of the version.
    pub serial: u32,
    /// When it was last found to be the newest, in seconds since 1970.
    pub refreshed: u64,
    /// Seconds that were left to the zone then, where they were less than its SOA record says.
    pub left: Option<u32>,
}

impl Timers {
    /// Reads the file; `None` where there is none, or none that makes sense: the zone is refreshed at once then.
    #[must_use]
    pub fn read(path: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(path).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let head = lines.next()?;
        if !matches!(head, HEAD | HEAD_1) {
            return None;
        }
        let serial = lines.next()?.strip_prefix("serial ")?.parse().ok()?;
        let refreshed = lines.next()?.strip_prefix("refreshed ")?.parse().ok()?;
        let left = match lines.next() {
            None if head == HEAD_1 => None,
            line => match line?.strip_prefix("left ")? {
                WHOLE => None,
                seconds => Some(seconds.parse().ok()?),
            },
        };
        lines.next().is_none().then_some(Self { serial, refreshed, left })
    }

    /// Writes the file as a whole: beside it, then in its place, so that it is the old one or the new one at every moment.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(self, path: &Path) -> io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // What a kill leaves of it is removed at the next start.
        let mut file =
            tempfile::Builder::new().prefix(PART).tempfile_in(folder.unwrap_or_else(|| Path::new(".")))?;
        let left = self.left.map_or_else(|| WHOLE.to_owned(), |seconds| seconds.to_string());
        write!(file, "{HEAD}\nserial {}\nrefreshed {}\nleft {left}\n", self.serial, self.refreshed)?;
        file.as_file().sync_data()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("example.timers");
        assert_eq!(Timers::read(&path), None);
        for timers in [
            Timers { serial: 7, refreshed: 1_750_000_000, left: None },
            Timers { serial: 7, refreshed: 1_750_000_000, left: Some(0) },
            Timers { serial: u32::MAX, refreshed: 0, left: Some(u32::MAX) },
        ] {
            timers.write(&path).unwrap();
            assert_eq!(Timers::read(&path), Some(timers));
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_makes_no_sense_is_passed_over() {
        let whole = "nonesuch timers 2\nserial 7\nrefreshed 9\nleft 5\n";
        assert!(Timers::parse(whole).is_some());
        // Those of before are read on.
        let old = Timers::parse("nonesuch timers 1\nserial 7\nrefreshed 9\n");
        assert_eq!(old, Some(Timers { serial: 7, refreshed: 9, left: None }));
        for end in 0..whole.len() - 2 {
            assert_eq!(Timers::parse(&whole[..end]), None, "{end}");
        }
        for text in [
            "nonesuch timers 3\nserial 7\nrefreshed 9\nleft 5\n",
            "nonesuch timers 2\nserial 4294967296\nrefreshed 9\nleft 5\n",
            "nonesuch timers 2\nserial 7\nrefreshed 9\nleft all\n",
        ] {
            assert_eq!(Timers::parse(text), None, "{text}");
        }
        assert_eq!(Timers::parse(&format!("{whole}more\n")), None);
    }
}
