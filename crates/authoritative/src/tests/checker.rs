//! Checks denials only from the NSEC, NSEC3 or NSEC5 records of a response, as a validator does
//! (RFC 4035 §5.4, RFC 5155 §8, RFC 9824 §3, draft-vcelak-nsec5 §8). The checker does not use the
//! image.

use super::oracle::{Expected, Need};
use data_encoding::BASE32HEX_NOPAD;
use nonesuch_crypto::nsec3_hash;
use nonesuch_proto::message::{Message, Record, Section};
use nonesuch_proto::{Name, NameRef, Rtype, bitmap};

struct Nsec {
    owner: Name,
    next: Name,
    types: Vec<u8>,
}

struct Nsec3 {
    owner: Vec<u8>,
    next: Vec<u8>,
    opt_out: bool,
    iterations: u16,
    salt: Vec<u8>,
    types: Vec<u8>,
}

struct Nsec5 {
    owner: Vec<u8>,
    next: Vec<u8>,
    opt_out: bool,
    wildcard: bool,
    types: Vec<u8>,
}

/// The denial records of a response.
pub(super) struct Chain {
    apex: Name,
    is_compact: bool,
    nsec: Vec<Nsec>,
    nsec3: Vec<Nsec3>,
    nsec5: Vec<Nsec5>,
    /// Owners of answers whose signatures are those of an exact match.
    exact: Vec<Name>,
    /// Names, with the hashes that NSEC5PROOF records prove for them.
    proofs: Vec<(Name, Vec<u8>)>,
}

/// RFC 4035 §5.4, RFC 5155 §8.5: the bit map contains neither the type nor CNAME, and the record is
/// from the correct side of the zone cut.
fn lacks(types: &[u8], rtype: Rtype) -> bool {
    let is_parent_side = bitmap::contains(types, Rtype::NS) && !bitmap::contains(types, Rtype::SOA);
    !bitmap::contains(types, rtype)
        && !bitmap::contains(types, Rtype::CNAME)
        && (rtype == Rtype::DS || !is_parent_side)
}

/// Returns whether a record with these types proves nothing about names below its owner.
fn hides_what_is_below(types: &[u8]) -> bool {
    let is_cut = bitmap::contains(types, Rtype::NS) && !bitmap::contains(types, Rtype::SOA);
    is_cut || bitmap::contains(types, Rtype::DNAME)
}

fn is_insecure_cut(types: &[u8]) -> bool {
    bitmap::contains(types, Rtype::NS)
        && !bitmap::contains(types, Rtype::DS)
        && !bitmap::contains(types, Rtype::SOA)
}

fn wildcard(encloser: &Name) -> Vec<u8> {
    [b"\x01*", encloser.wire()].concat()
}

fn next_closer(name: &Name, encloser: &Name) -> Name {
    name.view().suffix(encloser.view().label_count() + 1).to_name()
}

/// A fault in a response.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Mismatch(String);

impl<T: Into<String>> From<T> for Mismatch {
    fn from(what: T) -> Self {
        Self(what.into())
    }
}

pub(super) fn require(holds: bool, what: &str) -> Result<(), Mismatch> {
    if holds { Ok(()) } else { Err(what.into()) }
}

impl Chain {
    /// Reads the records of a response. `verify` returns the hash that an NSEC5PROOF record proves
    /// for its owner.
    pub(super) fn of(
        message: &Message,
        apex: &Name,
        is_compact: bool,
        verify: impl Fn(&Name, &[u8]) -> Option<[u8; 32]>,
    ) -> Self {
        let mut chain = Self {
            apex: apex.clone(),
            is_compact,
            nsec: Vec::new(),
            nsec3: Vec::new(),
            nsec5: Vec::new(),
            exact: Vec::new(),
            proofs: Vec::new(),
        };
        let is_exact = |record: &&Record| {
            record.rtype == Rtype::RRSIG && record.rdata[3] == record.owner.view().rrsig_labels()
        };
        chain
            .exact
            .extend(message.section(Section::Answer).filter(is_exact).map(|record| record.owner.clone()));
        for record in message.section(Section::Authority) {
            let owner = record.owner.clone();
            match record.rtype {
                Rtype::NSEC => {
                    let (next, types) = NameRef::split_from(&record.rdata).unwrap();
                    chain.nsec.push(Nsec { owner, next: next.to_name(), types: types.to_vec() });
                }
                Rtype::NSEC3 => chain.nsec3.push(read_nsec3(&owner, &record.rdata)),
                Rtype::NSEC5 => chain.nsec5.push(read_nsec5(&owner, &record.rdata)),
                Rtype::NSEC5PROOF => {
                    let hash = verify(&owner, &record.rdata).map(|hash| hash.to_vec()).unwrap_or_default();
                    chain.proofs.push((owner, hash));
                }
                _ => {}
            }
        }
        chain
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.nsec.is_empty() && self.nsec3.is_empty() && self.nsec5.is_empty() && self.proofs.is_empty()
    }

