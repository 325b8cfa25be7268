//! Anonymises messages.

use super::CapturedMessage;
use super::cryptopan::CryptoPan;
use super::error::{CaptureError, KeyError};
use super::key::AnonymisationKey;
use super::layout::MessageLayout;
use super::names::NameAnonymizer;
use super::options::anonymize_options;
use nonesuch_proto::{Name, Rtype};

/// Data to anonymise in addition to the addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnonymizeOptions {
    /// Whether names are replaced, as well as addresses in RDATA. Texts, keys, signatures and other
    /// variable parts of RDATA become zeros.
    pub names: bool,
    /// Names at or below this zone keep the labels of the zone. Other names keep their last label.
    pub zone: Option<Name>,
}

/// Anonymises messages. With the same key, equal addresses and names have equal replacements.
///
/// The addresses of client and server are replaced with Crypto-PAn, as are the addresses of client
/// subnets (RFC 7871). EDNS options that may identify a client become zeros. Ports, times, message
/// IDs and DNS cookies stay. No length changes.
pub struct Anonymizer {
    addresses: CryptoPan,
    names: Option<NameAnonymizer>,
}

impl Anonymizer {
    /// Creates an anonymizer with a key.
    ///
    /// # Errors
    /// [`KeyError::Cipher`] if the cryptographic library rejects the key.
    pub fn new(key: &AnonymisationKey, options: AnonymizeOptions) -> Result<Self, KeyError> {
        let names = options.names.then(|| NameAnonymizer::new(key, options.zone));
        Ok(Self { addresses: CryptoPan::new(key)?, names })
    }

    /// Anonymises a message. Returns false if the message cannot be parsed: it may contain
    /// addresses and names, and must not be written.
    ///
    /// # Errors
    /// [`CaptureError::Cipher`] if the cryptographic library fails.
    pub fn apply(&self, message: &mut CapturedMessage) -> Result<bool, CaptureError> {
        let Some(layout) = MessageLayout::parse(&message.octets) else { return Ok(false) };
        self.addresses.replace_ip(&mut message.client)?;
        self.addresses.replace_ip(&mut message.server)?;
        if let Some(names) = &self.names {
            names.apply(&mut message.octets, &layout, &self.addresses)?;
        }
        for record in layout.records.iter().filter(|record| record.rtype == Rtype::OPT) {
            let rdata = &mut message.octets[record.rdata.clone()];
            anonymize_options(rdata, &self.addresses, self.names.is_some())?;
        }
        Ok(true)
    }
}
