"""Uploads of small repositories, written as a story: what ran when, and how it ended."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from service.testhealth.detector.health import Health
from service.testhealth.detector.score import Tally
from service.testhealth.detector.spans import Fold, Measure
from tests.bench.flaky.ledger import PR, STABLE, Ledger, Upload, bits

T = 0
"""The test that most stories are about."""

CROWD = 40
"""Tests beside it, so that c is 5."""

START = datetime(2026, 3, 1, tzinfo=UTC)


def at(day: float, minute: float = 0) -> datetime:
    """A time so many days and minutes after START."""
    return START + timedelta(days=day, minutes=minute)


def tally_of(health: Health) -> Tally:
    """What stream A saw, by the numbers of the status."""
    if health.numbers.a is None:
        raise AssertionError(f"no numbers: {health.reason}")
    return health.numbers.a


def open_measure_of(fold: Fold) -> Measure:
    """The score of the newest event that is in no span."""
    if fold.open_measure is None:
        raise AssertionError("no event outside the spans")
    return fold.open_measure


def last_of(fold: Fold) -> Measure:
    """The measure that the newest span is explained by."""
    measure = fold.spans[-1].last
    if measure is None:
        raise AssertionError("nothing was measured in the newest span")
    return measure


def in_an_old_repository() -> "Story":
    """A story in a repository whose noise is known: calm until START, without T."""
    story = Story()
    story.ran(at(-10), "")
    return story


class Story:
    """Uploads in the making; every upload has a commit and a CI run of its own unless told."""

    def __init__(self) -> None:
        self.uploads: list[Upload] = []

    def ran(
        self, when: datetime, letters: str = "P", failing: Iterable[int] = (), **facts: Any
    ) -> Upload:
        """An upload in which T had these attempts; `failing` names others that failed too."""
        number = len(self.uploads)
        red = set(failing)
        attempts = dict.fromkeys(red, "F")
        passed = bits(set(range(1, CROWD)) - red)
        if letters == "P":
            passed |= 1 << T
        elif letters:
            attempts[T] = letters
        upload = Upload(
            digest=f"u{number:05}",
            at=when,
            kind=PR,
            job="unit / linux",
            code=f"sha:{number:07}",
            run=f"r{number}",
            passed=passed,
            attempts=attempts,
            pr=number,
            position=int((when - START).total_seconds()),
        )
        self.uploads.append(replace(upload, **facts))
        return self.uploads[-1]

    def again(self, first: Upload, minutes: float = 5, passed: bool = True) -> Upload:
        """The same code once more, everything passed (or T failed again)."""
        letters = "P" if passed else "F"
        facts: dict[str, Any] = {
            "code": first.code,
            "kind": first.kind,
            "pr": first.pr,
            "branch": first.branch,
        }
        return self.ran(first.at + timedelta(minutes=minutes), letters, **facts)

    def flipped(self, when: datetime, **facts: Any) -> Upload:
        """T failed, and passed on a re-run of the same code."""
        first = self.ran(when, "F", **facts)
        self.again(first)
        return first

    def passes(self, start: datetime, count: int, over: timedelta, **facts: Any) -> None:
        """T passed so many times, evenly spread from `start` on."""
        for number in range(count):
            self.ran(start + over * number / count, **facts)

    def main(self, start: datetime, letters: str, every: timedelta = timedelta(hours=1)) -> None:
        """Verdicts of T on main, oldest first."""
        for number, letter in enumerate(letters):
            when = start + every * number
            if letter == ".":
                self.ran(when, "", kind=STABLE, pr=None)
            else:
                self.ran(when, letter, kind=STABLE, pr=None)

    def ledger(self) -> Ledger:
        """All of it."""
        return Ledger(self.uploads)