    pub(super) fn prove(&self, need: &Need, expected: &Expected) -> Result<(), Mismatch> {
        let outcome = if !self.nsec5.is_empty() {
            self.prove_by_nsec5(need)
        } else if self.is_compact {
            self.prove_compactly(need)
        } else if self.nsec3.is_empty() {
            self.prove_by_nsec(need)
        } else {
            self.prove_by_nsec3(need, expected)
        };
        outcome.map_err(|what| format!("not proved: {need:?}: {what}").into())
    }

    fn nsec_covering(&self, name: NameRef<'_>) -> Option<&Nsec> {
        self.nsec.iter().find(|nsec| {
            let is_last = nsec.next == self.apex;
            nsec.owner.view() < name
                && (name < nsec.next.view() || is_last)
                && !(name.is_below(nsec.owner.view()) && hides_what_is_below(&nsec.types))
        })
    }

    /// RFC 4035 §5.4: the name has a record without the type, or is an empty non-terminal.
    fn nsec_lacks(&self, name: NameRef<'_>, rtype: Rtype) -> bool {
        let matching = self.nsec.iter().find(|nsec| nsec.owner.view() == name);
        match matching {
            Some(nsec) => lacks(&nsec.types, rtype),
            None => self.nsec_covering(name).is_some_and(|nsec| nsec.next.view().is_below(name)),
        }
    }

    fn prove_by_nsec(&self, need: &Need) -> Result<(), Mismatch> {
        match need {
            Need::Name { name, encloser } => {
                let covering = self.nsec_covering(name.view()).ok_or("the name is not covered")?;
                require(!covering.next.view().is_below(name.view()), "an empty non-terminal exists")?;
                let common_label_count = |other: &Name| {
                    let count = other.view().labels().collect::<Vec<_>>().into_iter().rev();
                    let mine = name.view().labels().collect::<Vec<_>>().into_iter().rev();
                    count.zip(mine).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count()
                };
                let depth = common_label_count(&covering.owner).max(common_label_count(&covering.next));
                require(depth == encloser.view().label_count(), "another closest encloser")?;
                let wildcard = wildcard(encloser);
                require(
                    self.nsec_covering(NameRef::from_wire_unchecked(&wildcard)).is_some(),
                    "wildcard not covered",
                )
            }
            Need::Type { name, rtype } => require(self.nsec_lacks(name.view(), *rtype), "type is not denied"),
            Need::CloserMatch { name, .. } => {
                require(self.nsec_covering(name.view()).is_some(), "the name is not covered")
            }
            Need::WildcardType { name, encloser, rtype } => {
                require(self.nsec_covering(name.view()).is_some(), "the name is not covered")?;
                let wildcard = wildcard(encloser);
                require(self.nsec_lacks(NameRef::from_wire_unchecked(&wildcard), *rtype), "wildcard's type")
            }
            Need::Ds { cut } => {
                let matching = self.nsec.iter().find(|nsec| nsec.owner == *cut);
                require(matching.is_some_and(|nsec| is_insecure_cut(&nsec.types)), "no insecure cut")
            }
        }
    }

    /// RFC 9824 §3: one record at the name itself. An answer from a wildcard either looks like an
    /// exact match, or the response denies closer names as with NSEC.
    fn prove_compactly(&self, need: &Need) -> Result<(), Mismatch> {
        let at = |name: &Name| {
            let own: Vec<&Nsec> = self.nsec.iter().filter(|nsec| nsec.owner == *name).collect();
            require(own.len() == 1, "no record at the name").map(|()| own[0])
        };
        let is_minimal = |nsec: &Nsec| nsec.next.view() > nsec.owner.view() || nsec.next == self.apex;
        match need {
            Need::Name { name, .. } => {
                let nsec = at(name)?;
                let types: Vec<Rtype> = bitmap::types(&nsec.types).collect();
                require(is_minimal(nsec), "an order that no chain has")?;
                require(types == [Rtype::RRSIG, Rtype::NSEC, Rtype::NXNAME], "not the types of no name")
            }
            Need::Type { name, rtype } | Need::WildcardType { name, rtype, .. } => {
                let nsec = at(name)?;
                require(lacks(&nsec.types, *rtype), "the type is not denied")?;
                require(!bitmap::contains(&nsec.types, Rtype::NXNAME), "the name exists")
            }
            Need::CloserMatch { name, .. } => require(
                self.exact.contains(name) || self.nsec_covering(name.view()).is_some(),
                "no exact or covering NSEC for the closer match",
            ),
            Need::Ds { cut } => require(is_insecure_cut(&at(cut)?.types), "no insecure cut"),
        }
    }

