"""Read what the service's API reports about pull requests: submissions, events, test runs."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from bot.demo.proof import Branch, Landing
from bot.demo.seeding import Json
from bot.demo.stage import Stage
from bot.demo.story import Run

FINAL = frozenset({"MERGED", "FAILED", "CANCELLED"})
# Other events say the same: "Testing started" says more than "TESTING".
SILENT = frozenset({"RunBuilt", "RunRetired", "LandingStarted"})
SILENT_MOVES = frozenset(
    {("NOT_READY", "PENDING"), ("PENDING", "TESTING"), ("TESTING", "TESTS_PASSED")}
)
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
        """Return whether another event says the same."""
        return self.event in SILENT or (self.before, self.after) in SILENT_MOVES

    @property
    def sentence(self) -> str:
        """Return the event in the words of the API; a final state comes first."""
        return f"{self.after}: {self.message}" if self.after in FINAL else self.message


class Conclusion(Answer):
    """The end of a submission."""

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
        """Return whether the submission has ended."""
        return self.state in FINAL

    @property
    def is_being_tested(self) -> bool:
        """Return whether CI tests it now."""
        return self.state == "TESTING" and self.test_run_id is not None

    @property
    def was_tested(self) -> bool:
        """Return whether a test run of it has ended."""
        return any(each.event == "RunFinished" for each in self.timeline)


class Hold(Answer):
    """A reason that keeps a queue from working."""

    id: str
    text: str


class PullRequestInRun(Answer):
    """One pull request under test."""

    pr_number: int


class FailedTest(Answer):
    """A test that failed in a run; `excused`: its failure counted as passed."""

    name: str
    excused: bool


class RunDetails(Answer):
    """One test run."""

    test_run_id: str
    kind: str
    tested_pull_requests: list[PullRequestInRun]
    dependent_prs: list[int]
    status: str
    failed_statuses: list[str]
    failed_tests: list[FailedTest]
    test_branch_sha: str | None
    created_at: str
    finished_at: str | None

    @property
    def run(self) -> Run:
        """The run as the story describes runs."""
        numbers = tuple(each.pr_number for each in self.tested_pull_requests)
        return Run(self.kind, numbers, tuple(self.dependent_prs), self.status)


@dataclass(slots=True)
class Watch:
    """The newest submission of each pull request, as the service's API reports it."""

    stage: Stage
    submissions: dict[int, Submission] = field(default_factory=dict)

    async def new_events(self, branch: str, numbers: Iterable[int]) -> list[tuple[Event, int]]:
        """Read the submissions of a branch; return the new events with their pull requests."""
        asked: list[JsonValue] = list(numbers)
        answer = await self.stage.call(
            "/getSubmittedPullRequests", branch, prNumbers=asked, includeTimeline=True
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

    async def runs_of(self, branch: str) -> list[RunDetails]:
        """Return the newest test runs of a branch, oldest first."""
        listed = await self.stage.call("/listMergeQueueTestingResults", branch, take=RUNS_MAX)
        found = listed["testingResults"] if listed else []
        details = [
            await self.stage.call(
                "/getMergeQueueTestingDetails", branch, testRunId=each["testRunId"]
            )
            for each in (found if isinstance(found, list) else [])
            if isinstance(each, dict)
        ]
        runs = [RunDetails.model_validate(each) for each in details if each is not None]
        return sorted(runs, key=lambda run: run.created_at)

    def outcome(
        self,
        branch: str,
        numbers: Iterable[int],
        runs: Iterable[RunDetails],
        beside: frozenset[int] = frozenset(),
    ) -> Branch:
        """Return what the service reports about a branch, for the proof.

        Members of a stack land at the same moment, in the order of their numbers.
        `beside` are the pull requests that landed as the same change on another tree.
        """
        commits = {run.test_run_id: run.test_branch_sha for run in runs}
        ended = [
            (submission.conclusion, submission)
            for number in sorted(numbers)
            if (submission := self.submissions.get(number)) and submission.conclusion
        ]
        landings, failed = [], {}
        for conclusion, submission in sorted(ended, key=lambda each: each[0].at):
            number = submission.pr_number
            if submission.state == "MERGED":
                tested = commits.get(submission.verified_by_test_run or "")
                landings.append(Landing(number, conclusion.merged_sha, tested, number in beside))
            else:
                failed[number] = self.stage.heads[number]
        return Branch(branch, self.stage.starts[branch], landings, failed)


def merge_events(news: Iterable[tuple[Event, int]]) -> list[tuple[str, list[int]]]:
    """Return sentences with the pull requests they are about, oldest first.

    A sentence that one run reports for several pull requests is returned once.
    """
    sentences: dict[tuple[str | int, str], list[int]] = {}
    for event, number in sorted(news, key=lambda each: (each[0].at, each[0].sequence)):
        key = event.test_run_id or number, event.sentence
        sentences.setdefault(key, []).append(number)
    return [(text, sorted(numbers)) for (_, text), numbers in sentences.items()]


def excused_in(runs: Iterable[RunDetails]) -> frozenset[str]:
    """Return the names of the tests whose failures counted as passed."""
    return frozenset(test.name for run in runs for test in run.failed_tests if test.excused)


def named(numbers: Iterable[int]) -> str:
    """Return pull requests for people: `#3`, `#3-5` or `#3,5`, empty for none."""
    listed = list(numbers)
    first, last = (listed[0], listed[-1]) if listed else (0, 0)
    if len(listed) > 1 and listed == list(range(first, last + 1)):
        return f"#{first}-{last}"
    return "#" + ",".join(map(str, listed)) if listed else ""
