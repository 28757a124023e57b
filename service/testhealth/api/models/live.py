"""Requests of the endpoints for jobs that run, in snake_case."""

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from service.http.models import common
from service.http.models.common import (
    CommitSha,
    Integer,
    PullRequestNumber,
    Repository,
    SnakeRequest,
)
from service.http.models.shared import Uuid
from service.testhealth.api.models.tests import AboutTests, Text
from service.testhealth.api.models.uploads import ATTEMPT_MAX, Line
from service.testhealth.early_failures import NAME_MAX, CaseNames
from service.testhealth.operations.early_failures import EarlyReport
from service.testhealth.operations.repeats import LETTERS_MAX, Asked, Reported
from service.testhealth.operations.upload_values import UploadMeta
from service.testhealth.repeats import TESTS_MAX
from service.vocabulary import Sha


class RunningJob(AboutTests):
    """A job that runs tests, as it names itself in its upload."""

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

    def meta(self) -> UploadMeta:
        """As operations take it."""
        return UploadMeta(
            sha=Sha(self.sha.lower()),
            branch=self.branch or None,
            pr_number=self.pr_number,
            run_id=self.run_id or None,
            run_attempt=self.run_attempt or 1,
            job=self.job or "",
        )


class ReportEarlyFailure(RunningJob):
    """`/flaky-tests/report-early-failure`: a test that has ended, and the job that runs it."""

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
        meta = replace(self.meta(), source_root=self.source_root or "")
        test = CaseNames(self.name, self.classname or "", self.parent or "", self.file_path or "")
        return EarlyReport(meta, test, is_final=self.final, has_passed=self.passed or False)


class PlanRepeats(RunningJob):
    """`/flaky-tests/plan-repeats`: a job is done, and asks which tests to run again."""

    upload_id: Uuid
    """The upload of the job."""
    able: bool
    """Whether the runner has said that it can run single tests again."""

    def asked(self) -> Asked:
        """As operations take it."""
        return Asked(self.meta(), self.upload_id, self.able)


class RepeatedTest(SnakeRequest):
    """The runs of one test, in order."""

    test_id: Uuid
    """The test, as in the plan."""
    runs: Annotated[str, Field(min_length=1, max_length=LETTERS_MAX, pattern=common.ROUNDS)]
    """`P` for a run that passed, `F` for one that failed, `/` between processes. For example
    `PPFPP/PPPPP`."""


class ReportRepeats(RunningJob):
    """`/flaky-tests/report-repeats`: what came of a plan."""

    plan_id: Uuid
    """The plan."""
    seconds: Annotated[float, Field(ge=0, le=86_400)]
    """How long it took."""
    tests: Annotated[list[RepeatedTest], Field(max_length=TESTS_MAX)]
    """The tests that ran."""

    def reported(self) -> Reported:
        """As operations take it."""
        letters = {each.test_id: each.runs for each in self.tests}
        return Reported(self.meta(), self.plan_id, self.seconds, letters)


class ListSuspectedTests(Repository):
    """`/flaky-tests/list-suspected-tests`: at most 200 tests."""

    ignores_unknown = False

    sha: CommitSha
    """The commit that is tested."""
