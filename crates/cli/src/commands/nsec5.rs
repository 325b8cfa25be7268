//! What `zone sign` and `zone verify` do for NSEC5: the folder of the VRF key and of the stored proofs.
//!
//! The folder holds what a nameserver needs and nothing that signs: who steals it can enumerate the zone and forge nothing.

use super::serve_keys::find_signing_key;
use crate::arguments::SignArguments;
use crate::error::Failure;
use crate::files::{
    KEY_MODE, check_writable, folder_of, is_open, is_standard, read_key_file, write_failure, write_output,
};
use crate::progress::Rates;
use nonesuch_authoritative::service::NSEC5_FOLDER;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey};
use nonesuch_dnssec::denial::Mapping;
use nonesuch_dnssec::denial::nsec5::{
    Nsec5Chain, Nsec5Evidence, Proofs, ProofsFileError, ProveOptions, ProveStatistics, check_separate,
    check_signing, prove_chain,
};
use nonesuch_dnssec::keys::{Nsec5Key, proofs_file_name};
use nonesuch_dnssec::online::Nsec5Zone;
use nonesuch_dnssec::sign::SignError;
use nonesuch_dnssec::{KeyPair, KeySet};
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::Contents;
use std::fmt;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Attempts at a key whose tag no NSEC5KEY record of the zone has.
const ATTEMPTS: usize = 16;

/// The proofs of a zone that is signed, and where they are to be stored.
pub(crate) struct Proved {
    proofs: Proofs,
    path: PathBuf,
    statistics: ProveStatistics,
    seconds: f64,
}

/// Finds or makes the VRF key and proves the names of the zone; nothing for other mechanisms than NSEC5.
pub(crate) fn prepare(
    arguments: &SignArguments,
    output: &Path,
    contents: &Contents,
    keys: &KeySet,
) -> Result<Option<Proved>, Failure> {
    if arguments.mechanism().mapping() != Mapping::Vrf {
        if arguments.nsec5_keys.is_some() || arguments.vrf.is_some() || arguments.keep_nsec5key {
            tracing::warn!(
                "--nsec5-keys, --vrf and --keep-nsec5key are for NSEC5 alone and mean nothing here"
            );
        }
        return Ok(None);
    }
    // Before anything is made: a mistake leaves no files behind.
    check_signing(contents.apex(), keys)?;
    let dir = arguments.nsec5_keys.clone().unwrap_or_else(|| beside(output));
    let key = find_or_make_key(&dir, arguments.vrf, contents)?;
    let dnskeys: Vec<Vec<u8>> = keys.keys().iter().map(KeyPair::dnskey_rdata).collect();
    check_separate(contents.apex(), &Nsec5Key::of(&key), dnskeys.iter().map(Vec::as_slice))?;
    let path = dir.join(proofs_file_name(contents.apex()));
    // The proofs are written after the zone, which would be there already.
    check_writable(&path)?;
    let stored = stored_proofs(&path, keys);
    let bar = Rates::new("proving");
    let update = |done, total| bar.tell(done, total, &[(done, "names")]);
    let mut options = ProveOptions::new(arguments.mechanism());
    options.stored = stored.as_ref();
    options.progress = bar.is_seen().then_some(&update);
    let begun = Instant::now();
    let (proofs, statistics) = prove_chain(contents, &key, &options)?;
    bar.end();
    Ok(Some(Proved { proofs, path, statistics, seconds: begun.elapsed().as_secs_f64() }))
}

impl Proved {
    /// What the zone is signed by.
    pub(crate) const fn chain(&self, keep_keys: bool) -> Nsec5Chain<'_> {
        Nsec5Chain { proofs: &self.proofs, keep_keys }
    }

    /// Stores the proofs, of the signed zone of `serial`, for the server and for the next signing, sealed by one of `keys`.
    pub(crate) fn store(&mut self, serial: u32, keys: &KeySet) -> Result<(), Failure> {
        self.proofs.set_serial(serial);
        self.proofs.seal(keys).map_err(SignError::from)?;
        write_output(&self.path, KEY_MODE, |mut out| {
            self.proofs.write_to(&mut out).map_err(write_failure(&self.path))
        })
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        let key = self.proofs.key();
        serde_json::json!({
            "algorithm": key.algorithm().to_string(), "key_tag": key.tag(), "proofs": self.path,
            "proofs_made": self.statistics.made, "proofs_kept": self.statistics.kept, "proving_seconds": self.seconds,
        })
    }
}

