"""The play: comments as people write them, and what the service's API reports about them."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from bot.demo import proof, story
from bot.demo.proof import Branch, Landing
from bot.demo.stage import Json, Stage
from bot.demo.story import Change, Run, Story
from service.clock import Clock

FINAL = frozenset({"MERGED", "FAILED", "CANCELLED"})
# Other events say the same: "Testing started" says more than "TESTING".
SILENT = frozenset({"RunBuilt", "RunRetired", "LandingStarted"})
SILENT_MOVES = frozenset(
    {("NOT_READY", "PENDING"), ("PENDING", "TESTING"), ("TESTING", "TESTS_PASSED")}
)
# With draft pull requests each test branch would be tested twice, once as a push.
PUSH_ONLY: Json = {"createPrsForTestingBranches": False}
POLL_S = 0.25
# How long test branches may take to be deleted after the last landing.
CLEAN_UP_S = 20.0
RUNS_MAX = 100


class Answer(BaseModel):
    """A part of an answer of the API; members that the demo does not need are left out."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True)

    def shown(self) -> Json:
        """Return it with the API's names; a timeline is left out."""
        return self.model_dump(mode="json", by_alias=True, exclude={"timeline"})


class Event(Answer):
    """An event in the timeline of a pull request."""

    sequence: int
    at: str
    event: str
    message: str
    test_run_id: str | None
    before: str | None = Field(alias="from")
    after: str | None = Field(alias="to")

    @property
    def is_silent(self) -> bool:
        """Whether another event says the same."""
        return self.event in SILENT or (self.before, self.after) in SILENT_MOVES

    @property
    def sentence(self) -> str:
        """Return the event in the words of the API; a final state comes first."""
        return f"{self.after}: {self.message}" if self.after in FINAL else self.message


class Conclusion(Answer):
    """How a submission ended."""

    at: str
    merged_sha: str | None
    failed_statuses: list[str]


class Submission(Answer):
    """The newest submission of a pull request."""

    pr_number: int
    state: str
    reason: str
    test_run_id: str | None
    verified_by_test_run: str | None
    conclusion: Conclusion | None
    timeline: list[Event]

    @property
    def is_final(self) -> bool:
        """Whether the submission has ended."""
        return self.state in FINAL

    @property
    def is_being_tested(self) -> bool:
        """Whether CI tests it now."""
        return self.state == "TESTING" and self.test_run_id is not None


class PullRequestInRun(Answer):
    """One pull request under test."""

    pr_number: int


class RunDetails(Answer):
    """One test run."""

    test_run_id: str
    kind: str
    tested_pull_requests: list[PullRequestInRun]
    dependent_prs: list[int]
    status: str
    failed_statuses: list[str]
    test_branch_sha: str | None
    created_at: str
    finished_at: str | None

    @property
    def run(self) -> Run:
        """The run as the story describes runs."""
        numbers = tuple(each.pr_number for each in self.tested_pull_requests)
        return Run(self.kind, numbers, tuple(self.dependent_prs), self.status)


