"""`targets set`: what is sent, and where the names come from."""

import io

import pytest

from bot.cli import app
from tests.cli.test_pull_requests import TARGET

SHA = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"
KEPT = {"prNumber": 3, "prSha": SHA, "impactsAll": False, "targetCount": 2}


def headgate(*arguments):
    return app.run(["targets", "set", "3", "--branch", "main", "--sha", SHA, *arguments])


@pytest.mark.parametrize("text", ["//a\n\n  //b \n", '["//a", "//b"]', '\n ["//a",\n"//b"]\n'])
def test_names_come_from_a_file_by_lines_or_as_json(api, capsys, tmp_path, text):
    api.says("/setImpactedTargets", KEPT)
    (tmp_path / "names").write_text(text)
    assert headgate("--from", str(tmp_path / "names")) == 0
    body = TARGET | {"pr": {"number": 3, "sha": SHA}, "impactedTargets": ["//a", "//b"]}
    assert [(each[0], each[1]) for each in api.asked] == [("/setImpactedTargets", body)]
    assert capsys.readouterr().out == "#3 at a1b2c3d4 touches 2 targets\n"


def test_names_come_from_standard_input(api, monkeypatch):
    api.says("/setImpactedTargets", KEPT)
    monkeypatch.setattr("sys.stdin", io.StringIO("//a\n"))
    assert headgate("--from", "-") == 0
    assert api.asked[0][1]["impactedTargets"] == ["//a"]


def test_an_empty_file_touches_nothing(api, tmp_path):
    api.says("/setImpactedTargets", KEPT | {"targetCount": 0})
    (tmp_path / "names").write_text("\n")
    assert headgate("--from", str(tmp_path / "names")) == 0
    assert api.asked[0][1]["impactedTargets"] == []


def test_everything_is_one_word(api, capsys):
    api.says("/setImpactedTargets", KEPT | {"impactsAll": True, "targetCount": 0})
    assert headgate("--all") == 0
    assert api.asked[0][1]["impactedTargets"] == "ALL"
    assert capsys.readouterr().out == "#3 at a1b2c3d4 touches all targets\n"


def test_json_is_the_answer_as_it_came(api, capsys):
    api.says("/setImpactedTargets", KEPT)
    assert headgate("--all", "--json") == 0
    assert '"targetCount": 2' in capsys.readouterr().out.replace(":2", ": 2")


@pytest.mark.parametrize("given", [(), ("--all", "--from", "names"), ("--from", "/no/such/file")])
def test_what_is_touched_must_be_said_once_and_be_readable(api, given):
    assert headgate(*given) == 2
    assert api.asked == []


def test_a_file_that_is_no_json_is_named(api, capsys, tmp_path):
    (tmp_path / "names").write_text('["//a"')
    assert headgate("--from", str(tmp_path / "names")) == 2
    assert "is not a JSON array" in capsys.readouterr().err
