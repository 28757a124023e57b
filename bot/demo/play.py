"""The play: comments as people write them, and what the service's API reports about them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.demo import proof, story, watching
from bot.demo.proof import Branch
from bot.demo.seeding import Json
from bot.demo.stage import PUSH_ONLY
from bot.demo.story import Change, Story
from bot.demo.watching import RunDetails, Submission, Watch
from service.clock import Clock

POLL_S = 0.25
# How long test branches may take to be deleted after the last landing: GitHub's limits on writes
# may delay that by a minute or two.
CLEAN_UP_S = 180.0


@dataclass(slots=True)
class Play:
    """A play in progress."""

    watch: Watch
    clock: Clock
    tell: Callable[[str], None]
    explanation: str = ""

    async def play(self) -> None:
        """Play all stories at the same time, until each submission has ended.

        Raises a group of what broke a story off.
        """
        stories = (
            *(self.main(), self.release(), self.lanes(), self.optimistic(), self.weather()),
            self.agents(),
        )
        async with asyncio.TaskGroup() as playing:
            for each in stories:
                playing.create_task(each)
        await branches_deleted(self.watch, self.clock)

    async def main(self) -> None:
        """Submit five in a row; then a slow one, and an urgent one while it is tested.

        The one that fails may still be tested once more meanwhile.
        """
        await self.submit(story.MAIN, story.OPENING)
        self.watch.stage.show_sign(story.OPENING_QUEUED)
        good = [each for each in story.OPENING if each.reason != story.BROKEN[1]]
        await self.until(story.MAIN, good, lambda each: each.is_final)
        await self.submit(story.MAIN, [story.SLOW])
        await self.until(story.MAIN, [story.SLOW], lambda each: each.is_being_tested)
        await self.submit(story.MAIN, [story.URGENT])
        self.watch.stage.show_sign(story.HOTFIX_QUEUED)
        await self.until(story.MAIN, story.MAIN.changes, lambda each: each.is_final)

    async def release(self) -> None:
        """Submit four that make one batch, and ask why the culprit did not land."""
        await self.make_queue(story.RELEASE)
        await self.submit_all(story.RELEASE)
        number = story.CULPRIT.number
        answer = await self.watch.stage.call(
            "/explainPullRequest", story.RELEASE.branch, pr={"number": number}
        )
        self.explanation = str(answer["summary"]) if answer else ""
        self.say(story.RELEASE, [number], f"headgate explain {number}: {self.explanation}")

    async def lanes(self) -> None:
        """Submit two pull requests with different impacted targets."""
        await self.make_queue(story.LANES)
        for change in story.LANES.changes:
            self.say(story.LANES, [change.number], f"CI says it touches {change.targets[0]}")
            pr: Json = {"number": change.number, "sha": self.watch.stage.heads[change.number]}
            await self.watch.stage.call(
                "/setImpactedTargets",
                story.LANES.branch,
                pr=pr,
                impactedTargets=list(change.targets),
            )
        await self.submit(story.LANES, story.LANES.changes)
        await self.until(story.LANES, [story.WEB_COLORS], lambda each: each.is_final)
        self.watch.stage.show_sign(story.WEB_LANDED)
        await self.until(story.LANES, story.LANES.changes, lambda each: each.is_final)

    async def optimistic(self) -> None:
        """Submit a flaky one, and a good one on top of it."""
        await self.make_queue(story.OPTIMISTIC)
        await self.submit(story.OPTIMISTIC, story.OPTIMISTIC.changes)
        self.watch.stage.show_sign(story.ARCHIVE_QUEUED)
        first = [story.CACHE_PRICES]
        await self.until(story.OPTIMISTIC, first, lambda each: each.was_tested or each.is_final)
        self.watch.stage.show_sign(story.CACHE_FAILED)
        await self.until(story.OPTIMISTIC, story.OPTIMISTIC.changes, lambda each: each.is_final)

    async def weather(self) -> None:
        """Let the reports of the branch show a flaky test; submit one while it fails."""
        await self.make_queue(story.WEATHER)
        stage = self.watch.stage
        self.say(story.WEATHER, [], "CI tests the branch twice: once in the rain, once not")
        await stage.learn_weather(story.WEATHER.branch)
        self.say(story.WEATHER, [], "test_picnic is flaky, by CI's reports, and quarantined")
        stage.set_rain(is_on=True)
        await self.submit_all(story.WEATHER)

    async def agents(self) -> None:
        """Land a pull request; submit one that undoes it, ask why it waits, and take it out."""
        await self.make_queue(story.AGENTS)
        await self.submit(story.AGENTS, [story.REFUNDING])
        await self.until(story.AGENTS, [story.REFUNDING], lambda each: each.is_final)
        await self.submit(story.AGENTS, [story.UNDOING])
        number = story.UNDOING.number
        await self.until(story.AGENTS, [story.UNDOING], lambda each: each.state == "NOT_READY")
        answer = await self.watch.stage.call(
            "/explainPullRequest", story.AGENTS.branch, pr={"number": number}
        )
        summary = str(answer["summary"]) if answer else ""
        self.say(story.AGENTS, [number], f"headgate explain {number}: {summary}")
        self.say(story.AGENTS, [number], f"{story.UNDOING.author} comments /merge cancel")
        await self.watch.stage.comment(story.UNDOING.author, number, "/merge cancel")
        await self.until(story.AGENTS, story.AGENTS.changes, lambda each: each.is_final)

    async def make_queue(self, played: Story) -> None:
        """Make the story's queue over the API, with settings of its own."""
        settings = dict(played.settings or {})
        words = (f"{name} {str(value).replace('True', 'true')}" for name, value in settings.items())
        self.say(played, [], f"queue made: {', '.join(words)}")
        await self.watch.stage.call("/createQueue", played.branch, **PUSH_ONLY, **settings)

    async def submit_all(self, played: Story) -> None:
        """Submit all pull requests of a story, and wait until they have left the queue."""
        await self.submit(played, played.changes)
        await self.until(played, played.changes, lambda each: each.is_final)

    async def submit(self, played: Story, changes: Iterable[Change]) -> None:
        """Comment on each; the queue is in the order of arrival, so each waits for the one before.

        The wait ends when the service has the submission.
        """
        for change in changes:
            self.say(played, [change.number], f"{change.author} comments {change.command}")
            await self.watch.stage.comment(change.author, change.number, change.command)
            await self.until(played, [change], lambda _: True)

    async def until(
        self, played: Story, changes: Iterable[Change], holds: Callable[[Submission], bool]
    ) -> None:
        """Print the events of a story until something holds of all these pull requests."""
        numbers = [change.number for change in changes]
        every = [change.number for change in played.changes]
        found = self.watch.submissions
        while not all(n in found and holds(found[n]) for n in numbers):
            await self.clock.sleep(POLL_S)
            news = await self.watch.new_events(played.branch, every)
            for text, about in watching.merge_events(news):
                self.say(played, about, text)

    def say(self, played: Story, numbers: Sequence[int], text: str) -> None:
        """Print a sentence about neighbors in the queue, or about the queue."""
        self.tell(f"{played.branch:<10} {watching.named(numbers):<6}  {text}")


