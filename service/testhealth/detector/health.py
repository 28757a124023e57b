"""The status of one test: `judge` turns its evidence into value, reason, time and history.

The entry point of the detector (docs/design/detector.md 9). A test's health depends only on the
arguments: not on the order of arrival, and not on an earlier judgement.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import zip_longest
from types import MappingProxyType

from service.testhealth.detector import reasons, repeats, score, series, spans
from service.testhealth.detector.evidence import WINDOW_DAYS, Event, Passes
from service.testhealth.detector.history import Change
from service.testhealth.detector.repeats import Repeats, Rounds
from service.testhealth.detector.series import BrokenSpan, Moment, Track
from service.testhealth.detector.spans import FlakySpan, Fold, Measure, Results, Scale, Settled
from service.vocabulary import Health as Status

STALE_AFTER = timedelta(days=30)
"""Of the evidence clock without a run: nobody can tell any more, so the test is in no list."""

GONE_AFTER = timedelta(days=1)
"""The same for a flaky test that a stable branch shows to be removed: nobody runs it any more."""

GROUPS_MAX = 50
"""Groups of which a state names the ids."""

_NONE_BROKEN: Mapping[tuple[str, str], datetime] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Flag:
    """A person's opinion of the test; HEALTHY takes an earlier flag back."""

    at: datetime
    value: Status
    actor: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that the health of one test depends on; sequences may come in any order.

    A run is an upload with a passed or failed result of the test. `first_run` is ever,
    `last_run` the newest, `first_pass` the first passed attempt ever, in any eligible upload.
    `events`: of all its groups (`evidence.events_of`) and tracks (`series.events_of`).
    `failures`: the times of its failed results in the last 45 days, mass failures included.
    `tracks`: one for each series it ever ran in. `settled`: where evidence was dropped. `repeats`:
    runs that Headgate started itself; they are no runs otherwise.
    """

    first_run: datetime
    last_run: datetime
    first_pass: datetime | None
    events: tuple[Event, ...]
    passes: Passes
    failures: tuple[datetime, ...] = ()
    tracks: tuple[Track, ...] = ()
    flags: tuple[Flag, ...] = ()
    settled: Settled | None = None
    repeats: tuple[Repeats, ...] = ()


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers from which a reason was computed; None or empty where it has no part in it.

    `groups`: (job key, code id) of the events, newest first, at most GROUPS_MAX. `failed` of
    `before` verdicts failed before a `streak`, of which `probability` is the chance.
    """

    a: score.Tally | None = None
    b: score.Tally | None = None
    c: score.Tally | None = None
    r: score.RepeatTally | None = None
    noise: score.Noise | None = None
    score: float | None = None
    threshold: float | None = None
    groups: tuple[tuple[str, str], ...] = ()
    streak: int | None = None
    failed: int | None = None
    before: int | None = None
    probability: float | None = None


NO_NUMBERS = Numbers()


@dataclass(frozen=True, slots=True)
class Health:
    """A judgement. `since` is when the value last changed, else the first run.

    `is_stale`: healthy only because nobody runs it. `history` has every change that the evidence
    shows, oldest first.
    """

    value: Status
    reason: str
    since: datetime
    is_stale: bool
    numbers: Numbers
    history: tuple[Change, ...]
    fold: Fold
    broken: tuple[BrokenSpan, ...]


