"""A cache of evidence indexes, so that an upload rarely reads all evidence of its repository.

Only committed evidence enters. An index is taken out while it changes; after a failure it is not
put back, and the next judging builds it from rows.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from threading import Lock

from service.testhealth.detector.index import EvidenceIndex

REPOSITORIES_MAX = 32
"""Indexes that are kept; the least recently used is dropped first."""


@dataclass(frozen=True, slots=True)
class CachedIndex:
    """The index of a repository as of a revision of its evidence."""

    revision: int
    index: EvidenceIndex


class IndexCache:
    """At most `REPOSITORIES_MAX`. Used from the event loop and from the store's threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, CachedIndex] = OrderedDict()
        self._lock = Lock()

    def take(self, repository_id: int) -> CachedIndex | None:
        """Take out the index of a repository, None if there is none."""
        with self._lock:
            return self._kept.pop(repository_id, None)

    def put(self, repository_id: int, kept: CachedIndex) -> None:
        """Put an index back after the commit, unless a newer one is there."""
        with self._lock:
            cached = self._kept.get(repository_id)
            if cached is None or cached.revision < kept.revision:
                self._kept[repository_id] = kept
                self._kept.move_to_end(repository_id)
            if len(self._kept) > REPOSITORIES_MAX:
                self._kept.popitem(last=False)

    def advance(self, repository_id: int, revision: int) -> None:
        """Note that the revision after this one changed no evidence: the index is still valid."""
        with self._lock:
            kept = self._kept.get(repository_id)
            if kept is not None and kept.revision == revision:
                self._kept[repository_id] = replace(kept, revision=revision + 1)
