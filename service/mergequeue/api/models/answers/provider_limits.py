"""The answer of `/getProviderLimits`."""

from typing import Annotated, Literal

from service.http.models.answers.common import Answer, Count, Time, open_word
from service.provider.budget import LimitName

PressureWord = Literal["none", "high", "critical"]


class LimitShown(Answer):
    """How much of one limit is used; `freesAt` is when some of it becomes free."""

    name: Annotated[str, open_word(LimitName)]
    """The limit."""
    used: Count
    """How much of it is used."""
    max: Count
    """How much Headgate may use."""
    left: Count
    """How much is left."""
    frees_at: Time | None
    """When some of it becomes free; null when nothing is used."""


class CallsShown(Answer):
    """Calls of the last hour by what they count as at the provider."""

    read: Count
    """Reads."""
    free_read: Count
    """Reads that the provider does not count, because nothing had changed."""
    query: Count
    """GraphQL queries."""
    write: Count
    """Writes."""
    content: Count
    """Writes that create something people are told of."""
    push: Count
    """Pushes."""


class CallsPerLanding(Answer):
    """The same, divided by the pull requests that landed in that hour."""

    read: float
    """Reads."""
    free_read: float
    """Reads that the provider does not count, because nothing had changed."""
    query: float
    """GraphQL queries."""
    write: float
    """Writes."""
    content: float
    """Writes that create something people are told of."""
    push: float
    """Pushes."""


class ProviderLimits(Answer):
    """What the process that answers used of the provider's limits; calls are of the last hour.

    `pressure`, `calls` and `landed` are null, and `limits` is empty, before its first call to the
    repository. `perLandedPullRequest` is null while it landed none in the hour.
    """

    pressure: PressureWord | None
    """How close the fullest limit is; null before the first call."""
    limits: list[LimitShown]
    """Every limit."""
    calls: CallsShown | None
    """Calls of the last hour, by kind; null before the first call."""
    landed: Count | None
    """Pull requests that landed in the last hour; null before the first call."""
    per_landed_pull_request: CallsPerLanding | None
    """Calls for each landed pull request; null without any."""
