//! Output of `nonesuch ctl` about a resolver.

use super::{format_time, process_line, refused_configuration_lines, restart_line};
use crate::arguments::NegativeAnchorCommand;
use crate::control_protocol::{
    CacheFlushed, ManagedKeyStatus, NegativeAnchorStatus, Request, ResolverReload, ResolverStatus,
    addresses_text, parse_response,
};
use crate::files::{FileError, print_line, print_summary};
use serde_json::Value;

pub(super) fn print_resolver_status(status: &ResolverStatus) -> Result<(), FileError> {
    let ResolverStatus { cache, upstream, validation, .. } = status;
    let mebibytes = |octets: u64| octets as f64 / f64::from(1 << 20);
    let mut lines = vec![
        process_line(&status.version, status.pid, status.up_seconds),
        format!("listening on {}, resolver", addresses_text(&status.listen, &status.listen_tls)),
        format!(
            "cache: entries {}, {:.1} of {:.1} MiB; lookups with data {}, without {}",
            cache.entries,
            mebibytes(cache.octets),
            mebibytes(cache.octets_max),
            cache.hits,
            cache.misses
        ),
        format!("datagrams of clients: {} in, {} out", status.datagrams_in, status.datagrams_out),
        format!(
            "servers: queries {}, responses {}, open sockets {}",
            upstream.queries, upstream.responses, upstream.open
        ),
    ];
    lines.extend(validation.keys.iter().map(key_line));
    lines.extend(validation.negative_anchors.iter().map(negative_anchor_line));
    lines.extend(refused_configuration_lines(status.refused_configuration.as_ref()));
    lines.extend(restart_line(&status.needs_restart));
    lines.iter().try_for_each(|line| print_line(line))
}

/// A key of a zone whose trust anchors are updated automatically.
fn key_line(key: &ManagedKeyStatus) -> String {
    let ManagedKeyStatus { zone, tag, algorithm, state, since } = key;
    format!("trust anchor: {zone} key {tag}, algorithm {algorithm}: {state} since {}", format_time(*since))
}

fn negative_anchor_line(anchor: &NegativeAnchorStatus) -> String {
    let NegativeAnchorStatus { zone, until, recheck, configured } = anchor;
    let mut line = format!("negative trust anchor: {zone}");
    if let Some(until) = until {
        line.push_str(&format!(" until {}", format_time(*until)));
    }
    for (is_shown, words) in [(*configured, ", from the configuration"), (!recheck, ", not rechecked")] {
        line.push_str(if is_shown { words } else { "" });
    }
    line
}

pub(super) fn print_resolver_reload(
    ResolverReload { needs_restart }: &ResolverReload,
) -> Result<(), FileError> {
    print_summary("reload: done")?;
    restart_line(needs_restart).map_or(Ok(()), |line| print_line(&line))
}

pub(super) fn print_cache_flushed(CacheFlushed { name, entries }: &CacheFlushed) -> Result<(), FileError> {
    print_summary(&format!("cache: removed entries at and below {name}: {entries}"))
}

pub(super) fn negative_anchor_request(command: &NegativeAnchorCommand) -> Request {
    match command {
        NegativeAnchorCommand::Add { zone, lifetime, no_recheck } => Request::NegativeAnchorAdd {
            zone: zone.to_string(),
            lifetime: (*lifetime).into(),
            recheck: !no_recheck,
        },
        NegativeAnchorCommand::Remove { zone } => Request::NegativeAnchorRemove { zone: zone.to_string() },
        NegativeAnchorCommand::List => Request::NegativeAnchorList {},
    }
}

/// Prints the result of a command; `None` if it has another form.
pub(super) fn print_negative_anchors(
    command: &NegativeAnchorCommand,
    result: &Value,
) -> Option<Result<(), FileError>> {
    Some(match command {
        NegativeAnchorCommand::Add { .. } => print_summary(&negative_anchor_line(&parse_response(result)?)),
        NegativeAnchorCommand::Remove { zone } => {
            print_summary(&format!("negative trust anchor: {zone} removed"))
        }
        NegativeAnchorCommand::List => {
            let all: Vec<NegativeAnchorStatus> = parse_response(result)?;
            all.iter().try_for_each(|anchor| print_line(&negative_anchor_line(anchor)))
        }
    })
}
