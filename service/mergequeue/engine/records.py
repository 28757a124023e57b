"""Records of failed runs, with suspects and failed tests, and of a tip that is not tested."""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime

RECORDS_MAX = 100
"""Records that are kept, the newest: a queue at the limit of its slots has about 20."""

UNKNOWN = ""
"""Stands in place of test ids where it is not known which tests of a check failed."""


@dataclass(frozen=True, slots=True)
class UntestedTip:
    """A tip without a passed test: a part of a unit has landed (docs/design/landing.md 10).

    `run` tested the whole unit, whose pull requests `landed` are on the target (by submissions
    `entries`) and `missing` are not. `tip` is the commit that is tested now, `failed` names what
    did not pass on it (in words: `says`), and `tries` counts test branches that could not be made;
    the next one may begin at `try_at`. `is_held`: the hold has been placed.
    """

    tip: str
    run: str
    landed: tuple[int, ...]
    entries: tuple[str, ...]
    missing: tuple[int, ...]
    failed: tuple[str, ...] = ()
    says: str = ""
    is_held: bool = False
    tries: int = 0
    try_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A test that failed in a check, by its id or `UNKNOWN`."""

    check: str
    test: str = UNKNOWN


@dataclass(frozen=True, slots=True)
class Suspect:
    """A pull request in a failed run.

    `chance` is what was believed of it just before; 0: it is cleared. `is_tested`: it was in the
    batch that the run tested, and not in its base. `has_merged`: it has since. The failed tests
    make it `weight` times as suspicious as others. `fails_alone`: its own head fails some of the
    tests or checks that failed.
    """

    entry: str
    pr: int
    chance: float
    is_tested: bool
    has_merged: bool = False
    weight: float = 1.0
    fails_alone: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """A failed run: who could have caused it, and the required checks that failed.

    `tests` has the ids of all tests that failed in a check, none if it passed; a check that is not
    there may have any result. `unexplained` are the failed tests whose cause is looked for.
    `is_whole`: the checks test the whole tree, so every other test of a check in `tests` passed.
    """

    run: str
    suspects: tuple[Suspect, ...]
    checks: tuple[str, ...]
    tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unexplained: tuple[FailedTest, ...] = ()
    is_whole: bool = False

    def cleared_of(self, good: Set[str], *, have_merged: bool) -> "Record":
        """The record after these have been shown to be good, or have merged."""
        suspects = tuple(
            replace(one, chance=0.0, has_merged=have_merged) if one.entry in good else one
            for one in self.suspects
        )
        return replace(self, suspects=suspects)


def with_failure(records: tuple[Record, ...], newest: Record) -> tuple[Record, ...]:
    """The records with one more; a run is a record once."""
    if any(record.run == newest.run for record in records):
        return records
    return (*records, newest)[-RECORDS_MAX:]


def without(records: tuple[Record, ...], runs: Set[str]) -> tuple[Record, ...]:
    """The records without these runs, which say nothing about their entries after all."""
    return tuple(record for record in records if record.run not in runs)


def cleared(records: tuple[Record, ...], entries: Iterable[str]) -> tuple[Record, ...]:
    """The records after these entries have been shown to be good."""
    return _cleared(records, set(entries), have_merged=False)


def merged(records: tuple[Record, ...], entries: Iterable[str]) -> tuple[Record, ...]:
    """The records after these entries have merged, which clears them as well."""
    return _cleared(records, set(entries), have_merged=True)


def _cleared(
    records: tuple[Record, ...], good: Set[str], *, have_merged: bool
) -> tuple[Record, ...]:
    return tuple(
        record.cleared_of(good, have_merged=have_merged)
        if any(one.entry in good for one in record.suspects)
        else record
        for record in records
    )


def live(records: tuple[Record, ...], is_there: Callable[[Suspect], bool]) -> tuple[Record, ...]:
    """The records that matter still: for a suspect, or for two that failed in one batch."""
    return tuple(record for record in records if _matters(record, is_there))


def _matters(record: Record, is_there: Callable[[Suspect], bool]) -> bool:
    there = [one for one in record.suspects if is_there(one)]
    return any(one.chance for one in there) or sum(one.is_tested for one in there) > 1
