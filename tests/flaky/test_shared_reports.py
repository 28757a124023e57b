"""Real reports of public repositories give the counts that their manifest names.

The folder is data of the place that builds the project, and no part of it: the test is skipped
with its reason where it is absent.
"""

import hashlib
import json
import os
from pathlib import Path

import pytest

from service.testhealth.reports import reports
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import CaseKind, FileStatus, counts_of

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("HEADGATE_SHARED_DATA") or ROOT.parent / "shared" / "data")
MANIFEST = DATA / "junit" / "manifest.json"
ENTRIES = json.loads(MANIFEST.read_text("utf-8")) if MANIFEST.exists() else []

pytestmark = pytest.mark.skipif(
    not ENTRIES, reason=f"needs {MANIFEST}: set HEADGATE_SHARED_DATA to the folder of shared data"
)

# The manifest counts a case that was cut off inside; it is not whole, so it is not kept.
CUT_INSIDE = {"files/enricomi__publish-unit-test-result-action__junit-xml_pytest_corrupt-xml.xml"}


def read(entry):
    content = (MANIFEST.parent / entry["file"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    return reports.read(content, None, ReadOptions())


def named(entries):
    return [pytest.param(entry, id=entry["file"].rpartition("/")[2][-60:]) for entry in entries]


@pytest.mark.parametrize("entry", named(entry for entry in ENTRIES if entry["well_formed"]))
def test_a_whole_report_gives_the_counts_of_the_manifest(entry):
    report = read(entry)
    counts = counts_of([report])
    expected = {**entry["expected"], **entry.get("expected_if_status_attr_honoured", {})}
    assert report.status is FileStatus.ACCEPTED
    assert {
        "tests": counts.tests,
        "passed": counts.passed,
        "failures": counts.failed - counts.errors,
        "errors": counts.errors,
        "skipped": counts.skipped,
    } == {key: expected[key] for key in ("tests", "passed", "failures", "errors", "skipped")}
    retries = ("rerunFailure", "rerunError", "flakyFailure", "flakyError")
    assert counts.attempts - counts.tests == sum(entry["elements"].get(key, 0) for key in retries)


@pytest.mark.parametrize("entry", named(entry for entry in ENTRIES if not entry["well_formed"]))
def test_a_broken_report_gives_its_whole_cases_with_place_and_cause(entry):
    report = read(entry)
    cut = 1 if entry["file"] in CUT_INSIDE else 0
    assert len(report.cases) == entry["partial_cases_before_error"] - cut
    assert all(case.kind is CaseKind.TEST for case in report.cases)
    assert report.status is (FileStatus.PARTIAL if report.cases else FileStatus.REFUSED)
    assert report.fault
    assert report.fault.message
    assert report.fault.line or entry["size"] == 0