    fn proved_hash(&self, wire: &[u8]) -> Option<&Vec<u8>> {
        let of_name = |proof: &&(Name, Vec<u8>)| proof.0.wire().eq_ignore_ascii_case(wire);
        self.proofs.iter().find(of_name).map(|(_, hash)| hash).filter(|hash| hash.len() == 32)
    }

    fn nsec5_matching(&self, wire: &[u8]) -> Option<&Nsec5> {
        let hash = self.proved_hash(wire)?;
        self.nsec5.iter().find(|nsec5| nsec5.owner == *hash)
    }

    fn nsec5_covering(&self, wire: &[u8]) -> Option<&Nsec5> {
        let hash = self.proved_hash(wire)?;
        self.nsec5.iter().find(|nsec5| {
            if nsec5.owner < nsec5.next {
                nsec5.owner < *hash && *hash < nsec5.next
            } else {
                *hash > nsec5.owner || *hash < nsec5.next
            }
        })
    }

    /// Checks that a record matches the closest encloser and another one covers the next closer
    /// name. Returns whether it covers it in an opt-out span.
    fn nsec5_encloser(&self, name: &Name) -> Result<(Name, &Nsec5, bool), Mismatch> {
        let view = name.view();
        for labels in (self.apex.view().label_count()..view.label_count()).rev() {
            let encloser = view.suffix(labels).to_name();
            let Some(matching) = self.nsec5_matching(encloser.wire()) else { continue };
            require(!hides_what_is_below(&matching.types), "the encloser is a cut or a DNAME")?;
            let covering = self.nsec5_covering(next_closer(name, &encloser).wire());
            let covering = covering.ok_or("the next closer name is not covered")?;
            return Ok((encloser, matching, covering.opt_out));
        }
        Err("no closest encloser".into())
    }

    fn prove_by_nsec5(&self, need: &Need) -> Result<(), Mismatch> {
        match need {
            Need::Name { name, encloser } => {
                let (proved, matching, _) = self.nsec5_encloser(name)?;
                require(proved == *encloser, "another closest encloser")?;
                require(!matching.wildcard, "a wildcard stands below the encloser")
            }
            Need::Type { name, rtype } => match self.nsec5_matching(name.wire()) {
                Some(nsec5) => require(lacks(&nsec5.types, *rtype), "the type is not denied"),
                None => {
                    require(*rtype == Rtype::DS && self.nsec5_encloser(name)?.2, "not in an opt-out span")
                }
            },
            Need::CloserMatch { name, encloser } => {
                let next = next_closer(name, encloser);
                require(self.nsec5_covering(next.wire()).is_some(), "the next closer name is not covered")
            }
            Need::WildcardType { name, encloser, rtype } => {
                let next = next_closer(name, encloser);
                require(self.nsec5_covering(next.wire()).is_some(), "the next closer name is not covered")?;
                let matching = self.nsec5_matching(&wildcard(encloser));
                require(matching.is_some_and(|nsec5| lacks(&nsec5.types, *rtype)), "the wildcard's type")
            }
            Need::Ds { cut } => match self.nsec5_matching(cut.wire()) {
                Some(nsec5) => require(is_insecure_cut(&nsec5.types), "no insecure cut"),
                None => require(self.nsec5_encloser(cut)?.2, "not in an opt-out span"),
            },
        }
    }

    fn hash(&self, wire: &[u8]) -> Vec<u8> {
        let first = &self.nsec3[0];
        nsec3_hash(&wire.to_ascii_lowercase(), &first.salt, first.iterations).to_vec()
    }

    fn nsec3_matching(&self, wire: &[u8]) -> Option<&Nsec3> {
        let hash = self.hash(wire);
        self.nsec3.iter().find(|nsec3| nsec3.owner == hash)
    }

    fn nsec3_covering(&self, wire: &[u8]) -> Option<&Nsec3> {
        let hash = self.hash(wire);
        self.nsec3.iter().find(|nsec3| {
            if nsec3.owner < nsec3.next {
                nsec3.owner < hash && hash < nsec3.next
            } else {
                hash > nsec3.owner || hash < nsec3.next
            }
        })
    }