def judge(evidence: Evidence, scale: Scale) -> Health:
    """The health of a test as of the evidence clock."""
    standing = repeats.standing(evidence.repeats, evidence.passes, evidence.failures)
    events = (*evidence.events, *repeats.events_of(standing)) if standing else evidence.events
    results = _results(evidence, standing, has_events=bool(events))
    fold = spans.fold(events, results, scale, evidence.settled)
    broken = _broken(evidence, scale.clock)
    stretches = (
        *_stale(evidence, fold, scale),
        *(_while_broken(span) for span in broken),
        *(_while_flaky(span, scale.threshold) for span in fold.spans),
        *_flagged(evidence.flags),
    )
    history = tuple(_changes(stretches))
    now = _reigning([each for each in stretches if each.until is None])
    open_measure = _recent(fold.open_measure, evidence.last_run)
    if now is not None:
        value, reason, numbers = now.value, now.text, now.numbers
    else:
        value = Status.HEALTHY
        reason = _why_healthy(evidence, stretches, open_measure, scale.threshold)
        if any(series.has_unplaced(track) for track in evidence.tracks):
            reason = reasons.unplaced(reason)
        numbers = _numbers(open_measure, scale.threshold)
    return Health(
        value=value,
        reason=reason,
        since=history[-1].at if history else evidence.first_run,
        is_stale=now is not None and now.value is Status.HEALTHY,
        numbers=numbers,
        history=history,
        fold=fold,
        broken=broken,
    )


def settled_at(health: Health, at: datetime, before: Settled | None = None) -> Settled:
    """Return what a later judgement must know of this one when evidence before `at` - 29 days goes.

    `before`: what this judgement itself was given.
    """
    broken = {
        (each.series.branch, each.series.job): each.since
        for each in health.broken
        if each.since < at and (each.until is None or each.until > at)
    }
    triples = tuple((branch, job, since) for (branch, job), since in sorted(broken.items()))
    return spans.settled_at(health.fold, at, triples, before)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A time with a reason for a value: what is said when it begins, during it, when it ends.

    Of several at the same time the one with the least `rank` reigns, then the older one.
    """

    rank: int
    value: Status
    since: datetime
    until: datetime | None
    first: str
    text: str
    after: str
    numbers: Numbers = NO_NUMBERS

    def is_on(self, at: datetime) -> bool:
        """Return whether it has begun and not ended."""
        return self.since <= at and (self.until is None or self.until > at)


def _results(evidence: Evidence, standing: tuple[Repeats, ...], *, has_events: bool) -> Results:
    # They are counted at events alone, and most tests have none.
    tracks = evidence.tracks if has_events else ()
    verdicts = tuple(track.times() for track in tracks)
    rounds = Rounds(standing) if standing else spans.NO_ROUNDS
    return Results(evidence.passes, verdicts, tuple(sorted(evidence.failures)), rounds)


def _broken(evidence: Evidence, clock: datetime) -> tuple[BrokenSpan, ...]:
    settled = evidence.settled.broken_since if evidence.settled else _NONE_BROKEN
    able = [track for track in evidence.tracks if series.may_be_broken(track, settled)]
    if not able:
        return ()
    ran_on = series.ran_on(evidence.tracks)
    moment = Moment(clock, evidence.first_pass, ran_on, settled)
    return tuple(span for track in able for span in series.broken_spans(track, moment))


def _changes(stretches: tuple[_Stretch, ...]) -> Iterator[Change]:
    """Every change of the value, oldest first."""
    ends = {each.until for each in stretches if each.until is not None}
    value = Status.HEALTHY
    for at in sorted({each.since for each in stretches} | ends):
        reigning = _reigning([each for each in stretches if each.is_on(at)])
        if reigning is None:
            ended = [each for each in stretches if each.until == at]
            reason, now = max(ended, key=lambda each: each.since).after, Status.HEALTHY
        else:
            reason = reigning.first if reigning.since == at else reigning.text
            now = reigning.value
        if now is not value:
            yield Change(at, now, reason)
            value = now


def _reigning(stretches: list[_Stretch]) -> _Stretch | None:
    return min(stretches, key=lambda each: (each.rank, each.since), default=None)


def _stale(evidence: Evidence, fold: Fold, scale: Scale) -> Iterator[_Stretch]:
    since, text = evidence.last_run + STALE_AFTER, reasons.stale(evidence.last_run)
    removed = _removed(evidence, fold)
    if removed is not None:
        since, text = removed
    if since <= scale.clock:
        yield _Stretch(0, Status.HEALTHY, since, None, text, text, text)


def _removed(evidence: Evidence, fold: Fold) -> tuple[datetime, str] | None:
    """Return since when a flaky test is gone, and the reason; None: it is not known to be.

    What a person said of it counts until it is stale.
    """
    flag = max(evidence.flags, key=lambda flag: flag.at, default=None)
    if not fold.spans or (flag is not None and flag.value is not Status.HEALTHY):
        return None
    found = series.removed_at(evidence.tracks, evidence.last_run)
    if found is None:
        return None
    at, branch = found
    since = max(at, evidence.last_run + GONE_AFTER)
    is_flaky = any(
        span.since <= since and (span.until is None or span.until > since) for span in fold.spans
    )
    return (since, reasons.removed(branch, evidence.last_run)) if is_flaky else None


def _while_broken(span: BrokenSpan) -> _Stretch:
    return _Stretch(
        rank=1,
        value=Status.BROKEN,
        since=span.since,
        until=span.until,
        first=reasons.broken(span, span.streak),
        text=reasons.broken(span, span.length),
        after=reasons.repaired(span),
        numbers=Numbers(
            streak=span.length,
            failed=span.failed,
            before=span.before,
            probability=span.probability(span.length),
        ),
    )


def _while_flaky(span: FlakySpan, threshold: float) -> _Stretch:
    return _Stretch(
        rank=3,
        value=Status.FLAKY,
        since=span.since,
        until=span.until,
        first=reasons.flaky(span.first, threshold),
        text=reasons.flaky(span.last, threshold),
        after=reasons.quiet_again(span),
        numbers=_numbers(span.last, threshold),
    )


def _flagged(flags: tuple[Flag, ...]) -> Iterator[_Stretch]:
    """A flag lasts until the next; the detector's own reasons go before it where they agree."""
    ordered = sorted(flags, key=lambda flag: (flag.at, flag.value, flag.actor, flag.text))
    for flag, following in zip_longest(ordered, ordered[1:]):
        if flag.value is not Status.HEALTHY:
            text = reasons.flagged(flag.value, flag.actor, flag.text)
            yield _Stretch(
                rank=2 if flag.value is Status.BROKEN else 4,
                value=flag.value,
                since=flag.at,
                until=following.at if following else None,
                first=text,
                text=text,
                after=reasons.unflagged(following.actor) if following else "",
            )


