//! `nonesuch key generate`.

use crate::Outcome;
use crate::arguments::KeyGenerateArguments;
use crate::error::Failure;
use crate::files::print_line;
use crate::{keys, zones};
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::keys::{SEP, ZONE_KEY};

/// Attempts at a key whose tag no other key of the folder has (RFC 4034 appendix B: tags are not unique).
const ATTEMPTS: usize = 16;

pub(crate) fn run(arguments: &KeyGenerateArguments) -> Result<Outcome, Failure> {
    let flags = if arguments.ksk || arguments.csk { ZONE_KEY | SEP } else { ZONE_KEY };
    let key = generate(arguments, flags)?;
    let failed = |source| Failure::Write { path: arguments.dir.clone(), source };
    std::fs::create_dir_all(&arguments.dir).map_err(failed)?;
    keys::store(&arguments.dir, &key, zones::now_or(arguments.now))?;
    if arguments.json {
        let report = serde_json::json!({
            "base_name": key.base_name(), "zone": key.owner.to_string(), "algorithm": key.algorithm().to_string(),
            "tag": key.tag(), "flags": key.flags,
        });
        print_line(&report.to_string())?;
    } else {
        print_line(&key.base_name())?;
    }
    Ok(Outcome::Done)
}

fn generate(arguments: &KeyGenerateArguments, flags: u16) -> Result<KeyPair, Failure> {
    for _ in 0..ATTEMPTS {
        let zone = arguments.zone.view().to_canonical();
        let key = KeyPair::generate(&zone, flags, arguments.algorithm, arguments.bits)?;
        let base = key.base_name();
        if !arguments.dir.join(format!("{base}.private")).exists()
            && !arguments.dir.join(format!("{base}.key")).exists()
        {
            return Ok(key);
        }
    }
    Err(Failure::NoFreeTag { dir: arguments.dir.clone() })
}
