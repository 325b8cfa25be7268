//! `nonesuch zone generate`.

use crate::Outcome;
use crate::arguments::GenerateArguments;
use crate::error::Failure;
use crate::files::write_output;
use nonesuch_lab::generate::{GenerateOptions, QueryKind, generate, queries};

pub(crate) fn run(arguments: &GenerateArguments) -> Result<Outcome, Failure> {
    let origin = arguments.origin.to_string();
    let options = GenerateOptions {
        like: arguments.like,
        names: arguments.names,
        seed: arguments.seed,
        origin: &origin,
    };
    write_output(&arguments.output, 0o644, |mut out| {
        generate(&options, &mut out)?;
        Ok(())
    })?;
    if let Some(path) = &arguments.queries {
        let kind = match arguments.denied {
            0 => QueryKind::Existing,
            100 => QueryKind::Denied,
            denied_percent => QueryKind::Mixed { denied_percent },
        };
        write_output(path, 0o644, |mut out| {
            queries(&options, kind, arguments.query_count, arguments.seed, &mut out)?;
            Ok(())
        })?;
    }
    Ok(Outcome::Done)
}
