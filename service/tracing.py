"""Traces: what Headgate did for one submission, when, and how long it took.

A trace is one submission, and its ids follow from that of the submission, so the spans of all
instances and restarts join. Work that begins (a webhook, a turn, an effect, a call to the provider)
is *about* submissions that often turn up only in it, so a span is recorded when the outermost work
has ended, once in each of their traces. Without a recorder nothing is noted.

A span has no bodies, no texts of people and no addresses' queries (docs/design/security.md 7).
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import blake2b
from itertools import count
from types import TracebackType
from typing import Protocol
from uuid import UUID

Value = str | int | bool
Fields = Mapping[str, Value]

SUBMISSIONS_MAX = 50
"""The traces in which one work is recorded, such as a report about a whole batch."""
INNER_MAX = 100
"""The works inside of another one that are recorded."""
_BITS_64 = (1 << 64) - 1


class Side(StrEnum):
    """The side of a span: Headgate for itself, another system that asks it, or one that it asks."""

    OWN = "own"
    INCOMING = "incoming"
    OUTGOING = "outgoing"


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time. `parent` 0: the root of its trace. `error` empty: it succeeded."""

    trace: int
    id: int
    parent: int
    name: str
    side: Side
    began: datetime
    ended: datetime
    fields: Fields
    error: str = ""


class Recorder(Protocol):
    """A receiver of spans; called from the event loop alone, and must neither block nor raise."""

    def record(self, span: Span) -> None:
        """Take a span."""
        ...


@dataclass(slots=True)
class _Work:
    """Work under way, and what has ended within it."""

    traces: "Traces"
    name: str
    side: Side
    began: datetime
    fields: dict[str, Value]
    key: str
    ended: datetime | None = None
    error: str = ""
    inner: list["_Work"] = field(default_factory=list)
    submissions: dict[str, None] = field(default_factory=dict)


_current: ContextVar[_Work | None] = ContextVar("tracing", default=None)
_NOTHING: AbstractContextManager[None] = nullcontext()


class Traces:
    """The traces of one process, whose `instance` no other has; None for `recorder`: none."""

    __slots__ = ("_instance", "_now", "_numbers", "_recorder")

    def __init__(
        self, recorder: Recorder | None, now: Callable[[], datetime], instance: str
    ) -> None:
        self._recorder = recorder
        self._now = now
        self._instance = instance
        self._numbers = count()

    @property
    def are_on(self) -> bool:
        """Return whether somebody takes spans."""
        return self._recorder is not None

    def work(
        self, name: str, fields: Fields, side: Side = Side.OWN, began: datetime | None = None
    ) -> AbstractContextManager[None]:
        """Note work from here to the end of the block, inside of that under way, if any.

        An exception that ends the block is its error, by its type.
        """
        if self._recorder is None:
            return _NOTHING
        key = f"{self._instance}/{next(self._numbers)}"
        return _Open(_Work(self, name, side, began or self._now(), dict(fields), key))

    def submission(
        self, id_: str, name: str, times: tuple[datetime, datetime], **more: Value
    ) -> None:
        """Record the whole stay of a submission, which is the root of its trace.

        A field `error` says that it failed.
        """
        if self._recorder is not None:
            root = (trace_of(id_), root_of(id_), 0)
            self._recorder.record(_span(root, name, times, more))

    def part(
        self, id_: str, key: str, name: str, times: tuple[datetime, datetime], **more: Value
    ) -> None:
        """Record a span of a submission that has an id of its own, such as a test run."""
        if self._recorder is not None:
            ids = (trace_of(id_), _span_id(key, id_), root_of(id_))
            self._recorder.record(_span(ids, name, times, more))

    def end(self, work: _Work, outer: _Work | None) -> None:
        """Note the end of work; record it with all that it contains if it is the outermost."""
        work.ended = self._now()
        if outer is not None:
            if len(outer.inner) < INNER_MAX:
                outer.inner.append(work)
            outer.submissions.update(work.submissions)
            return
        for id_ in list(work.submissions)[:SUBMISSIONS_MAX]:
            self._record(work, id_, root_of(id_))

    def _record(self, work: _Work, id_: str, parent: int) -> None:
        if self._recorder is None or work.ended is None:
            return
        own, error = _span_id(work.key, id_), work.error
        times = (work.began, work.ended)
        span = (trace_of(id_), own, parent, work.name, work.side, *times, work.fields, error)
        self._recorder.record(Span(*span))
        for each in work.inner:
            self._record(each, id_, own)


class _Open:
    """The block of some work."""

    __slots__ = ("_outer", "_token", "_work")

    def __init__(self, work: _Work) -> None:
        self._work = work
        self._outer: _Work | None = None
        self._token: Token[_Work | None] | None = None

    def __enter__(self) -> None:
        self._outer = _current.get()
        self._token = _current.set(self._work)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            _current.reset(self._token)
        if kind is not None:
            self._work.error = kind.__name__
        self._work.traces.end(self._work, self._outer)


OFF = Traces(None, lambda: datetime.min.replace(tzinfo=UTC), "")
"""Those of tools, tests, and of services without a collector."""


def is_under_way() -> bool:
    """Return whether some work is noted now."""
    return _current.get() is not None


def inside(name: str, fields: Fields, side: Side = Side.OWN) -> AbstractContextManager[None]:
    """Note work inside of that under way; where none is under way, nothing is noted."""
    outer = _current.get()
    return _NOTHING if outer is None else outer.traces.work(name, fields, side)


def note(**fields: Value) -> None:
    """Add fields to the work under way."""
    work = _current.get()
    if work is not None:
        work.fields.update(fields)


def about(*submissions: str) -> None:
    """Note the submissions that the work under way is about."""
    work = _current.get()
    if work is not None:
        work.submissions.update(dict.fromkeys(submissions))


def failed(error: BaseException) -> None:
    """Note that the work under way failed, where its error goes no further."""
    work = _current.get()
    if work is not None:
        work.error = type(error).__name__


def trace_of(submission: str) -> int:
    """Return the trace of a submission: its id without the hyphens."""
    try:
        return UUID(submission).int
    except ValueError:
        return int.from_bytes(blake2b(submission.encode(), digest_size=16).digest())


def root_of(submission: str) -> int:
    """Return the id of the root span in the trace of a submission."""
    return trace_of(submission) & _BITS_64


def _span_id(key: str, submission: str) -> int:
    return int.from_bytes(blake2b(f"{key}/{submission}".encode(), digest_size=8).digest())


def _span(
    ids: tuple[int, int, int], name: str, times: tuple[datetime, datetime], more: dict[str, Value]
) -> Span:
    error = str(more.pop("error", ""))
    return Span(*ids, name, Side.OWN, *times, more, error)
