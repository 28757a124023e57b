"""Encoded answers about a queue and about a pull request, each with its version."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b

import orjson
from cachetools import LRUCache

from service.http.encoding import Encoder
from service.http.models.answers.troubles import TroubleShown
from service.http.waiting import Versioned
from service.mergequeue.api import responses
from service.mergequeue.api.models.answers.pull_requests import ListedSubmission
from service.mergequeue.api.models.answers.queues import ENQUEUED_MAX
from service.mergequeue.engine.checked import CheckedName
from service.mergequeue.operations.views import PullRequestView, QueueView
from service.runtime import Options
from service.troubles import Trouble

Troubles = tuple[Trouble, ...]

QUEUES_BYTES_MAX = 64 * 1024 * 1024
"""The answer for a queue of 5,000 pull requests has about four million bytes."""


def submission(
    view: PullRequestView, options: Options, checked: Sequence[CheckedName] = ()
) -> Versioned:
    """Return the answer about one pull request; `checked` are the checks that count for it."""
    answer = responses.submission(view, options, checked)
    return _versioned(Encoder(options.enum_case).encoded(answer))


def queue(view: QueueView, options: Options, now: datetime, troubles: Troubles = ()) -> Versioned:
    """Return the answer about a queue with its pull requests."""
    encoder = Encoder(options.enum_case)
    answer = encoder.plain(responses.queue(view, options, now))
    answer["troubles"] = [encoder.plain(each) for each in TroubleShown.each(troubles, now)]
    answer["enqueuedPullRequests"] = [
        encoder.plain(responses.submission(each, options), ListedSubmission)
        for each in view.entries[:ENQUEUED_MAX]
    ]
    if len(view.entries) > ENQUEUED_MAX:
        answer["enqueuedPullRequestsTruncated"] = True
    return _versioned(orjson.dumps(answer))


class QueueAnswers:
    """The newest answer about each queue, shared by all requests that wait for its next version.

    Each of them looks again every 2 seconds: 40 of them, 400 entries and no change take 0.01 of a
    core; encoding for each one took 0.39 of a core.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._kept: LRUCache[int, tuple[QueueView, Troubles, Versioned]]
        self._kept = LRUCache(QUEUES_BYTES_MAX, lambda kept: len(kept[2].body))

    def answer(self, view: QueueView, now: datetime, troubles: Troubles = ()) -> Versioned:
        """Return the answer about a queue with its pull requests, made once of each view."""
        known = self._kept.get(view.queue.id)
        if known is not None and known[0] is view and known[1] == troubles:
            return known[2]
        made = queue(view, self._options, now, troubles)
        self._kept[view.queue.id] = (view, troubles, made)
        return made


def _versioned(shown: bytes) -> Versioned:
    """Return an encoded object with its version as a member."""
    version = blake2b(shown, digest_size=12).hexdigest()
    return Versioned(version, b'%b,"recordVersion":"%b"}' % (shown[:-1], version.encode()))
