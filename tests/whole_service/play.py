"""Plays the history of a seed: a storm, then calm, and what must have come of it."""

import asyncio
import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from tests.whole_service import properties, world
from tests.whole_service.loop import rest
from tests.whole_service.network import NetworkLoop
from tests.whole_service.people import People
from tests.whole_service.plan import Plan, drawn

MOVES_WITHIN_S = 1800.0
"""After the last fault everything is at rest within this time.

What a queue itself waits for ends by the right clock: later by as much as the clock was ahead.
"""


class Broken(Exception):
    """A property does not hold."""


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a history."""

    digest: str
    landed: int
    opened: int
    rest_s: float
    steps: int


def play(seed: int | Plan, listener: Callable[[str], None] | None = None) -> Played:
    """Play the history of a seed. Raises Broken with the line that replays it."""
    plan = drawn(seed) if isinstance(seed, int) else seed
    with (
        _silent("asyncio", "aiohttp.server"),
        tempfile.TemporaryDirectory() as folder,
        capture_logs() as caught,
        asyncio.Runner(loop_factory=NetworkLoop) as runner,
    ):
        return runner.run(_play(plan, Path(folder), listener, caught))


@contextmanager
def _silent(*names: str) -> Iterator[None]:
    """Let these libraries say nothing meanwhile."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)


async def _play(
    plan: Plan, folder: Path, listener: Callable[[str], None] | None, logs: list[Any]
) -> Played:
    async with world.opened(plan, folder) as history:
        history.listener = listener
        people = People(history)
        living = asyncio.create_task(people.live())
        await world.storm(history)
        await living
        began_s = history.loop.time()
        await _wake(history, people)
        await _comes_to_rest(history, people, began_s)
        history.seen.look()
        found = await properties.breaches(history, await history.up(), people.answered, logs)
        if found:
            raise Broken(_words(plan, found))
        for line in await properties.ends(await history.up()):
            history.say(line)
        landed = sum(one.merged for one in history.repository.pulls())
        return Played(history.digest(), landed, len(people.numbers),
                      history.loop.time() - began_s, history.loop.steps)  # fmt: skip


async def _wake(history: world.History, people: People) -> None:
    """After the last fault somebody lets the queue run, if it does not."""
    await history.up()
    for _ in range(20):
        status = await people.ask("updateQueue", state="RUNNING")
        if 200 <= status < 500:
            return
        await rest(10)


async def _comes_to_rest(history: world.History, people: People, began_s: float) -> None:
    why = ""

    async def is_at_rest() -> bool:
        nonlocal why
        why = await properties.unrest(history, await history.up(), people.answered)
        return not why

    left_s = MOVES_WITHIN_S + history.plan.ahead_s - (history.loop.time() - began_s)
    if not await history.until(is_at_rest, left_s):
        raise Broken(_words(history.plan, [f"never at rest: {why}"]))


def _words(plan: Plan, found: list[str]) -> str:
    own = f"python -m tests.whole_service {plan.seed}"
    return "\n".join((own if plan == drawn(plan.seed) else str(plan), *found))
