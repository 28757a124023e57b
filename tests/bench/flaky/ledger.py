"""All uploads of one repository in memory, and the evidence they yield for one test.

What the store does with tables, done with a set: uploads may come in any order and any number
of times. Small and slow on purpose; the store's answers can be held against these.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from service.testhealth.detector import evidence, health, noise, pushes, series
from service.testhealth.detector.evidence import Charged, Event, Group, GroupAttempt, Passes
from service.testhealth.detector.health import Evidence, Flag, Health
from service.testhealth.detector.pushes import PushKey, RunKey
from service.testhealth.detector.repeats import Repeats
from service.testhealth.detector.score import Noise, Tallies, Tally
from service.testhealth.detector.series import Place, Point, Series, Track
from service.testhealth.detector.spans import Scale, Settled

STABLE, QUEUE, PR, OTHER, UNTRUSTED = "stable", "queue", "pr", "other", "untrusted"
MILLION = 1_000_000


@dataclass(frozen=True)
class Upload:
    """What one upload says; tests are numbers.

    `passed` has a bit for each test that passed at its only attempt; `attempts` the letters
    (P, F, in order) of each that failed or had several; `muddled` tests share an identity with
    others, so that their attempts do not compare.
    """

    digest: str
    at: datetime
    kind: str
    job: str
    code: str
    run: str
    passed: int
    attempts: Mapping[int, str] = field(default_factory=dict)
    muddled: frozenset[int] = frozenset()
    run_attempt: int = 1
    machine: str = ""
    branch: str = "main"
    pr: int | None = None
    position: int | None = None
    begun_by: str | None = None

    def letters(self, no: int) -> str:
        """The test's attempts here, skips left out."""
        return self.attempts.get(no) or "P" * (self.passed >> no & 1)

    @cached_property
    def tests_run(self) -> int:
        """Tests that passed or failed."""
        return self.passed.bit_count() + len(self.attempts)

    @cached_property
    def is_mass(self) -> bool:
        """Whether it is a mass failure."""
        failed = sum(1 for letters in self.attempts.values() if letters[-1] == "F")
        return evidence.is_mass_failure(self.tests_run, failed)

    @cached_property
    def passing(self) -> int:
        """A bit for each test with a passed comparable attempt."""
        if self.is_mass:
            return 0
        retried = (no for no, letters in self.attempts.items() if "P" in letters)
        return bits((*retried,)) & ~bits(self.muddled) | self.passed & ~bits(self.muddled)

    @cached_property
    def failing(self) -> int:
        """A bit for each test with comparable attempts of which none passed."""
        if self.is_mass:
            return 0
        failed = [no for no, letters in self.attempts.items() if "P" not in letters]
        return bits(failed) & ~bits(self.muddled)

    @property
    def source(self) -> str:
        """Whose events are capped together."""
        match self.kind:
            case "pr" if self.pr is not None:
                return f"#{self.pr}"
            case "pr" | "other":
                return f"/{self.branch}"
        return ""

    @property
    def author(self) -> str:
        """Whose lone failures are capped together."""
        return self.source if self.begun_by is None else self.begun_by


def bits(numbers: Iterable[int]) -> int:
    """A number with these bits set."""
    total = 0
    for number in numbers:
        total |= 1 << number
    return total


@dataclass(frozen=True)
class Ran:
    """An upload as the rules of pushes want it."""

    upload: Upload
    passing: int
    failing: int


def _key(upload: Upload) -> RunKey:
    return upload.at, upload.digest


