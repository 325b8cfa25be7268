//! The examples of the RFCs, and the keys of the public test data: from the private key to the
//! public key, key tag, DS digest and signature.

use std::fs;
use std::path::PathBuf;

use data_encoding::{BASE64, HEXLOWER};
use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

use crate::{Algorithm, BadSignature, DigestType, KeyError, PrivateKey, PublicKey, key_tag};

/// A configuration with the same cases in every run.
pub(crate) fn seeded_config(seed: u64) -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(seed), ..ProptestConfig::default() }
}

/// Returns the wire form of a name in lower case, given with dots between its labels.
pub(crate) fn wire_name(name: &str) -> Vec<u8> {
    let labels = name.split('.').filter(|label| !label.is_empty());
    let mut wire: Vec<u8> =
        labels.flat_map(|label| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat()).collect();
    wire.push(0);
    wire
}

fn base64(text: &str) -> Vec<u8> {
    let text: String = text.split_whitespace().collect();
    BASE64.decode(text.as_bytes()).unwrap()
}

fn dnskey_rdata(flags: u16, algorithm: Algorithm, public_key: &[u8]) -> Vec<u8> {
    [&flags.to_be_bytes()[..], &[3, algorithm.0], public_key].concat()
}

/// An RRset with one record and its RRSIG, with the TTL 3600.
struct SignedRrset {
    owner: &'static str,
    record_type: u16,
    rdata: Vec<u8>,
    signer: &'static str,
    inception: u32,
    expiration: u32,
}

impl SignedRrset {
    /// Returns the signed octets (RFC 4034, section 3.1.8.1).
    fn message(&self, algorithm: Algorithm, tag: u16) -> Vec<u8> {
        let labels = self.owner.split('.').count() as u8;
        let length = u16::try_from(self.rdata.len()).unwrap();
        [
            &self.record_type.to_be_bytes()[..],
            &[algorithm.0, labels],
            &3600_u32.to_be_bytes(),
            &self.expiration.to_be_bytes(),
            &self.inception.to_be_bytes(),
            &tag.to_be_bytes(),
            &wire_name(self.signer),
            &wire_name(self.owner),
            &self.record_type.to_be_bytes(),
            &[0, 1],
            &3600_u32.to_be_bytes(),
            &length.to_be_bytes(),
            &self.rdata,
        ]
        .concat()
    }
}

