"""Commands that run again by a plan: within its time, and whatever the service says."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.cli import live, repeating
from bot.cli.job_service import JobService
from bot.cli.repeating import PLAN, REPORT, Repeatable
from bot.uploader.transport import Clock
from service.vocabulary import RepoRef
from tests.cli import service

TEST = {
    **{"test_id": "06cb6db5-f807-5198-b072-000000000001", "name": "test_it", "classname": "m"},
    **{"parent": "pytest", "file_path": "", "because": "suspected", "times": 3},
}
PLANNED = {"standing": "planned", "message": "", "plan_id": "p1", "seconds": 2, "tests": [TEST]}
SELF = {"organization": {"slug": "octo"}}
SPEAKS = """
import json, os
tests = json.load(open(os.environ["HEADGATE_ONLY"]))["tests"]
with open(os.environ["HEADGATE_LIVE"], "a") as live:
    for n in range(tests[0]["times"]):
        outcome = "failed" if n == 0 else "passed"
        live.write(json.dumps({"v": 1, "event": "repeat", "at": 0, "outcome": outcome}) + chr(10))
    live.write("no line of ours" + chr(10))
    live.write(json.dumps({"v": 1, "event": "repeat", "at": 9, "outcome": "passed"}) + chr(10))
"""


@pytest.fixture(name="api")
def _api(monkeypatch: pytest.MonkeyPatch) -> Iterator[service.Service]:
    with service.served() as served:
        monkeypatch.setenv("HEADGATE_TOKEN", service.TOKEN)
        served.says("/tokens/self", SELF)
        served.says(REPORT, {"tests": 1, "runs": 3, "disagreeing": []})
        yield served


def repeat(api: service.Service, *command: str, is_able: bool = True) -> None:
    job = JobService(api.url, None, RepoRef("github.com", "octo", "widgets"))
    about: dict[str, Any] = {"sha": "a" * 40, "job": "unit", "run_id": "7", "variant": "x"}
    repeating.repeat(Repeatable(command, live.Job(job, about, ()), "u1", is_able))


def sent(api: service.Service, path: str) -> dict[str, Any]:
    (body,) = [body for asked, body, _ in api.asked if asked == path]
    assert service.unknown_fields(path, body) == []
    return dict(body)


def test_the_command_runs_twice_and_reports_what_its_runner_tells(
    api: service.Service, capsys: pytest.CaptureFixture[str]
) -> None:
    api.says(PLAN, PLANNED)
    repeat(api, sys.executable, "-c", SPEAKS)
    asked = sent(api, PLAN)
    assert (asked["upload_id"], asked["able"], asked["run_id"]) == ("u1", True, "7")
    told = sent(api, REPORT)
    assert told["tests"] == [{"test_id": TEST["test_id"], "runs": "FP/F"}]
    assert told["plan_id"] == "p1"
    err = capsys.readouterr().err
    assert "running 1 tests again for at most 2 s" in err
    assert "m::test_it failed 2 of 3 times on the same code" in err


def test_a_command_that_takes_too_long_is_ended_with_what_it_started(
    api: service.Service, tmp_path: Path
) -> None:
    api.says(PLAN, PLANNED)
    began_s = Clock().monotonic_s()
    repeat(api, "sh", "-c", f"(trap '' TERM; sleep 60) & echo $! > {tmp_path}/pid; sleep 60")
    assert Clock().monotonic_s() - began_s < 20
    told = sent(api, REPORT)
    assert (told["tests"], told["seconds"] >= 1) == ([], True), "its time is booked all the same"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({**PLANNED, "standing": "off", "message": "off", "tests": []}, ""),
        (
            {**PLANNED, "standing": "busy", "message": "A queue tests.", "tests": []},
            "A queue tests.",
        ),
        ({"tests": [{"name": "no plan"}], "seconds": 1}, "the answer is no plan of repeats"),
    ],
)
def test_nothing_runs_without_a_plan_and_the_log_says_why(
    api: service.Service,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    answer: dict[str, Any],
    says: str,
) -> None:
    api.says(PLAN, answer)
    repeat(api, "touch", str(tmp_path / "ran"), is_able=False)
    assert not (tmp_path / "ran").exists()
    err = capsys.readouterr().err
    assert says in err
    assert bool(says) == bool(err)


def test_a_service_that_refuses_or_knows_no_plans_changes_nothing(
    api: service.Service, capsys: pytest.CaptureFixture[str]
) -> None:
    api.refuses(PLAN, 404, "not_found", "There is no such address.")
    repeat(api, "false")
    assert "no test is run again" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["INT", "TERM"])
def test_a_job_that_is_told_to_end_leaves_no_repeats_behind_and_keeps_its_result(
    api: service.Service, tmp_path: Path, capsys: pytest.CaptureFixture[str], number: str
) -> None:
    api.says(PLAN, {**PLANNED, "seconds": 60})
    asks_to_end = f"echo $$ > {tmp_path}/pid; kill -{number} $PPID; sleep 60"
    repeat(api, "sh", "-c", asks_to_end)
    assert (
        "a signal ended the repeats; the exit code of this job stays as it was"
        in capsys.readouterr().err
    )
    assert sent(api, REPORT)["tests"] == []
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