def _recent(measure: Measure | None, last_run: datetime) -> Measure | None:
    """The measure, if its event is still in the window of the test's newest run.

    By the test's own time and not the clock, so that a status does not hang on what other
    tests did since.
    """
    if measure is None or measure.at.toordinal() <= last_run.toordinal() - WINDOW_DAYS:
        return None
    return measure


def _why_healthy(
    evidence: Evidence,
    stretches: tuple[_Stretch, ...],
    measure: Measure | None,
    threshold: float,
) -> str:
    if measure is not None:
        return reasons.watched(measure, threshold)
    ended = [each for each in stretches if each.until is not None]
    if ended:
        return max(ended, key=lambda each: (each.until or each.since, each.since)).after
    newest = evidence.last_run.toordinal()
    first = newest - WINDOW_DAYS + 1
    failed = sum(1 for at in evidence.failures if at.toordinal() >= first)
    if failed:
        return reasons.failing(failed, failed + evidence.passes.between(first, newest))
    failing_days = [at.toordinal() for at in evidence.failures]
    oldest_day = min(evidence.passes.by_day, default=evidence.first_run.toordinal())
    since = max([oldest_day, *(day + 1 for day in failing_days)])
    runs = evidence.passes.between(since, newest)
    return reasons.clean(runs, date.fromordinal(since))


def _numbers(measure: Measure | None, threshold: float) -> Numbers:
    if measure is None:
        return NO_NUMBERS
    groups = dict.fromkeys((event.job, event.code) for event in reversed(measure.events))
    return Numbers(
        a=measure.tallies.a,
        b=measure.tallies.b,
        c=measure.tallies.c,
        r=measure.tallies.r if measure.tallies.r.weight else None,
        noise=measure.noise,
        score=score.shown_score(measure.log_score),
        threshold=threshold * measure.bar,
        groups=tuple(groups)[:GROUPS_MAX],
    )
