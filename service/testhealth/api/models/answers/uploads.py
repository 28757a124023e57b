"""Answers about uploads of test reports."""

from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from service.http.models.answers.common import Count, Id, SnakeAnswer
from service.testhealth.api.models.answers.tests import Address
from service.vocabulary import Health

ReportFormat = Literal["junit", "go-json", "ctrf", "trx", "nunit", "xunit"]


class CountsShown(SnakeAnswer):
    """What the files hold: `passed`, `failed` and `skipped` add up to `tests`."""

    files: Count
    tests: Count
    distinct: Count
    passed: Count
    failed: Count
    errors: Count
    skipped: Count
    attempts: Count
    suite_failures: Count


class FaultShown(SnakeAnswer):
    """Why reading stopped, and where; null where a place says nothing."""

    message: str
    line: int | None
    column: int | None


class FileShown(SnakeAnswer):
    """How one file was read; `error` is null when all of it was."""

    name: str
    format: ReportFormat | None
    status: Literal["accepted", "partial", "refused"]
    tests: Count
    error: FaultShown | None


class FailureShown(SnakeAnswer):
    """A test that failed in the upload; fields that are unknown are empty."""

    test_id: Id
    name: str
    parent: str
    classname: str
    file_path: Annotated[str, Field(validation_alias=AliasChoices("file_path", "file"))]
    variant: str
    status: Health
    quarantined: bool
    quarantine_reason: str | None
    summary: Annotated[str, Field(max_length=200)]


class VerdictShown(SnakeAnswer):
    """What the test command should return, now that quarantine is known."""

    exit_code: Annotated[int, Field(ge=0, le=255)]
    passed: bool
    message: str


class UploadDeleted(SnakeAnswer):
    """The upload is forgotten, and its tests are judged without it."""

    upload_id: Id
    deleted: Literal[True]


class UploadTaken(SnakeAnswer):
    """What was read, and which failures count; without ids and address when nothing is stored."""

    upload_id: Id | None
    duplicate: bool
    dry_run: bool
    trusted: bool
    counts: CountsShown
    files: list[FileShown]
    failures: list[FailureShown]
    failures_truncated: bool
    quarantined_failures: Count
    unquarantined_failures: Count
    verdict: VerdictShown
    not_excused_because: list[str]
    warnings: list[str]
    html_url: Address | None
