"""The reason of a status, at most 300 characters (docs/design/detector.md 10).

Every number in it can be recomputed from stored runs; nothing is decided here.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from math import floor

from service.testhealth.detector import score, series
from service.testhealth.detector.evidence import WINDOW_DAYS, Event, Stream
from service.testhealth.detector.series import BrokenSpan, End
from service.testhealth.detector.spans import SINGLE_WEIGHT, FlakySpan, Measure

REASON_MAX = 300
NAME_MAX = 60
"""Of a branch or job key within a reason; both may be 255 long."""

SHA_SHOWN = 7
UNPLACED = (
    "Failures between passes of a stable branch do not count: GitHub did not tell where their "
    "commits are. Upload with the commit's SHA."
)
_SCORE_SHOWN_MAX = 1_000_000
_ODDS_SHOWN_MAX = 1_000_000_000


def flaky(measure: Measure | None, threshold: float) -> str:
    """A test that is flaky, by its score; None: by what was settled long ago."""
    if measure is None:
        return "Passed and failed on the same code before its evidence was dropped."
    weight = measure.tallies.weight
    single = " One observation so far." if weight < SINGLE_WEIGHT else ""
    return cut(_disagreement(measure, threshold, with_jobs=True) + single)


def watched(measure: Measure, threshold: float) -> str:
    """A healthy test that disagreed, but not enough."""
    return cut(_disagreement(measure, threshold, with_jobs=False))


def quiet_again(span: FlakySpan) -> str:
    """A test whose flaky span ended."""
    since = _day(span.until) if span.until else ""
    if span.verified is not None:
        found = span.verified
        return (
            f"Not flaky since {since}: verified by {found.rounds:,} repeated runs on"
            f" {found.sha[:SHA_SHOWN]} without a failure; {found.failed:,} of {found.before:,} had"
            " failed before."
        )
    runs = f"{span.clean:,} run{'s' * (span.clean != 1)}"
    return f"Not flaky since {since}: no disagreement in {runs} over {span.quiet_days} days."


def broken(span: BrokenSpan, streak: int) -> str:
    """A test that is broken, when `streak` runs in a row had failed."""
    branch = _short(span.series.branch)
    runs = f"{streak} runs of {branch} since {span.red.sha[:SHA_SHOWN]}"
    if not span.has_passed:
        return cut(f"Never passed; failed on all {runs}.")
    text = f"Failed on the last {runs} (job {_short(span.series.job)})"
    if not span.before:
        return cut(f"{text}.")
    return cut(
        f"{text}; before that {span.failed} of {span.before} failed, so the chance of {streak} in "
        f"a row was {_odds(span.probability(streak))} "
        f"(broken from {_odds(series.PROBABILITY_MAX)} on)."
    )


def repaired(span: BrokenSpan) -> str:
    """A test whose broken span ended."""
    branch = _short(span.series.branch)
    failures = f"{span.length} failure{'s' * (span.length != 1)}"
    if span.green is not None:
        return cut(f"Passed on {branch} at {span.green.sha[:SHA_SHOWN]} after {failures}.")
    if span.end is End.REMOVED:
        return cut(f"Not run any more on {branch} after {failures}.")
    days = series.SILENT_FOR.days
    return cut(f"No result on {branch} for {days} days after {failures}.")


def flagged(value: str, actor: str, text: str) -> str:
    """A test that a person called flaky or broken."""
    return cut(f"Flagged {value} by {actor}: {text}")


def unflagged(actor: str) -> str:
    """A test whose flag was removed."""
    return cut(f"Flag removed by {actor}.")


def stale(last_run: datetime) -> str:
    """A test that nobody runs any more."""
    return f"No run since {_day(last_run)}."


def removed(branch: str, last_run: datetime) -> str:
    """A flaky test that is not run any more: it was removed, or has another name now."""
    return (
        f"Not run any more on {_short(branch)}, and nowhere since {_day(last_run)}: removed, or "
        "renamed. A test of another name is a new one."
    )


def clean(runs: int, since: date) -> str:
    """A test without any failure since a day; also for tests that are never judged."""
    return f"No failure in {runs:,} run{'s' * (runs != 1)} since {since.isoformat()}."


def failing(failed: int, runs: int) -> str:
    """A healthy test that failed, though nothing disagrees."""
    return (
        f"Failed in {failed:,} of {runs:,} run{'s' * (runs != 1)} in {WINDOW_DAYS} days, "
        "never both ways on the same code."
    )


def unplaced(text: str) -> str:
    """The reason of a test whose failures on a stable branch could not be compared."""
    return cut(f"{text} {UNPLACED}")


def cut(text: str) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= REASON_MAX else text[: REASON_MAX - 1] + "…"


def _disagreement(measure: Measure, threshold: float, *, with_jobs: bool) -> str:
    both_ways = [event for event in measure.events if event.stream is Stream.A]
    alone = [event for event in measure.events if event.stream is Stream.B]
    pushes = [event for event in measure.events if event.stream is Stream.C]
    tallies = measure.tallies
    parts = []
    if both_ways:
        times = _times(len(both_ways), tallies.a.weight)
        runs = f"{tallies.a.results:,} run{'s' * (tallies.a.results != 1)}"
        jobs = _jobs(both_ways) if with_jobs else ""
        days = f"{measure.days} days"
        parts.append(f"passed and failed on the same code {times} in {runs} in {days}{jobs}")
    if alone:
        times = _times(len(alone), tallies.b.weight)
        verdicts = f"{tallies.b.results:,} verdict{'s' * (tallies.b.results != 1)}"
        parts.append(f"{_alone(alone)} {times} in {verdicts}")
    if pushes:
        sources = len({event.source for event in pushes})
        weight = _times(sources, tallies.c.weight).partition(" (")[2]
        found = f"failed in one push of {sources} pull request{'s' * (sources != 1)}"
        accounts = len({event.author for event in pushes})
        by = f" by {accounts} account{'s' * (accounts != 1)}" if accounts < sources else ""
        parts.append(f"{found}{by} alone{' (' + weight if weight else ''}")
    repeated = [event for event in measure.events if event.stream is Stream.R]
    if repeated:
        times = _times(len(repeated), tallies.r.weight)
        shares = f"in {tallies.r.plans:,} jobs ({tallies.r.results:,} repeated runs)"
        parts.append(f"failed and passed {times} when it was repeated {shares}")
    machine, count = _worst_machine(measure.events)
    if 2 * count > len(measure.events) > 2:
        parts.append(f"{count} of these {len(measure.events)} on machine {_short(machine)}")
    parts.append(f"this {_fit(measure)} (flaky from {threshold * measure.bar:,g})")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _worst_machine(events: Sequence[Event]) -> tuple[str, int]:
    """The machine with the most events, and how many."""
    counted = Counter(event.machine for event in events if event.machine)
    return min(counted.items(), key=lambda each: (-each[1], each[0]), default=("", 0))


def _alone(events: Sequence[Event]) -> str:
    branches = sorted({event.branch for event in events})
    where = _short(branches[0]) if len(branches) == 1 else f"{len(branches)} branches"
    if any(event.passed for event in events):
        return f"differed alone from the runs around it on {where}"
    return f"failed alone between passes on {where}"


def _times(count: int, weight: float) -> str:
    times = "once" if count == 1 else f"{count:,} times"
    rounded = f"{weight:.2f}".rstrip("0").rstrip(".")
    return times if rounded == str(count) else f"{times} (weight {rounded})"


def _jobs(events: Sequence[Event]) -> str:
    jobs = sorted({event.job for event in events} - {""})
    if not jobs:
        return ""
    return f" (job {_short(jobs[0])})" if len(jobs) == 1 else f" ({len(jobs)} jobs)"


def _fit(measure: Measure) -> str:
    """Rounded down, so that what is shown never reaches a limit that was not reached."""
    value = floor(score.shown_score(measure.log_score))
    if value < 2:
        return "fits a healthy test as well as a flaky one"
    times = f"{value:,}" if value <= _SCORE_SHOWN_MAX else f"over {_SCORE_SHOWN_MAX:,}"
    return f"fits a flaky test {times} times as well as a healthy one"


def _short(name: str) -> str:
    return name if len(name) <= NAME_MAX else name[: NAME_MAX - 1] + "…"


def _odds(chance: float) -> str:
    """The chance as `1 in 20,000`, with two digits that count."""
    if chance * _ODDS_SHOWN_MAX < 1:
        return f"less than 1 in {_ODDS_SHOWN_MAX:,}"
    return f"1 in {float(f'{1 / chance:.1e}'):,.0f}"


def _day(at: datetime) -> str:
    return at.date().isoformat()
