"""Bodies of the endpoints of `headgate doctor`."""

from typing import Annotated

from pydantic import Field

from service.http.models.common import BRANCH, CommitSha, Integer, Named, Repository, Request

MINUTES_MAX = 60
Branch = Annotated[str, Field(min_length=1, max_length=255, pattern=BRANCH)]


class RunDoctor(Request):
    """`/runDoctor`; without a branch the only one with a queue, else the default branch."""

    repo: Repository
    target_branch: Branch | None = None


class StartDryTest(Named):
    """`/startDryTest`."""

    timeout_minutes: Annotated[Integer, Field(ge=1, le=MINUTES_MAX)] | None = None


class GetDryTest(Named):
    """`/getDryTest`: the branch and commit that `/startDryTest` answered."""

    branch: Branch
    sha: CommitSha


class EndDryTest(Named):
    """`/endDryTest`."""

    branch: Branch
