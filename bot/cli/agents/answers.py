"""Answers of the tools for agents. Names follow the command line's `--json`, in snake case."""

from typing import Literal

from pydantic import BaseModel, Field
from pydantic.alias_generators import to_snake

from bot.cli import output
from bot.uploader.transport import Json

Outcome = Literal["merged", "failed", "removed", "waiting"]

NEXT_STEPS: dict[Outcome, str] = {
    "merged": "Nothing: it is on the target branch.",
    "failed": "Fix what failed, push, and call land_pull_request again.",
    "removed": "Call land_pull_request to submit it again, if it should still land.",
    "waiting": "Call wait_for_pull_request. explain_pull_request says what it waits for.",
}
OUTCOMES: dict[str, Outcome] = {"MERGED": "merged", "FAILED": "failed", "CANCELLED": "removed"}


class Reporter(BaseModel):
    """What reported a check."""

    kind: str = Field(description="check_run or commit_status.")
    app: str | None = Field(description="The App's id.")
    check_run: str
    attempt: int | None


class RequiredCheck(BaseModel):
    """A required check and the report that counts for it."""

    name: str
    state: str = Field(description="passed, reused, excused, skipped, optional, failed or open.")
    text: str = Field(description="The same as a sentence, with the reason.")
    place: str = Field(description="head of the pull request, or test_branch.")
    run: str = Field(description="The test run that has the report.")
    sha: str | None
    url: str | None
    reporter: Reporter | None
    because: str | None = Field(description="Why it was skipped, excused or optional.")
    tests: list[str] = Field(description="Tests whose failures are excused.")
    proof: str | None = Field(description="What proves the report that excuses it.")


class FailedCheck(BaseModel):
    """A required check that failed."""

    name: str
    url: str | None = Field(description="Its log.")
    because: str | None = Field(description="The failed job, because of which it was skipped.")


class FailedTest(BaseModel):
    """A test that failed."""

    id: str
    name: str
    file: str | None
    line: int | None
    message: str = Field(description="First line of what failed.")
    trace: list[str] = Field(default=[], description="The first lines of its trace.")
    known_as: str = Field(
        description="new, seen, flaky, broken or excused: what it was when the run began."
    )
    quarantined: bool = Field(description="Whether its failure counts as passed.")
    new_failure_text: bool = Field(description="Whether it failed in a way that is new.")
    fails_on: str | None = Field(
        default=None, description="The target branch, if the test fails there as well."
    )
    log: str | None = Field(description="The CI run that reported it.")
    page: str | None = Field(description="Page of the test, with its history and traces.")


class Failures(BaseModel):
    """What failed, and how sure it is that the pull request is at fault."""

    text: str = Field(description="How the cause was found.")
    checks: list[FailedCheck]
    tests: list[FailedTest] = Field(description="The first 5, new failures first.")
    failed_tests: int = Field(description="How many failed and are not excused.")
    excused_tests: int

    @classmethod
    def of(cls, shown: object) -> "Failures | None":
        """Return the failures that an explanation of the API shows; None for none."""
        return cls.model_validate(snake_case(shown)) if isinstance(shown, dict) else None


