//! Signs the test zones and writes them into a directory.

use super::records::{STANDBY_KEYS, zone_text};
use super::{CATALOG_MEMBERS, bootstrap_label};
use crate::measure::key_files::{
    PUBLIC, WriteError, create_directory, write_new_file, write_nsec5_files, write_signing_keys,
};
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfKeyError, VrfPrivateKey};
use nonesuch_crypto::{Algorithm, DigestType, KeyError};
use nonesuch_dnssec::denial::nsec5::{Nsec5Chain, Nsec5Error, Proofs, ProveOptions, prove_chain};
use nonesuch_dnssec::denial::{DenialGeneration, MECHANISMS, MechanismEntry, NameHash};
use nonesuch_dnssec::keys::{KeySetError, KeyTimes, SEP, ZONE_KEY, ds_rdata};
use nonesuch_dnssec::sign::SignError;
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, sign};
use nonesuch_proto::{Name, Rtype, rdata};
use nonesuch_zone::zonemd::ZonemdHash;
use nonesuch_zone::{Contents, ReadError, read};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Label of the unsigned test zone.
const UNSIGNED: &str = "unsigned";
/// Label of the catalog zone.
const CATALOG: &str = "catalog";
/// Validity of the signatures before and after the time of signing, in seconds.
const VALIDITY: (u32, u32) = (3600, 90 * 86_400);
/// CDS and CDNSKEY records that request the removal of the DS RRset (RFC 8078 §4).
const DELETE: &str = "@ CDS 0 0 0 00\n@ CDNSKEY 0 3 0 AA==\n";

/// Why test zones are not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum TestZoneError {
    #[error("{}: already exists: choose another directory, or remove this one", path.display())]
    Exists { path: PathBuf },
    #[error("the label {label} does not fit below {origin}: choose a shorter --origin")]
    Origin { origin: Name, label: &'static str },
    #[error("zone {zone}: {source}")]
    Key { zone: Name, source: KeyError },
    #[error("zone {zone}: {source}")]
    KeySet { zone: Name, source: Box<KeySetError> },
    #[error("zone {zone}: the VRF key: {source}")]
    Vrf { zone: Name, source: VrfKeyError },
    #[error("zone {zone}: {source}")]
    Records { zone: Name, source: Box<ReadError> },
    #[error("zone {zone}: {source}")]
    Nsec5 { zone: Name, source: Box<Nsec5Error> },
    #[error("zone {zone}: cannot be signed: {source}")]
    Sign { zone: Name, source: Box<SignError> },
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Writes the test zones below `origin` into the directory `out`, which must not exist or be empty:
///
/// | file | content |
/// | --- | --- |
/// | `zones/ZONE` | the zone file; signed, unless the mechanism generates its records online |
/// | `keys/ZONE/` | the keys, as BIND writes them |
/// | `nsec5/ZONE/` | the VRF key and the proofs of a zone with NSEC5 |
/// | `nonesuch.toml`, `named.conf`, `nsd.conf`, `knot.conf`, `Corefile` | the zones as part of a server's configuration |
///
/// The signatures are valid for 90 days from `now`, in seconds since 1970 modulo 2^32.
///
/// # Errors
/// The directory has files, a file cannot be written, or a zone cannot be signed.
pub fn write_test_zones(out: &Path, origin: &Name, now: u32) -> Result<(), TestZoneError> {
    if fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(TestZoneError::Exists { path: out.to_owned() });
    }
    for directory in ["zones", "keys", "nsec5"] {
        create_directory(&out.join(directory))?;
    }
    for entry in MECHANISMS {
        write_signed_zone(out, &below(origin, entry.name)?, entry, now)?;
    }
    for label in [UNSIGNED].into_iter().chain(CATALOG_MEMBERS) {
        let apex = below(origin, label)?;
        let contents = read_zone(&apex, &zone_text(&apex, false, ""))?;
        write_zone(out, &apex, &contents)?;
    }
    write_catalog(out, origin)?;
    write_configurations(out, origin)
}

fn below(origin: &Name, label: &'static str) -> Result<Name, TestZoneError> {
    let name = Name::prepend(label.as_bytes(), origin.view());
    name.map_err(|_| TestZoneError::Origin { origin: origin.clone(), label })
}

/// The name of the files and directories of a zone.
fn file_name(zone: &Name) -> String {
    zone.to_string().trim_end_matches('.').to_ascii_lowercase()
}

fn read_zone(apex: &Name, text: &str) -> Result<Contents, TestZoneError> {
    let path = PathBuf::from(format!("zone {apex}"));
    let read = read::read_text(text.as_bytes(), &path, Some(apex));
    read.map(|parsed| parsed.contents)
        .map_err(|source| TestZoneError::Records { zone: apex.clone(), source: Box::new(source) })
}

