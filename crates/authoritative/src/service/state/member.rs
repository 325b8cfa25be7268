//! The catalog that lists a zone as a member.

use crate::catalog::Group;
use data_encoding::{DecodeError, HEXLOWER};
use nonesuch_proto::{Name, NameError};
use serde::{Deserialize, Serialize};

/// Membership of a zone in a catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "MemberForm", into = "MemberForm")]
pub(in crate::service) struct Membership {
    pub(in crate::service) zone: Name,
    pub(in crate::service) catalog: Name,
    /// Label of the zone in the catalog.
    pub(in crate::service) label: Vec<u8>,
    /// Groups of the zone in the catalog.
    pub(in crate::service) groups: Vec<Group>,
}

/// The form of a [`Membership`] in files: names as text, label and groups in hexadecimal.
#[derive(Serialize, Deserialize)]
struct MemberForm {
    zone: String,
    catalog: String,
    label: String,
    groups: Vec<String>,
}

impl From<Membership> for MemberForm {
    fn from(member: Membership) -> Self {
        Self {
            zone: member.zone.to_string(),
            catalog: member.catalog.to_string(),
            label: HEXLOWER.encode(&member.label),
            groups: member.groups.iter().map(|group| HEXLOWER.encode(group.rdata())).collect(),
        }
    }
}

/// Errors of decoding a membership.
#[derive(Debug, thiserror::Error)]
enum MemberError {
    #[error("{0}")]
    Name(#[from] NameError),
    #[error("{0}")]
    Hexadecimal(#[from] DecodeError),
}

impl TryFrom<MemberForm> for Membership {
    type Error = MemberError;

    fn try_from(form: MemberForm) -> Result<Self, MemberError> {
        let decode = |text: &String| HEXLOWER.decode(text.as_bytes());
        let groups: Result<_, DecodeError> =
            form.groups.iter().map(|text| Ok(Group::from_rdata(&decode(text)?))).collect();
        Ok(Self {
            zone: form.zone.parse()?,
            catalog: form.catalog.parse()?,
            label: decode(&form.label)?,
            groups: groups?,
        })
    }
}
