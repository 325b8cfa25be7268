"""Tests the VRFs with the examples of RFC 9381, appendices A and B:

    python3 test_vrf.py ../../crates/crypto/tests/vrf-vectors.json
"""

import json
import sys

from curves import P256
from vrf import VRFS, RsaFdh


def make_vrf(number, key):
    """From a public key of the file of vectors: of P-256 it has the compressed form."""
    if number == 1:
        x, y = P256.decompress(key)
        key = x.to_bytes(32, "big") + y.to_bytes(32, "big")
    return RsaFdh(key, (2048, 3072, 4096)) if number == 128 else VRFS[number](key)


def main(path):
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)["vectors"]
    for vector in vectors:
        number, example = vector["algorithm"], vector["example"]
        vrf = make_vrf(number, bytes.fromhex(vector["public"]))
        alpha, proof = bytes.fromhex(vector["alpha"]), bytes.fromhex(vector["pi"])
        assert vrf.verify(alpha, proof) == bytes.fromhex(vector["beta"]), (number, example)
        assert vrf.verify(alpha + b"x", proof) is None, (number, example, "another input")
        assert vrf.verify(alpha, proof[:-1]) is None, (number, example, "too short")
        for at in range(0, len(proof), 7):
            altered = proof[:at] + bytes([proof[at] ^ 1]) + proof[at + 1 :]
            assert vrf.verify(alpha, altered) is None, (number, example, "octet", at)
    counts = {number: sum(vector["algorithm"] == number for vector in vectors) for number in VRFS}
    assert all(count == 3 for count in counts.values()), counts
    print(f"{len(vectors)} examples of RFC 9381 hold")


if __name__ == "__main__":
    main(sys.argv[1])
