//! Records with a meaning of their own: CDS and CDNSKEY, catalog zones, DNAME (XA-019, XA-021, XA-023).

use super::super::{Evidence, Outcome, Row};
use super::cases::Cases;
use super::responses::{answers, expect_aa, expect_rcode, proved_text, records};
use super::{Authoritative, Fault, quick, row, test_zone};
use nonesuch_crypto::DigestType;
use nonesuch_dnssec::keys::ds_rdata;
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_dnssec::validate::ProvedAnswer;
use nonesuch_proto::message::{Message, Rcode, Section};
use nonesuch_proto::{Name, NameRef, Rtype};

pub(super) const CDS: &[Row<Authoritative>] = &[quick(row(
    "XA-019",
    "Serves consistent CDS and CDNSKEY records",
    &["RFC 7344 §4", "RFC 7344 §4.1", "RFC 8078 §4", "RFC 9615 §4.1"],
    "Queries for CDS and CDNSKEY at the apex: both match, a CDS record matches a DNSKEY record, or both request the \
     removal of the DS RRset. In a test zone also the records for bootstrapping of a child.",
    cds,
))];

pub(super) const CATALOG: &[Row<Authoritative>] = &[row(
    "XA-021",
    "Serves the member zones of a catalog zone",
    &["RFC 9432 §4.2.1", "RFC 9432 §4.1", "RFC 9432 §5.1"],
    "If the zone is the catalog zone of the test zones: its version is 2, and the server is authoritative for the \
     member zones, which only a consumer of the catalog serves.",
    catalog,
)];

pub(super) const DNAME: &[Row<Authoritative>] = &[row(
    "XA-023",
    "Synthesises CNAME records from a DNAME record",
    &["RFC 6672 §2.2", "RFC 6672 §3.1", "RFC 6672 §5.3.1"],
    "Queries below two DNAME records of a test zone: the DNAME RRset is signed, the CNAME record is not, and a target \
     that is too long causes YXDOMAIN.",
    dname,
)];

/// CDS RDATA that requests the removal of the DS RRset, and the same of CDNSKEY (RFC 8078 §4).
const DELETE: (&[u8], &[u8]) = (&[0, 0, 0, 0, 0], &[0, 0, 3, 0, 0]);

/// XA-019.
fn cds(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    if !check.is_signed() {
        cases.skip("the zone is unsigned");
        return cases.outcome();
    }
    match check_cds(check, evidence, &check.zone) {
        Ok(note) => {
            cases.add("CDS at the apex", Ok(()));
            cases.note(note);
        }
        Err(fault) => cases.add("CDS at the apex", Err(fault)),
    }
    if check.is_test_zone {
        cases.add("bootstrapping records", bootstrap(check, evidence));
    }
    cases.outcome()
}

/// The RDATA of the records of an RRset that exists or is denied.
fn rdatas(
    check: &Authoritative,
    evidence: &mut Evidence,
    name: &Name,
    rtype: Rtype,
) -> Result<Vec<Vec<u8>>, Fault> {
    let (response, proved) = check.prove(evidence, name, rtype)?;
    expect_rcode(&response, &[Rcode::NOERROR])?;
    let rdatas: Vec<Vec<u8>> =
        answers(&response.message, name, rtype).map(|record| record.rdata.clone()).collect();
    match (proved, rdatas.is_empty()) {
        (Some(ProvedAnswer::Answer), false) | (Some(ProvedAnswer::NoData), true) => Ok(rdatas),
        (proved, _) => {
            let proved = proved.as_ref().map_or_else(|| "nothing".to_owned(), proved_text);
            Err(format!("{name} {rtype}: the response has {} records and proves {proved}", rdatas.len()))
        }
    }
}

