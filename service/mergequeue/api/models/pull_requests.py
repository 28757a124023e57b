"""Bodies of the pull request endpoints."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue

from service.errors import FieldError
from service.http.models import common
from service.http.models.common import (
    Named,
    NamedPullRequest,
    PullRequest,
    PullRequestWithHead,
    Reason,
    Repository,
    Request,
)
from service.mergequeue.engine import targets
from service.mergequeue.engine.model import DEFAULT_PRIORITY
from service.mergequeue.engine.targets import Targets
from service.mergequeue.operations.setting_types import Priority
from service.vocabulary import Sha

TARGET_BYTES_MAX = 4096
UNDOES_MAX = 20
Landing = Annotated[str, Field(pattern=common.LANDING)]
_ALL_WORDS = frozenset({"ALL", "IMPACTS_ALL"})


class PullRequestToSubmit(PullRequest):
    """Which pull request, and optionally the head that is meant, or its first characters."""

    sha: Annotated[str, Field(pattern=common.COMMIT_START)] | None = None
    """The head that you mean, or its first 7 characters or more; another head is refused. For
    example `9f2c1ab`.
    """


class SubmitPullRequest(Named):
    """`/submitPullRequest`; null as priority means the default, absence leaves it."""

    ignores_unknown = True

    pr: PullRequestToSubmit
    """The pull request to submit."""
    priority: Priority | None = None
    """A number, lower first, or a level; null means `medium`. Without it a queued pull request
    keeps its priority.
    """
    no_batch: bool | None = None
    """Whether to test it alone."""
    undoes: Annotated[list[Landing], Field(max_length=UNDOES_MAX)] | None = None
    """Merged work that it takes back on purpose: `#` and the number of each pull request, or the
    first 10 characters or more of a commit. Those named before count too. For example `#7`.
    """
    again: bool | None = None
    """Whether to test a head again that has failed before; needs a token of role `admin`."""

    def wanted_priority(self) -> int | None:
        """Return the priority to set, None when the field was not sent."""
        if "priority" in self.model_fields_set and self.priority is None:
            return DEFAULT_PRIORITY
        return self.priority


class CancelPullRequest(NamedPullRequest):
    """`/cancelPullRequest`."""

    ignores_unknown = True

    reason: Reason | None = None
    """Why it is taken out; the pull request shows it. For example `superseded by #490`."""


class RestartTestsOnPullRequest(NamedPullRequest):
    """`/restartTestsOnPullRequest`."""

    ignores_unknown = True


class GetSubmittedPullRequest(NamedPullRequest, common.MayWait):
    """`/getSubmittedPullRequest`."""

    ignores_unknown = True

    include_timeline: bool | None = None
    """Whether to answer its past too."""


class PreviewPriority(NamedPullRequest):
    """`/previewPriority`: another priority of a queued pull request."""

    priority: Priority
    """The priority to try: a number, lower first, or a level."""


class FindQueue(Request):
    """`/findQueue`: which queue is this pull request's."""

    repo: Repository
    """The repository."""
    pr: PullRequest
    """The pull request."""


class ExplainPullRequest(NamedPullRequest):
    """`/explainPullRequest`."""


class GetNextStep(NamedPullRequest, common.MayWait):
    """`/getNextStep`."""


class PreviewCancelPullRequest(NamedPullRequest):
    """`/previewCancelPullRequest`."""


def _targets_in(value: object) -> object:
    """Return what is touched: `ALL`, or names (docs/design/http.md 9).

    The array may have a million members, so it is one pass over plain values instead of a
    type that is asked about each.
    """
    if isinstance(value, str):
        if value not in _ALL_WORDS:
            raise common.wrong("enum", 'must be an array of strings or "ALL"')
        return targets.ALL
    if not isinstance(value, list):
        raise common.wrong("type", 'must be an array of strings or "ALL"')
    # One by one: a set of half a million names at one go would keep every other thread waiting.
    distinct = frozenset(_names(value))
    return Targets(distinct) if _ALL_WORDS.isdisjoint(distinct) else targets.ALL


def _names(value: list[object]) -> Iterator[str]:
    for place, name in enumerate(value):
        if type(name) is not str:
            raise common.wrong("type", f"has a member that is no string, the one at index {place}")
        if not name or (len(name) * 4 > TARGET_BYTES_MAX and len(name.encode()) > TARGET_BYTES_MAX):
            raise common.wrong("length", f"must hold 1 to 4096 bytes a target, see index {place}")
        yield name


ASCII = r"^[\x01-\x7f]+$"
# Bytes are bounded, which a schema can only say of characters: of any, or of ASCII ones.
_TARGETS_SCHEMA: JsonSchemaValue = {
    "anyOf": [
        {
            "type": "array",
            "items": {
                "type": "string",
                "minLength": 1,
                "anyOf": [
                    {"maxLength": TARGET_BYTES_MAX // 4, "pattern": common.ANYTHING},
                    {"maxLength": TARGET_BYTES_MAX, "pattern": ASCII},
                ],
            },
        },
        {"type": "string", "enum": sorted(_ALL_WORDS)},
    ]
}


class SetImpactedTargets(Named):
    """`/setImpactedTargets`; the pull request need not be queued."""

    ignores_unknown = True

    pr: PullRequestWithHead
    """The pull request, and its head."""
    impacted_targets: Annotated[
        object, BeforeValidator(_targets_in), WithJsonSchema(_TARGETS_SCHEMA)
    ]
    """Names of the targets that it changes, or `ALL`. For example `["//app", "//lib"]`"""

    def targets(self) -> Targets:
        """Return what was sent."""
        if not isinstance(self.impacted_targets, Targets):
            raise TypeError("the validator gives nothing else")
        return self.impacted_targets

    def fork_head(self) -> Sha:
        """Return the head that a fork's CI run must name. Raises Malformed(/pr/sha)."""
        head = self.pr.head()
        if head is None:
            raise common.refused((FieldError("/pr/sha", "missing", "is required"),))
        return head
