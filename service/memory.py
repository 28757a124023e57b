"""The memory of one process: losing all of it costs work, never a result."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, cast

T = TypeVar("T")
Question = TypeVar("Question", bound=Hashable)
Found = TypeVar("Found")

ANSWERS_MAX = 10_000
"""Answers that a `VersionedCache` keeps."""

QUEUES_MAX = 512
"""Queues that a cache of a queue's facts keeps, as many as their values
(docs/design/transactions.md 3)."""


class Memory:
    """One object of each class, owned by the module that defines the class.

    Each is made when it is first needed. Used from any thread.
    """

    def __init__(self) -> None:
        self._kept: dict[type, object] = {}

    def of(self, kind: type[T], make: Callable[[], T] | None = None) -> T:
        """Return the object of this class; `make` makes it if the class needs arguments."""
        kept = self._kept.get(kind)
        if kept is None:
            kept = self._kept.setdefault(kind, (make or kind)())
        return cast(T, kept)

    def clear(self) -> None:
        """Drop every object."""
        self._kept.clear()


class VersionedCache(Generic[Question, Found]):
    """Answers found under one version; another version clears it, and so does a full cache."""

    def __init__(self) -> None:
        self._version = -1
        self._answers: dict[Question, Found] = {}

    def get(self, version: int, question: Question) -> Found | None:
        """Return the answer found under this version, None if there is none."""
        if version != self._version:
            self._answers.clear()
            self._version = version
        return self._answers.get(question)

    def put(self, version: int, question: Question, answer: Found) -> None:
        """Keep an answer found under this version."""
        if version == self._version:
            if len(self._answers) >= ANSWERS_MAX:
                self._answers.clear()
            self._answers[question] = answer
