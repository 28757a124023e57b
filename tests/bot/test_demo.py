"""What surrounds the demo's play: its narration, ports, folders. The play: tests/end_to_end."""

import asyncio
import json
import socket
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bot.cli import app
from bot.demo import play, playground, run, stage, story, watching
from bot.demo.ground import Ground
from bot.demo.play import Play
from bot.demo.playground import Button
from bot.demo.run import DemoOptions
from bot.demo.stage import Ports, Stage
from bot.demo.watching import Event, RunDetails, Submission, Watch
from service.errors import StartRefused
from tests.cli import processes
from tests.harness.machine import free_port
from tests.provider.stage import START, SharedClock


def an_event(sequence=1, message="", run=None, at="2026-03-02T14:20:00.000Z", **members):
    given = {
        "sequence": sequence,
        "at": at,
        "event": "RunFinished",
        "message": message,
        "testRunId": run,
        "from": None,
        "to": None,
    }
    return Event.model_validate(given | members)


@pytest.mark.parametrize(
    ("members", "is_silent"),
    [
        ({"event": "EntryMoved", "from": "PENDING", "to": "TESTING"}, True),
        ({"event": "EntryMoved", "from": "TESTING", "to": "PENDING"}, False),
        ({"event": "EntryMoved", "from": "TESTS_PASSED", "to": "MERGED"}, False),
        ({"event": "RunBuilt"}, True),
        ({"event": "RunFinished"}, False),
    ],
)
def test_events_that_follow_from_others_are_not_printed(members, is_silent):
    assert an_event(**members).is_silent is is_silent


def test_what_one_run_reports_for_several_pull_requests_is_printed_once():
    news = [
        (an_event(3, "Started.", "r1"), 12),
        (an_event(1, "Queued."), 13),
        (an_event(2, "Started.", "r1"), 13),
        (an_event(4, "Started.", "r2"), 14),
        (an_event(1, "Queued.", at="2026-03-02T14:19:00.000Z"), 15),
    ]
    assert watching.merge_events(news) == [
        ("Queued.", [15]),
        ("Queued.", [13]),
        ("Started.", [12, 13]),
        ("Started.", [14]),
    ]


def a_submission(change, **members):
    """The submission of a pull request that ended as it must."""
    given = {
        "prNumber": change.number,
        "state": change.expected,
        "reason": change.reason,
        "testRunId": None,
        "verifiedByTestRun": None,
        "conclusion": None,
        "timeline": [],
    }
    return Submission.model_validate(given | members)


def a_test_run(expected, excused=()):
    return RunDetails.model_validate(
        {
            "testRunId": "r1",
            "kind": expected.kind,
            "testedPullRequests": [{"prNumber": number} for number in expected.numbers],
            "dependentPrs": expected.base,
            "status": expected.status,
            "failedStatuses": [],
            "failedTests": [{"name": name, "excused": True} for name in excused],
            "testBranchSha": None,
            "createdAt": "2026-03-02T14:20:00.000Z",
            "finishedAt": None,
        }
    )


def as_promised(played):
    submissions = {change.number: a_submission(change) for change in played.changes}
    runs = [a_test_run(run, played.excused) for run in played.runs]
    return submissions, runs, played.lands


@pytest.mark.parametrize(
    ("numbers", "words"), [([], ""), ([3], "#3"), ([3, 4, 5], "#3-5"), ([8, 11, 12], "#8,11,12")]
)
def test_pull_requests_are_named_shortly_and_no_other_with_them(numbers, words):
    assert watching.named(numbers) == words


