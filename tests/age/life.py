"""Many life cycles of pull requests in virtual time, and what is left of each.

A wave of pull requests is opened and submitted; most land, one fails, one is cancelled, one is
closed. When all have ended and their branches are deleted, the calendar moves on by days, so that
retention has its part. Then a census counts what the service and its stand-in hold. Beside it
stands what a machine measures: memory and time of the CPU.
"""

import gc
import os
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

from sqlalchemy import func, select

from service.database.database import Tx
from service.database.tables_base import METADATA
from service.mergequeue.operations import queues
from service.vocabulary import SYSTEM
from tests.harness.effort import IS_SOAK
from tests.harness.world import World, WorldOptions

SIZE = 20 if IS_SOAK else 10
"""Pull requests of a wave, which is tested in two batches."""
CI = """\
triggers: {push: ["headgate/merge/**"]}
checks:
  - name: unit
    seconds: 30
    rules:
      - {exists: [broken.txt], conclusion: failure}
"""
PRUNED_AFTER_S = 3_700
"""World time in which every sweep has run, that of retention too."""
TALK_S = 4.0
"""Between two commands: each person may send ten a minute."""
PARTS = {"service": "service", "bot.github": "service", "bot.sandbox": "stand-in"}


@dataclass(frozen=True)
class Census:
    """What there is after so many life cycles; sizes in bytes.

    `rows` by table. `objects`: instances of our classes, of the service and of the stand-in.
    """

    cycles: int
    landed: int
    rows: Mapping[str, int]
    objects: Mapping[str, int]
    heads: int
    mirror_refs: int
    mirror: int
    descriptors: int
    database: int
    resident: int
    decision_ms: float
    cpu_s: float
    kinds: Mapping[str, int] = field(repr=False, default_factory=dict)


def options(method: str) -> WorldOptions:
    """A world whose test branches are built by `method`, and whose traffic is not compared."""
    settings = {"build_method": method}
    return WorldOptions(ci=CI, required=(), is_compared=False, settings=settings)


async def prepare(world: World) -> None:
    """Make the queue, which tests in batches."""
    await world.make_queue(
        required_statuses=("unit",),
        batch=True,
        batching_min_size=SIZE // 2,
        batching_max_wait_time_minutes=1,
    )


async def lived(world: World, folder: Path, waves: int, days: float) -> AsyncIterator[Census]:
    """Let so many waves live, with days between them; yield a census after each."""
    landed = 0
    for number in range(1, waves + 1):
        began_s = process_time()
        landed += await _wave(world, number)
        spent_s = process_time() - began_s
        world.clock.shared.advance(days * 86_400)
        await world.rest(PRUNED_AFTER_S)
        await world.settle()
        yield await _census(world, folder, number * SIZE, landed, spent_s)


async def _wave(world: World, number: int) -> int:
    """Let one wave live and end; return how many landed."""
    numbers = [await world.open(fresh=True, files=_files(number, place)) for place in range(SIZE)]
    for place, each in enumerate(numbers):
        await world.comment("/merge", on=each, by=("alice", "bob")[place % 2])
        await world.clock.sleep(TALK_S)
    _, cancelled, closed = numbers[-3:]
    await world.comment("/merge cancel", on=cancelled)
    await world.act("close", number=closed)
    await world.settle()
    pulls = [pull for pull in world.repository.pulls() if pull.number in numbers]
    merged = [pull.number for pull in pulls if pull.merged]
    assert merged == numbers[:-3], f"landed were {merged} of {numbers}"
    for pull in pulls:
        await world.act("delete_branch", branch=pull.head_ref)
    await world.settle()
    return len(merged)


def _files(wave: int, place: int) -> dict[str, str]:
    """Every wave changes the same files, so that a tree stays as large as it was."""
    broken = {"broken.txt": "x\n"} if place == SIZE - 3 else {}
    return {f"slot-{place}.txt": f"{wave}\n", **broken}


async def _census(world: World, folder: Path, cycles: int, landed: int, spent_s: float) -> Census:
    rows = await world.runtime.store.read(_rows)
    decision_ms = await _decision_ms(world)
    gc.collect()
    kinds = Counter(
        f"{type(each).__module__}.{type(each).__qualname__}"
        for each in gc.get_objects()
        if str(type(each).__module__).startswith(tuple(PARTS))
    )
    objects: Counter[str] = Counter()
    for kind, count in kinds.items():
        objects[next(part for name, part in PARTS.items() if kind.startswith(name))] += count
    mirror = _files_below(folder / "mirrors")
    return Census(
        cycles=cycles,
        landed=landed,
        rows=rows,
        objects=dict(objects),
        heads=len(world.repository.git.branches()),
        mirror_refs=sum("refs" in each.parts for each in mirror),
        mirror=sum(mirror.values()),
        descriptors=len(os.listdir("/proc/self/fd")),
        database=sum(_files_below(folder, "headgate.db*").values()),
        resident=_resident(),
        decision_ms=decision_ms,
        cpu_s=spent_s,
        kinds=dict(kinds),
    )


def _rows(session: Tx) -> dict[str, int]:
    return {
        table.name: session.execute(select(func.count()).select_from(table)).scalar_one()
        for table in METADATA.sorted_tables
    }


async def _decision_ms(world: World) -> float:
    """The CPU time of a turn of the queue: the mean of placing a hold and releasing it."""
    queue = await world.queue()
    began_s = process_time()
    hold = await queues.add_hold(world.runtime, queue, queues.HoldRequest("age"), SYSTEM)
    await queues.release_hold(world.runtime, queue, hold.id, "age", SYSTEM)
    return round((process_time() - began_s) * 500, 2)


def _files_below(folder: Path, pattern: str = "**/*") -> dict[Path, int]:
    """The sizes of files."""
    return {each: each.stat().st_size for each in folder.glob(pattern) if each.is_file()}


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")
