//! `nonesuch zone sign --only-keys`: signs only the key set of a zone, for a server that signs the
//! other records online.

use super::error::Failure;
use super::options::{key_time, output_path, sign_options};
use crate::arguments::SignArguments;
use crate::files::{check_output, print_line, print_summary, write_failure, write_output};
use crate::keys::read_directory;
use crate::keys::{warn_of_readable_keys, world_readable_keys};
use crate::outcome::CommandOutcome;
use crate::zones;
use nonesuch_dnssec::online::{KeySetOptions, sign_key_set};
use nonesuch_dnssec::sign::{SignError, SignWarning};
use nonesuch_dnssec::transition::transition_between;
use nonesuch_proto::Rtype;
use nonesuch_zone::Contents;
use nonesuch_zone::write::write_zone;
use std::path::Path;

pub(super) fn run(arguments: &SignArguments) -> Result<CommandOutcome, Failure> {
    let Some(file) = arguments.file.as_deref() else { return Ok(CommandOutcome::Done) };
    let output = output_path(arguments);
    check_output(&output, file)?;
    let contents = zones::read_zone(file, arguments.origin.as_ref())?;
    warn_of_readable_keys(&world_readable_keys(&arguments.keys, contents.apex()));
    let keys = read_directory(&arguments.keys, contents.apex())?.zone_keys(key_time(arguments))?;
    if contents.apex_rrset(Rtype::ZONEMD).is_some() {
        tracing::warn!(name: "zonemd-omitted", "omitted the ZONEMD records: a zone that is signed online has no fixed digest");
    }
    let times = sign_options(arguments)?;
    let options = KeySetOptions {
        records: keys.published(),
        pairs: keys.pairs,
        inception: times.inception,
        expiration: times.expiration,
        ttl: arguments.dnskey_ttl,
        publish_cds: arguments.cds,
        drop_other_dnskeys: arguments.drop_foreign_dnskeys,
        withdrawn: keys.timing.withdrawn,
        sync: keys.timing.cds,
    };
    let signed = sign_key_set(&contents, &options)?;
    check_transition(&contents, &signed, arguments.resign.allow_unsafe_transition)?;
    write_output(&output, 0o644, |mut out| write_zone(&signed, &mut out).map_err(write_failure(&output)))?;
    if output != Path::new("-") {
        let keys = signed.apex_rrset(Rtype::DNSKEY).map_or(0, |rrset| rrset.count());
        let apex = signed.apex();
        if arguments.json {
            let report = serde_json::json!({ "zone": apex.to_string(), "output": output, "dnskeys": keys });
            print_line(&report.to_string())
        } else {
            print_summary(&format!(
                "{}: zone {apex}: {keys} DNSKEY records, only the key set signed",
                output.display()
            ))
        }?;
    }
    Ok(CommandOutcome::Done)
}

/// Rejects a key set that would break validators that have cached the key set of the input; with
/// `is_allowed`, only warns.
fn check_transition(before: &Contents, after: &Contents, is_allowed: bool) -> Result<(), Failure> {
    let faults = transition_between(before, after);
    if !(faults.is_empty() || is_allowed) {
        return Err(SignError::UnsafeTransition(faults).into());
    }
    for fault in faults {
        tracing::warn!(name: "sign-warning", "{}", SignWarning::UnsafeTransition(fault));
    }
    Ok(())
}
