"""The content of one upload about tests, as evidence is drawn from it.

Reports, files and metadata are gone here; tests are numbers within their repository.

See docs/design/reports.md 2; docs/design/detector.md 3, 4.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from service.testhealth.reports.results import Outcome

PASSED, FAILED = "P", "F"
LETTERS = {Outcome.PASSED: PASSED, Outcome.FAILED: FAILED, Outcome.SKIPPED: ""}
"""An attempt as a letter; what was skipped says nothing."""


class UploadClass(StrEnum):
    """The owners of an upload's results, and so what they may change (docs/design/reports.md 2)."""

    UNTRUSTED = "untrusted"
    QUEUE = "queue"
    PR = "pr"
    STABLE = "stable"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class EvidenceUpload:
    """An eligible upload.

    `attempts` has the letters, in order, of each test that failed or was tried more than once;
    all others that passed stand in the set `passed`, `passed_size` of them. The attempts of
    `muddled` tests do not compare; none of them is in the set. Equal times are ordered by
    `digest`. `position` is how many commits the history of its commit has, None if unknown.
    `begun_by` is the account that began its CI run, empty if unknown; None: nobody looked.
    """

    id: str
    digest: str
    at: datetime
    kind: UploadClass
    job: str
    code: str
    sha: str
    is_mass: bool
    passed: str | None
    passed_size: int
    run: str = ""
    run_attempt: int = 1
    machine: str = ""
    branch: str = ""
    pr: int | None = None
    attempts: Mapping[int, str] = field(default_factory=dict)
    muddled: frozenset[int] = frozenset()
    position: int | None = None
    begun_by: str | None = None

    @property
    def tests_run(self) -> int:
        """Tests that passed or failed."""
        return self.passed_size + len(self.attempts)

    @property
    def passing(self) -> int:
        """Tests with a passed comparable attempt."""
        if self.is_mass:
            return 0
        retried = (no for no, letters in self.attempts.items() if PASSED in letters)
        return self.passed_size + sum(1 for no in retried if no not in self.muddled)

    @property
    def source(self) -> str:
        """Return whose events are capped together, empty: nobody's (docs/design/detector.md 3).

        The branch speaks for a pull request that nobody could name. What has neither is of one
        source too: events without a cap would let a single checkout call any test flaky.
        """
        match self.kind:
            case UploadClass.PR if self.pr is not None:
                return f"#{self.pr}"
            case UploadClass.PR | UploadClass.OTHER:
                return f"/{self.branch}"
        return ""

    @property
    def author(self) -> str:
        """Return whose lone failures are capped together, empty: unknown (detector.md 4).

        Uploads of earlier versions do not tell, so their pull requests stand for accounts.
        """
        return self.source if self.begun_by is None else self.begun_by

    @property
    def day(self) -> int:
        """Its UTC day, as `date.toordinal`."""
        return self.at.toordinal()


class PassedSets(Protocol):
    """The sets that uploads name."""

    def members(self, keys: Iterable[str], nos: Sequence[int]) -> Mapping[str, Sequence[int]]:
        """Key of each set → those of the tests that are in it."""
        ...

    def numbers(self, key: str) -> Iterable[int]:
        """All tests in a set."""
        ...
