//! The control socket that a configuration names: all else in it may be faulty, and its secrets closed to whoever asks. And
//! how long the path of a socket may be.

use super::findings::Problem;
use super::values::{path, text};
use super::{MOST_OCTETS, Problems, read_text};
use std::io;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// Octets that the path of a socket may have (unix(7)): `sun_path` has one more, for the octet of zero behind it.
const LONGEST_PATH: usize = 107;

/// Why no process could connect to a socket at `path`: it is too long.
pub(super) fn complain_of_length(path: &Path) -> Option<String> {
    let octets = path.as_os_str().len();
    (octets > LONGEST_PATH).then(|| {
        format!(
            "{}: takes {octets} octets, and the path of a socket has {LONGEST_PATH} at most: name a shorter one, as \
             /run/nonesuch/control",
            path.display()
        )
    })
}

/// The socket that the configuration at `from` names; `None` where it names none.
pub(crate) fn find_control_socket(from: &Path) -> Result<Option<PathBuf>, Problems> {
    let found = read_text(from, MOST_OCTETS).map_err(|error| {
        let remedy = if error.kind() == io::ErrorKind::NotFound {
            "name the file with --config"
        } else {
            "make it readable"
        };
        let message =
            format!("cannot be read: {error}: {remedy}, or name the server's control socket with --socket");
        Problems(vec![Problem { message, ..Problem::of_file(from) }])
    })?;
    let (table, _) = DeTable::parse_recoverable(&found);
    let Some(value) = table.get_ref().get("control-socket") else { return Ok(None) };
    let folder = from.parent().unwrap_or_else(|| Path::new(""));
    // What is no path names no socket.
    Ok(text(value.get_ref()).and_then(|_| path(folder)(value.get_ref())).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_socket_is_found_in_faulty_configurations() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        let found = |text: &str| {
            fs::write(&file, text).unwrap();
            find_control_socket(&file).unwrap()
        };
        let control = Some(folder.path().join("control"));
        for text in [
            "control-socket = \"control\"",
            "version = 7\nunknown = 1\ncontrol-socket = \"control\"\n[key.k]\nsecret-file = \"nowhere\"\n",
            "control-socket = \"control\"\nlisten = [\n[zone.\"a\"]\nfile = 7",
        ] {
            assert_eq!(found(text), control, "{text}");
        }
        assert_eq!(found("control-socket = \"/run/c\""), Some(PathBuf::from("/run/c")));
        for text in ["", "version = 1", "control-socket = 7", "control-socket = \"\"", "\u{0}"] {
            assert_eq!(found(text), None, "{text}");
        }
        let missing = find_control_socket(&folder.path().join("none")).unwrap_err().to_string();
        assert!(missing.contains("none: cannot be read") && missing.contains("--socket"), "{missing}");
    }
}