impl fmt::Display for Proved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, ProveStatistics { made, kept }) = (self.proofs.key(), self.statistics);
        let (path, seconds) = (self.path.display(), self.seconds);
        write!(
            f,
            "{path}: key {} ({}), {made} proofs made and {kept} kept in {seconds:.2} s",
            key.tag(),
            key.algorithm()
        )
    }
}

/// Proofs and VRF key that a zone is verified by.
#[derive(Default)]
pub(crate) struct Evidence {
    proofs: Option<Proofs>,
    key: Option<VrfPrivateKey>,
}

impl Evidence {
    pub(crate) const fn view(&self) -> Nsec5Evidence<'_> {
        Nsec5Evidence { proofs: self.proofs.as_ref(), key: self.key.as_ref() }
    }
}

/// Loads what the zone of `file`, with NSEC5, is verified by: its stored proofs, or else its VRF key, from the folder `asked`
/// for, or else from the one beside the file where there is one.
pub(crate) fn load_evidence(
    file: &Path,
    asked: Option<&Path>,
    contents: &Contents,
) -> Result<Evidence, Failure> {
    let dir = asked.map_or_else(|| beside(file), Path::to_path_buf);
    let asked = asked.is_some();
    if contents.apex_rrset(Rtype::NSEC5KEY).is_none() || !asked && !dir.is_dir() {
        return Ok(Evidence::default());
    }
    if !dir.is_dir() {
        return Err(Failure::NoEvidenceFolder { dir });
    }
    let path = dir.join(proofs_file_name(contents.apex()));
    let proofs = read_proofs(&path)?;
    if proofs.is_some() {
        return Ok(Evidence { proofs, key: None });
    }
    let mut keys = keys_of(&dir, contents.apex())?;
    keys.retain(|(_, key)| is_in_zone(contents, key));
    let key = keys.pop().map(|(_, key)| key);
    if key.is_none() && asked {
        return Err(Failure::NoEvidence { dir, zone: contents.apex().clone() });
    }
    Ok(Evidence { proofs: None, key })
}

/// The VRF key of the zone in `dir`, of which one is among its NSEC5KEY records, and the proofs stored there.
pub(super) fn load_for_server(
    dir: &Path,
    zone: &Nsec5Zone,
) -> Result<(VrfPrivateKey, Option<Proofs>), Failure> {
    let proofs = read_proofs(&dir.join(proofs_file_name(zone.apex())))?;
    let mut keys = keys_of(dir, zone.apex())?;
    // While one key takes the place of another, both are in the zone: the chain is of one of them.
    let place = keys.iter().position(|(_, key)| zone.publishes(key) && !zone.is_of_other_key(key));
    let place = place.or_else(|| keys.iter().position(|(_, key)| zone.publishes(key)));
    match place {
        Some(place) => Ok((keys.swap_remove(place).1, proofs)),
        None => Err(Failure::NoVrfKey { dir: dir.to_path_buf(), zone: zone.apex().clone() }),
    }
}

/// The folder beside a zone file; beside standard output it is that of the working folder.
pub(super) fn beside(file: &Path) -> PathBuf {
    file.parent().unwrap_or_else(|| Path::new("")).join(NSEC5_FOLDER)
}

/// The proofs of before; those that cannot be read, or are not known to be the signer's own, are made anew.
fn stored_proofs(path: &Path, keys: &KeySet) -> Option<Proofs> {
    let proofs = read_proofs(path).unwrap_or_else(|failure| {
        tracing::warn!("{failure}; all proofs are made anew");
        None
    })?;
    if !proofs.is_sealed_by(keys) {
        tracing::warn!(
            "{}: none of the given keys has sealed this file; all proofs are made anew",
            path.display()
        );
        return None;
    }
    Some(proofs)
}