class PullRequestState(BaseModel):
    """A pull request in its queue."""

    repository: str
    number: int
    title: str
    head: str = Field(description="The commit that was submitted.")
    target_branch: str
    outcome: Outcome = Field(description="waiting: it is still in the queue.")
    state: str = Field(description="The state's name in the API, as TESTING.")
    reason: str = Field(description="Code of the reason for the state.")
    message: str = Field(description="The reason in one sentence.")
    who_must_act: str = Field(description="author, maintainer, operator or nobody.")
    retryable: bool = Field(
        description="Whether the same commit may pass if it is submitted again."
    )
    position: int | None = Field(description="Place in the queue, from 1; null outside the line.")
    queue_length: int | None
    expected_by: str | None = Field(description="When it will probably have landed, at the latest.")
    merged_as: str | None = Field(description="The commit on the target branch.")
    failed_checks: list[str]
    failures: Failures | None = Field(description="What failed, once it has failed.")
    required_checks: list[RequiredCheck] = Field(
        description="How each required check counts, once it passed or has ended."
    )
    page: str | None = Field(description="Address of the page for people.")
    next_step: str = Field(description="What to do now.")

    @classmethod
    def of(cls, repository: str, branch: str, record: Json) -> "PullRequestState":
        """Return the state that a record of the API shows."""
        outcome = OUTCOMES.get(output.state_of(record), "waiting")
        conclusion, eta = members(record["conclusion"]), members(record["eta"])
        return cls(
            repository=repository,
            number=whole(record["prNumber"]) or 0,
            title=output.plain(record["prTitle"]),
            head=str(record["prSha"]),
            target_branch=branch,
            outcome=outcome,
            state=output.state_of(record),
            reason=str(record["reason"]),
            message=output.plain(record["reasonMessage"]),
            who_must_act=str(record["whoMustAct"]).lower(),
            retryable=bool(record["retryable"]),
            position=whole(record["position"]),
            queue_length=whole(record["queueLength"]),
            expected_by=_text_or_none(eta.get("latest")),
            merged_as=_text_or_none(conclusion.get("mergedSha")),
            failed_checks=texts(conclusion.get("failedStatuses")),
            failures=Failures.of(members(record.get("explanation")).get("failures")),
            required_checks=checks_of(record.get("requiredChecks")),
            page=_text_or_none(members(record["links"]).get("page")),
            next_step=NEXT_STEPS[outcome],
        )


class Condition(BaseModel):
    """One thing that must hold before the pull request lands."""

    code: str
    met: bool
    text: str
    who_must_act: str = Field(description="author, maintainer, operator or nobody.")
    since: str | None
    pull_requests: list[int] = Field(description="Pull requests that it depends on.")

    @classmethod
    def of(cls, shown: Json) -> "Condition":
        """Return a condition as the API shows it."""
        return cls(
            code=str(shown["code"]),
            met=bool(shown["met"]),
            text=str(shown["text"]),
            who_must_act=str(shown["whoMustAct"]).lower(),
            since=_text_or_none(shown["since"]),
            pull_requests=numbers(shown["pullRequests"]),
        )


class Explanation(BaseModel):
    """Why a pull request is not merged yet, and what happens next."""

    number: int
    state: str
    summary: str
    conditions: list[Condition]
    suspicion: str | None = Field(description="The chance that it is broken, with its evidence.")
    failures: Failures | None = Field(description="The checks and tests that failed.")
    required_checks: list[RequiredCheck]
    next: str | None = Field(description="What happens next, or has to be done.")
    page: str | None = Field(description="Address of the page for people.")
    ahead: list[int] = Field(description="Pull requests ahead of it in the queue.")
    behind: list[int]
    expected_by: str | None
    expected_unknown_because: str | None

    @classmethod
    def of(cls, answer: Json) -> "Explanation":
        """Return an explanation as the API shows it."""
        return cls(
            number=whole(answer["prNumber"]) or 0,
            state=output.state_of(answer),
            summary=str(answer["summary"]),
            conditions=[Condition.of(each) for each in output.objects(answer["conditions"])],
            suspicion=_text_or_none(members(answer.get("suspicion")).get("text")),
            failures=Failures.of(answer.get("failures")),
            required_checks=checks_of(answer.get("requiredChecks")),
            page=_text_or_none(answer.get("page")),
            next=_text_or_none(members(answer["next"]).get("what")),
            ahead=numbers(answer["ahead"]),
            behind=numbers(answer["behind"]),
            expected_by=_text_or_none(members(answer["eta"]).get("latest")),
            expected_unknown_because=_text_or_none(answer["etaUnknownReason"]),
        )


class WhoMustAct(BaseModel):
    """Who must act next, and what that person must do."""

    number: int
    who: str = Field(description="author, maintainer, operator or nobody.")
    summary: str
    open_conditions: list[Condition] = Field(description="What is missing, most important first.")
    next: str | None = Field(description="What happens next.")

    @classmethod
    def of(cls, explanation: Explanation, record: Json) -> "WhoMustAct":
        """Return who must act; conditions that wait for people come first."""
        unmet = [each for each in explanation.conditions if not each.met]
        return cls(
            number=explanation.number,
            who=str(record["whoMustAct"]).lower(),
            summary=explanation.summary,
            open_conditions=sorted(unmet, key=lambda each: each.who_must_act == "nobody"),
            next=explanation.next,
        )


