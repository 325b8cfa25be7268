//! Passes the versions of the compiler and of the libraries to the crate, because measured figures
//! depend on both.

use std::env;
use std::fs;
use std::process::Command;

/// Libraries that implement signatures.
const LIBRARIES: &[&str] =
    &["aws-lc-sys", "crrl", "curve25519-dalek", "fips205", "fn-dsa-sign", "libcrux-ml-dsa"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    tell_libraries();
    println!("cargo::rerun-if-env-changed=RUSTC");
    let Some(compiler) = env::var_os("RUSTC") else { return };
    let Ok(output) = Command::new(compiler).arg("--version").output() else { return };
    if let Some(version) = std::str::from_utf8(&output.stdout).ok().filter(|text| !text.is_empty()) {
        println!("cargo::rustc-env=NONESUCH_RUSTC={}", version.trim());
    }
}

/// Passes the versions in the workspace's lock file; none if the file does not exist.
fn tell_libraries() {
    let Ok(crate_dir) = env::var("CARGO_MANIFEST_DIR") else { return };
    let path = format!("{crate_dir}/../../Cargo.lock");
    println!("cargo::rerun-if-changed={path}");
    let Ok(text) = fs::read_to_string(&path) else { return };
    let value = |line: Option<&str>, key: &str| -> Option<String> {
        line?.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"').map(str::to_owned)
    };
    let mut found = Vec::new();
    for package in text.split("[[package]]\n").skip(1) {
        let mut lines = package.lines();
        let (Some(name), Some(version)) = (value(lines.next(), "name"), value(lines.next(), "version"))
        else {
            continue;
        };
        if LIBRARIES.contains(&name.as_str()) {
            found.push(format!("{name}={version}"));
        }
    }
    println!("cargo::rustc-env=NONESUCH_LIBRARIES={}", found.join(" "));
}
