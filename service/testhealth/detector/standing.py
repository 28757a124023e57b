"""How the tests of a repository stand while uploads come and go: who must be judged, and how.

Health hangs on a test's own evidence, on the evidence clock and on the repository's noise
(FLAKY.md 6); this knows of all three when they change, so that only those are judged again
whose health may be another. Equal to judging everybody anew.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from service.testhealth.detector import health, noise, series, spans
from service.testhealth.detector.book import Book
from service.testhealth.detector.evidence import Event, Stream
from service.testhealth.detector.health import Evidence, Flag, Health
from service.testhealth.detector.score import Noise, Tally
from service.testhealth.detector.series import Track
from service.testhealth.detector.spans import Scale, Settled
from service.testhealth.reports.uploads import EvidenceUpload, PassedSets

_MILLION = 1_000_000
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Known:
    """What else is known of a test: flags, what was settled, and of the time before the book.

    `first_run` counts where it lies before every upload of the book that is not the first ever.
    """

    flags: tuple[Flag, ...] = ()
    settled: Settled | None = None
    first_run: datetime | None = None
    has_passed: bool = False


NOTHING_KNOWN = Known()


@dataclass(frozen=True, slots=True)
class Earlier:
    """What remains of uploads that are forgotten: the first day ever, and the noise they showed.

    `noise` has the days whose 28 days before are not all in the book any more.
    """

    first_day: int
    noise: Mapping[int, Noise]


@dataclass(frozen=True, slots=True)
class Settling:
    """Uploads that are to be forgotten, and the tests of which nothing is concluded yet."""

    going: list[str]
    left: list[int]


class Standing:
    """The tests of a repository that ever failed."""

    def __init__(self, threshold: float, earlier: Earlier | None = None) -> None:
        self.threshold = threshold
        self.earlier = earlier
        self.book = Book()
        self.noise: dict[int, Noise] = {}
        self.unjudged: set[int] = set()
        """Tests that `change` named and nobody had time for; kept by who judges."""
        self.settling: Settling | None = None
        """What is to be concluded before `forget`; None: nothing, kept by who judges."""
        self.noted: dict[int, Noise] = {}
        """The noise as it was written down last; kept by who judges."""
        self._clock: datetime | None = None
        self._first_day = 0
        self._due: dict[int, datetime] = {}
        self._ever_broken: set[int] = set()

    @property
    def scale(self) -> Scale | None:
        """What tests are held against, None without any upload."""
        if self._clock is None:
            return None
        return Scale(self._clock, self._first_day, self.noise, self.threshold)

    def change(
        self, added: Iterable[EvidenceUpload], removed: Iterable[str], sets: PassedSets
    ) -> set[int]:
        """Take uploads in and out; the tests that must be judged, those without evidence too."""
        before = self.scale
        # A point of a series at which a test is missing may end the time in which it was broken.
        touched = self.book.change(added, removed, sets) | self._ever_broken
        differing = (day for no in touched for day in self.book.renew_events(no))
        oldest = min([self.book.oldest_changed, *differing])
        self._move_clock()
        self._renew_noise(oldest)
        return touched | self._by_noise(before) | self._by_clock(before)

    def hold_against(self, threshold: float) -> set[int]:
        """Let another score be enough; the tests that must be judged."""
        self.threshold = threshold
        return set(self.book.shelf.nos)

    def forget(self, before: datetime, sets: PassedSets) -> set[int]:
        """Let go of what ran before a midnight; the tests that must be judged.

        Who judges them needs `settled_at` of each from before.
        """
        gone, day = self.going(before), before.toordinal()
        if not gone:
            return set()
        frozen = {each: found for each, found in self.noise.items() if each < day + noise.DAYS}
        self.earlier = Earlier(self._first_day, frozen)
        return self.change((), gone, sets)

    def going(self, before: datetime) -> list[str]:
        """The uploads that ran before a midnight, oldest first."""
        oldest = self.book.shelf.ordered
        return [upload_id for _, _, upload_id in oldest[: bisect_left(oldest, (before,))]]

    def judge(self, no: int, known: Known = NOTHING_KNOWN) -> Health | None:
        """The health of a test that `change` named; None if no upload has it any more."""
        found, scale = self.book.evidence_of(no), self.scale
        if found is None or scale is None:
            self._due.pop(no, None)
            self._ever_broken.discard(no)
            return None
        judged = health.judge(self._with(found, known), scale)
        self._note_due(no, found, judged, scale)
        return judged

    def evidence(self, no: int, known: Known = NOTHING_KNOWN) -> Evidence | None:
        """All that judging a test hangs on but the scale; None if no upload has it any more."""
        found = self.book.evidence_of(no)
        return None if found is None else self._with(found, known)

    def _with(self, found: Evidence, known: Known) -> Evidence:
        """The evidence together with what the book does not have."""
        told = replace(found, flags=known.flags, settled=known.settled)
        if known.settled is not None and known.settled.broken:
            begun = tuple(_begun(track, known.settled.broken) for track in found.tracks)
            told = replace(told, tracks=begun)
        if self.earlier is None or known.first_run is None or known.first_run > found.first_run:
            return told
        first_pass = found.first_pass
        if first_pass is None and known.has_passed:
            first_pass = known.first_run
        return replace(told, first_run=known.first_run, first_pass=first_pass)

    def _note_due(self, no: int, found: Evidence, judged: Health, scale: Scale) -> None:
        """Remember when the clock alone may change it."""
        due = [found.last_run + health.STALE_AFTER]
        if any(span.until is None for span in judged.fold.spans):
            due.append(spans.midnight(scale.clock.toordinal()) + _DAY)
        later = [at for at in due if at > scale.clock]
        self._due.pop(no, None)
        if later:
            self._due[no] = min(later)
        (self._ever_broken.add if judged.broken else self._ever_broken.discard)(no)

    def _move_clock(self) -> None:
        ordered = self.book.shelf.ordered
        self._clock = ordered[-1][0] if ordered else None
        oldest = ordered[0][0].toordinal() if ordered else 0
        self._first_day = oldest if self.earlier is None else min(self.earlier.first_day, oldest)

    def _by_noise(self, before: Scale | None) -> set[int]:
        """Those with an event that is held against another noise now."""
        now = self.scale
        if before is None or now is None:
            return {no for no, events in self.book.events.items() if events}
        days = {event.at.toordinal() for events in self.book.events.values() for event in events}
        changed = {day for day in days if before.noise_on(day) != now.noise_on(day)}
        return {
            no
            for no, events in self.book.events.items()
            if changed and any(event.at.toordinal() in changed for event in events)
        }

    def _by_clock(self, before: Scale | None) -> set[int]:
        now = self._clock
        if before is None or now is None or now < before.clock:
            return set(self.book.shelf.nos)
        return {no for no, at in self._due.items() if at <= now}

    def _renew_noise(self, oldest_changed: int) -> None:
        """Measure the days after the oldest one that changed; those before saw nothing of it."""
        if self._clock is None:
            self.noise = {}
            return
        newest, oldest = self._clock.toordinal(), self.book.shelf.ordered[0][0].toordinal()
        frozen = {} if self.earlier is None else self.earlier.noise
        kept = {
            day: found for day, found in self.noise.items() if oldest <= day <= oldest_changed
        } | {day: found for day, found in frozen.items() if oldest <= day <= newest}
        self.noise = {
            day: kept[day] if day in kept else self._noise_on(day)
            for day in range(oldest, newest + 1)
        }

    def _noise_on(self, day: int) -> Noise:
        days = range(day - noise.DAYS, day)
        passing = sum(self.book.passing_by_day.get(each, 0) for each in days)
        verdicts = sum(self.book.verdicts_by_day.get(each, 0) for each in days)
        return noise.of(passing, verdicts, self._tallies(days))

    def _tallies(self, days: range) -> Iterator[tuple[Tally, Tally]]:
        for no, events in self.book.events.items():
            found = [event for event in events if event.at.toordinal() in days]
            if found:
                yield (
                    Tally(_weight(found, Stream.A), self.book.passes_within(no, days)),
                    Tally(_weight(found, Stream.B), self.book.verdicts_within(no, days)),
                )


def _begun(track: Track, broken: Mapping[tuple[str, str], datetime]) -> Track:
    """The track from where the test is settled to be broken in it: what was before counts no more.

    Some of that may be forgotten, and the rest would tell of another beginning.
    """
    since = broken.get((track.series.branch, track.series.job))
    if since is None:
        return track
    pairs = zip(track.series.points, track.verdicts, strict=True)
    letters = (series.ABSENT if point.at < since else letter for point, letter in pairs)
    return replace(track, verdicts="".join(letters))


def _weight(events: Iterable[Event], stream: Stream) -> float:
    """In millionths first: sums of whole numbers do not depend on their order."""
    units = sum(round(event.weight * _MILLION) for event in events if event.stream is stream)
    return units / _MILLION
