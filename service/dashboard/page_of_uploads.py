"""The page that lists the last uploads of a repository."""

from dataclasses import dataclass
from datetime import datetime

from service.dashboard import page_of_tests
from service.dashboard.page_of_tests import CiStep
from service.runtime import Runtime
from service.testhealth.operations import page_of_upload
from service.testhealth.operations.records import RepositoryAddresses


@dataclass(frozen=True, slots=True)
class UploadRow:
    """One upload; `problem` is why none of it counts, or empty."""

    id: str
    received_at: datetime
    sha: str
    branch: str
    prs: tuple[int, ...]
    job: str
    variant: str
    tests: int
    failed: int
    skipped: int
    warnings: int
    problem: str


@dataclass(frozen=True, slots=True)
class UploadsPage:
    """The last 100 uploads, the newest first."""

    rows: tuple[UploadRow, ...]
    ci: CiStep

    @property
    def heading(self) -> str:
        """`The last 100 uploads`."""
        count = len(self.rows)
        if not count:
            return "There are no uploads yet"
        return "One upload" if count == 1 else f"The last {count} uploads"


async def read(runtime: Runtime, where: RepositoryAddresses) -> UploadsPage:
    """Return the page."""
    found = await page_of_upload.newest(runtime, where.repository)
    rows = tuple(
        UploadRow(
            id=each.id,
            received_at=each.received_at,
            sha=each.sha,
            branch=each.branch or "",
            prs=each.prs,
            job=each.job,
            variant=each.variant,
            tests=each.counts.get("tests", 0),
            failed=each.failures,
            skipped=each.counts.get("skipped", 0),
            warnings=len(each.warnings),
            problem=each.refusal or "",
        )
        for each in found
    )
    return UploadsPage(rows, page_of_tests.ci_step(runtime.options, where.repository))
