"""Verification of the VRFs of RFC 9381 that NSEC5 uses, by NSEC5 algorithm number."""

import hashlib

from curves import ED25519, P256


def read_rsa_key(octets):
    """RFC 3110 §2: (exponent, modulus), or None."""
    if not octets:
        return None
    length, at = octets[0], 1
    if length == 0:
        if len(octets) < 3:
            return None
        length, at = int.from_bytes(octets[1:3], "big"), 3
    exponent, modulus = octets[at : at + length], octets[at + length :]
    if len(exponent) < length or not exponent or not modulus or modulus[0] == 0:
        return None
    return int.from_bytes(exponent, "big"), int.from_bytes(modulus, "big")


class P256Tai:
    """ECVRF-P256-SHA256-TAI, suite 0x01 (RFC 9381 §5.5)."""

    suite = b"\x01"
    proof_octets = 81

    def __init__(self, key):
        """`key` is x ‖ y (RFC 6605 §4). The curve has cofactor 1, so that every point on it but infinity, which has no
        such form, passes RFC 9381 §5.4.5."""
        self.point = (int.from_bytes(key[:32], "big"), int.from_bytes(key[32:], "big"))
        if len(key) != 64 or not P256.holds(self.point):
            raise ValueError("the NSEC5 key is no point of P-256")
        self.text = P256.compress(self.point)

    def encode_to_curve(self, alpha):
        """RFC 9381 §5.4.1.1."""
        for counter in range(256):
            text = self.suite + b"\x01" + self.text + alpha + bytes([counter, 0])
            point = P256.decompress(b"\x02" + hashlib.sha256(text).digest())
            if point is not None:
                return point
        return None

    def verify(self, alpha, proof):
        """The VRF output, or None (RFC 9381 §5.3)."""
        if len(proof) != self.proof_octets:
            return None
        gamma = P256.decompress(proof[:33])
        c, s = int.from_bytes(proof[33:49], "big"), int.from_bytes(proof[49:], "big")
        hashed = self.encode_to_curve(alpha)
        if gamma is None or hashed is None or s >= P256.q:
            return None
        u = P256.combine_fixed((s, P256.base), (-c, self.point))
        v = P256.combine((s, hashed), (c, P256.negated(gamma)))
        points = b"".join(P256.compress(point) for point in (self.point, hashed, gamma, u, v))
        challenge = hashlib.sha256(self.suite + b"\x02" + points + b"\x00").digest()[:16]
        if challenge != proof[33:49]:
            return None
        return hashlib.sha256(self.suite + b"\x03" + proof[:33] + b"\x00").digest()


class Ed25519Tai:
    """ECVRF-EDWARDS25519-SHA512-TAI, suite 0x03 (RFC 9381 §5.5)."""

    suite = b"\x03"
    proof_octets = 80

    def __init__(self, key):
        self.text = key
        self.point = ED25519.decompress(key)
        # RFC 9381 §5.4.5: no point of small order.
        if self.point is None or ED25519.times_cofactor(self.point) == (0, 1):
            raise ValueError("the NSEC5 key is no fit point of edwards25519")
        self.negated = ED25519.negated(self.point)

    def encode_to_curve(self, alpha):
        for counter in range(256):
            text = self.suite + b"\x01" + self.text + alpha + bytes([counter, 0])
            point = ED25519.decompress(hashlib.sha512(text).digest()[:32])
            if point is not None:
                point = ED25519.times_cofactor(point)
                if point != (0, 1):
                    return point
        return None

    def verify(self, alpha, proof):
        if len(proof) != self.proof_octets:
            return None
        gamma = ED25519.decompress(proof[:32])
        c, s = int.from_bytes(proof[32:48], "little"), int.from_bytes(proof[48:], "little")
        hashed = self.encode_to_curve(alpha)
        if gamma is None or hashed is None or s >= ED25519.q:
            return None
        u = ED25519.combine_fixed((s, ED25519.base), (c, self.negated))
        v = ED25519.combine((s, hashed), (c, ED25519.negated(gamma)))
        points = b"".join(ED25519.compress(point) for point in (self.point, hashed, gamma, u, v))
        challenge = hashlib.sha512(self.suite + b"\x02" + points + b"\x00").digest()[:16]
        if challenge != proof[32:48]:
            return None
        text = ED25519.compress(ED25519.times_cofactor(gamma))
        return hashlib.sha512(self.suite + b"\x03" + text + b"\x00").digest()


