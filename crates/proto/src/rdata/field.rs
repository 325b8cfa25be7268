//! The kinds of fields in RDATA.

/// A kind of field in RDATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A domain name.
    Name {
        /// Whether the name may be compressed in messages (RFC 3597 §4).
        compress: bool,
        /// Whether the canonical form has the name in lower case (RFC 4034 §6.2, RFC 6840 §5.1).
        lower: bool,
    },
    /// A number of 8 bits.
    U8,
    /// A number of 16 bits.
    U16,
    /// A number of 32 bits.
    U32,
    /// A number of seconds, 32 bits. It is written as a plain number, and read as a plain number or
    /// with units.
    Ttl,
    /// A time (RFC 4034 §3.2), 32 bits.
    Timestamp,
    /// A DNSSEC algorithm, 8 bits. It is read as a mnemonic or a number, and written as a number.
    AlgorithmNumber,
    /// A certificate type (RFC 4398 §2.1), 16 bits.
    CertificateType,
    /// A record type, 16 bits.
    TypeNumber,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// One character string: a length octet and the octets.
    CharacterString,
    /// One or more character strings, to the end of the RDATA.
    CharacterStrings,
    /// Octets to the end of the RDATA, written as one quoted string without a length limit.
    QuotedText,
    /// A CAA property tag (RFC 8659 §4.1): a length octet and letters or digits, unquoted.
    Tag,
    /// Base64 to the end of the RDATA, at least one octet.
    Base64,
    /// Base64 to the end of the RDATA, possibly empty.
    Base64OrEmpty,
    /// Hexadecimal digits to the end of the RDATA.
    Hex,
    /// A length octet and the octets, written as hexadecimal digits, or as `-` if empty (RFC 5155
    /// §3.3).
    Salt,
    /// A length octet and the octets, written as base32hex without padding (RFC 5155 §3.3).
    HashedName,
    /// Type bit maps to the end of the RDATA (RFC 4034 §4.1.2).
    Bitmap,
    /// Type bit map of NXT (RFC 2535 §5.2) to the end of the RDATA: one bit string for the types 0
    /// to 127.
    NxtBitmap,
    /// This number of octets, written as pairs of hexadecimal digits joined by hyphens (RFC 7043).
    HexPairs(u8),
    /// 64 bits, written as four groups of hexadecimal digits joined by colons (RFC 6742 §2).
    HexGroups64,
    /// A location (RFC 1876).
    Location,
    /// Address prefixes (RFC 3123).
    AddressPrefixes,
    /// Service parameters to the end of the RDATA (RFC 9460 §2.2).
    ServiceParameters,
    /// The gateway type of IPSECKEY (RFC 4025 §2.3), 8 bits.
    GatewayType,
    /// Discovery bit and relay type of AMTRELAY (RFC 8777 §4.2), 8 bits.
    RelayType,
    /// A gateway: nothing, an address or a name, according to the preceding gateway type.
    Gateway,
    /// Prefix length, address suffix and prefix name of A6 (RFC 2874 §3.1).
    A6Address,
    /// HIP (RFC 8005 §5): identity, key and rendezvous servers.
    HipFields,
}
