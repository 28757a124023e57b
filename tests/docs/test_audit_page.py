"""docs/reference/audit.md has each rule of the auditor, as the code has it."""

import re

from service.mergequeue.auditing.findings import Rule, Weight
from tests.tidy.tree import ROOT

PAGE = ROOT / "docs/reference/audit.md"
WORDS = {Weight.FAULT: "fault", Weight.UNKNOWN: "cannot tell", Weight.NOTE: "note"}


def test_the_page_has_each_rule() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    told = [row for row in rows if row[1] in WORDS.values()]
    assert told == [(one.title, WORDS[one.weight], one.sentence) for one in Rule]
