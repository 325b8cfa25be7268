//! What is kept of a zone in the state folder: the image that it is answered from, and behind it its records, so that it is
//! mapped after a restart.
//!
//! The image of a zone that is signed when asked is made of the keys too; what those were is kept beside it ([`ImageInputs`]). That of a
//! zone with NSEC5 is made of the zone alone: its VRF key and proofs are loaded each time, and must fit.

use super::activity::{Activity, lock};
use super::build::{BuildRecord, Built, NOTHING_VERIFIED, warn_of_key_signers};
use super::compare::{self, Relation, Seen};
use super::crowded;
use super::image_inputs::{ImageInputs, digest_of, signers_digest};
use super::publish::Version;
use super::settings::{FULL, Making, Source, VerifyChoice, ZoneSettings};
use super::state::{Fingerprint, STATE, ZONE};
use super::zone::Zone;
use super::{Refused, Service};
use crate::image_file::begins_as_image;
use crate::{Published, open_image};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::online::{Nsec5Zone, prepare_keys};
use nonesuch_dnssec::verify::Mode;
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::image::file;
use nonesuch_zone::{Contents, ImageFile, Verification, load_regular, open_compiled, open_regular};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// An image that is served as it is.
pub(super) struct Image {
    published: Published,
    /// When its signatures were verified.
    verified_at: Option<u32>,
    warnings: Vec<String>,
    /// As [`Version::key_digest`].
    key_digest: Option<String>,
}

impl Service {
    /// Writes a version into the state folder.
    pub(super) fn keep(&self, zone: &Zone, built: &Built, origin: &[Fingerprint]) -> Result<(), Refused> {
        let Some(contents) = built.contents.as_ref() else { return Ok(()) };
        self.write_version(zone, built.published.image(), contents, &built.record, origin)
    }

    fn write_version(
        &self,
        zone: &Zone,
        image: &nonesuch_zone::Image,
        contents: &Contents,
        record: &BuildRecord,
        origin: &[Fingerprint],
    ) -> Result<(), Refused> {
        let Some(state) = &self.state else { return Ok(()) };
        let failed = |source| Refused::Keep { path: state.path(&zone.apex, ZONE), source };
        let written = state.write(&zone.apex, ZONE, |mut out| {
            file::write(image, record.of_image, contents, record.of_contents, &mut out)
        });
        written.map_err(failed)?;
        if record.made.is_none() && origin.is_empty() {
            return Ok(());
        }
        let noted = state.note_image(&zone.apex, |facts| {
            facts.inputs.clone_from(&record.made);
            facts.origin = origin.to_vec();
        });
        noted.map_err(failed)
    }

    /// Stores the version of a zone that is served from memory alone, since storing it failed at publication. Waits for a running
    /// publication of the zone.
    ///
    /// # Errors
    /// Those of writing: it is served from memory on.
    pub fn store(&self, apex: &Name) -> Result<(), Refused> {
        let Some(zone) = self.zone(apex).filter(|zone| lock(&zone.facts).unstored.is_some()) else {
            return Ok(());
        };
        let _one = self.begin_work(&zone);
        self.store_version(&zone)
    }

    /// As [`store`](Self::store); the caller holds the zone's [`Working`](super::work::Working).
    pub(super) fn store_version(&self, zone: &Zone) -> Result<(), Refused> {
        let facts = lock(&zone.facts);
        let unstored = facts.unstored.as_ref().map(|unstored| unstored.record.clone());
        let (served, contents) = (facts.served.clone(), facts.contents.clone());
        drop(facts);
        let Some(((record, served), contents)) = unstored.zip(served).zip(contents) else { return Ok(()) };
        self.write_version(zone, served.published().image(), &contents, &record, &[])?;
        lock(&zone.facts).unstored = None;
        let (name, serial) = (zone.apex.to_string(), served.serial());
        tracing::info!(zone = name, serial, "zone {name}: stored, serial {serial}");
        Ok(())
    }

    /// Maps the image that the file at `path` begins with, which is open; `None` where it is none that may be served as it is.
    pub(super) fn serve_image(
        &self,
        zone: &Zone,
        file: ImageFile,
        path: &Path,
        settings: &ZoneSettings,
        origin: &[Fingerprint],
    ) -> Result<Option<Version>, Refused> {
        let image = self.publish_image(file, settings, (None, self.now()))?;
        let version = image.map(|image| version_of(image, path, settings, origin)).transpose()?;
        let Some(mut version) = version else { return Ok(None) };
        let warnings = self.compared(&version, self.seen(zone).as_ref(), Relation::First, settings)?;
        version.warnings.extend(warnings);
        Ok(Some(version))
    }

