"""DNS messages (RFC 1035 §4.1) and names.

A name is a tuple of its labels from left to right, in lower case (canonical form, RFC 4034 §6.2).
"""

import struct
from collections import namedtuple

TYPES = {
    "A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "HINFO": 13, "MX": 15, "TXT": 16, "RP": 17, "AFSDB": 18,
    "KEY": 25, "AAAA": 28, "LOC": 29, "SRV": 33, "NAPTR": 35, "KX": 36, "CERT": 37, "DNAME": 39, "OPT": 41, "APL": 42,
    "DS": 43, "SSHFP": 44, "IPSECKEY": 45, "RRSIG": 46, "NSEC": 47, "DNSKEY": 48, "DHCID": 49, "NSEC3": 50,
    "NSEC3PARAM": 51, "TLSA": 52, "SMIMEA": 53, "HIP": 55, "CDS": 59, "CDNSKEY": 60, "OPENPGPKEY": 61, "CSYNC": 62,
    "ZONEMD": 63, "SVCB": 64, "HTTPS": 65, "SPF": 99, "EUI48": 108, "EUI64": 109, "ANY": 255, "URI": 256, "CAA": 257,
    "NSEC5": 65280, "NSEC5KEY": 65281, "NSEC5PROOF": 65282,
}  # fmt: skip
NS, CNAME, SOA, DNAME, OPT, DS, RRSIG, DNSKEY, ANY = 2, 5, 6, 39, 41, 43, 46, 48, 255
NSEC5, NSEC5KEY, NSEC5PROOF = 65280, 65281, 65282

# RDATA with names: octets before the first name, names, by type. Those that RFC 1035 may compress, and those whose names
# are lowered in canonical form (RFC 4034 §6.2, RFC 6840 §5.1); NAPTR has strings in front of its name.
NAMES = {
    2: (0, 1), 3: (0, 1), 4: (0, 1), 5: (0, 1), 6: (0, 2), 7: (0, 1), 8: (0, 1), 9: (0, 1), 12: (0, 1), 14: (0, 2),
    15: (2, 1), 17: (0, 2), 18: (2, 1), 21: (2, 1), 26: (2, 2), 33: (6, 1), 36: (2, 1), 39: (0, 1),
}  # fmt: skip
NAPTR = 35

Record = namedtuple("Record", "section owner rtype rclass ttl rdata")


class Malformed(Exception):
    """The octets are no message."""


def read_name(octets, at):
    """The name at this place, and the place behind it."""
    labels, end, length, before = [], None, 0, at
    while True:
        if at >= len(octets):
            raise Malformed("a name runs out of the message")
        count = octets[at]
        if count >= 0xC0:
            if at + 1 >= len(octets):
                raise Malformed("a pointer runs out of the message")
            target = (count & 0x3F) << 8 | octets[at + 1]
            if target >= before:
                raise Malformed("a pointer that does not lead backward")
            end = at + 2 if end is None else end
            at = before = target
            continue
        if count > 63 or at + 1 + count > len(octets):
            raise Malformed("a label that is none")
        at += 1
        if count == 0:
            return tuple(labels), at if end is None else end
        length += count + 1
        if length > 254:
            raise Malformed("a name of more than 255 octets")
        labels.append(bytes(octets[at : at + count]).lower())
        at += count


def wire(name):
    return b"".join(bytes([len(label)]) + label for label in name) + b"\0"


def read_text_name(text):
    """An absolute name in presentation form (RFC 1035 §5.1)."""
    labels, label, at = [], bytearray(), 0
    octets = text.encode()
    while at < len(octets):
        octet = octets[at]
        if octet == ord("."):
            if label:
                labels.append(bytes(label).lower())
            label = bytearray()
        elif octet == ord("\\") and octets[at + 1 : at + 4].isdigit():
            label.append(int(octets[at + 1 : at + 4]))
            at += 3
        elif octet == ord("\\"):
            at += 1
            label.append(octets[at])
        else:
            label.append(octet)
        at += 1
    if label or not text.endswith("."):
        raise ValueError(f"not an absolute name: {text}")
    return tuple(labels)