class Ledger:
    """The eligible uploads of a set, each once."""

    def __init__(self, uploads: Iterable[Upload], threshold: float = 100.0) -> None:
        unique = {each.digest: each for each in uploads if each.kind != UNTRUSTED}
        self.uploads = sorted(unique.values(), key=_key)
        self.threshold = threshold
        self.repeats: Mapping[int, Sequence[Repeats]] = {}

    @cached_property
    def clock(self) -> datetime:
        """The evidence clock."""
        return self.uploads[-1].at

    @cached_property
    def scale(self) -> Scale:
        """What its tests are held against."""
        return Scale(self.clock, self.uploads[0].at.toordinal(), self.noise, self.threshold)

    @cached_property
    def failed(self) -> list[int]:
        """The tests that ever failed: all others are healthy."""
        return sorted({no for each in self.uploads for no in _failed_in(each)})

    def judge(
        self, no: int, flags: tuple[Flag, ...] = (), settled: Settled | None = None
    ) -> Health:
        """The health of a test."""
        return health.judge(self.evidence_of(no, flags, settled), self.scale)

    def evidence_of(
        self, no: int, flags: tuple[Flag, ...] = (), settled: Settled | None = None
    ) -> Evidence:
        """What judging a test needs."""
        near = self._uploads_with[no]
        return Evidence(
            first_run=next(each.at for each in near if each.letters(no)),
            last_run=next(each.at for each in reversed(near) if each.letters(no)),
            first_pass=next((each.at for each in near if "P" in each.letters(no)), None),
            events=self.events_of(no),
            passes=self.passes_of(no),
            failures=tuple(self._failures[no]),
            tracks=tuple(self.tracks.get(no, ())),
            flags=flags,
            settled=settled,
            repeats=tuple(self._repeats_of(no)),
        )

    def _repeats_of(self, no: int) -> Iterable[Repeats]:
        for each in self.repeats.get(no, ()):
            is_shared = len(self.machines.get(each.job, ())) >= evidence.MACHINES_MIN
            yield each if is_shared else replace(each, machine="")

    def passes_of(self, no: int) -> Passes:
        """Its passing results; times on the days of its events."""
        days = {event.at.toordinal() for event in self.events_of(no)}
        days |= {each.at.toordinal() for each in self.repeats.get(no, ())}
        return Passes(self._passing_counts(no), {day: self._passing_times(no, day) for day in days})

    def events_of(self, no: int) -> tuple[Event, ...]:
        """Its events of all streams."""
        streams = (self.events_a, self.events_b, self.events_c)
        found = (event for events in streams for event in events.get(no, ()))
        return tuple(evidence.on_shared(found, self.machines))

    @cached_property
    def machines(self) -> dict[str, set[str]]:
        """By job, the machines that are named."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for each in self.uploads:
            if each.machine:
                found[each.job].add(each.machine)
        return found

    def _passing_counts(self, no: int) -> dict[int, int]:
        first, table = self._passing_by_day
        counts = table[:, no].tolist()
        return {first + place: count for place, count in enumerate(counts) if count}

    @cached_property
    def _failures(self) -> dict[int, list[datetime]]:
        """By test, the times of its failed results."""
        found: dict[int, list[datetime]] = {no: [] for no in self.failed}
        for each in self.uploads:
            for no, letters in each.attempts.items():
                if letters[-1] == "F" and no in found:
                    found[no].append(each.at)
        return found

    def _passing_times(self, no: int, day: int) -> tuple[datetime, ...]:
        return tuple(each.at for each in self._by_day.get(day, ()) if each.passing >> no & 1)

    @cached_property
    def _by_day(self) -> dict[int, list[Upload]]:
        found: defaultdict[int, list[Upload]] = defaultdict(list)
        for each in self.uploads:
            found[each.at.toordinal()].append(each)
        return dict(found)

    @cached_property
    def _passing_by_day(self) -> tuple[int, NDArray[np.int64]]:
        """The first day, and passing results by day from it on and by test."""
        first = self.uploads[0].at.toordinal()
        size = max((each.passed | bits(each.attempts)).bit_length() for each in self.uploads)
        width = (size + 7) // 8
        table = np.zeros((self.clock.toordinal() - first + 1, width * 8), np.int64)
        for each in self.uploads:
            table[each.at.toordinal() - first] += _unpacked([each.passing], width)[0]
        return first, table

    @cached_property
    def suspects(self) -> list[int]:
        """Tests that can be anything but healthy: with an event, or broken for once."""
        streaks = {
            no
            for no, tracks in self.tracks.items()
            if any(series.FAILED * series.STREAK_MIN in each.letters() for each in tracks)
        }
        return sorted({*self.events_a, *self.events_b, *self.events_c, *streaks})

    @cached_property
    def _uploads_with(self) -> dict[int, list[Upload]]:
        """By test that ever failed, the uploads of the jobs in which it ran."""
        by_job: defaultdict[str, list[Upload]] = defaultdict(list)
        ran: defaultdict[str, int] = defaultdict(int)
        for each in self.uploads:
            by_job[each.job].append(each)
            ran[each.job] |= each.passed | bits(each.attempts)
        together: dict[tuple[str, ...], list[Upload]] = {}
        found: dict[int, list[Upload]] = {}
        for no in self.failed:
            jobs = tuple(job for job in by_job if ran[job] >> no & 1)
            if jobs not in together:
                merged = [each for job in jobs for each in by_job[job]]
                together[jobs] = sorted(merged, key=_key)
            found[no] = together[jobs]
        return found

    @cached_property
    def _ambiguous(self) -> set[str]:
        """Job keys under which several machines report in one attempt of a CI run."""
        machines: defaultdict[tuple[str, int, str], set[str]] = defaultdict(set)
        for each in self.uploads:
            if each.run and each.machine:
                machines[each.run, each.run_attempt, each.job].add(each.machine)
        return {job for (_, _, job), names in machines.items() if len(names) > 1}

    @cached_property
    def _groups(self) -> dict[tuple[int, str, str], Group]:
        """Groups with a failed attempt, by (test, job key, code id)."""
        on_code: defaultdict[tuple[str, str], list[Upload]] = defaultdict(list)
        for each in self.uploads:
            if not each.is_mass:
                on_code[each.job, each.code].append(each)
        keys = {
            (no, each.job, each.code)
            for each in self.uploads
            if not each.is_mass
            for no in _failed_in(each)
        }
        return {
            (no, job, code): Group(
                job,
                code,
                tuple(_attempts(no, on_code[job, code])),
                is_ambiguous=job in self._ambiguous,
            )
            for no, job, code in keys
        }

    @cached_property
    def _charged(self) -> dict[str, Charged]:
        """What each upload with a failed attempt adds to events."""
        disagreeing = {key for key, group in self._groups.items() if evidence.disagreements(group)}
        by_run: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
        numbers: dict[str, set[int]] = {}
        for each in self.uploads:
            found = {no for no in _failed_in(each) if (no, each.job, each.code) in disagreeing}
            numbers[each.digest] = set() if each.is_mass else found
            by_run[each.run, each.run_attempt] |= numbers[each.digest]
        return {
            each.digest: Charged(
                tests_run=each.tests_run,
                disagreeing=len(numbers[each.digest]),
                disagreeing_in_run=len(
                    by_run[each.run, each.run_attempt] if each.run else numbers[each.digest]
                ),
                source=each.source,
                machine=each.machine,
            )
            for each in self.uploads
            if each.attempts
        }

    @cached_property
    def events_a(self) -> dict[int, list[Event]]:
        """Events of stream A by test."""
        found: defaultdict[int, list[Event]] = defaultdict(list)
        for (no, _, _), group in self._groups.items():
            events = evidence.events_of(group, self._charged)
            if events:
                found[no].extend(events)
        return {no: sorted(events) for no, events in found.items()}

    @cached_property
    def _points(self) -> dict[tuple[str, str], dict[tuple[str, str], list[Upload]]]:
        """By series, the uploads of each point, oldest first."""
        grouped: defaultdict[tuple[str, str], dict[tuple[str, str], list[Upload]]]
        grouped = defaultdict(dict)
        for each in self.uploads:
            if each.kind == STABLE and not each.is_mass:
                grouped[each.branch, each.job].setdefault((each.code, each.run), []).append(each)
        return grouped

    @cached_property
    def _verdicts(self) -> dict[tuple[str, str], tuple[list[Point], list[int], list[int]]]:
        """By series: its points, and for each the tests that passed and those that failed."""
        found = {}
        for name, by_point in self._points.items():
            places = (Place(each[0].at, *key, _position(each)) for key, each in by_point.items())
            passed, failed, points = [], [], []
            for at, code, run, position in series.in_order(places)[-series.POINTS_MAX :]:
                green, red = _verdict(by_point[code, run])
                passed.append(green)
                failed.append(red)
                sha, ran = code.partition(":")[2], (green | red).bit_count()
                machine = series.machine_of(each.machine for each in by_point[code, run])
                points.append(Point(at, code, run, sha, ran, position=position, machine=machine))
            found[name] = (points, passed, failed)
        return found

    @cached_property
    def tracks(self) -> dict[int, list[Track]]:
        """Of each test that ever failed, one for each series."""
        found: defaultdict[int, list[Track]] = defaultdict(list)
        for (branch, job), (points, passed, failed) in self._verdicts.items():
            bare, alone = Series(branch, job, tuple(points)), Counter[Point]()
            letters = _letters(self.failed, passed, failed)
            letters = {no: text for no, text in letters.items() if text.strip(series.ABSENT)}
            for text in letters.values():
                if series.FAILED in text:
                    alone.update(series.lonely_points(Track(bare, text)))
            whole = replace(
                bare, points=tuple(replace(point, alone=alone[point]) for point in points)
            )
            for no, text in letters.items():
                found[no].append(Track(whole, text))
        return dict(found)

    @cached_property
    def events_b(self) -> dict[int, list[Event]]:
        """Events of stream B by test."""
        found: dict[int, list[Event]] = {}
        for no, tracks in self.tracks.items():
            codes = {event.code for event in self.events_a.get(no, ())}
            events = list(series.lone_events(tracks, codes))
            if events:
                found[no] = events
        return found

    @cached_property
    def events_c(self) -> dict[int, list[Event]]:
        """Events of stream C by test."""
        found: defaultdict[int, list[Event]] = defaultdict(list)
        by_job: defaultdict[str, list[Ran]] = defaultdict(list)
        for each in self.uploads:
            if not each.is_mass:
                by_job[each.job].append(Ran(each, each.passing, each.failing))
        jobs = {job: pushes.JobRuns(job) for job in by_job}
        for job, ran in by_job.items():
            jobs[job].change(ran, ())
        for job, runs in jobs.items():
            for push, alone in runs.alone.items():
                for no in alone.tests:
                    if alone.first and self._is_alone(no, push, alone.first):
                        found[no].append(pushes.event_of(job, push, alone, no))
        codes = {no: {event.code for event in events} for no, events in self.events_a.items()}
        kept = {no: [*pushes.without(events, codes.get(no, ()))] for no, events in found.items()}
        return {no: events for no, events in kept.items() if events}

    def _is_alone(self, no: int, push: PushKey, first: RunKey) -> bool:
        """Whether some job saw the test pass in the nearest push on each side that ran it."""
        for is_after in (False, True):
            beside = self._beside(no, push, first, is_after=is_after)
            nearest = [each for each in beside if each.code == beside[0].code]
            if nearest and not any(each.passing >> no & 1 for each in nearest):
                return False
        return True

    def _beside(self, no: int, push: PushKey, first: RunKey, *, is_after: bool) -> list[Upload]:
        """The nearest upload of each job that ran the test on other code, the nearest first."""
        source, code = push
        found: list[Upload] = []
        for uploads in self._by_source[source].values():
            side = [each for each in uploads if (_key(each) >= first) == is_after]
            near = side[: pushes.REACH] if is_after else side[::-1][: pushes.REACH]
            ran = (each for each in near if (each.passing | each.failing) >> no & 1)
            found += [each for each in ran if each.code != code][:1]
        return sorted(found, key=_key, reverse=not is_after)

    @cached_property
    def _by_source(self) -> dict[str, dict[str, list[Upload]]]:
        """By source and job, its uploads that are no mass failures."""
        found: defaultdict[str, dict[str, list[Upload]]] = defaultdict(dict)
        for each in self.uploads:
            if not each.is_mass:
                found[each.source].setdefault(each.job, []).append(each)
        return found

    @cached_property
    def noise(self) -> dict[int, Noise]:
        """The noise of each day up to the clock's."""
        first, newest = self.uploads[0].at.toordinal(), self.clock.toordinal()
        size = newest - first + 1
        passing, verdicts = [0] * size, [0] * size
        for each in self.uploads:
            passing[each.at.toordinal() - first] += each.passing.bit_count()
        for uploads in (each for by_point in self._points.values() for each in by_point.values()):
            green, red = _verdict(uploads)
            verdicts[uploads[0].at.toordinal() - first] += (green | red).bit_count()
        disagreeing = {*self.events_a, *self.events_b, *self.events_c}
        tests = [self._daily(no, first, size) for no in disagreeing]
        sums = [_sums(passing), _sums(verdicts)]
        found = {}
        for day in range(size):
            since = max(0, day - noise.DAYS)
            tallies = [tuple(each[day] - each[since] for each in five) for five in tests]
            found[first + day] = noise.measure(
                sums[0][day] - sums[0][since],
                sums[1][day] - sums[1][since],
                [
                    Tallies(Tally(a / MILLION, n), Tally(b / MILLION, m), Tally(c / MILLION, n))
                    for a, n, b, m, c in tallies
                    if a or b or c
                ],
            )
        return found

    def _daily(self, no: int, first: int, size: int) -> tuple[list[int], ...]:
        """Running sums by day of D_A, N_A, D_B, N_B, D_C; weights in millionths, to be exact."""
        rows = [[0] * size for _ in range(5)]
        for row, events in ((0, self.events_a), (2, self.events_b), (4, self.events_c)):
            for event in events.get(no, ()):
                rows[row][event.at.toordinal() - first] += round(event.weight * MILLION)
        for day, count in self._passing_counts(no).items():
            rows[1][day - first] += count
        for track in self.tracks.get(no, ()):
            for point in track.ran():
                rows[3][point.at.toordinal() - first] += 1
        return tuple(_sums(row) for row in rows)


