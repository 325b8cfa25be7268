//! Models of zones and their proportions. `docs/generated-zones.md` contains the source of each
//! number and states which numbers this project has chosen.

use super::UnknownZoneModel;
use std::fmt;
use std::str::FromStr;

/// Model of a generated zone: the kind of real zone whose proportions it has. On the command line,
/// the option `--like` selects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ZoneModel {
    /// A top-level domain: almost all names are delegations.
    Tld,
    /// The top-level domain of the Netherlands: the large zone of the experiment `pqc-signing`.
    Nl,
    /// The top-level domain of Sweden: the medium zone of `pqc-signing`.
    Se,
    /// The top-level domain of Niue: the small zone of `pqc-signing`.
    Nu,
    /// The second-level domain of an organisation: hosts, mail, services.
    Sld,
}

impl ZoneModel {
    /// Returns all models, in the order of the table of profiles.
    pub fn all() -> impl Iterator<Item = Self> {
        PROFILES.iter().map(|profile| profile.model)
    }

    pub(super) fn profile(self) -> &'static Profile {
        // Every variant has a row, which the test `every_model_has_its_profile` checks.
        PROFILES.iter().find(|profile| profile.model == self).unwrap_or(&PROFILES[0])
    }
}

impl fmt::Display for ZoneModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.profile().name)
    }
}

impl FromStr for ZoneModel {
    type Err = UnknownZoneModel;

    fn from_str(text: &str) -> Result<Self, UnknownZoneModel> {
        PROFILES
            .iter()
            .find(|profile| profile.name.eq_ignore_ascii_case(text))
            .map(|profile| profile.model)
            .ok_or_else(|| UnknownZoneModel { given: text.to_owned() })
    }
}

/// Name and proportions of a model: a row of the table.
pub(super) struct Profile {
    pub(super) model: ZoneModel,
    pub(super) name: &'static str,
    pub(super) proportions: Proportions,
}

/// Proportions of a zone, by its structure.
pub(super) enum Proportions {
    /// Mainly delegations below the apex.
    Tld(TldProportions),
    /// Mainly authoritative data, with few delegations.
    Sld(SldProportions),
}

/// Proportions of the zone of a registry. Shares are per mille, except where stated otherwise. TTLs
/// are in seconds.
pub(super) struct TldProportions {
    pub(super) labels: LabelProfile,
    /// Number of name servers of the apex inside the zone.
    pub(super) apex_servers_inside: u32,
    /// Number of name servers of the apex outside the zone.
    pub(super) apex_servers_outside: u32,
    /// Share of delegations with in-domain name servers, and thus with glue.
    pub(super) in_domain: u32,
    /// Share of delegations with name servers in another domain of the zone.
    pub(super) sibling: u32,
    /// Number of delegations for each hoster, a delegation that provides name servers for others.
    pub(super) delegations_per_hoster: u64,
    /// Shares of the largest operators among the other delegations. The remaining delegations
    /// belong to small operators.
    pub(super) large_operators: &'static [u32],
    /// Number of delegations for each small operator.
    pub(super) delegations_per_small_operator: u64,
    /// Numbers of name servers in a set that delegations share, with their weights.
    pub(super) server_counts: &'static [(u32, u32)],
    /// Numbers of name servers of a delegation with glue, with their weights.
    pub(super) in_domain_counts: &'static [(u32, u32)],
    /// Share of glue names that have an AAAA record in addition to the A record.
    pub(super) glue_with_aaaa: u32,
    /// Share of delegations with DS records.
    pub(super) signed: u32,
    /// Share of signed delegations with a second DS record.
    pub(super) second_ds: u32,
    /// DNSSEC algorithm numbers of DS records, with their weights.
    pub(super) algorithms: &'static [(u8, u32)],
    pub(super) soa: SoaTimes,
    /// TTL of the name servers of the apex.
    pub(super) apex_ttl: u32,
    pub(super) delegation_ttl: u32,
    pub(super) ds_ttl: u32,
}

