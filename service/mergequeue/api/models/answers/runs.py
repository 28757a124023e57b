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
    WithIgnored,
    open_word,
)
from service.http.models.shared import TAKE_MAX
from service.mergequeue.engine.checked import Ended, Place
from service.mergequeue.engine.reasons import Cause
from service.mergequeue.engine.states import RunKind, RunStatus
from service.provenance import Proof
from service.vocabulary import RequiredSource


class CheckRunShown(Answer):
    """One check run; `conclusion` is null until it is completed, and its list may grow."""

    name: str
    """Name of the check. For example `unit`."""
    url: str
    """Where to look. For example `https://github.com/octo/widgets/runs/1`."""
    status: Literal["QUEUED", "IN_PROGRESS", "COMPLETED"]
    """How far it is."""
    conclusion: str | None
    """How it ended, in the provider's words; null before. For example `SUCCESS`."""


class CheckSuiteShown(Answer):
    """Check runs that the provider groups."""

    check_runs: list[CheckRunShown]
    """The check runs."""


class StatusCheckShown(Answer):
    """One update of one commit status."""

    context: str
    """Name of the status. For example `ci/build`."""
    url: str
    """Where to look. For example `https://ci.example.org/build/7`."""
    state: Literal["ERROR", "FAILURE", "PENDING", "SUCCESS"]
    """What it says."""
    created_at: Time | None
    """When it was reported; null if the provider does not say."""


class CheckReporter(Answer):
    """What reported a check."""

    kind: Literal["check_run", "commit_status"]
    """The kind of report."""
    app: str | None
    """Id of the App that reported it; null for a status of a person. For example `15368`."""
    check_run: str
    """The provider's id of the check run or status. For example `482915`."""
    attempt: Number | None
    """The attempt of its job; null where the provider does not say."""


class FailedJobShown(Answer):
    """A job that had failed when a failed check began."""

    name: str
    """Name of the job. For example `unit (3.12)`."""
    url: str
    """Its log. For example `https://github.com/octo/widgets/runs/1`."""


class RequiredCheckShown(Answer):
    """One required check, and the report that counts for it."""

    name: str
    """Name of the check. For example `unit`."""
    state: Annotated[str, open_word(Ended)]
    """How it counts. `reused`: it passed in an earlier run of the same tree. `excused`: only
    quarantined tests failed in it. `skipped`: it did not run. `optional`: it did not run, which a
    setting allows. `open`: it has no result yet.
    """
    text: str
    """The same as a sentence, with the reason. For example `unit passed.`"""
    place: Annotated[str, open_word(Place)]
    """What it ran on: the `head` of the pull request, or a `test_branch`."""
    run: Id
    """The test run that has the report."""
    sha: Sha | None
    """The commit that the report is about; null where that is not known."""
    url: str | None
    """Where to look; null without an address. For example `https://github.com/octo/widgets/runs/1`."""
    reporter: CheckReporter | None
    """What reported it; null without a report."""
    because: str | None
    """Why it did not simply pass; null if it did, or no reason is known. For example
    `its job runs only on merge_group`.
    """
    tests: list[str]
    """Names of the tests whose failures are excused. For example `["tests/cart.py::test_total"]`"""
    proof: Annotated[str, open_word(Proof)] | None
    """What proves the report that excuses it; null if it is not excused, or that is not known."""
    failed_before: list[FailedJobShown]
    """If it failed: the jobs of its check suite that had failed when it began, at most 20."""


class TestedPullRequestShown(Answer):
    """One pull request under test."""

    pr_number: Number
    """Number of the pull request."""
    pr_url: str
    """The pull request at the provider. For example `https://github.com/octo/widgets/pull/482`."""
    title: str
    """Its title. For example `Cart totals`."""


class FailedTest(Answer):
    """One test that failed in the run."""

    id: Id
    """The test."""
    name: str
    """Its name. For example `test_total`."""
    status: Literal["healthy", "flaky", "broken"]
    """Its health."""
    excused: bool
    """Whether the failure counts as passed."""
    new_failure_text: bool
    """Whether it failed in a way that is new."""


