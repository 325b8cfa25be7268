//! `nonesuch ctl zone status`: the status of zones as text.

use super::format_time;
use crate::control_protocol::{Refresh, Secondary, ZoneReport};
use crate::files::{FileError, print_line};
use nonesuch_secondary::FailingPrimary;

/// Width of the labels of a detailed status, in characters; not less than that of the longest
/// label.
const LABEL_WIDTH: usize = 19;

/// Prints a table of zones or, with `shows_details`, all status lines of each zone.
pub(super) fn print_zones(zones: &[ZoneReport], shows_details: bool) -> Result<(), FileError> {
    if shows_details {
        let mut lines = zones.iter().flat_map(detail_lines);
        return lines.try_for_each(|(label, text)| print_line(&format!("{label:LABEL_WIDTH$} {text}")));
    }
    let rows: Vec<[String; 6]> = zones.iter().map(table_row).collect();
    let mut head = ["zone", "state", "serial", "signatures expire", "served", ""].map(str::to_owned);
    if rows.iter().any(|row| !row[5].is_empty()) {
        head[5].push_str("remarks");
    }
    let mut widths = [0; 6];
    for row in std::iter::once(&head).chain(&rows) {
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = (*width).max(cell.chars().count()));
    }
    for row in std::iter::once(&head).chain(&rows) {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        print_line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// The row of a zone in the table.
fn table_row(zone: &ZoneReport) -> [String; 6] {
    let status = &zone.status;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        status.zone.clone(),
        status.state.as_str().to_owned(),
        or_dash(status.serial.map(|serial| serial.to_string())),
        or_dash(status.nearest_expiration.map(|end| format_time(end.into()))),
        or_dash(status.served.clone()),
        remarks(zone),
    ]
}

/// The remarks about a zone that the operator should check.
fn remarks(zone: &ZoneReport) -> String {
    let status = &zone.status;
    let mut remarks = Vec::new();
    if status.error.is_some() {
        remarks.push("rejected");
    }
    if status.expires_soon {
        let now = jiff::Timestamp::now().as_second();
        let is_expired = status.nearest_expiration.is_some_and(|end| i64::from(end) <= now);
        remarks.push(if is_expired { "signatures expired" } else { "signatures expire soon" });
    }
    if status.storage_error.is_some() {
        remarks.push("not stored");
    }
    if let Some(refresh) = &zone.refresh {
        if !refresh.failing_primaries.is_empty() {
            remarks.push("primary failing");
        } else if refresh.transfer_error.is_some() {
            remarks.push("transfer error");
        }
        if !refresh.behind.is_empty() {
            remarks.push("primary outdated");
        }
    }
    remarks.join(", ")
}

/// The status of a zone as pairs of label and text.
fn detail_lines(zone: &ZoneReport) -> Vec<(&'static str, String)> {
    let mut lines = DetailLines(Vec::new());
    let status = &zone.status;
    lines.add("zone", Some(&status.zone));
    lines.add("state", Some(status.state.as_str()));
    lines.add("serial", status.serial);
    lines.add("served", status.served.as_ref());
    lines.add("source", Some(&status.source));
    lines.add("catalog", status.catalog.as_ref());
    lines.add("template", status.template.as_ref());
    lines.add("records", status.records);
    lines.add("signatures", Some(status.signatures));
    lines.add("verified", status.verified.as_ref());
    lines.add("nearest expiration", status.nearest_expiration.map(|at| format_time(at.into())));
    lines.add("next key event", status.next_key_event.map(|at| format_time(at.into())));
    lines.add("loaded at", status.loaded_at.map(format_time));
    lines.add("image octets", Some(status.image_octets));
    if let Some(refresh) = &zone.refresh {
        lines.add("primary", Some(&refresh.primary));
        lines.add("refresh state", Some(refresh.refresh_state.as_str()));
        lines.add("refreshed", refresh.refreshed.map(format_time));
        lines.add("next refresh", refresh.next_refresh.map(format_time));
        lines.add("expires", refresh.expires.map(format_time));
        lines.add("failing primaries", refresh.failing_primaries.iter().map(failing_primary_text));
    }
    lines.add("secondaries", zone.secondaries.iter().map(secondary_text));
    lines.add("error", status.error.as_ref());
    lines.add("storage error", status.storage_error.as_ref());
    lines.add("warnings", &status.warnings);
    if let Some(Refresh { transfer_error, rejected_serial, behind, .. }) = &zone.refresh {
        lines.add("transfer error", transfer_error.as_ref());
        lines.add("rejected serial", *rejected_serial);
        lines.add("behind", behind);
    }
    lines.0
}

/// Pairs of label and text.
struct DetailLines(Vec<(&'static str, String)>);

impl DetailLines {
    /// Adds a line for each value; none for `None`.
    fn add<T: ToString>(&mut self, label: &'static str, values: impl IntoIterator<Item = T>) {
        self.0.extend(values.into_iter().map(|value| (label, value.to_string())));
    }
}

/// A failing primary, in one line.
fn failing_primary_text(FailingPrimary { address, since, error }: &FailingPrimary) -> String {
    format!("{address} since {}: {error}", format_time(*since))
}

/// A secondary that the server notifies, in one line.
fn secondary_text(secondary: &Secondary) -> String {
    let Secondary { address, notify, query, transfer } = secondary;
    let mut text = format!("{address}: NOTIFY {}", notify.result);
    let mut add_event = |event: &str, serial: Option<u32>, at: u64| {
        let serial = serial.map_or_else(String::new, |serial| format!(" serial {serial}"));
        text.push_str(&format!("{event}{serial} at {}", format_time(at)));
    };
    add_event("", notify.serial, notify.at);
    if let Some(transfer) = transfer {
        add_event(", transferred", Some(transfer.serial), transfer.at);
    }
    if let Some(query) = query {
        add_event(
            if query.serial.is_some() { ", queried with" } else { ", queried" },
            query.serial,
            query.at,
        );
    }
    text
}
