"""Determines what an answer of a zone with NSEC5 proves, according to the tables of the NSEC5 description."""

import base64
from collections import namedtuple

from message import (
    ANY,
    CNAME,
    DNAME,
    DS,
    NS,
    NSEC5,
    NSEC5PROOF,
    OPT,
    RRSIG,
    SOA,
    Malformed,
    Message,
    bitmap_types,
    is_at_or_below,
    key_tag,
    read_name,
    text,
    wire,
)
from signatures import ALIASES, Keys, Verifier
from vrf import VRFS

NSEC, NSEC3 = 47, 50
NOERROR, NXDOMAIN, YXDOMAIN = 0, 3, 6
OPT_OUT, WILDCARD = 1, 2
ALIAS_STEPS = 16
PROOFS = 4  # VRF verifications for one response
SEVERITY = ("bogus", "indeterminate", "insecure", "secure")

# Beside the verdict: how many RRsets were found secure, and how many proofs were verified.
Verdict = namedtuple("Verdict", "status proved reason signatures vrf", defaults=(0, 0))


class Refused(Exception):
    """The answer is not what it claims to be; says why."""

    def __init__(self, reason, status="bogus"):
        super().__init__(reason)
        self.status = status


class Nsec5Record:
    """One NSEC5 record: hash, next hash, key tag, flags, types. Raises ValueError where the record is to be ignored."""

    def __init__(self, apex, owner, rdata):
        if len(owner) != len(apex) + 1 or not is_at_or_below(owner, apex):
            raise ValueError("the owner is not one label below the apex")
        label = owner[0].decode("ascii", "replace").upper()
        if len(label) != 52:
            raise ValueError("the owner is no hash")
        try:
            self.hash = base64.b32hexdecode(label + "====")
        except Exception as error:
            raise ValueError("the owner is not base32hex") from error
        if base64.b32hexencode(self.hash).decode().rstrip("=") != label:
            raise ValueError("the owner is not base32hex in the one form")
        if len(rdata) < 36 or rdata[3] != 32:
            raise ValueError("the next hash has not 32 octets")
        self.tag, self.flags, self.next = int.from_bytes(rdata[:2], "big"), rdata[2], rdata[4:36]
        self.types = bitmap_types(rdata[36:])
        if self.flags & ~(OPT_OUT | WILDCARD):
            raise ValueError("unknown flags")
        if self.types is None:
            raise ValueError("the bit map is malformed")

    @property
    def is_opt_out(self):
        return self.flags & OPT_OUT != 0

    def covers(self, value):
        """Strictly between owner and next, the last record over the end."""
        if self.hash < self.next:
            return self.hash < value < self.next
        return value > self.hash or value < self.next

    def is_of_parent(self):
        """At a delegation (NS without SOA)."""
        return NS in self.types and SOA not in self.types


class Nsec5Keys:
    """The NSEC5KEY records of a zone: validated once."""

    LIMIT = 4

    def __init__(self, rdatas):
        self.by_tag, self.fault = {}, None
        if len(rdatas) > self.LIMIT:
            self.fault = f"more than {self.LIMIT} NSEC5KEY records"
            return
        tags = [key_tag(rdata) for rdata in rdatas]
        if len(set(tags)) < len(tags):
            self.fault = "two NSEC5KEY records have one key tag"
            return
        for tag, rdata in zip(tags, rdatas):
            kind = VRFS.get(rdata[0]) if rdata else None
            if kind is not None:
                try:
                    self.by_tag[tag] = kind(rdata[1:])
                except ValueError:
                    continue
        if not self.by_tag:
            self.fault = "no NSEC5KEY record that is known and sound"


class Zone:
    """Trusted keys of a zone."""

    def __init__(self, apex, dnskeys, nsec5keys):
        self.apex = apex
        self.keys = Keys(apex, dnskeys)
        self.nsec5_keys = Nsec5Keys(nsec5keys)


