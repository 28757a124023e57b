"""Answers about uploads of test reports."""

from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from service.http.models.answers.common import Count, Id, SnakeAnswer
from service.testhealth.api.models.answers.tests import Address
from service.testhealth.runner_ends import EndReason
from service.vocabulary import Health

ReportFormat = Literal["junit", "go-json", "ctrf", "trx", "nunit", "xunit"]


class CountsShown(SnakeAnswer):
    """What the files hold: `passed`, `failed` and `skipped` add up to `tests`."""

    files: Count
    """Files of the upload."""
    tests: Count
    """Results in them."""
    distinct: Count
    """Distinct tests."""
    passed: Count
    """Results that passed."""
    failed: Count
    """Results that failed."""
    errors: Count
    """Failures that are errors and no failed assertion."""
    skipped: Count
    """Results that were skipped."""
    attempts: Count
    """Attempts, retries included."""
    suite_failures: Count
    """Suites that failed outside any test."""


class FaultShown(SnakeAnswer):
    """Why reading stopped, and where; null where a place says nothing."""

    message: str
    """What is wrong. For example `A document type declaration is not allowed.`"""
    line: int | None
    """The line; null if unknown. For example `2`."""
    column: int | None
    """The column; null if unknown. For example `1`."""


class FileShown(SnakeAnswer):
    """How one file was read; `error` is null when all of it was."""

    name: str
    """Name of the file. For example `junit.xml`."""
    format: ReportFormat | None
    """Its format; null if unknown."""
    status: Literal["accepted", "partial", "refused"]
    """How much of it was read."""
    tests: Count
    """Results in it."""
    error: FaultShown | None
    """Why not all of it was read; null: all was."""


class FailureShown(SnakeAnswer):
    """A test that failed in the upload; fields that are unknown are empty."""

    test_id: Id
    """The test."""
    name: str
    """Its name. For example `test_total`."""
    parent: str
    """Its suite; empty if unknown. For example `ui`."""
    classname: str
    """Its class; empty if unknown. For example `TestCart`."""
    file_path: Annotated[str, Field(validation_alias=AliasChoices("file_path", "file"))]
    """Its file; empty if unknown. For example `ui/test_cart.py`."""
    variant: str
    """The flavor of the job that ran it; empty without. For example `linux`."""
    status: Health
    """Its health."""
    quarantined: bool
    """Whether its failures count as passed."""
    quarantine_reason: str | None
    """Why it is quarantined; null if it is not. For example `#991`."""
    summary: Annotated[str, Field(max_length=200)]
    """The first line of the failure. For example `AssertionError: 10.0 != 10.01`."""


class FileErrorShown(SnakeAnswer):
    """An error that belongs to no test."""

    file: str
    """The file; empty if it belongs to none. For example `tests/b.test.js`."""
    message: str
    """What is wrong. For example `SyntaxError: Unexpected token`."""


class RunnerEndShown(SnakeAnswer):
    """The end of one run of a test runner, as its plug-in said it."""

    run: str
    """What tells runs of runners apart. For example `8f14e45fceea167a`."""
    runner: str
    """The runner. For example `pytest`."""
    reason: EndReason
    """Why it ended as it did. For example `tests_failed`."""
    exit_code: int | None
    """The exit code that this gave it; null if the plug-in did not know it. For example `1`."""
    planned: Count
    """How many tests it meant to run."""
    passed: Count
    """How many passed."""
    failed: Count
    """How many failed."""
    skipped: Count
    """How many were skipped."""
    not_run: Count
    """How many of the planned tests did not run."""
    unloaded: list[FileErrorShown]
    """Files whose tests could not be loaded; at most 20."""
    unloaded_more: Count
    """How many more there are."""
    errors_outside: list[FileErrorShown]
    """Errors that belong to no test; at most 20."""
    errors_outside_more: Count
    """How many more there are."""
    shard: str
    """The part of the tests; empty without. For example `2/4`."""


class VerdictShown(SnakeAnswer):
    """What the test command should return, now that quarantine is known."""

    exit_code: Annotated[int, Field(ge=0, le=255)]
    """What the test command should return."""
    passed: bool
    """Whether that is 0."""
    message: str
    """Why. For example `3 failures, 1 quarantined, 2 not: exit code 1.`"""


class UploadDeleted(SnakeAnswer):
    """The upload is forgotten, and its tests are judged without it."""

    upload_id: Id
    """The upload."""
    deleted: Literal[True]
    """It is deleted."""


class UploadTaken(SnakeAnswer):
    """What was read, and which failures count; without ids and address when nothing is stored."""

    upload_id: Id | None
    """The upload; null when nothing is stored."""
    duplicate: bool
    """Whether the same content came before."""
    dry_run: bool
    """Whether nothing was to be stored."""
    trusted: bool
    """Whether it counts for the health of tests."""
    counts: CountsShown
    """What the files hold."""
    files: list[FileShown]
    """How each file was read."""
    failures: list[FailureShown]
    """Tests that failed, those that count first; at most 1,000."""
    failures_truncated: bool
    """Whether there are more."""
    quarantined_failures: Count
    """Failures that count as passed."""
    unquarantined_failures: Count
    """Failures that count."""
    verdict: VerdictShown
    """What the test command should return."""
    not_excused_because: list[str]
    """Why failures of quarantined tests count. For example `["e2e.xml was refused."]`"""
    runner_ends: list[RunnerEndShown]
    """How the runners of the test command ended, as their plug-ins said."""
    warnings: list[str]
    """What you should know. For example `["e2e.xml was refused."]`"""
    html_url: Address | None
    """Page of the upload; null when nothing is stored. For example
    `https://queue.example.org/octo/widgets/uploads/b7e0a3c4`.
    """
