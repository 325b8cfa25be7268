//! `nonesuch key generate`: generates a key pair and writes its files.

use super::error::Failure;
use super::print_key;
use crate::arguments::KeyGenerateArguments;
use crate::outcome::CommandOutcome;
use crate::{keys, zones};
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::keys::directory::key_file_paths;
use nonesuch_dnssec::keys::{KeyTimes, SEP, ZONE_KEY};

/// Maximum attempts to generate a key whose tag no other key of its zone and algorithm in the
/// directory has (RFC 4034 appendix B: tags are not unique).
const MAX_ATTEMPTS: usize = 16;

pub(super) fn run(arguments: &KeyGenerateArguments) -> Result<CommandOutcome, Failure> {
    let key = generate(arguments)?;
    keys::warn_about_key(&key);
    keys::store_key(&arguments.dir, &key, &KeyTimes::active_since(zones::time_or_now(arguments.now)))?;
    print_key(&key, arguments.json)?;
    Ok(CommandOutcome::Done)
}

fn generate(arguments: &KeyGenerateArguments) -> Result<KeyPair, Failure> {
    let flags = if arguments.ksk || arguments.csk { ZONE_KEY | SEP } else { ZONE_KEY };
    let make = if arguments.force { KeyPair::generate_any_length } else { KeyPair::generate };
    let zone = arguments.zone.view().to_canonical();
    for _ in 0..MAX_ATTEMPTS {
        let key = make(&zone, flags, algorithm(arguments), arguments.bits)?;
        if !key_file_paths(&arguments.dir, &key.base_name()).iter().any(|path| path.exists()) {
            return Ok(key);
        }
    }
    Err(Failure::NoFreeTag { dir: arguments.dir.clone() })
}

/// The algorithm number of the key. With `--nsec5`, this is the alias number. DNSKEY, key tag, DS,
/// CDS and RRSIG contain it or depend on it.
fn algorithm(arguments: &KeyGenerateArguments) -> Algorithm {
    let named = arguments.algorithm;
    if arguments.nsec5 { named.nsec5_alias().unwrap_or(named) } else { named }
}