    /// Takes the image that the file at `path` begins with. With a state folder it is copied there, and the copy alone is mapped, since
    /// whoever writes into a file that is mapped ends the server. `None` where it is none that may be served as it is.
    pub(super) fn take_image(
        &self,
        zone: &Zone,
        path: &Path,
        settings: &ZoneSettings,
        origin: &[Fingerprint],
    ) -> Result<Option<Version>, Refused> {
        let Some(state) = &self.state else {
            let file = if relies_on_files(settings, None) { open_image(path)? } else { None };
            let version = file.map(|file| self.serve_image(zone, file, path, settings, origin));
            return Ok(version.transpose()?.flatten());
        };
        if !relies_on_files(settings, None) || !begins_as_image(path)? {
            return Ok(None);
        }
        let seen = self.seen(zone);
        let held = if settings.keeps_contents() { self.last_version(zone, settings).0 } else { None };
        let failed = |source| Refused::Keep { path: state.path(&zone.apex, ZONE), source };
        let copy =
            |out: &mut std::io::BufWriter<&File>| std::io::copy(&mut open_regular(path)?, out).map(drop);
        let mut taken = Ok(None);
        let check = |part: &Path| {
            taken = self.map_file(part, settings, origin, (None, self.now())).and_then(|version| {
                let Some(mut version) = version else { return Ok(None) };
                let after = version.contents.as_deref();
                let relation = after.map_or(Relation::First, |after| Relation::of(held.as_deref(), after));
                let warnings = self.compared(&version, seen.as_ref(), relation, settings)?;
                version.warnings.extend(warnings);
                self.empty_journal(zone, settings, relation)?;
                Ok(Some((version, relation)))
            });
            matches!(taken, Ok(Some(_)))
        };
        state.write_checked(&zone.apex, ZONE, copy, check).map_err(failed)?;
        let Some((version, relation)) = taken? else { return Ok(None) };
        if let Some(contents) = &version.contents {
            self.add_to_journal(zone, settings, held.as_deref(), relation, contents, &[]);
        }
        Ok(Some(version))
    }

    fn compared(
        &self,
        version: &Version,
        seen: Option<&Seen>,
        relation: Relation,
        settings: &ZoneSettings,
    ) -> Result<Vec<String>, Refused> {
        compare::compared(seen, &version.published, relation, settings, self.now())
    }

    /// Notes what the version that is kept was read from.
    pub(super) fn note_origin(&self, zone: &Zone, origin: &[Fingerprint]) -> Result<(), Refused> {
        let Some(state) = &self.state else { return Ok(()) };
        let failed = |source| Refused::Keep { path: state.path(&zone.apex, STATE), source };
        state.note_image(&zone.apex, |facts| facts.origin = origin.to_vec()).map_err(failed)
    }

    /// Serves what the state folder has of a zone; tells whether it does.
    pub(super) fn serve_kept(&self, zone: &Zone, activity: &Activity) -> bool {
        let settings = zone.settings();
        let is_served = self.serve_kept_as(zone, &settings, &[], activity);
        if is_served && matches!(settings.source, Source::File(_)) {
            let name = zone.apex.to_string();
            tracing::warn!(zone = name, "zone {name}: served as it was published last, out of state-dir");
        }
        is_served
    }

    pub(super) fn serve_kept_as(
        &self,
        zone: &Zone,
        settings: &ZoneSettings,
        origin: &[Fingerprint],
        activity: &Activity,
    ) -> bool {
        let Some(state) = &self.state else { return false };
        let path = state.path(&zone.apex, ZONE);
        if !state.has(&zone.apex, ZONE) {
            return false;
        }
        activity.phase("read");
        let read = |now| match self.map_file(&path, settings, origin, (state.image_inputs(&zone.apex), now)) {
            Ok(Some(version)) => Ok(version),
            _ => self.build_kept(zone, settings, &path, origin, activity, now),
        };
        let now = self.now();
        let version = read(now).or_else(|error| {
            let outdated = verified_at(&path).filter(|at| *at != now).and_then(|at| read(at).ok());
            if outdated.is_some() {
                say_outdated(zone);
            }
            outdated.ok_or(error)
        });
        match version {
            Ok(version) => self.serve(zone, Version { is_new: false, ..version }),
            Err(error) => {
                let name = zone.apex.to_string();
                // What is wrong with a file of its own is nothing that the operator has to mend.
                let rest = match &error {
                    Refused::Load(_) | Refused::Image(_) => {
                        "; what was kept is the server's own: it has the zone anew, and nothing else need be done"
                    }
                    _ => "",
                };
                tracing::warn!(zone = name, "{}: cannot be served: {error}{rest}", path.display());
                false
            }
        }
    }

