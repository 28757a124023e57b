"""What surrounds the demo's story: expectations, ports, folders. The story: tests/end_to_end."""

import socket
import sys

import pytest

from bot.cli import app
from bot.demo import report, run, scene, stage, story
from bot.demo.run import Evening
from bot.demo.stage import Ports
from service.clock import SystemClock
from service.errors import StartRefused
from tests.cli import processes


def as_promised():
    """The records of a story that went as it should."""
    records = {
        role.number: {"state": role.expected, "reason": role.reason or "landed", "restarts": {}}
        for role in story.ROLES
        if role.expected
    }
    records[story.SLOW.number]["restarts"] = {report.INTERRUPTED: 1}
    return records


ORDER = (1, 5, 2, 3, 4, 7, 6)


def test_a_story_as_promised_has_no_fault():
    assert report.faults_of(as_promised(), ORDER) == ()


@pytest.mark.parametrize(
    ("number", "difference", "fault"),
    [
        (1, {"state": "FAILED", "reason": "interaction"}, "#1 is FAILED (interaction), expected"),
        (3, {"state": "MERGED", "reason": "landed"}, "#3 is MERGED (landed), expected FAILED"),
        (3, {"reason": "run_timed_out"}, "#3 failed by run_timed_out, expected required_status"),
        (6, {"restarts": {}}, "#7 interrupted nobody"),
    ],
)
def test_what_ends_otherwise_is_a_fault(number, difference, fault):
    records = as_promised()
    records[number] |= difference
    (found,) = report.faults_of(records, ORDER)
    assert found.startswith(fault)


def test_a_pull_request_that_never_came_is_a_fault():
    records = as_promised()
    del records[4]
    assert report.faults_of(records, ORDER) == ("#4 is never queued (None), expected MERGED",)


def test_an_urgent_one_that_comes_last_is_a_fault():
    faults = report.faults_of(as_promised(), (1, 2, 3, 4, 5, 6, 7))
    assert faults == ("#7 is urgent and left after #6",)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ({"event": "EntryMoved", "from": "PENDING", "to": "TESTING"}, False),
        ({"event": "EntryMoved", "from": "TESTING", "to": "PENDING"}, True),
        ({"event": "EntryMoved", "from": "TESTS_PASSED", "to": "MERGED"}, True),
        ({"event": "RunBuilt"}, False),
        ({"event": "RunFinished"}, True),
    ],
)
def test_the_story_leaves_out_what_follows_by_itself(event, told):
    assert scene.is_told(event) is told


def test_a_taken_port_is_replaced_unless_it_was_asked_for():
    with socket.socket() as taken:
        taken.bind((stage.LOOPBACK, 0))
        taken.listen()
        number = taken.getsockname()[1]
        assert stage.port_of(None, number) not in (0, number)
        with pytest.raises(StartRefused, match=f"port {number} is in use"):
            stage.port_of(number, 1)
    assert stage.port_of(number, 1) == number


def test_the_two_servers_never_get_the_same_port():
    for asked in (Ports(service=stage.SANDBOX_PORT), Ports(sandbox=stage.SERVICE_PORT), Ports()):
        assert len(set(stage.both_of(asked))) == 2
    with pytest.raises(StartRefused, match="for both servers"):
        stage.both_of(Ports(service=stage.SANDBOX_PORT, sandbox=stage.SANDBOX_PORT))


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


async def test_a_folder_with_something_in_it_is_not_played_in(tmp_path):
    (tmp_path / "something").touch()
    evening = Evening(clock=SystemClock(), stays=False, keep=tmp_path, ports=Ports())
    with pytest.raises(StartRefused, match="not empty"):
        await run.demo(evening)


def test_a_command_to_type_is_named_as_it_was_called(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert run.called_as(".venv/bin/headgate") == ".venv/bin/headgate"
    assert run.called_as("bot/__main__.py") == f"{sys.executable} -m bot"
    command = tmp_path / "bin" / "headgate"
    command.parent.mkdir()
    command.touch(mode=0o755)
    assert run.called_as(str(command)) == "headgate"
    assert run.called_as("bot/__main__.py") == "headgate"
    assert run.called_as(".venv/bin/headgate") == ".venv/bin/headgate"
