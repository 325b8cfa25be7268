//! Denial of existence (XA-004 to XA-008, XA-020).

use super::super::{Evidence, Outcome, Response, Row};
use super::cases::Cases;
use super::responses::{answers, expect_aa, expect_negative, expect_rcode, proved_text, records};
use super::{Authoritative, Fault, quick, row};
use crate::enumerate::Recognised;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::denial::nsec3::Nsec3;
use nonesuch_dnssec::validate::ProvedAnswer;
use nonesuch_proto::message::{Rcode, Section};
use nonesuch_proto::{Name, Rtype, bitmap, edns};

/// A type that no zone has (RFC 8906 §8.1.2).
pub(super) const UNKNOWN_TYPE: Rtype = Rtype(1000);

pub(super) const ITEMS: &[Row<Authoritative>] = &[
    quick(row(
        "XA-004",
        "Proves NODATA, NXDOMAIN and answers from wildcards",
        &["RFC 2308 §2", "RFC 2308 §3", "RFC 4035 §3.1.3", "RFC 5155 §7.2", "RFC 4470 §3", "RFC 9824 §3"],
        "Queries for a type that the apex does not have and for random names, and in a test zone for names next to, \
         below and at a wildcard. The validator checks each proof; response code, AA and SOA are checked in unsigned \
         zones, too.",
        denials,
    )),
    row(
        "XA-005",
        "Answers NODATA for an empty non-terminal",
        &["RFC 4592 §2.2.2", "RFC 8020 §3.1", "RFC 5155 §7.2.3", "RFC 9824 §3.2"],
        "Queries for names of a test zone that have no records, but names below them.",
        empty_non_terminals,
    ),
    quick(row(
        "XA-006",
        "Answers for the owner of an NSEC3 record as if it did not exist",
        &["RFC 5155 §7.2.8"],
        "Queries for the owner of an NSEC3 record from a denial: for NSEC3, and for A.",
        nsec3_owner,
    )),
    quick(row(
        "XA-007",
        "Has an NSEC3PARAM record with the parameters of the NSEC3 records",
        &["RFC 5155 §4", "RFC 5155 §4.1.2", "RFC 5155 §7.1"],
        "A query for NSEC3PARAM at the apex. Its flags are zero, and its parameters are those of the NSEC3 records of a \
         denial.",
        nsec3param,
    )),
    quick(row(
        "XA-008",
        "Uses NSEC3 without extra iterations and without salt",
        &["RFC 9276 §3.1"],
        "The parameters of the NSEC3 records of a denial.",
        nsec3_parameters,
    )),
];

pub(super) const COMPACT: &[Row<Authoritative>] = &[quick(row(
    "XA-020",
    "Signals NXDOMAIN of compact denial with the CO flag",
    &["RFC 9824 §3.1", "RFC 9824 §3.5", "RFC 9824 §5", "RFC 9824 §5.1"],
    "Queries for a random name with DO, with DO and CO, and without DO, and a query for the type NXNAME. A server may \
     ignore CO, and may answer NOERROR without DO: both are noted. With another mechanism: the CO flag has no effect.",
    compact,
))];

/// What a denial needs to be correct for an unsigned zone, too.
struct Denial<'c> {
    name: Name,
    rtype: Rtype,
    /// What the response proves; the first one is named in messages.
    proved: &'c [ProvedAnswer],
    rcodes: &'c [Rcode],
}

impl Authoritative {
    /// The mechanism, if it was recognised.
    pub(super) const fn mechanism(&self) -> Option<Mechanism> {
        match self.recognised {
            Some(Recognised::Mechanism(mechanism)) => Some(mechanism),
            _ => None,
        }
    }

    /// Response codes for a name that does not exist. Compact denial without CO has NOERROR (RFC 9824 §3.1).
    fn nxdomain_codes(&self) -> &'static [Rcode] {
        match self.mechanism() {
            Some(Mechanism::Compact) => &[Rcode::NOERROR, Rcode::NXDOMAIN],
            _ => &[Rcode::NXDOMAIN],
        }
    }

    fn denied(&self, evidence: &mut Evidence, denial: &Denial<'_>) -> Result<Response, Fault> {
        let Denial { name, rtype, proved: expected, rcodes } = denial;
        let (response, proved) = self.prove(evidence, name, *rtype)?;
        match (proved, expected) {
            (Some(proved), [first, ..]) if !expected.contains(&proved) => Err(format!(
                "{name} {rtype}: expected a proof {}, the response proves {}",
                proved_text(first),
                proved_text(&proved)
            )),
            _ => expect_negative(&response, &self.zone, rcodes).map(|()| response),
        }
    }

    /// The NSEC3 records of the denial of a random name, with the owner.
    fn nsec3_records(&self, evidence: &mut Evidence) -> Result<Vec<(Name, Vec<u8>)>, Fault> {
        let name = self.random_name(&self.zone)?;
        let response = self.ask(evidence, &self.query(&name, Rtype::A))?;
        let records = records(&response.message, Section::Authority, Rtype::NSEC3);
        Ok(records.map(|record| (record.owner.clone(), record.rdata.clone())).collect())
    }

    /// Why an item about NSEC3 cannot be tested.
    fn without_nsec3(&self) -> Option<Outcome> {
        let has_nsec3 = self.mechanism().is_some_and(|mechanism| mechanism.name_hash() == NameHash::Sha1);
        (!has_nsec3).then(|| Outcome::NotTestable("the zone does not use NSEC3".to_owned()))
    }
}

