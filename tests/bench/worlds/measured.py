"""Figures of the worlds, and the rows of `make bench ONLY=worlds`."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from statistics import mean, median

from tests.bench.flaky import scenarios
from tests.bench.flaky.figures import Figures, Spans
from tests.bench.flaky.ledger import Ledger
from tests.bench.worlds import ci
from tests.bench.worlds.catalogue import GATES, WORLDS, World
from tests.bench.worlds.ci import Played

Row = dict[str, object]
SEEDS, WORKERS = 3, 2
NOTICEABLE_RATE = 0.01


def run(scale: float = 1.0, first_seed: int = 1) -> list[Row]:
    """A row for each world; a larger scale draws more seeds."""
    seeds = range(first_seed, first_seed + max(1, round(SEEDS * scale)))
    with ProcessPoolExecutor(WORKERS) as pool:
        pending = {each.name: [pool.submit(outcome_of, each, n) for n in seeds] for each in WORLDS}
        rows = []
        for each in WORLDS:
            rows.append(row_of(each, [future.result() for future in pending[each.name]]))
            sys.stderr.write(f"{each.name}\n")
    return rows


def outcome_of(world: World, seed: int) -> Figures:
    """Play a world and judge every test that could be flagged."""
    played = ci.played(world.shape, seed, world.name)
    ledger = Ledger(played.uploads)
    judged, _ = scenarios.judged_in(ledger)
    return held(played, scenarios.spans_of(judged, world.shape.days))


def held(played: Played, spans: Spans) -> Figures:
    """Flags against the truth; each flaky test has its lives, and is sound between them."""
    lives = _times_of(played)
    right = wrong = 0.0
    for number, flagged in spans.items():
        for since, until in flagged:
            overlap = sum(
                max(0.0, min(until, end) - max(since, begin))
                for begin, end in lives.get(number, ())
            )
            right, wrong = right + overlap, wrong + until - since - overlap
    caught = expected = 0.0
    for truth in played.truths:
        expected += truth.failures_within(0, played.shape.days)
        caught += sum(truth.failures_within(*span) for span in spans.get(truth.number, ()))
    found = [truth for truth in played.truths if spans.get(truth.number)]
    return Figures(
        right=right,
        wrong=wrong,
        caught=caught,
        expected=expected,
        false_tests=sum(1 for no, flagged in spans.items() if flagged and no not in lives),
        flags=sum(len(spans[truth.number]) for truth in found),
        flagged=len(found),
        detection=tuple(_delays(played, spans)),
        clearing=tuple(_lags(played, spans)),
    )


def _times_of(played: Played) -> dict[int, list[tuple[float, float]]]:
    """When each flaky test was flaky, without overlaps."""
    found: dict[int, list[tuple[float, float]]] = {}
    for life in sorted(played.lives, key=lambda life: life.begin):
        times = found.setdefault(life.test, [])
        if times and life.begin <= times[-1][1]:
            times[-1] = (times[-1][0], max(times[-1][1], life.end))
        else:
            times.append((life.begin, life.end))
    return found


def _delays(played: Played, spans: Spans) -> Iterator[float]:
    """Days until the first flag; as long as the world for tests that have none."""
    for truth in played.truths:
        if truth.rate >= NOTICEABLE_RATE:
            flags = [since for since, _ in spans.get(truth.number, ())]
            yield max(0.0, min(flags, default=float(played.shape.days)) - truth.begin)


def _lags(played: Played, spans: Spans) -> Iterator[float]:
    """Days from a fix to the end of the flag that was up then."""
    for truth in played.truths:
        if truth.end < played.shape.days:
            for since, until in spans.get(truth.number, ()):
                if since <= truth.end < until:
                    yield until - truth.end


def row_of(world: World, found: Sequence[Figures]) -> Row:
    """The figures of a world's seeds as one, beside its gates."""
    total = scenarios.together(found)
    flags = total.flags / total.flagged if total.flagged else 0.0
    delay = _median(total.detection)
    goals = (world.precision, world.recall, world.flags)
    precision, recall, most = GATES.get(world.name, goals)
    return {
        "world": world.name,
        "precision": f"{total.precision:.3f}",
        "precision_floor": precision,
        "recall": f"{total.recall:.3f}",
        "recall_floor": recall,
        "flags": f"{flags:.2f}",
        "flags_goal": most,
        "false_tests": f"{mean(each.false_tests for each in found):.2g}",
        "delay_days": _shown(delay),
        "clearing_days": _shown(_median(total.clearing)),
    }


def _median(values: Iterable[float]) -> float | None:
    known = list(values)
    return median(known) if known else None


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
