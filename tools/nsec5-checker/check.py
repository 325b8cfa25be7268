#!/usr/bin/env python3
"""Checks answers of zones with NSEC5: reads and writes lines of JSON. See README.md."""

import base64
import json
import sys

from judge import Checker
from message import read_text_name, read_type


def judge_line(checker, given):
    dnskeys, nsec5keys = (
        [base64.b64decode(each, validate=True) for each in given.get(name, [])] for name in ("dnskey", "nsec5key")
    )
    zone = checker.zone(read_text_name(given["zone"]), dnskeys, nsec5keys)
    question = given["question"]
    name, rtype = read_text_name(question["name"]), read_type(question["type"])
    response = base64.b64decode(given["response"], validate=True)
    return checker.judge(zone, given["now"] & 0xFFFFFFFF, name, rtype, response)._asdict()


def answer_line(checker, line):
    """The answer to one line; of a line that cannot be read `status` is error."""
    given = None
    try:
        given = json.loads(line)
        answer = judge_line(checker, given)
    # A line can be wrong in many ways; none of them may cost the verdicts of the lines behind it.
    except Exception as error:
        answer = {"status": "error", "error": f"{type(error).__name__}: {error}"}
    return {"id": given["id"], **answer} if isinstance(given, dict) and "id" in given else answer


def main():
    checker = Checker()
    for line in sys.stdin.buffer:
        sys.stdout.write(json.dumps(answer_line(checker, line)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
