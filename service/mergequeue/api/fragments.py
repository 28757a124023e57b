"""Encoded answers of hot reads, part by part, kept until what they show changes.

A view that has not changed comes as the same object, so its bytes are kept beside it. An
entry is a frozen value: as long as the same object stands in the queue, everything a record
says of it holds but for its place in the line and the time left, so the bytes before and
after these are kept as well (PERFORMANCE.md 3.2, V1 to V3). `responses.py` says what the
bytes mean; a test holds the two equal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import compress, count
from operator import attrgetter, is_not
from typing import TypeVar

import orjson
from cachetools import LRUCache

from service.http.enum_case import Case, as_it_is
from service.http.rendering import Json
from service.mergequeue.api import responses
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import Entry
from service.mergequeue.operations.views import Conclusion, PullRequestView, QueueView
from service.text.times import TimeLeft
from service.vocabulary import QueueRef

ENTRIES_MAX = 20_000
QUEUES_BYTES_MAX = 64 * 1024 * 1024
"""Answers about whole queues that are kept; one of 5,000 pull requests has some ten million."""
TEST_PAGES_MAX = 100
TEST_PARTS_MAX = 20_000
"""Rows of tests that are kept, and parts of rows: some 30 MiB."""

Row = TypeVar("Row")
Part = TypeVar("Part")
Home = TypeVar("Home")


@dataclass(frozen=True, slots=True)
class Kept:
    """Parts of one record, and what they were made from."""

    entry: Entry
    queue: QueueRef
    config: QueueConfig
    conclusion: Conclusion | None
    has_targets: bool
    run: str | None
    identity: bytes
    readiness: bytes
    standing: bytes
    course: bytes

    def shows(self, view: PullRequestView) -> bool:
        """Whether the parts still say what the view says."""
        return (
            self.entry is view.entry
            and (self.queue is view.queue or self.queue == view.queue)
            and self.config is view.config
            and self.conclusion is view.conclusion
            and self.has_targets == view.has_targets
            and self.run == view.run
        )


@dataclass(frozen=True, slots=True)
class Encoded:
    """A queue's answer, and the piece of each of its pull requests, in order."""

    view: QueueView
    pieces: list[bytes]
    whole: bytes

    @property
    def size(self) -> int:
        """Its bytes, and as many again in pieces."""
        return 2 * len(self.whole)


class Fragments:
    """The parts kept by one process; at its bound it forgets everything and starts again."""

    def __init__(self, public_url: str | None, case: Case = as_it_is) -> None:
        self._public_url = public_url
        self._case = case
        self._entries: dict[tuple[int, int], Kept] = {}
        self._records: dict[tuple[int, int], tuple[PullRequestView, bytes]] = {}
        self._queues: LRUCache[int, Encoded] = LRUCache(QUEUES_BYTES_MAX, attrgetter("size"))
        self._tests: LRUCache[int, tuple[object, bytes]] = LRUCache(TEST_PAGES_MAX)
        self._parts: dict[tuple[object, int], tuple[object, bytes]] = {}

    def record(self, view: PullRequestView) -> bytes:
        """One pull request by itself, without its timeline."""
        key = (view.queue.id, view.entry.pr)
        found = self._records.get(key)
        if found is not None and found[0] is view:
            return found[1]
        kept = self._kept(view)
        encoded = b"{%b,%b,%b,%b,%b}" % (
            kept.identity,
            kept.readiness,
            kept.standing,
            _place(view.position, view.length, view.eta),
            kept.course,
        )
        if len(self._records) >= ENTRIES_MAX:
            self._records.clear()
        self._records[key] = (view, encoded)
        return encoded

    def queue(self, view: QueueView, now: datetime) -> bytes:
        """A queue with its pull requests."""
        found = self._queues.get(view.queue.id)
        if found is not None and found.view is view:
            return found.whole
        pieces = self._pieces(view, found)
        cut = b""
        if len(view.entries) > responses.ENQUEUED_MAX:
            cut = b',"enqueuedPullRequestsTruncated":true'
        head = self._members(responses.queue(view, now))
        encoded = _enclosed(b'{%b,"enqueuedPullRequests":[' % head, pieces, b"]%b}" % cut)
        self._queues[view.queue.id] = Encoded(view, pieces, encoded)
        return encoded

    def tests(self, rows: tuple[Row, ...], spelled: Callable[[Row], bytes]) -> bytes:
        """The rows of a page of tests, as an array; kept as long as the same rows come.

        The rows are kept, too, so that no others can have their identity.
        """
        found = self._tests.get(id(rows))
        if found is not None and found[0] is rows:
            return found[1]
        encoded = b"[%b]" % b",".join(map(spelled, rows))
        self._tests[id(rows)] = (rows, encoded)
        return encoded

    def part(self, spelled: Callable[[Home, Part], object], home: Home, part: Part) -> bytes:
        """What a row or a part of it says; kept as long as the very part comes, which has one home.

        The part is kept, too, so that no other can have its identity.
        """
        key = (spelled, id(part))
        found = self._parts.get(key)
        if found is not None:
            return found[1]
        if len(self._parts) >= TEST_PARTS_MAX:
            self._parts.clear()
        encoded = orjson.dumps(spelled(home, part))
        self._parts[key] = (part, encoded)
        return encoded

    def _pieces(self, view: QueueView, before: Encoded | None) -> list[bytes]:
        """One piece a pull request; where the same view stood before, the piece from there."""
        shown = view.entries[: responses.ENQUEUED_MAX]
        if before is None or len(before.pieces) != len(shown):
            return [self._listed(each) for each in shown]
        pieces = before.pieces.copy()
        for place in compress(count(), map(is_not, shown, before.view.entries)):
            pieces[place] = self._listed(shown[place])
        return pieces

    def _listed(self, view: PullRequestView) -> bytes:
        kept = self._kept(view)
        return b"{%b,%b,%b,%b}" % (
            kept.identity,
            kept.standing,
            _place(view.position, view.length, view.eta),
            kept.course,
        )

    def _kept(self, view: PullRequestView) -> Kept:
        key = (view.queue.id, view.entry.pr)
        kept = self._entries.get(key)
        if kept is not None and kept.shows(view):
            return kept
        if len(self._entries) >= ENTRIES_MAX:
            self._entries.clear()
        kept = self._entries[key] = Kept(
            entry=view.entry,
            queue=view.queue,
            config=view.config,
            conclusion=view.conclusion,
            has_targets=view.has_targets,
            run=view.run,
            identity=self._members(responses.identity(view)),
            readiness=self._members(responses.readiness(view)),
            standing=self._members(responses.standing_of(view)),
            course=self._members(responses.course(view, self._public_url)),
        )
        return kept

    def _members(self, shown: Json) -> bytes:
        return _members(self._case(shown))


def _enclosed(start: bytes, pieces: list[bytes], end: bytes) -> bytes:
    """An array's members with what stands around them.

    One join, because a body of a megabyte takes longer to copy or format than to put together.
    """
    if not pieces:
        return start + end
    around = pieces.copy()
    around[0] = start + around[0]
    around[-1] += end
    return b",".join(around)


def _members(shown: Json) -> bytes:
    """The members of an object, without its braces."""
    return orjson.dumps(shown)[1:-1]


def _place(position: int | None, length: int, eta: TimeLeft | None) -> bytes:
    if eta is not None:
        return _members(responses.place(position, length, eta))
    if position is None:
        return b'"position":null,"queueLength":%d,"eta":null' % length
    return b'"position":%d,"queueLength":%d,"eta":null' % (position, length)
