"""Answers of the test run endpoints."""

from typing import Annotated, Literal

from pydantic import Field

from service.http.models.answers.common import (
    Answer,
    Count,
    Id,
    LeftOut,
    Number,
    Sha,
    Time,
    open_word,
)
from service.http.models.shared import TAKE_MAX
from service.mergequeue.engine.reasons import Cause
from service.mergequeue.engine.states import RunKind, RunStatus
from service.vocabulary import RequiredSource


class CheckRunShown(Answer):
    """One check run; `conclusion` is null until it is completed, and its list may grow."""

    name: str
    url: str
    status: Literal["QUEUED", "IN_PROGRESS", "COMPLETED"]
    conclusion: str | None


class CheckSuiteShown(Answer):
    """Check runs that the provider groups."""

    check_runs: list[CheckRunShown]


class StatusCheckShown(Answer):
    """One update of one commit status."""

    context: str
    url: str
    state: Literal["ERROR", "FAILURE", "PENDING", "SUCCESS"]
    created_at: Time | None


class TestedPullRequestShown(Answer):
    """One pull request under test."""

    pr_number: Number
    pr_url: str
    title: str


class FailedTest(Answer):
    """One test that failed in the run."""

    id: Id
    name: str
    status: Literal["healthy", "flaky", "broken"]
    excused: bool
    new_failure_text: bool


class IncompleteReport(Answer):
    """A required status whose failures are not excused, for what its reports lack."""

    name: str
    reasons: list[str]


class TestRunShown(Answer):
    """One test run with everything reported on its test branch."""

    __test__ = False
    required_statuses: list[str]
    required_statuses_source: LeftOut[RequiredSource] = None
    test_branch: str
    test_branch_sha: Sha
    check_suites: list[CheckSuiteShown]
    status_checks: list[StatusCheckShown]
    tested_pull_requests: list[TestedPullRequestShown]
    created_at: Time
    status: RunStatus
    impacted_targets: LeftOut[list[str]] = None
    impacted_targets_for_tested_prs: LeftOut[list[str]] = None
    dependent_prs: list[Number]
    test_run_id: Id
    base_sha: Sha
    finished_at: Time | None
    kind: RunKind
    is_bisection: bool
    attempt: Number
    reused_from: Id | None
    test_pr_number: Number | None
    failed_statuses: list[str]
    missing_statuses: list[str]
    waiting_on: list[Number]
    verdict: Annotated[str, open_word(Cause)] | None
    failed_tests: list[FailedTest]
    incomplete_reports: list[IncompleteReport]


Bisection = Literal["in_bisection", "entered_bisection"]


class ListedTestRun(Answer):
    """A test run among others; `prNumber` is the first of those it tested."""

    test_run_id: Id
    pr_number: Number
    pr_numbers: list[Number]
    status: RunStatus
    cycle_conclusion: Literal["merged", "failed", "cancelled"] | None
    bisection: Bisection | None
    verdict: Annotated[str, open_word(Cause)] | None
    created_at: Time
    finished_at: Time | None
    test_branch_sha: Sha | None


class TestRunsListed(Answer):
    """A part of a list, newest first; `totalItems` counts all of it."""

    __test__ = False
    testing_results: Annotated[list[ListedTestRun], Field(max_length=TAKE_MAX)]
    total_items: Count
    offset: Count
    take: Number
