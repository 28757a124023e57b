"""Encoded answers of the reads that clients poll, kept while their views stay the same objects.

Building and encoding the answer for one entry takes about 50 µs. The goal for `/getQueue` with
1,000 entries is three times what it costs to send its bytes, which is about 0.15 ms.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from itertools import compress, count
from operator import attrgetter, is_not

import orjson
from cachetools import LRUCache

from service.http.encoding import Encoder
from service.http.waiting import Versioned
from service.mergequeue.api import responses
from service.mergequeue.api.models.answers.pull_requests import ListedSubmission
from service.mergequeue.api.models.answers.queues import ENQUEUED_MAX
from service.mergequeue.engine.checked import CheckedName
from service.mergequeue.operations.views import PullRequestView, QueueView
from service.runtime import Options

SUBMISSIONS_MAX = 20_000
QUEUES_BYTES_MAX = 64 * 1024 * 1024
"""The answer for a queue of 5,000 pull requests has about ten million bytes."""


@dataclass(frozen=True, slots=True)
class EncodedQueue:
    """The answer for a queue, and the part of each of its entries, in order."""

    view: QueueView
    entries: list[orjson.Fragment]
    whole: Versioned

    @property
    def size(self) -> int:
        """The bytes of the answer, and of its parts."""
        return 2 * len(self.whole.body)


class EncodedAnswers:
    """The encoded answers that one application keeps."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._encoder = Encoder(options.enum_case)
        self._submissions: LRUCache[tuple[int, int], tuple[PullRequestView, Versioned]]
        self._submissions = LRUCache(SUBMISSIONS_MAX)
        self._queues: LRUCache[int, EncodedQueue]
        self._queues = LRUCache(QUEUES_BYTES_MAX, attrgetter("size"))

    def submission(self, view: PullRequestView, checked: Sequence[CheckedName] = ()) -> Versioned:
        """Return the answer about one pull request; the view determines `checked`."""
        key = (view.queue.id, view.entry.pr)
        known = self._submissions.get(key)
        if known is not None and known[0] is view:
            return known[1]
        shown = self._encoder.encoded(responses.submission(view, self._options, checked))
        answer = _versioned(shown)
        self._submissions[key] = (view, answer)
        return answer

    def queue(self, view: QueueView, now: datetime) -> Versioned:
        """Return the answer about a queue with its pull requests."""
        known = self._queues.get(view.queue.id)
        if known is not None and known.view is view:
            return known.whole
        entries = self._entries(view, known)
        answer = self._encoder.plain(responses.queue(view, self._options, now))
        answer["enqueuedPullRequests"] = entries
        if len(view.entries) > ENQUEUED_MAX:
            answer["enqueuedPullRequestsTruncated"] = True
        whole = _versioned(orjson.dumps(answer))
        self._queues[view.queue.id] = EncodedQueue(view, entries, whole)
        return whole

    def _entries(self, view: QueueView, known: EncodedQueue | None) -> list[orjson.Fragment]:
        """Return the encoded entries; those whose view is the same as before are taken over."""
        views = view.entries[:ENQUEUED_MAX]
        if known is None or len(known.entries) != len(views):
            return [self._entry(each) for each in views]
        entries = known.entries.copy()
        for place in compress(count(), map(is_not, views, known.view.entries)):
            entries[place] = self._entry(views[place])
        return entries

    def _entry(self, view: PullRequestView) -> orjson.Fragment:
        submission = responses.submission(view, self._options)
        return orjson.Fragment(self._encoder.encoded(submission, ListedSubmission))


def _versioned(shown: bytes) -> Versioned:
    """Return an encoded object with its version as a member."""
    version = blake2b(shown, digest_size=12).hexdigest()
    return Versioned(version, b'%b,"recordVersion":"%b"}' % (shown[:-1], version.encode()))