class Checker:
    """Judges answers; keeps what was verified, and the tables of the keys."""

    def __init__(self):
        self.verifier = Verifier()
        self.hashes = {}
        self.zones = {}

    def zone(self, apex, dnskeys, nsec5keys):
        at = (apex, tuple(dnskeys), tuple(nsec5keys))
        if at not in self.zones:
            self.zones[at] = Zone(apex, dnskeys, nsec5keys)
        return self.zones[at]

    def vrf_hash(self, vrf, name, proof):
        """The NSEC5 hash that a proof shows for a name, or None: 32 octets, of longer outputs the first."""
        at = (id(vrf), name, proof)
        if at not in self.hashes:
            output = vrf.verify(wire(name), proof)
            self.hashes[at] = None if output is None else output[:32]
        return self.hashes[at]

    def judge(self, zone, now, name, rtype, octets):
        try:
            message = Message(octets)
        except Malformed as error:
            return Verdict("indeterminate", None, str(error))
        try:
            self._is_answer(zone, message, name, rtype)
            return Answer(self, zone, now, message).judge(name, rtype)
        except Refused as refused:
            return Verdict(refused.status, None, str(refused))

    @staticmethod
    def _is_answer(zone, message, name, rtype):
        """Refuses what says nothing of this question."""
        not_an_answer = (
            not message.is_response
            or message.is_truncated
            or message.rcode not in (NOERROR, NXDOMAIN, YXDOMAIN)
            or any(question != (name, rtype, 1) for question in message.questions)
            or not is_at_or_below(name, zone.apex)
            or (128 <= rtype < ANY or rtype in (OPT, RRSIG))
        )
        if not_an_answer or not zone.keys.count:
            raise Refused("not an answer to the question", "indeterminate")
        if zone.keys.count > 32:
            raise Refused("more than 32 DNSKEY records")
        if not zone.keys.usable:
            raise Refused("no DNSKEY of an algorithm that is known", "insecure")


