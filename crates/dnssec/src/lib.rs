//! DNSSEC signing and verification of zones, denial of existence, validation of responses, and keys
//! (RFC 4033, 4034, 4035, 5155).
//!
//! The crate does no I/O and does not read the clock: the caller passes the time. The types show
//! the state of a zone: [`sign::sign`] returns a [`Signed`] zone, and [`verify::into_verified`]
//! returns a [`Verified`] zone.
//!
//! # Signing a zone
//!
//! `zone` is the [`nonesuch_zone::Contents`] of a zone file ([`nonesuch_zone::read`]).
//!
//! ```
//! # let text = b"$ORIGIN example.\n@ 3600 SOA ns h 1 7200 3600 1209600 3600\n@ 3600 NS ns\nns 3600 A 192.0.2.1\n";
//! # let zone = nonesuch_zone::read::read_text(text, "example.zone".as_ref(), None)?.contents;
//! use nonesuch_crypto::Algorithm;
//! use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, sign};
//!
//! let now = 1_767_225_600;
//! let key = KeyPair::generate(zone.apex(), 257, Algorithm::ED25519, None)?;
//! let keys = KeySet::new(zone.apex(), vec![key])?;
//! let options = SignOptions::new(Mechanism::Nsec, now, now + 14 * 86_400);
//! let signed = sign(&zone, &keys, &options)?;
//! assert!(signed.statistics().signatures > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Verifying a zone
//!
//! ```
//! # let text = b"$ORIGIN example.\n@ 3600 SOA ns h 1 7200 3600 1209600 3600\n@ 3600 NS ns\nns 3600 A 192.0.2.1\n";
//! # let zone = nonesuch_zone::read::read_text(text, "example.zone".as_ref(), None)?.contents;
//! # use nonesuch_crypto::Algorithm;
//! # use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, sign};
//! # let now = 1_767_225_600;
//! # let key = KeyPair::generate(zone.apex(), 257, Algorithm::ED25519, None)?;
//! # let keys = KeySet::new(zone.apex(), vec![key])?;
//! # let signed = sign(&zone, &keys, &SignOptions::new(Mechanism::Nsec, now, now + 1_209_600))?.into_contents();
//! use nonesuch_dnssec::{VerifyOptions, into_verified};
//!
//! let options = VerifyOptions { now: Some(now), ..VerifyOptions::default() };
//! let verified = into_verified(signed, &options).map_err(|faulty| faulty.report.faults[0].clone())?;
//! assert_eq!(verified.mechanism(), Some(Mechanism::Nsec));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Validating a response
//!
//! `response` answers the query for the A records of `ns.example.`. `dnskeys` are the trusted
//! DNSKEY records of its zone.
//!
//! ```
//! # let text = b"$ORIGIN example.\n@ 3600 SOA ns h 1 7200 3600 1209600 3600\n@ 3600 NS ns\nns 3600 A 192.0.2.1\n";
//! # let zone = nonesuch_zone::read::read_text(text, "example.zone".as_ref(), None)?.contents;
//! # use nonesuch_crypto::Algorithm;
//! # use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, sign};
//! # let now = 1_767_225_600;
//! # let key = KeyPair::generate(zone.apex(), 257, Algorithm::ED25519, None)?;
//! # let keys = KeySet::new(zone.apex(), vec![key])?;
//! # let signed = sign(&zone, &keys, &SignOptions::new(Mechanism::Nsec, now, now + 1_209_600))?.into_contents();
//! # use nonesuch_proto::message::{self, Header, Message, Record, Section, flags};
//! # use nonesuch_proto::{Class, Name};
//! # let name: Name = "ns.example.".parse()?;
//! # let node = signed.nodes().find(|node| node.name() == name.view()).unwrap();
//! # let record = |rtype, rdata: &[u8]| Record {
//! #     section: Section::Answer, owner: name.clone(), rtype, class: Class::IN, ttl: 3600, rdata: rdata.to_vec(),
//! # };
//! # let rrsets = [node.rrset(Rtype::A), node.signatures(Rtype::A)].into_iter().flatten();
//! # let records = rrsets.flat_map(|rrset| rrset.rdatas().map(move |rdata| (rrset.rtype(), rdata)));
//! # let records = records.map(|(rtype, rdata)| record(rtype, rdata)).collect();
//! # let header = Header { id: 1, flags: flags::QR | flags::AA, counts: [1, 2, 0, 0] };
//! # let asked = message::Question { name: name.clone(), rtype: Rtype::A, class: Class::IN };
//! # let response = Message { header, questions: vec![asked], records };
//! # let dnskeys = signed.apex_rrset(Rtype::DNSKEY).unwrap().rdatas();
//! use nonesuch_dnssec::validate::{
//!     Budget, Question, SecurityStatus, TrustedKeys, ValidationLimits, validate,
//! };
//! use nonesuch_proto::Rtype;
//!
//! let mut budget = Budget::new(ValidationLimits::default());
//! let keys = TrustedKeys::new(zone.apex(), dnskeys, budget.limits());
//! let question = Question { name: name.view(), rtype: Rtype::A };
//! let validation = validate(question, &response, &keys, now, &mut budget);
//! assert_eq!(validation.status, SecurityStatus::Secure);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod denial;
pub mod difference;
pub mod inspect;
pub mod keys;
pub mod online;
pub mod rrsig;
pub mod sign;
pub mod statistics;
pub mod transition;
pub mod validate;
pub mod verify;

pub use denial::{Mechanism, Nsec3Params};
pub use keys::{KeyPair, KeySet};
pub use sign::{SignOptions, Signed, sign};
pub use verify::{Verified, VerifyOptions, into_verified, verify, verify_with};

#[cfg(test)]
mod tests;