def text(name):
    """For messages."""
    return "".join(label.decode("latin-1") + "." for label in name) or "."


def read_type(given):
    """A number, a mnemonic in any case, or TYPEn for any type (RFC 3597 §5)."""
    number = given
    if isinstance(given, str):
        mnemonic = given.upper()
        digits = mnemonic.removeprefix("TYPE")
        is_generic = digits != mnemonic and digits.isascii() and digits.isdigit()
        number = int(digits) if is_generic else TYPES.get(mnemonic)
    if type(number) is not int or not 0 <= number <= 0xFFFF:
        raise ValueError(f"unknown type {given}: give a mnemonic, TYPEn or a number from 0 to 65535")
    return number


def is_at_or_below(name, ancestor):
    return len(name) >= len(ancestor) and name[len(name) - len(ancestor) :] == ancestor


def canonical_rdata(rtype, octets, at, length):
    """RDATA in canonical form: names written out, in lower case."""
    end = at + length
    if end > len(octets):
        raise Malformed("RDATA runs out of the message")
    if rtype == NAPTR:
        start, place = at, at + 4
        for _ in range(3):
            if place >= end:
                raise Malformed("NAPTR")
            place += 1 + octets[place]
        prefix, names = place - start, 1
    elif rtype in NAMES:
        prefix, names = NAMES[rtype]
    else:
        return bytes(octets[at:end])
    form, place = bytearray(octets[at : at + prefix]), at + prefix
    for _ in range(names):
        name, place = read_name(octets, place)
        form += wire(name)
    if place > end:
        raise Malformed("RDATA is too short for its names")
    return bytes(form + octets[place:end])


class Message:
    """`id`, `flags`, `questions` as (name, type, class), `records`."""

    def __init__(self, octets):
        if len(octets) < 12:
            raise Malformed("no header")
        fields = [int.from_bytes(octets[at : at + 2], "big") for at in range(0, 12, 2)]
        self.id, self.flags, counts = fields[0], fields[1], fields[2:]
        at, self.questions, self.records = 12, [], []
        for _ in range(counts[0]):
            name, at = read_name(octets, at)
            if at + 4 > len(octets):
                raise Malformed("the question runs out of the message")
            numbers = int.from_bytes(octets[at : at + 2], "big"), int.from_bytes(octets[at + 2 : at + 4], "big")
            self.questions.append((name, *numbers))
            at += 4
        for section, count in zip(("answer", "authority", "additional"), counts[1:]):
            for _ in range(count):
                owner, at = read_name(octets, at)
                if at + 10 > len(octets):
                    raise Malformed("a record runs out of the message")
                rtype, rclass, ttl, length = struct.unpack("!HHIH", octets[at : at + 10])
                rdata = canonical_rdata(rtype, octets, at + 10, length)
                self.records.append(Record(section, owner, rtype, rclass, ttl, rdata))
                at += 10 + length

    @property
    def is_response(self):
        return self.flags & 0x8000 != 0

    @property
    def is_truncated(self):
        return self.flags & 0x0200 != 0

    @property
    def rcode(self):
        options = [record for record in self.records if (record.rtype, record.section) == (OPT, "additional")]
        return self.flags & 0xF | (options[0].ttl >> 24 << 4 if options else 0)


def key_tag(rdata):
    """RFC 4034 appendix B, the general form."""
    total = 0
    for at, octet in enumerate(rdata):
        total += octet if at & 1 else octet << 8
    return (total + (total >> 16 & 0xFFFF)) & 0xFFFF


def bitmap_types(octets):
    """The types of a bit map (RFC 4034 §4.1.2), or None where it is malformed."""
    types, at, last = set(), 0, -1
    while at < len(octets):
        if at + 2 > len(octets):
            return None
        window, length = octets[at], octets[at + 1]
        bits = octets[at + 2 : at + 2 + length]
        if window <= last or not 1 <= length <= 32 or len(bits) < length:
            return None
        for place, octet in enumerate(bits):
            types.update(window << 8 | place << 3 | bit for bit in range(8) if octet & 0x80 >> bit)
        last, at = window, at + 2 + length
    return types
