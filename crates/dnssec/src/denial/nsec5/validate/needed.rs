//! Determines the proofs that a claim needs before the first of them is verified, so that one batch
//! has all of them.

use super::Nsec5Records;
use crate::denial::names::wildcard_below;
use crate::validate::claim::Claim;
use crate::validate::proofs::ProofVerifier;
use nonesuch_proto::{Name, NameRef};

impl Nsec5Records<'_> {
    /// Records the first proof of each name that the claim needs if all proofs are valid, so that one
    /// batch is enough. It does nothing if the response has more proofs than the limit for a
    /// response: the budget could then end before a proof that the claim needs.
    pub(super) fn record_proofs(&self, claim: Claim<'_>, verifier: &mut ProofVerifier<'_>) {
        let count: usize = self.proofs.values().map(Vec::len).sum();
        if count > verifier.budget.limits().proofs_per_response as usize {
            return;
        }
        for name in self.needed_names(claim) {
            if let Some(rdata) = self.proofs.get(&name.view()).and_then(|proofs| proofs.first()) {
                // The result comes with the verdicts.
                let _ = verifier.verify(name.view(), rdata);
            }
        }
    }

    /// Returns the names whose proofs the claim needs if all of them are valid. It returns none if the
    /// claim may need only the proof of its own name, because a record matches this name.
    fn needed_names(&self, claim: Claim<'_>) -> Vec<Name> {
        let with_encloser =
            |next: NameRef<'_>| [Some(next.to_name()), next.parent().map(|parent| parent.to_name())];
        let with_wildcard =
            |next: NameRef<'_>| [Some(next.to_name()), next.parent().and_then(wildcard_below)];
        let encloser = |name| self.next_closer_of_encloser(name).map(with_encloser);
        let wildcard = |name| self.next_closer_of_wildcard(name).map(with_wildcard);
        let pair = match claim {
            Claim::NoData(name, _) | Claim::NoDs(name) if self.proofs.contains_key(&name) => None,
            Claim::NxDomain(name) | Claim::NoDs(name) => encloser(name),
            Claim::NoData(name, _) => wildcard(name).or_else(|| encloser(name)),
            // One proof is enough.
            Claim::WildcardExpansion(..) => None,
        };
        pair.into_iter().flatten().flatten().collect()
    }
}
