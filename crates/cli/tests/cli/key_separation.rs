//! A server of a zone with NSEC5 has no signing key ("Making NSEC5 Practical for DNSSEC" §3.3). The
//! tests search its memory, its open files and its directories for the private keys of the zone,
//! and try all other data in them that could be a private key. The signer, the verifier and the
//! server reject a VRF key that is also a signing key. The text of a configuration with a TSIG
//! secret is wiped from memory.

use crate::common;
use common::configured::{Configured, configure, plain_zone};
use common::{Running, ask, done, folder, generate_key, made, nonesuch, run, serve, snapshot, text};
use data_encoding::BASE64;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey};
use nonesuch_crypto::{Algorithm, HashFunction, PrivateKey, PublicKey, key_tag};
use nonesuch_dnssec::keys::Nsec5Key;
use nonesuch_proto::Rtype;
use nonesuch_zone::load;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ORIGIN: &str = "example.";
const ZONE: &str =
    "$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n*.w TXT \"x\"\nx.y.z A 192.0.2.3\n";
/// Length of a private key of P-256 or Ed25519, in octets.
const SECRET: usize = 32;
/// Minimum number of different octets in a candidate. Of 32 random octets, 30 different ones are
/// expected, and fewer than this number are very rare.
const LEAST_DIFFERENT: usize = 22;

/// A zone that is signed and served with NSEC5.
struct Site {
    server: Running,
    zone: PathBuf,
    nsec5: PathBuf,
    keys: PathBuf,
    _folder: tempfile::TempDir,
}

fn start(algorithm: &str, vrf: &str) -> Site {
    let folder = folder();
    let (keys, public) = (folder.path().join("keys"), made(folder.path(), "public"));
    generate_keys(&keys, algorithm);
    fs::write(folder.path().join("zone"), ZONE).expect("written");
    let (zone, nsec5) = (public.join("zone.signed"), public.join("nsec5"));
    let unsigned = folder.path().join("zone");
    let common = ["-o", ORIGIN, "--keys", text(&keys), "--denial", "nsec5"];
    let more = ["--vrf", vrf, "--nsec5-keys", text(&nsec5), "-f", text(&zone)];
    done([&["zone", "sign", text(&unsigned)], &common[..], &more[..]].concat());
    let server = serve(&zone, &["--nsec5-keys", text(&nsec5)]);
    // The server generates proofs, so that all data for proofs are in memory.
    for name in ["none.example.", "a.none.example.", "a.w.example.", "ns.example.", "q.z.example."] {
        assert!(ask(server.address, name, Rtype::MX.0, Duration::from_secs(5)).is_some(), "{name}");
    }
    Site { server, zone, nsec5, keys, _folder: folder }
}

fn generate_keys(keys: &Path, algorithm: &str) {
    for role in [&["--ksk"][..], &[]] {
        generate_key(keys, ORIGIN, algorithm, &[role, &["--nsec5"]].concat());
    }
}

/// The possible encodings of a private key.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let reversed: Vec<u8> = secret.iter().rev().copied().collect();
    // Words of 32 and of 64 bits in both orders of octets and of words.
    let words = |octets: &[u8], size: usize| -> Vec<u8> {
        octets.chunks(size).flat_map(|word| word.iter().rev().copied().collect::<Vec<_>>()).collect()
    };
    let hex = data_encoding::HEXLOWER.encode(secret).into_bytes();
    vec![
        secret.to_vec(),
        words(secret, 4),
        words(secret, 8),
        words(&reversed, 4),
        words(&reversed, 8),
        reversed,
        BASE64.encode(secret).into_bytes(),
        hex,
    ]
}

/// The private keys of the zone. Of Ed25519, the seed and the scalar that is derived from its hash
/// (RFC 8032 §5.1.5).
fn signing_secrets(keys: &Path) -> Vec<Vec<u8>> {
    let mut secrets = Vec::new();
    for entry in fs::read_dir(keys).expect("a directory") {
        let path = entry.expect("an entry").path();
        if !text(&path).contains("Kexample.") || !text(&path).ends_with(".private") {
            continue;
        }
        let file = fs::read_to_string(&path).expect("a key");
        let line = file.lines().find_map(|line| line.strip_prefix("PrivateKey: ")).expect("a private key");
        let secret = BASE64.decode(line.trim().as_bytes()).expect("base64");
        if file.contains("ED25519") {
            let mut digest = HashFunction::Sha512.begin();
            digest.update(&secret);
            let mut scalar = digest.finish()[..SECRET].to_vec();
            scalar[0] &= 248;
            scalar[31] = scalar[31] & 127 | 64;
            secrets.push(scalar);
        }
        secrets.push(secret);
    }
    secrets
}

