//! A row of the data.

use super::MechanismChoice;
use serde::Serialize;
use serde_json::Value;

/// The names that attackers learnt and the responses that they forged with one mechanism.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    mechanism: String,
    /// The mechanism that the attacker recognised.
    recognised: Option<String>,
    zone_names: u64,
    queries: u64,
    online_operations: u64,
    /// Names that the attacker learnt without guessing them in queries.
    names_offline: u64,
    /// Names that queries for guessed names found.
    names_guessed: u64,
    outsider_attempts: u64,
    outsider_forgeries: u64,
    outsider_methods: String,
    thief_files: String,
    thief_attempts: u64,
    thief_forgeries: u64,
    thief_methods: String,
    /// Names that the thief learnt without a query for each.
    thief_names: u64,
    thief_name_methods: String,
}

impl Row {
    /// `outsider` and `thief` are reports of `nonesuch enumerate`.
    pub(super) fn new(
        mechanism: MechanismChoice,
        zone_names: u64,
        outsider: &Value,
        online_operations: u64,
        thief: &Value,
    ) -> Self {
        let guessed = outsider["guesses"]["found"].as_u64().unwrap_or(0);
        let names = count(&outsider["names"]);
        let (outsider_attempts, outsider_forgeries, outsider_methods) = attempts(&outsider["stolen"]);
        let (thief_attempts, thief_forgeries, thief_methods) = attempts(&thief["stolen"]);
        let (thief_names, thief_name_methods) = searches(&thief["stolen"]);
        Self {
            mechanism: mechanism.to_string(),
            recognised: outsider["mechanism"].as_str().map(str::to_owned),
            zone_names,
            queries: outsider["queries"].as_u64().unwrap_or(0),
            online_operations,
            names_offline: names.saturating_sub(guessed),
            names_guessed: guessed,
            outsider_attempts,
            outsider_forgeries,
            outsider_methods,
            thief_files: texts(&thief["stolen"]["found"]).join(", "),
            thief_attempts,
            thief_forgeries,
            thief_methods,
            thief_names,
            thief_name_methods,
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn count(value: &Value) -> u64 {
    list(value).len() as u64
}

fn texts(value: &Value) -> Vec<&str> {
    list(value).iter().filter_map(Value::as_str).collect()
}

/// The number of forged responses, the number of accepted ones, and all of them as text.
fn attempts(stolen: &Value) -> (u64, u64, String) {
    let all = list(&stolen["attempts"]);
    let accepted = all.iter().filter(|attempt| attempt["accepted"] == true).count() as u64;
    let text = |attempt: &Value| {
        let part = |name: &str| attempt[name].as_str().unwrap_or_default().to_owned();
        format!("{} {}: {}", part("claim"), part("method"), part("status"))
    };
    (all.len() as u64, accepted, all.iter().map(text).collect::<Vec<_>>().join("; "))
}

/// The number of names of the search that finds most, and all searches as text.
fn searches(stolen: &Value) -> (u64, String) {
    let all = list(&stolen["searches"]);
    let most = all.iter().map(|search| count(&search["names"])).max().unwrap_or(0);
    let text = |search: &Value| {
        format!("{}: {} names", search["method"].as_str().unwrap_or_default(), count(&search["names"]))
    };
    (most, all.iter().map(text).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_divided_by_how_they_were_learnt() {
        let attempt =
            |accepted: bool| json!({ "claim": "c", "method": "m", "status": "s", "accepted": accepted });
        let outsider = json!({
            "mechanism": "nsec3", "queries": 40, "names": [{}, {}, {}], "guesses": { "found": 1 },
            "stolen": { "attempts": [attempt(false), attempt(true)], "searches": [], "found": [] },
        });
        let thief = json!({ "stolen": {
            "attempts": [attempt(true)], "found": ["1 VRF key(s)"],
            "searches": [{ "method": "stored", "names": [{}, {}] }, { "method": "searched", "names": [{}] }],
        } });
        let row = Row::new(MechanismChoice(None), 9, &outsider, 5, &thief);
        assert_eq!((row.names_offline, row.names_guessed, row.zone_names), (2, 1, 9));
        assert_eq!((row.outsider_attempts, row.outsider_forgeries), (2, 1));
        assert_eq!(row.outsider_methods, "c m: s; c m: s");
        assert_eq!((row.thief_forgeries, row.thief_names, row.thief_files.as_str()), (1, 2, "1 VRF key(s)"));
        assert_eq!(row.thief_name_methods, "stored: 2 names; searched: 1 names");
    }
}
