"""1,000 pull requests in an hour by 99 submitters, one of whom floods the queue.

40 % are of one token, 30 % of nine bots and 30 % of 89 people. 4 % are broken; agents submit a head
that has failed three more times. `python -m tests.simulation.flood` prints the figures of
docs/design/fair-shares.md.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from service.mergequeue.engine import targets
from service.mergequeue.engine.config import BatchSizing, FairShares, Mode, QueueConfig
from service.mergequeue.engine.explaining.estimates import percentile
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.outputs import EntryMoved, Step
from service.mergequeue.engine.states import EntryState
from service.mergequeue.simulation import replay
from service.mergequeue.simulation.history import Arrival, Fate, History, history_of
from service.mergequeue.simulation.world import sha_of
from service.vocabulary import Actor, ActorKind

BEGIN = datetime(2026, 1, 5, 8, tzinfo=UTC)
HOUR_S = 3600
FLOOD, BOTS, PEOPLE = 0.4, 9, 89
BROKEN, FLAKES = 0.04, 0.02
CI_S, CI_SPREAD = 20 * 60, 0.15
TARGETS = 2000
TOKEN = Actor(ActorKind.TOKEN, "flood", "flood")


@dataclass(frozen=True)
class Figures:
    """`fairness` is Jain's index over submitters: starts in the hour by what would be fair."""

    fairness: float
    runs_per_merge: float
    people_start_p95: float
    people_p50: float
    people_p95: float


def history(seed: int, count: int = 1000) -> History:
    """The submissions of the hour."""
    chance = random.Random(seed)
    arrivals = []
    for pr in range(1, count + 1):
        who = _submitter(chance)
        arrivals.append(
            Arrival(
                at=BEGIN + timedelta(seconds=chance.random() * HOUR_S),
                pr=pr,
                head=sha_of("head", str(pr)),
                author=who.login,
                submitted_by=who,
                resubmissions=0 if who.kind is ActorKind.PERSON else 3,
                fate=Fate(breaks=chance.random() < BROKEN),
                ci_s=CI_S * chance.lognormvariate(0, CI_SPREAD),
                targets=targets.of(f"t{chance.randrange(TARGETS)}" for _ in range(2)),
            )
        )
    return history_of(arrivals, [one.ci_s or 0 for one in arrivals], FLAKES)


def _submitter(chance: random.Random) -> Actor:
    drawn = chance.random()
    if drawn < FLOOD:
        return TOKEN
    if drawn < FLOOD + 0.3:
        return Actor(ActorKind.BOT, f"agent-{chance.randrange(BOTS)}[bot]")
    return Actor(ActorKind.PERSON, f"person-{chance.randrange(PEOPLE)}")


def alone(whole: History) -> History:
    """The pull requests of people, each when the queue is empty."""
    people = [one for one in whole.arrivals if _is_person(one)]
    spread = [
        replace(one, at=BEGIN + place * timedelta(hours=3)) for place, one in enumerate(people)
    ]
    return history_of(spread, whole.durations_s, whole.flake_rate)


def settings(mode: Mode, slots: int, fair_shares: FairShares) -> QueueConfig:
    """Adaptive batches, as recommended for each mode."""
    return QueueConfig(
        mode=mode,
        concurrency=slots,
        bisection_concurrency=0,
        fair_shares=fair_shares,
        batch=True,
        batch_sizing=BatchSizing.ADAPTIVE,
        batching_min_size=16,
        can_optimistically_merge=mode is Mode.SINGLE,
        full_suite=mode is Mode.SINGLE,
        check_start_timeout_minutes=1440,
        testing_timeout_minutes=10080,
    )


def figures(whole: History, config: QueueConfig) -> Figures:
    """Replay the history and measure it."""
    played = _Watched(whole, config, 1, None)
    played.play()
    measured = played.measured()
    people = [one for one in whole.arrivals if _is_person(one)]
    merged = sorted(
        (played.merged_at[one.pr] - one.at).total_seconds() / 60
        for one in people
        if one.pr in played.merged_at
    )
    starts = sorted((played.begun_at[one.pr] - one.at).total_seconds() / 60 for one in people)
    return Figures(
        _fairness(whole.arrivals, played.begun_at),
        measured.ci_runs / len(measured.merged),
        percentile(starts, 0.95),
        percentile(merged, 0.5),
        percentile(merged, 0.95),
    )


class _Watched(replay._Replay):
    """A replay that keeps when each pull request was tested first and when it merged."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.begun_at: dict[int, datetime] = {}
        self.merged_at: dict[int, datetime] = {}

    def _count(self, step: Step) -> None:
        super()._count(step)
        for recorded in step.events:
            one = recorded.event
            if isinstance(one, EntryMoved) and one.state is EntryState.TESTING:
                self.begun_at.setdefault(one.pr, self._now)

    def _count_end(self, entry: Entry) -> None:
        super()._count_end(entry)
        if entry.state is EntryState.MERGED:
            self.merged_at[entry.pr] = self._now


def _is_person(one: Arrival) -> bool:
    return one.submitted_by is not None and one.submitted_by.kind is ActorKind.PERSON


def _fairness(arrivals: Sequence[Arrival], begun_at: dict[int, datetime]) -> float:
    """Jain's index of starts in the hour by the max-min fair number of them."""
    end = BEGIN + timedelta(seconds=HOUR_S)
    asked = Counter(one.submitted_by for one in arrivals)
    begun = Counter(one.submitted_by for one in arrivals if begun_at[one.pr] < end)
    fair = _max_min(asked.values(), sum(begun.values()))
    return jain([begun[who] / min(count, fair) for who, count in asked.items()])


def _max_min(asked: Iterable[int], total: int) -> float:
    """Return the most that each may have, if all have what they asked for up to that."""
    left = sorted(asked)
    while left:
        if left[0] * len(left) >= total:
            return total / len(left)
        total -= left.pop(0)
    return float("inf")


def jain(values: Sequence[float]) -> float:
    """Return the square of the sum, divided by the number times the sum of squares."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def main() -> None:
    """Print the figures of all cells."""
    for mode, slots in ((Mode.PARALLEL, 64), (Mode.SINGLE, 16)):
        for seed in (1, 2, 3):
            whole = history(seed)
            empty = figures(alone(whole), settings(mode, slots, FairShares.OFF))
            print(mode, slots, seed, "empty", f"P95 {empty.people_p95:.0f}")
            for fair_shares in FairShares:
                print(
                    mode,
                    slots,
                    seed,
                    fair_shares,
                    figures(whole, settings(mode, slots, fair_shares)),
                    flush=True,
                )


if __name__ == "__main__":
    main()
