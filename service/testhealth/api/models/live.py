"""Requests of the endpoints for jobs that run, in snake_case."""

from typing import Annotated

from pydantic import Field

from service.http.models import common
from service.http.models.common import CommitSha, Integer, PullRequestNumber, Repository
from service.testhealth.api.models.tests import AboutTests, Text
from service.testhealth.api.models.uploads import ATTEMPT_MAX, Line
from service.testhealth.early_failures import CaseNames
from service.testhealth.operations.early_failures import EarlyReport
from service.testhealth.operations.upload_values import UploadMeta
from service.vocabulary import Sha

NAME_MAX = 1000


class ReportEarlyFailure(AboutTests):
    """`/flaky-tests/report-early-failure`: a test that has ended, and the job that runs it."""

    sha: CommitSha
    """The commit that is tested."""
    branch: Line | None = None
    """The branch that is tested. For example `main`."""
    pr_number: PullRequestNumber | None = None
    """The pull request that is tested."""
    run_id: Line | None = None
    """The run of CI. For example `8123`."""
    run_attempt: Annotated[Integer, Field(ge=1, le=ATTEMPT_MAX)] | None = None
    """Which attempt of that run; 1 unless sent."""
    job: Line | None = None
    """The job of CI. For example `unit`."""
    source_root: Line | None = None
    """Cut off the beginning of the file's path. For example `/builds/widgets`."""
    name: Annotated[str, Field(min_length=1, max_length=NAME_MAX, pattern=common.ANYTHING)]
    """Name of the test, as in reports. For example `test_total`."""
    classname: Text | None = None
    """Its class in reports. For example `TestCart`."""
    parent: Text | None = None
    """Its suite in reports. For example `ui`."""
    file_path: Text | None = None
    """Its file in reports. For example `ui/test_cart.py`."""
    final: bool
    """Whether the runner has tried the test for the last time."""
    passed: bool | None = None
    """Whether the test has passed after all: its failure is taken back."""

    def report(self) -> EarlyReport:
        """As operations take it."""
        meta = UploadMeta(
            sha=Sha(self.sha.lower()),
            branch=self.branch or None,
            pr_number=self.pr_number,
            run_id=self.run_id or None,
            run_attempt=self.run_attempt or 1,
            job=self.job or "",
            source_root=self.source_root or "",
        )
        test = CaseNames(self.name, self.classname or "", self.parent or "", self.file_path or "")
        return EarlyReport(meta, test, is_final=self.final, has_passed=self.passed or False)


class ListSuspectedTests(Repository):
    """`/flaky-tests/list-suspected-tests`: at most 200 tests."""

    ignores_unknown = False

    sha: CommitSha
    """The commit that is tested."""
