"""The process dies while a call, whose connection it has cut, may still be carried out."""

import asyncio
from pathlib import Path

import pytest

from bot.sandbox.faults import Faults
from tests.whole_service import world
from tests.whole_service.loop import rest
from tests.whole_service.network import NetworkLoop
from tests.whole_service.people import People
from tests.whole_service.plan import Plan
from tests.whole_service.world import History

LATE_S = 20
"""So many seconds after the cut the call is carried out."""


async def _texts_of_a_restart(folder: Path, path: str) -> list[int]:
    """How many status comments and checks of ours there are, if the post of one is cut."""
    plan = Plan(1, settings={"concurrency": 1}, acts={"open": 1})
    async with world.opened(plan, folder) as history:
        faults = history.sandbox.world.faults = Faults()
        faults.add(1, {"match": {"method": "POST", "path": path, "nth": 1},
                       "fault": {"kind": "late", "s": LATE_S}})  # fmt: skip
        people = People(history)
        number = await people.open()
        await people.comment("/merge", number)

        async def is_cut() -> bool:
            return bool(faults.listed[0].struck)

        assert await history.until(is_cut, 60)
        history.kill(history.processes[0])
        history.start()
        await history.up()
        await rest(300)
        return _texts(history, number)


def _texts(history: History, number: int) -> list[int]:
    issue = history.repository.issues[number]
    assert issue.pull is not None
    runs = history.repository.check_runs(issue.pull.head_sha)
    return [
        sum("headgate:status" in one.body for one in issue.comments),
        sum(one.suite.app is history.sandbox.app for one in runs),
    ]


@pytest.mark.parametrize("path", ["*/comments", "*/check-runs"])
@pytest.mark.fault(
    "the process dies while a cut call may still be carried out",
    holds="each text is written once",
    within="5 min",
)
def test_a_text_whose_call_was_cut_before_a_restart_is_written_once(
    path: str, tmp_path: Path
) -> None:
    with asyncio.Runner(loop_factory=NetworkLoop) as runner:
        assert runner.run(_texts_of_a_restart(tmp_path, path)) == [1, 1]