    fn build_kept(
        &self,
        zone: &Zone,
        settings: &ZoneSettings,
        path: &Path,
        origin: &[Fingerprint],
        activity: &Activity,
        now: u32,
    ) -> Result<Version, Refused> {
        let loaded = load_regular(path, Some(&zone.apex))?;
        let builder = self.builder(settings, activity, now);
        let built = builder.build(loaded.contents, loaded.verification, None)?;
        // The next start is to map it. Where everything is verified each time, none is.
        if settings.verify != VerifyChoice::Full
            && let Err(error) = self.keep(zone, &built, origin)
        {
            let name = zone.apex.to_string();
            tracing::warn!(zone = name, %error, "zone {name}: the next start takes as long as this one: {error}");
        }
        Ok(Version::of(built, settings, origin.to_vec()))
    }

    /// The image that the file at `path` begins with, where it may be served without verifying the zone, with signatures that
    /// are valid at `now`. `made` is what is known of it where it is the image of a zone that is signed when asked.
    pub(super) fn map_file(
        &self,
        path: &Path,
        settings: &ZoneSettings,
        origin: &[Fingerprint],
        (made, now): (Option<ImageInputs>, u32),
    ) -> Result<Option<Version>, Refused> {
        let image = self.open_file(path, settings, (made, now))?;
        image.map(|image| version_of(image, path, settings, origin)).transpose()
    }

    /// As [`map_file`](Self::map_file), without the records behind the image.
    pub(super) fn open_file(
        &self,
        path: &Path,
        settings: &ZoneSettings,
        (made, now): (Option<ImageInputs>, u32),
    ) -> Result<Option<Image>, Refused> {
        if !relies_on_files(settings, made.as_ref()) {
            return Ok(None);
        }
        let Some(file) = open_image(path)? else { return Ok(None) };
        self.publish_image(file, settings, (made, now))
    }

    /// As [`open_file`](Self::open_file), of a file that is open.
    pub(super) fn publish_image(
        &self,
        file: ImageFile,
        settings: &ZoneSettings,
        (made, now): (Option<ImageInputs>, u32),
    ) -> Result<Option<Image>, Refused> {
        if file.image().apex() != settings.apex.view() {
            return Ok(None);
        }
        let (recorded, signatures) = (file.record().verification, file.signatures());
        let recorded = made.as_ref().map_or(recorded, |made| made.verification);
        let Some((published, key_digest)) = self.publish_file(file, settings, (made, now))? else {
            return Ok(None);
        };
        let warnings = crowded::check(published.image(), settings.limits)?;
        let verified_at = match recorded {
            Verification::Full { at } if signatures > 0 => Some(at),
            _ => None,
        };
        Ok(Some(Image { published, verified_at, warnings, key_digest }))
    }

    /// What an image file is served as by a zone's settings, and the digest of the keys that sign it online; `None` where the zone is
    /// to be verified or made anew.
    fn publish_file(
        &self,
        file: ImageFile,
        settings: &ZoneSettings,
        (made, now): (Option<ImageInputs>, u32),
    ) -> Result<Option<(Published, Option<String>)>, Refused> {
        let mode = match settings.verify {
            VerifyChoice::Nothing => None,
            VerifyChoice::Structural => Some(Mode::Structural),
            VerifyChoice::Quick if file.signatures() > FULL => Some(Mode::Structural),
            _ => Some(Mode::Full),
        };
        if mode.is_none() && file.image().apex_rdatas(Rtype::NS).is_empty() {
            return Err(Refused::NoApexNs);
        }
        let is_nsec5 = file.image().nsec5_key().is_some();
        let is_made = matches!(settings.making, Making::Online { .. });
        if settings.requires_dnssec && !is_made && !file.image().is_signed() {
            return Err(Refused::NotSigned);
        }
        let published = match &settings.making {
            Making::AsItIs if !is_nsec5 => Published::from_file(file, mode, now),
            Making::AsItIs | Making::Nsec5 { .. } if is_nsec5 => {
                let zone = Nsec5Zone::of_image(file.image());
                let folder = settings.nsec5_folder()?;
                let source = settings.source.path();
                let prover = (self.key_files.prover)(&folder, source, &zone).map_err(Box::new)?;
                Published::nsec5_from_file(file, prover, mode, now)
            }
            Making::Online { mechanism, keys, validity, .. } if !is_nsec5 => {
                let Some(made) = made else { return Ok(None) };
                let at = settings.key_time(self.now());
                return self.publish_online(file, (*mechanism, keys, *validity, at), &made, (mode, now));
            }
            Making::AsItIs | Making::Nsec5 { .. } | Making::Online { .. } => return Ok(None),
        };
        let zone = settings.apex.to_string();
        let published = published.inspect_err(|reason| {
            tracing::info!(
                zone,
                "zone {zone}: its image is not taken as it is: {reason}; verifying the zone"
            );
        });
        Ok(published.ok().map(|published| (published, None)))
    }

