"""`python -m tests.bench.agents.real`: the same scripts against a running service, with real git.

A sandbox and `headgate serve` run as processes; a virtual minute takes SECOND_PER_MIN. Each pull
request edits one of three places of its files, so two clash in git if they share a file and a
place. What is stale writes back the line that a landing replaced, what has landed already writes
the same line again, what is broken fails a check. Printed beside the same scenario in virtual
time: runs, submissions and landings, and how many pull requests lost their line to a stale one, as
git shows it.
"""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench import tables
from tests.bench.agents.comparison import CONTENDERS
from tests.bench.agents.gate import Gate
from tests.bench.agents.scripts import Authors, End, Work
from tests.bench.agents.simulator import play
from tests.bench.agents.world import (
    MINUTE_S,
    Head,
    Kind,
    PullRequest,
    Scenario,
    World,
    arrivals,
)
from tests.bench.scheduling import chance
from tests.bench.tables import Row
from tests.end_to_end.test_two_processes import token
from tests.harness.processes import Service, Stage, stage

REPO = "octo/widgets"
QUEUE = {
    "repo": {"host": "github.localhost", "owner": "octo", "name": "widgets"},
    "targetBranch": "main",
}
SECOND_PER_MIN = 0.3
PLACES, APART = 3, 8
"""Places of a file that are edited, and the lines between them."""

LOOKS_EVERY_S = 0.4
WITHIN_S = 420.0
"""After this time, ten times that in which pull requests are opened, nobody waits."""
CI = """
triggers: { push: ["headgate/merge/**"], pull_request: true }
checks:
  - name: test
    seconds: SECONDS
    rules:
      - { exists: [broken.txt], branch: "headgate/merge/**", conclusion: failure }
      - { flake: FLAKE, branch: "headgate/merge/**", conclusion: failure }
"""
TWENTY = Scenario(
    agents=20,
    people=3,
    hours=2.0,
    agent_every_min=120.0,
    flood=6,
    flood_at_h=0.5,
    slots=6,
    files=60,
    broken=0.1,
    stale=0.1,
    landed=0.06,
    clash=1 / PLACES,
    breaks=0.0,
)


@dataclass
class PlacedWorld(World):
    """A repository in which two clash that edit the same place of a file."""

    def place_of(self, pr: int) -> int:
        """The place of its files that a pull request edits: for the stale that of the landing."""
        other = self.prs[pr].other if pr < len(self.prs) else None
        return chance.mix(pr if other is None else other) % PLACES

    def _drawn(self, pr: PullRequest, other: int) -> float:
        own = pr.id if pr.other is None else pr.other
        return 0.0 if chance.mix(own) % PLACES == self.place_of(other) else 1.0


