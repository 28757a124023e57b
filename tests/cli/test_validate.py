"""`validate`, `upload --dry-run`: what is said of reports, and by which code it ends."""

import gzip
import json
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


def test_everything_odd_is_named_with_its_mend(capsys):
    Path("a.xml").write_text(ODD)
    assert app.run(["validate", "--junit", "a.xml"]) == 0
    said = capsys.readouterr().out
    for part in (
        "1 tests have no name",
        "1 durations are negative",
        "1 file paths are absolute; give their root as `source_root`",
        "1 name no file: let the reporter write `file`",
        "1 have no classname",
        "1 names stand for several tests: give each test a name of its own.",
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
    assert capsys.readouterr().err == "headgate: No test report matched.\n"


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
