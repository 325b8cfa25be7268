//! `nonesuch zone compile`, and compiled zones as input of other commands.

use crate::common;
use common::*;
use std::fs;
use std::path::{Path, PathBuf};

/// A signed zone and its directory.
fn signed(mechanism: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = prepared();
    let keys = folder.path().join("keys");
    generate_keys(&keys, KEYS_ORIGIN, "ed25519");
    let signed = folder.path().join("signed");
    sign(&folder.path().join("zone"), KEYS_ORIGIN, &keys, mechanism, &signed);
    (folder, signed)
}

fn compile(file: &Path, image: &Path, more: &[&str]) -> Ended {
    let mut arguments = vec!["zone", "compile", text(file), "-o", KEYS_ORIGIN, "-f", text(image)];
    arguments.extend(more);
    run(&mut nonesuch(arguments))
}

#[test]
fn a_compiled_zone_is_taken_wherever_a_zone_file_is() {
    for mechanism in MECHANISMS {
        let (folder, signed) = signed(mechanism);
        let image = folder.path().join("image");
        let ended = compile(&signed, &image, &[]).expect_done("compile");
        assert!(ended.stdout.contains("verified: full"), "{}", ended.stdout);
        done(["zone", "verify", text(&image), "-o", KEYS_ORIGIN]);
        done(["zone", "diff", text(&signed), text(&image), "--all"]);
        let stat = |file: &Path| done(["zone", "stat", text(file), "--now", "20260101000000"]).stdout;
        assert_eq!(stat(&signed), stat(&image));
        let server = serve(&image, &[]);
        let header = ask(server.address, "ns.keys.example.", 1, std::time::Duration::from_secs(5));
        assert!(header.is_some_and(|header| header.rcode == 0 && header.answers == 2), "{header:?}");
        // Compiling it again produces the same file, except for the time of the verification.
        let again = folder.path().join("again");
        for (from, to) in [(&signed, &image), (&image, &again)] {
            compile(from, to, &["--now", "20991231000000", "--verify", "none"]).expect_done("compile");
        }
        assert_eq!(fs::read(&image).unwrap(), fs::read(&again).unwrap());
    }
}

#[test]
fn an_image_is_signed_as_its_zone_file_is() {
    let folder = prepared();
    let keys = folder.path().join("keys");
    generate_keys(&keys, KEYS_ORIGIN, "ed25519");
    let (zone, image) = (folder.path().join("zone"), folder.path().join("zone.image"));
    let said = done(["zone", "compile", text(&zone), "-o", KEYS_ORIGIN]).stdout;
    assert!(said.starts_with(text(&image)) && said.contains("verified: nothing"), "{said}");
    let outcome = |file: &Path| {
        let arguments =
            ["zone", "sign", text(file), "--now", "20260101000000", "--keys", text(&keys), "-f", "-"];
        let more: &[&str] = if file == zone { &["-o", KEYS_ORIGIN] } else { &[] };
        done([&arguments[..], more].concat()).stdout
    };
    assert_eq!(outcome(&zone), outcome(&image));
}

