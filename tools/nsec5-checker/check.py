#!/usr/bin/env python3
"""Judges answers of zones with NSEC5: a line of JSON in, a line of JSON out. See README.md."""

import base64
import json
import sys

from judge import Checker
from message import read_text_name, read_type


def judge_line(checker, line):
    given = json.loads(line)
    dnskeys, nsec5keys = (
        [base64.b64decode(each, validate=True) for each in given.get(name, [])] for name in ("dnskey", "nsec5key")
    )
    zone = checker.zone(read_text_name(given["zone"]), dnskeys, nsec5keys)
    question = given["question"]
    name, rtype = read_text_name(question["name"]), read_type(question["type"])
    response = base64.b64decode(given["response"], validate=True)
    verdict = checker.judge(zone, given["now"] & 0xFFFFFFFF, name, rtype, response)
    answer = verdict._asdict()
    return {"id": given["id"], **answer} if "id" in given else answer


def main():
    checker = Checker()
    for line in sys.stdin:
        try:
            answer = judge_line(checker, line)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