def _failed_in(upload: Upload) -> list[int]:
    """Tests with a failed comparable attempt."""
    return [
        no for no, letters in upload.attempts.items() if "F" in letters and no not in upload.muddled
    ]


def _position(uploads: Iterable[Upload]) -> int | None:
    return min((each.position for each in uploads if each.position is not None), default=None)


def _verdict(uploads: Iterable[Upload]) -> tuple[int, int]:
    """A bit for each test that passed at a point, and for each that only failed."""
    green, red = 0, 0
    for each in uploads:
        green, red = green | each.passing, red | each.failing
    return green, red & ~green


def _attempts(no: int, uploads: Iterable[Upload]) -> Iterable[GroupAttempt]:
    for upload in uploads:
        if no not in upload.muddled:
            for place, letter in enumerate(upload.letters(no)):
                yield GroupAttempt(upload.at, upload.digest, place, letter == "P")


def _letters(numbers: list[int], passed: list[int], failed: list[int]) -> dict[int, str]:
    """By test, one letter for each point: P, F, or that it is absent."""
    size = max(each.bit_length() for each in (1 << max(numbers, default=0), *passed, *failed))
    green, red = (_unpacked(each, (size + 7) // 8) for each in (passed, failed))
    codes = np.where(green, ord("P"), np.where(red, ord("F"), ord(series.ABSENT)))
    by_test = np.ascontiguousarray(codes.astype(np.uint8).T)
    return {no: by_test[no].tobytes().decode() for no in numbers}


def _unpacked(sets: list[int], width: int) -> NDArray[np.uint8]:
    """A row of bits for each set, over so many bytes."""
    packed = b"".join(each.to_bytes(width, "little") for each in sets)
    rows = np.frombuffer(packed, np.uint8).reshape(len(sets), width)
    return np.unpackbits(rows, axis=1, bitorder="little")


def _sums(values: Iterable[int]) -> list[int]:
    """Running sums, beginning with 0."""
    return [0, *accumulate(values)]