fn write_zone(out: &Path, apex: &Name, contents: &Contents) -> Result<(), TestZoneError> {
    let mut text = Vec::new();
    nonesuch_zone::write::push_part(contents, &mut text);
    Ok(write_new_file(&out.join("zones").join(file_name(apex)), PUBLIC, &text)?)
}

fn write_signed_zone(out: &Path, apex: &Name, entry: &MechanismEntry, now: u32) -> Result<(), TestZoneError> {
    let is_nsec5 = entry.name_hash == NameHash::Vrf;
    let algorithm = Algorithm::ECDSAP256SHA256;
    let algorithm = if is_nsec5 { algorithm.nsec5_alias().unwrap_or(algorithm) } else { algorithm };
    let keys = vec![generate(apex, ZONE_KEY | SEP, algorithm)?, generate(apex, ZONE_KEY, algorithm)?];
    let keys = KeySet::new(apex, keys)
        .map_err(|source| TestZoneError::KeySet { zone: apex.clone(), source: Box::new(source) })?;
    let text = zone_text(apex, true, &other_records(apex, entry, algorithm)?);
    let unsigned = read_zone(apex, &text)?;
    write_signing_keys(&out.join("keys").join(file_name(apex)), &keys, &KeyTimes::default())?;
    if entry.generation == DenialGeneration::Online {
        return write_zone(out, apex, &unsigned);
    }
    let vrf = is_nsec5.then(|| prove(apex, &unsigned, entry, &keys)).transpose()?;
    let options = SignOptions {
        nsec5: vrf.as_ref().map(|(_, proofs)| Nsec5Chain { proofs, keep_other_keys: false }),
        now,
        // The opt-out zone has CDS records of its own.
        publish_cds: !entry.opt_out,
        zonemd: Some(vec![ZonemdHash::Sha384]),
        ..SignOptions::new(entry.mechanism, now.wrapping_sub(VALIDITY.0), now.wrapping_add(VALIDITY.1))
    };
    let signed = sign(&unsigned, &keys, &options)
        .map_err(|source| TestZoneError::Sign { zone: apex.clone(), source: Box::new(source) })?;
    if let Some((key, proofs)) = &vrf {
        write_nsec5_files(&out.join("nsec5").join(file_name(apex)), apex, key, proofs)?;
    }
    write_zone(out, apex, signed.contents())
}

fn generate(owner: &Name, flags: u16, algorithm: Algorithm) -> Result<KeyPair, TestZoneError> {
    KeyPair::generate(owner, flags, algorithm, None)
        .map_err(|source| TestZoneError::Key { zone: owner.clone(), source })
}

/// The VRF key and the proofs of a zone with NSEC5.
fn prove(
    apex: &Name,
    unsigned: &Contents,
    entry: &MechanismEntry,
    keys: &KeySet,
) -> Result<(VrfPrivateKey, Proofs), TestZoneError> {
    let key = VrfPrivateKey::generate(VrfAlgorithm::P256_SHA256_TAI)
        .map_err(|source| TestZoneError::Vrf { zone: apex.clone(), source })?;
    let proofs = prove_chain(unsigned, &key, &ProveOptions::new(entry.mechanism));
    let (mut proofs, _) =
        proofs.map_err(|source| TestZoneError::Nsec5 { zone: apex.clone(), source: Box::new(source) })?;
    proofs.set_serial(unsigned.soa().map_or(0, |soa| soa.serial));
    let sealed = proofs.add_seal(keys).map_err(SignError::from);
    sealed.map_err(|source| TestZoneError::Sign { zone: apex.clone(), source: Box::new(source) })?;
    Ok((key, proofs))
}

/// The records with keys: a signed delegation, its bootstrapping records (RFC 9615 §4.1), DNSKEY records that
/// sign nothing, and in the opt-out zone CDS records that request the removal of the DS RRset.
fn other_records(apex: &Name, entry: &MechanismEntry, algorithm: Algorithm) -> Result<String, TestZoneError> {
    let child = below(apex, "signed")?;
    let dnskey = generate(&child, ZONE_KEY | SEP, Algorithm::ECDSAP256SHA256)?.dnskey_rdata();
    let ds = ds_rdata(child.view(), &dnskey, DigestType::SHA256).unwrap_or_default();
    let (ds, cdnskey) = (rdata_text(Rtype::DS, &ds), rdata_text(Rtype::DNSKEY, &dnskey));
    let bootstrap = bootstrap_label(apex);
    let mut text = format!("signed DS {ds}\n{bootstrap} CDS {ds}\n{bootstrap} CDNSKEY {cdnskey}\n");
    if entry.generation == DenialGeneration::Offline {
        for _ in 0..STANDBY_KEYS {
            let key = generate(apex, ZONE_KEY, algorithm)?.dnskey_rdata();
            // Writing to a string does not fail.
            let _ = writeln!(text, "@ DNSKEY {}", rdata_text(Rtype::DNSKEY, &key));
        }
    }
    if entry.opt_out {
        text.push_str(DELETE);
    }
    Ok(text)
}

