"""Runs of a provider's CI as values: what they tested, their jobs, what they left behind.

The verbs are in `provider/port.py`; what is inside an artifact is read by `archives.py`.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from service.vocabulary import Check, CheckOutcome, Sha


class CiTrigger(StrEnum):
    """The code that a run tests, as far as what began it tells.

    HEAD: the head commit itself. PULL_REQUEST: the head of a pull request, as a rule merged
    with its base. UNKNOWN: whatever its steps fetch; the head it shows is only where its
    steps are written down.
    """

    HEAD = "head"
    PULL_REQUEST = "pull_request"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CiRun:
    """One attempt of a run; `of_fork`: a pull request of another repository began it.

    `pull_requests` are those now open with this head, into this repository, and none of forks:
    an empty one says nothing, and only with the trigger PULL_REQUEST they are what was tested.
    `started_at` is the start of this attempt. `head_repo` is the provider's id of the repository
    that holds the head, empty when that one is gone. `begun_by` is the provider's id of the account
    whose push or other event began the first attempt, empty if it shows none.
    """

    id: str
    attempt: int
    trigger: CiTrigger
    head_sha: Sha
    head_branch: str
    of_fork: bool
    pull_requests: tuple[int, ...]
    is_running: bool
    outcome: CheckOutcome
    started_at: datetime
    url: str
    head_repo: str = ""
    begun_by: str = ""


class Subject(StrEnum):
    """The object that a report on the head of a pull request has judged.

    HEAD: the head commit itself. MERGE: the head merged with a commit of the base that the pull
    request has now. UNKNOWN: perhaps the head merged with another branch.
    """

    HEAD = "head"
    MERGE = "merge"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Judged:
    """A report on the head of a pull request, with what it has judged."""

    check: Check
    subject: Subject


@dataclass(frozen=True, slots=True)
class ProvedJob:
    """A job of the provider's CI that has proved who it is (GitHub's OIDC token).

    `repository_id` is the provider's. `branch` is empty for a tag. `sha` is what the job checks
    out: the head with the trigger HEAD, as a rule the merge commit with PULL_REQUEST.
    `pr_number` None: none, or the token does not tell. `check_run_id` is the job's own check run,
    which other jobs of the run do not have; empty: the token proves the run alone. `begun_by` is
    that of `CiRun`.

    `is_of_other_ci`: it is a job of another CI system, which a setting binds to a repository. Then
    `repository_id` is empty, and `run_id` and `check_run_id` are the pages of its build and itself.
    """

    repository_id: str
    run_id: str
    run_attempt: int
    trigger: CiTrigger
    sha: Sha
    branch: str
    pr_number: int | None
    check_run_id: str = ""
    is_of_other_ci: bool = False
    begun_by: str = ""


@dataclass(frozen=True, slots=True)
class PullRequestSource:
    """The origin of the commits of a pull request, and its newest one.

    `head_repo` is the provider's id of the repository, empty when that one is gone, which counts
    as a fork.
    """

    number: int
    head_repo: str
    head_branch: str
    head_sha: Sha
    is_fork: bool


@dataclass(frozen=True, slots=True)
class FailedStep:
    """A step of a job that failed and was not allowed to; the rest of the job may still run."""

    name: str
    completed_at: datetime | None


@dataclass(frozen=True, slots=True)
class CiJob:
    """One job of one attempt; its name and its id are those of its check.

    `workflow` is the name of the file's jobs as a whole, empty when unknown; `runner` the
    machine, empty before one took it; `failed_steps` how many of its steps failed by now, and
    `failures` are these.
    """

    id: str
    name: str
    workflow: str
    runner: str
    outcome: CheckOutcome
    failed_steps: int
    started_at: datetime | None
    completed_at: datetime | None
    failures: tuple[FailedStep, ...] = ()


@dataclass(frozen=True, slots=True)
class CiProgress:
    """The jobs of one CI run by now, each by its newest attempt, while the run may go on.

    `file` is the path of the CI file that says what they do, `group` the suite of their checks.
    """

    run_id: str
    file: str
    group: str
    jobs: tuple[CiJob, ...]


@dataclass(frozen=True, slots=True)
class FailedPart:
    """A part of a CI run that has failed while the rest goes on: a job, a step, or a test.

    `check` is the id of the job's check run; `job` its name. `step` and `test` are empty where
    the job as a whole has failed, or where they are unknown. `url` is a page that shows it.
    """

    check: str
    job: str
    step: str = ""
    test: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A named archive that a run left, of whichever attempt; `size` in bytes, as packed."""

    id: str
    name: str
    size: int
    is_expired: bool
    created_at: datetime | None