/// Proportions of the labels of registered names.
pub(super) struct LabelProfile {
    /// Weight of each length, starting at 2. The length is in octets; for internationalised names,
    /// it is the number of characters of the U-label.
    pub(super) lengths: &'static [u32],
    /// Shares of the forms `with_digits` to `internationalised`, per mille. The other labels
    /// consist of letters.
    pub(super) with_digits: u32,
    pub(super) with_hyphen: u32,
    pub(super) digits_alone: u32,
    pub(super) internationalised: u32,
    /// Share of labels that end in a common word among the labels of letters that are long enough,
    /// per mille.
    pub(super) ending_in_word: u32,
}

/// Timers, minimum and TTL of the SOA record, in seconds.
pub(super) struct SoaTimes {
    pub(super) ttl: u32,
    pub(super) refresh: u32,
    pub(super) retry: u32,
    pub(super) expire: u32,
    pub(super) minimum: u32,
}

/// Proportions of the zone of an organisation.
pub(super) struct SldProportions {
    /// Kinds of names with their weights. Each kind occurs at least once.
    pub(super) kinds: &'static [(NameKind, u32)],
    /// Share of hosts with an AAAA record in addition to the A record, per mille.
    pub(super) with_aaaa: u32,
    /// DNSSEC algorithm numbers of DS records, with their weights.
    pub(super) algorithms: &'static [(u8, u32)],
    pub(super) soa: SoaTimes,
    /// TTLs of the names, with their weights.
    pub(super) ttls: &'static [(u32, u32)],
    pub(super) delegation_ttl: u32,
}

/// Kind of a name in the zone of an organisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameKind {
    Host,
    /// A host with its rack and site in the name.
    SiteHost,
    Alias,
    MailDomain,
    Dkim,
    Dmarc,
    /// DNS challenge of a certificate authority (RFC 8555).
    Challenge,
    /// SRV record.
    Service,
    Wildcard,
    UnsignedDelegation,
    GluedDelegation,
    SignedDelegation,
    /// CAA records: the permitted certificate authorities.
    Issuers,
    Tlsa,
    /// A host with SSHFP records.
    Login,
    Naptr,
    Https,
    Svcb,
}

/// Table of the models. To add a model, add a variant to [`ZoneModel`] and a row here.
pub(super) static PROFILES: &[Profile] = &[
    Profile { model: ZoneModel::Tld, name: "tld", proportions: Proportions::Tld(TLD) },
    Profile { model: ZoneModel::Nl, name: "nl", proportions: Proportions::Tld(NL) },
    Profile { model: ZoneModel::Se, name: "se", proportions: Proportions::Tld(SE) },
    Profile { model: ZoneModel::Nu, name: "nu", proportions: Proportions::Tld(NU) },
    Profile { model: ZoneModel::Sld, name: "sld", proportions: Proportions::Sld(SLD) },
];

const TLD: TldProportions = TldProportions {
    labels: LABELS,
    apex_servers_inside: 3,
    apex_servers_outside: 2,
    in_domain: 200,
    sibling: 100,
    delegations_per_hoster: 1000,
    large_operators: &[189, 139, 45, 40, 35, 30, 25, 22, 20, 18],
    delegations_per_small_operator: 60,
    server_counts: &[(2, 700), (3, 100), (4, 200)],
    in_domain_counts: &[(2, 850), (3, 100), (4, 50)],
    glue_with_aaaa: 350,
    signed: 300,
    second_ds: 60,
    algorithms: &[(13, 780), (8, 200), (15, 20)],
    soa: SoaTimes { ttl: 3600, refresh: 1800, retry: 900, expire: 604_800, minimum: 3600 },
    apex_ttl: 172_800,
    delegation_ttl: 172_800,
    ds_ttl: 86_400,
};

/// Nearly 60 % of the delegations are signed. Three operators have almost half of the names.
const NL: TldProportions = TldProportions {
    labels: LabelProfile { internationalised: 0, ..LABELS },
    apex_servers_inside: 3,
    apex_servers_outside: 0,
    in_domain: 40,
    sibling: 60,
    large_operators: &[220, 180, 133, 40, 30, 25, 20, 15],
    server_counts: &[(2, 450), (3, 500), (4, 50)],
    signed: 600,
    soa: SoaTimes { ttl: 3600, refresh: 3600, retry: 600, expire: 2_419_200, minimum: 600 },
    apex_ttl: 3600,
    delegation_ttl: 3600,
    ds_ttl: 3600,
    ..TLD
};

