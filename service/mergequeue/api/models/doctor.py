"""Bodies of the endpoints of `headgate doctor`."""

from typing import Annotated

from pydantic import Field

from service.http.models.common import BRANCH, CommitSha, Integer, Named, Repository, Request

MINUTES_MAX = 60
Branch = Annotated[str, Field(min_length=1, max_length=255, pattern=BRANCH)]


class RunDoctor(Request):
    """`/runDoctor`; without a branch the only one with a queue, else the default branch."""

    repo: Repository
    """The repository."""
    target_branch: Branch | None = None
    """The branch to examine; without it the only one with a queue, else the default branch. For
    example `main`.
    """


class StartDryTest(Named):
    """`/startDryTest`."""

    timeout_minutes: Annotated[Integer, Field(ge=1, le=MINUTES_MAX)] | None = None
    """Minutes to wait for CI; the setting of the queue unless sent."""


class GetDryTest(Named):
    """`/getDryTest`: the branch and commit that `/startDryTest` answered."""

    branch: Branch
    """The test branch: `branch` of the answer to `/startDryTest`. For example `headgate/dry/1`."""
    sha: CommitSha
    """Its commit: `sha` of that answer."""


class EndDryTest(Named):
    """`/endDryTest`."""

    branch: Branch
    """The test branch: `branch` of the answer to `/startDryTest`. For example `headgate/dry/1`."""
