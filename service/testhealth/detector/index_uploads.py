"""Indexed uploads: in order, by code, run and day, with a bit for each test that ever failed.

Most tests never fail, so the bits are few even if a repository has 100,000 tests.
"""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import datetime
from typing import NamedTuple

from service.testhealth.reports.uploads import FAILED, PASSED, EvidenceUpload, PassedSets


class IndexedUpload:
    """An upload with bits for the tests that are followed.

    `ran`, `won`: tests with an attempt, with a passed one. Of comparable attempts, none in a
    mass failure: `passing` has a passed one, `failing` only failed ones, `lost` a failed one.
    """

    __slots__ = ("failing", "lost", "passing", "ran", "upload", "won")

    def __init__(self, upload: EvidenceUpload) -> None:
        self.upload = upload
        self.ran = self.won = self.passing = self.failing = self.lost = 0

    def letters(self, no: int, bit: int) -> str:
        """Return the attempts of a test without skips; `bit` is its place."""
        return self.upload.attempts.get(no) or PASSED * (self.won >> bit & 1)

    def note_passed(self, passing: int) -> None:
        """Set the bits of tests in its set of passed tests."""
        self.ran |= passing
        self.won |= passing
        if not self.upload.is_mass:
            self.passing |= passing

    def note_attempts(self, no: int, bit: int) -> None:
        """Set the bits of a test with attempts of its own."""
        letters, mark = self.upload.attempts[no], 1 << bit
        self.ran |= mark
        if PASSED in letters:
            self.won |= mark
        if self.upload.is_mass or no in self.upload.muddled:
            return
        if PASSED in letters:
            self.passing |= mark
        else:
            self.failing |= mark
        if FAILED in letters:
            self.lost |= mark


class Span(NamedTuple):
    """The times when a test ran first and last, and passed first."""

    first: datetime
    last: datetime
    first_pass: datetime | None


