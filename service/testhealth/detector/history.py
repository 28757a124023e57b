"""The history of a test's status, and how corrections of the past are added to it.

docs/design/detector.md 9: the history is only ever added to. When late or deleted evidence changes
the past, an entry marked `is_correction` replaces everything from its time on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile

from service.vocabulary import Health as Status

UNDONE = "The evidence no longer supports the earlier status."


@dataclass(frozen=True, slots=True)
class Change:
    """The value since `at`, until the next one; the first value of a test is HEALTHY."""

    at: datetime
    value: Status
    reason: str
    is_correction: bool = False


def effective(entries: Sequence[Change]) -> tuple[Change, ...]:
    """The changes that stand, oldest first, of entries in the order in which they were written."""
    standing: list[Change] = []
    for entry in entries:
        if entry.is_correction:
            standing = [each for each in standing if each.at < entry.at]
        if entry.value is not _value_of(standing):
            standing.append(entry)
    return tuple(standing)


def to_append(
    entries: Sequence[Change], now: Sequence[Change], settled_at: datetime | None = None
) -> tuple[Change, ...]:
    """The entries that make the written ones say what is known now; none if they already do.

    `now` has all changes, oldest first; what lies before `settled_at` is left as it was written,
    because its evidence is gone.
    """
    written = [each for each in effective(entries) if settled_at is None or each.at >= settled_at]
    current = [each for each in now if settled_at is None or each.at >= settled_at]
    agreed = sum(1 for _ in takewhile(_is_same, zip(written, current, strict=False)))
    fresh, wrong = current[agreed:], written[agreed:]
    if not wrong:
        return tuple(fresh)
    if fresh and fresh[0].at <= wrong[0].at:
        return (replace(fresh[0], is_correction=True), *fresh[1:])
    earlier = [each for each in effective(entries) if each.at < wrong[0].at]
    undone = Change(wrong[0].at, _value_of(earlier), UNDONE, is_correction=True)
    return (undone, *fresh)


def _value_of(standing: Sequence[Change]) -> Status:
    return standing[-1].value if standing else Status.HEALTHY


def _is_same(pair: tuple[Change, Change]) -> bool:
    return pair[0].at == pair[1].at and pair[0].value is pair[1].value
