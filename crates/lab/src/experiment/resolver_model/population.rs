//! Client populations: what they query.

use super::Parameters;
use super::zones::Zones;
use crate::experiment::error::RunError;
use crate::experiment::run::Findings;
use crate::load::{QueryList, QueryListError};
use crate::testbed::TestbedError;
use crate::zipf::Zipf;
use nonesuch_proto::{Name, Rtype};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

/// Labels of a domain below a top-level domain, in logged names.
const DOMAIN_LABELS: usize = 2;

/// A client population.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PopulationName {
    /// Browsers: addresses of few, popular domains.
    Homes,
    /// Mail servers: MX and TXT records of many domains, and names that do not exist.
    Mail,
    /// The queries of a file.
    Logged,
}

/// What generated clients query, in percent. The numbers are assumptions; document 000 has none.
#[derive(Clone, Copy, Debug, Serialize)]
struct Mixture {
    /// Exponent of the popularity of zones (Zipf's law).
    exponent: f64,
    address: u8,
    /// AAAA records, which no name has.
    missing_type: u8,
    mx: u8,
    txt: u8,
    missing_name: u8,
}

const HOMES: Mixture =
    Mixture { exponent: 1.0, address: 65, missing_type: 25, mx: 0, txt: 0, missing_name: 10 };
const MAIL: Mixture =
    Mixture { exponent: 0.7, address: 20, missing_type: 5, mx: 30, txt: 25, missing_name: 20 };

/// A client population with its queries.
#[derive(Debug)]
pub(super) struct Population {
    name: PopulationName,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Generated(Mixture),
    /// The number of the domain, the number of the name in the domain, and the type.
    Logged(Vec<(u64, u64, Rtype)>),
}

/// The populations of the parameters. One without queries becomes a note.
pub(super) fn possible(
    parameters: &Parameters,
    findings: &mut Findings,
) -> Result<Vec<Population>, RunError> {
    let mut found = Vec::new();
    for name in crate::experiment::parameters::deduplicate(parameters.populations.clone()) {
        let source = match name {
            PopulationName::Homes => Source::Generated(HOMES),
            PopulationName::Mail => Source::Generated(MAIL),
            PopulationName::Logged if parameters.query_file.as_os_str().is_empty() => {
                findings.note("Left out: the population logged: set query-file.".to_owned());
                continue;
            }
            PopulationName::Logged => {
                let list = QueryList::from_file(&parameters.query_file).map_err(TestbedError::Queries)?;
                Source::Logged(numbered(&list))
            }
        };
        found.push(Population { name, source });
    }
    Ok(found)
}

/// Numbers the domains of logged queries in the order of their first appearance, and the names of each domain.
/// The trees do not have the logged names, but order, repetitions and types stay those of the log.
fn numbered(list: &QueryList) -> Vec<(u64, u64, Rtype)> {
    let mut domains: HashMap<Name, (u64, HashMap<Name, u64>)> = HashMap::new();
    let mut queries = Vec::new();
    for question in (0..list.len()).filter_map(|index| list.question(index)) {
        let Ok((name, end)) = Name::from_message(question, 0) else { continue };
        let Some(rtype) = question.get(end..end + 2).and_then(|octets| octets.try_into().ok()) else {
            continue;
        };
        let above = std::iter::successors(Some(name.view()), |name| name.parent());
        let domain =
            above.filter(|name| name.label_count() <= DOMAIN_LABELS).map(|name| name.to_name()).next();
        let Some(domain) = domain else { continue };
        let next = domains.len() as u64;
        let (number, names) = domains.entry(domain).or_insert_with(|| (next, HashMap::new()));
        let next = names.len() as u64;
        queries.push((*number, *names.entry(name).or_insert(next), Rtype(u16::from_be_bytes(rtype))));
    }
    queries
}