/// Reads a file of proofs; `None` where there is none.
fn read_proofs(path: &Path) -> Result<Option<Proofs>, Failure> {
    let failed = |source| Failure::Read { path: path.to_path_buf(), source };
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => {
            return Err(Failure::Proofs { path: path.to_path_buf(), source: ProofsFileError::NotProofs });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let octets = fs::read(path).map_err(failed)?;
    let proofs = Proofs::read(&octets);
    proofs.map(Some).map_err(|source| Failure::Proofs { path: path.to_path_buf(), source })
}

/// The VRF key of the zone in `dir`: the only one, or the only one that the zone publishes already; a new one where there
/// is none.
fn find_or_make_key(
    dir: &Path,
    wanted: Option<VrfAlgorithm>,
    contents: &Contents,
) -> Result<VrfPrivateKey, Failure> {
    let zone = contents.apex();
    if dir.exists() && !dir.is_dir() {
        return Err(Failure::NotAFolder { dir: dir.to_path_buf() });
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|source| Failure::Write { path: dir.to_path_buf(), source })?;
    refuse_signing_keys(dir)?;
    let mut keys = keys_of(dir, zone)?;
    let count = keys.len();
    if count > 1 {
        keys.retain(|(_, key)| is_in_zone(contents, key));
    }
    let found = keys.pop();
    if count > 1 && (found.is_none() || !keys.is_empty()) {
        return Err(Failure::SeveralVrfKeys { dir: dir.to_path_buf(), zone: zone.clone(), count });
    }
    let Some((path, key)) = found else {
        return make_key(dir, wanted.unwrap_or(VrfAlgorithm::P256_SHA256_TAI), contents);
    };
    match wanted.filter(|wanted| *wanted != key.algorithm()) {
        Some(wanted) => Err(Failure::OtherVrf { path, found: key.algorithm(), wanted }),
        None => Ok(key),
    }
}

/// Makes a key with a tag that no NSEC5KEY record of the zone has: two with one tag would prove nothing.
fn make_key(dir: &Path, algorithm: VrfAlgorithm, contents: &Contents) -> Result<VrfPrivateKey, Failure> {
    for _ in 0..ATTEMPTS {
        let key = VrfPrivateKey::generate(algorithm).map_err(Failure::VrfGeneration)?;
        let public = Nsec5Key::of(&key);
        if published(contents).any(|other| other.tag() == public.tag()) {
            continue;
        }
        let path = key_path(dir, &public.base_name(contents.apex()));
        let text = key.to_text();
        write_output(&path, KEY_MODE, |out| out.write_all(text.as_bytes()).map_err(write_failure(&path)))?;
        return Ok(key);
    }
    Err(Failure::NoFreeTag { dir: dir.to_path_buf() })
}

fn key_path(dir: &Path, base: &str) -> PathBuf {
    dir.join(format!("{base}.private"))
}

/// The NSEC5KEY records of the zone.
fn published(contents: &Contents) -> impl Iterator<Item = Nsec5Key> {
    let rdatas = contents.apex_rrset(Rtype::NSEC5KEY).into_iter().flat_map(|rrset| rrset.rdatas());
    rdatas.filter_map(Nsec5Key::from_rdata)
}

fn is_in_zone(contents: &Contents, key: &VrfPrivateKey) -> bool {
    let public = Nsec5Key::of(key);
    published(contents).any(|other| other == public)
}

/// The VRF keys of `zone` in `dir`, by the names of their files.
fn keys_of(dir: &Path, zone: &Name) -> Result<Vec<(PathBuf, VrfPrivateKey)>, Failure> {
    bases_of(dir, zone)?.iter().map(|base| load_key(&key_path(dir, base), base, zone)).collect()
}

/// Names of the files of VRF keys of `zone` in `dir`, without their ending.
fn bases_of(dir: &Path, zone: &Name) -> Result<Vec<String>, Failure> {
    let names = private_files(dir)?;
    let bases = names.iter().filter_map(|name| name.strip_suffix(".private"));
    let of_zone = |base: &&str| {
        owner(base).and_then(|owner| owner.parse().ok()).is_some_and(|owner: Name| owner == *zone)
    };
    Ok(bases.filter(of_zone).map(str::to_owned).collect())
}

/// Files of VRF keys of `zone` in `dir` that everybody may read: with one of them the zone can be enumerated.
pub(super) fn open_keys(dir: &Path, zone: &Name) -> Vec<PathBuf> {
    // What cannot be listed is said where it is read.
    let bases = bases_of(dir, zone).unwrap_or_default();
    bases.iter().map(|base| key_path(dir, base)).filter(|path| is_open(path)).collect()
}

/// The zone that the name of a file of a VRF key says: `Nexample.+001+12345`.
fn owner(base: &str) -> Option<String> {
    let mut parts = base.rsplitn(3, '+');
    let (_tag, _algorithm, owner) = (parts.next()?, parts.next()?, parts.next()?);
    // Octets as `%XX` in names of files are `\DDD` in names of domains.
    let mut pieces = owner.strip_prefix('N')?.split('%');
    let mut name = pieces.next()?.to_owned();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        name.push_str(&format!("\\{:03}{rest}", u8::from_str_radix(digits, 16).ok()?));
    }
    Some(name)
}