/// Readable memory regions of a process: contents, and whether the region is writable.
fn memory(id: u32) -> Vec<(Vec<u8>, bool)> {
    let maps = fs::read_to_string(format!("/proc/{id}/maps")).expect("maps");
    let mut memory = File::open(format!("/proc/{id}/mem")).expect("memory");
    let mut regions = Vec::new();
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let (range, rights) = (fields.next().expect("a range"), fields.next().expect("rights"));
        let (start, end) = range.split_once('-').expect("a range");
        let number = |digits| u64::from_str_radix(digits, 16).expect("a number");
        let (start, end) = (number(start), number(end));
        if !rights.starts_with('r') || line.ends_with("[vvar]") || line.ends_with("[vsyscall]") {
            continue;
        }
        let mut octets = Vec::new();
        // Most of a stack is not mapped yet, and reading it fails; the mapped part is read.
        memory.seek(SeekFrom::Start(start)).expect("a place");
        let _ = memory.by_ref().take(end - start).read_to_end(&mut octets);
        regions.push((octets, rights.contains('w')));
    }
    assert!(regions.iter().map(|region| region.0.len()).sum::<usize>() > 1 << 20, "memory was read");
    regions
}

/// The open files of the process and all files of the directories.
fn files(site: &Site) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in [site.zone.parent().expect("a directory"), &site.nsec5] {
        let entries = fs::read_dir(folder).expect("a directory");
        paths.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    let open = fs::read_dir(format!("/proc/{}/fd", site.server.id())).expect("open files");
    paths.extend(open.map(|entry| entry.expect("an entry").path()));
    paths.retain(|path| fs::metadata(path).is_ok_and(|metadata| metadata.is_file()));
    paths.iter().map(|path| fs::read(path).expect("a file")).collect()
}

