"""The play itself: comments as people write them, and what the service's API then shows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pydantic import JsonValue

from bot.demo import proofs, story
from bot.demo.proofs import Claim
from bot.demo.stage import Json, Stage
from bot.demo.story import Role
from service.clock import Clock

FINAL = frozenset({"MERGED", "FAILED", "CANCELLED"})
# Said by the events around them: "Testing started" says more than "TESTING".
SILENT = frozenset({"RunBuilt", "RunRetired", "LandingStarted"})
SILENT_MOVES = frozenset(
    {("NOT_READY", "PENDING"), ("PENDING", "TESTING"), ("TESTING", "TESTS_PASSED")}
)
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
        """The whole story, until each of its pull requests has left the queue."""
        for role in story.OPENING:
            await self.comment(role)
            # The order in the queue is the order of arrival, so the next one waits for it.
            await self.until([role], is_known)
        await self.until(story.OPENING, is_final)
        await self.comment(story.SLOW)
        await self.until([story.SLOW], is_being_tested)
        await self.comment(story.URGENT)
        await self.until([story.SLOW, story.URGENT], is_final)
        await self.cleaned_up()

    async def comment(self, role: Role) -> None:
        """Comment on a pull request as the person who does it."""
        self.tell(f"{story.SLUG} #{role.number}  {role.said_by} comments {role.command}")
        await self.stage.act(role.said_by, "comment", number=role.number, body=role.command)
        self.told[role.number] = 0

    async def until(self, roles: Iterable[Role], holds: Callable[[Json], bool]) -> None:
        """Watch and tell until something holds of all these pull requests."""
        waiting = [role.number for role in roles]
        while not all(n in self.records and holds(self.records[n]) for n in waiting):
            await self.clock.sleep(POLL_S)
            for number in self.told:
                await self.look(number)

    async def look(self, number: int) -> None:
        """Read a pull request's record and tell what is new of it."""
        record = await self.stage.ask(
            "/getSubmittedPullRequest", pr={"number": number}, includeTimeline=True
        )
        if record is None:
            return
        self.records[number] = record
        events = record["timeline"]
        for event in events if isinstance(events, list) else []:
            if isinstance(event, dict) and int(str(event["sequence"])) > self.told[number]:
                self.told[number] = int(str(event["sequence"]))
                if is_told(event):
                    self.tell(f"{story.SLUG} #{number}  {sentence(event)}")

    async def cleaned_up(self) -> None:
        """Wait until no test branch is left, or the time for it is over."""
        ends = self.clock.monotonic_s() + CLEAN_UP_S
        while self.clock.monotonic_s() < ends:
            left, _ = await proofs.no_branch_left(self.stage.bare)
            if not left:
                return
            await self.clock.sleep(POLL_S)

    async def claims(self) -> tuple[Claim, ...]:
        """What the service says became of each, in the order in which they left the queue."""
        ended = sorted(self.records.values(), key=lambda each: str(conclusion_of(each).get("at")))
        return tuple([await self.claim(record) for record in ended])

    async def claim(self, record: Json) -> Claim:
        """What the service says of one pull request."""
        number, run = int(str(record["prNumber"])), record.get("verifiedByTestRun")
        tested = None
        if record["state"] == "MERGED" and isinstance(run, str):
            details = await self.stage.ask("/getMergeQueueTestingDetails", testRunId=run)
            tested = details and str(details["testBranchSha"])
        landed = conclusion_of(record).get("mergedSha")
        return Claim(
            number=number,
            state=str(record["state"]),
            head=self.stage.heads[number],
            landed=landed if isinstance(landed, str) else None,
            tested=tested or None,
        )


def is_known(record: Json) -> bool:
    """Whether the queue has heard of it."""
    return bool(record)


def is_final(record: Json) -> bool:
    """Whether the submission has ended."""
    return record["state"] in FINAL


def is_being_tested(record: Json) -> bool:
    """Whether its test branch stands and CI has it."""
    return record["state"] == "TESTING" and record.get("testRunId") is not None


def conclusion_of(record: Json) -> dict[str, JsonValue]:
    """The record's conclusion, empty until there is one."""
    found = record.get("conclusion")
    return found if isinstance(found, dict) else {}


def is_told(event: dict[str, JsonValue]) -> bool:
    """Whether an event belongs into the story; steps that follow from others do not."""
    if event["event"] in SILENT:
        return False
    return (event.get("from"), event.get("to")) not in SILENT_MOVES


def sentence(event: dict[str, JsonValue]) -> str:
    """What happened, in the words of the API; a final state comes first."""
    after, message = event.get("to"), event.get("message") or event["event"]
    return f"{after}: {message}" if after in FINAL else str(message)
