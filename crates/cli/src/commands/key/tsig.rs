//! `nonesuch key tsig`: generates a TSIG key (RFC 8945) and writes it in the configuration formats
//! of several servers.

use super::error::Failure;
use crate::arguments::{KeyTsigArguments, TsigKeyFormat, TsigOutput};
use crate::files::{FileError, KEY_MODE, check_new_output, write_failure, write_new_file};
use crate::outcome::CommandOutcome;
use nonesuch_proto::Name;
use nonesuch_server::tsig::TsigAlgorithm;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use zeroize::Zeroizing;

/// A generated key. The secret is in Base64; its owner wipes it from memory.
struct NewTsigKey<'a> {
    name: String,
    algorithm: TsigAlgorithm,
    secret: &'a str,
}

pub(super) fn run(arguments: &KeyTsigArguments) -> Result<CommandOutcome, Failure> {
    let name = portable_name(&arguments.name)?;
    check_outputs(&arguments.outputs)?;
    let secret = generate_secret(arguments.algorithm)?;
    let key = NewTsigKey { name, algorithm: arguments.algorithm, secret: &secret };
    let mut written: Vec<&Path> = Vec::new();
    for output in &arguments.outputs {
        let text = render(output.format, &key);
        let outcome = match &output.file {
            Some(file) => {
                let write =
                    |out: &mut dyn io::Write| out.write_all(text.as_bytes()).map_err(write_failure(file));
                write_new_file(file, KEY_MODE, write).map(|()| written.push(file))
            }
            None => print(&text),
        };
        if let Err(failure) = outcome {
            // Some of the files alone are useless, and would block the next attempt.
            written.iter().for_each(|file| drop(fs::remove_file(file)));
            return Err(failure.into());
        }
    }
    Ok(CommandOutcome::Done)
}

/// Returns the name in lower case. Accepts only letters, digits, `-`, `_` and `.`, because the
/// servers quote other characters differently.
fn portable_name(name: &Name) -> Result<String, Failure> {
    let text = name.view().to_canonical().to_string();
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'.');
    if name.view().is_root() || !text.bytes().all(is_plain) {
        return Err(Failure::TsigName { name: name.clone() });
    }
    Ok(text)
}

/// Checks, before a key is generated, that no output file exists and that no file is given twice.
fn check_outputs(outputs: &[TsigOutput]) -> Result<(), FileError> {
    for (index, file) in
        outputs.iter().enumerate().filter_map(|(index, output)| Some((index, output.file.as_ref()?)))
    {
        check_new_output(file)?;
        if outputs[..index].iter().any(|earlier| earlier.file.as_ref() == Some(file)) {
            return Err(FileError::SameOutput { path: file.clone() });
        }
    }
    Ok(())
}

/// A random secret with the length of the hash (RFC 8945 §8), in Base64.
fn generate_secret(algorithm: TsigAlgorithm) -> Result<Zeroizing<String>, Failure> {
    let mut octets = Zeroizing::new(vec![0; algorithm.mac_length()]);
    getrandom::fill(&mut octets).map_err(Failure::Random)?;
    Ok(Zeroizing::new(data_encoding::BASE64.encode(&octets)))
}

/// Prints text to standard output, without adding a line end.
fn print(text: &str) -> Result<(), FileError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(FileError::output)
}

/// The key in the configuration format of one of the servers.
fn render(format: TsigKeyFormat, key: &NewTsigKey<'_>) -> Zeroizing<String> {
    let NewTsigKey { name, algorithm, secret } = key;
    let bare = name.trim_end_matches('.');
    // The capacity is sufficient for the complete text, because a reallocation would leave a copy
    // that is not wiped.
    let mut text = Zeroizing::new(String::with_capacity(4 * (name.len() + secret.len() + 64)));
    // Writing to a string does not fail.
    let _ = match format {
        TsigKeyFormat::Nonesuch => {
            write!(text, "[key.\"{name}\"]\nalgorithm = \"{algorithm}\"\nsecret = \"{secret}\"\n")
        }
        TsigKeyFormat::Bind => {
            write!(text, "key \"{name}\" {{\n\talgorithm {algorithm};\n\tsecret \"{secret}\";\n}};\n")
        }
        TsigKeyFormat::Knot => {
            write!(text, "key:\n  - id: {bare}\n    algorithm: {algorithm}\n    secret: {secret}\n")
        }
        TsigKeyFormat::Nsd => {
            write!(text, "key:\n    name: \"{bare}\"\n    algorithm: {algorithm}\n    secret: \"{secret}\"\n")
        }
        TsigKeyFormat::Dig => writeln!(text, "{algorithm}:{name}:{secret}"),
    };
    text
}
