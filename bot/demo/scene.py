"""The play itself: comments as people write them, and what the service's API then shows."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from bot.demo import proofs, story
from bot.demo.proofs import Claim
from bot.demo.shown import Played, Run
from bot.demo.stage import Json, Stage
from bot.demo.story import Role, Story
from service.clock import Clock

FINAL = frozenset({"MERGED", "FAILED", "CANCELLED"})
# Said by the events around them: "Testing started" says more than "TESTING".
SILENT = frozenset({"RunBuilt", "RunRetired", "LandingStarted"})
SILENT_MOVES = frozenset(
    {("NOT_READY", "PENDING"), ("PENDING", "TESTING"), ("TESTING", "TESTS_PASSED")}
)
# Of every queue that is made over the API; with a draft each test branch would be tested twice,
# once as a push and once as a pull request.
PUSH_ONLY: Json = {"createPrsForTestingBranches": False}
POLL_S = 0.25
# How long test branches may take to go after the last landing.
CLEAN_UP_S = 20.0

Tell = Callable[[str], None]


@dataclass(slots=True)
class Scene:
    """A play under way: the newest record of every pull request that was commented on."""

    stage: Stage
    clock: Clock
    tell: Tell
    records: dict[int, Json] = field(default_factory=dict)
    told: dict[int, int] = field(default_factory=dict)

    async def play(self) -> None:
        """All stories at the same time, until each of their pull requests has left its queue.

        Raises a group of what broke a story off.
        """
        async with asyncio.TaskGroup() as playing:
            for played in (self.main(), self.release(), self.lanes(), self.optimistic()):
                playing.create_task(played)
        await self.cleaned_up()

    async def main(self) -> None:
        """Five in a row; then a slow one and an urgent one that comes while it is tested."""
        await self.submit(story.MAIN, story.OPENING)
        await self.until(story.MAIN, story.OPENING, is_final)
        await self.comment(story.MAIN, story.SLOW)
        await self.until(story.MAIN, [story.SLOW], is_being_tested)
        await self.comment(story.MAIN, story.URGENT)
        await self.until(story.MAIN, [story.SLOW, story.URGENT], is_final)

    async def release(self) -> None:
        """Four that make one batch."""
        await self.make_queue(story.RELEASE)
        await self.submit(story.RELEASE, story.RELEASE.roles)
        await self.until(story.RELEASE, story.RELEASE.roles, is_final)

    async def lanes(self) -> None:
        """Two of which CI says that they touch different things."""
        await self.make_queue(story.LANES)
        for role in story.LANES.roles:
            await self.name_targets(story.LANES, role)
        await self.submit(story.LANES, story.LANES.roles)
        await self.until(story.LANES, story.LANES.roles, is_final)

    async def optimistic(self) -> None:
        """A flaky one, and a good one on top of it."""
        await self.make_queue(story.OPTIMISTIC)
        await self.submit(story.OPTIMISTIC, story.OPTIMISTIC.roles)
        await self.until(story.OPTIMISTIC, story.OPTIMISTIC.roles, is_final)

    async def make_queue(self, played: Story) -> None:
        """Make the story's queue over the API, with settings of its own."""
        settings = dict(played.settings or {})
        words = ", ".join(f"{name} {said(value)}" for name, value in settings.items())
        self.say(played, [], f"queue made: {words}")
        await self.stage.ask("/createQueue", played.branch, **PUSH_ONLY, **settings)

    async def name_targets(self, played: Story, role: Role) -> None:
        """Say what a pull request touches, as its CI does."""
        names: list[JsonValue] = list(role.targets or ())
        self.say(played, [role.number], f"CI says it touches {', '.join(role.targets or ())}")
        pr: Json = {"number": role.number, "sha": self.stage.heads[role.number]}
        await self.stage.ask("/setImpactedTargets", played.branch, pr=pr, impactedTargets=names)

    async def submit(self, played: Story, roles: Iterable[Role]) -> None:
        """Comment on each; the order in the queue is that of arrival, so the next one waits."""
        for role in roles:
            await self.comment(played, role)
            await self.until(played, [role], is_known)

    async def comment(self, played: Story, role: Role) -> None:
        """Comment on a pull request as the person who does it."""
        self.say(played, [role.number], f"{role.said_by} comments {role.command}")
        await self.stage.act(role.said_by, "comment", number=role.number, body=role.command)
        self.told[role.number] = 0

    async def until(
        self, played: Story, roles: Iterable[Role], holds: Callable[[Json], bool]
    ) -> None:
        """Watch a story and tell of it until something holds of all these pull requests."""
        waiting = [role.number for role in roles]
        while not all(n in self.records and holds(self.records[n]) for n in waiting):
            await self.clock.sleep(POLL_S)
            news = [
                (event, role.number)
                for role in played.roles
                for event in await self.news_of(played, role.number)
            ]
            for text, numbers in together(news):
                self.say(played, numbers, text)

    async def news_of(self, played: Story, number: int) -> list[Json]:
        """Read the record of a pull request that was submitted; what is new in its timeline."""
        if number not in self.told or is_final(self.records.get(number, {})):
            return []
        record = await self.stage.ask(
            "/getSubmittedPullRequest", played.branch, pr={"number": number}, includeTimeline=True
        )
        if record is None:
            return []
        self.records[number] = record
        seen, events = self.told[number], events_of(record)
        self.told[number] = max((sequence_of(event) for event in events), default=seen)
        return [event for event in events if sequence_of(event) > seen and is_told(event)]

    def say(self, played: Story, numbers: Sequence[int], text: str) -> None:
        """Tell something of pull requests that stand side by side, or of the queue."""
        named = f"#{numbers[0]}" if numbers else ""
        named += f"-{numbers[-1]}" if len(numbers) > 1 else ""
        self.tell(f"{played.branch:<10} {named:<6}  {text}")

    async def cleaned_up(self) -> None:
        """Wait until no test branch is left, or the time for it is over."""
        ends = self.clock.monotonic_s() + CLEAN_UP_S
        while self.clock.monotonic_s() < ends:
            left, _ = await proofs.no_branch_left(self.stage.bare)
            if not left:
                return
            await self.clock.sleep(POLL_S)

    async def played(self, each: Story) -> Played:
        """What the service says of one story: records, runs, and the order of leaving."""
        records = {
            role.number: self.records[role.number]
            for role in each.roles
            if role.number in self.records
        }
        order = sorted(records, key=lambda number: str(conclusion_of(records[number]).get("at")))
        ids = {
            str(event["testRunId"])
            for record in records.values()
            for event in events_of(record)
            if event.get("testRunId") is not None
        }
        found = [
            await self.stage.ask("/getMergeQueueTestingDetails", each.branch, testRunId=run)
            for run in ids
        ]
        runs = sorted((Run.of(run) for run in found if run is not None), key=lambda run: run.began)
        return Played(each, records, tuple(runs), tuple(order))

    def claims(self, each: Played) -> tuple[Claim, ...]:
        """What the service says became of a story's pull requests, in the order of leaving."""
        return tuple(self.claim(each, number) for number in each.order)

    def claim(self, each: Played, number: int) -> Claim:
        """What the service says of one pull request."""
        record = each.records[number]
        landed = conclusion_of(record).get("mergedSha")
        run = each.verified(number)
        return Claim(
            number=number,
            state=str(record["state"]),
            head=self.stage.heads[number],
            landed=landed if isinstance(landed, str) else None,
            tested=run.commit if run is not None and record["state"] == "MERGED" else None,
        )


