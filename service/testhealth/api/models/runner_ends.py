"""Ends of runs of test runners, in the body of an upload."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from service.http.models import common
from service.http.models.common import Integer, SnakeRequest
from service.testhealth.runner_ends import (
    ERRORS_MAX,
    EXIT_CODE_MAX,
    FILE_MAX,
    MESSAGE_MAX,
    NAME_MAX,
    SHARD_MAX,
    TESTS_MAX,
    EndReason,
    FileError,
    RunnerEnd,
)

Reason = Annotated[EndReason, BeforeValidator(common.one_of(EndReason))]
Line = Annotated[str, Field(min_length=1, max_length=NAME_MAX, pattern=common.LINE)]
Tests = Annotated[Integer, Field(ge=0, le=TESTS_MAX)]
Shard = Annotated[str, Field(max_length=SHARD_MAX, pattern=common.LINE)]


class FileErrorSent(SnakeRequest):
    """An error that belongs to no test."""

    file: Annotated[str, Field(max_length=FILE_MAX, pattern=common.LINE)]
    """The file; empty if it belongs to none. For example `tests/b.test.js`."""
    message: Annotated[str, Field(max_length=MESSAGE_MAX, pattern=common.LINE)]
    """What is wrong. For example `SyntaxError: Unexpected token`."""

    def value(self) -> FileError:
        """As operations take it."""
        return FileError(self.file, self.message)


FileErrors = Annotated[list[FileErrorSent], Field(max_length=ERRORS_MAX)]


class RunnerEndSent(SnakeRequest):
    """The end of one run of a test runner, as its plug-in says it."""

    run: Line
    """What tells runs of runners apart. For example `8f14e45fceea167a`."""
    runner: Line
    """The runner. For example `pytest`."""
    reason: Reason
    """Why it ended as it did; `killed` if it never said how it ended."""
    exit_code: Annotated[Integer, Field(ge=0, le=EXIT_CODE_MAX)] | None = None
    """The exit code that this gives it; null if the plug-in does not know it."""
    planned: Tests | None = None
    """How many tests it meant to run; 0 unless sent."""
    passed: Tests | None = None
    """How many passed; 0 unless sent."""
    failed: Tests | None = None
    """How many failed; 0 unless sent."""
    skipped: Tests | None = None
    """How many were skipped; 0 unless sent."""
    not_run: Tests | None = None
    """How many of the planned tests did not run; 0 unless sent."""
    unloaded: FileErrors | None = None
    """Files whose tests could not be loaded."""
    unloaded_more: Tests | None = None
    """How many more there are; 0 unless sent."""
    errors_outside: FileErrors | None = None
    """Errors that belong to no test."""
    errors_outside_more: Tests | None = None
    """How many more there are; 0 unless sent."""
    shard: Shard | None = None
    """The part of the tests. For example `2/4`."""

    def value(self) -> RunnerEnd:
        """As operations take it."""
        return RunnerEnd(
            run=self.run,
            runner=self.runner.lower(),
            reason=self.reason,
            exit_code=self.exit_code,
            planned=self.planned or 0,
            passed=self.passed or 0,
            failed=self.failed or 0,
            skipped=self.skipped or 0,
            not_run=self.not_run or 0,
            unloaded=tuple(each.value() for each in self.unloaded or ()),
            unloaded_more=self.unloaded_more or 0,
            errors_outside=tuple(each.value() for each in self.errors_outside or ()),
            errors_outside_more=self.errors_outside_more or 0,
            shard=self.shard or "",
        )
