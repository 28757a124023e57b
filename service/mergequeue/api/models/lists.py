"""Bodies of the endpoints that list."""

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue

from service.database.paging import PageSelection
from service.http.models import common
from service.http.models.common import (
    Integer,
    Moment,
    Named,
    NamedPullRequest,
    PullRequestNumber,
    Repository,
)
from service.http.models.shared import TAKE, Cursor, Listed, Take
from service.mergequeue.engine.states import EntryState, RunStatus
from service.mergequeue.operations.lists import PullRequestFilter, RunRequest

NUMBERS_MAX = 50
EVENTS = 100
EVENTS_MAX = 500
OFFSET_MAX = 10_000
# There are eight states; a request may name one twice.
STATES_MAX = 50


class GetSubmittedPullRequests(Named):
    """`/getSubmittedPullRequests`."""

    pr_numbers: Annotated[list[PullRequestNumber], Field(min_length=1, max_length=NUMBERS_MAX)]
    """Numbers of the pull requests."""
    include_timeline: bool | None = None
    """Whether to answer its past too."""


def _as_list(value: object) -> object:
    """Return one word stands for the array of it, and is refused by the name of the field."""
    return [_STATE(value)] if isinstance(value, str) else value


_STATE = common.one_of(EntryState)
_WORD: JsonSchemaValue = {"type": "string", "enum": [each.value for each in EntryState]}
States = Annotated[
    list[Annotated[EntryState, BeforeValidator(_STATE)]],
    Field(min_length=1, max_length=STATES_MAX),
    BeforeValidator(_as_list),
    WithJsonSchema(
        {
            "anyOf": [
                _WORD,
                {"type": "array", "items": _WORD, "minItems": 1, "maxItems": STATES_MAX},
            ]
        }
    ),
]


class ListPullRequests(Named, Listed):
    """`/listPullRequests`; a time leaves out what is open."""

    state: States | None = None
    """One state or several; all without it. For example `FAILED`."""
    since: Moment | None = None
    """Only those that ended at this time or later."""
    until: Moment | None = None
    """Only those that ended before this time."""

    def pull_request_filter(self) -> PullRequestFilter:
        """Return which pull requests to list."""
        states = frozenset(EntryState) if self.state is None else frozenset(self.state)
        return PullRequestFilter(states, self.since, self.until)


class GetPullRequestTimeline(NamedPullRequest):
    """`/getPullRequestTimeline`."""

    take: Annotated[Integer, Field(ge=1, le=EVENTS_MAX)] | None = None
    """How many events to answer; 100 unless sent."""
    cursor: Cursor | None = None
    """Where to go on: the cursor of the answer before; without it the oldest event."""

    def page(self) -> PageSelection:
        """Return which events are requested."""
        return PageSelection(EVENTS if self.take is None else self.take, self.cursor)


class ListQueueEvents(Named):
    """`/listQueueEvents`: without a cursor from `since`, without both from now on."""

    take: Annotated[Integer, Field(ge=1, le=EVENTS_MAX)] | None = None
    """How many events to answer; 100 unless sent."""
    cursor: Cursor | None = None
    """Where to go on: `cursor` of the answer before."""
    since: Moment | None = None
    """Begin with events at this time or later, where no cursor is sent."""
    wait_for: Annotated[int, BeforeValidator(common.whole), Field(ge=1, le=common.WAIT_MAX_S)] | (
        None
    ) = None
    """Seconds to wait for the next event if there is none; do not wait unless sent."""

    def page(self) -> PageSelection:
        """Return which events are requested."""
        return PageSelection(EVENTS if self.take is None else self.take, self.cursor)


class StreamQueueEvents(Repository):
    """`/streamQueueEvents`: without a cursor, and without `Last-Event-ID`, from now on."""

    ignores_unknown = False

    target_branch: Annotated[str, Field(min_length=1, max_length=255, pattern=common.BRANCH)]
    """The branch of the queue, without `refs/heads/`. For example `main`."""
    cursor: Cursor | None = None
    """Where to begin: `cursor` of `/listQueueEvents`."""


class ListQueues(Listed):
    """`/listQueues`; without a repository those of all that the token may see."""

    repo: Repository | None = None
    """Only the queues of this repository."""


class ListMergeQueueTestingResults(Named):
    """`/listMergeQueueTestingResults`."""

    offset: Annotated[Integer, Field(ge=0, le=OFFSET_MAX)] | None = None
    """How many rows to leave out at the beginning. New runs move the others; to read the whole
    list, follow `cursor`.
    """
    cursor: Cursor | None = None
    """Where to go on: `nextCursor` of the answer before; without it the first page."""
    take: Take | None = None
    """How many rows to answer; 50 unless sent."""
    pr_number: PullRequestNumber | None = None
    """Only test runs that tested this pull request."""
    status: Annotated[RunStatus, BeforeValidator(common.one_of(RunStatus))] | None = None
    """Only test runs of this status."""

    def request(self) -> RunRequest:
        """Return which runs to list."""
        page = PageSelection(TAKE if self.take is None else self.take, self.cursor)
        return RunRequest(self.pr_number, self.status, page, self.offset or 0)
