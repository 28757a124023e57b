"""The published scenarios with their gates, and the rows of `make bench ONLY=flaky`."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import isclose, log
from statistics import mean, median
from time import process_time

import numpy as np

from service.testhealth.detector import score, series
from service.testhealth.detector.health import Health, judge
from service.vocabulary import Health as Status
from tests.bench.flaky import endpoint, figures, queue, rivals, uploads, worlds
from tests.bench.flaky.figures import BrokenFigures, Figures, Spans, day_of
from tests.bench.flaky.ledger import Ledger
from tests.bench.flaky.queue import QueueOutcome
from tests.bench.flaky.worlds import Law, Shape

Row = dict[str, object]
SEEDS = 4
WORKERS = 2
LAWS: tuple[Law, ...] = ("log-uniform", "heavy-tailed")

FLAGS_MAX, DETECTION_MAX, CLEARING_MAX = 1.2, 3.0, 7.0
BROKEN_AFTER_MAX, JUDGE_P95_MS = 5.0, 2.0
STEADY_HISTORIES, STEADY_MAX = 20_000, 0.01
STEADY_A_DAY, STEADY_VERDICTS = 12, 540
"""Verdicts of 45 days on main."""

CLEAR_OF_DELAY = ("C", "S")
"""Scenarios in which nobody can know within days: without re-runs, or with few runs."""


@dataclass(frozen=True)
class Scenario:
    """A shape and its gates: precision and impact recall at least, false tests at most.

    `worlds` for each seed: a small one has three flaky tests, and says little alone. Where the
    shape `is_hidden` that of each world is drawn, and `shape` only names it.
    """

    shape: Shape
    precision: float
    recall: float
    false_tests: float
    about: str
    worlds: int = 1
    is_hidden: bool = False

    def shape_of(self, seed: int) -> Shape:
        """The shape of the world of this seed."""
        return worlds.hidden(seed) if self.is_hidden else self.shape


SCENARIOS = (
    Scenario(Shape("A"), 0.95, 0.95, 5, "half of the red jobs are run again by people"),
    Scenario(Shape("B", rerun="inside"), 0.95, 0.95, 5, "one retry inside the job"),
    Scenario(Shape("C", rerun="nobody"), 0.95, 0.75, 5, "red jobs are not run again"),
    Scenario(Shape("D", noise=4), 0.95, 0.95, 5, "A, machines fail four times as often"),
    Scenario(Shape("E", noise=0.05), 0.95, 0.95, 1, "A, machines hardly ever fail"),
    Scenario(Shape("M", flaky_share=0.1), 0.95, 0.95, 5, "A, 10 % of the tests are flaky"),
    Scenario(
        Shape("S", tests=100, pr_runs=15, main_runs=5),
        *(0.8, 0.85, 2, "A, 100 tests and 20 runs a day"),
        worlds=10,
    ),
    Scenario(
        Shape("X", is_odd=True),
        *(0.9, 0.85, 5, "matrix jobs, order, hours, drift, renames, clocks that differ"),
    ),
    Scenario(
        Shape("H"),
        *(0.95, 0.95, 5, "every number of the repository drawn, too"),
        worlds=3,
        is_hidden=True,
    ),
)


@dataclass(frozen=True)
class Outcome:
    """What came of one world."""

    found: Figures
    broken: BrokenFigures
    unfounded: int
    judge_ms: tuple[float, ...]
    queue: QueueOutcome
    others: dict[str, Figures]


def run(scale: float = 1.0, first_seed: int = 1) -> list[Row]:
    """A row for each scenario, law and figure; a larger scale draws more worlds."""
    seeds = max(1, round(SEEDS * scale))
    wanted: list[tuple[Scenario, Law]] = [(each, law) for each in SCENARIOS for law in LAWS]
    rows = []
    with ProcessPoolExecutor(WORKERS) as pool:
        by_endpoint = pool.submit(endpoint.sent)
        pending = {
            (each.shape.name, law): [
                pool.submit(outcome_of, each.shape_of(seed), law, seed)
                for seed in range(first_seed, first_seed + seeds * each.worlds)
            ]
            for each, law in wanted
        }
        for each, law in wanted:
            outcomes = [future.result() for future in pending[each.shape.name, law]]
            rows += list(rows_of(each, law, outcomes))
            sys.stderr.write(f"{each.shape.name} {law}\n")
        rows += list(endpoint.rows_of(by_endpoint.result()))
    return [*rows, *(steady_row(law) for law in LAWS)]


def outcome_of(shape: Shape, law: Law, seed: int) -> Outcome:
    """Draw a world, let its CI report, judge every test that could be flagged."""
    world = worlds.drawn(shape, law, seed)
    ledger = Ledger(uploads.reported(world))
    judged, times = judged_in(ledger)
    verdicts = {
        no: [
            (day_of(point.at), point.run, letter)
            for track in ledger.tracks.get(no, ())
            for point, letter in zip(track.ran(), track.letters(), strict=True)
        ]
        for no in ledger.failed
    }
    compared = rivals.RIVALS.items() if shape.name == "A" else ()
    return Outcome(
        found=figures.measured(world, spans_of(judged, shape.days)),
        broken=figures.broken_measured(
            world, verdicts, {no: health.broken for no, health in judged.items()}
        ),
        unfounded=sum(1 for health in judged.values() if not is_founded(health)),
        judge_ms=tuple(times),
        queue=queue.played(world, judged),
        others={name: figures.measured(world, rival(ledger)) for name, rival in compared},
    )


def judged_in(ledger: Ledger) -> tuple[dict[int, Health], list[float]]:
    """The health of every suspect, and how long each judgement took in ms."""
    judged, times = {}, []
    for no in ledger.suspects:
        known, scale = ledger.evidence_of(no), ledger.scale
        begin = process_time()
        judged[no] = judge(known, scale)
        times.append((process_time() - begin) * 1000)
    return judged, times


def spans_of(judged: dict[int, Health], days: int) -> Spans:
    """When each test was flagged flaky; no more once it was seen to be gone."""
    found = {}
    for no, health in judged.items():
        last = day_of(health.since) if health.is_stale else float(days)
        ends = ((span, day_of(span.until) if span.until else last) for span in health.fold.spans)
        found[no] = [(day_of(span.since), min(end, last)) for span, end in ends]
    return found


def is_founded(health: Health) -> bool:
    """Whether the numbers of an unhealthy status give that status again."""
    numbers = health.numbers
    if health.value is Status.FLAKY:
        if numbers.a is None or numbers.b is None or numbers.noise is None:
            return False
        tallies = score.Tallies(numbers.a, numbers.b, numbers.c or score.NOTHING)
        again = score.log_score(tallies, numbers.noise)
        is_same = isclose(score.shown_score(again), numbers.score or 0)
        return is_same and again >= log(numbers.threshold or 0) and bool(numbers.groups)
    if health.value is Status.BROKEN:
        return bool(numbers.streak) and numbers.probability is not None
    return bool(health.reason)


def rows_of(scenario: Scenario, law: Law, outcomes: Sequence[Outcome]) -> Iterator[Row]:
    """A row for each figure with its gate, then those of the rivals."""
    found = [each.found for each in outcomes]
    name = scenario.shape.name

    def row(figure: str, value: float | None, gate: float | None, *, least: bool = False) -> Row:
        shown = "-" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
        if gate is None or value is None:
            return {"scenario": name, "rates": law, "figure": figure, "value": shown}
        is_met = value >= gate if least else value <= gate
        bound = f"{'≥' if least else '≤'} {gate:g}"
        return {
            **{"scenario": name, "rates": law, "figure": figure, "value": shown},
            **{"gate": bound, "met": "yes" if is_met else "NO"},
        }

    total = together(found)
    yield row("precision", total.precision, scenario.precision, least=True)
    yield row("impact recall", total.recall, scenario.recall, least=True)
    yield row("false tests", mean(each.false_tests for each in found), scenario.false_tests)
    flags = total.flags / total.flagged if total.flagged else None
    yield row("flags per flaky test", flags, FLAGS_MAX)
    detection_max = None if name in CLEAR_OF_DELAY else DETECTION_MAX
    yield row("detection, days", _median(total.detection), detection_max)
    yield row("clearing, days", _median(total.clearing), CLEARING_MAX)
    broken = [each.broken for each in outcomes]
    yield row("broken after", _median(n for each in broken for n in each.after), BROKEN_AFTER_MAX)
    cleared = [1.0 * each for part in broken for each in part.cleared]
    yield row("cleared by a pass", mean(cleared) if cleared else None, None)
    flaky = sum(each.flaky for each in broken)
    yield row("flaky but called broken", sum(each.wrong for each in broken) / flaky, None)
    yield row("statuses without numbers", sum(each.unfounded for each in outcomes), 0)
    times = sorted(time for each in outcomes for time in each.judge_ms)
    yield row("judging a test, p95 ms", times[int(len(times) * 0.95)], JUDGE_P95_MS)
    yield from (row(*each) for each in queue.figures([each.queue for each in outcomes]))
    for rival in outcomes[0].others:
        theirs = together([each.others[rival] for each in outcomes])
        yield row(f"{rival}: precision", theirs.precision, None)
        yield row(f"{rival}: impact recall", theirs.recall, None)
        yield row(f"{rival}: false tests", theirs.false_tests / len(outcomes), None)


def together(found: Sequence[Figures]) -> Figures:
    """The figures of several worlds as if they were one."""
    return Figures(
        right=sum(each.right for each in found),
        wrong=sum(each.wrong for each in found),
        caught=sum(each.caught for each in found),
        expected=sum(each.expected for each in found),
        false_tests=sum(each.false_tests for each in found),
        flags=sum(each.flags for each in found),
        flagged=sum(each.flagged for each in found),
        detection=tuple(day for each in found for day in each.detection),
        clearing=tuple(day for each in found for day in each.clearing),
    )


def steady_row(law: Law) -> Row:
    """How many histories of a test with one rate are called broken though nothing broke."""
    chance = np.random.default_rng(9)
    moments = [worlds.START + worlds.DAY * n / STEADY_A_DAY for n in range(STEADY_VERDICTS)]
    points = tuple(series.Point(at, str(n), str(n), "", 10) for n, at in enumerate(moments))
    moment = series.Moment(moments[-1], worlds.START, {}, {})
    wrong = 0
    for _ in range(STEADY_HISTORIES):
        failed = chance.random(STEADY_VERDICTS) < worlds.rate_of(law, chance)
        letters = "".join("F" if each else "P" for each in failed)
        track = series.Track(series.Series("main", "unit", points), letters)
        wrong += bool(series.broken_spans(track, moment))
    share = wrong / STEADY_HISTORIES
    return {
        **{"scenario": "steady", "rates": law, "figure": "histories called broken"},
        **{"value": f"{share:.3g}", "gate": f"≤ {STEADY_MAX:g}"},
        "met": "yes" if share <= STEADY_MAX else "NO",
    }


def _median(values: Iterable[float]) -> float | None:
    known = list(values)
    return median(known) if known else None
