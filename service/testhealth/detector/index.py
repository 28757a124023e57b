"""The evidence index of a repository: the evidence of its tests, and which of them to judge anew.

Health depends on a test's own evidence, on the evidence clock and on the repository's noise
(docs/design/detector.md 6). The index follows all three, so that only tests are judged again whose
health may have changed. The result equals judging all tests anew.

Judging 500 of 3,000 failing tests from their rows misses the goal of 0.5 s of CPU in an upload: at
least 2.8 s with 1,800 uploads in 45 days, with the index 0.5 s (`tests/bench/judging.py`).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from service.testhealth.detector import health, noise, series, spans
from service.testhealth.detector.evidence import Event, Stream
from service.testhealth.detector.health import Evidence, Flag, Health
from service.testhealth.detector.index_evidence import IndexedEvidence
from service.testhealth.detector.repeats import Repeats
from service.testhealth.detector.score import Noise, Tallies, Tally
from service.testhealth.detector.series import Track
from service.testhealth.detector.spans import Scale, Settled
from service.testhealth.reports.uploads import EvidenceUpload, PassedSets

_MILLION = 1_000_000
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TestFacts:
    """Facts about a test that are not in uploads: flags, settled conclusions, its past.

    `first_run` counts if it is before every indexed upload, unless these begin with the first one.
    `repeats` are by the id of the upload whose job repeated the test.
    """

    flags: tuple[Flag, ...] = ()
    settled: Settled | None = None
    first_run: datetime | None = None
    has_passed: bool = False
    repeats: tuple[tuple[str, Repeats], ...] = ()


NO_FACTS = TestFacts()


@dataclass(frozen=True, slots=True)
class Earlier:
    """Facts from deleted uploads: the first day ever, and the noise that they showed.

    `noise` has the days whose 28 days before are not all in the index any more.
    """

    first_day: int
    noise: Mapping[int, Noise]


@dataclass(frozen=True, slots=True)
class Settling:
    """Uploads to be removed from the index, and tests whose conclusions are not stored yet."""

    going: list[str]
    left: list[int]


class EvidenceIndex:
    """The tests of a repository that ever failed, with their evidence."""

    def __init__(self, threshold: float, earlier: Earlier | None = None) -> None:
        self.threshold = threshold
        self.earlier = earlier
        self.evidence = IndexedEvidence()
        self.noise: dict[int, Noise] = {}
        self.unjudged: set[int] = set()
        """Tests that are still to be judged; set by the caller."""
        self.settling: Settling | None = None
        """Conclusions to be stored before `forget`, None if there are none; set by the caller."""
        self.noted: dict[int, Noise] = {}
        """The noise as it was stored last; set by the caller."""
        self._clock: datetime | None = None
        self._first_day = 0
        self._due: dict[int, datetime] = {}
        self._ever_broken: set[int] = set()
        self._missing: set[int] = set()

    @property
    def scale(self) -> Scale | None:
        """The scale that tests are measured by, None without any upload."""
        if self._clock is None:
            return None
        return Scale(self._clock, self._first_day, self.noise, self.threshold)

    def change(
        self, added: Iterable[EvidenceUpload], removed: Iterable[str], sets: PassedSets
    ) -> set[int]:
        """Add and remove uploads; return the tests to judge, those without evidence too."""
        before, added, removed = self.scale, tuple(added), tuple(removed)
        touched = self.evidence.change(added, removed, sets)
        # A point of a series at which a test is missing may end the time in which it was broken or
        # flaky. Without any change nothing is due again, so that judging in parts comes to its end.
        if added or removed:
            touched |= self._ever_broken | self._missing
        differing = (day for no in touched for day in self.evidence.renew_events(no))
        oldest = min([self.evidence.oldest_changed, *differing])
        self._move_clock()
        self._renew_noise(oldest)
        return touched | self._by_noise(before) | self._by_clock(before)

    def hold_against(self, threshold: float) -> set[int]:
        """Change the score that makes a test flaky; return the tests to judge."""
        self.threshold = threshold
        return set(self.evidence.uploads.nos)

    def forget(self, before: datetime, sets: PassedSets) -> set[int]:
        """Remove uploads that ran before a midnight; return the tests to judge.

        Judging them needs `settled_at` of each from before.
        """
        gone, day = self.going(before), before.toordinal()
        if not gone:
            return set()
        frozen = {
            each: measured for each, measured in self.noise.items() if each < day + noise.DAYS
        }
        self.earlier = Earlier(self._first_day, frozen)
        return self.change((), gone, sets)

    def going(self, before: datetime) -> list[str]:
        """Return the uploads that ran before a midnight, oldest first."""
        oldest = self.evidence.uploads.ordered
        return [upload_id for _, _, upload_id in oldest[: bisect_left(oldest, (before,))]]

    def judge(self, no: int, facts: TestFacts = NO_FACTS) -> Health | None:
        """Return the health of a test; None if no upload has it any more."""
        evidence, scale = self.evidence.evidence_of(no, _days_of(facts)), self.scale
        if evidence is None or scale is None:
            self._due.pop(no, None)
            self._ever_broken.discard(no)
            self._missing.discard(no)
            return None
        judged = health.judge(self._with(evidence, facts), scale)
        self._note_due(no, evidence, judged, scale)
        return judged

    def evidence_of(self, no: int, facts: TestFacts = NO_FACTS) -> Evidence | None:
        """Return all evidence of a test; None if no upload has it any more."""
        evidence = self.evidence.evidence_of(no, _days_of(facts))
        return None if evidence is None else self._with(evidence, facts)

    def _with(self, evidence: Evidence, facts: TestFacts) -> Evidence:
        """Add the facts that are not in uploads."""
        repeats = tuple(
            self.evidence.on_shared(each)
            for upload_id, each in facts.repeats
            if upload_id in self.evidence.uploads
        )
        complete = replace(evidence, flags=facts.flags, settled=facts.settled, repeats=repeats)
        if facts.settled is not None and facts.settled.broken:
            broken = facts.settled.broken_since
            begun = tuple(_begun(track, broken) for track in evidence.tracks)
            complete = replace(complete, tracks=begun)
        if self.earlier is None or facts.first_run is None or facts.first_run > evidence.first_run:
            return complete
        first_pass = evidence.first_pass
        if first_pass is None and facts.has_passed:
            first_pass = facts.first_run
        return replace(complete, first_run=facts.first_run, first_pass=first_pass)

    def _note_due(self, no: int, evidence: Evidence, judged: Health, scale: Scale) -> None:
        """Remember when the clock alone may change the health of a test."""
        gone = evidence.last_run + health.GONE_AFTER
        due = [evidence.last_run + health.STALE_AFTER]
        if any(span.until is None for span in judged.fold.spans):
            due += (spans.midnight(scale.clock.toordinal()) + _DAY, gone)
        later = [at for at in due if at > scale.clock]
        self._due.pop(no, None)
        if later:
            self._due[no] = min(later)
        (self._ever_broken.add if judged.broken else self._ever_broken.discard)(no)
        is_missing = bool(judged.fold.spans) and gone <= scale.clock
        (self._missing.add if is_missing else self._missing.discard)(no)

    def _move_clock(self) -> None:
        ordered = self.evidence.uploads.ordered
        self._clock = ordered[-1][0] if ordered else None
        oldest = ordered[0][0].toordinal() if ordered else 0
        self._first_day = oldest if self.earlier is None else min(self.earlier.first_day, oldest)

    def _by_noise(self, before: Scale | None) -> set[int]:
        """Return the tests with an event whose noise has changed."""
        now = self.scale
        if before is None or now is None:
            return {no for no, events in self.evidence.events.items() if events}
        days = {
            event.at.toordinal() for events in self.evidence.events.values() for event in events
        }
        changed = {day for day in days if before.noise_on(day) != now.noise_on(day)}
        return {
            no
            for no, events in self.evidence.events.items()
            if changed and any(event.at.toordinal() in changed for event in events)
        }

    def _by_clock(self, before: Scale | None) -> set[int]:
        now = self._clock
        if before is None or now is None or now < before.clock:
            return set(self.evidence.uploads.nos)
        return {no for no, at in self._due.items() if at <= now}

    def _renew_noise(self, oldest_changed: int) -> None:
        """Measure the noise of the days after the oldest one that changed."""
        if self._clock is None:
            self.noise = {}
            return
        newest, oldest = self._clock.toordinal(), self.evidence.uploads.ordered[0][0].toordinal()
        frozen = {} if self.earlier is None else self.earlier.noise
        kept = {
            day: measured for day, measured in self.noise.items() if oldest <= day <= oldest_changed
        } | {day: measured for day, measured in frozen.items() if oldest <= day <= newest}
        self.noise = {
            day: kept[day] if day in kept else self._noise_on(day)
            for day in range(oldest, newest + 1)
        }

    def _noise_on(self, day: int) -> Noise:
        days = range(day - noise.DAYS, day)
        passing = sum(self.evidence.passing_by_day.get(each, 0) for each in days)
        verdicts = sum(self.evidence.verdicts_by_day.get(each, 0) for each in days)
        return noise.measure(passing, verdicts, self._tallies(days))

    def _tallies(self, days: range) -> Iterator[Tallies]:
        for no, events in self.evidence.events.items():
            events_in_days = [event for event in events if event.at.toordinal() in days]
            if events_in_days:
                passes = self.evidence.passes_within(no, days)
                verdicts = self.evidence.verdicts_within(no, days)
                yield Tallies(
                    Tally(_weight(events_in_days, Stream.A), passes),
                    Tally(_weight(events_in_days, Stream.B), verdicts),
                    Tally(_weight(events_in_days, Stream.C), passes),
                )


def _days_of(facts: TestFacts) -> set[int]:
    """Return the days on which a test was repeated."""
    return {each.at.toordinal() for _, each in facts.repeats}


def _begun(track: Track, broken: Mapping[tuple[str, str], datetime]) -> Track:
    """Return the track from where the test is settled to be broken: earlier points do not count.

    Some of them may be deleted, and the rest would show another beginning.
    """
    since = broken.get((track.series.branch, track.series.job))
    if since is None:
        return track
    pairs = zip(track.series.points, track.verdicts, strict=True)
    letters = (series.ABSENT if point.at < since else letter for point, letter in pairs)
    return replace(track, verdicts="".join(letters))


def _weight(events: Iterable[Event], stream: Stream) -> float:
    """Sum up in millionths: sums of whole numbers do not depend on their order."""
    units = sum(round(event.weight * _MILLION) for event in events if event.stream is stream)
    return units / _MILLION
