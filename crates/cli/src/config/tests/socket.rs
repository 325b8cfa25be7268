//! Tests of the control socket in a configuration.

use super::*;
use std::fs;

#[test]
fn the_socket_is_found_in_faulty_configurations() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    let found = |text: &str| {
        fs::write(&file, text).unwrap();
        find_control_socket(&file).unwrap()
    };
    let control = Some(directory.path().join("control"));
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
    let missing = find_control_socket(&directory.path().join("none")).unwrap_err().to_string();
    assert!(missing.contains("/none: ") && missing.contains("--socket"), "{missing}");
    crate::snapshot::check("ctl", "missing configuration without --socket", &missing);
}
