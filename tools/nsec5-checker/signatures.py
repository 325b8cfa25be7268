"""RRSIG records (RFC 4035 §5.3), and the algorithms of the NSEC5 alias numbers."""

import hashlib
import struct

from curves import ED25519, P256, P384
from message import RRSIG, key_tag, read_name, wire
from vrf import read_rsa_key

# Alias numbers of zones with NSEC5, and the numbers of the original algorithms.
ALIASES = {228: 8, 229: 13, 230: 14, 231: 15, 236: 10}
KNOWN = {8, 10, 13, 14, 15}

PKCS1 = {  # RFC 8017 §9.2: DigestInfo
    8: bytes.fromhex("3031300d060960864801650304020105000420"),
    10: bytes.fromhex("3051300d060960864801650304020305000440"),
}


def verify_rsa(algorithm, key, message, signature):
    pair = read_rsa_key(key)
    if pair is None:
        return False
    exponent, modulus = pair
    octets = (modulus.bit_length() + 7) // 8
    if not 128 <= octets <= 512 or len(signature) != octets:
        return False
    digest = hashlib.sha256 if algorithm == 8 else hashlib.sha512
    info = PKCS1[algorithm] + digest(message).digest()
    padded = b"\0\1" + b"\xff" * (octets - 3 - len(info)) + b"\0" + info
    value = int.from_bytes(signature, "big")
    return value < modulus and pow(value, exponent, modulus) == int.from_bytes(padded, "big")


def verify_ecdsa(curve, digest, key, message, signature):
    """FIPS 186-5 §6.4.2, in the form of RFC 6605 §4."""
    size = curve.octets
    if len(key) != 2 * size or len(signature) != 2 * size:
        return False
    point = int.from_bytes(key[:size], "big"), int.from_bytes(key[size:], "big")
    r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
    if not (curve.holds(point) and 0 < r < curve.q and 0 < s < curve.q):
        return False
    inverse = pow(s, -1, curve.q)
    number = int.from_bytes(digest(message).digest(), "big")
    total = curve.combine_fixed((number * inverse, curve.base), (r * inverse, point))
    return total is not None and total[0] % curve.q == r


def verify_ed25519(key, message, signature):
    """RFC 8032 §5.1.7, without the cofactor."""
    point = ED25519.decompress(key)
    if point is None or len(signature) != 64:
        return False
    s = int.from_bytes(signature[32:], "little")
    if s >= ED25519.q:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ED25519.q
    total = ED25519.combine_fixed((s, ED25519.base), (k, ED25519.negated(point)))
    return ED25519.compress(total) == signature[:32]


def verify_signature(algorithm, key, message, signature):
    algorithm = ALIASES.get(algorithm, algorithm)
    if algorithm in (8, 10):
        return verify_rsa(algorithm, key, message, signature)
    if algorithm == 13:
        return verify_ecdsa(P256, hashlib.sha256, key, message, signature)
    if algorithm == 14:
        return verify_ecdsa(P384, hashlib.sha384, key, message, signature)
    return algorithm == 15 and verify_ed25519(key, message, signature)


class Rrsig:
    """The fields of an RRSIG record's RDATA (RFC 4034 §3.1)."""

    def __init__(self, rdata):
        fields = struct.unpack("!HBBIIIH", rdata[:18])
        self.covered, self.algorithm, self.labels, self.original_ttl = fields[:4]
        self.expiration, self.inception, self.tag = fields[4:]
        self.signer, end = read_name(rdata, 18)
        self.signature = rdata[end:]
        self.start = rdata[:18]


def is_not_after(a, b):
    """Serial number arithmetic (RFC 1982) of times."""
    return (b - a) & 0xFFFFFFFF < 0x80000000


class Keys:
    """The DNSKEY records of a zone that may sign."""

    def __init__(self, apex, rdatas):
        self.apex = apex
        self.count = len(rdatas)
        self.usable = []  # (algorithm, tag, key)
        for rdata in rdatas:
            if len(rdata) < 5:
                continue
            flags, protocol, algorithm = struct.unpack("!HBB", rdata[:4])
            # RFC 4034 §2.1.1, §2.1.2; RFC 5011 §2.1.
            if flags & 0x0100 and not flags & 0x0080 and protocol == 3 and ALIASES.get(algorithm, algorithm) in KNOWN:
                self.usable.append((algorithm, key_tag(rdata), rdata[4:]))


class Verifier:
    """Verifies RRsets, and remembers what it verified by its octets."""

    RRSIGS = 8  # looked at for one RRset
    COLLISIONS = 2  # keys tried for one RRSIG

    def __init__(self):
        self.known = {}

    def verify_rrset(self, keys, now, owner, rtype, rdatas, signatures):
        """The RRSIG that makes an RRset secure, or None."""
        for rdata in signatures[: self.RRSIGS]:
            try:
                rrsig = Rrsig(rdata)
            except Exception:  # noqa: BLE001, whatever is wrong with it: it is no RRSIG
                continue
            if self._fits(keys, now, owner, rtype, rrsig) and self._verifies(keys, owner, rtype, rdatas, rrsig):
                return rrsig
        return None

    @staticmethod
    def _fits(keys, now, owner, rtype, rrsig):
        """RFC 4035 §5.3.1."""
        count = len(owner) - (1 if owner and owner[0] == b"*" else 0)
        return (
            rrsig.covered == rtype
            and rtype != RRSIG
            and rrsig.signer == keys.apex
            and rrsig.labels <= count
            and rrsig.labels >= len(keys.apex)
            and is_not_after(rrsig.inception, now)
            and is_not_after(now, rrsig.expiration)
        )

    def _verifies(self, keys, owner, rtype, rdatas, rrsig):
        """RFC 4035 §5.3.2."""
        if len(owner) > rrsig.labels and not (owner[0] == b"*" and len(owner) == rrsig.labels + 1):
            owner = (b"*",) + owner[len(owner) - rrsig.labels :]
        front = wire(owner) + struct.pack("!HHI", rtype, 1, rrsig.original_ttl)
        records = b"".join(front + struct.pack("!H", len(rdata)) + rdata for rdata in sorted(set(rdatas)))
        message = rrsig.start + wire(rrsig.signer) + records
        tried = [key for algorithm, tag, key in keys.usable if (algorithm, tag) == (rrsig.algorithm, rrsig.tag)]
        for key in tried[: self.COLLISIONS]:
            at = (rrsig.algorithm, key, message, rrsig.signature)
            if at not in self.known:
                self.known[at] = verify_signature(*at)
            if self.known[at]:
                return True
        return False