/// XA-004.
fn denials(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    if let Err(fault) = denial_cases(check, evidence, &mut cases) {
        cases.add("names", Err(fault));
    }
    match check.mechanism() {
        Some(mechanism) => cases.note(mechanism.entry().title),
        None if !check.is_signed() => cases.note("without proofs: the zone is unsigned"),
        None => {}
    }
    cases.outcome()
}

fn denial_cases(check: &Authoritative, evidence: &mut Evidence, cases: &mut Cases) -> Result<(), Fault> {
    let zone = check.zone.clone();
    let nodata = |name: Name, rtype| Denial {
        name,
        rtype,
        proved: &[ProvedAnswer::NoData],
        rcodes: &[Rcode::NOERROR],
    };
    let result = check.denied(evidence, &nodata(zone.clone(), UNKNOWN_TYPE));
    cases.add("NODATA at the apex", result.map(drop));
    let missing = check.random_name(&zone)?;
    if !check.is_test_zone && has_wildcard(check, evidence, &missing)? {
        cases.note("a wildcard below the apex matches random names");
        let (_, proved) = check.prove(evidence, &missing, UNKNOWN_TYPE)?;
        let is_proved = proved.is_none_or(|proved| proved == ProvedAnswer::WildcardNoData);
        cases.add("wildcard", if is_proved { Ok(()) } else { Err("the wildcard is not proved".to_owned()) });
        return Ok(());
    }
    let deeper = check.random_name(&missing)?;
    for (case, name) in [("NXDOMAIN", missing), ("NXDOMAIN two labels below the closest encloser", deeper)] {
        cases.add(case, nxdomain(check, evidence, name));
    }
    if check.is_test_zone {
        cases.add("NODATA", check.denied(evidence, &nodata(check.name("www")?, Rtype::MX)).map(drop));
        let below = check.random_name(&check.name("www")?)?;
        cases.add("NXDOMAIN below a name", nxdomain(check, evidence, below));
        wildcard_cases(check, evidence, cases)?;
    } else {
        cases.skip("no wildcard of the zone is known: load a test zone (--write-test-zones)");
    }
    Ok(())
}

fn nxdomain(check: &Authoritative, evidence: &mut Evidence, name: Name) -> Result<(), Fault> {
    let rcodes = check.nxdomain_codes();
    let denial = Denial { name, rtype: Rtype::A, proved: &[ProvedAnswer::NxDomain], rcodes };
    check.denied(evidence, &denial).map(drop)
}

/// Whether a random name exists, because a wildcard matches it.
fn has_wildcard(check: &Authoritative, evidence: &mut Evidence, name: &Name) -> Result<bool, Fault> {
    let response = check.ask(evidence, &check.query(name, UNKNOWN_TYPE).without_do())?;
    Ok(response.message.rcode() == Rcode::NOERROR && check.mechanism() != Some(Mechanism::Compact))
}

/// An answer from a wildcard. With compact denial, the server signs it at the query name (RFC 9824 §3.3).
fn wildcard_answer(check: &Authoritative, evidence: &mut Evidence, name: &Name) -> Result<Response, Fault> {
    let expected = match check.mechanism() {
        Some(Mechanism::Compact) => ProvedAnswer::Answer,
        _ => ProvedAnswer::WildcardAnswer,
    };
    check.expect(evidence, name, Rtype::TXT, &expected)
}

fn wildcard_cases(check: &Authoritative, evidence: &mut Evidence, cases: &mut Cases) -> Result<(), Fault> {
    let matching = check.random_name(&check.name("wild")?)?;
    let deeper = check.random_name(&matching)?;
    for (case, name) in [("wildcard answer", &matching), ("wildcard answer two labels below", &deeper)] {
        let result = wildcard_answer(check, evidence, name).and_then(|response| {
            expect_rcode(&response, &[Rcode::NOERROR])?;
            expect_aa(&response, true)?;
            match answers(&response.message, name, Rtype::TXT).count() {
                0 => Err(format!("the answer has no TXT record of {name}")),
                _ => Ok(()),
            }
        });
        cases.add(case, result);
    }
    // Online mechanisms deny the type at the name itself.
    let proved = [ProvedAnswer::WildcardNoData, ProvedAnswer::NoData];
    let denial = Denial { name: matching, rtype: Rtype::MX, proved: &proved, rcodes: &[Rcode::NOERROR] };
    cases.add("wildcard NODATA", check.denied(evidence, &denial).map(drop));
    let wildcard = check.name("*.wild")?;
    let result = check.expect(evidence, &wildcard, Rtype::TXT, &ProvedAnswer::Answer);
    cases.add("the wildcard itself", result.and_then(|response| expect_rcode(&response, &[Rcode::NOERROR])));
    Ok(())
}

