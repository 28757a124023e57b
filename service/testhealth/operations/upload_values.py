"""An upload of test reports as values: the request and the answer."""

from dataclasses import dataclass
from datetime import datetime

from service.testhealth.reports.results import Counts, FileStatus, Format
from service.testhealth.runner_ends import RunnerEnd
from service.testhealth.store.uploads import StoredFile
from service.vocabulary import Health, Sha


@dataclass(frozen=True, slots=True)
class UploadMeta:
    """The metadata that a client sends with its upload.

    `ran_at` None: not sent, the time of receipt counts. `job` is empty when not sent. `format`
    None: as each file's content says. `codeowners` is the text of the part of that name. The
    fields from `command_exit_code` to `unsent_files` are those of `completeness.Account`.
    """

    sha: Sha
    tree_sha: Sha | None = None
    branch: str | None = None
    pr_number: int | None = None
    run_id: str | None = None
    run_attempt: int = 1
    run_url: str | None = None
    job: str = ""
    variant: str = ""
    source_root: str = ""
    ran_at: datetime | None = None
    machine: str | None = None
    format: Format | None = None
    command_exit_code: int | None = None
    runner: str = ""
    command_key: str = ""
    session: str = ""
    session_uploads: int | None = None
    unsent_files: int = 0
    dry_run: bool = False
    codeowners: str | None = None
    runner_ends: tuple[RunnerEnd, ...] = ()


@dataclass(frozen=True, slots=True)
class AnsweredFailure:
    """A test that failed in the upload; texts are empty when missing.

    `quarantine_reason` None: it is not quarantined.
    """

    test_id: str
    name: str
    parent: str
    classname: str
    file: str
    variant: str
    status: Health
    quarantined: bool
    quarantine_reason: str | None
    summary: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The exit code that the test command should return, now that quarantine is known."""

    exit_code: int
    passed: bool
    message: str


@dataclass(frozen=True, slots=True)
class UploadAnswer:
    """The answer to an upload; a dry run has no `upload_id` and no `html_url`.

    `failures` are at most 1,000, the unquarantined first; `failures_truncated`: there are more.
    `not_excused_because` says why quarantined failures count all the same, empty: they do not.
    """

    upload_id: str | None
    duplicate: bool
    dry_run: bool
    trusted: bool
    counts: Counts
    files: tuple[StoredFile, ...]
    failures: tuple[AnsweredFailure, ...]
    failures_truncated: bool
    quarantined_failures: int
    unquarantined_failures: int
    verdict: Verdict
    warnings: tuple[str, ...]
    html_url: str | None
    not_excused_because: tuple[str, ...] = ()
    runner_ends: tuple[RunnerEnd, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Return whether every file was read to its end."""
        return all(each.status is FileStatus.ACCEPTED for each in self.files)