/// Returns what the records request.
fn check_cds(check: &Authoritative, evidence: &mut Evidence, owner: &Name) -> Result<String, Fault> {
    let cds = rdatas(check, evidence, owner, Rtype::CDS)?;
    let cdnskey = rdatas(check, evidence, owner, Rtype::CDNSKEY)?;
    if cds.is_empty() && cdnskey.is_empty() {
        return Ok("no CDS and CDNSKEY records".to_owned());
    }
    let deletes = cds.iter().any(|rdata| rdata == DELETE.0) || cdnskey.iter().any(|rdata| rdata == DELETE.1);
    if deletes {
        // RFC 8078 §4: the record is the only one.
        let is_only = |rdatas: &[Vec<u8>], delete: &[u8]| {
            rdatas.is_empty() || (rdatas.len() == 1 && rdatas[0] == delete)
        };
        return if is_only(&cds, DELETE.0) && is_only(&cdnskey, DELETE.1) {
            Ok("CDS and CDNSKEY request the removal of the DS RRset".to_owned())
        } else {
            Err("records that request the removal of the DS RRset are not the only ones".to_owned())
        };
    }
    // RFC 7344 §4: both RRsets match in content.
    let matches = |cds: &[u8], key: &[u8]| is_ds_of(owner.view(), cds, key);
    if !cds.is_empty() && !cdnskey.is_empty() {
        let is_unmatched = |key: &Vec<u8>| !cds.iter().any(|cds| matches(cds, key));
        if cdnskey.iter().any(is_unmatched)
            || cds.iter().any(|cds| !cdnskey.iter().any(|key| matches(cds, key)))
        {
            return Err("the CDS and CDNSKEY RRsets do not match".to_owned());
        }
    }
    if *owner == check.zone {
        let keys = rdatas(check, evidence, owner, Rtype::DNSKEY)?;
        let is_present = |key: &Vec<u8>| cdnskey.contains(key) || cds.iter().any(|cds| matches(cds, key));
        if !keys.iter().any(is_present) {
            return Err("no DNSKEY record of the zone matches a CDS or CDNSKEY record".to_owned());
        }
    }
    Ok(format!("{} CDS and {} CDNSKEY records", cds.len(), cdnskey.len()))
}

fn is_ds_of(owner: NameRef<'_>, ds: &[u8], dnskey: &[u8]) -> bool {
    ds.get(3)
        .and_then(|digest| ds_rdata(owner, dnskey, DigestType(*digest)))
        .is_some_and(|computed| computed == ds)
}

/// The records for the bootstrapping of the child `signed` (RFC 9615 §4.1).
fn bootstrap(check: &Authoritative, evidence: &mut Evidence) -> Result<(), Fault> {
    let child = check.name("signed")?;
    let owner = check.name(&test_zone::bootstrap_label(&check.zone))?;
    let cds = rdatas(check, evidence, &owner, Rtype::CDS)?;
    let cdnskey = rdatas(check, evidence, &owner, Rtype::CDNSKEY)?;
    match (cds.first(), cdnskey.first()) {
        (Some(cds), Some(key)) if is_ds_of(child.view(), cds, key) => Ok(()),
        (Some(_), Some(_)) => Err("the CDS record does not match the CDNSKEY record".to_owned()),
        _ => Err(format!("expected CDS and CDNSKEY records at {owner}")),
    }
}

/// XA-021.
fn catalog(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    if let Err(fault) = catalog_cases(check, evidence, &mut cases) {
        cases.add("catalog zone", Err(fault));
    }
    cases.outcome()
}

fn catalog_cases(check: &Authoritative, evidence: &mut Evidence, cases: &mut Cases) -> Result<(), Fault> {
    let version = check.name("version")?;
    let response = check.ask(evidence, &check.query(&version, Rtype::TXT))?;
    // RFC 9432 §4.2.1: one TXT record with the version.
    let versions: Vec<&[u8]> =
        answers(&response.message, &version, Rtype::TXT).map(|record| record.rdata.as_slice()).collect();
    match versions[..] {
        [b"\x012"] => {}
        [] => {
            cases.skip(
                "the zone is not a catalog zone (it has no version property): load the catalog of the test zones",
            );
            return Ok(());
        }
        _ => return Err("the version property is not one TXT record with the text 2".to_owned()),
    }
    let mut refused = Vec::new();
    for label in test_zone::CATALOG_MEMBERS {
        let Some(zone) = listed_member(check, evidence, label)? else { continue };
        let response = check.ask(evidence, &check.query(&zone, Rtype::SOA))?;
        let result = expect_rcode(&response, &[Rcode::NOERROR]).and_then(|()| expect_aa(&response, true));
        match result {
            Ok(()) => cases.add(&format!("member {zone}"), Ok(())),
            Err(fault) => refused.push((zone, fault)),
        }
    }
    // A server that serves none of the members is no consumer, or has not transferred them yet.
    let is_consumer = cases.has_passed();
    if refused.is_empty() && !is_consumer {
        cases.skip("the members of the catalog zone are unknown: load the catalog of the test zones");
    }
    for (zone, fault) in refused {
        if is_consumer {
            cases.add(&format!("member {zone}"), Err(fault));
        } else {
            cases.skip("the server serves no member: configure it as a consumer of the catalog zone");
        }
    }
    Ok(())
}