/// An example: a key in all its forms, and the data that it signed.
struct Example {
    private: &'static str,
    public: &'static str,
    flags: u16,
    tag: u16,
    /// Digest type and digest.
    ds: Option<(DigestType, &'static str)>,
    signed: SignedRrset,
    signature: &'static str,
    /// Whether the algorithm always generates the same signature.
    deterministic: bool,
}

impl Example {
    fn check(&self) {
        let key = PrivateKey::from_bind(self.private).unwrap();
        let algorithm = key.algorithm();
        assert_eq!(BASE64.encode(key.public_key()), BASE64.encode(&base64(self.public)));
        let rdata = dnskey_rdata(self.flags, algorithm, key.public_key());
        assert_eq!(key_tag(&rdata), self.tag);
        if let Some((kind, expected)) = self.ds {
            let digest = kind.digest(&[&wire_name(self.signed.signer), &rdata]).unwrap();
            assert_eq!(HEXLOWER.encode(&digest), expected);
        }
        let message = self.signed.message(algorithm, self.tag);
        let public = PublicKey::parse(algorithm, key.public_key()).unwrap();
        let published = base64(self.signature);
        assert_eq!(public.verify(&message, &published), Ok(()));
        assert_eq!(public.verify(&message[1..], &published), Err(BadSignature));
        let mut produced = Vec::new();
        key.sign(&message, &mut produced).unwrap();
        assert_eq!(public.verify(&message, &produced), Ok(()));
        assert_eq!(produced == published, self.deterministic);
    }
}

#[test]
fn rfc5702_section_6_1_has_a_key_that_is_too_short() {
    let public = base64(
        "AwEAAcFcGsaxxdgiuuGmCkVImy4h99CqT7jwY3pexPGcnUFtR2Fh36BponcwtkZ4cAgtvd4Qs8PkxUdp6p/DlUmObdk=",
    );
    assert_eq!(key_tag(&dnskey_rdata(256, Algorithm::RSASHA256, &public)), 9033);
    let error = PublicKey::parse(Algorithm::RSASHA256, &public).err();
    assert_eq!(error, Some(KeyError::ModulusBits { bits: 512 }));
    let private = "Private-key-format: v1.2
        Algorithm:       8 (RSASHA256)
        Modulus:         wVwaxrHF2CK64aYKRUibLiH30KpPuPBjel7E8ZydQW1HYWHfoGmidzC2RnhwCC293hCzw+TFR2nqn8OVSY5t2Q==
        PublicExponent:  AQAB
        PrivateExponent: UR44xX6zB3eaeyvTRzmskHADrPCmPWnr8dxsNwiDGHzrMKLN+i/HAam+97HxIKVWNDH2ba9Mf1SA8xu9dcHZAQ==
        Prime1:          4c8IvFu1AVXGWeFLLFh5vs7fbdzdC6U82fduE6KkSWk=
        Prime2:          2zZpBE8ZXVnL74QjG4zINlDfH+EOEtjJJ3RtaYDugvE=
        Exponent1:       G2xAPFfK0KGxGANDVNxd1K1c9wOmmJ51mGbzKFFNMFk=
        Exponent2:       GYxP1Pa7CAwtHm8SAGX594qZVofOMhgd6YFCNyeVpKE=
        Coefficient:     icQdNRjlZGPmuJm2TIadubcO8X7V4y07aVhX464tx8Q=";
    assert_eq!(PrivateKey::from_bind(private).err(), Some(KeyError::ModulusBits { bits: 512 }));
}

#[test]
fn rfc5702_section_6_2() {
    Example {
        private: "Private-key-format: v1.2
            Algorithm:       10 (RSASHA512)
            Modulus:         0eg1M5b563zoq4k5ZEOnWmd2/BvpjzedJVdfIsDcMuuhE5SQ3pfQ7qmdaeMlC6Nf8DKGoUPGPXe06cP27/WRODtxXquSUytkO0kJDk8KX8PtA0+yBWwy7UnZDyCkynO00Uuk8HPVtZeMO1pHtlAGVnc8VjXZlNKdyit99waaE4s=
            PublicExponent:  AQAB
            PrivateExponent: rFS1IPbJllFFgFc33B5DDlC1egO8e81P4fFadODbp56V7sphKa6AZQCx8NYAew6VXFFPAKTw41QdHnK5kIYOwxvfFDjDcUGza88qbjyrDPSJenkeZbISMUSSqy7AMFzEolkk6WSn6k3thUVRgSlqDoOV3SEIAsrB043XzGrKIVE=
            Prime1:          8mbtsu9Tl9v7tKSHdCIeprLIQXQLzxlSZun5T1n/OjvXSUtvD7xnZJ+LHqaBj1dIgMbCq2U8O04QVcK3TS9GiQ==
            Prime2:          3a6gkfs74d0Jb7yL4j4adAif4fcp7ZrGt7G5NRVDDY/Mv4TERAKMa0TKN3okKE0A7X+Rv2K84mhT4QLDlllEcw==
            Exponent1:       v3D5A9uuCn5rgVR7wgV8ba0/KSpsdSiLgsoA42GxiB1gvvs7gJMMmVTDu/ZG1p1ZnpLbhh/S/Qd/MSwyNlxC+Q==
            Exponent2:       m+ezf9dsDvYQK+gzjOLWYeKq5xWYBEYFGa3BLocMiF4oxkzOZ3JPZSWU/h1Fjp5RV7aPP0Vmx+hNjYMPIQ8Y5w==
            Coefficient:     Je5YhYpUron/WdOXjxNAxDubAp3i5X7UOUfhJcyIggqwY86IE0Q/Bk0Dw4SC9zxnsimmdBXW2Izd8Lwuk8FQcQ==",
        public: "AwEAAdHoNTOW+et86KuJOWRDp1pndvwb6Y83nSVXXyLA3DLroROUkN6X0O6pnWnjJQujX/AyhqFD
            xj13tOnD9u/1kTg7cV6rklMrZDtJCQ5PCl/D7QNPsgVsMu1J2Q8gpMpztNFLpPBz1bWXjDtaR7ZQBlZ3PFY12ZTSncorffcGmhOL",
        flags: 256,
        tag: 3740,
        ds: None,
        signed: SignedRrset {
            owner: "www.example.net",
            record_type: 1,
            rdata: vec![192, 0, 2, 91],
            signer: "example.net",
            // 2000-01-01 to 2030-01-01.
            inception: 946_684_800,
            expiration: 1_893_456_000,
        },
        signature: "tsb4wnjRUDnB1BUi+t6TMTXThjVnG+eCkWqjvvjhzQL1d0YRoOe0CbxrVDYd0xDtsuJRaeUw1ep94PzEWzr0iGYgZBWm/zpq
            +9fOuagYJRfDqfReKBzMweOLDiNa8iP5g9vMhpuv6OPlvpXwm9Sa9ZXIbNl1MBGk0fthPgxdDLw=",
        deterministic: true,
    }
    .check();
}

#[test]
fn rfc6605_section_6_1() {
    Example {
        private: "Private-key-format: v1.2
            Algorithm: 13 (ECDSAP256SHA256)
            PrivateKey: GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ=",
        public: "GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA==",
        flags: 257,
        tag: 55648,
        ds: Some((DigestType::SHA256, "b4c8c1fe2e7477127b27115656ad6256f424625bf5c1e2770ce6d6e37df61d17")),
        signed: SignedRrset {
            owner: "www.example.net",
            record_type: 1,
            rdata: vec![192, 0, 2, 1],
            signer: "example.net",
            // 2010-08-12 10:04:39 to 2010-09-09 10:04:39.
            inception: 1_281_607_479,
            expiration: 1_284_026_679,
        },
        signature: "qx6wLYqmh+l9oCKTN6qIc+bw6ya+KJ8oMz0YP107epXAyGmt+3SNruPFKG7tZoLBLlUzGGus7ZwmwWep666VCw==",
        deterministic: false,
    }
    .check();
}

#[test]
fn rfc6605_section_6_2() {
    Example {
        private: "Private-key-format: v1.2
            Algorithm: 14 (ECDSAP384SHA384)
            PrivateKey: WURgWHCcYIYUPWgeLmiPY2DJJk02vgrmTfitxgqcL4vwW7BOrbawVmVe0d9V94SR",
        public: "xKYaNhWdGOfJ+nPrL8/arkwf2EY3MDJ+SErKivBVSum1w/egsXvSADtNJhyem5RCOpgQ6K8X1DRSEkrbYQ+OB+v8
            /uX45NBwY8rp65F6Glur8I/mlVNgF6W/qTI37m40",
        flags: 257,
        tag: 10771,
        ds: Some((
            DigestType::SHA384,
            "72d7b62976ce06438e9c0bf319013cf801f09ecc84b8d7e9495f27e305c6a9b0563a9b5f4d288405c3008a946df983d6",
        )),
        signed: SignedRrset {
            owner: "www.example.net",
            record_type: 1,
            rdata: vec![192, 0, 2, 1],
            signer: "example.net",
            // 2010-08-12 10:20:25 to 2010-09-09 10:20:25.
            inception: 1_281_608_425,
            expiration: 1_284_027_625,
        },
        signature: "/L5hDKIvGDyI1fcARX3z65qrmPsVz73QD1Mr5CEqOiLP95hxQouuroGCeZOvzFaxsT8Glr74hbavRKayJNuydCuz
            WTSSPdz7wnqXL5bdcJzusdnI0RSMROxxwGipWcJm",
        deterministic: false,
    }
    .check();
}

/// The RRset that is signed in RFC 8080, section 6, and draft-westerbaan-dnssec-mldsa: MX 10
/// mail.example.com., 2015-07-29 22:00 to 2015-08-19 22:00.
fn rfc8080_rrset() -> SignedRrset {
    SignedRrset {
        owner: "example.com",
        record_type: 15,
        rdata: [vec![0, 10], wire_name("mail.example.com")].concat(),
        signer: "example.com",
        inception: 1_438_207_200,
        expiration: 1_440_021_600,
    }
}

/// With the signatures of erratum 4935.
#[test]
fn rfc8080_section_6_1() {
    Example {
        private: "Private-key-format: v1.2
            Algorithm: 15 (ED25519)
            PrivateKey: ODIyNjAzODQ2MjgwODAxMjI2NDUxOTAyMDQxNDIyNjI=",
        public: "l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=",
        flags: 257,
        tag: 3613,
        ds: Some((DigestType::SHA256, "3aa5ab37efce57f737fc1627013fee07bdf241bd10f3b1964ab55c78e79a304b")),
        signed: rfc8080_rrset(),
        signature: "oL9krJun7xfBOIWcGHi7mag5/hdZrKWw15jPGrHpjQeRAvTdszaPD+QLs3fx8A4M3e23mRZ9VrbpMngwcrqNAg==",
        deterministic: true,
    }
    .check();
    Example {
        private: "Private-key-format: v1.2
            Algorithm: 15 (ED25519)
            PrivateKey: DSSF3o0s0f+ElWzj9E/Osxw8hLpk55chkmx0LYN5WiY=",
        public: "zPnZ/QwEe7S8C5SPz2OfS5RR40ATk2/rYnE9xHIEijs=",
        flags: 257,
        tag: 35217,
        ds: Some((DigestType::SHA256, "401781b934e392de492ec77ae2e15d70f6575a1c0bc59c5275c04ebe80c6614c")),
        signed: rfc8080_rrset(),
        signature: "zXQ0bkYgQTEFyfLyi9QoiY6D8ZdYo4wyUhVioYZXFdT410QPRITQSqJSnzQoSm5poJ7gD7AQR0O7KuI5k2pcBg==",
        deterministic: true,
    }
    .check();
}

/// With the signatures of erratum 4935.
#[test]
fn rfc8080_section_6_2() {
    Example {
        private: "Private-key-format: v1.2
            Algorithm: 16 (ED448)
            PrivateKey: xZ+5Cgm463xugtkY5B0Jx6erFTXp13rYegst0qRtNsOYnaVpMx0Z/c5EiA9x8wWbDDct/U3FhYWA",
        public: "3kgROaDjrh0H2iuixWBrc8g2EpBBLCdGzHmn+G2MpTPhpj/OiBVHHSfPodx1FYYUcJKm1MDpJtIA",
        flags: 257,
        tag: 9713,
        ds: Some((DigestType::SHA256, "6ccf18d5bc5d7fc2fceb1d59d17321402f2aa8d368048db93dd811f5cb2b19c7")),
        signed: rfc8080_rrset(),
        signature: "3cPAHkmlnxcDHMyg7vFC34l0blBhuG1qpwLmjInI8w1CMB29FkEAIJUA0amxWndkmnBZ6SKiwZSAxGILn/NBtOXf
            t0+Gj7FSvOKxE/07+4RQvE581N3Aj/JtIyaiYVdnYtyMWbSNyGEY2213WKsJlwEA",
        deterministic: true,
    }
    .check();
    Example {
        private: "Private-key-format: v1.2
            Algorithm: 16 (ED448)
            PrivateKey: WEykD3ht3MHkU8iH4uVOLz8JLwtRBSqiBoM6fF72+Mrp/u5gjxuB1DV6NnPO2BlZdz4hdSTkOdOA",
        public: "kkreGWoccSDmUBGAe7+zsbG6ZAFQp+syPmYUurBRQc3tDjeMCJcVMRDmgcNLp5HlHAMy12VoISsA",
        flags: 257,
        tag: 38353,
        ds: Some((DigestType::SHA256, "645ff078b3568f5852b70cb60e8e696cc77b75bfaaffc118cf79cbda1ba28af4")),
        signed: rfc8080_rrset(),
        signature: "E1/oLjSGIbmLny/4fcgM1z4oL6aqo+izT3urCyHyvEp4Sp8Syg1eI+lJ57CSnZqjJP41O/9l4m0AsQ4f7qI1gVnM
            L8vWWiyW2KXhT9kuAICUSxv5OWbf81Rq7Yu60npabODB0QFPb/rkW3kUZmQ0YQUA",
        deterministic: true,
    }
    .check();
}

/// The seed 00 01 ... 1f, and a deterministic signature over the RRset of RFC 8080.
#[test]
fn draft_westerbaan_dnssec_mldsa_section_6() {
    Example {
        private: "Private-key-format: v1.3
            Algorithm: 18 (MLDSA44)
            PrivateKey: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        public: include_str!("vectors/mldsa44-public-key.b64"),
        flags: 257,
        tag: 59829,
        ds: Some((DigestType::SHA256, "812cb1a22af04380e2f72d91c06c14eb1a918cf30037a8a9c67497e9264b4bfa")),
        signed: rfc8080_rrset(),
        signature: include_str!("vectors/mldsa44-signature.b64"),
        deterministic: true,
    }
    .check();
}

/// A key of the ACVP samples of NIST (`SLH-DSA-keyGen-FIPS205`), and the deterministic signature
/// that the crate `slh-dsa` 0.2.0-rc.5 generates over the RRset of RFC 8080 with this key.
#[test]
fn another_implementation_of_slh_dsa_generates_the_same_signature() {
    Example {
        private: "Private-key-format: v1.3
            Algorithm: 248 (SLHDSA128S)
            PrivateKey: Fz0EyTjBw2vyicPAItBLFGOuI8QapUbaWJd0rCC3RcQNeUd3kUyZdmgn8PCcqXK+AWLBAhnUIq26E1nmqmUpnA==",
        public: "DXlHd5FMmXZoJ/DwnKlyvgFiwQIZ1CKtuhNZ5qplKZw=",
        flags: 257,
        tag: 54286,
        ds: Some((DigestType::SHA256, "5e493a9b1b4099309fb88488f8238cfb4e541824452b025f872a739cd88e7145")),
        signed: rfc8080_rrset(),
        signature: include_str!("vectors/slhdsa128s-signature.b64"),
        deterministic: true,
    }
    .check();
}

/// Returns the directory with the keys of the public test data.
fn test_keys() -> Option<PathBuf> {
    nonesuch_testing::public_data("rfc-zones/test-data")
}

/// Returns flags, algorithm and public key of the DNSKEY record in a `.key` file.
fn read_key_file(text: &str) -> (u16, Algorithm, Vec<u8>) {
    let line = text.lines().find(|line| line.contains("DNSKEY")).unwrap();
    let line = line.split(';').next().unwrap();
    let mut fields = line.split_whitespace().skip_while(|field| *field != "DNSKEY").skip(1);
    let flags = fields.next().unwrap().parse().unwrap();
    assert_eq!(fields.next(), Some("3"));
    let algorithm = fields.next().unwrap().parse().unwrap();
    (flags, algorithm, base64(&fields.collect::<String>()))
}

#[test]
fn key_files_of_the_test_data_match() {
    let Some(directory) = test_keys() else { return };
    let mut checked = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "private") {
            continue;
        }
        let private = PrivateKey::from_bind(&fs::read_to_string(&path).unwrap()).unwrap();
        let (flags, algorithm, public) =
            read_key_file(&fs::read_to_string(path.with_extension("key")).unwrap());
        assert_eq!((private.algorithm(), private.public_key()), (algorithm, &public[..]), "{path:?}");
        let tag = key_tag(&dnskey_rdata(flags, algorithm, &public));
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(name.ends_with(&format!("+{:03}+{tag:05}", algorithm.0)), "{name} has key tag {tag}");
        let mut signature = Vec::new();
        private.sign(b"message", &mut signature).unwrap();
        assert_eq!(PublicKey::parse(algorithm, &public).unwrap().verify(b"message", &signature), Ok(()));
        checked += 1;
    }
    assert!(checked >= 10, "only {checked} key pairs");
}

#[test]
fn ds_files_of_the_test_data_match() {
    let Some(directory) = test_keys() else { return };
    let mut checked = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "ds") {
            continue;
        }
        let (flags, algorithm, public) =
            read_key_file(&fs::read_to_string(path.with_extension("key")).unwrap());
        let text = fs::read_to_string(&path).unwrap();
        let fields: Vec<_> = text.split_whitespace().collect();
        let [owner, _, _, tag, number, kind, digest] = fields[..] else { panic!("{path:?}: {fields:?}") };
        let rdata = dnskey_rdata(flags, algorithm, &public);
        assert_eq!((key_tag(&rdata).to_string(), algorithm.0.to_string()), (tag.into(), number.into()));
        let produced = DigestType(kind.parse().unwrap()).digest(&[&wire_name(owner), &rdata]).unwrap();
        assert_eq!(HEXLOWER.encode(&produced), digest.to_lowercase(), "{path:?}");
        checked += 1;
    }
    assert!(checked >= 2, "only {checked} DS files");
}
