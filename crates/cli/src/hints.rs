//! Hints files: the servers of the root zone, in zone file format.

use crate::files::FileError;
use nonesuch_proto::Name;
use nonesuch_resolver::hints::{Hints, HintsError};
use nonesuch_zone::open_regular;
use nonesuch_zone::read::{ReadError, read_records};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Maximum size of a hints file, in octets. Hints have at most 64 servers with 16 addresses; the file
/// of IANA has 3 KiB.
const MAX_OCTETS: u64 = 256 << 10;

/// Why a hints file is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum HintsFileError {
    #[error("{0}")]
    File(#[from] FileError),
    #[error("{}: it has more than {MAX_OCTETS} bytes: name a file with the servers of the root zone only", path.display())]
    TooLarge { path: PathBuf },
    #[error("{0}")]
    Text(#[from] ReadError),
    #[error("{}: {source}", path.display())]
    Hints { path: PathBuf, source: HintsError },
}

/// Reads a hints file, such as `named.root` of IANA: NS records of the root, and A and AAAA records
/// of its servers.
pub(crate) fn read_hints(path: &Path) -> Result<Hints, HintsFileError> {
    let text = read(path).map_err(|source| FileError::Read { path: path.to_path_buf(), source })?;
    if text.len() as u64 > MAX_OCTETS {
        return Err(HintsFileError::TooLarge { path: path.to_path_buf() });
    }
    let records = read_records(&text, path, &Name::root())?;
    Hints::from_records(&records).map_err(|source| HintsFileError::Hints { path: path.to_path_buf(), source })
}

/// Reads a file up to one octet above the maximum.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    open_regular(path)?.take(MAX_OCTETS + 1).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Returns the outcome of reading a file with `text`, and the message of the error after the path.
    fn outcome(text: &[u8]) -> Result<Hints, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hints");
        fs::write(&path, text).unwrap();
        read_hints(&path).map_err(|error| {
            let message = error.to_string();
            message.strip_prefix(path.to_str().unwrap()).expect("the path is first").to_owned()
        })
    }

    #[test]
    fn a_file_of_iana_is_read() {
        let mut text = String::from("; This file has the form of named.root.\n;\n");
        for (server, addresses) in Hints::default().servers() {
            let server = server.to_string().to_uppercase();
            text += &format!(".                        3600000      NS    {server}\n");
            for address in addresses {
                let rtype = if address.is_ipv4() { "A" } else { "AAAA" };
                text += &format!("{server}      3600000      {rtype}     {address}\n;\n");
            }
        }
        assert_eq!(outcome(text.as_bytes()), Ok(Hints::default()));
    }

    #[test]
    fn class_and_ttl_are_optional_and_names_may_be_relative() {
        let text = b"$ORIGIN servers.\n. IN NS a\na A 192.0.2.1\n  IN AAAA ( 2001:db8::1 )\n";
        let hints = outcome(text).unwrap();
        assert_eq!(hints.servers()[0].0.to_string(), "a.servers.");
        assert_eq!(hints.addresses().count(), 2);
    }

    #[test]
    fn faults_of_the_text_have_line_and_column() {
        for (text, place) in [
            (". NS a.\na. A 192.0.2\n", ":2:6: "),
            (". NS a.\na. A 192.0.2.1 x\n", ":2:16: "),
            (". NS a.\n\na. WHAT 192.0.2.1\n", ":3:4: "),
            (". CH NS a.\n", ":1:3: "),
            ("\0\u{1}\n", ":1:"),
        ] {
            let message = outcome(text.as_bytes()).unwrap_err();
            assert!(message.starts_with(place), "{text:?}: {message}");
        }
    }

    #[test]
    fn records_that_are_not_hints_are_errors() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hints");
        for (text, expected) in [
            ("", HintsError::NoServer),
            ("; nothing\n", HintsError::NoServer),
            (". NS a.\n", HintsError::NoAddress { server: "a.".parse().unwrap() }),
            (
                ". NS a.\na. A 192.0.2.1\nb. A 192.0.2.2\n",
                HintsError::NotAServer { owner: "b.".parse().unwrap() },
            ),
        ] {
            fs::write(&path, text).unwrap();
            match read_hints(&path) {
                Err(HintsFileError::Hints { source, .. }) => assert_eq!(source, expected),
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn large_missing_and_special_files_are_errors() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hints");
        assert!(matches!(read_hints(&path), Err(HintsFileError::File(FileError::Read { .. }))));
        assert!(matches!(read_hints(directory.path()), Err(HintsFileError::File(FileError::Read { .. }))));
        fs::write(&path, vec![b';'; MAX_OCTETS as usize + 1]).unwrap();
        assert!(matches!(read_hints(&path), Err(HintsFileError::TooLarge { .. })));
        fs::write(&path, vec![b';'; MAX_OCTETS as usize]).unwrap();
        assert!(matches!(read_hints(&path), Err(HintsFileError::Hints { .. })));
    }
}