def said(value: JsonValue) -> str:
    """A setting as people write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_known(record: Json) -> bool:
    """Whether the queue has heard of it."""
    return bool(record)


def is_final(record: Json) -> bool:
    """Whether the submission has ended."""
    return record.get("state") in FINAL


def is_being_tested(record: Json) -> bool:
    """Whether its test branch stands and CI has it."""
    return record["state"] == "TESTING" and record.get("testRunId") is not None


def conclusion_of(record: Json) -> Json:
    """The record's conclusion, empty until there is one."""
    found = record.get("conclusion")
    return found if isinstance(found, dict) else {}


def events_of(record: Json) -> list[Json]:
    """The record's timeline, oldest first."""
    found = record.get("timeline")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def sequence_of(event: Json) -> int:
    """The place of an event in its pull request's timeline."""
    return int(str(event["sequence"]))


def together(news: Sequence[tuple[Json, int]]) -> list[tuple[str, list[int]]]:
    """Sentences with the pull requests they are about, oldest first.

    What one run is told of neighbors in the same words is told once.
    """
    told: dict[tuple[JsonValue, str], list[int]] = {}
    for event, number in sorted(news, key=lambda each: (str(each[0]["at"]), sequence_of(each[0]))):
        own = number if event.get("testRunId") is None else event["testRunId"]
        told.setdefault((own, sentence(event)), []).append(number)
    return [(text, sorted(numbers)) for (_, text), numbers in told.items()]


def is_told(event: Json) -> bool:
    """Whether an event belongs into the story; steps that follow from others do not."""
    if event["event"] in SILENT:
        return False
    return (event.get("from"), event.get("to")) not in SILENT_MOVES


def sentence(event: Json) -> str:
    """What happened, in the words of the API; a final state comes first."""
    after, message = event.get("to"), event.get("message") or event["event"]
    return f"{after}: {message}" if after in FINAL else str(message)