    /// RFC 5155 §8.3: returns the closest encloser that the records prove, and whether the next
    /// closer name is in an opt-out span.
    fn provable_encloser(&self, name: &Name) -> Result<(Name, bool), Mismatch> {
        let view = name.view();
        for labels in (self.apex.view().label_count()..view.label_count()).rev() {
            let encloser = view.suffix(labels).to_name();
            let Some(matching) = self.nsec3_matching(encloser.wire()) else { continue };
            require(!hides_what_is_below(&matching.types), "the encloser is a cut or a DNAME")?;
            let covering = self.nsec3_covering(next_closer(name, &encloser).wire());
            let covering = covering.ok_or("the next closer name is not covered")?;
            return Ok((encloser, covering.opt_out));
        }
        Err("no closest encloser".into())
    }

    fn prove_by_nsec3(&self, need: &Need, expected: &Expected) -> Result<(), Mismatch> {
        match need {
            Need::Name { name, encloser } => {
                let (proved, opt_out) = self.provable_encloser(name)?;
                let is_left_out = opt_out && expected.insecure_only.contains(encloser);
                require(proved == *encloser || is_left_out, "another closest encloser")?;
                let wildcard = wildcard(&proved);
                // Existing names cannot be denied: if opt-out omits the encloser from the chain,
                // the closest provable encloser may have a wildcard. In this case, no chain
                // according to RFC 5155 has a proof.
                let exists =
                    expected.wildcards.iter().any(|other| other.wire().eq_ignore_ascii_case(&wildcard));
                let is_unprovable = is_left_out && exists;
                require(is_unprovable || self.nsec3_covering(&wildcard).is_some(), "wildcard not covered")
            }
            Need::Type { name, rtype } => match self.nsec3_matching(name.wire()) {
                Some(nsec3) => require(lacks(&nsec3.types, *rtype), "type is not denied"),
                None => self.prove_left_out(name, expected),
            },
            Need::CloserMatch { name, encloser } => {
                let next = next_closer(name, encloser);
                require(self.nsec3_covering(next.wire()).is_some(), "the next closer name is not covered")
            }
            Need::WildcardType { name, encloser, rtype } => {
                let (proved, opt_out) = self.provable_encloser(name)?;
                let is_left_out = opt_out && expected.insecure_only.contains(encloser);
                require(proved == *encloser || is_left_out, "another closest encloser")?;
                match self.nsec3_matching(&wildcard(encloser)) {
                    Some(nsec3) => require(lacks(&nsec3.types, *rtype), "the wildcard's type is not denied"),
                    None => {
                        let wildcard = NameRef::from_wire(&wildcard(encloser)).unwrap().to_name();
                        let is_left_out = opt_out && expected.insecure_only.contains(&wildcard);
                        require(is_left_out, "the wildcard has no record")
                    }
                }
            }
            Need::Ds { cut } => match self.nsec3_matching(cut.wire()) {
                Some(nsec3) => require(is_insecure_cut(&nsec3.types), "no insecure cut"),
                None => self.prove_left_out(cut, expected),
            },
        }
    }

    /// RFC 5155 §8.6 and §8.9: opt-out may omit the name.
    fn prove_left_out(&self, name: &Name, expected: &Expected) -> Result<(), Mismatch> {
        require(expected.insecure_only.contains(name), "a name of the chain has no record")?;
        let (_, opt_out) = self.provable_encloser(name)?;
        require(opt_out, "the covering record is not opt-out")
    }
}

fn read_nsec3(owner: &Name, rdata: &[u8]) -> Nsec3 {
    let label = owner.view().labels().next().unwrap().to_ascii_uppercase();
    let salt_end = 5 + usize::from(rdata[4]);
    let next_end = salt_end + 1 + usize::from(rdata[salt_end]);
    Nsec3 {
        owner: BASE32HEX_NOPAD.decode(&label).unwrap(),
        next: rdata[salt_end + 1..next_end].to_vec(),
        opt_out: rdata[1] & 1 != 0,
        iterations: u16::from_be_bytes([rdata[2], rdata[3]]),
        salt: rdata[5..salt_end].to_vec(),
        types: rdata[next_end..].to_vec(),
    }
}

fn read_nsec5(owner: &Name, rdata: &[u8]) -> Nsec5 {
    let label = owner.view().labels().next().unwrap().to_ascii_uppercase();
    assert_eq!((rdata[2] & !3, rdata[3]), (0, 32), "flags and length of NSEC5 RDATA");
    Nsec5 {
        owner: BASE32HEX_NOPAD.decode(&label).unwrap(),
        next: rdata[4..36].to_vec(),
        opt_out: rdata[2] & 1 != 0,
        wildcard: rdata[2] & 2 != 0,
        types: rdata[36..].to_vec(),
    }
}