#[test]
fn a_zone_with_faults_is_not_compiled() {
    let (folder, signed) = signed("nsec");
    let image = folder.path().join("image");
    // A forged address that the signature does not cover.
    let forged = fs::read_to_string(&signed).unwrap().replace("192.0.2.1", "192.0.2.99");
    fs::write(&signed, forged).unwrap();
    let refused = compile(&signed, &image, &[]);
    assert_eq!(refused.status, 1, "{}", refused.text());
    assert!(refused.stdout.contains("fault: ns.keys.example. A") && refused.stdout.contains(": 1 fault;"));
    assert!(!image.exists());
    let refused = compile(&signed, &image, &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!((json["compiled"].as_bool(), json["faults"].as_array().map(Vec::len)), (Some(false), Some(1)));
    // The structure is valid but the signature is not. `verify` finds this in spite of the
    // statement in the image.
    let said = compile(&signed, &image, &["--verify", "structural"]).expect_done("compile").stdout;
    assert!(said.contains("verified: structural"), "{said}");
    assert_eq!(run(&mut nonesuch(["zone", "verify", text(&image)])).status, 1);
    let unverified = run(&mut nonesuch(["serve", "--listen", "127.0.0.1:0", text(&image)]));
    assert_eq!(unverified.status, 1, "{}", unverified.text());
    let expired = compile(&signed, &image, &["--verify", "structural", "--now", "20991231000000"]);
    assert_eq!(expired.status, 1);
}

#[test]
fn a_mapped_image_answers_as_its_zone_file_does() {
    for mechanism in MECHANISMS {
        let (folder, signed) = signed(mechanism);
        let image = folder.path().join("image");
        compile(&signed, &image, &[]).expect_done("compile");
        // The contents are damaged, so success shows that they are not read.
        let mut octets = fs::read(&image).unwrap();
        let end = octets.len();
        octets[end - 40..].fill(0x55);
        fs::write(&image, octets).unwrap();
        let (from_file, mapped) = (serve(&signed, &[]), serve(&image, &[]));
        for name in ["keys.example.", "ns.keys.example.", "nothing.keys.example."] {
            let [expected, found] = [from_file.address, mapped.address]
                .map(|address| ask(address, name, 1, std::time::Duration::from_secs(5)));
            assert!(expected.is_some() && expected == found, "{mechanism} {name}: {expected:?} {found:?}");
        }
        let refused = run(&mut nonesuch(["serve", "--verify", "full", text(&image)]));
        assert_eq!(refused.status, 2, "who asks for signatures to be verified has them verified");
        let other = run(&mut nonesuch(["serve", "-o", "other.example.", text(&image)]));
        assert!(other.status == 2 && other.stderr.contains(" keys.example."), "{}", other.text());
        snapshot::check("serve", "image of another zone than the origin", other.error());
    }
}

/// With NSEC5, too: names are matched to records by the proofs, and the VRF key and the proofs are
/// in the directory of the image.
#[test]
fn a_mapped_image_of_a_zone_with_nsec5_denies_as_its_zone_file_does() {
    for mechanism in ["nsec5", "nsec5-opt-out"] {
        let folder = prepared();
        let (keys, public) = (folder.path().join("keys"), made(folder.path(), "public"));
        let base = generate_key(&keys, KEYS_ORIGIN, "ed25519", &["--csk", "--nsec5"]);
        let (signed, image) = (public.join("signed"), public.join("image"));
        sign(&folder.path().join("zone"), KEYS_ORIGIN, &keys, mechanism, &signed);
        let nsec5 = public.join("nsec5");
        let away = folder.path().join("image");
        let without = compile(&signed, &away, &["--nsec5-keys", text(folder.path())]);
        assert_eq!(without.status, 2, "{}", without.text());
        snapshot::check("zone compile", "directory without proofs and VRF key", without.error());
        let moved = folder.path().join("moved");
        fs::rename(&nsec5, &moved).unwrap();
        let said = compile(&signed, &away, &[]).expect_done("compile");
        assert!(said.stdout.contains("verified: structural"), "{}", said.text());
        let said = compile(&signed, &image, &["--nsec5-keys", text(&moved)]).expect_done("compile").stdout;
        assert!(said.contains("verified: full"), "{said}");
        fs::rename(&moved, &nsec5).unwrap();
        let said = compile(&signed, &image, &[]).expect_done("compile").stdout;
        assert!(said.contains("verified: full"), "{said}");
        // The contents are damaged, so success shows that they are not read.
        let mut octets = fs::read(&image).unwrap();
        let end = octets.len();
        octets[end - 40..].fill(0x55);
        fs::write(&image, &octets).unwrap();
        fs::write(&away, &octets).unwrap();
        let (from_file, mapped) = (serve(&signed, &[]), serve(&image, &[]));
        for name in ["keys.example.", "ns.keys.example.", "nothing.keys.example.", "x.w.keys.example."] {
            let [expected, found] = [from_file.address, mapped.address]
                .map(|address| ask(address, name, 1, std::time::Duration::from_secs(5)));
            assert!(expected.is_some() && expected == found, "{mechanism} {name}: {expected:?} {found:?}");
        }
        drop(serve(&away, &["--nsec5-keys", text(&nsec5)]));
        // Neither without the directory nor with signing keys in it.
        let refused = |case: &str, more: &[&str], part: &str| {
            let ended = run(nonesuch(["serve", "--listen", "127.0.0.1:0", text(&away)]).args(more));
            assert!(ended.status == 2 && ended.stderr.contains(part), "{}", ended.text());
            snapshot::check("serve", case, &ended.error().replace(&base, "KEY"));
        };
        refused("image with NSEC5, without the VRF key", &[], "--nsec5-keys");
        let more = ["--nsec5-keys", text(&keys)];
        refused("image with NSEC5, with a signing key", &more, &format!("/{base}.private: "));
    }
}

#[test]
fn an_image_whose_signatures_expired_is_not_served() {
    let (folder, signed) = signed("nsec3");
    let image = folder.path().join("image");
    compile(&signed, &image, &[]).expect_done("compile");
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--now", "20600101000000", text(&image)];
    let refused = run(&mut nonesuch(arguments));
    assert_eq!(refused.status, 1, "{}", refused.text());
    let message = refused.error();
    snapshot::check("serve", "image with expired signatures", message);
}

/// A message with `SIZE` in place of numbers of more than one digit.
fn without_sizes(message: &str) -> String {
    let is_size = |word: &str| word.len() > 1 && word.bytes().all(|octet| octet.is_ascii_digit());
    let word = |word: &str| match word.trim_start_matches('(') {
        size if is_size(size) => word.replace(size, "SIZE"),
        _ => word.to_owned(),
    };
    message.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn images_that_are_spoiled_are_refused_with_the_reason() {
    let (folder, signed) = signed("nsec");
    let image = folder.path().join("image");
    compile(&signed, &image, &[]).expect_done("compile");
    let sound = fs::read(&image).unwrap();
    let mut newer = sound.clone();
    newer[8] = 3;
    let mut swapped = sound.clone();
    swapped[12..16].reverse();
    let altered = |at: usize| {
        let mut altered = sound.clone();
        altered[at] ^= 1;
        altered
    };
    // The server reads the image; the other commands read the contents after it.
    let (serving, others) = ([&["serve"][..]], [&["zone", "verify"][..], &["zone", "stat"]]);
    let all = [serving[0], others[0], others[1]];
    let cases = [
        ("truncated", sound[..sound.len() - 1].to_vec(), &all[..]),
        ("of format version 3", newer, &all),
        ("in another byte order", swapped, &all),
        ("altered in the image", altered(5000), &serving),
        ("altered in the contents", altered(sound.len() - 40), &others),
    ];
    for (case, octets, commands) in cases {
        fs::write(&image, octets).unwrap();
        for arguments in commands {
            let refused = run(&mut nonesuch([*arguments, &[text(&image)]].concat()));
            assert_eq!(refused.status, 2, "{}", refused.text());
            assert!(refused.stderr.contains(&format!("{}: ", text(&image))), "{}", refused.stderr);
            let message = without_sizes(refused.error());
            snapshot::check(&arguments.join(" "), &format!("image file {case}"), &message);
        }
    }
    fs::write(&image, &sound).unwrap();
    let other = run(&mut nonesuch(["zone", "stat", text(&image), "-o", "other.example."]));
    assert!(other.status == 2 && other.stderr.contains(" keys.example."), "{}", other.text());
    snapshot::check("zone stat", "image of another zone than the origin", other.error());
}

#[test]
fn nothing_is_left_of_an_image_that_cannot_be_written() {
    let (folder, signed) = signed("nsec");
    let missing = folder.path().join("missing/image");
    let refused = compile(&signed, &missing, &[]);
    assert_eq!(refused.status, 2, "{}", refused.text());
    assert!(refused.stderr.contains("missing/image: "), "{}", refused.stderr);
    snapshot::check("zone compile", "output in a missing directory", &refused.stderr);
    // If the zone cannot be compiled, the existing file stays.
    let image = folder.path().join("image");
    fs::write(&image, "before").unwrap();
    assert_eq!(compile(&signed, &image, &["--now", "20991231000000"]).status, 1);
    assert_eq!(fs::read_to_string(&image).unwrap(), "before");
}