@dataclass
class Played:
    """The real side: the service, the authors, and what the branch has at each place."""

    set_up: Stage
    service: Service
    secret: str
    scenario: Scenario
    now: float = 0.0

    def __post_init__(self) -> None:
        self.world = PlacedWorld(self.scenario)
        self.authors = Authors(self.world, Gate(self.world), self, told=False, warned=False)
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._queued: dict[int, None] = {}
        self._numbers: dict[int, int] = {}
        self._pushed: dict[int, int] = {}
        self._replaced: dict[tuple[int, int], str] = {}
        self._one_at_a_time = asyncio.Lock()
        self._due = 0
        self._clone = self.set_up.folder / "clone"
        subprocess.run(["git", "init", "-q", "--bare", str(self._clone)], check=True)
        self._tasks: set[asyncio.Task[None]] = set()

    # -- what authors ask ------------------------------------------------------------------------

    def after(self, minutes: float, act: Callable[[], None]) -> None:
        self._due += 1
        self._loop.call_later(minutes * SECOND_PER_MIN, self._act, act)

    def _act(self, act: Callable[[], None]) -> None:
        self._due -= 1
        self.now = (self._loop.time() - self._began) / SECOND_PER_MIN * MINUTE_S
        act()

    def enter(self, head: Head) -> None:
        self._queued[head.id] = None
        task = asyncio.ensure_future(self._enter(head))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def queued(self) -> Iterable[int]:
        return self._queued

    # -- playing ---------------------------------------------------------------------------------

    async def play(self) -> None:
        """Let everybody open and submit until all is decided."""
        for at, submitter, is_person in arrivals(self.scenario):
            self.after(at / MINUTE_S, self._opening(submitter, is_person=is_person))
        ends = self._began + WITHIN_S
        while (self._due or self._queued or self._tasks) and self._loop.time() < ends:
            await self.set_up.clock.sleep(LOOKS_EVERY_S)
            for head in list(self._queued):
                if self._pushed.get(self.world.heads[head].pr) == head:
                    await self._look(self.world.heads[head])

    def _opening(self, submitter: int, *, is_person: bool) -> Callable[[], None]:
        return lambda: self.authors.open(submitter, is_person=is_person)

    async def _enter(self, head: Head) -> None:
        async with self._one_at_a_time:
            if self._pushed.get(head.pr) != head.id:
                await self._push(head)
            pr = {"number": self._numbers[head.pr]}
            await self.post("submitPullRequest", pr=pr)
            self._pushed[head.pr] = head.id

    async def _look(self, head: Head) -> None:
        """Tell the author if the submission has ended, or waits for him."""
        pr = {"number": self._numbers[head.pr]}
        found = await self.post("getSubmittedPullRequest", pr=pr)
        state, reason = found["state"], found["reason"]
        is_clashing = found["readiness"]["gitHubMergeability"] == "NOT_MERGEABLE"
        if state == "MERGED":
            self.world.land(head.id)
            self._end(head, End.LANDED)
        elif reason == "conflict_target" or (state == "NOT_READY" and is_clashing):
            self._end(head, End.CLASHED)
        elif state in {"FAILED", "CANCELLED"}:
            self._end(head, End.FAILED)

    def _end(self, head: Head, end: End) -> None:
        del self._queued[head.id]
        self.authors.ended(head, end)

    async def _push(self, head: Head) -> None:
        """Commit the head on the tip, as what its author makes of the files there."""
        tip = await self._tip()
        pr, place = self.world.prs[head.pr], self.world.place_of(head.pr)
        files: dict[str, str | None] = {}
        for file in pr.files:
            lines = await self._lines(file, tip)
            lines[place * APART] = self._line(head, file, lines[place * APART])
            files[f"file-{file}.txt"] = "\n".join(lines) + "\n"
        if head.kind is Kind.BROKEN:
            files["broken.txt"] = "It fails.\n"
        act: dict[str, Any] = {"as": "alice", "repo": REPO, "files": files}
        if head.pr in self._numbers:
            act |= {"act": "force_push", "number": self._numbers[head.pr], "onto": tip}
            await self.set_up.control("acts", act)
            return
        act |= {"act": "open", "from": tip, "head": f"pr-{head.pr}", "title": f"Change {head.pr}"}
        self._numbers[head.pr] = (await self.set_up.control("acts", act))["number"]

    def _line(self, head: Head, file: int, there: str) -> str:
        """What the head writes at its place, where `there` stands on the tip."""
        pr = self.world.prs[head.pr]
        if head.kind is Kind.STALE and pr.other is not None:
            return self._replaced.get((pr.other, file), "as it was")
        if head.kind is Kind.LANDED and pr.other is not None:
            return f"change {pr.other}"
        self._replaced[head.pr, file] = there
        return f"change {head.pr}"

    async def _lines(self, file: int, commit: str) -> list[str]:
        return (await self._git("show", f"{commit}:file-{file}.txt")).splitlines()

    async def _tip(self) -> str:
        """Fetch the branch; its commit."""
        url = f"{self.set_up.sandbox_url}/{REPO}.git"
        await self._git("fetch", "-q", url, "+refs/heads/main:refs/heads/main")
        return (await self._git("rev-parse", "main")).strip()

    async def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self._clone), *arguments]
        run = partial(subprocess.run, command, check=True, capture_output=True, text=True)
        return str((await asyncio.to_thread(run)).stdout)

    # -- what came of it -------------------------------------------------------------------------

    async def lost(self) -> set[int]:
        """The pull requests whose line a stale one has taken off the branch, as git shows it."""
        await self._tip()
        prs = [self.world.prs[number] for number in self.world.landings]
        stale = {f"Change {pr.id}" for pr in prs if pr.kind is Kind.STALE}
        found: set[int] = set()
        title = ""
        log = await self._git("log", "-p", "--unified=0", "--format=commit %s", "main")
        for line in log.splitlines():
            if line.startswith("commit "):
                title = line.removeprefix("commit ").partition(" (#")[0]
            elif title in stale and line.startswith("-change "):
                found.add(int(line.removeprefix("-change ")))
        return found

    async def row(self) -> Row:
        """The figures, with seconds of test runs as the minutes that they stand for."""
        spent = await self.post("getMergeQueueStatistics")
        return {
            "world": "service, git",
            **_shared(self.authors.work, self.world),
            "runs": spent["runs"],
            "ci_minutes_each": round(
                spent["runSeconds"] / SECOND_PER_MIN / max(len(self.world.landings), 1), 1
            ),
            "lost_in_git": len(await self.lost()),
        }

    async def post(self, path: str, **more: Any) -> dict[str, Any]:
        status, answer = await self.set_up.api(self.service, path, self.secret, **QUEUE, **more)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {answer}")
        found: dict[str, Any] = answer
        return found


