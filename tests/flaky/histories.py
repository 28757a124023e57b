"""Uploads of small repositories, written as a story: what ran when, and how it ended."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.bench.flaky.ledger import PR, STABLE, Ledger, Upload, bits

T = 0
"""The test that most stories are about."""

CROWD = 40
"""Tests beside it, so that c is 5."""

START = datetime(2026, 3, 1, tzinfo=UTC)


def at(day: float, minute: float = 0) -> datetime:
    """A time so many days and minutes after START."""
    return START + timedelta(days=day, minutes=minute)


def in_an_old_repository() -> "Story":
    """A story in a repository whose noise is known: calm until START, without T."""
    story = Story()
    story.ran(at(-10), "")
    return story


class Story:
    """Uploads in the making; every upload has a commit and a CI run of its own unless told."""

    def __init__(self) -> None:
        self.uploads: list[Upload] = []

    def ran(self, when: datetime, letters: str = "P", **facts: object) -> Upload:
        """An upload in which T had these attempts; `failing` names others that failed too."""
        number = len(self.uploads)
        failing = set(facts.pop("failing", ())) if "failing" in facts else set()
        attempts = dict.fromkeys(failing, "F")
        passed = bits(set(range(1, CROWD)) - failing)
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
        )
        self.uploads.append(replace(upload, **facts))
        return self.uploads[-1]

    def again(self, first: Upload, minutes: float = 5, passed: bool = True) -> Upload:
        """The same code once more, everything passed (or T failed again)."""
        letters = "P" if passed else "F"
        facts = {"code": first.code, "kind": first.kind, "pr": first.pr, "branch": first.branch}
        return self.ran(first.at + timedelta(minutes=minutes), letters, **facts)

    def flipped(self, when: datetime, **facts: object) -> Upload:
        """T failed, and passed on a re-run of the same code."""
        first = self.ran(when, "F", **facts)
        self.again(first)
        return first

    def passes(self, start: datetime, count: int, over: timedelta, **facts: object) -> None:
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
