"""Bodies of the endpoints about uploads, in snake_case."""

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from service.http.models import common
from service.http.models.common import CommitSha, Integer, Moment, PullRequestNumber
from service.http.models.shared import Uuid
from service.testhealth.api.models.runner_ends import RunnerEndSent
from service.testhealth.api.models.tests import AboutTests
from service.testhealth.operations import parsing
from service.testhealth.operations.upload_values import UploadMeta
from service.testhealth.runner_ends import ENDS_MAX
from service.vocabulary import Sha

LINE_MAX = 255
URL_MAX = 2000
ATTEMPT_MAX = 1000
EXIT_CODE_MAX = 255
SESSION_UPLOADS_MAX = 10_000
UNSENT_FILES_MAX = 1_000_000

FORMATS = tuple(parsing.FORMATS)


def _report_format(value: object) -> object:
    """One of the formats, or `auto`, in any letter case."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise common.wrong("type", "must be a string")
    if value.lower() not in FORMATS:
        raise common.unknown_word(value, FORMATS)
    return value.lower()


Line = Annotated[str, Field(max_length=LINE_MAX, pattern=common.LINE)]
ReportFormat = Annotated[
    str,
    BeforeValidator(_report_format),
    WithJsonSchema({"type": "string", "enum": list(FORMATS)}),
]


class UploadTestResults(AboutTests):
    """The part `metadata` of `/flaky-tests/upload-test-results`: what was tested, and where."""

    sha: CommitSha
    """The commit that was tested."""
    tree_sha: CommitSha | None = None
    """Its tree."""
    branch: Line | None = None
    """The branch that was tested. For example `main`."""
    pr_number: PullRequestNumber | None = None
    """The pull request that was tested."""
    run_id: Line | None = None
    """The run of CI. For example `8123`."""
    run_attempt: Annotated[Integer, Field(ge=1, le=ATTEMPT_MAX)] | None = None
    """Which attempt of that run; 1 unless sent."""
    run_url: Annotated[str, Field(min_length=1, max_length=URL_MAX, pattern=common.WEB)] | None = (
        None
    )
    """Address of that run. For example `https://github.com/octo/widgets/actions/runs/8123`."""
    job: Line | None = None
    """The job of CI. For example `unit`."""
    variant: Line | None = None
    """The flavor of the job. For example `linux`."""
    source_root: Line | None = None
    """Cut off the beginning of file paths. For example `/builds/widgets`."""
    ran_at: Moment | None = None
    """When the test command started."""
    machine: Line | None = None
    """Name of the machine. For example `runner-7`."""
    format: ReportFormat | None = None
    """Format of the files; found out unless sent."""
    command_exit_code: Annotated[Integer, Field(ge=0, le=EXIT_CODE_MAX)] | None = None
    """What the test command returned; 0 unless sent."""
    runner: Line | None = None
    """The test runner. For example `pytest`."""
    command_key: Line | None = None
    """What tells test commands of one job apart. For example `unit`."""
    session: Line | None = None
    """What tells runs of a test command apart. For example `8123-1`."""
    session_uploads: Annotated[Integer, Field(ge=1, le=SESSION_UPLOADS_MAX)] | None = None
    """How many uploads the session has."""
    unsent_files: Annotated[Integer, Field(ge=0, le=UNSENT_FILES_MAX)] | None = None
    """How many report files were left out."""
    runner_ends: Annotated[list[RunnerEndSent], Field(max_length=ENDS_MAX)] | None = None
    """How the runners of the test command ended, as their plug-ins say."""
    dry_run: bool | None = None
    """Whether to answer only and store nothing."""

    def meta(self, codeowners: str | None) -> UploadMeta:
        """As operations take it; an empty text is one that was not sent."""
        return UploadMeta(
            sha=Sha(self.sha.lower()),
            tree_sha=None if self.tree_sha is None else Sha(self.tree_sha.lower()),
            branch=self.branch or None,
            pr_number=self.pr_number,
            run_id=self.run_id or None,
            run_attempt=self.run_attempt or 1,
            run_url=self.run_url,
            job=self.job or "",
            variant=self.variant or "",
            source_root=self.source_root or "",
            ran_at=self.ran_at,
            machine=self.machine or None,
            format=parsing.FORMATS[self.format or "auto"],
            command_exit_code=self.command_exit_code,
            runner=self.runner or "",
            command_key=self.command_key or "",
            session=self.session or "",
            session_uploads=self.session_uploads,
            unsent_files=self.unsent_files or 0,
            dry_run=self.dry_run or False,
            codeowners=codeowners,
            runner_ends=tuple(each.value() for each in self.runner_ends or ()),
        )


class DeleteUpload(AboutTests):
    """`/flaky-tests/delete-upload`."""

    upload_id: Uuid
    """The upload."""


class GetUpload(AboutTests):
    """`/flaky-tests/get-upload`."""

    upload_id: Uuid
    """The upload."""