fn load_key(path: &Path, base: &str, zone: &Name) -> Result<(PathBuf, VrfPrivateKey), Failure> {
    let text = read_key_file(path)?;
    let key = VrfPrivateKey::from_text(&text)
        .map_err(|source| Failure::VrfKey { path: path.to_path_buf(), source })?;
    let expected = Nsec5Key::of(&key).base_name(zone);
    if !expected.eq_ignore_ascii_case(base) {
        return Err(Failure::VrfName { path: path.to_path_buf(), expected });
    }
    Ok((path.to_path_buf(), key))
}

/// The server reads this folder: a key that signs must not be in its reach.
fn refuse_signing_keys(dir: &Path) -> Result<(), Failure> {
    let found = private_files(dir)?.into_iter().find(|name| name.starts_with('K'));
    found.map_or(Ok(()), |name| Err(Failure::SigningKey { path: dir.join(name) }))
}

/// Warns where a server of the signed zone at `output` would refuse to start: a signing key is in its reach.
pub(super) fn warn_of_signing_keys(output: &Path) {
    if is_standard(output) {
        return;
    }
    // A folder that cannot be read is one that no key can be taken from.
    if let Ok(Some(path)) = find_signing_key(folder_of(output)) {
        tracing::warn!(
            "{}: a signing key, in the folder of the signed zone: with NSEC5 a server has none in its reach, and `nonesuch serve` \
             refuses to start; keep the zone and its folder of proofs apart from the keys",
            path.display()
        );
    }
}

/// Names of the files in `dir` that end as private keys do, in order.
fn private_files(dir: &Path) -> Result<Vec<String>, Failure> {
    let unreadable = |source| Failure::Read { path: dir.to_path_buf(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        names.extend(name.to_str().filter(|name| name.ends_with(".private")).map(str::to_owned));
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_say_the_zone() {
        assert_eq!(owner("Nexample.+001+12345").as_deref(), Some("example."));
        assert_eq!(owner("Na%2Fb.+128+00001").as_deref(), Some("a\\047b."));
        assert_eq!(owner("N.+001+00001").as_deref(), Some("."));
        for other in ["Kexample.+001+12345", "Nexample.", "N%2.+001+00001", "N%é.+001+00001", "+1+2", ""] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn the_folder_stands_beside_the_file() {
        assert_eq!(beside(Path::new("a/b.signed")), Path::new("a/nsec5"));
        assert_eq!(beside(Path::new("b.signed")), Path::new("nsec5"));
        assert_eq!(beside(Path::new("-")), Path::new("nsec5"));
    }
}
