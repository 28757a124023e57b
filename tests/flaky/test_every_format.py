"""What each report format has: a reader, bounds, a row on two pages, and a recorded report.

A new member of `Format` fails here until it has all of them (docs/contributing.md, "Add a report
format").
"""

import re
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from service.testhealth.api.models.answers import uploads
from service.testhealth.reports import reading, reports
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import FileStatus, Format
from tests.flaky.test_recorded import recordings

ROOT = Path(__file__).parents[2]
READ = ReadOptions()


class Sample(NamedTuple):
    """A report of two tests: what is before them, the tests, what is behind, and between them.

    `is_lines`: each line stands for itself, so a cut between two lines is not seen.
    """

    start: str
    tests: tuple[str, str]
    end: str
    between: str = ""
    is_lines: bool = False


def go(name: str) -> str:
    return f'{{"Action":"pass","Package":"p","Test":"{name}"}}\n'


def ctrf(name: str) -> str:
    return f'{{"name":"{name}","status":"passed"}}'


SAMPLES = {
    Format.JUNIT: Sample(
        "<testsuite>", ('<testcase name="a"/>', '<testcase name="b"/>'), "</testsuite>"
    ),
    Format.GO_JSON: Sample("", (go("a"), go("b")), "", is_lines=True),
    Format.CTRF: Sample('{"results":{"tests":[', (ctrf("a"), ctrf("b")), "]}}", ","),
    Format.TRX: Sample(
        "<TestRun><Results>",
        (
            '<UnitTestResult testName="a" outcome="Passed"/>',
            '<UnitTestResult testName="b" outcome="Passed"/>',
        ),
        "</Results></TestRun>",
    ),
    Format.NUNIT: Sample(
        "<test-run><test-suite>",
        ('<test-case name="a" result="Passed"/>', '<test-case name="b" result="Passed"/>'),
        "</test-suite></test-run>",
    ),
    Format.XUNIT: Sample(
        "<assemblies><assembly><collection>",
        ('<test name="a" result="Pass"/>', '<test name="b" result="Pass"/>'),
        "</collection></assembly></assemblies>",
    ),
}

RUNNERS_NOT_HERE = {
    Format.TRX: "Visual Studio and dotnet test need the .NET SDK",
    Format.NUNIT: "NUnit needs the .NET SDK",
    Format.XUNIT: "xUnit.net needs the .NET SDK",
}
"""Formats of runners that `recorded/record.py` cannot install; a new format is not added here."""


def content_of(sample: Sample) -> bytes:
    return f"{sample.start}{sample.between.join(sample.tests)}{sample.end}".encode()


def test_every_format_has_a_reader_and_is_named_in_answers():
    assert set(SAMPLES) == set(Format) == set(reports.READERS)
    assert set(get_args(uploads.ReportFormat)) == {each.value for each in Format}


@pytest.mark.parametrize("kind", Format)
def test_a_report_is_recognized_by_its_content_and_read(kind: Format):
    report = reports.read(content_of(SAMPLES[kind]), None, READ)
    assert (report.format, report.status) == (kind, FileStatus.ACCEPTED)
    assert [case.name for case in report.cases] == ["a", "b"]
    for other in set(Format) - {kind}:
        assert reports.read(content_of(SAMPLES[kind]), other, READ).status is FileStatus.REFUSED


@pytest.mark.parametrize("kind", Format)
def test_a_report_has_no_more_tests_than_an_upload_may_have(
    kind: Format, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reading, "CASES_MAX", 1)
    report = reports.read(content_of(SAMPLES[kind]), None, READ)
    assert (report.status, report.cases) == (FileStatus.REFUSED, ())
    assert report.fault
    assert report.fault.message == "The file holds more than 500,000 tests."


@pytest.mark.parametrize("kind", Format)
def test_a_report_that_is_cut_anywhere_gives_no_test_that_is_not_whole(kind: Format):
    content = content_of(SAMPLES[kind])
    for end in range(len(content)):
        report = reports.read(content[:end], None, READ)
        names = [case.name for case in report.cases]
        assert names == ["a", "b"][: len(names)], content[:end]
        if len(names) < 2 and not SAMPLES[kind].is_lines:
            assert report.status is not FileStatus.ACCEPTED, content[:end]


def test_every_format_has_its_row_on_the_page_about_reports():
    page = (ROOT / "docs/reference/test-reports.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| [^|]+ \| [^|]+ \|$", page.partition("## What a")[0], re.M)
    assert sorted(rows) == sorted(["format", *(each.value for each in Format)])


def test_every_format_is_named_where_people_learn_to_upload():
    page = (ROOT / "docs/how-to/upload-test-results.md").read_text("utf-8").lower()
    (sentence,) = re.findall(r"headgate reads (junit xml[^.]*(?:\.net[^.]*)?)\.", page)
    for each in Format:
        word = {Format.GO_JSON: "go test -json"}.get(each, each.value)
        assert word in sentence


def test_every_format_has_a_report_of_a_real_runner():
    recorded = {reports.read(path.read_bytes(), None, READ).format for path in recordings()}
    assert recorded | set(RUNNERS_NOT_HERE) == set(Format)
    assert not recorded & set(RUNNERS_NOT_HERE)
