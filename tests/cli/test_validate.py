"""`validate`, `upload --dry-run`: what is said of reports, and by which code it ends."""

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

from bot.cli import app

GOOD = """<testsuite name="ui"><testcase name="a" classname="A" file="a.py" time="0.1"/>
<testcase name="b" classname="A" file="a.py" time="0.1"/></testsuite>"""
ODD = """<testsuite name="ui"><testcase name="a"/><testcase/>
<testcase name="b" classname="B" file="/src/b.py" time="-1"/>
<testcase name="same" classname="B" file="c.py"/>
<testcase name="same" classname="B" file="c.py"><failure/></testcase>
<testcase name="same" classname="B" file="c.py" line="7"/></testsuite>"""


@pytest.mark.parametrize("command", [["validate"], ["upload", "--dry-run"], ["test", "--dry-run"]])
def test_a_good_report_is_counted(capsys, command):
    Path("a.xml").write_text(GOOD)
    Path("b.xml.gz").write_bytes(gzip.compress(GOOD.encode()))
    assert app.run([*command, "--junit", "*.xml*"]) == 0
    assert capsys.readouterr().out == (
        "File      Format  Read      Tests  Distinct\n"
        "a.xml     junit   accepted  2      2\n"
        "b.xml.gz  junit   accepted  2      2\n"
    )


@pytest.mark.parametrize("name", ["a.xml", "a[1].xml", "*.xml"])
def test_reports_are_named_as_arguments(capsys, name):
    Path("a.xml" if "*" in name else name).write_text(GOOD)
    assert app.run(["validate", name]) == 0
    assert "accepted  2      2" in capsys.readouterr().out


def test_a_missing_report_is_named(capsys):
    Path("a.xml").write_text(GOOD)
    Path("reports").mkdir()
    assert app.run(["validate", "a.xml", "b.xml", "reports", "--junit", "c/*.xml"]) == 1
    shown = capsys.readouterr()
    assert "a.xml  junit   accepted" in shown.out
    assert shown.err == (
        "headgate: No test report matched b.xml, c/*.xml.\n"
        "headgate: reports is a folder: name its files, as 'reports/**/*.xml'.\n"
    )


def test_validate_needs_a_report(capsys):
    assert app.run(["validate"]) == 2
    assert "no report is named" in capsys.readouterr().err


def test_everything_odd_is_named_with_its_mend(capsys):
    Path("a.xml").write_text(ODD)
    assert app.run(["validate", "--junit", "a.xml"]) == 0
    said = capsys.readouterr().out
    for part in (
        "Tests without a name: 1. They are counted",
        "Durations that are negative, too long or unreadable: 1.",
        "Absolute file paths: 1. Give their root as `source_root`",
        "Tests without a file: 1. Let the reporter write `file`",
        "Tests without a classname: 1.",
        "Names shared by several tests: 1. Give each test a name of its own, or merge its retries",
    ):
        assert f"a.xml: {part}" in said


def test_the_root_of_sources_is_cut_off(capsys):
    Path("a.xml").write_text(GOOD.replace('file="', 'file="/src/'))
    assert app.run(["validate", "--junit", "a.xml", "--source-root", "/src"]) == 0
    assert "absolute" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (GOOD[:-20], "partial", "a.xml: line 2, column "),
        ("", "refused", "a.xml: The file is empty."),
        ("<!DOCTYPE x><testsuite/>", "refused", "A document type declaration is not allowed."),
        ("hello", "refused", "a.xml: Not a known report format."),
    ],
)
def test_a_report_that_is_not_read_whole_is_no_success(capsys, text, status, said):
    Path("a.xml").write_text(text)
    assert app.run(["validate", "--junit", "a.xml"]) == 1
    out = capsys.readouterr().out
    assert status in out
    assert said in out


def test_a_format_may_be_asked_for(capsys):
    Path("a.xml").write_text(GOOD)
    assert app.run(["validate", "--junit", "a.xml", "--format", "ctrf"]) == 1
    assert "Not a known report format." in capsys.readouterr().out


