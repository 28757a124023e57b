"""The past of a head and of its submitter, as a submission is judged by it (budgets.md)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from service.mergequeue.engine.model import Named, Tip
from service.vocabulary import RequiredName, Sha


@dataclass(frozen=True, slots=True)
class Blamed:
    """The newest failure for which a head was blamed with confirmation.

    `run` and `number` are the last failed run, which tested `commit` on top of `base` and began at
    `began`. `required` is its required set, and `times` how often the head was blamed on this set.
    `tests` are the names of failed tests. `missing` is how many landings that may have repaired it
    must come before it is tested again. `timeout_min`: it did not end within so many minutes.
    """

    run: str
    number: int
    commit: Sha | None
    base: Tip
    required: tuple[RequiredName, ...]
    began: datetime
    checks: tuple[Named, ...]
    times: int = 1
    tests: tuple[str, ...] = ()
    missing: int = 1
    timeout_min: int | None = None


def are_same(one: Iterable[RequiredName], other: Iterable[RequiredName]) -> bool:
    """Return whether two required sets ask for the same checks.

    The source of a check may be learned between two runs; only another one is a difference.
    """
    sources, others = _sources_of(one), _sources_of(other)
    return sources.keys() == others.keys() and not any(
        sources[name] and others[name] and sources[name] != others[name] for name in sources
    )


def _sources_of(required: Iterable[RequiredName]) -> dict[str, set[str]]:
    sources: dict[str, set[str]] = {}
    for each in required:
        known = {each.source_id} if each.source_id is not None else set()
        sources[each.name] = sources.get(each.name, set()) | known
    return sources


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a submitter: entries at a time, CI minutes a day (UTC); 0: no limit."""

    open_entries: int = 0
    ci_minutes: int = 0


@dataclass(frozen=True, slots=True)
class Spent:
    """Usage of a submitter: open entries of other queues, and CI minutes of this day.

    `minutes` are those of this queue, `minutes_in_all` those of all queues.
    """

    open_elsewhere: int = 0
    minutes: float = 0.0
    minutes_in_all: float = 0.0


@dataclass(frozen=True, slots=True)
class Past:
    """Knowledge of the store about a head and its submitter; `token` are limits of its token."""

    blamed: Blamed | None = None
    token: Limits = Limits()
    spent: Spent = Spent()


NO_PAST = Past()


@dataclass(frozen=True, slots=True)
class Over:
    """A budget that a submission would exceed: CI minutes if there is an `until`, else entries.

    `token`: the limit is of the token, not of the queue. `until` is when the next day begins.
    """

    submitter: str
    used: int
    limit: int
    token: bool
    until: datetime | None = None