def expand_message(message, domain, length):
    """expand_message_xmd of RFC 9380 §5.3.1 with SHA-512."""
    domain += bytes([len(domain)])
    first = hashlib.sha512(bytes(128) + message + length.to_bytes(2, "big") + b"\0" + domain).digest()
    block, output = bytes(64), b""
    for index in range(1, -(-length // 64) + 1):
        mixed = bytes(a ^ b for a, b in zip(first, block)) if output else first
        block = hashlib.sha512(mixed + bytes([index]) + domain).digest()
        output += block
    return output[:length]


def elligator2(u):
    """From a field element to edwards25519, over curve25519 (RFC 9380 §6.7.1, §6.8.2, appendix D.1)."""
    p, j = ED25519.p, 486662
    t = 2 * u * u % p
    if t == p - 1:
        t = 0
    s = -j * pow(1 + t, -1, p) % p
    square = (s * s * s + j * s * s + s) % p
    root = ED25519.root(square)
    wanted = 1
    if root is None:
        s = (-s - j) % p
        root, wanted = ED25519.root((s * s * s + j * s * s + s) % p), 0
    if root & 1 != wanted:
        root = -root % p
    factor = ED25519.root(-486664 % p)
    if factor & 1:
        factor = p - factor
    if root == 0 or s == p - 1:
        return (0, 1)
    return (factor * s * pow(root, -1, p) % p, (s - 1) * pow(s + 1, -1, p) % p)


class Ed25519Ell2(Ed25519Tai):
    """ECVRF-EDWARDS25519-SHA512-ELL2, suite 0x04 (RFC 9381 §5.4.1.2, §5.5)."""

    suite = b"\x04"

    def encode_to_curve(self, alpha):
        domain = b"ECVRF_edwards25519_XMD:SHA-512_ELL2_NU_" + self.suite
        uniform = expand_message(self.text + alpha, domain, 48)
        return ED25519.times_cofactor(elligator2(int.from_bytes(uniform, "big") % ED25519.p))


class RsaFdh:
    """RSA-FDH-VRF-SHA256, suite 0x01 (RFC 9381 §4). NSEC5 has it with 2048 bits only; the RFC's examples have others."""

    suite = b"\x01"

    def __init__(self, key, sizes=(2048,)):
        pair = read_rsa_key(key)
        if pair is None or pair[1].bit_length() not in sizes:
            raise ValueError("the NSEC5 key is no RSA key of 2048 bits")
        self.exponent, self.modulus = pair
        self.octets = self.modulus.bit_length() // 8
        self.salt = self.octets.to_bytes(4, "big") + self.modulus.to_bytes(self.octets, "big")

    def verify(self, alpha, proof):
        value = int.from_bytes(proof, "big")
        if len(proof) != self.octets or value >= self.modulus:
            return None
        seed, mask = self.suite + b"\x01" + self.salt + alpha, b""
        for counter in range(-(-(self.octets - 1) // 32)):
            mask += hashlib.sha256(seed + counter.to_bytes(4, "big")).digest()
        if pow(value, self.exponent, self.modulus) != int.from_bytes(mask[: self.octets - 1], "big"):
            return None
        return hashlib.sha256(self.suite + b"\x02" + proof).digest()


VRFS = {1: P256Tai, 2: Ed25519Tai, 3: Ed25519Ell2, 128: RsaFdh}
