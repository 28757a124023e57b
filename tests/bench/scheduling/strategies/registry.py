"""Every strategy by the name it has in the tables."""

from functools import partial

from tests.bench.scheduling.interface import MakeStrategy
from tests.bench.scheduling.strategies.batch_chain import BatchChain
from tests.bench.scheduling.strategies.chain import Prefix, Zuul
from tests.bench.scheduling.strategies.evi import make_evi
from tests.bench.scheduling.strategies.informed import Gifts, MakeRelaxed, relaxed
from tests.bench.scheduling.strategies.one_at_a_time import Bors, Serial
from tests.bench.scheduling.strategies.oracle import make_batch_oracle, make_oracle
from tests.bench.scheduling.strategies.proto_graph import make_proto
from tests.bench.scheduling.strategies.speculation import Rules, Speculation
from tests.bench.scheduling.workload import Workload

ORACLES = ("oracle", "oracle-batch")

LANES = frozenset({"serial-lanes", "optimistic-lanes"})
"""Without targets the same as serial and prefix."""

CHAINS = frozenset({"evi"})
"""With targets the same as proto."""

BASELINES: dict[str, MakeStrategy] = {
    "serial": Serial,
    "bors": Bors,
    "zuul": Zuul,
    "prefix": Prefix,
    "batch-chain": BatchChain,
    "serial-lanes": partial(Speculation, rules=Rules(name="serial-lanes", depth=0, learns=False)),
    "optimistic-lanes": partial(
        Speculation, rules=Rules(name="optimistic-lanes", prior=0.999, floor=0.5, depth=256)
    ),
    "speculate-all": partial(Speculation, rules=Rules(name="speculate-all", is_uniform=True)),
    "submitqueue": Speculation,
    "submitqueue-thr": partial(Speculation, rules=Rules(name="submitqueue-thr", floor=0.1)),
    "proto": make_proto,
    "evi": make_evi,
}
"""The strategies of the published tables, in their order."""

WITH_RETRY: dict[str, MakeStrategy] = {
    "prefix-r1": partial(Prefix, retries=1),
    "submitqueue-r1": partial(Speculation, rules=Rules(name="submitqueue-r1", retries=1)),
}
"""The same with one automatic retry of a failed run."""

RELAXED: dict[str, MakeRelaxed] = {
    name: make for gifts in Gifts for name, make in relaxed(gifts).items()
}
"""Queues that are told too much, as bounds of what a chain can reach."""


def oracle_of(name: str, workload: Workload) -> MakeStrategy:
    """One of ORACLES, told the truth of this workload."""
    return make_oracle(workload) if name == "oracle" else make_batch_oracle(workload)


def hidden(workload: Workload) -> frozenset[str]:
    """Those that are the same as another here, or cannot run here."""
    if workload.config.use_targets:
        return CHAINS | RELAXED.keys()
    # Relaxed queues know nothing of withdrawals.
    return LANES | RELAXED.keys() if workload.cancel_at else LANES
