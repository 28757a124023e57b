"""What was played, as the numbers that are published."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean

from tests.bench.agents.scripts import Work
from tests.bench.agents.simulator import Played
from tests.bench.agents.world import HOUR_S, MINUTE_S, Kind

FAIR_WINDOW_H = 2.0
"""The time behind the flood in which shares are compared."""

SETTLES_MIN = 40.0
"""Two test runs: nothing is decided sooner, however fair the queue is."""


@dataclass(frozen=True)
class Figures:
    """One queue under one seed.

    A landing is wanted if it brings something and takes nothing back. CI minutes are wasted that
    exceed one run of each wanted landing alone; batches can make it less than nothing. A submission
    is wasted unless it ends in such a landing. `refused` are of those that
    were refused at once, without CI. `landed_per_h` counts wanted landings until the last pull
    request is opened. `fairness` is Jain's index, see `_fairness`. `people_p95_min` is from
    opening to landing; `unlanded` are good pull requests that never landed.
    """

    ci_wasted: float
    ci_min_per_landing: float
    attempts_wasted: float
    attempts_refused: float
    landed_per_h: float
    silent_reverts: float
    empty_landings: float
    fairness: float
    people_p50_min: float
    people_p95_min: float
    agents_p95_min: float
    clashes: float
    rebases: float
    unlanded: float
    red_landings: float


def figures_of(played: Played) -> Figures:
    """The numbers of one simulation."""
    world, work = played.world, played.work
    wanted = [(at, head) for at, head in played.landed if world.is_wanted(head)]
    all_min = sum(run.minutes for run in played.runs)
    once_min = sum(world.prs[world.heads[head].pr].minutes for _, head in wanted)
    submitted = sum(each.submitted for each in work)
    kinds = Counter(world.heads[head].kind for _, head in played.landed)
    hours = world.scenario.hours
    return Figures(
        ci_wasted=1 - once_min / max(all_min, 1),
        ci_min_per_landing=all_min / max(len(wanted), 1),
        attempts_wasted=1 - len(wanted) / max(submitted, 1),
        attempts_refused=sum(each.refused for each in work) / max(submitted, 1),
        landed_per_h=sum(at <= hours * HOUR_S for at, _ in wanted) / hours,
        silent_reverts=kinds[Kind.STALE],
        empty_landings=kinds[Kind.LANDED],
        fairness=_fairness(work, world.scenario.flood_at_h * HOUR_S),
        people_p50_min=_waits_min(played, 0.50, is_person=True),
        people_p95_min=_waits_min(played, 0.95, is_person=True),
        agents_p95_min=_waits_min(played, 0.95, is_person=False),
        clashes=sum(each.clashes for each in work),
        rebases=sum(each.rebases for each in work),
        unlanded=sum(each.landed_s is None and each.pr.kind is Kind.GOOD for each in work),
        red_landings=world.red_landings,
    )


def mean(found: Sequence[Figures]) -> Figures:
    """The mean of each number over the seeds that have it."""
    joined: dict[str, float] = {}
    for field in fields(Figures):
        values = [value for one in found if not math.isnan(value := getattr(one, field.name))]
        joined[field.name] = fmean(values) if values else math.nan
    return Figures(**joined)


def _waits_min(played: Played, share: float, *, is_person: bool) -> float:
    """A percentile of the time from opening to landing; what never landed took until the end."""
    waits = sorted(
        ((played.end_s if each.landed_s is None else each.landed_s) - each.pr.opened_s) / MINUTE_S
        for each in played.work
        if each.pr.is_person == is_person and (each.landed_s is not None or not each.is_done)
    )
    return waits[min(int(share * len(waits)), len(waits) - 1)] if waits else math.nan


def _fairness(work: Iterable[Work], flood_s: float) -> float:
    """Jain's index over submitters, of the share that each got of a fair division.

    What is divided are the first decisions about pull requests in the hours after the flood; fair
    is max-min: nobody gets more than he has in the queue then, and the rest is even. One that
    entered less than SETTLES_MIN before the end counts for nobody.
    """
    ends_s = flood_s + FAIR_WINDOW_H * HOUR_S
    wanted, got = Counter[int](), Counter[int]()
    for each in work:
        entered_s, end_s = each.entered_s, each.first_end_s
        if entered_s is None or entered_s > ends_s - SETTLES_MIN * MINUTE_S:
            continue
        if end_s is None or end_s >= flood_s:
            wanted[each.pr.submitter] += 1
            got[each.pr.submitter] += end_s is not None and end_s < ends_s
    fair = fair_division(wanted, sum(got.values()))
    shares = [min(got[who] / fair[who], 1.0) for who in fair if fair[who] > 0]
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else math.nan


def fair_division(wanted: Mapping[int, float], total: float) -> dict[int, float]:
    """What everybody gets of a total if nobody gets more than wanted, and the rest is even."""
    found: dict[int, float] = {}
    left = total
    for place, (who, most) in enumerate(sorted(wanted.items(), key=lambda item: item[1])):
        found[who] = min(most, left / (len(wanted) - place))
        left -= found[who]
    return found