class Answer:
    """One response while it is judged."""

    def __init__(self, checker, zone, now, message):
        self.checker, self.zone, self.now, self.rcode = checker, zone, now, message.rcode
        self.rrsets, self.signatures = {}, {}
        for record in message.records:
            if record.rclass != 1:
                continue
            if record.rtype == RRSIG and len(record.rdata) > 18:
                at = (record.section, record.owner, int.from_bytes(record.rdata[:2], "big"))
                self.signatures.setdefault(at, []).append(record.rdata)
            else:
                self.rrsets.setdefault((record.section, record.owner, record.rtype), []).append(record.rdata)
        self.proofs_looked_at = {}
        self.status, self.reason = "secure", None
        self.signature_count = 0
        self._records = None

    # What stands in the message.

    def rrset(self, section, owner, rtype):
        return self.rrsets.get((section, owner, rtype))

    def owners(self, section, rtype):
        return [at[1] for at in self.rrsets if (at[0], at[2]) == (section, rtype)]

    def verified(self, section, owner, rtype, aliases_only=False):
        """The RRSIG that makes an RRset secure, or None."""
        signatures = self.signatures.get((section, owner, rtype), [])
        if aliases_only:
            signatures = [rdata for rdata in signatures if rdata[2] in ALIASES]
        if not is_at_or_below(owner, self.zone.apex):
            return None
        rdatas = self.rrset(section, owner, rtype)
        rrsig = self.checker.verifier.verify_rrset(self.zone.keys, self.now, owner, rtype, rdatas, signatures)
        self.signature_count += rrsig is not None
        return rrsig

    def secure(self, section, owner, rtype, may_be_expanded=False):
        """The RRSIG of an RRset that must be secure."""
        rrsig = self.verified(section, owner, rtype)
        if rrsig is None:
            raise Refused(f"no signature makes {text(owner)} type {rtype} secure")
        if not may_be_expanded and is_expanded(owner, rrsig):
            raise Refused(f"{text(owner)} type {rtype} is expanded from a wildcard")
        return rrsig

    def lower(self, status, reason):
        if SEVERITY.index(status) < SEVERITY.index(self.status):
            self.status, self.reason = status, reason

    # NSEC5.

    @property
    def records(self):
        """The NSEC5 records that are secure."""
        if self._records is None:
            self._records = []
            for owner in self.owners("authority", NSEC5):
                rrsig = self.verified("authority", owner, NSEC5, aliases_only=True)
                if rrsig is None or is_expanded(owner, rrsig):
                    continue
                for rdata in self.rrset("authority", owner, NSEC5):
                    try:
                        self._records.append(Nsec5Record(self.zone.apex, owner, rdata))
                    except ValueError:
                        continue
            others = [self.owners("authority", rtype) for rtype in (NSEC, NSEC3)]
            if any(others):
                raise Refused("NSEC or NSEC3 records: not for this program", "unsupported")
        return self._records

    def has_proof(self, name):
        return self.rrset("authority", name, NSEC5PROOF) is not None

    def hashes(self, name):
        """The hashes of a name that proofs show, with their key tags."""
        if self.zone.nsec5_keys.fault:
            raise Refused(self.zone.nsec5_keys.fault)
        if name not in self.proofs_looked_at:
            shown = []
            for rdata in self.rrset("authority", name, NSEC5PROOF) or []:
                tag = int.from_bytes(rdata[:2], "big")
                vrf = self.zone.nsec5_keys.by_tag.get(tag) if len(rdata) > 2 else None
                if vrf is None:
                    continue
                if sum(len(each) for each in self.proofs_looked_at.values()) + len(shown) >= PROOFS:
                    raise Refused("too many VRF verifications", "indeterminate")
                shown.append((tag, self.checker.vrf_hash(vrf, name, rdata[2:])))
            self.proofs_looked_at[name] = shown
        return [(tag, value) for tag, value in self.proofs_looked_at[name] if value is not None]

    def match(self, name):
        """The record whose owner is the hash of a name, under the same key tag."""
        for tag, value in self.hashes(name):
            for record in self.records:
                if record.tag == tag and record.hash == value:
                    return record
        return None

    def cover(self, name):
        """The record that covers the hash of a name, under the same key tag."""
        for tag, value in self.hashes(name):
            for record in self.records:
                if record.tag == tag and record.hash != value and record.covers(value):
                    return record
        return None

    def enclosers(self, name):
        """Pairs (closest encloser, next closer name) that may be, from the longest on."""
        for at in range(1, len(name) - len(self.zone.apex) + 1):
            yield name[at:], name[at - 1 :]

    def encloser_proof(self, name):
        """The records of closest encloser and next closer name."""
        for encloser, closer in self.enclosers(name):
            if not (self.has_proof(encloser) and self.has_proof(closer)):
                continue
            matched, covering = self.match(encloser), self.cover(closer)
            if matched is None or covering is None:
                continue
            if DNAME in matched.types:
                raise Refused(f"the closest encloser {text(encloser)} has a DNAME")
            if matched.is_of_parent():
                raise Refused(f"the closest encloser {text(encloser)} is delegated")
            return matched, covering
        raise Refused(f"no closest encloser of {text(name)} is proved")

    # The questions in turn.

    def judge(self, name, rtype):
        steps, seen = 0, {name}
        while True:
            if self.answered(name, rtype):
                if self.rcode == NXDOMAIN:
                    raise Refused("an answer with NXDOMAIN")
                return self.verdict(self.judge_answer(name, rtype))
            target = self.follow(name)
            if target is None:
                break
            steps += 1
            name = target
            if steps > ALIAS_STEPS or name in seen or not is_at_or_below(name, self.zone.apex):
                return self.verdict("alias")
            seen.add(name)
        if self.rcode == YXDOMAIN:
            return self.verdict(self.judge_overlong(name))
        cut = self.referred_to(name, rtype)
        if cut is not None:
            return self.verdict(self.judge_referral(cut))
        if steps and self.rcode == NOERROR and not self.owners("authority", SOA):
            return self.verdict("alias")
        for owner in self.owners("authority", SOA):
            self.secure("authority", owner, SOA)
        return self.verdict(self.judge_nxdomain(name) if self.rcode == NXDOMAIN else self.judge_nodata(name, rtype))

    def verdict(self, proved):
        proofs = sum(len(shown) for shown in self.proofs_looked_at.values())
        return Verdict(self.status, proved, self.reason, self.signature_count, proofs)

    def answered(self, name, rtype):
        if rtype == ANY:
            return any(at[:2] == ("answer", name) for at in self.rrsets)
        return self.rrset("answer", name, rtype) is not None

    def judge_answer(self, name, rtype):
        if rtype == DS and name == self.zone.apex and name:
            raise Refused("DS at the apex is the parent's")
        types = [at[2] for at in self.rrsets if at[:2] == ("answer", name)] if rtype == ANY else [rtype]
        proved = "answer"
        for each in types:
            if self.judge_expansion(name, self.secure("answer", name, each, may_be_expanded=True)):
                proved = "wildcard-answer"
        return proved

    def judge_expansion(self, owner, rrsig):
        """Whether the RRset comes of a wildcard; then no closer name may exist."""
        if not is_expanded(owner, rrsig):
            return False
        closer = owner[len(owner) - rrsig.labels - 1 :]
        covering = self.cover(closer)
        if covering is None:
            raise Refused(f"the next closer name {text(closer)} is not covered")
        if covering.is_opt_out:
            self.lower("insecure", f"{text(closer)} is covered by an opt-out record")
        return True

    def follow(self, name):
        """The target of the CNAME at a name, or None."""
        rdatas = self.rrset("answer", name, CNAME)
        if rdatas is None:
            return None
        target = read_name(rdatas[0], 0)[0]
        if self.signatures.get(("answer", name, CNAME)):
            self.judge_expansion(name, self.secure("answer", name, CNAME, may_be_expanded=True))
            return target
        for owner in self.owners("answer", DNAME):
            if len(name) > len(owner) and is_at_or_below(name, owner):
                self.secure("answer", owner, DNAME)
                base = read_name(self.rrset("answer", owner, DNAME)[0], 0)[0]
                if name[: len(name) - len(owner)] + base == target:
                    return target
        raise Refused(f"the CNAME at {text(name)} is neither signed nor of a DNAME")

    def judge_overlong(self, name):
        for owner in self.owners("answer", DNAME):
            if len(name) > len(owner) and is_at_or_below(name, owner):
                self.secure("answer", owner, DNAME)
                base = read_name(self.rrset("answer", owner, DNAME)[0], 0)[0]
                if len(wire(name[: len(name) - len(owner)] + base)) > 255:
                    return "overlong"
        raise Refused("YXDOMAIN without a DNAME that makes the name too long")

    def referred_to(self, name, rtype):
        """The delegation that a response refers to, or None."""
        if self.rcode != NOERROR or self.owners("authority", SOA):
            return None
        for owner in self.owners("authority", NS):
            at_the_cut = rtype == DS and owner == name
            if is_at_or_below(name, owner) and len(owner) > len(self.zone.apex) and not at_the_cut:
                return owner
        return None

    def judge_referral(self, cut):
        if self.rrset("authority", cut, DS) is not None:
            self.secure("authority", cut, DS)
            return "referral-signed"
        if self.has_proof(cut) and (matched := self.match(cut)) is not None:
            if NS not in matched.types or SOA in matched.types or DS in matched.types:
                raise Refused(f"the record at {text(cut)} is not of an unsigned delegation")
        else:
            self.judge_span(cut)
        self.lower("insecure", "an unsigned delegation")
        return "referral-unsigned"

    def judge_span(self, name):
        """A name that an opt-out chain leaves out."""
        _, covering = self.encloser_proof(name)
        if not covering.is_opt_out:
            raise Refused(f"{text(name)} is covered by a record without Opt-Out")
        self.lower("insecure", f"{text(name)} is in a span of opt-out")

    def judge_nxdomain(self, name):
        matched, covering = self.encloser_proof(name)
        if matched.flags & WILDCARD:
            raise Refused("the closest encloser has a wildcard")
        if covering.is_opt_out:
            self.lower("insecure", "the next closer name is in a span of opt-out")
        return "nxdomain"

    def judge_nodata(self, name, rtype):
        if self.has_proof(name):
            matched = self.match(name)
            if matched is not None:
                self.lacks(matched, name, rtype)
                return "nodata"
        for encloser, closer in self.enclosers(name):
            wildcard = (b"*",) + encloser
            if not (self.has_proof(wildcard) and self.has_proof(closer)):
                continue
            matched, covering = self.match(wildcard), self.cover(closer)
            if matched is not None and covering is not None:
                self.lacks(matched, wildcard, rtype)
                if covering.is_opt_out:
                    self.lower("insecure", "the next closer name is in a span of opt-out")
                return "wildcard-nodata"
        if rtype == DS:
            self.judge_span(name)
            return "nodata"
        raise Refused(f"{text(name)} is not proved to lack the type")

    @staticmethod
    def lacks(record, name, rtype):
        """The record shows that its name has neither the type nor an alias, and is not the other side's."""
        if rtype in record.types or CNAME in record.types:
            raise Refused(f"{text(name)} has the type or a CNAME")
        if rtype == ANY and record.types:
            raise Refused(f"{text(name)} has records")
        if rtype != DS and record.is_of_parent():
            raise Refused(f"{text(name)} is delegated: only its DS is of this zone")
        if rtype == DS and SOA in record.types and name:
            raise Refused(f"{text(name)} is the apex: its DS is the parent's")


def is_expanded(owner, rrsig):
    """Whether the RRset comes of a wildcard (RFC 4035 §5.3.4)."""
    return len(owner) > rrsig.labels and not (owner[0] == b"*" and len(owner) == rrsig.labels + 1)