    /// The image of a zone that is signed when asked, where it was made by the same mechanism of the same key records. The
    /// private keys are loaded, and must fit, each time.
    fn publish_online(
        &self,
        file: ImageFile,
        (mechanism, folder, validity, at): (Mechanism, &Path, u32, Option<u32>),
        made: &ImageInputs,
        (mode, now): (Option<Mode>, u32),
    ) -> Result<Option<(Published, Option<String>)>, Refused> {
        let apex = file.image().apex().to_name();
        let keys = (self.key_files.signing)(folder, &apex, at).map_err(Box::new)?;
        if made.digest != digest_of(mechanism, &keys) {
            return Ok(None);
        }
        let key_digest = Some(signers_digest(mechanism, &keys));
        let dnskeys = file.image().apex_rdatas(Rtype::DNSKEY);
        let keys =
            prepare_keys(&apex, &dnskeys, made.has_signed_keys, keys.pairs, validity).map_err(Box::new)?;
        warn_of_key_signers(&apex, &keys);
        let published = Published::online_from_file(file, made.verification, (mechanism, keys), mode, now);
        Ok(published.ok().map(|published| (published, key_digest)))
    }
}

/// Whether an image may be served as its file has it. Who asks for all signatures to be verified does not rely on what a file says,
/// and of a zone that is signed when asked it must be known what it was made of.
fn relies_on_files(settings: &ZoneSettings, made: Option<&ImageInputs>) -> bool {
    let is_unknown = matches!(settings.making, Making::Online { .. }) && made.is_none();
    settings.verify != VerifyChoice::Full && !is_unknown
}

/// What an image is served as, with the records behind it where they are wanted.
fn version_of(
    image: Image,
    path: &Path,
    settings: &ZoneSettings,
    origin: &[Fingerprint],
) -> Result<Version, Refused> {
    let Image { published, verified_at, warnings, key_digest } = image;
    let contents = if settings.keeps_contents() {
        Some(Arc::new(load_regular(path, Some(&settings.apex))?.contents))
    } else {
        None
    };
    let records = count_records(contents.as_deref(), path);
    let verified = match settings.verify {
        VerifyChoice::Nothing => NOTHING_VERIFIED.to_owned(),
        _ => "when its image was made".to_owned(),
    };
    let origin = origin.to_vec();
    let (is_new, unstored) = (true, None);
    let findings = None;
    Ok(Version {
        published,
        contents,
        records,
        verified,
        verified_at,
        origin,
        warnings,
        findings,
        is_new,
        key_digest,
        unstored,
    })
}

/// When a version that is kept was verified, in seconds since 1970 modulo 2^32.
fn verified_at(path: &Path) -> Option<u32> {
    let of_image = open_image(path).ok().flatten().map(|file| file.record().verification);
    let of_contents = || load_regular(path, None).ok().and_then(|loaded| loaded.verification);
    match of_image.filter(|found| *found != Verification::Nothing).or_else(of_contents)? {
        Verification::Full { at } | Verification::Structural { at } | Verification::OtherTables { at } => {
            Some(at)
        }
        Verification::Nothing => None,
    }
}

/// Records of a zone: of those that are not read, the directory in front of them tells.
fn count_records(contents: Option<&Contents>, path: &Path) -> Option<u64> {
    match contents {
        Some(contents) => Some(contents.record_count()),
        None => open_compiled(path, None).ok().flatten().map(|zone| zone.record_count()),
    }
}

/// What has become of its signatures since, or of the clock, does not take a kept zone away: an answer that nobody can validate is
/// still one for those who do not.
fn say_outdated(zone: &Zone) {
    let name = zone.apex.to_string();
    tracing::error!(
        zone = name,
        "zone {name}: its signatures are not valid at this time; it is served as it was published: sign it anew, or set the clock"
    );
}