/// The member zone that the member node with this label lists.
fn listed_member(check: &Authoritative, evidence: &mut Evidence, label: &str) -> Result<Option<Name>, Fault> {
    let node = check.name(&format!("{label}.zones"))?;
    let response = check.ask(evidence, &check.query(&node, Rtype::PTR))?;
    let listed = answers(&response.message, &node, Rtype::PTR).next();
    Ok(listed.and_then(|record| NameRef::from_wire(&record.rdata).ok()).map(NameRef::to_name))
}

/// XA-023.
fn dname(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    if !check.is_test_zone {
        cases.skip("no DNAME record of the zone is known: load a test zone (--write-test-zones)");
        return cases.outcome();
    }
    cases.add("alias", synthesised(check, evidence));
    cases.add("target that is too long", too_long(check, evidence));
    let result = check.name("redirect").and_then(|name| {
        let response = check.expect(evidence, &name, Rtype::DNAME, &ProvedAnswer::Answer)?;
        expect_aa(&response, true)
    });
    cases.add("the DNAME record itself", result);
    cases.outcome()
}

fn synthesised(check: &Authoritative, evidence: &mut Evidence) -> Result<(), Fault> {
    let (name, target) = (check.name("host.redirect")?, check.name("host.target")?);
    let owner = check.name("redirect")?;
    let response = check.expect(evidence, &name, Rtype::A, &ProvedAnswer::Answer)?;
    expect_rcode(&response, &[Rcode::NOERROR])?;
    let message = &response.message;
    if answers(message, &owner, Rtype::DNAME).next().is_none() {
        return Err(format!("the answer has no DNAME record of {owner}"));
    }
    let cname = answers(message, &name, Rtype::CNAME).next();
    match cname.map(|record| NameRef::from_wire(&record.rdata)) {
        Some(Ok(found)) if found == target.view() => {}
        Some(_) => return Err(format!("the CNAME record of {name} has another target than {target}")),
        None => return Err(format!("the answer has no CNAME record of {name}")),
    }
    if is_signed(message, Rtype::CNAME) {
        return Err("the synthesised CNAME record is signed".to_owned());
    }
    if check.is_signed() && !is_signed(message, Rtype::DNAME) {
        return Err("the DNAME RRset is not signed".to_owned());
    }
    match answers(message, &target, Rtype::A).next() {
        Some(_) => Ok(()),
        None => Err(format!("the answer has no A record of {target}")),
    }
}

fn is_signed(message: &Message, rtype: Rtype) -> bool {
    let signatures = records(message, Section::Answer, Rtype::RRSIG);
    signatures.filter_map(|record| Rrsig::parse(&record.rdata)).any(|rrsig| rrsig.covered == rtype)
}

/// RFC 6672 §2.2: YXDOMAIN, with the DNAME record.
fn too_long(check: &Authoritative, evidence: &mut Evidence) -> Result<(), Fault> {
    let owner = check.name("long")?;
    let name = check.name(&format!("{}.long", test_zone::LONG_LABEL))?;
    let response = check.expect(evidence, &name, Rtype::A, &ProvedAnswer::DnameTooLong)?;
    expect_rcode(&response, &[Rcode::YXDOMAIN])?;
    match answers(&response.message, &owner, Rtype::DNAME).next() {
        Some(_) => Ok(()),
        None => Err(format!("the answer has no DNAME record of {owner}")),
    }
}