class IndexedUploads:
    """All uploads of an index.

    `nos` and `bits` are the tests that are followed, by bit and back; `ordered` has times,
    digests and ids of the uploads.
    """

    def __init__(self) -> None:
        self.nos: list[int] = []
        self.bits: dict[int, int] = {}
        self.ordered: list[tuple[datetime, str, str]] = []
        self._kept: dict[str, IndexedUpload] = {}
        self._on_code: defaultdict[str, defaultdict[str, dict[str, IndexedUpload]]]
        self._on_code = defaultdict(lambda: defaultdict(dict))
        self._of_run: defaultdict[tuple[str, int], dict[str, IndexedUpload]] = defaultdict(dict)
        self._on_day: defaultdict[int, dict[str, IndexedUpload]] = defaultdict(dict)
        self._failed_in: defaultdict[int, dict[str, IndexedUpload]] = defaultdict(dict)
        self._machines: defaultdict[str, defaultdict[tuple[str, int], Counter[str]]]
        self._machines = defaultdict(lambda: defaultdict(Counter))

    def __contains__(self, upload_id: object) -> bool:
        return upload_id in self._kept

    def ids(self) -> set[str]:
        """Return the ids of all uploads."""
        return set(self._kept)

    def since(self, at: datetime) -> Iterator[IndexedUpload]:
        """Return the uploads that ran then or later, oldest first."""
        return (self._kept[each] for _, _, each in self.ordered[bisect_left(self.ordered, (at,)) :])

    def ids_since(self, at: datetime) -> set[str]:
        """Return the ids of uploads that ran then or later."""
        return {each for _, _, each in self.ordered[bisect_left(self.ordered, (at,)) :]}

    def follow(
        self, coming: Iterable[EvidenceUpload], others: Set[int], sets: PassedSets
    ) -> list[tuple[IndexedUpload, int]]:
        """Give bits to the tests that fail in uploads to come, and to others.

        Return the uploads in which any of them passed already, each with the bits of these.
        """
        failing = {
            no for each in coming for no, letters in each.attempts.items() if FAILED in letters
        }
        new = sorted((failing | others) - self.bits.keys())
        for no in new:
            self.bits[no] = len(self.nos)
            self.nos.append(no)
        if not new or not self._kept:
            return []
        fresh = self.bits_for(new)
        self._mark(self._kept.values(), new, sets)
        return [
            (kept, kept.passing & fresh) for kept in self._kept.values() if kept.passing & fresh
        ]

    def put_in(self, uploads: Iterable[EvidenceUpload], sets: PassedSets) -> list[IndexedUpload]:
        """Add uploads, with all their bits."""
        fresh = [IndexedUpload(each) for each in uploads]
        self._mark(fresh, self.nos, sets)
        for kept in fresh:
            self._file(kept)
        return fresh

    def take_out(self, upload_id: str) -> IndexedUpload:
        """Remove an upload."""
        kept = self._kept.pop(upload_id)
        upload = kept.upload
        key = (upload.at, upload.digest, upload.id)
        del self.ordered[bisect_left(self.ordered, key)]
        self._on_code[upload.job][upload.code].pop(upload_id, None)
        self._of_run[upload.run, upload.run_attempt].pop(upload_id, None)
        self._on_day[upload.day].pop(upload_id)
        for no in upload.attempts:
            self._failed_in[no].pop(upload_id, None)
        if upload.run and upload.machine:
            machines = self._machines[upload.job][upload.run, upload.run_attempt]
            machines[upload.machine] -= 1
            machines += Counter()
        return kept

    def _mark(self, uploads: Iterable[IndexedUpload], nos: Sequence[int], sets: PassedSets) -> None:
        """Set the bits of these tests."""
        wanted = list(uploads)
        keys = {each.upload.passed for each in wanted if each.upload.passed is not None}
        members = sets.members(sorted(keys), nos)
        chosen, whole = frozenset(nos), self.bits_for(nos)
        passed = {key: self._passed(numbers, chosen, whole) for key, numbers in members.items()}
        for kept in wanted:
            if kept.upload.passed is not None:
                kept.note_passed(passed.get(kept.upload.passed, 0))
            for no in kept.upload.attempts:
                if no in chosen:
                    kept.note_attempts(no, self.bits[no])

    def _passed(self, numbers: Sequence[int], asked: frozenset[int], whole: int) -> int:
        """Return the bits of the tests found, which are few or nearly all of those asked for."""
        if len(numbers) * 2 < len(asked):
            return self.bits_for(numbers)
        return whole ^ self.bits_for(asked.difference(numbers))

    def _file(self, kept: IndexedUpload) -> None:
        upload = kept.upload
        self._kept[upload.id] = kept
        insort(self.ordered, (upload.at, upload.digest, upload.id))
        self._on_day[upload.day][upload.id] = kept
        if not upload.is_mass:
            self._on_code[upload.job][upload.code][upload.id] = kept
            self._of_run[upload.run, upload.run_attempt][upload.id] = kept
        for no, letters in upload.attempts.items():
            if FAILED in letters:
                self._failed_in[no][upload.id] = kept
        if upload.run and upload.machine:
            self._machines[upload.job][upload.run, upload.run_attempt][upload.machine] += 1

    def on_code(self, code: tuple[str, str]) -> list[IndexedUpload]:
        """Return the uploads of a job on a code without mass failures."""
        job, code_id = code
        return list(self._on_code[job][code_id].values())

    def codes_of(self, job: str) -> set[tuple[str, str]]:
        """Return the codes on which the job ran."""
        return {(job, code) for code in self._on_code[job]}

    def of_run(self, kept: IndexedUpload) -> list[IndexedUpload]:
        """Return the uploads of its CI run and attempt without mass failures; itself if no run."""
        upload = kept.upload
        if not upload.run:
            return [kept]
        return list(self._of_run[upload.run, upload.run_attempt].values())

    def on_day(self, day: int) -> list[IndexedUpload]:
        """Return the uploads of a day."""
        return list(self._on_day[day].values())

    def is_ambiguous(self, job: str) -> bool:
        """Return whether several machines report under the job in one attempt of a CI run."""
        return any(len(machines) > 1 for machines in self._machines[job].values())

    def codes_lost(self, no: int) -> set[tuple[str, str]]:
        """Return the jobs and codes in which the test has a failed comparable attempt."""
        bit = self.bits[no]
        return {
            (kept.upload.job, kept.upload.code)
            for kept in self._failed_in[no].values()
            if kept.lost >> bit & 1
        }

    def failures(self, no: int) -> list[datetime]:
        """Return when the last attempt of the test failed, in any order."""
        uploads = self._failed_in[no].values()
        return [each.upload.at for each in uploads if each.upload.attempts[no][-1] == FAILED]

    def span(self, bit: int) -> Span | None:
        """Return when a test ran, None if never."""
        first = next((kept for kept in self._forward() if kept.ran >> bit & 1), None)
        last = next((kept for kept in self._backward() if kept.ran >> bit & 1), None)
        if first is None or last is None:
            return None
        won = next((kept.upload.at for kept in self._forward() if kept.won >> bit & 1), None)
        return Span(first.upload.at, last.upload.at, won)

    def _forward(self) -> Iterator[IndexedUpload]:
        return (self._kept[each] for _, _, each in self.ordered)

    def _backward(self) -> Iterator[IndexedUpload]:
        return (self._kept[each] for _, _, each in reversed(self.ordered))

    def nos_in(self, marks: int) -> Iterator[int]:
        """Return the tests of these bits."""
        return (self.nos[bit] for bit in places(marks))

    def bits_for(self, nos: Iterable[int]) -> int:
        """Return the bits of these tests."""
        total = 0
        for no in nos:
            total |= 1 << self.bits[no]
        return total


def bits_of(parts: Iterable[int]) -> int:
    """Return the union of these bits."""
    total = 0
    for part in parts:
        total |= part
    return total


def places(marks: int) -> Iterator[int]:
    """Return the places of the bits that are set, the lowest first."""
    # Searched as text, for each step over a large number takes as long as the number is.
    digits = f"{marks:b}"[::-1]
    place = digits.find("1")
    while place >= 0:
        yield place
        place = digits.find("1", place + 1)