/// XA-005.
fn empty_non_terminals(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    if !check.is_test_zone {
        cases.skip("no empty non-terminal of the zone is known: load a test zone (--write-test-zones)");
        return cases.outcome();
    }
    for label in ["ent", "deep", "b.deep", "a.b.deep", "wild", "below-ent"] {
        let result = check.name(label).and_then(|name| {
            let denial =
                Denial { name, rtype: Rtype::A, proved: &[ProvedAnswer::NoData], rcodes: &[Rcode::NOERROR] };
            check.denied(evidence, &denial).map(drop)
        });
        cases.add(label, result);
    }
    let result = check.name("leaf.ent").and_then(|name| {
        let response = check.expect(evidence, &name, Rtype::A, &ProvedAnswer::Answer)?;
        expect_rcode(&response, &[Rcode::NOERROR])
    });
    cases.add("leaf.ent", result);
    cases.outcome()
}

/// XA-006.
fn nsec3_owner(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    if let Some(outcome) = check.without_nsec3() {
        return outcome;
    }
    let mut cases = Cases::default();
    match check.nsec3_records(evidence) {
        Ok(records) => match records.first() {
            Some((owner, _)) => {
                for rtype in [Rtype::NSEC3, Rtype::A] {
                    cases.add(&format!("{owner} {rtype}"), does_not_exist(check, evidence, owner, rtype));
                }
            }
            None => cases.add("denial", Err("the denial has no NSEC3 record".to_owned())),
        },
        Err(fault) => cases.add("denial", Err(fault)),
    }
    cases.outcome()
}

/// Checks that a name does not exist, although a wildcard may match it.
fn does_not_exist(
    check: &Authoritative,
    evidence: &mut Evidence,
    name: &Name,
    rtype: Rtype,
) -> Result<(), Fault> {
    let (response, proved) = check.prove(evidence, name, rtype)?;
    match proved {
        Some(ProvedAnswer::WildcardAnswer | ProvedAnswer::WildcardNoData) => {
            expect_rcode(&response, &[Rcode::NOERROR])
        }
        Some(ProvedAnswer::NxDomain) => expect_rcode(&response, &[Rcode::NXDOMAIN]),
        Some(other) => Err(format!(
            "expected a proof that the name does not exist, the response proves {}",
            proved_text(&other)
        )),
        None => Err("the zone is unsigned".to_owned()),
    }
}

/// XA-007.
fn nsec3param(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    if let Some(outcome) = check.without_nsec3() {
        return outcome;
    }
    let mut cases = Cases::default();
    match check_nsec3param(check, evidence) {
        // RFC 5155 §4: servers select a chain by this record. Records generated online are no chain.
        Err(_) if check.mechanism() == Some(Mechanism::WhiteLies) && !has_nsec3param(check, evidence) => {
            cases.skip("the server generates NSEC3 records online and has no NSEC3PARAM record");
        }
        Ok(note) => {
            cases.add("NSEC3PARAM", Ok(()));
            cases.note(note);
        }
        Err(fault) => cases.add("NSEC3PARAM", Err(fault)),
    }
    cases.outcome()
}

fn has_nsec3param(check: &Authoritative, evidence: &mut Evidence) -> bool {
    let response = check.ask(evidence, &check.query(&check.zone, Rtype::NSEC3PARAM));
    response.is_ok_and(|response| answers(&response.message, &check.zone, Rtype::NSEC3PARAM).next().is_some())
}

