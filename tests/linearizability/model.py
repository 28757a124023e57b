"""A queue to which one call comes after another.

Test runs never end in these histories and nothing lands, so an entry stays until it is cancelled.
A command answers whether it was done; what its record shows besides may be newer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

DEFAULT_PRIORITY = 100
DONE = (200, "")


@dataclass(frozen=True, slots=True)
class Asked:
    """A call: the endpoint, what it is about, and the answer, reduced to what the model knows."""

    name: str
    about: Any = None
    priority: int | None = None
    status: int = 0
    word: str = ""
    shown: Any = None

    def __str__(self) -> str:
        given = " ".join(str(each) for each in (self.about, self.priority) if each is not None)
        seen = " ".join(str(each) for each in (self.word, self.shown) if each not in ("", None))
        return f"{self.name} {given} -> {self.status} {seen}".rstrip()


@dataclass(frozen=True, slots=True)
class Line:
    """The queue of a branch: none, or what is in it.

    `entries` are priorities by pull request, in the order of their numbers; `known` were ever
    submitted to this queue.
    """

    exists: bool = False
    state: str = "RUNNING"
    entries: tuple[tuple[int, int], ...] = ()
    known: frozenset[int] = frozenset()
    holds: frozenset[str] = frozenset()

    def priority_of(self, number: int) -> int | None:
        """The priority of a queued pull request."""
        return dict(self.entries).get(number)

    def with_entry(self, number: int, priority: int) -> "Line":
        """The same with this entry."""
        changed = {**dict(self.entries), number: priority}
        return replace(self, entries=tuple(sorted(changed.items())), known=self.known | {number})

    def without(self, number: int) -> "Line":
        """The same without this entry."""
        kept = tuple(each for each in self.entries if each[0] != number)
        return replace(self, entries=kept)


Answer = tuple[int, str]
Rule = Callable[[Line, Asked], tuple[Answer, Line]]


def after(line: Line, asked: Asked) -> Line | None:
    """Return the queue after a call, None if the call would have been answered otherwise."""
    if not line.exists and asked.name not in WITHOUT_QUEUE:
        return line if (asked.status, asked.word) == GONE else None
    answer, following = RULES[asked.name](line, asked)
    return following if answer == (asked.status, asked.word) else None


GONE = (404, "queue_not_found")
NOT_QUEUED = (404, "not_in_queue")


def _create(line: Line, asked: Asked) -> tuple[Answer, Line]:
    if line.exists:
        return (409, "queue_exists"), line
    return DONE, Line(exists=True, state=asked.about)


def _delete(line: Line, _: Asked) -> tuple[Answer, Line]:
    if line.entries:
        return (409, "queue_not_empty"), line
    return DONE, Line()


def _submit(line: Line, asked: Asked) -> tuple[Answer, Line]:
    before = line.priority_of(asked.about)
    if before is None:
        priority = DEFAULT_PRIORITY if asked.priority is None else asked.priority
        return (200, "created"), line.with_entry(asked.about, priority)
    if asked.priority in (None, before):
        return (200, "unchanged"), line
    return (200, "updated"), line.with_entry(asked.about, asked.priority)


def _cancel(line: Line, asked: Asked) -> tuple[Answer, Line]:
    if line.priority_of(asked.about) is None:
        return NOT_QUEUED, line
    return (200, "CANCELLED"), line.without(asked.about)


def _restart(line: Line, asked: Asked) -> tuple[Answer, Line]:
    return NOT_QUEUED if line.priority_of(asked.about) is None else DONE, line


def _set_state(line: Line, asked: Asked) -> tuple[Answer, Line]:
    return DONE, replace(line, state=asked.about)


def _update(line: Line, _: Asked) -> tuple[Answer, Line]:
    return DONE, line


def _hold(line: Line, asked: Asked) -> tuple[Answer, Line]:
    return DONE, replace(line, holds=line.holds | {asked.shown})


def _release(line: Line, asked: Asked) -> tuple[Answer, Line]:
    if asked.about not in line.holds:
        return (404, "hold_not_found"), line
    return DONE, replace(line, holds=line.holds - {asked.about})


def _get(line: Line, asked: Asked) -> tuple[Answer, Line]:
    is_so = asked.shown == (line.state, line.entries, line.holds)
    return (200, "" if is_so else "another queue"), line


def _list(line: Line, asked: Asked) -> tuple[Answer, Line]:
    is_so = asked.shown == tuple(number for number, _ in line.entries)
    return (200, "" if is_so else "other pull requests"), line


def _list_queues(line: Line, _: Asked) -> tuple[Answer, Line]:
    return (200, "there" if line.exists else "none"), line


def _record(line: Line, asked: Asked) -> tuple[Answer, Line]:
    if asked.about not in line.known:
        return (404, "never_submitted"), line
    priority = line.priority_of(asked.about)
    return (200, "open" if priority is not None else "ended"), line


WITHOUT_QUEUE = frozenset({"createQueue", "listQueues"})
"""Endpoints that another answer than "queue_not_found" has where no queue is."""

RULES: Mapping[str, Rule] = {
    "createQueue": _create,
    "deleteQueue": _delete,
    "submitPullRequest": _submit,
    "cancelPullRequest": _cancel,
    "restartTestsOnPullRequest": _restart,
    "setState": _set_state,
    "updateQueue": _update,
    "addQueueHold": _hold,
    "releaseQueueHold": _release,
    "getQueue": _get,
    "listPullRequests": _list,
    "listQueues": _list_queues,
    "getSubmittedPullRequest": _record,
}