@dataclass(slots=True)
class Play:
    """A play in progress: the newest submission of each pull request that was commented on."""

    stage: Stage
    clock: Clock
    tell: Callable[[str], None]
    submissions: dict[int, Submission] = field(default_factory=dict)
    explanation: str = ""

    async def play(self) -> None:
        """Play all stories at the same time, until each submission has ended.

        Raises a group of what broke a story off.
        """
        async with asyncio.TaskGroup() as playing:
            for each in (self.main(), self.release(), self.lanes(), self.optimistic()):
                playing.create_task(each)
        ends = self.clock.monotonic_s() + CLEAN_UP_S
        while await asyncio.to_thread(proof.left_branches, self.stage.bare):
            if self.clock.monotonic_s() > ends:
                return
            await self.clock.sleep(POLL_S)

    async def main(self) -> None:
        """Submit five in a row; then a slow one, and an urgent one while it is tested."""
        await self.submit(story.MAIN, story.OPENING)
        await self.until(story.MAIN, story.OPENING, lambda each: each.is_final)
        await self.submit(story.MAIN, [story.SLOW])
        await self.until(story.MAIN, [story.SLOW], lambda each: each.is_being_tested)
        await self.submit(story.MAIN, [story.URGENT])
        await self.until(story.MAIN, [story.SLOW, story.URGENT], lambda each: each.is_final)

    async def release(self) -> None:
        """Submit four that make one batch, and ask why the culprit did not land."""
        await self.make_queue(story.RELEASE)
        await self.submit_all(story.RELEASE)
        number = story.CULPRIT.number
        answer = await self.stage.call(
            "/explainPullRequest", story.RELEASE.branch, pr={"number": number}
        )
        self.explanation = str(answer["summary"]) if answer else ""
        self.say(story.RELEASE, [number], f"headgate explain {number}: {self.explanation}")

    async def lanes(self) -> None:
        """Submit two pull requests with different impacted targets."""
        await self.make_queue(story.LANES)
        for change in story.LANES.changes:
            self.say(story.LANES, [change.number], f"CI says it touches {change.targets[0]}")
            pr: Json = {"number": change.number, "sha": self.stage.heads[change.number]}
            await self.stage.call(
                "/setImpactedTargets",
                story.LANES.branch,
                pr=pr,
                impactedTargets=list(change.targets),
            )
        await self.submit_all(story.LANES)

    async def optimistic(self) -> None:
        """Submit a flaky one, and a good one on top of it."""
        await self.make_queue(story.OPTIMISTIC)
        await self.submit_all(story.OPTIMISTIC)

    async def make_queue(self, played: Story) -> None:
        """Make the story's queue over the API, with settings of its own."""
        settings = dict(played.settings or {})
        words = (f"{name} {str(value).replace('True', 'true')}" for name, value in settings.items())
        self.say(played, [], f"queue made: {', '.join(words)}")
        await self.stage.call("/createQueue", played.branch, **PUSH_ONLY, **settings)

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
            await self.stage.comment(change.author, change.number, change.command)
            await self.until(played, [change], lambda _: True)

    async def until(
        self, played: Story, changes: Iterable[Change], holds: Callable[[Submission], bool]
    ) -> None:
        """Print the events of a story until something holds of all these pull requests."""
        numbers = [change.number for change in changes]
        while not all(n in self.submissions and holds(self.submissions[n]) for n in numbers):
            await self.clock.sleep(POLL_S)
            for text, about in merge_events(await self.new_events(played)):
                self.say(played, about, text)

    async def new_events(self, played: Story) -> list[tuple[Event, int]]:
        """Read the submissions of a story; return the new events with their pull requests."""
        numbers: list[JsonValue] = [change.number for change in played.changes]
        answer = await self.stage.call(
            "/getSubmittedPullRequests", played.branch, prNumbers=numbers, includeTimeline=True
        )
        found = answer["pullRequests"] if answer else []
        news = []
        for each in found if isinstance(found, list) else []:
            newest = Submission.model_validate(each)
            before = self.submissions.get(newest.pr_number)
            seen = before.timeline[-1].sequence if before and before.timeline else 0
            self.submissions[newest.pr_number] = newest
            news += [
                (event, newest.pr_number)
                for event in newest.timeline
                if event.sequence > seen and not event.is_silent
            ]
        return news

    def say(self, played: Story, numbers: Sequence[int], text: str) -> None:
        """Print a sentence about neighbors in the queue, or about the queue."""
        named = f"#{numbers[0]}" if numbers else ""
        named += f"-{numbers[-1]}" if len(numbers) > 1 else ""
        self.tell(f"{played.branch:<10} {named:<6}  {text}")

    async def runs_of(self, played: Story) -> list[RunDetails]:
        """Return all test runs of a story, oldest first."""
        listed = await self.stage.call(
            "/listMergeQueueTestingResults", played.branch, take=RUNS_MAX
        )
        found = listed["testingResults"] if listed else []
        details = [
            await self.stage.call(
                "/getMergeQueueTestingDetails", played.branch, testRunId=each["testRunId"]
            )
            for each in (found if isinstance(found, list) else [])
            if isinstance(each, dict)
        ]
        runs = [RunDetails.model_validate(each) for each in details if each is not None]
        return sorted(runs, key=lambda run: run.created_at)

    def outcome(self, played: Story, runs: Iterable[RunDetails]) -> Branch:
        """Return what the service reports about one branch, for the proof."""
        commits = {run.test_run_id: run.test_branch_sha for run in runs}
        ended = [
            (submission.conclusion, submission)
            for change in played.changes
            if (submission := self.submissions.get(change.number)) and submission.conclusion
        ]
        landings, failed = [], {}
        for conclusion, submission in sorted(ended, key=lambda each: each[0].at):
            number = submission.pr_number
            if submission.state == "MERGED":
                tested = commits.get(submission.verified_by_test_run or "")
                is_beside = story.BY_NUMBER[number].is_beside
                landings.append(Landing(number, conclusion.merged_sha, tested, is_beside))
            else:
                failed[number] = self.stage.heads[number]
        return Branch(played.branch, self.stage.starts[played.branch], landings, failed)


def merge_events(news: Iterable[tuple[Event, int]]) -> list[tuple[str, list[int]]]:
    """Return sentences with the pull requests they are about, oldest first.

    A sentence that one run reports for several pull requests is returned once.
    """
    sentences: dict[tuple[str | int, str], list[int]] = {}
    for event, number in sorted(news, key=lambda each: (each[0].at, each[0].sequence)):
        key = event.test_run_id or number, event.sentence
        sentences.setdefault(key, []).append(number)
    return [(text, sorted(numbers)) for (_, text), numbers in sentences.items()]


def faults_of(
    played: Story,
    submissions: dict[int, Submission],
    runs: Iterable[RunDetails],
    landed: Sequence[int],
) -> list[str]:
    """Return a sentence for each expectation of the story that was not met."""
    faults = []
    for change in played.changes:
        found = submissions.get(change.number)
        outcome = f"{found.state} ({found.reason})" if found else "never queued"
        if change.expected and outcome != f"{change.expected} ({change.reason})":
            expected = f"{change.expected} ({change.reason})"
            faults.append(f"#{change.number} is {outcome}, expected {expected}")
    if tuple(landed) != played.lands:
        faults.append(f"{played.branch}: {list(landed)} landed, expected {list(played.lands)}")
    occurred = {each.run for each in runs}
    faults += [f"{played.branch}: no {run}" for run in played.runs if run not in occurred]
    return faults
