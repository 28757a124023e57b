"""What surrounds the demo's play: its telling, ports, folders. The play: tests/end_to_end."""

import socket
import sys

import pytest

from bot.cli import app
from bot.demo import run, scene, stage
from bot.demo.run import Evening
from bot.demo.stage import Ports
from service.clock import SystemClock
from service.errors import StartRefused
from tests.cli import processes


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


def an_event(sequence, message, run=None, at="2026-03-02T14:20:00.000Z"):
    return {
        "sequence": sequence,
        "at": at,
        "event": "RunFinished",
        "message": message,
        "testRunId": run,
    }


def test_what_one_run_is_told_of_neighbors_is_said_once():
    news = [
        (an_event(3, "Started.", "r1"), 12),
        (an_event(1, "Queued."), 13),
        (an_event(2, "Started.", "r1"), 13),
        (an_event(4, "Started.", "r2"), 14),
        (an_event(1, "Queued.", at="2026-03-02T14:19:00.000Z"), 15),
    ]
    assert scene.together(news) == [
        ("Queued.", [15]),
        ("Queued.", [13]),
        ("Started.", [12, 13]),
        ("Started.", [14]),
    ]


def test_a_taken_port_is_replaced_unless_it_was_asked_for():
    with socket.socket() as taken:
        taken.bind((stage.LOOPBACK, 0))
        taken.listen()
        number = taken.getsockname()[1]
        assert stage.port_of(None, number) not in (0, number)
        with pytest.raises(StartRefused, match=f"port {number} is in use"):
            stage.port_of(number, 1)
    assert stage.port_of(number, 1) == number


def test_the_two_servers_never_get_the_same_port(monkeypatch):
    # Others on this machine may use the usual ones meanwhile.
    with socket.socket() as one, socket.socket() as other:
        for usual in (one, other):
            usual.bind((stage.LOOPBACK, 0))
        service, sandbox = (usual.getsockname()[1] for usual in (one, other))
    monkeypatch.setattr(stage, "SERVICE_PORT", service)
    monkeypatch.setattr(stage, "SANDBOX_PORT", sandbox)
    for asked in (Ports(service=sandbox), Ports(sandbox=service), Ports()):
        assert len(set(stage.both_of(asked))) == 2
    with pytest.raises(StartRefused, match="for both servers"):
        stage.both_of(Ports(service=sandbox, sandbox=sandbox))


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
