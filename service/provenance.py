"""Record who says so: proofs of facts, and the provider's own times (docs/design/provenance.md).

A fact may move a decision only if who made it, about what, and when, is proved. A rule takes a
`Fact` or a `ProviderTime`, never a bare name, flag or `datetime`. `tests/docs/fact_rules.py` has
the table of what each kind of fact may move.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Proof(StrEnum):
    """The proofs of a fact, and so what can forge it.

    READ: our own call to the provider, for this object. JOB: a CI job's own token, which names
    the job. RUN: a CI run that the provider knows, of which any job may be the sender. PERSON: a
    person's act, with the right read when it is used. TOKEN: one of our tokens; every holder can
    say it. SIGNED: a signed delivery, a reason to read. NAME: a name, branch, title or label.
    NONE: nothing.
    """

    READ = "read"
    JOB = "job"
    RUN = "run"
    PERSON = "person"
    TOKEN = "token"
    SIGNED = "signed"
    NAME = "name"
    NONE = ""


@dataclass(frozen=True, slots=True, order=True)
class ProviderTime:
    """A time by the provider's clock, compared only with others of the same clock.

    GitHub gives whole seconds: of two acts in one second the order is unknown.
    """

    at: datetime


@dataclass(frozen=True, slots=True)
class Fact(Generic[Value]):
    """A value with what proves it.

    `about` names the object exactly: head, run, job, base or file. `author` made it. `at` is the
    provider's time, None where it gives none.
    """

    value: Value
    about: str
    author: str
    proof: Proof
    at: ProviderTime | None = None


class FactKind(StrEnum):
    """Everything from outside that a decision of Headgate may rest on."""

    CHECK_RUN = "check run"
    COMMIT_STATUS = "commit status"
    SKIPPED_CHECK = "skipped check"
    CI_JOB = "CI job"
    UPLOADED_REPORT = "test report, uploaded"
    COLLECTED_REPORT = "test report, from an artifact"
    EXIT_CODE = "exit code"
    EARLY_FAILURE = "test that failed, told while its job runs"
    TEST_VERDICT = "verdict of a test"
    OVERRIDE = "override"
    IMPACTED_TARGETS = "impacted targets"
    COMMAND = "command"
    LABEL = "label"
    BOX = "box"
    BUTTON = "button"
    CONSENT = "consent"
    REVIEW = "review"
    PULL_REQUEST = "pull request"
    FACTS_FOR_RULES = "facts for rules of entry"
    DECLARED_REVERT = "declared revert"
    LANDED_WORK = "landed work"
    WORKFLOW_FILE = "workflow file"
    FAILED_PART = "part of CI that failed"
    REPOSITORY_FILE = "repository file"
    REQUIRED_LIST = "required list"
    TARGET_BRANCH = "target branch"
    LANDED_COMMIT = "landed commit"
    TIME = "time"
    WEBHOOK = "webhook"
    REFERENCE = "reference"