async def branches_deleted(watch: Watch, clock: Clock) -> None:
    """Wait until no test branch is left, for CLEAN_UP_S at most."""
    ends = clock.monotonic_s() + CLEAN_UP_S
    while await asyncio.to_thread(proof.left_branches, watch.stage.bare):
        if clock.monotonic_s() > ends:
            return
        await clock.sleep(POLL_S)


def outcome_of(watch: Watch, played: Story, runs: Iterable[RunDetails]) -> Branch:
    """Return what the service reports about the branch of a story, for the proof."""
    numbers = [change.number for change in played.changes]
    beside = frozenset(change.number for change in played.changes if change.is_beside)
    return watch.outcome(played.branch, numbers, runs, beside)


def faults_of(
    played: Story,
    submissions: Mapping[int, Submission],
    runs: Sequence[RunDetails],
    landed: Sequence[int],
) -> list[str]:
    """Return a sentence for each expectation of the story that was not met."""
    faults = []
    for change in played.changes:
        found = submissions.get(change.number)
        outcome = f"{found.state} ({found.reason})" if found else "never queued"
        if outcome != f"{change.expected} ({change.reason})":
            expected = f"{change.expected} ({change.reason})"
            faults.append(f"#{change.number} is {outcome}, expected {expected}")
    if tuple(landed) != played.lands:
        faults.append(f"{played.branch}: {list(landed)} landed, expected {list(played.lands)}")
    occurred = {each.run for each in runs}
    faults += [f"{played.branch}: no {run}" for run in played.runs if run not in occurred]
    unexcused = set(played.excused) - watching.excused_in(runs)
    return faults + [f"{played.branch}: {name} was not excused" for name in sorted(unexcused)]