/// Returns the TTL.
fn check_nsec3param(check: &Authoritative, evidence: &mut Evidence) -> Result<String, Fault> {
    let response = check.expect(evidence, &check.zone, Rtype::NSEC3PARAM, &ProvedAnswer::Answer)?;
    let parameters: Vec<_> = answers(&response.message, &check.zone, Rtype::NSEC3PARAM).collect();
    // RFC 5155 §4.1.2: records with other flags are ignored.
    let Some(record) = parameters.iter().find(|record| record.rdata.get(1) == Some(&0)) else {
        return Err(format!("none of {} NSEC3PARAM records has flags 0", parameters.len()));
    };
    let denial = check.nsec3_records(evidence)?;
    let Some(nsec3) = denial.first().and_then(|(_, rdata)| Nsec3::parse(rdata)) else {
        return Err("the denial has no NSEC3 record".to_owned());
    };
    // Hash algorithm, flags, iterations, length of the salt, salt.
    let is_same = |rdata: &[u8]| match rdata {
        [hash, 0, high, low, _, salt @ ..] => {
            (*hash, u16::from_be_bytes([*high, *low]), salt)
                == (nsec3.algorithm, nsec3.iterations, nsec3.salt)
        }
        _ => false,
    };
    if !parameters.iter().any(|record| is_same(&record.rdata)) {
        return Err("no NSEC3PARAM record has the parameters of the NSEC3 records of the denial".to_owned());
    }
    Ok(format!("TTL {} s", record.ttl))
}

/// XA-008.
fn nsec3_parameters(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    if let Some(outcome) = check.without_nsec3() {
        return outcome;
    }
    let mut cases = Cases::default();
    let result = check.nsec3_records(evidence).and_then(|records| {
        let Some(nsec3) = records.first().and_then(|(_, rdata)| Nsec3::parse(rdata)) else {
            return Err("the denial has no NSEC3 record".to_owned());
        };
        match (nsec3.iterations, nsec3.salt) {
            (0, []) => Ok(()),
            (0, salt) => Err(format!("the salt has {} octets, expected none", salt.len())),
            (iterations, _) => Err(format!("{iterations} extra iterations, expected 0")),
        }
    });
    cases.add("NSEC3", result);
    cases.outcome()
}

/// XA-020.
fn compact(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    if !check.is_signed() {
        cases.skip("the zone is unsigned");
        return cases.outcome();
    }
    let result = if check.mechanism() == Some(Mechanism::Compact) {
        compact_cases(check, evidence, &mut cases)
    } else {
        co_without_effect(check, evidence, &mut cases)
    };
    if let Err(fault) = result {
        cases.add("queries", Err(fault));
    }
    cases.outcome()
}

/// The CO flag with another mechanism.
fn co_without_effect(check: &Authoritative, evidence: &mut Evidence, cases: &mut Cases) -> Result<(), Fault> {
    let name = check.random_name(&check.zone)?;
    let plain = check.ask(evidence, &check.query(&name, Rtype::A))?;
    let mut query = check.query(&name, Rtype::A);
    query.edns_flags |= edns::CO;
    let response = check.ask(evidence, &query)?;
    cases.add("DO and CO", expect_rcode(&response, &[plain.message.rcode()]));
    cases.note("not compact denial: the CO flag has no effect");
    Ok(())
}

fn compact_cases(check: &Authoritative, evidence: &mut Evidence, cases: &mut Cases) -> Result<(), Fault> {
    let name = check.random_name(&check.zone)?;
    let response = check.expect(evidence, &name, Rtype::A, &ProvedAnswer::NxDomain);
    let result = response.and_then(|response| {
        expect_rcode(&response, &[Rcode::NOERROR])?;
        expect_nxname(&response)
    });
    cases.add("DO", result);
    let mut query = check.query(&name, Rtype::A);
    query.edns_flags |= edns::CO;
    let response = check.ask(evidence, &query)?;
    let has_co = response.message.opt().is_some_and(|opt| opt.ttl as u16 & edns::CO != 0);
    // RFC 9824 §5.1: a server that implements the flag returns it with NXDOMAIN.
    let expected = if has_co { Rcode::NXDOMAIN } else { Rcode::NOERROR };
    cases.add("DO and CO", expect_rcode(&response, &[expected]).and_then(|()| expect_nxname(&response)));
    if !has_co {
        cases.note("does not implement the CO flag");
    }
    let response = check.ask(evidence, &check.query(&name, Rtype::A).without_do())?;
    cases.add("without DO", expect_rcode(&response, &[Rcode::NXDOMAIN, Rcode::NOERROR]));
    if response.message.rcode() == Rcode::NOERROR {
        cases.note("answers NOERROR without DO");
    }
    let response = check.ask(evidence, &check.query(&name, Rtype::NXNAME))?;
    cases.add("query for NXNAME", expect_rcode(&response, &[Rcode::FORMERR]));
    Ok(())
}

/// The NSEC record at the name lists the type NXNAME.
fn expect_nxname(response: &Response) -> Result<(), Fault> {
    let mut records = records(&response.message, Section::Authority, Rtype::NSEC);
    let has_nxname = records.any(|record| {
        let map = nonesuch_dnssec::denial::type_bitmap(Rtype::NSEC, &record.rdata).unwrap_or_default();
        bitmap::is_valid(map) && bitmap::types(map).any(|rtype| rtype == Rtype::NXNAME)
    });
    if has_nxname { Ok(()) } else { Err("no NSEC record lists NXNAME".to_owned()) }
}
