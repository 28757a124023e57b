"""Failures that a report declares and does not hold, and outcomes that no reader knows."""

import json

import pytest

from service.testhealth.reports import reports
from service.testhealth.reports.reading import ReadOptions

CTRF = {"tests": [{"name": "a", "status": "failed"}], "summary": {"failed": 2}}
TRX = (
    '<TestRun><Results><UnitTestResult testName="a" outcome="{word}"/></Results>'
    '<ResultSummary><Counters failed="{failed}"/></ResultSummary></TestRun>'
)
NUNIT = '<test-run failed="{failed}"><test-case name="a" result="{word}"/></test-run>'
XUNIT = (
    '<assemblies><assembly failed="{failed}"><test name="a" result="{word}"/></assembly>'
    "</assemblies>"
)


def read(text: str):
    return reports.read(text.encode(), None, ReadOptions())


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        (json.dumps({"results": CTRF}), 1),
        (TRX.format(word="Failed", failed=3), 2),
        (TRX.format(word="Failed", failed=1), 0),
        (NUNIT.format(word="Failed", failed=2), 1),
        (XUNIT.format(word="Fail", failed=2), 1),
        (XUNIT.format(word="Fail", failed=0), 0),
        ('<testsuite failures="1"><testcase name="a" status="failed"/></testsuite>', 0),
        ('<testsuite failures="1"><testcase name="a"><flakyFailure/></testcase></testsuite>', 0),
        ('<testsuite errors="1"><error/></testsuite>', 0),
        ('<testsuite errors="1"><testcase name="a"/></testsuite>', 1),
    ],
)
def test_failures_that_are_declared_and_not_there_are_counted_and_warned_of(text, unread):
    report = read(text)
    assert report.unread_failures == unread
    assert any("declares beyond" in each.text for each in report.warnings) is (unread > 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (json.dumps({"results": {"tests": [{"name": "a", "status": "other"}]}}), ("other",)),
        (TRX.format(word="Exploded", failed=0), ("Exploded",)),
        (NUNIT.format(word="Cancelled", failed=0), ("Cancelled",)),
        (XUNIT.format(word="Broken", failed=0), ("Broken",)),
        (XUNIT.format(word="Skip", failed=0), ()),
        ('<testsuite><testcase name="a" status="run" result="completed"/></testsuite>', ()),
        ('<testsuite><testcase name="a" status="Incomplete"/></testsuite>', ("Incomplete",)),
        (
            '<testsuite><testcase name="a"><properties/><cancelled/></testcase></testsuite>',
            ("<cancelled>",),
        ),
    ],
)
def test_words_for_outcomes_that_are_not_known_are_named_in_a_warning(text, words):
    report = read(text)
    assert report.unknown_words == words
    said = " ".join(each.text for each in report.warnings)
    assert all(word in said for word in words)