def _shared(work: Sequence[Work], world: World) -> Row:
    """The figures that both worlds count alike."""
    kinds = [world.prs[number].kind for number in world.landings]
    submitted = sum(each.submitted for each in work)
    wanted = sum(kind in {Kind.GOOD, Kind.BROKEN} for kind in kinds)
    return {
        "opened": len(work),
        "submitted": submitted,
        "wasted_percent": round(100 * (1 - wanted / max(submitted, 1))),
        "landed": len(kinds),
        "silent_reverts": kinds.count(Kind.STALE),
        "conflicts": sum(each.clashes for each in work),
        "rebases": sum(each.rebases for each in work),
    }


def virtual_row(scenario: Scenario) -> Row:
    """The same scenario in virtual time."""
    contender = CONTENDERS["Headgate, all off"]
    played = play(scenario, contender.queue(scenario), contender.rules, world_of=PlacedWorld)
    minutes = sum(run.minutes for run in played.runs)
    return {
        "world": "virtual",
        **_shared(played.work, played.world),
        "runs": len(played.runs),
        "ci_minutes_each": round(minutes / max(len(played.landed), 1), 1),
        "lost_in_git": "",
    }


async def real_row(scenario: Scenario, folder: Path) -> Row:
    """The scenario played against a service of its own."""
    async with stage(folder, speed=1) as set_up:
        lines = [f"line {number}" for number in range(PLACES * APART)]
        ci = CI.replace("SECONDS", str(scenario.ci_min * SECOND_PER_MIN))
        files = {f"file-{number}.txt": "\n".join(lines) + "\n" for number in range(scenario.files)}
        files[".sandbox/ci.yml"] = ci.replace("FLAKE", str(scenario.flake))
        repository = {"full_name": REPO, "files": files, "required_checks": ["test"]}
        await set_up.control("seed", {"repositories": [repository]})
        async with set_up.serving() as service:
            played = Played(set_up, service, await token(set_up), scenario)
            settings = {"batch": True, "batchSizing": "ADAPTIVE", "batchingMinSize": 16}
            slots = {"concurrency": scenario.slots, "bisectionConcurrency": 0}
            whole = {"fullSuite": True, "canOptimisticallyMerge": True}
            at_once = {"batchingMaxWaitTimeMinutes": 0}
            await played.post("createQueue", **settings, **slots, **whole, **at_once)
            await played.play()
            return await played.row()


def main() -> None:
    """Play both, and print a row of each."""
    rows = [virtual_row(TWENTY)]
    with TemporaryDirectory() as folder:
        rows.append(asyncio.run(real_row(TWENTY, Path(folder))))
    sys.stdout.write(tables.tables(rows) + "\n")


if __name__ == "__main__":
    main()