def test_no_report_is_no_success(capsys):
    assert app.run(["validate", "--junit", "*.xml"]) == 1
    assert capsys.readouterr().err == "headgate: No test report matched *.xml.\n"


def test_json_says_the_same(capsys):
    Path("a.xml").write_text(GOOD)
    assert app.run(["validate", "--junit", "a.xml", "--json"]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file == {
        "name": "a.xml",
        "format": "junit",
        "status": "accepted",
        "tests": 2,
        "distinct": 2,
        "passed": 2,
        "failed": 0,
        "errors": 0,
        "skipped": 0,
        "retried": 0,
        "suite_failures": 0,
        "findings": [],
    }


def test_a_report_that_cannot_be_read_is_not_valid(monkeypatch):
    for name in ("a.xml", "b.xml"):
        Path(name).write_text("<testsuite><testcase name='a'/></testsuite>")
    real = Path.read_bytes

    def read(path):
        if path.name == "b.xml":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    assert app.run(["validate", "--junit", "*.xml"]) == 1


def validated(*reports):
    """What `validate` says of reports for programs."""
    for number, report in enumerate(reports):
        Path(f"{number}.xml").write_text(report)
    assert app.run(["validate", "--junit", "*.xml", "--json"]) == 0


def a_suite(*names, suite="ui"):
    cases = "".join(f'<testcase name="{name}" classname="A" file="a.py"/>' for name in names)
    return f'<testsuite name="{suite}">{cases}</testsuite>'


def test_outcomes_are_counted_by_file(capsys):
    validated(
        '<testsuite tests="7"><testcase name="a"/><testcase name="b"><failure/></testcase>'
        '<testcase name="c"><error/></testcase><testcase name="d"><skipped/></testcase>'
        '<testcase name="e"><flakyFailure/></testcase><error/></testsuite>'
    )
    (file,) = json.loads(capsys.readouterr().out)["files"]
    names = ("tests", "passed", "failed", "errors", "skipped", "retried", "suite_failures")
    assert [file[name] for name in names] == [5, 2, 2, 1, 1, 1, 1]
    assert "Tests declared but missing: 2." in " ".join(file["findings"])


@pytest.mark.parametrize(
    ("first", "second", "example"),
    [
        (a_suite("a", "port 4711"), a_suite("a", "port 4712"), "'port 4711' and 'port 4712'"),
        (a_suite("a", suite="s-7f3a"), a_suite("a", suite="s-08c1"), "'s-7f3a' and 's-08c1'"),
    ],
)
def test_two_reports_show_names_that_change_with_every_run(capsys, first, second, example):
    validated(first, second)
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding.startswith(f"Tests with another name in each run: 1, as {example}.")
    assert app.run(["validate", "--junit", "*.xml"]) == 0
    assert finding in capsys.readouterr().out


@pytest.mark.parametrize(
    "reports",
    [
        (a_suite("a", "b 1"), a_suite("a", "b 1")),
        # Parts of one suite.
        (a_suite("case 1", "case 2"), a_suite("case 3", "other")),
        (a_suite("a", "b 1"), a_suite("a", "b 2"), a_suite("a", "b 3")),
    ],
)
def test_names_of_several_tests_do_not_change(capsys, reports):
    validated(*reports)
    assert json.loads(capsys.readouterr().out)["findings"] == []


def test_files_below_the_checkout_are_named_from_its_root(capsys):
    subprocess.run(["git", "init", "--quiet"], check=True)
    Path("src").mkdir()
    root = Path.cwd()
    os.chdir("src")
    Path("a.xml").write_text(GOOD.replace('file="', f'file="{root}/'))
    assert app.run(["validate", "--junit", "a.xml"]) == 0
    assert "absolute" not in capsys.readouterr().out


def test_a_refused_report_of_nunit_is_named_so(capsys):
    report = '<?xml version="1.0"?><!DOCTYPE test-results SYSTEM "a.dtd"><test-results/>'
    Path("a.xml").write_text(report)
    assert app.run(["validate", "--junit", "a.xml", "--json"]) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert (file["format"], file["status"]) == ("nunit", "refused")
