"""Answers of the tools for agents. Names follow the command line's `--json`, in snake case.

Each is read from the API's answer. A field is there under its own name in camel case, or at the
path that it names (`At`); it is null where a part of the path is null.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field, model_validator
from pydantic.alias_generators import to_camel

from bot.cli import output, pull_requests
from bot.uploader.transport import Json

Outcome = Literal["merged", "failed", "removed", "waiting"]


def _outcome_of(state: object) -> Outcome:
    return pull_requests.OUTCOMES.get(str(state).upper(), "waiting")


OR_EMPTY = BeforeValidator(lambda value: value or [])


Upper = Annotated[str, BeforeValidator(lambda value: str(value).upper())]
Lower = Annotated[str, BeforeValidator(lambda value: str(value).lower())]
Plain = Annotated[str, BeforeValidator(output.plain)]
Slug = Annotated[str, BeforeValidator("{0[host]}/{0[owner]}/{0[name]}".format)]
Numbers = Annotated[list[int], OR_EMPTY]
Texts = Annotated[list[str], OR_EMPTY]
Acting = Annotated[Lower, Field(description="author, maintainer, operator or nobody.")]


class At(str):
    """The path of a field in the API's answer, as `eta.latest`."""

    __slots__ = ()


class Answer(BaseModel):
    """Base of answers."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, answer: object) -> object:
        if not isinstance(answer, dict):
            return answer
        read: Json = {}
        for name, field in cls.model_fields.items():
            own = name if name in answer else to_camel(name)
            path = next((each for each in field.metadata if isinstance(each, At)), own)
            found: object = answer
            for step in path.split("."):
                found = found.get(step) if isinstance(found, dict) else None
            read[name] = found
        return read


class Reporter(Answer):
    """What reported a check."""

    kind: str = Field(description="check_run or commit_status.")
    app: str | None = Field(description="The App's id.")
    check_run: str
    attempt: int | None


class FailedJob(Answer):
    """A job that had failed when a failed check began."""

    name: str
    url: str


FailedBefore = Annotated[
    list[FailedJob],
    OR_EMPTY,
    Field(description="Jobs of its check suite that had failed when it began."),
]


class RequiredCheck(Answer):
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
    failed_before: FailedBefore


RequiredChecks = Annotated[list[RequiredCheck], OR_EMPTY]


class FailedCheck(Answer):
    """A required check that failed."""

    name: str
    url: str | None = Field(description="Its log.")
    because: str | None = Field(description="The failed job, because of which it was skipped.")
    failed_before: FailedBefore


class FailedTest(Answer):
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


class Failures(Answer):
    """What failed, and how sure it is that the pull request is at fault."""

    text: str = Field(description="How the cause was found.")
    checks: list[FailedCheck]
    tests: list[FailedTest] = Field(description="The first 5, new failures first.")
    failed_tests: int = Field(description="How many failed and are not excused.")
    excused_tests: int


class Owner(Answer):
    """A pull request with which another one conflicts."""

    number: Annotated[int, At("prNumber")]
    author: str
    merged: bool = Field(description="Whether it has been merged; else it is ahead in the queue.")


class Call(Answer):
    """The next call to Headgate in three forms."""

    command: str = Field(description="As a command line.")
    method: str = Field(description="As a request: its method, path and body.")
    path: str
    body: dict[str, object]
    tool: str = Field(description="As a tool and its arguments.")
    arguments: dict[str, object]


class NextStep(Answer):
    """What to do next about a pull request: exactly one step."""

    number: Annotated[int, At("prNumber")]
    target_branch: str
    kind: Upper = Field(
        description="SUBMIT, WAIT, FIX, REBASE, RESUBMIT, SUPERSEDED, DROP, ASK or DONE."
    )
    text: Plain = Field(description="The same in a sentence or two.")
    code: str = Field(description="Why: code of a reason, a condition, a hold or a refusal.")
    who_must_act: Acting
    person: str | None = Field(description="ASK: the login of the person to ask, if known.")
    since: str | None
    at: str | None = Field(
        description="RESUBMIT: the earliest time, null: at once. Else when the wait ends at last."
    )
    pull_requests: Numbers = Field(description="Pull requests that it depends on.")
    commit: str | None = Field(
        description="REBASE: onto this one. DONE: it landed as this one. SUPERSEDED: by this one."
    )
    paths: Texts = Field(description="The paths in conflict, or of what it takes back.")
    conflicts_with: list[Owner] = Field(
        description="The pull requests with which it conflicts, and who owns them."
    )
    failures: Failures | None = Field(description="What failed.")
    percent: int | None = Field(description="How sure it is that it breaks its tests.")
    suspects: Numbers = Field(description="Pull requests that may have caused its failure.")
    call: Call | None = Field(
        description="The next call to Headgate once you did what `kind` asks for; null: none."
    )
    version: Annotated[str, At("recordVersion")] = Field(description="Changes with the step.")


class RuleWait(Answer):
    """A rule of the queue that makes the pull request wait."""

    rule: str
    text: Plain = Field(description="What it waits for.")
    until: str | None = Field(description="When the wait ends at the latest, if a time ends it.")


class PullRequestState(Answer):
    """A pull request in its queue."""

    repository: str
    number: Annotated[int, At("prNumber")]
    title: Annotated[Plain, At("prTitle")]
    head: Annotated[str, At("prSha")] = Field(description="The commit that was submitted.")
    target_branch: str
    outcome: Annotated[Outcome, At("state"), BeforeValidator(_outcome_of)] = Field(
        description="waiting: it is still in the queue."
    )
    state: Upper = Field(description="The state's name in the API, as TESTING.")
    reason: str = Field(description="Code of the reason for the state.")
    message: Annotated[Plain, At("reasonMessage")] = Field(
        description="The reason in one sentence."
    )
    who_must_act: Acting
    retryable: bool = Field(
        description="Whether the same commit may pass if it is submitted again."
    )
    entered_by_rule: Annotated[str | None, At("rules.enteredBy")] = Field(
        default=None, description="The rule of the queue that submitted it."
    )
    priority_by_rule: Annotated[str | None, At("rules.priorityBy")] = Field(
        default=None, description="The rule of the queue that gives its priority."
    )
    waits_for_rules: Annotated[list[RuleWait], At("rules.waitsFor"), OR_EMPTY] = Field(
        default=[], description="The rules that make it wait now."
    )
    position: int | None = Field(description="Place in the queue, from 1; null outside the line.")
    queue_length: int | None
    expected_by: Annotated[str | None, At("eta.latest")] = Field(
        description="When it will probably have landed, at the latest."
    )
    merged_as: Annotated[str | None, At("conclusion.mergedSha")] = Field(
        description="The commit on the target branch."
    )
    failed_checks: Annotated[Texts, At("conclusion.failedStatuses")]
    failures: Annotated[Failures | None, At("explanation.failures")] = Field(
        description="What failed, once it has failed."
    )
    suspects: Annotated[Numbers, At("explanation.suspects")] = Field(
        description="Pull requests that may have caused its failure."
    )
    required_checks: RequiredChecks = Field(
        description="How each required check counts, once it passed or has ended."
    )
    page: Annotated[str | None, At("links.page")] = Field(
        description="Address of the page for people."
    )
    next_step: Annotated[NextStep, At("explanation.nextStep")] = Field(
        description="What to do now, as what_now answers it."
    )


class Condition(Answer):
    """One thing that must hold before the pull request lands."""

    code: str
    met: bool
    standing: str | None = Field(
        description="met, open, or why it counts: skipped, excused, unknown (not judged)."
    )
    text: str
    who_must_act: Acting
    since: str | None
    pull_requests: Numbers = Field(description="Pull requests that it depends on.")


class Conflict(Answer):
    """A conflict with another open pull request."""

    number: Annotated[int, At("prNumber")]
    paths: Texts
    text: str = Field(description="The order of landing that needs the fewest rebases.")


class Explanation(Answer):
    """Why a pull request is not merged yet, and what happens next."""

    number: Annotated[int, At("prNumber")]
    state: Upper
    summary: str
    conditions: list[Condition]
    suspicion: Annotated[str | None, At("suspicion.text")] = Field(
        description="The chance that it is broken, with its evidence."
    )
    suspects: Numbers = Field(description="Pull requests that may have caused its failure.")
    failures: Failures | None = Field(description="The checks and tests that failed.")
    required_checks: RequiredChecks
    conflicts: Annotated[list[Conflict], OR_EMPTY] = Field(
        description="Other open pull requests with which it will conflict."
    )
    next: Annotated[str | None, At("next.what")] = Field(
        description="What happens next, or has to be done."
    )
    next_step: NextStep = Field(description="What to do now, as what_now answers it.")
    page: str | None = Field(description="Address of the page for people.")
    ahead: Numbers = Field(description="Pull requests ahead of it in the queue.")
    behind: Numbers
    expected_by: Annotated[str | None, At("eta.latest")]
    expected_unknown_because: Annotated[str | None, At("etaUnknownReason")]


class Preview(Answer):
    """The effect of a change that was not made."""

    number: Annotated[int, At("prNumber")]
    change: str
    runs_interrupted: Annotated[int, BeforeValidator(len)] = Field(
        description="Test runs in progress that would be stopped."
    )
    restarted: Annotated[Numbers, At("pullRequestsRestarted")] = Field(
        description="Other pull requests that would be tested again."
    )
    moved_up: Annotated[Numbers, At("pullRequestsMovedUp")]
    moved_back: Annotated[Numbers, At("pullRequestsMovedBack")]


class TestHealth(Answer):
    """A test and its health."""

    __test__ = False

    id: str
    name: Plain
    file: Annotated[str | None, At("file_path")]
    variant: str
    status: Annotated[Lower, At("status.value")] = Field(description="healthy, flaky or broken.")
    because: Annotated[str, At("status.reason")] = Field(
        description="The reason of the status, with its numbers."
    )
    failure_rate_7d: Annotated[float, At("failure_rate_last_7d")] = Field(
        description="Share of runs in 7 days that failed, 0 to 1."
    )
    last_failed_at: str | None
    pull_requests_hit_7d: Annotated[int, At("pull_requests_impacted_last_7d")]
    ci_seconds_lost_7d: Annotated[int, At("ci_seconds_lost_last_7d")] = Field(
        description="CI time that its failures lost in 7 days."
    )
    owners: Annotated[Texts, At("codeowners")]
    quarantined: bool = Field(description="Whether its failures count as passed.")
    page: Annotated[str, At("html_url")]


class TestList(Answer):
    """Tests, those first that hit most pull requests."""

    __test__ = False

    total: Annotated[int, At("page.total_rows")] = Field(
        description="How many there are; the list may have fewer."
    )
    tests: list[TestHealth]


class QueueSummary(Answer):
    """A queue among others."""

    repository: Annotated[Slug, At("repo")]
    branch: str
    state: Upper
    mode: Upper
    queued: Annotated[int, At("depth")] = Field(description="Pull requests that are ready.")
    testing: int
    not_ready: int


class QueueList(Answer):
    """The queues that the token sees."""

    queues: list[QueueSummary]
