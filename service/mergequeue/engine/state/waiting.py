"""The waits of an entry for rules of its queue, and for the time in its description.

The times come with the facts (`Facts.seen`, `Facts.ruled`); here they are only compared with now
(docs/design/rules.md 2).
"""

from collections.abc import Iterator
from datetime import datetime

from service.mergequeue.engine.model import Entry, Waiting
from service.mergequeue.engine.reasons import NEEDS, Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.rules import RuleWait


def is_timed(facts: Facts) -> bool:
    """Return whether time alone may change what it waits for."""
    if facts.seen is not None and facts.seen.not_before is not None:
        return True
    return any(one.spans for one in facts.ruled.waits)


def waits_of(facts: Facts, now: datetime) -> tuple[Waiting, ...]:
    """Return the rules that make it wait now."""
    return tuple(
        Waiting(one.rule, one.text, _until(one, now)) for one in facts.ruled.waits if one.holds(now)
    )


def is_early(facts: Facts, now: datetime) -> bool:
    """Return whether the time that its description names is yet to come."""
    at = None if facts.seen is None else facts.seen.not_before
    return at is not None and now < at


def is_changed(entry: Entry, now: datetime) -> bool:
    """Return whether time has changed what it waits for."""
    was_early = Reason.NOT_BEFORE in entry.unmet
    return entry.waits != waits_of(entry.facts, now) or was_early is not is_early(entry.facts, now)


def is_patient(entry: Entry) -> bool:
    """Return whether it waits for a time or for another pull request, however long that takes."""
    timed = any(one.until is not None for one in entry.waits)
    return timed or any(NEEDS[reason].is_patient for reason in entry.unmet)


def next_border(facts: Facts, now: datetime) -> datetime | None:
    """Return the next time at which it waits for something else; None: facts change it first."""
    return min((at for at in _borders(facts) if at > now), default=None)


def _borders(facts: Facts) -> Iterator[datetime]:
    if facts.seen is not None and facts.seen.not_before is not None:
        yield facts.seen.not_before
    for one in facts.ruled.waits:
        for span in one.spans or ():
            yield span.since
            yield span.until


def _until(wait: RuleWait, now: datetime) -> datetime | None:
    """Return the end of the span that covers now, and of those that follow without a gap."""
    if wait.spans is None:
        return None
    until = now
    for span in sorted(wait.spans, key=lambda one: one.since):
        if span.since <= until < span.until:
            until = span.until
    return until