fn holds(octets: &[u8], form: &[u8]) -> bool {
    let mut rest = octets;
    while let Some(at) = rest.iter().position(|octet| *octet == form[0]) {
        rest = &rest[at..];
        if rest.starts_with(form) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

fn private_key(algorithm: Algorithm, secret: &[u8]) -> Option<PrivateKey> {
    let number = algorithm.0;
    let secret = BASE64.encode(secret);
    PrivateKey::from_bind(&format!(
        "Private-key-format: v1.3\nAlgorithm: {number} (X)\nPrivateKey: {secret}\n"
    ))
    .ok()
}

/// All sequences in writable memory that look random. P-256 scalars consist of words, so they are
/// searched at multiples of 8 octets in both orders of octets. Ed25519 seeds consist of octets, so
/// they are searched everywhere.
fn candidates(memory: &[(Vec<u8>, bool)], are_words: bool) -> HashSet<[u8; SECRET]> {
    let mut found = HashSet::new();
    for (octets, _) in memory.iter().filter(|(_, is_written)| *is_written) {
        for window in octets.windows(SECRET).step_by(if are_words { 8 } else { 1 }) {
            if !looks_random(window) {
                continue;
            }
            let mut secret: [u8; SECRET] = window.try_into().expect("of that length");
            found.insert(secret);
            if are_words {
                secret.reverse();
                found.insert(secret);
            }
        }
    }
    found
}

fn looks_random(octets: &[u8]) -> bool {
    // Most of the memory is zero.
    if octets.starts_with(&[0; 4]) {
        return false;
    }
    let mut seen = [false; 256];
    octets.iter().for_each(|octet| seen[usize::from(*octet)] = true);
    seen.iter().filter(|seen| **seen).count() >= LEAST_DIFFERENT
}

/// The public keys of the zone's DNSKEY records.
fn dnskeys(site: &Site) -> Vec<(Algorithm, Vec<u8>)> {
    let contents = load(&site.zone, None).expect("a zone").contents;
    let rrset = contents.apex_rrset(Rtype::DNSKEY).expect("keys");
    rrset.rdatas().map(|rdata| (Algorithm(rdata[3]), rdata[4..].to_vec())).collect()
}

fn search(algorithm: &str, vrf: &str) {
    let site = start(algorithm, vrf);
    let memory = memory(site.server.id());
    let files = files(&site);
    let everywhere: Vec<&Vec<u8>> = memory.iter().map(|region| &region.0).chain(&files).collect();
    let secrets = signing_secrets(&site.keys);
    assert!(secrets.len() >= 2);
    for form in secrets.iter().flat_map(|secret| forms(secret)) {
        assert!(!everywhere.iter().any(|octets| holds(octets, &form)), "a private key of the zone was found");
    }

    // The search finds the VRF key, which shows that the search works.
    let vrf_file =
        fs::read_dir(&site.nsec5).expect("a directory").map(|entry| entry.expect("an entry").path());
    let vrf_file = vrf_file.into_iter().find(|path| text(path).ends_with(".private")).expect("a VRF key");
    let vrf_text = fs::read_to_string(vrf_file).expect("a VRF key");
    let vrf_line =
        vrf_text.lines().find_map(|line| line.strip_prefix("PrivateKey: ")).expect("a private key");
    let vrf_secret = BASE64.decode(vrf_line.trim().as_bytes()).expect("base64");
    let vrf_forms = forms(&vrf_secret);
    assert!(files.iter().any(|octets| vrf_forms.iter().any(|form| holds(octets, form))), "in the directory");
    assert!(memory.iter().any(|(octets, _)| vrf_forms.iter().any(|form| holds(octets, form))), "in memory");

    // Each candidate is tried as a signing key, the VRF key first; none produces a valid signature.
    let dnskeys = dnskeys(&site);
    let algorithms: HashSet<Algorithm> = dnskeys.iter().map(|(algorithm, _)| *algorithm).collect();
    let tried: HashSet<[u8; SECRET]> = candidates(&memory, algorithm == "ecdsap256sha256");
    assert!(tried.contains(vrf_secret.as_slice()), "the VRF key is among what is tried");
    for (secret, algorithm) in tried.iter().flat_map(|secret| algorithms.iter().map(move |a| (secret, *a))) {
        let Some(key) = private_key(algorithm, secret) else { continue };
        assert!(!dnskeys.iter().any(|(_, public)| public == key.public_key()), "a signing key was found");
    }
    let mut signature = Vec::new();
    for algorithm in &algorithms {
        let Some(key) = private_key(*algorithm, &vrf_secret) else { continue };
        signature.clear();
        key.sign(b"an RRset", &mut signature).expect("signed");
        for (algorithm, public) in &dnskeys {
            let public = PublicKey::parse(*algorithm, public).expect("a public key");
            assert!(public.verify(b"an RRset", &signature).is_err(), "the VRF key signs");
        }
    }
    let vrf_key = VrfPrivateKey::from_text(&vrf_text).expect("a VRF key");
    assert!(!dnskeys.iter().any(|(_, public)| public == vrf_key.public_key()));
}

#[test]
fn no_signing_key_of_p256_is_within_the_reach_of_an_nsec5_server() {
    search("ecdsap256sha256", "p256");
}

#[test]
#[ignore = "`just judge`: as with P-256"]
fn no_signing_key_of_ed25519_is_within_the_reach_of_an_nsec5_server() {
    search("ed25519", "ed25519");
}

/// Writes the file of a VRF key of the zone to `dir`.
fn write_vrf_key(dir: &Path, key: &VrfPrivateKey) {
    let base = Nsec5Key::of(key).base_name(&ORIGIN.parse().expect("a name"));
    fs::create_dir_all(dir).expect("a directory");
    fs::write(dir.join(format!("{base}.private")), key.to_text().as_bytes()).expect("written");
}

/// The lines that begin with `start`, without these key tags.
fn without_tags(text: &str, start: &str, tags: [u16; 2]) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(start)).collect();
    assert!(!lines.is_empty(), "{text}");
    tags.iter().fold(lines.join("\n"), |text, tag| common::replace_word(&text, &tag.to_string(), "TAG"))
}

