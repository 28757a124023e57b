"""The yardstick: what an oracle with unlimited workers would reach, in closed form.

Every pull request is tested once, on arrival, against the base that will really be there; it is
decided when its own run and every earlier one that may conflict are done. Without targets that
is a chain in order of arrival.
"""

from tests.bench.scheduling import chance
from tests.bench.scheduling.audit import Findings, PrState
from tests.bench.scheduling.simulator import Result
from tests.bench.scheduling.workload import Workload


def ideal(workload: Workload) -> Result:
    """The ideal's decisions as the result of a simulation."""
    durations = undisturbed(workload)
    ends = [at + takes for at, takes in zip(workload.arrive, durations, strict=True)]
    is_graph = workload.config.use_targets
    decided = _through_graph(workload, ends) if is_graph else _through_chain(ends)
    return _decided(workload, durations, decided)


def alone(workload: Workload) -> Result:
    """The same if none waits for another: no queue decides sooner, but by luck."""
    durations = undisturbed(workload)
    decided = [at + takes for at, takes in zip(workload.arrive, durations, strict=True)]
    return _decided(workload, durations, decided)


def yardstick(workload: Workload) -> Result:
    """What the figures are divided by.

    An oracle that keeps the order waits for each run that takes very long, and every queue that may
    batch is sooner. So where times have a long tail, it is one run for each.
    """
    return alone(workload) if workload.config.world.time else ideal(workload)


def _decided(workload: Workload, durations: list[float], decided: list[float]) -> Result:
    result = Result(
        strategy="ideal",
        workers=0,
        workload=workload,
        state=[PrState.MERGED if good else PrState.EJECTED for good in fifo_outcome(workload)],
        decided=decided,
        findings=Findings(),
    )
    result.runs_started = result.runs_finished = workload.config.n
    result.busy = sum(durations)
    return result


def undisturbed(workload: Workload) -> list[float]:
    """Seconds that the first run of each one alone takes."""
    config = workload.config
    keys = [chance.run_key(config.seed, (pr,), 0) for pr in range(config.n)]
    return [
        takes * chance.noise(config.d_noise, key) * config.world.time_factor(key)
        for takes, key in zip(workload.duration, keys, strict=True)
    ]


def fifo_outcome(workload: Workload) -> list[bool]:
    """Which merge when they are taken strictly in order, without flakes."""
    good: list[bool] = []
    for pr in range(workload.config.n):
        clashes = any(other < pr and good[other] for other in workload.conflicts[pr])
        good.append(not workload.broken[pr] and not clashes)
    return good


def _through_chain(ends: list[float]) -> list[float]:
    decided, last = [], 0.0
    for end in ends:
        last = max(last, end)
        decided.append(last)
    return decided


def _through_graph(workload: Workload, ends: list[float]) -> list[float]:
    decided: list[float] = []
    of_target: dict[int, float] = {}
    last_of_any = last_of_all = 0.0
    for end, targets in zip(ends, workload.targets, strict=True):
        if targets is None:
            at = last_of_all = max(end, last_of_any)
        else:
            at = max(end, last_of_all, *(of_target.get(target, 0.0) for target in targets))
            for target in targets:
                of_target[target] = at
        last_of_any = max(last_of_any, at)
        decided.append(at)
    return decided
