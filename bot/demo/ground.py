"""The playground: one queue, a repository for it, and what a visitor does with both."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import aiohttp

from bot.demo import play, proof, seeding, stage, story, watching, widgets
from bot.demo.proof import Proof
from bot.demo.seeding import Json
from bot.demo.stage import PUSH_ONLY, Parts, Ports, Scenery, Stage
from bot.demo.story import Change
from bot.demo.watching import Hold, RunDetails, Submission, Watch
from bot.sandbox.records import Kind
from bot.sandbox.world import PullRequest
from service.clock import Clock

QUEUE = "main"
CONCURRENCY = 4
LOOK_S = 0.4
LINES_KEPT = 60
NUMBERS_MAX = 100
"""Pull requests that are followed, the newest ones."""
END_WITHIN_S = 60.0

PACES: Mapping[str, tuple[str, float]] = {
    "pause": ("Pause CI", 0.0),
    "slow": ("Slow", 0.25),
    "normal": ("Normal", 1.0),
}
"""Name of a pace of the CI machine → its label, and how fast time passes in a test run."""
AT_ONCE = 100.0

SWEEPS: Mapping[str, int] = {
    "period_comments_s": 5,
    "period_run_checks_s": 5,
    "period_queues_s": 5,
    "period_timers_s": 1,
}
"""Sweeps that find what a lost webhook would have reported, sooner than by default."""

FIRST = (
    Change(1, "Retry uploads", "alice", {"widgets/uploads.py": story.RETRY}),
    Change(2, "Bump client", "bob", {"widgets/client.py": 'VERSION = "1.1"\n'}),
    Change(3, "Write a guide", "alice", {"docs/guide.md": "# Guide\n\nCall upload.\n"}),
    Change(4, "Keep a wish list", "bob", {"widgets/wishes.py": "WISHES = []\n"}),
)
"""Pull requests that wait for the visitor."""

Holds = Callable[[Submission], bool]


def is_final(submission: Submission) -> bool:
    """Return whether a submission has ended."""
    return submission.is_final


@dataclass(frozen=True, slots=True)
class Line:
    """Something that happened: when, to which pull requests, and what."""

    at: datetime
    numbers: tuple[int, ...]
    text: str


@dataclass(slots=True)
class Ground:
    """The playground while it is used; `proofs` are those of its end, None before it."""

    watch: Watch
    clock: Clock
    tell: Callable[[str], None]
    older: str
    pace: str = "slow"
    made: int = 0
    lines: deque[Line] = field(default_factory=lambda: deque(maxlen=LINES_KEPT))
    playing: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    proofs: tuple[Proof, ...] | None = None
    ending: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def stage(self) -> Stage:
        """The two servers."""
        return self.watch.stage

    @property
    def is_over(self) -> bool:
        """Return whether the visitor has ended it."""
        return self.ending.locked() or self.proofs is not None

    @property
    def pulls(self) -> list[PullRequest]:
        """The pull requests that people have opened, newest first."""
        every = self.stage.repository.pulls()
        return [pull for pull in every if pull.author.kind is not Kind.BOT][::-1][:NUMBERS_MAX]

    def say(self, text: str, numbers: Iterable[int] = ()) -> None:
        """Tell the page and the terminal what happened."""
        line = Line(self.clock.now(), tuple(numbers), text)
        self.lines.appendleft(line)
        self.tell(f"{watching.named(line.numbers):<6}  {text}")

    async def open(
        self, author: str, title: str, files: Mapping[str, str], base: PullRequest | None = None
    ) -> int:
        """Open a pull request on top of `base`, else on an older commit of the branch."""
        self.made += 1
        head = f"topic-{self.made}"
        where: Json = {"base": QUEUE, "from": self.older}
        if base is not None:
            where = {"base": base.head_ref, "from": base.head_sha}
        opened = await self.stage.act(
            author, "open", head=head, title=title, files=dict(files), **where
        )
        number = int(str(opened["number"]))
        self.say(f"{author} opens “{title}”", [number])
        return number

    async def comment(self, author: str, number: int, text: str) -> None:
        """Comment on a pull request as a person."""
        self.say(f"{author} comments {text}", [number])
        await self.stage.comment(author, number, text)

    async def merge(self, author: str, number: int, command: str = "/merge") -> None:
        """Comment a command, and wait until the pull request is submitted."""
        await self.comment(author, number, command)
        await self.until([number], lambda _: True)

    async def runs_of(self, number: int) -> list[RunDetails]:
        """Return the test runs in which a pull request was tested."""
        runs = await self.watch.runs_of(QUEUE)
        return [run for run in runs if number in run.run.numbers]

    async def push(self, files: Mapping[str, str], message: str) -> None:
        """Push to the branch as a person, past its rules, and wait until CI has tested it."""
        self.made += 1
        self.say(f"alice pushes to {QUEUE} by hand: {message}")
        fields: Json = {"branch": QUEUE, "files": dict(files), "message": message, "bypass": True}
        pushed = await self.stage.act("alice", "push", **fields)
        while not self.stage.is_tested(str(pushed["sha"])):
            await self.clock.sleep(LOOK_S)

    async def holds(self) -> list[Hold]:
        """Return what keeps the queue from working."""
        answer = await self.stage.call("/getQueue", QUEUE)
        found = answer["holds"] if answer else []
        return [Hold.model_validate(each) for each in (found if isinstance(found, list) else [])]

    async def release(self, held: Hold, why: str) -> None:
        """Release a hold, as a maintainer does on the page of the queue."""
        self.say(f"alice lets the queue go on: {why}")
        await self.stage.call("/releaseQueueHold", QUEUE, holdId=held.id, text=why)

    def pull(self, number: int) -> PullRequest:
        """Return a pull request. Raises StopIteration for a number of none."""
        return next(pull for pull in self.pulls if pull.number == number)

    def own_file(self) -> Mapping[str, str]:
        """Return a file that no other pull request of the playground changes."""
        name = f"extra_{self.made + 1}"
        return {f"widgets/{name}.py": f'NAME = "{name}"\n'}

    async def until(self, numbers: Iterable[int], holds: Holds = is_final) -> None:
        """Wait until something holds of all these pull requests."""
        found = self.watch.submissions
        for number in numbers:
            while not (number in found and holds(found[number])):
                await self.clock.sleep(LOOK_S)

    def set_pace(self, name: str) -> None:
        """Let time pass at another pace in test runs."""
        self.pace = name
        self.stage.set_pace(PACES[name][1])

    async def follow(self) -> None:
        """Tell what the service reports, for ever; one that does not answer is asked again."""
        was_answered = True
        while True:
            try:
                await self.look()
            except (aiohttp.ClientError, TimeoutError) as trouble:
                if was_answered:
                    why = str(trouble) or "time limit"
                    self.say(f"Headgate does not answer ({why}): asking again")
                was_answered = False
            else:
                was_answered = True
            await self.clock.sleep(LOOK_S)

    async def look(self) -> None:
        """Tell what the service has reported since the last time."""
        numbers = [pull.number for pull in self.pulls]
        news = await self.watch.new_events(QUEUE, numbers)
        for text, about in watching.merge_events(news):
            self.say(text, about)

    async def end(self) -> tuple[Proof, ...]:
        """Stop the stories, empty the queue, and prove by git what has landed."""
        async with self.ending:
            if self.proofs is None:
                for story_in_progress in self.playing.values():
                    story_in_progress.cancel()
                self.stage.set_pace(AT_ONCE)
                self.say("The end: what is still in the queue is removed")
                await self._empty()
                self.proofs = await self._prove()
            return self.proofs

    async def _empty(self) -> None:
        await self.look()
        ends = self.clock.monotonic_s() + END_WITHIN_S
        while self.clock.monotonic_s() < ends:
            left = [each for each in self.watch.submissions.values() if not each.is_final]
            if not left:
                break
            for each in left:
                await self._cancel(each.pr_number)
            await self.clock.sleep(LOOK_S)
            await self.look()
        await play.branches_deleted(self.watch, self.clock)

    async def _cancel(self, number: int) -> None:
        try:
            await self.stage.call("/cancelPullRequest", QUEUE, pr={"number": number})
        except aiohttp.ClientResponseError as refused:
            # One that is landing at this moment cannot be removed.
            if refused.status not in (400, 409, 422):
                raise

    async def _prove(self) -> tuple[Proof, ...]:
        runs = await self.watch.runs_of(QUEUE)
        pulls = {pull.number: pull.head_sha for pull in self.pulls}
        self.stage.heads.update(pulls)
        branch = replace(
            self.watch.outcome(QUEUE, pulls, runs), by_hand=self.stage.pushed_by_people(QUEUE)
        )
        return await asyncio.to_thread(proof.prove, self.stage.bare, (branch,))


@asynccontextmanager
async def running(
    folder: Path, ports: Ports, parts: Parts, tell: Callable[[str], None]
) -> AsyncIterator[Ground]:
    """Run a playground: both servers, one queue, and a test that is known to be flaky.

    Raises StartRefused for a git that is too old.
    """
    scenery = Scenery(seed, SWEEPS, ports.page_origin)
    async with stage.running(folder, ports, parts, scenery) as staged:
        staged.set_pace(AT_ONCE)
        await staged.call("/createQueue", QUEUE, concurrency=CONCURRENCY, **PUSH_ONLY)
        await staged.learn_weather(QUEUE)
        history = staged.repository.git.objects.first_parents(staged.starts[QUEUE], NUMBERS_MAX)
        ground = Ground(Watch(staged), parts.clock, tell, history[-1].sha)
        ground.set_pace(ground.pace)
        following = asyncio.create_task(ground.follow())
        try:
            yield ground
        finally:
            tasks = [following, *ground.playing.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def seed(
    session: aiohttp.ClientSession, sandbox: str, machine: Path
) -> tuple[dict[int, str], dict[str, str]]:
    """Make the repository with the first pull requests; return their heads and the branch."""
    ci_file = widgets.ci_file(machine, QUEUE)
    made = seeding.repository(ci_file, [QUEUE])
    await seeding.post(session, f"{sandbox}/_sandbox/seed", made)
    heads = await seeding.open_all(session, sandbox, FIRST, QUEUE)
    return heads, await seeding.move_on(session, sandbox, [QUEUE])