class Preview(BaseModel):
    """The effect of a change that was not made."""

    number: int
    change: str
    runs_interrupted: int = Field(description="Test runs in progress that would be stopped.")
    restarted: list[int] = Field(description="Other pull requests that would be tested again.")
    moved_up: list[int]
    moved_back: list[int]

    @classmethod
    def of(cls, change: str, answer: Json) -> "Preview":
        """Return a preview as the API shows it."""
        runs = answer["runsInterrupted"]
        return cls(
            number=whole(answer["prNumber"]) or 0,
            change=change,
            runs_interrupted=len(runs) if isinstance(runs, list) else 0,
            restarted=numbers(answer["pullRequestsRestarted"]),
            moved_up=numbers(answer["pullRequestsMovedUp"]),
            moved_back=numbers(answer.get("pullRequestsMovedBack")),
        )


class TestHealth(BaseModel):
    """A test and its health."""

    __test__ = False

    id: str
    name: str
    file: str | None
    variant: str
    status: str = Field(description="healthy, flaky or broken.")
    because: str = Field(description="The reason of the status, with its numbers.")
    failure_rate_7d: float = Field(description="Share of runs in 7 days that failed, 0 to 1.")
    last_failed_at: str | None
    pull_requests_hit_7d: int
    ci_seconds_lost_7d: int = Field(description="CI time that its failures lost in 7 days.")
    owners: list[str]
    quarantined: bool = Field(description="Whether its failures count as passed.")
    page: str

    @classmethod
    def of(cls, test: Json) -> "TestHealth":
        """Return a test as the API lists it."""
        status = members(test["status"])
        return cls(
            id=str(test["id"]),
            name=output.plain(test["name"]),
            file=_text_or_none(test.get("file_path")),
            variant=str(test["variant"]),
            status=str(status.get("value")).lower(),
            because=str(status.get("reason")),
            failure_rate_7d=float(str(test["failure_rate_last_7d"])),
            last_failed_at=_text_or_none(test["last_failed_at"]),
            pull_requests_hit_7d=whole(test["pull_requests_impacted_last_7d"]) or 0,
            ci_seconds_lost_7d=whole(test["ci_seconds_lost_last_7d"]) or 0,
            owners=texts(test["codeowners"]),
            quarantined=bool(test["quarantined"]),
            page=str(test["html_url"]),
        )


class TestList(BaseModel):
    """Tests, those first that hit most pull requests."""

    __test__ = False

    total: int = Field(description="How many there are; the list may have fewer.")
    tests: list[TestHealth]


class QueueSummary(BaseModel):
    """A queue among others."""

    repository: str
    branch: str
    state: str
    mode: str
    queued: int = Field(description="Pull requests that are ready.")
    testing: int
    not_ready: int

    @classmethod
    def of(cls, queue: Json) -> "QueueSummary":
        """Return a queue as the API lists it."""
        repo = members(queue["repo"])
        return cls(
            repository=f"{repo.get('host')}/{repo.get('owner')}/{repo.get('name')}",
            branch=str(queue["branch"]),
            state=output.state_of(queue),
            mode=str(queue["mode"]).upper(),
            queued=whole(queue["depth"]) or 0,
            testing=whole(queue["testing"]) or 0,
            not_ready=whole(queue["notReady"]) or 0,
        )


class QueueList(BaseModel):
    """The queues that the token sees."""

    queues: list[QueueSummary]


def checks_of(value: object) -> list[RequiredCheck]:
    """Return the required checks of an answer of the API."""
    return [RequiredCheck.model_validate(snake_case(each)) for each in output.objects(value)]


def snake_case(value: object) -> object:
    """Return a value of the API with the names of its fields in snake case."""
    if isinstance(value, list):
        return [snake_case(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {to_snake(str(name)): snake_case(each) for name, each in value.items()}


def members(value: object) -> Json:
    """Return an object's members; empty for null."""
    return value if isinstance(value, dict) else {}


def whole(value: object) -> int | None:
    """Return a whole number; None for null."""
    return None if value is None else int(str(value))


def _text_or_none(value: object) -> str | None:
    """Return a text; None for null."""
    return None if value is None else str(value)


def texts(value: object) -> list[str]:
    """Return the texts of an array."""
    return [str(each) for each in value] if isinstance(value, list) else []


def numbers(value: object) -> list[int]:
    """Return the numbers of an array."""
    return [int(str(each)) for each in value] if isinstance(value, list) else []
