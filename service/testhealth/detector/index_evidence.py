"""Indexed evidence of the tests that ever failed in a repository, and whom a change affects.

After any changes it equals evidence built from the remaining uploads at once. It has nothing that
is not in them, so losing it costs time alone. Tests that never failed are healthy and not in it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import date, datetime
from typing import NamedTuple

from service.testhealth.detector import evidence, pushes, series
from service.testhealth.detector.evidence import Charged, Event, Group, GroupAttempt, Passes
from service.testhealth.detector.health import Evidence
from service.testhealth.detector.index_passes import DailyPasses
from service.testhealth.detector.index_pushes import IndexedPushes
from service.testhealth.detector.index_series import IndexedSeries, PointKey, Verdicts
from service.testhealth.detector.index_uploads import IndexedUpload, IndexedUploads, bits_of, places
from service.testhealth.detector.machines import Ran
from service.testhealth.detector.repeats import Repeats
from service.testhealth.reports.uploads import PASSED, EvidenceUpload, PassedSets, UploadClass

JobCode = tuple[str, str]


class _Times(NamedTuple):
    """The times when a test passed on a day, valid while the counts of the day are unchanged."""

    changed: int
    times: tuple[datetime, ...]


class IndexedEvidence:
    """Uploads with their evidence of the tests that failed in any of them."""

    def __init__(self) -> None:
        self.uploads = IndexedUploads()
        self.events: dict[int, tuple[Event, ...]] = {}
        self.passing_by_day: Counter[int] = Counter()
        self.verdicts_by_day: Counter[int] = Counter()
        self._events_a: dict[int, tuple[Event, ...]] = {}
        self._passes = DailyPasses()
        self._pushes = IndexedPushes()
        self._machines: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._times: dict[int, Mapping[int, _Times]] = {}
        self._lines: dict[tuple[str, str], IndexedSeries] = {}
        self._disagreeing: dict[JobCode, int] = {}
        self._charged: dict[str, Charged] = {}
        self._ambiguous: set[str] = set()
        self.oldest_changed = 0
        self.followed: Set[int] = frozenset()
        """Tests that are judged without a failure as well; set by the caller."""

    def change(
        self, added: Iterable[EvidenceUpload], removed: Iterable[str], sets: PassedSets
    ) -> set[int]:
        """Add and remove uploads; return the tests whose evidence may have changed.

        An upload is added once only, and unknown uploads are not removed.
        """
        newly_followed = self.followed - self.uploads.bits.keys()
        fresh = {each.id: each for each in added if each.id not in self.uploads}
        self._note_followed(self.uploads.follow(fresh.values(), self.followed, sets))
        gone = [self.uploads.take_out(each) for each in set(removed) if each in self.uploads]
        here = self.uploads.put_in(fresh.values(), sets)
        for kept, sign in (*((each, -1) for each in gone), *((each, 1) for each in here)):
            self._count(kept, sign)
        changed = [*gone, *here]
        self.oldest_changed = min(
            (kept.upload.day for kept in changed), default=date.max.toordinal()
        )
        touched = bits_of(each.ran for each in changed)
        weighed = self._regroup(self._codes_to_group(changed), changed)
        for no in self.uploads.nos_in(weighed):
            self._events_a.pop(no, None)
        touched |= weighed | self._pushes.change(here, gone)
        touched |= self._count_machines(here, gone)
        touched |= self._draw_lines([each for each in changed if _is_point(each)], sets)
        return set(self.uploads.nos_in(touched)) | newly_followed

    def evidence_of(self, no: int, days: Set[int] = frozenset()) -> Evidence | None:
        """Return the evidence of a test, its events as last renewed; None if it never ran.

        It has the times when the test passed on `days`, and on those of its events.
        """
        bit = self.uploads.bits.get(no)
        ran = None if bit is None else self.uploads.span(bit)
        if bit is None or ran is None:
            return None
        return Evidence(
            first_run=ran.first,
            last_run=ran.last,
            first_pass=ran.first_pass,
            events=self.events.get(no, ()),
            passes=self._passes_of(no, bit, days),
            failures=tuple(sorted(self.uploads.failures(no))),
            tracks=tuple(t for line in self._lines.values() if (t := line.track(bit))),
        )

    def renew_events(self, no: int) -> Iterator[int]:
        """Find the events of a test anew; return the days of those that differ."""
        bit, before = self.uploads.bits[no], self.events.pop(no, ())
        if no not in self._events_a:
            self._events_a[no] = tuple(self._disagreements(no, bit))
        now = list(self._events_a[no])
        codes = {event.code for event in now}
        lines = [line for line in self._lines.values() if line.red >> bit & 1]
        tracks = [track for line in lines if (track := line.track(bit))]
        now += series.lone_events(tracks, codes)
        now += pushes.without(self._pushes.events_of(bit), codes)
        if now:
            self.events[no] = tuple(sorted(evidence.on_shared(now, self._machines)))
        if before or now:
            yield from (event.at.toordinal() for event in {*before} ^ {*now})

    def passes_within(self, no: int, days: range) -> int:
        """Return in how many uploads of these days a test passed."""
        by_day = self._passes.by_day(self.uploads.bits[no])
        return sum(by_day.get(day, 0) for day in days)

    def verdicts_within(self, no: int, days: range) -> int:
        """Return how many verdicts a test has on these days in all series."""
        bit = self.uploads.bits[no]
        return sum(line.verdicts_within(bit, days) for line in self._lines.values())

    def runs_on_machines(self, since: datetime) -> Iterator[tuple[datetime, Ran]]:
        """Return when jobs ran after an instant, and where, if enough machines share them."""
        for kept in self.uploads.since(since):
            upload = kept.upload
            if upload.machine and len(self._machines[upload.job]) >= evidence.MACHINES_MIN:
                yield upload.at, Ran(upload.machine, upload.job, upload.code)

    def _count(self, kept: IndexedUpload, sign: int) -> None:
        upload = kept.upload
        self.passing_by_day[upload.day] += sign * upload.passing
        (self._passes.add if sign > 0 else self._passes.take)(upload.day, kept.passing)

    def _count_machines(
        self, added: Iterable[IndexedUpload], removed: Iterable[IndexedUpload]
    ) -> int:
        """Count the machines of each job; return a bit for each test with an event in it.

        Of the jobs that enough machines share now, and did not before, or the other way round.
        """
        before: dict[str, bool] = {}
        for sign, uploads in ((1, added), (-1, removed)):
            for upload in (kept.upload for kept in uploads if kept.upload.machine):
                machines = self._machines[upload.job]
                before.setdefault(upload.job, len(machines) >= evidence.MACHINES_MIN)
                machines[upload.machine] += sign
        for job in before:
            self._machines[job] = +self._machines[job]
        changed = {
            job
            for job, was in before.items()
            if was != (len(self._machines[job]) >= evidence.MACHINES_MIN)
        }
        return self.uploads.bits_for(
            no
            for no, events in self.events.items()
            if changed and any(event.job in changed for event in events)
        )

    def _note_followed(self, followed: Iterable[tuple[IndexedUpload, int]]) -> None:
        """Count where tests that are followed from now on passed before."""
        for kept, passing in followed:
            upload = kept.upload
            self._passes.add_new(upload.day, passing)
            if _is_point(kept):
                line = self._lines[upload.branch, upload.job]
                line.note_passed((upload.code, upload.run), passing)

    def on_shared(self, repeats: Repeats) -> Repeats:
        """Return the repeats, with their machine where enough of these share the job."""
        is_shared = len(self._machines.get(repeats.job, ())) >= evidence.MACHINES_MIN
        return repeats if is_shared or not repeats.machine else replace(repeats, machine="")

    def _passes_of(self, no: int, bit: int, more: Set[int]) -> Passes:
        days = {event.at.toordinal() for event in self.events.get(no, ())} | more
        earlier = self._times.pop(no, {})
        times = {day: self._times_on(day, bit, earlier.get(day)) for day in days}
        if times:
            self._times[no] = times
        return Passes(
            self._passes.by_day(bit), {day: on_day.times for day, on_day in times.items()}
        )

    def _times_on(self, day: int, bit: int, earlier: "_Times | None") -> "_Times":
        """Return when a test passed on a day; unchanged days are not searched again."""
        changed = self._passes.changed(day)
        if earlier is not None and earlier.changed == changed:
            return earlier
        instants = (kept.upload.at for kept in self.uploads.on_day(day) if kept.passing >> bit & 1)
        return _Times(changed, tuple(sorted(instants)))

    # Stream A.

    def _codes_to_group(self, changed: Iterable[IndexedUpload]) -> set[JobCode]:
        """Return the jobs and codes whose groups may have changed."""
        codes: set[JobCode] = set()
        for kept in changed:
            job = kept.upload.job
            codes.add((job, kept.upload.code))
            if self.uploads.is_ambiguous(job) != (job in self._ambiguous):
                self._ambiguous ^= {job}
                codes |= self.uploads.codes_of(job)
        return codes

    def _regroup(self, codes: Iterable[JobCode], changed: Iterable[IndexedUpload]) -> int:
        """Compare attempts anew; return a bit for each test with an event of changed weight."""
        runs = (each for kept in changed if kept.upload.run for each in self.uploads.of_run(kept))
        affected = {each.upload.id: each for each in runs}
        touched = 0
        for code in sorted(codes):
            before, together = self._disagreeing.pop(code, 0), self.uploads.on_code(code)
            after = 0
            lost, passing = (kept.lost for kept in together), (kept.passing for kept in together)
            for bit in places(bits_of(lost) & bits_of(passing)):
                if evidence.disagreements(self._group(code, bit, together)):
                    after |= 1 << bit
            if after:
                self._disagreeing[code] = after
            if before or after:
                touched |= before | after
            for kept in together:
                affected |= {each.upload.id: each for each in self.uploads.of_run(kept)}
        return touched | self._charge(affected.values())

    def _charge(self, affected: Iterable[IndexedUpload]) -> int:
        touched = 0
        for kept in affected:
            upload = kept.upload
            disagreeing = self._disagreeing_in(kept)
            in_run = bits_of(self._disagreeing_in(each) for each in self.uploads.of_run(kept))
            charged = Charged(
                upload.tests_run,
                disagreeing.bit_count(),
                in_run.bit_count(),
                upload.source,
                upload.machine,
            )
            if self._charged.get(upload.digest) != charged:
                self._charged[upload.digest] = charged
                touched |= disagreeing
        return touched

    def _disagreeing_in(self, kept: IndexedUpload) -> int:
        return kept.lost & self._disagreeing.get((kept.upload.job, kept.upload.code), 0)

    def _group(self, code: JobCode, bit: int, together: Iterable[IndexedUpload]) -> Group:
        no = self.uploads.nos[bit]
        attempts = (
            GroupAttempt(kept.upload.at, kept.upload.digest, place, letter == PASSED)
            for kept in together
            if (kept.passing | kept.lost) >> bit & 1
            for place, letter in enumerate(kept.letters(no, bit))
        )
        return Group(*code, tuple(attempts), is_ambiguous=code[0] in self._ambiguous)

    def _disagreements(self, no: int, bit: int) -> Iterator[Event]:
        for code in sorted(self.uploads.codes_lost(no)):
            if self._disagreeing.get(code, 0) >> bit & 1:
                group = self._group(code, bit, self.uploads.on_code(code))
                yield from evidence.events_of(group, self._charged)

    # Stream B.

    def _draw_lines(self, changed: Sequence[IndexedUpload], sets: PassedSets) -> int:
        dirty: defaultdict[tuple[str, str], set[PointKey]] = defaultdict(set)
        for kept in changed:
            upload = kept.upload
            dirty[upload.branch, upload.job].add((upload.code, upload.run))
        touched = 0
        for name, keys in dirty.items():
            line = self._lines.setdefault(name, IndexedSeries(*name))
            before = {key: line.points.get(key) for key in keys}
            after = {key: self._verdicts_at(name, key, sets) for key in keys}
            ran, days = line.put(after)
            self.oldest_changed = min([self.oldest_changed, *days])
            self._count_verdicts(before.values(), -1)
            self._count_verdicts(after.values(), 1)
            tests = [(self.uploads.nos[bit], bit) for bit in places(ran)]
            alone = line.renew_lonely(tests)
            touched |= ran | self.uploads.bits_for(no for key in alone for no in line.alone[key])
            if not line.points:
                del self._lines[name]
        return touched

    def _count_verdicts(self, verdicts: Iterable[Verdicts | None], sign: int) -> None:
        for each in filter(None, verdicts):
            day = each.at.toordinal()
            self.verdicts_by_day[day] += sign * each.tests_run
            self.oldest_changed = min(self.oldest_changed, day)

    def _verdicts_at(
        self, name: tuple[str, str], key: PointKey, sets: PassedSets
    ) -> Verdicts | None:
        branch, job = name
        code, run = key
        together = sorted(
            (
                kept
                for kept in self.uploads.on_code((job, code))
                if _is_point(kept) and (kept.upload.branch, kept.upload.run) == (branch, run)
            ),
            key=lambda kept: (kept.upload.at, kept.upload.digest),
        )
        if not together:
            return None
        first = together[0].upload
        green = bits_of(kept.passing for kept in together)
        red = bits_of(kept.failing for kept in together) & ~green
        known = (kept.upload.position for kept in together)
        position = min((each for each in known if each is not None), default=None)
        tests = tests_at(together, sets)
        machine = series.machine_of(kept.upload.machine for kept in together)
        return Verdicts(first.at, first.sha, position, tests, green, red, machine)


def _is_point(kept: IndexedUpload) -> bool:
    """Return whether an upload has verdicts of a series."""
    return kept.upload.kind is UploadClass.STABLE and not kept.upload.is_mass


def tests_at(together: Sequence[IndexedUpload], sets: PassedSets) -> int:
    """Return how many tests have a verdict in these uploads, each counted once."""
    if len(together) == 1:
        upload = together[0].upload
        return upload.tests_run - sum(1 for no in upload.attempts if no in upload.muddled)
    tests: set[int] = set()
    for kept in together:
        upload = kept.upload
        tests.update(no for no in upload.attempts if no not in upload.muddled)
        if upload.passed is not None:
            tests.update(sets.numbers(upload.passed))
    return len(tests)
