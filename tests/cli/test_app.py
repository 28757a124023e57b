"""The root: version, exit codes, the form of errors."""

import pytest

from bot.cli import app, exits, options
from bot.cli.exits import Exit, Failed
from bot.program import VERSION
from tests.cli.service import a_record


def test_the_version_is_printed_alone(capsys):
    assert app.run(["--version"]) == 0
    assert capsys.readouterr().out == f"headgate {VERSION}\n"


def test_the_exit_codes_are_those_of_the_contract():
    assert {code.name: code.value for code in Exit} == {
        "DONE": 0,
        "FALSE": 1,
        "USAGE": 2,
        "NOT_ALLOWED": 3,
        "NOT_FOUND": 4,
        "UNREACHABLE": 5,
        "REFUSED": 6,
        "TIMEOUT": 7,
        "START_REFUSED": 8,
        "INTERRUPTED": 130,
        "BROKEN_PIPE": 141,
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["sbumit", "3"],
        ["submit"],
        ["submit", "three"],
        ["submit", "0"],
        ["submit", "3", "--prio", "high"],
        ["queue", "nothing"],
        ["queue"],
        ["token"],
        ["token", "create"],
    ],
)
def test_a_misused_command_ends_with_2_and_one_line(api, capsys, arguments):
    assert app.run(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("headgate: ")
    assert said.err.count("\n") == 1


def test_without_a_command_the_help_is_shown(capsys):
    assert app.run([]) == 2
    shown = capsys.readouterr().err.splitlines()
    assert shown[0].startswith("Usage: headgate")
    assert any("Submit a pull request if needed" in line for line in shown)


def test_an_unknown_word_of_an_option_is_answered_in_our_words(capsys):
    assert app.run(["token", "create", "--org", "octo", "--role", "boss", "--name", "x"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("headgate: Invalid value for '--role': 'boss' is not one of 'read'")


def test_a_misused_command_names_its_own_help(capsys):
    assert app.run(["queue", "update", "--expected-version", "x"]) == 2
    assert "See `headgate queue update --help`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [(403, "missing_role", 3), (404, "hold_not_found", 4), (422, "head_mismatch", 6)],
)
def test_what_the_service_says_is_said_on_one_line(api, capsys, status, code, exit_code):
    api.refuses("/getSubmittedPullRequest", status, code, "It says no, and why")
    assert app.run(["status", "3", "--branch", "main"]) == exit_code
    assert capsys.readouterr().err == "headgate: It says no, and why.\n"


def test_a_wrong_token_ends_with_3(api, capsys, monkeypatch):
    monkeypatch.setenv("HEADGATE_TOKEN", "hgt_wrong")
    assert app.run(["status", "3", "--branch", "main"]) == 3
    assert capsys.readouterr().err == (
        "headgate: the token is unknown, expired or revoked. "
        "Make one with `headgate token create` and set HEADGATE_TOKEN.\n"
    )


def test_no_token_is_a_usage_error(api, capsys, monkeypatch):
    monkeypatch.delenv("HEADGATE_TOKEN")
    assert app.run(["status", "3", "--branch", "main"]) == 2
    assert "headgate: there is no token. Set HEADGATE_TOKEN" in capsys.readouterr().err


def test_an_option_given_as_address_wins_over_the_environment(api, monkeypatch):
    monkeypatch.setenv("HEADGATE_URL", "http://127.0.0.1:1")
    api.says("/getSubmittedPullRequest", a_record())
    assert app.run(["status", "3", "--branch", "main", "--url", api.url]) == 0


@pytest.mark.parametrize(
    ("what", "todo", "expected"),
    [
        ("it broke", "Mend it", "headgate: it broke. Mend it."),
        ("it broke.", "", "headgate: it broke."),
        ("did it\nbreak?", " ", "headgate: did it break?"),
    ],
)
def test_an_error_is_one_line_with_full_stops(what, todo, expected):
    assert exits.sentence(what, todo) == expected


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("1 d", 86400)]
)
def test_a_span_of_time_is_written_as_people_do(text, seconds):
    assert options.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1w"])
def test_what_is_no_span_of_time_is_a_usage_error(text):
    with pytest.raises(Failed, match="not a duration"):
        options.seconds(text)
