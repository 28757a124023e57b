"""Bodies of the endpoints about uploads, in snake_case."""

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from service.http.models import common
from service.http.models.common import CommitSha, Integer, Moment, PullRequestNumber
from service.http.models.shared import Uuid
from service.testhealth.api.models.tests import AboutTests
from service.testhealth.operations import parsing
from service.testhealth.operations.upload_values import UploadMeta
from service.vocabulary import Sha

LINE_MAX = 255
URL_MAX = 2000
ATTEMPT_MAX = 1000
EXIT_CODE_MAX = 255
SESSION_UPLOADS_MAX = 10_000
UNSENT_FILES_MAX = 1_000_000

FORMATS = tuple(parsing.FORMATS)


def report_format(value: object) -> object:
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
    BeforeValidator(report_format),
    WithJsonSchema({"type": "string", "enum": list(FORMATS)}),
]


class UploadTestResults(AboutTests):
    """The part `metadata` of `/flaky-tests/upload-test-results`: what was tested, and where."""

    sha: CommitSha
    tree_sha: CommitSha | None = None
    branch: Line | None = None
    pr_number: PullRequestNumber | None = None
    run_id: Line | None = None
    run_attempt: Annotated[Integer, Field(ge=1, le=ATTEMPT_MAX)] | None = None
    run_url: Annotated[str, Field(min_length=1, max_length=URL_MAX, pattern=common.WEB)] | None = (
        None
    )
    job: Line | None = None
    variant: Line | None = None
    source_root: Line | None = None
    ran_at: Moment | None = None
    machine: Line | None = None
    format: ReportFormat | None = None
    command_exit_code: Annotated[Integer, Field(ge=0, le=EXIT_CODE_MAX)] | None = None
    runner: Line | None = None
    command_key: Line | None = None
    session: Line | None = None
    session_uploads: Annotated[Integer, Field(ge=1, le=SESSION_UPLOADS_MAX)] | None = None
    unsent_files: Annotated[Integer, Field(ge=0, le=UNSENT_FILES_MAX)] | None = None
    dry_run: bool | None = None

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
        )


class DeleteUpload(AboutTests):
    """`/flaky-tests/delete-upload`."""

    upload_id: Uuid


class GetUpload(AboutTests):
    """`/flaky-tests/get-upload`."""

    upload_id: Uuid
