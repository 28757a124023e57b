"""The cost of the conflict radar: 100 open pull requests, of whose pairs 30 % touch the same file.

They are opened one after the other, then each is pushed to once; after each event the radar looks,
as it does after a delivery. The truth are all pairs of the last heads, merged by git alone.
CPU is that of this process and of git.
"""

import asyncio
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from bot.github.gitbuild.command import Git
from bot.github.gitbuild.mirror import Mirror
from bot.github.gitbuild.overlapping import Overlapping, Remembered
from service.clock import SystemClock
from service.mergequeue.operations import radar
from service.provider.overlaps import HeadPair, OverlapRequest, Pair
from service.provider.values import ListedPullRequest
from service.vocabulary import RepoRef, Sha
from tests.bench import cpu
from tests.bench.undoing import World, path_of

OPEN = 100
HOT = 3
"""Files of which each pull request changes one, beside one of its own."""
LANDED = 100
WHO = ("-c", "user.name=dev", "-c", "user.email=dev@example.org")
GOAL_S, GOAL_FOUND = 2.0, 0.95
Row = dict[str, object]


class _Local(Mirror):
    """A mirror in which all heads are there already."""

    async def fetch(self, *_: Any, **__: Any) -> None:
        """Fetch nothing."""


@dataclass
class Stage:
    """A repository with open pull requests, and what the radar knows of them."""

    world: World
    tip: Sha

    def __post_init__(self) -> None:
        self.mirror = _Local(self.world.folder, Git(20 << 30, {}), SystemClock())
        self.known = Remembered()
        self.heads: dict[int, ListedPullRequest] = {}
        self.compared: set[HeadPair] = set()
        self.pairs: dict[HeadPair, Pair] = {}
        self.merged = 0

    def push(self, number: int) -> None:
        """Open a pull request, or push to it."""
        chance = self.world.chance
        texts = {}
        for path in (path_of(chance.randrange(HOT)), path_of(HOT + number * 7)):
            rows = list(self.world.texts[path])
            place = chance.randrange(0, len(rows), 3)
            rows[place : place + 3] = [self.world.line(f"pull{number}") for _ in range(5)]
            texts[path] = rows
        tree = self.world.tree(self.tip, texts)
        head = self.world.git(*WHO, "commit-tree", tree, "-p", self.tip, "-m", f"pull {number}")
        self.heads[number] = ListedPullRequest(number, Sha(head))

    def look(self, first: int) -> float:
        """Compare what was not compared, that pull request first; the CPU seconds."""
        ordered = sorted(self.heads.values(), key=lambda one: one.number != first)
        request = OverlapRequest(
            repo=RepoRef("github.com", "octo", "widgets"),
            target="main",
            tip=self.tip,
            heads=tuple(ordered),
            compared=frozenset(self.compared),
            rules=(),
            pairs_max=radar.PAIRS_MAX,
            cpu_s_max=radar.LOOK_CPU_S,
        )
        with cpu.measured() as took:
            looking = Overlapping(self.mirror, cast("Any", None), request, self.known)
            found = asyncio.run(looking.compare())
        self.merged += len(found.pairs)
        for pair in found.pairs:
            key = (pair.low.head, pair.high.head)
            self.compared.add(key)
            self.pairs[key] = pair
        return took.ms / 1000

    def truth(self) -> set[HeadPair]:
        """All pairs of the present heads that conflict."""
        heads = [one.head for one in sorted(self.heads.values(), key=lambda one: one.number)]
        pairs = ((low, high) for at, high in enumerate(heads) for low in heads[:at])
        return {pair for pair in pairs if self.is_conflict(*pair)}

    def is_conflict(self, low: Sha, high: Sha) -> bool:
        """Return whether git finds a conflict between two heads on the tip."""
        try:
            self.world.git("merge-tree", "--write-tree", "--no-messages", low, high)
        except subprocess.CalledProcessError:
            return True
        return False


def run(scale: float = 1.0) -> Sequence[Row]:
    """A row for the pushes to open pull requests."""
    with TemporaryDirectory() as folder:
        world = World(Path(folder) / "it.git")
        world.build(int(LANDED * scale))
        stage = Stage(world, Sha(world.git("rev-parse", "main")))
        for number in range(OPEN):
            stage.push(number)
            stage.look(number)
        stage.merged = 0
        took_s = []
        for number in range(OPEN):
            stage.push(number)
            took_s.append(stage.look(number))
        true = stage.truth()
        there = {one.head for one in stage.heads.values()}
        found = {key for key, pair in stage.pairs.items() if pair.paths and there.issuperset(key)}
        took_s.sort()
        return [
            {
                "subject": f"a push beside {OPEN - 1} open pull requests",
                "median_s": round(took_s[OPEN // 2], 2),
                "p95_s": round(took_s[OPEN * 19 // 20], 2),
                "median_goal_s": GOAL_S,
                "merges": round(stage.merged / OPEN, 1),
                "conflicts": len(true),
                "found": round(len(found & true) / len(true), 3),
                "found_floor": GOAL_FOUND,
                "wrong": len(found - true),
            }
        ]
