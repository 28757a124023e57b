"""A test run is cheap: it keeps what is compiled, and works in memory where that has room."""

import os
import sys
import tempfile

import pytest

from tests.harness import machine


def test_a_run_keeps_what_is_compiled():
    assert not sys.dont_write_bytecode
    assert machine.KEEPS_NOTHING_COMPILED not in os.environ


@pytest.fixture
def remembered(monkeypatch, tmp_path):
    """The folder that Python chose for temporary files; the test's own lies where it did."""
    monkeypatch.setattr(tempfile, "tempdir", "/chosen")
    return "/chosen"


def test_temporary_files_lie_in_memory_where_there_is_room(remembered, tmp_path):
    environment: dict[str, str] = {}
    machine.work_in_memory(environment, tmp_path, room_bytes=1)
    assert environment == {"TMPDIR": str(tmp_path)}
    assert tempfile.tempdir is None


@pytest.mark.parametrize(
    ("environment", "memory", "room_bytes"),
    [({"TMPDIR": "/mine"}, ".", 1), ({}, ".", 2**70), ({}, "absent", 1)],
    ids=["a folder is named", "no room", "no such folder"],
)
def test_temporary_files_stay_where_they_are(remembered, tmp_path, environment, memory, room_bytes):
    before = dict(environment)
    machine.work_in_memory(environment, tmp_path / memory, room_bytes)
    assert environment == before
    assert tempfile.tempdir == remembered


def test_no_port_is_given_twice_to_this_process_or_to_two_workers(monkeypatch):
    given = []
    for worker in ("0", "1", "2"):
        monkeypatch.setenv("TESTS_WORKER", worker)
        given += [machine.free_port() for _ in range(80)]
    assert len(set(given)) == len(given)
    assert set(given) <= set(machine.PORTS)