/// More than half of the delegations are signed. Some names contain å, ä or ö.
const SE: TldProportions = TldProportions {
    labels: LabelProfile { internationalised: 20, ..LABELS },
    apex_servers_inside: 6,
    apex_servers_outside: 3,
    in_domain: 60,
    sibling: 140,
    signed: 550,
    soa: SoaTimes { ttl: 172_800, refresh: 1800, retry: 1800, expire: 864_000, minimum: 7200 },
    apex_ttl: 172_800,
    delegation_ttl: 86_400,
    ds_ttl: 3600,
    ..TLD
};

/// The registry is that of .se. The registrants are in Sweden and the Netherlands.
const NU: TldProportions = TldProportions { signed: 500, sibling: 20, ..SE };

/// Weights in units of 1/100,000 for the lengths 2, 3, 4, … 63.
const LABELS: LabelProfile = LabelProfile {
    lengths: &[
        1, 29, 616, 2538, 4856, // 2-6
        5600, 6700, 7300, 7600, 7600, 7400, // 7-12
        6900, 6300, 5700, 5000, 4300, 3700, 3100, 2600, // 13-20
        2100, 1700, 1400, 1150, 950, 780, 640, 530, 440, 360, // 21-30
        300, 250, 205, 170, 140, 115, 95, 80, 66, 55, // 31-40
        50, 45, 40, 36, 32, 29, 26, 24, 22, 20, // 41-50
        19, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, // 51-63
    ],
    with_digits: 110,
    with_hyphen: 80,
    digits_alone: 17,
    internationalised: 10,
    ending_in_word: 600,
};

const SLD: SldProportions = SldProportions {
    kinds: &[
        (NameKind::Host, 420),
        (NameKind::SiteHost, 150),
        (NameKind::Alias, 150),
        (NameKind::MailDomain, 40),
        (NameKind::Dkim, 25),
        (NameKind::Dmarc, 15),
        (NameKind::Challenge, 35),
        (NameKind::Service, 35),
        (NameKind::Wildcard, 10),
        (NameKind::UnsignedDelegation, 15),
        (NameKind::GluedDelegation, 10),
        (NameKind::SignedDelegation, 10),
        (NameKind::Issuers, 10),
        (NameKind::Tlsa, 20),
        (NameKind::Login, 30),
        (NameKind::Naptr, 5),
        (NameKind::Https, 15),
        (NameKind::Svcb, 5),
    ],
    with_aaaa: 400,
    algorithms: TLD.algorithms,
    soa: SoaTimes { ttl: 3600, refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 300 },
    ttls: &[(300, 300), (3600, 500), (86_400, 200)],
    delegation_ttl: 86_400,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_has_its_profile() {
        for model in [ZoneModel::Tld, ZoneModel::Nl, ZoneModel::Se, ZoneModel::Nu, ZoneModel::Sld] {
            assert_eq!(model.profile().model, model);
            assert_eq!(model.to_string().parse(), Ok(model));
        }
        assert_eq!(ZoneModel::all().count(), PROFILES.len());
        assert_eq!("TLD".parse(), Ok(ZoneModel::Tld));
        let refused = "zone".parse::<ZoneModel>().unwrap_err();
        assert_eq!(refused.to_string(), "unknown kind of zone \"zone\": choose one of tld, nl, se, nu, sld");
    }

    #[test]
    fn the_length_table_is_as_documented() {
        assert_eq!(LABELS.lengths.len(), 62, "2 to 63 octets");
        let total: u32 = LABELS.lengths.iter().sum();
        assert!((99_000..101_000).contains(&total), "{total}");
        let to_twelve: u32 = LABELS.lengths[..11].iter().sum();
        assert!((49_000..51_000).contains(&to_twelve), "the median is 12: {to_twelve}");
    }
}
