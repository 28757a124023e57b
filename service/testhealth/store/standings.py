"""The evidence of repositories, ready to judge by, so that an upload rarely reads all of it.

Only what was committed enters. Whoever takes one out owns it, because it changes; who fails
does not bring it back, and the next one reads the rows.
"""

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

from service.testhealth.detector.standing import Standing

REPOSITORIES_MAX = 32
"""Kept; the least recently used goes first."""


class KeptStanding(NamedTuple):
    """How the tests of a repository stand, as of a revision of its evidence."""

    revision: int
    standing: Standing


class Standings:
    """At most `REPOSITORIES_MAX`. Used from the event loop and from the store's threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, KeptStanding] = OrderedDict()
        self._lock = Lock()

    def take(self, repository_id: int) -> KeptStanding | None:
        """Take it out."""
        with self._lock:
            return self._kept.pop(repository_id, None)

    def put(self, repository_id: int, kept: KeptStanding) -> None:
        """Bring it back, changed and committed; an older one than is here changes nothing."""
        with self._lock:
            known = self._kept.get(repository_id)
            if known is None or known.revision < kept.revision:
                self._kept[repository_id] = kept
                self._kept.move_to_end(repository_id)
            if len(self._kept) > REPOSITORIES_MAX:
                self._kept.popitem(last=False)

    def advance(self, repository_id: int, revision: int) -> None:
        """The revision after this one brought no evidence: what was kept as of it still holds."""
        with self._lock:
            kept = self._kept.get(repository_id)
            if kept is not None and kept.revision == revision:
                self._kept[repository_id] = kept._replace(revision=revision + 1)
