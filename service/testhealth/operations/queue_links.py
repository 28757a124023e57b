"""Facts of merge queues that uploads depend on, and what queues are notified of.

The package `evidence` knows both and provides these functions.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.runtime import Runtime
from service.testhealth.early_failures import EarlyFailure, EarlyStanding
from service.testhealth.operations.messages import UploadSummary
from service.testhealth.operations.upload_values import UploadAnswer
from service.testhealth.store.uploads import Upload
from service.vocabulary import Sha


@dataclass(frozen=True, slots=True)
class TestedRun:
    """A test run of a queue. `tree` is that of its commit, None before it is built."""

    sha: Sha | None
    tree: Sha | None
    prs: tuple[int, ...]
    created_at: datetime


class FlakedRun(Protocol):
    """Tests of a commit failed in a queue, and turned out to be flaky.

    `waits` are how long each of its pull requests waited until that was known.
    """

    @property
    def sha(self) -> Sha:
        """The commit whose tests failed."""
        ...

    @property
    def waits(self) -> tuple[timedelta, ...]:
        """The time of each pull request."""
        ...


class CheckAnswer(Protocol):
    """Adds to an answer why its quarantined failures are not excused."""

    async def __call__(
        self,
        runtime: Runtime,
        repository: RepositoryRecord,
        answer: UploadAnswer,
        *,
        is_of_many: bool = False,
    ) -> UploadAnswer:
        """Return the answer with the reasons; `is_of_many`: its sender makes several uploads."""
        ...


@dataclass(frozen=True, slots=True)
class EarlyFailureLinks:
    """The queue's part in failed tests that jobs report while they run (docs/design/live-tests.md).

    `standing_of` returns what a failure moves that is proved and final. `tell` has the queue of its
    test run judge the job again, and `take_back` has it forget failures; both may be repeated.
    """

    standing_of: Callable[[Runtime, RepositoryRecord, EarlyFailure], Awaitable[EarlyStanding]]
    tell: Callable[[Runtime, RepositoryRecord, EarlyFailure], Awaitable[None]]
    take_back: Callable[[Runtime, RepositoryRecord, Sequence[EarlyFailure]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class QueueLinks:
    """`tested_run` finds the run of a commit or test branch, `queue_branches` the target branches.

    `pull_requests_at` returns the pull requests with a head. `note_sending` notifies queues whether
    repositories send results, `explain_again` has the failures of the live runs of a commit
    explained again, and `note_late_failures` reports failures that arrive after the landing.
    `early` is about failures that arrive before the report. `suspected_pull_requests` returns those
    that a commit tests, the most suspected first. `flaked_runs` returns the flakes that a pass in a
    span of time proved. `is_testing` returns whether test runs of a repository's queues go on.
    """

    tested_run: Callable[[Tx, int, Sha, str | None], TestedRun | None]
    queue_branches: Callable[[Tx, int], tuple[str, ...]]
    pull_requests_at: Callable[[Tx, int, Sha], tuple[int, ...]]
    note_sending: Callable[[Runtime, int | None], Awaitable[None]]
    explain_again: Callable[[Tx, Runtime, RepositoryRecord, Sha], None]
    check_answer: CheckAnswer
    note_late_failures: Callable[[Tx, Runtime, RepositoryRecord, Upload, UploadSummary], None]
    early: EarlyFailureLinks
    suspected_pull_requests: Callable[[Runtime, RepositoryRecord, Sha], Awaitable[tuple[int, ...]]]
    flaked_runs: Callable[[Tx, int, datetime, datetime], Sequence[FlakedRun]]
    is_testing: Callable[[Tx, int], bool]