@pytest.mark.parametrize("played", story.STORIES, ids=lambda played: played.branch)
def test_each_story_misses_what_does_not_happen(played):
    submissions, runs, lands = as_promised(played)
    assert play.faults_of(played, submissions, runs, lands) == []
    for left_out, expected in zip(runs, played.runs, strict=True):
        others = [each for each in runs if each is not left_out]
        assert f"{played.branch}: no {expected}" in play.faults_of(
            played, submissions, others, lands
        )
    (fault,) = play.faults_of(played, submissions, runs, (0, *lands))
    assert fault.endswith(f"landed, expected {list(lands)}")
    for number, submission in submissions.items():
        other = {**submissions, number: submission.model_copy(update={"reason": "interaction"})}
        (fault,) = play.faults_of(played, other, runs, lands)
        assert fault.startswith(f"#{number} is {submission.state} (interaction), expected")
    expected = len(submissions) + len(runs) + len(played.excused) + 1
    assert len(play.faults_of(played, {}, [], [])) == expected


def test_a_failure_that_was_not_excused_is_missed():
    submissions, runs, lands = as_promised(story.WEATHER)
    failed = [run.model_copy(update={"failed_tests": []}) for run in runs]
    assert play.faults_of(story.WEATHER, submissions, failed, lands) == [
        "weather: test_picnic was not excused"
    ]


def test_a_taken_port_is_replaced_unless_it_was_asked_for():
    with socket.socket() as taken:
        taken.bind((stage.LOOPBACK, 0))
        taken.listen()
        number = taken.getsockname()[1]
        assert stage.free_port(None, number, None) not in (0, number)
        with pytest.raises(StartRefused, match=f"port {number} is in use"):
            stage.free_port(number, 1, None)
    assert stage.free_port(number, 1, None) == number


def test_the_servers_never_get_the_same_port(monkeypatch):
    # Others on this machine may use the usual ones meanwhile.
    with socket.socket() as one, socket.socket() as other:
        for usual in (one, other):
            usual.bind((stage.LOOPBACK, 0))
        service, sandbox = (usual.getsockname()[1] for usual in (one, other))
    monkeypatch.setattr(stage, "SERVICE_PORT", service)
    monkeypatch.setattr(stage, "SANDBOX_PORT", sandbox)
    monkeypatch.setattr(stage, "PAGE_PORT", service)
    for asked in (Ports(service=sandbox), Ports(sandbox=service), Ports()):
        chosen = asked.chosen()
        assert len({chosen.service, chosen.sandbox, chosen.page}) == 3
    with pytest.raises(StartRefused, match="for both servers"):
        Ports(service=sandbox, sandbox=sandbox).chosen()


@pytest.mark.parametrize("option", ["--port", "--sandbox-port"])
def test_a_demo_whose_port_is_taken_ends_with_8_before_there_is_a_sandbox(option, tmp_path, capsys):
    with socket.socket() as taken, processes.log_kept():
        taken.bind((stage.LOOPBACK, 0))
        taken.listen()
        number = taken.getsockname()[1]
        assert app.run(["demo", "--once", "--keep", str(tmp_path), option, str(number)]) == 8
    said = capsys.readouterr().err
    assert said == f"headgate: port {number} is in use. Give another, or none.\n"
    assert not (tmp_path / "sandbox").exists()


def test_a_demo_that_is_not_over_in_time_ends_with_1_and_one_object_on_stdout(tmp_path, capsys):
    arguments = ["--once", "--json", "--timeout", "1", "--keep", str(tmp_path / "state")]
    arguments += ["--port", str(free_port()), "--sandbox-port", str(free_port())]
    with processes.log_kept():
        assert app.run(["demo", *arguments]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], report["faults"][0]) == (False, "the story was not over after 1 s")
    assert (tmp_path / "state/headgate.log").exists()


@asynccontextmanager
async def asked(*statuses):
    """What a stage calls, which answers with these statuses; the last one for good."""
    left, calls, clock = list(statuses), [], SharedClock(START)

    async def answer(request):
        calls.append((request.path, await request.json()))
        return web.json_response({"calls": len(calls)}, status=left.pop(0) if left[1:] else left[0])

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, stage.LOOPBACK, 0).start()
    url = f"http://{stage.LOOPBACK}:{runner.addresses[0][1]}"
    async with aiohttp.ClientSession() as session:
        sandbox: Any = None  # only the service is asked
        yield Stage(url, sandbox, "token", Path(), {}, {}, session, clock), calls
    await runner.cleanup()