impl Population {
    /// The queries `first` to `first + count`. They depend only on the arguments.
    pub(super) fn queries(
        &self,
        zones: &Zones,
        (first, count): (u64, u64),
        seed: u64,
    ) -> Result<Arc<QueryList>, QueryListError> {
        let mut text = String::new();
        match &self.source {
            Source::Generated(mixture) => {
                let zipf = Zipf::new(zones.count(), mixture.exponent);
                let mut random = ChaCha8Rng::seed_from_u64(seed ^ first.rotate_left(32));
                (0..count).for_each(|_| mixture.push_query(zones, &zipf, &mut random, &mut text));
            }
            Source::Logged(queries) => {
                let start = (first % queries.len().max(1) as u64) as usize;
                for (domain, name, rtype) in queries.iter().cycle().skip(start).take(count as usize) {
                    let (host, origin) = (name % zones.names(), zones.origin(*domain));
                    // Writing to a `String` cannot fail.
                    let _ = writeln!(text, "host{host}.{origin} {rtype}");
                }
            }
        }
        Ok(Arc::new(QueryList::parse(Path::new("generated queries"), text.as_bytes())?))
    }

    /// The population for the page.
    pub(super) fn describe(&self) -> serde_json::Value {
        let mixture = match &self.source {
            Source::Generated(mixture) => serde_json::json!(mixture),
            Source::Logged(queries) => serde_json::json!({ "logged": queries.len() }),
        };
        serde_json::json!({ "name": self.to_string(), "mixture": mixture })
    }
}

impl Mixture {
    fn push_query(self, zones: &Zones, zipf: &Zipf, random: &mut ChaCha8Rng, text: &mut String) {
        let origin = zones.origin(zipf.draw(random));
        let host = random.random_range(0..zones.names());
        let mut place = random.random_range(0..100);
        let mut is_chosen = |share: u8| {
            let is_here = place < share;
            place = place.saturating_sub(share);
            is_here
        };
        // Writing to a `String` cannot fail.
        let _ = if is_chosen(self.address) {
            writeln!(text, "host{host}.{origin} A")
        } else if is_chosen(self.missing_type) {
            writeln!(text, "host{host}.{origin} AAAA")
        } else if is_chosen(self.mx) {
            writeln!(text, "{origin} MX")
        } else if is_chosen(self.txt) {
            writeln!(text, "{origin} TXT")
        } else {
            writeln!(text, "x{:06x}.{origin} A", random.random_range(0..0x100_0000))
        };
    }
}

impl fmt::Display for Population {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self.name {
            PopulationName::Homes => "homes",
            PopulationName::Mail => "mail",
            PopulationName::Logged => "logged",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parameters::Count;

    fn zones() -> Zones {
        Zones::new(&Parameters { zones: Count::of(50), ..Parameters::default() }, 1)
    }

    fn questions(list: &QueryList) -> Vec<Vec<u8>> {
        (0..list.len()).filter_map(|index| list.question(index).map(<[u8]>::to_vec)).collect()
    }

    #[test]
    fn a_mixture_has_its_shares() {
        for mixture in [HOMES, MAIL] {
            let Mixture { address, missing_type, mx, txt, missing_name, .. } = mixture;
            assert_eq!(address + missing_type + mx + txt + missing_name, 100);
            let population = Population { name: PopulationName::Mail, source: Source::Generated(mixture) };
            let list = questions(&population.queries(&zones(), (0, 10_000), 7).expect("queries"));
            let share_of = |rtype: Rtype| {
                let wanted = [rtype.0.to_be_bytes(), [0, 1]].concat();
                list.iter().filter(|question| question.ends_with(&wanted)).count() as f64 / 100.0
            };
            let expected = [
                (Rtype::A, address + missing_name),
                (Rtype::AAAA, missing_type),
                (Rtype::MX, mx),
                (Rtype::TXT, txt),
            ];
            for (rtype, share) in expected {
                assert!((share_of(rtype) - f64::from(share)).abs() < 2.0, "{rtype}: {}", share_of(rtype));
            }
        }
    }

    #[test]
    fn logged_queries_keep_order_repetitions_and_types() {
        let text = b"www.a.test A\nb.test AAAA\nWWW.A.test MX\nmail.a.test A\n";
        let source = Source::Logged(numbered(&QueryList::parse(Path::new("list"), text).expect("queries")));
        let population = Population { name: PopulationName::Logged, source };
        let zones = zones();
        let (first, second) = (zones.origin(0), zones.origin(1));
        let expected = format!(
            "host0.{second} AAAA\nhost0.{first} MX\nhost1.{first} A\nhost0.{first} A\nhost0.{second} AAAA\n"
        );
        let expected = QueryList::parse(Path::new("list"), expected.as_bytes()).expect("queries");
        let found = population.queries(&zones, (1, 5), 1).expect("queries");
        assert_eq!(questions(&found), questions(&expected));
    }
}