class IncompleteReport(Answer):
    """A required status whose failures are not excused, for what its reports lack."""

    name: str
    """The required status. For example `unit`."""
    reasons: list[str]
    """What its reports lack. For example `["No report came for this job."]`"""


class TestRunShown(WithIgnored):
    """One test run with everything reported on its test branch."""

    __test__ = False
    required_statuses: list[str]
    """The statuses that must pass. For example `["unit"]`"""
    required_statuses_source: LeftOut[RequiredSource] = None
    """Where these come from."""
    test_branch: str
    """The test branch. For example `headgate/merge/pr-482`."""
    test_branch_sha: Sha
    """Its commit."""
    check_suites: list[CheckSuiteShown]
    """Check runs on the test branch."""
    status_checks: list[StatusCheckShown]
    """Commit statuses on the test branch."""
    tested_pull_requests: list[TestedPullRequestShown]
    """The pull requests under test."""
    created_at: Time
    """When it was made."""
    status: RunStatus
    """The status of the test run; `failed` as soon as a required status has failed, and
    `in_progress` again if a newer attempt of it passes, or its failures are excused.
    """
    impacted_targets: LeftOut[list[str]] = None
    """Targets of all pull requests on the test branch, where targets are uploaded. For example
    `["//app"]`
    """
    impacted_targets_for_tested_prs: LeftOut[list[str]] = None
    """Targets of the tested pull requests, where targets are uploaded. For example `["//app"]`"""
    dependent_prs: list[Number]
    """Pull requests ahead that the test branch contains and does not test."""
    test_run_id: Id
    """The test run."""
    base_sha: Sha
    """The commit of the target branch that it is built on."""
    finished_at: Time | None
    """When it ended; null before."""
    kind: RunKind
    """What the test run is for."""
    is_bisection: bool
    """Whether it searches for the culprit of a failed batch."""
    attempt: Number
    """Above 1: its checks were restarted."""
    reused_from: Id | None
    """The test run with the same content whose result it has; null: its own."""
    test_pr_number: Number | None
    """The draft pull request that carries the test branch; null without one."""
    failed_statuses: list[str]
    """Required statuses that failed. For example `["unit"]`"""
    missing_statuses: list[str]
    """Required statuses that have not reported yet. For example `["lint"]`"""
    waiting_on: list[Number]
    """Pull requests ahead whose result it waits for."""
    verdict: Annotated[str, open_word(Cause)] | None
    """Why it failed, as a code; null if it did not."""
    failed_tests: list[FailedTest]
    """Tests that failed in it, as reports say."""
    incomplete_reports: list[IncompleteReport]
    """Required statuses whose failures are not excused."""
    required_checks: list[RequiredCheckShown]
    """The required statuses with the report that counts for each, in their order; empty if its
    changes were in the target branch already.
    """


Bisection = Literal["in_bisection", "entered_bisection"]


class ListedTestRun(Answer):
    """A test run among others; `prNumber` is the first of those it tested."""

    test_run_id: Id
    """The test run."""
    pr_number: Number
    """The first pull request that it tests."""
    pr_numbers: list[Number]
    """The pull requests that it tests."""
    status: RunStatus
    """The status of the test run."""
    cycle_conclusion: Literal["merged", "failed", "cancelled"] | None
    """How the pull requests ended after it; null before."""
    bisection: Bisection | None
    """Whether it is part of a bisection, or began one."""
    verdict: Annotated[str, open_word(Cause)] | None
    """Why it failed, as a code; null if it did not."""
    created_at: Time
    """When it was made."""
    finished_at: Time | None
    """When it ended; null before."""
    test_branch_sha: Sha | None
    """Commit of the test branch; null before it is built."""


class TestRunsListed(Answer):
    """A part of a list, newest first; `totalItems` counts all of it."""

    __test__ = False
    testing_results: Annotated[list[ListedTestRun], Field(max_length=TAKE_MAX)]
    """Test runs, newest first."""
    total_items: Count
    """How many there are in all."""
    offset: Count
    """How many were left out at the beginning."""
    take: Number
    """How many were asked for."""
    next_cursor: LeftOut[str] = None
    """Send it as `cursor` for the next page; left out at the end. For example `eyJrIjpbMV19`."""