/// A VRF key with the secret of a signing key can also sign, whatever the name of its file.
#[test]
fn a_vrf_key_that_is_a_signing_key_is_refused_by_signer_verifier_and_server() {
    let folder = folder();
    let (keys, public) = (folder.path().join("keys"), made(folder.path(), "public"));
    let (unsigned, zone, nsec5) =
        (folder.path().join("zone"), public.join("zone.signed"), public.join("nsec5"));
    fs::write(&unsigned, ZONE).expect("written");
    let base = generate_key(&keys, ORIGIN, "ecdsap256sha256", &["--csk", "--nsec5"]);
    let file = fs::read_to_string(keys.join(format!("{base}.private"))).expect("a key");
    let secret = file.lines().find_map(|line| line.strip_prefix("PrivateKey: ")).expect("a private key");
    let secret = BASE64.decode(secret.trim().as_bytes()).expect("base64");
    let twin = VrfPrivateKey::from_secret(VrfAlgorithm::P256_SHA256_TAI, &secret).expect("a VRF key");
    let sign = |nsec5: &Path| {
        let common = ["-o", ORIGIN, "--keys", text(&keys), "--denial", "nsec5"];
        let more = ["--nsec5-keys", text(nsec5), "-f", text(&zone)];
        run(&mut nonesuch([&["zone", "sign", text(&unsigned)], &common[..], &more[..]].concat()))
    };
    let twins = folder.path().join("twins");
    write_vrf_key(&twins, &twin);
    let refused = sign(&twins);
    assert_eq!((refused.status, zone.exists()), (2, false), "{}", refused.text());
    let dnskey: u16 = base.rsplit('+').next().and_then(|tag| tag.parse().ok()).expect("a key tag");
    let tags = [Nsec5Key::of(&twin).tag(), dnskey];
    let error = without_tags(&refused.stderr, "nonesuch: error: ", tags);
    snapshot::check("zone sign", "VRF key that is also a signing key", &error);

    // Signed with another key; then the zone publishes the VRF key as a signing key.
    sign(&nsec5).expect_done("signed");
    let vrf_file = fs::read_dir(&nsec5).expect("a directory").map(|entry| entry.expect("an entry").path());
    let vrf_file = vrf_file.into_iter().find(|path| text(path).ends_with(".private")).expect("a VRF key");
    let vrf = VrfPrivateKey::from_text(&fs::read_to_string(vrf_file).expect("a key")).expect("a VRF key");
    let mut signed = fs::read_to_string(&zone).expect("a zone");
    signed.push_str(&format!("example. 60 IN DNSKEY 256 3 229 {}\n", BASE64.encode(vrf.public_key())));
    fs::write(&zone, signed).expect("written");
    let verified = run(&mut nonesuch(["zone", "verify", text(&zone)]));
    assert_eq!(verified.status, 1, "{}", verified.text());
    let dnskey = key_tag(&[&[1, 0, 3, 229][..], vrf.public_key()].concat());
    let tags = [Nsec5Key::of(&vrf).tag(), dnskey];
    let fault = without_tags(&verified.stdout, "fault: example. NSEC5KEY: ", tags);
    snapshot::check("zone verify", "NSEC5KEY that is also a DNSKEY", &fault);
    let served = run(&mut nonesuch(["serve", "--listen", "127.0.0.1:0", text(&zone)]));
    assert_eq!(served.status, 2, "{}", served.text());
    let error = without_tags(&served.stderr, "nonesuch: error: ", tags);
    snapshot::check("serve", "VRF key that is also a signing key", &error);
}

/// A secret in the configuration itself is decoded once. Neither the secret nor the surrounding
/// text stays in memory.
#[test]
fn the_text_of_a_configuration_is_wiped() {
    let home = folder();
    let secret = BASE64.encode(b"a secret of 33 octets that no key");
    let mark = "a-comment-beside-the-secret-that-nothing-else-repeats";
    // A large text, because memory of a small file is soon overwritten.
    let tables = |number: u32| {
        let many = format!("# {mark} {number}\n").repeat(1000);
        let zone = "[zone.\"a.example.\"]\nfile = \"a\"\n";
        format!("{many}[key.\"k.\"]\nsecret = \"{secret}\"\n{zone}{many}")
    };
    fs::write(home.path().join("a"), plain_zone("a.example.", 1)).expect("written");
    fs::write(home.path().join("more.toml"), tables(1)).expect("written");
    let path = configure(home.path(), "");
    let main = fs::read_to_string(&path).expect("a configuration");
    fs::write(&path, format!("include = [\"more.toml\"]\n{main}# {mark}\n")).expect("written");
    let server = Configured::start(&path);
    server.wait_for("a.example.", 1);
    let search = |what: &str| {
        let memory = memory(server.id());
        let is_there = |text: &str| memory.iter().any(|(octets, _)| holds(octets, text.as_bytes()));
        assert!(is_there("\x01a\x07example"), "{what}: the search finds what is there");
        assert!(!is_there(&secret[..30]), "{what}: the secret");
        assert!(!is_there(mark), "{what}: the text");
    };
    search("start");
    fs::write(home.path().join("more.toml"), tables(2)).expect("written");
    assert_eq!(server.ctl(&["reload"]).status, 0, "{}", server.logged());
    search("reload");
}