async def test_a_service_whose_database_is_late_is_asked_again():
    async with asked(503, 503, 200) as (staged, calls):
        assert await staged.call("/getQueue", "main") == {"calls": 3}
        assert calls[0] == calls[2]
        assert staged.clock.monotonic_s() == 2 * stage.AWAY_PAUSE_S


async def test_what_was_done_although_the_database_was_late_is_not_a_fault():
    async with asked(503, 409) as (staged, _):
        assert await staged.call("/createQueue", "main") is None
    async with asked(409) as (staged, _):
        with pytest.raises(aiohttp.ClientResponseError):
            await staged.call("/createQueue", "main")


async def test_a_service_whose_database_stays_away_is_asked_a_limited_number_of_times():
    async with asked(503) as (staged, calls):
        with pytest.raises(aiohttp.ClientResponseError):
            await staged.call("/getQueue", "main")
        assert len(calls) == stage.AWAY_TRIES


@asynccontextmanager
async def silent(response_timeout_s):
    """A stage whose servers accept connections and answer no request."""
    clock, connections = SharedClock(START), []

    async def accept(_, writer):
        connections.append(writer)

    server = await asyncio.start_server(accept, stage.LOOPBACK, 0)
    url = f"http://{stage.LOOPBACK}:{server.sockets[0].getsockname()[1]}"
    timeout = aiohttp.ClientTimeout(total=response_timeout_s)
    sandbox: Any = SimpleNamespace(url=url)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        yield Stage(url, sandbox, "token", Path(), {}, {}, session, clock)
    for each in connections:
        each.close()
    server.close()


@pytest.mark.parametrize(
    ("response_s", "story_s", "said"),
    [
        (0.01, 60.0, "“Ask” broke off: a request was not answered within 30 s"),
        (60.0, 0.01, "“Ask” was not over after 0 s"),
    ],
)
async def test_a_story_that_ends_early_says_which_time_limit_ended_it(
    response_s, story_s, said, monkeypatch
):
    monkeypatch.setattr(playground, "_STORY_TIMEOUT_S", story_s)

    async def ask(ground):
        await ground.stage.call("/getQueue", "main")

    async with silent(response_s) as staged:
        told: list[str] = []
        ground = Ground(Watch(staged), staged.clock, told.append, "older")
        playground.start(ground, Button("ask", "Ask", "", ask))
        await ground.playing["ask"]
    assert told == [f"        {said}"]


@pytest.mark.parametrize(
    ("response_s", "story_s", "fault"),
    [
        (0.01, 60.0, "the story broke off: a request was not answered within 30 s"),
        (60.0, 0.01, "the story was not over after 0 s"),
    ],
)
async def test_a_demo_that_ends_early_says_which_time_limit_ended_it(response_s, story_s, fault):
    async with silent(response_s) as staged:
        played = Play(Watch(staged), staged.clock, lambda _: None)
        assert await run.play_within(played, story_s) == [fault]


async def test_a_folder_with_something_in_it_is_not_played_in(tmp_path):
    (tmp_path / "something").touch()
    options = DemoOptions(keep=tmp_path)
    for begin in (run.demo, run.playground):
        with pytest.raises(StartRefused, match="not empty"):
            await begin(options)


def test_a_command_to_type_is_named_as_it_was_called(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert run.command_of(".venv/bin/headgate") == ".venv/bin/headgate"
    assert run.command_of("bot/__main__.py") == f"{sys.executable} -m bot"
    command = tmp_path / "bin" / "headgate"
    command.parent.mkdir()
    command.touch(mode=0o755)
    assert run.command_of(str(command)) == "headgate"
    assert run.command_of("bot/__main__.py") == "headgate"
    assert run.command_of(".venv/bin/headgate") == ".venv/bin/headgate"
