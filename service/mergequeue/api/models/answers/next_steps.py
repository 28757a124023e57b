"""The next step of a program about a pull request, and what failed in its test run."""

from typing import Annotated, Literal

from pydantic import Field

from service.http.models.answers.common import (
    Answer,
    Count,
    EitherSpelling,
    Id,
    LeftOut,
    Number,
    RecordVersion,
    RepositoryShown,
    Sha,
    Time,
    open_word,
)
from service.mergequeue.api.models.answers.runs import FailedJobShown, IncompleteReport
from service.mergequeue.reasons.record import StepKind, WhoMustAct
from service.mergequeue.wording.failed_tests import Standing


class FailedCheckShown(Answer):
    """A required check because of which a pull request failed."""

    name: str
    """Name of the check. For example `unit`."""
    url: str | None
    """Its log; null without an address. For example `https://github.com/octo/widgets/runs/1`."""
    because: str | None
    """The job that failed, because of which this one was skipped; else null. For example `lint`."""
    foreseen: str | None
    """What shows that it cannot pass any more, if it counted before its end; else null. For example
    `step Test of job unit (3.11) failed`.
    """
    failed_before: list[FailedJobShown]
    """The jobs of its check suite that had failed when it began, at most 20: it may be a job that
    collects their results.
    """


class FailedTestFields(EitherSpelling):
    """A test that failed in the newest test run of a pull request."""

    id: Id
    """The test."""
    name: str
    """Its file and name. For example `tests/test_cart.py::test_total`."""
    file: str | None
    """Its file, as its report names it; null without one. For example `cart.test.ts`."""
    line: Number | None
    """The line of the test in its file; null if its report does not say."""
    message: str
    """First line of what failed. For example `AssertionError: 10.01 != 10.0`."""
    known_as: Annotated[str, open_word(Standing)]
    """What it was when the run began: `new` had not failed before, `seen` had. `flaky` and `broken`
    are its health, `excused` is quarantined.
    """
    fails_on: str | None
    """The target branch if the test failed there as well before the run; null: not that we know.
    For example `main`.
    """
    log: str | None
    """The CI run that reported it; null without an address. For example
    `https://github.com/octo/widgets/actions/runs/1`.
    """
    page: str | None
    """Our page of the test; null without an address. For example
    `https://queue.example.org/octo/widgets/tests/1`.
    """


class FailedTestShown(FailedTestFields, Answer):
    """A test that failed in the newest test run of a pull request."""

    trace: list[str]
    """The first 12 lines of its trace; empty without one. For example `["assert 1 == 2"]`"""
    quarantined: bool
    """Whether its failure counts as passed."""
    new_failure_text: bool
    """Whether it failed in a way that is new."""


class FailuresShown(Answer):
    """What failed in the newest test run, and how sure it is that the pull request is at fault."""

    text: str
    """How the cause was found; empty while that is not known. For example
    `It failed in 2 test runs. No other PR was in its base.`
    """
    checks: list[FailedCheckShown]
    """The required checks that failed."""
    tests: list[FailedTestShown]
    """The first 5 of the tests that failed, new failures first."""
    failed_tests: Count
    """How many tests failed and are not excused."""
    excused_tests: Count
    """How many more failed and are quarantined."""
    incomplete_reports: list[IncompleteReport]
    """Required checks whose failures are not excused, for what their reports lack."""


class OwnerFields(EitherSpelling):
    """A pull request with which another one conflicts."""

    pr_number: Number
    """Number of the pull request."""
    author: str
    """Login of its author. For example `alice`."""
    merged: bool
    """Whether it has been merged; else it is ahead in the queue."""


class OwnerShown(OwnerFields, Answer):
    """A pull request with which another one conflicts."""


class NumberedPullRequest(Answer):
    """A pull request, as requests name it."""

    number: Number
    """Number of the pull request."""


class CallBody(Answer):
    """The body of a request."""

    repo: RepositoryShown
    """The repository."""
    target_branch: str
    """The branch of the queue. For example `main`."""
    pr: NumberedPullRequest
    """The pull request."""
    since_version: LeftOut[RecordVersion] = None
    """The version to wait for another one of; left out of a submission."""
    wait_for: LeftOut[int] = None
    """Seconds to wait at most; left out of a submission. For example `25`."""


class ToolArguments(Answer):
    """The arguments of a tool."""

    number: Number
    """Number of the pull request."""
    repo: str
    """The repository. For example `github.com/octo/widgets`."""
    seconds: LeftOut[int] = None
    """Seconds to wait at most; left out of a submission. For example `300`."""
    after: LeftOut[RecordVersion] = None
    """The version of the step that is known; left out while any step but `WAIT` is news."""


class CallShown(Answer):
    """One call to Headgate in three forms."""

    command: str
    """The command line. For example `headgate next 482 --wait`."""
    method: Literal["POST"] = "POST"
    """The method of the request."""
    path: Literal["/v1/submitPullRequest", "/v1/getNextStep"]
    """The path of the request."""
    body: CallBody
    """The body of the request."""
    tool: Literal["land_pull_request", "what_now"]
    """The tool of `headgate mcp`."""
    arguments: ToolArguments
    """The arguments of the tool."""


class PullRequestShown(Answer):
    """A pull request of a queue."""

    pr_number: Number
    """Number of the pull request."""
    target_branch: str
    """The branch of the queue. For example `main`."""


class NextStepFields(EitherSpelling):
    """What to do next about a pull request: exactly one step."""

    kind: Annotated[str, open_word(StepKind)]
    """What to do."""
    text: str
    """The same in a sentence or two. For example `Ask a maintainer so that the required reviews
    approve it.`
    """
    code: str
    """Why: code of a reason, a condition, a hold or a refusal. For example `review_required`."""
    who_must_act: WhoMustAct
    """Who must act."""
    person: str | None
    """Of `ASK` the login of the person to ask; null if anyone with that role can help. For example
    `alice`.
    """
    since: Time | None
    """Since when it is so; null where that is not known."""
    at: Time | None
    """Of `RESUBMIT` the earliest time, null: at once. Of others when the wait ends at the latest;
    null where that is not known.
    """
    pull_requests: list[Number]
    """The pull requests that it depends on; of `SUPERSEDED` the one that has its work, of
    `undoes_landed_work` those whose work it would take back.
    """
    commit: Sha | None
    """Of `REBASE` the commit to rebase onto, of `DONE` the one that landed, of `SUPERSEDED` the
    landing that has its work; else null.
    """
    paths: list[str]
    """The paths in conflict, or of the work that it would take back, as far as known. For example
    `["cart.py"]`
    """
    percent: Annotated[int, Field(ge=1, le=100)] | None
    """How sure it is that the pull request breaks its tests; null where nothing is believed."""
    suspects: list[Number]
    """The pull requests that may have caused its failure, itself among them; empty once that is
    decided.
    """
    call: CallShown | None
    """The next call to Headgate, after what `kind` asks for was done; null if none follows."""
    record_version: RecordVersion
    """Changes with the step: send it as `sinceVersion` to wait for another one."""


class NextStepShown(NextStepFields, PullRequestShown):
    """What to do next about a pull request: exactly one step."""

    conflicts_with: list[OwnerShown]
    """The pull requests with which it conflicts, as far as known, and their authors."""
    failures: FailuresShown | None
    """What failed, with files, lines, traces and logs; null if nothing did."""
