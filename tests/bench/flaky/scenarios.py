"""The published scenarios A to X with their gates, and the rows of `make bench ONLY=flaky`."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import isclose, log
from statistics import mean, median
from time import perf_counter

from service.flaky import score
from service.flaky.health import Health, judge
from service.flaky.history import Value
from tests.bench.flaky import figures, rivals, uploads, worlds
from tests.bench.flaky.figures import BrokenFigures, Figures, Spans, day_of
from tests.bench.flaky.ledger import Ledger
from tests.bench.flaky.worlds import Law, Shape

Row = dict[str, object]
SEEDS = 4
WORKERS = 2
LAWS: tuple[Law, ...] = ("log-uniform", "heavy-tailed")

FLAGS_MAX, DETECTION_MAX, CLEARING_MAX = 1.2, 3.0, 7.0
BROKEN_AFTER_MAX, JUDGE_P95_MS = 5.0, 2.0
CLEAR_OF_DELAY = ("C", "S")
"""Scenarios in which nobody can know within days: without re-runs, or with few runs."""


@dataclass(frozen=True)
class Scenario:
    """A shape and its gates: precision and impact recall at least, false tests at most."""

    shape: Shape
    precision: float
    recall: float
    false_tests: float


SCENARIOS = (
    Scenario(Shape("A"), 0.95, 0.95, 5),
    Scenario(Shape("B", rerun="inside"), 0.95, 0.95, 5),
    Scenario(Shape("C", rerun="nobody"), 0.95, 0.75, 5),
    Scenario(Shape("D", noise=4), 0.95, 0.95, 5),
    Scenario(Shape("E", noise=0.05), 0.95, 0.95, 1),
    Scenario(Shape("M", flaky_share=0.1), 0.95, 0.95, 5),
    Scenario(Shape("S", tests=100, pr_runs=15, main_runs=5), 0.8, 0.85, 2),
    Scenario(Shape("X", is_odd=True), 0.9, 0.85, 5),
)


@dataclass(frozen=True)
class Outcome:
    """What came of one world."""

    found: Figures
    broken: BrokenFigures
    unfounded: int
    judge_ms: tuple[float, ...]
    others: dict[str, Figures]


def run(scale: float = 1.0) -> list[Row]:
    """A row for each scenario, law and detector; a larger scale draws more worlds."""
    seeds = range(1, 1 + max(1, round(SEEDS * scale)))
    wanted = [(each, law) for each in SCENARIOS for law in LAWS]
    rows = []
    with ProcessPoolExecutor(WORKERS) as pool:
        pending = {
            (each.shape.name, law): [
                pool.submit(outcome_of, each.shape, law, seed) for seed in seeds
            ]
            for each, law in wanted
        }
        for each, law in wanted:
            outcomes = [future.result() for future in pending[each.shape.name, law]]
            rows += list(rows_of(each, law, outcomes))
            sys.stderr.write(f"{each.shape.name} {law}\\n")
    return rows


def outcome_of(shape: Shape, law: Law, seed: int) -> Outcome:
    """Draw a world, let its CI report, judge every test that could be flagged."""
    world = worlds.drawn(shape, law, seed)
    ledger = Ledger(uploads.reported(world))
    judged, times = judged_in(ledger)
    verdicts = {
        no: [
            (day_of(point.at), letter)
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
        others={name: figures.measured(world, rival(ledger)) for name, rival in compared},
    )


def judged_in(ledger: Ledger) -> tuple[dict[int, Health], list[float]]:
    """The health of every suspect, and how long each judgement took in ms."""
    judged, times = {}, []
    for no in ledger.suspects:
        known, scale = ledger.evidence_of(no), ledger.scale
        begin = perf_counter()
        judged[no] = judge(known, scale)
        times.append((perf_counter() - begin) * 1000)
    return judged, times


def spans_of(judged: dict[int, Health], days: int) -> Spans:
    """When each test was flagged flaky."""
    return {
        no: [
            (day_of(span.since), day_of(span.until) if span.until else float(days))
            for span in health.fold.spans
        ]
        for no, health in judged.items()
    }


def is_founded(health: Health) -> bool:
    """Whether the numbers of an unhealthy status give that status again."""
    numbers = health.numbers
    if health.value is Value.FLAKY:
        if numbers.a is None or numbers.b is None or numbers.noise is None:
            return False
        again = score.log_score(numbers.a, numbers.b, numbers.noise)
        is_same = isclose(score.shown(again), numbers.score or 0)
        return is_same and again >= log(numbers.threshold or 0) and bool(numbers.groups)
    if health.value is Value.BROKEN:
        return bool(numbers.streak) and numbers.probability is not None
    return bool(health.reason)


def rows_of(scenario: Scenario, law: Law, outcomes: Sequence[Outcome]) -> Iterator[Row]:
    """A row for each figure with its gate, then those of the rivals."""
    found = [each.found for each in outcomes]
    name = scenario.shape.name

    def row(figure: str, value: float | None, gate: float | None, *, least: bool = False) -> Row:
        shown = "-" if value is None else f"{value:.3g}"
        if gate is None or value is None:
            return {"scenario": name, "rates": law, "figure": figure, "value": shown}
        is_met = value >= gate if least else value <= gate
        bound = f"{'≥' if least else '≤'} {gate:g}"
        return {
            **{"scenario": name, "rates": law, "figure": figure, "value": shown},
            **{"gate": bound, "met": "yes" if is_met else "NO"},
        }

    yield row("precision", mean(each.precision for each in found), scenario.precision, least=True)
    yield row("impact recall", mean(each.recall for each in found), scenario.recall, least=True)
    yield row("false tests", mean(each.false_tests for each in found), scenario.false_tests)
    flagged = sum(each.flagged for each in found)
    flags = sum(each.flags for each in found) / flagged if flagged else None
    yield row("flags per flaky test", flags, FLAGS_MAX)
    is_late = name in CLEAR_OF_DELAY
    detection = [day for each in found for day in each.detection]
    yield row("detection, days", _median(detection), None if is_late else DETECTION_MAX)
    yield row("clearing, days", _median(d for each in found for d in each.clearing), CLEARING_MAX)
    broken = [each.broken for each in outcomes]
    yield row("broken after", _median(n for each in broken for n in each.after), BROKEN_AFTER_MAX)
    cleared = [1.0 * each for part in broken for each in part.cleared]
    yield row("cleared by a pass", mean(cleared) if cleared else None, None)
    flaky = sum(each.flaky for each in broken)
    yield row("flaky but called broken", sum(each.wrong for each in broken) / flaky, None)
    yield row("statuses without numbers", sum(each.unfounded for each in outcomes), 0)
    times = sorted(time for each in outcomes for time in each.judge_ms)
    yield row("judging a test, p95 ms", times[int(len(times) * 0.95)], JUDGE_P95_MS)
    for rival in outcomes[0].others:
        theirs = [each.others[rival] for each in outcomes]
        yield row(f"{rival}: precision", mean(each.precision for each in theirs), None)
        yield row(f"{rival}: impact recall", mean(each.recall for each in theirs), None)
        yield row(f"{rival}: false tests", mean(each.false_tests for each in theirs), None)


def _median(values: Iterable[float]) -> float | None:
    known = list(values)
    return median(known) if known else None
