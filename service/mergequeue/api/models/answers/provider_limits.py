"""The answer of `/getProviderLimits`."""

from typing import Annotated, Literal

from service.http.models.answers.common import Answer, Count, Time, open_word
from service.provider.budget import LimitName

PressureWord = Literal["none", "high", "critical"]


class LimitShown(Answer):
    """How much of one limit is used; `freesAt` is when some of it becomes free."""

    name: Annotated[str, open_word(LimitName)]
    used: Count
    max: Count
    left: Count
    frees_at: Time | None


class CallsShown(Answer):
    """Calls of the last hour by what they count as at the provider."""

    read: Count
    free_read: Count
    query: Count
    write: Count
    content: Count
    push: Count


class CallsPerLanding(Answer):
    """The same, divided by the pull requests that landed in that hour."""

    read: float
    free_read: float
    query: float
    write: float
    content: float
    push: float


class ProviderLimits(Answer):
    """What the process that answers used of the provider's limits; calls are of the last hour.

    `pressure`, `calls` and `landed` are null, and `limits` is empty, before its first call to the
    repository. `perLandedPullRequest` is null while it landed none in the hour.
    """

    pressure: PressureWord | None
    limits: list[LimitShown]
    calls: CallsShown | None
    landed: Count | None
    per_landed_pull_request: CallsPerLanding | None