fn rdata_text(rtype: Rtype, octets: &[u8]) -> String {
    let mut out = Vec::new();
    rdata::push_text(rtype, octets, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes the catalog zone (RFC 9432 §4).
fn write_catalog(out: &Path, origin: &Name) -> Result<(), TestZoneError> {
    let apex = below(origin, CATALOG)?;
    let mut text = format!(
        "$ORIGIN {apex}\n$TTL 0\n@ SOA invalid. invalid. 1 60 10 1209600 0\n@ NS invalid.\nversion TXT \"2\"\n"
    );
    for member in CATALOG_MEMBERS {
        let _ = writeln!(text, "{member}.zones PTR {}", below(origin, member)?);
        let _ = writeln!(text, "group.{member}.zones TXT \"check\"");
    }
    let contents = read_zone(&apex, &text)?;
    write_zone(out, &apex, &contents)
}

/// Writes the zones as parts of the configurations of servers. Only Nonesuch serves NSEC5. Only Nonesuch, and
/// CoreDNS with compact denial, sign online with these keys. CoreDNS does not read NSEC3 records.
fn write_configurations(out: &Path, origin: &Name) -> Result<(), TestZoneError> {
    let mut nonesuch = String::from("version = 1\nlisten = [\"127.0.0.1:5300\"]\n");
    let [mut named, mut nsd] = [String::new(), String::new()];
    let mut knot = String::from("zone:\n");
    let mut corefile = String::new();
    let directory = fs::canonicalize(out).unwrap_or_else(|_| out.to_owned());
    for entry in MECHANISMS {
        let zone = below(origin, entry.name)?;
        let file = file_name(&zone);
        let _ = write!(nonesuch, "\n[zone.\"{file}.\"]\nfile = \"zones/{file}\"\n");
        match entry.mechanism {
            Mechanism::Nsec => push_server_block(&file, &directory, &[], &mut corefile),
            Mechanism::Compact => {
                let keys = key_names(&directory.join("keys").join(&file));
                push_server_block(&file, &directory, &keys, &mut corefile);
            }
            _ => {}
        }
        match (entry.generation, entry.name_hash) {
            (DenialGeneration::Online, _) => {
                let _ = writeln!(nonesuch, "denial = \"{}\"\nkeys = \"keys/{file}\"", entry.name);
            }
            (_, NameHash::Vrf) => {
                let _ = writeln!(nonesuch, "nsec5-keys = \"nsec5/{file}\"");
            }
            _ => push_zone(&file, &directory, [&mut named, &mut nsd, &mut knot]),
        }
    }
    for label in [UNSIGNED, CATALOG].into_iter().chain(CATALOG_MEMBERS) {
        let file = file_name(&below(origin, label)?);
        let _ = write!(nonesuch, "\n[zone.\"{file}.\"]\nfile = \"zones/{file}\"\n");
        if label == UNSIGNED {
            push_server_block(&file, &directory, &[], &mut corefile);
        }
        if !CATALOG_MEMBERS.contains(&label) {
            push_zone(&file, &directory, [&mut named, &mut nsd, &mut knot]);
        }
    }
    let files = [
        ("nonesuch.toml", nonesuch),
        ("named.conf", named),
        ("nsd.conf", nsd),
        ("knot.conf", knot),
        ("Corefile", corefile),
    ];
    for (file, text) in files {
        write_new_file(&out.join(file), PUBLIC, text.as_bytes())?;
    }
    Ok(())
}

/// The paths of the key files in a directory, without suffix.
fn key_names(directory: &Path) -> Vec<String> {
    let files = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let private = files.filter(|path| path.extension().is_some_and(|suffix| suffix == "private"));
    private.map(|path| path.with_extension("").display().to_string()).collect()
}

/// A server block of CoreDNS. With keys, its plugin `dnssec` signs online, with compact denial.
fn push_server_block(file: &str, directory: &Path, keys: &[String], corefile: &mut String) {
    let path = directory.join("zones").join(file);
    let _ = write!(
        corefile,
        "{file}:5300 {{\n  bind 127.0.0.1\n  file {}\n  transfer {{\n    to *\n  }}\n",
        path.display()
    );
    if !keys.is_empty() {
        let _ = write!(corefile, "  dnssec {{\n    key file {}\n  }}\n", keys.join(" "));
    }
    corefile.push_str("}\n");
}

fn push_zone(file: &str, directory: &Path, [named, nsd, knot]: [&mut String; 3]) {
    let path = directory.join("zones").join(file);
    let path = path.display();
    // PowerDNS 4.7 reads this file, too, and does not know the type "primary".
    let _ = writeln!(named, "zone \"{file}\" {{ type master; file \"{path}\"; }};");
    let _ = writeln!(nsd, "zone:\n    name: \"{file}\"\n    zonefile: \"{path}\"");
    let _ = writeln!(knot, "  - domain: \"{file}\"\n    file: \"{path}\"");
}
