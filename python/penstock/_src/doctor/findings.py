"""What `penstock doctor` has found, and how it is printed."""

from __future__ import annotations

import dataclasses
import textwrap

OK, NOTE, PROBLEM = "ok", "note", "problem"
_MARK = {OK: " ", NOTE: "-", PROBLEM: "!"}
_SUBJECT = 15  # columns
_WIDTH = 110


@dataclasses.dataclass(frozen=True)
class Finding:
    subject: str
    found: str
    level: str = OK  # note: something could be better, or is missing that not every job needs; problem: jobs fail
    advice: str = ""  # what to do


def lines(findings: list[Finding]) -> list[str]:
    """Returns a table with the advice below each finding."""
    wrapped = []
    for one in findings:
        head = f"{_MARK[one.level]} {one.subject:<{_SUBJECT}}"
        wrapped += textwrap.wrap(
            one.found, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
        )
        if one.advice:
            indent = " " * len(head)
            wrapped += textwrap.wrap(
                one.advice,
                _WIDTH,
                initial_indent=indent + "-> ",
                subsequent_indent=indent + "   ",
                break_on_hyphens=False,
            )
    return wrapped
