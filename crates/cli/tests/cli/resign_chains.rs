//! Incremental signing of NSEC5 chains with their stored proofs, and of zone digests.

use crate::common;
use common::resign::{self, DAY, NOW, lines, sign, without_signatures};
use common::{Ended, KEYS_ORIGIN, generate_key, made, nonesuch, run, snapshot};
use serde_json::Value;
use std::fs;
use std::path::Path;

const NSEC5: [&str; 2] = ["nsec5", "nsec5-opt-out"];
const EVERY: [&str; 5] = ["nsec", "nsec3", "nsec3-opt-out", "nsec5", "nsec5-opt-out"];

/// The directory, with a key for NSEC5 and other keys in `keys`.
fn prepared() -> tempfile::TempDir {
    let folder = resign::prepared();
    generate_key(&made(folder.path(), "keys"), KEYS_ORIGIN, "ecdsap256sha256", &["--nsec5", "--csk"]);
    folder
}

/// Verifies with the proofs in the directory next to the zone. There must be no warning, except the
/// one about the algorithm number of the key.
#[track_caller]
fn verify(dir: &Path, days: u32, file: &str) -> Value {
    let now = (NOW + days * DAY).to_string();
    let mut command = nonesuch(["zone", "verify", file, "-o", KEYS_ORIGIN, "--now", &now, "--json"]);
    let Ended { status, stdout, stderr } = run(command.current_dir(dir));
    assert_eq!(status, 0, "{stdout}{stderr}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    // The key has an alias algorithm number for NSEC5, and some of the zones are signed with NSEC or
    // NSEC3.
    let denial = report["denial"].as_str().expect("a mechanism");
    let warnings = report["warnings"].as_array().expect("warnings");
    assert_eq!(warnings.len(), usize::from(!NSEC5.contains(&denial)), "{report}");
    for warning in warnings {
        let warning = warning.as_str().expect("a text");
        snapshot::check("zone verify", &format!("alias algorithm with {denial}"), warning);
    }
    report
}

/// Number of signatures of `new` that are also in `old`, octet by octet.
fn kept(dir: &Path, old: &str, new: &str) -> u64 {
    let old = lines(dir, old);
    let is_kept = |line: &&String| line.contains("\tRRSIG\t") && old.contains(line);
    lines(dir, new).iter().filter(is_kept).count() as u64
}

#[test]
fn nsec5_both_ways_keeps_signatures_and_proofs() {
    for mechanism in NSEC5 {
        let folder = prepared();
        let dir = folder.path();
        let first = sign(dir, 0, mechanism, &["-f", "old", "zone"]);
        verify(dir, 0, "old");
        let names = first["nsec5"]["proofs_made"].as_u64().expect("a number");
        let key = &first["nsec5"]["key_tag"];

        let second = sign(dir, 1, mechanism, &["--previous", "old", "-f", "new", "zone.new"]);
        // `sub` was removed and `new` was added; all other names have their stored proofs.
        let proofs = &second["nsec5"];
        assert_eq!(
            (proofs["proofs_made"].as_u64(), proofs["proofs_kept"].as_u64()),
            (Some(1), Some(names - 1))
        );
        assert_eq!((&proofs["key_tag"], &second["serial"]), (key, &2.into()));
        assert!(second["signatures"].as_u64() < first["signatures"].as_u64(), "{second}");
        assert_eq!(second["signatures_kept"].as_u64(), Some(kept(dir, "old", "new")));
        assert!(second["signatures_kept"].as_u64() > Some(2), "{second}");
        assert_eq!(verify(dir, 1, "new")["denial"], mechanism);
        sign(dir, 1, mechanism, &["--serial", "increment", "-f", "whole", "zone.new"]);
        assert_eq!(without_signatures(dir, "new"), without_signatures(dir, "whole"));

        // By changes, with the proofs of the new zone: they do not include `sub`, and its proof is
        // not needed.
        let third = sign(dir, 1, mechanism, &["--previous", "old", "--changes", "changes", "-f", "mended"]);
        let proofs = &third["nsec5"];
        assert_eq!((proofs["proofs_made"].as_u64(), proofs["proofs_kept"].as_u64()), (Some(0), Some(names)));
        assert_eq!(without_signatures(dir, "mended"), without_signatures(dir, "new"));
        assert_eq!(third["signatures_kept"].as_u64(), Some(kept(dir, "old", "mended")));
        assert_eq!(third["signatures_kept"], second["signatures_kept"]);
        verify(dir, 1, "mended");
    }
}

#[test]
fn nsec5_zones_that_have_not_changed_stay() {
    for mechanism in NSEC5 {
        let folder = prepared();
        let dir = folder.path();
        sign(dir, 0, mechanism, &["-f", "signed", "zone"]);
        let before = fs::read(dir.join("signed")).expect("a file");
        let again = sign(dir, 1, mechanism, &["--previous", "signed", "-f", "signed", "zone"]);
        assert_eq!((&again["unchanged"], &again["serial"]), (&true.into(), &1.into()), "{again}");
        assert_eq!(fs::read(dir.join("signed")).expect("a file"), before);
        fs::write(dir.join("none"), "").expect("written");
        let again = sign(dir, 1, mechanism, &["--previous", "signed", "--changes", "none", "-f", "copy"]);
        assert_eq!(again["unchanged"], true, "{again}");
        assert_eq!(fs::read(dir.join("copy")).expect("a file"), before);
        verify(dir, 1, "signed");
        // Near the end of their validity, all signatures of the existing chain are replaced.
        let again = sign(dir, 11, mechanism, &["--previous", "signed", "-f", "later", "zone"]);
        assert_eq!((&again["unchanged"], &again["signatures_kept"]), (&false.into(), &0.into()));
        assert_eq!(again["nsec5"]["proofs_made"], 0);
        verify(dir, 11, "later");
    }
}

/// A new VRF key requires a new chain. Nothing of the old chain is reused; all other signatures
/// are.
#[test]
fn another_vrf_key_replaces_the_chain() {
    let folder = prepared();
    let dir = folder.path();
    let first = sign(dir, 0, "nsec5", &["-f", "old", "zone"]);
    let again = ["--previous", "old", "--nsec5-keys", "nsec5.new", "--vrf", "ed25519", "-f", "new", "zone"];
    let second = sign(dir, 1, "nsec5", &again);
    assert_eq!(second["unchanged"], false);
    assert_ne!(second["nsec5"]["key_tag"], first["nsec5"]["key_tag"]);
    assert_eq!(second["nsec5"]["proofs_made"], first["nsec5"]["proofs_made"]);
    let chain = second["nsec5"]["proofs_made"].as_u64().expect("a number");
    // SOA, NSEC5KEY and the chain are signed again.
    assert_eq!(second["signatures"].as_u64(), Some(chain + 2), "{second}");
    fs::rename(dir.join("nsec5"), dir.join("nsec5.old")).expect("renamed");
    fs::rename(dir.join("nsec5.new"), dir.join("nsec5")).expect("renamed");
    verify(dir, 1, "new");
}

/// The digests match the zone with its reused and new records, in both ways of signing.
#[test]
fn digests_are_made_anew_both_ways() {
    for mechanism in EVERY {
        for (choice, count) in [("sha384", 1), ("sha384,sha512", 2)] {
            let folder = prepared();
            let dir = folder.path();
            let zonemd = ["--zonemd", choice];
            let sign = |days, more: &[&str]| sign(dir, days, mechanism, &[&zonemd[..], more].concat());
            let digests = |days, file: &str| verify(dir, days, file)["zonemd"].as_array().map(Vec::len);
            sign(0, &["-f", "old", "zone"]);
            assert_eq!(digests(0, "old"), Some(count));
            let second = sign(1, &["--previous", "old", "-f", "new", "zone.new"]);
            assert_eq!(digests(1, "new"), Some(count));
            assert!(second["signatures_kept"].as_u64() > Some(2), "{second}");
            assert_eq!(second["signatures_kept"].as_u64(), Some(kept(dir, "old", "new")));
            sign(1, &["--previous", "old", "--changes", "changes", "-f", "mended"]);
            assert_eq!(digests(1, "mended"), Some(count));
            assert_eq!(without_signatures(dir, "mended"), without_signatures(dir, "new"));
            // The previous zone has digests, so that digests are generated even without the option.
            let by_changes = ["--previous", "old", "--changes", "changes", "-f", "unasked"];
            self::sign(dir, 1, mechanism, &by_changes);
            assert_eq!(digests(1, "unasked"), Some(count));
            let unchanged = sign(2, &["--previous", "old", "-f", "old", "zone"]);
            assert_eq!(unchanged["unchanged"], true, "{mechanism} {choice} {unchanged}");
        }
    }
}
