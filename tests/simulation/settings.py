"""How a history's queue is set: mode and settings drawn by its seed, by one table of weights."""

import random
from dataclasses import dataclass

from service.mergequeue.engine.config import (
    BatchingRule,
    BatchSizing,
    ConfigValue,
    ConfirmFailures,
    Hedging,
    Mode,
    OptimizationMode,
    QueueConfig,
    Toggle,
)
from service.vocabulary import MergeMethod


@dataclass(frozen=True)
class Weights:
    """How often a history has each thing, from 0 (the engine has it not) to 1.

    `slots`: the most test runs at the same time.
    """

    parallel: float
    switches: float
    batch: float
    adaptive: float
    rules: float
    optimistic: float
    hedging: float
    skips_redundant: float
    skips_checks: float = 0.0
    revokes: float = 0.0
    dooms: float = 0.0
    stacks: float = 0.0
    is_slow: float = 0.0
    impacts_all: float = 0.08
    sends_results: float = 0.3
    reruns: float = 0.5
    slots: int = 4


EVERYTHING = Weights(
    parallel=0.45,
    switches=0.2,
    batch=0.6,
    adaptive=0.25,
    rules=0.3,
    optimistic=0.4,
    hedging=0.25,
    skips_redundant=0.3,
    skips_checks=0.3,
    revokes=0.3,
    stacks=0.3,
    is_slow=0.2,
)
"""All that docs/design/engine.md says."""

SINGLE_ONLY = Weights(
    parallel=0, switches=0, batch=0, adaptive=0, rules=0, optimistic=0, hedging=0, skips_redundant=0
)
"""One line, one pull request a run."""

DRAWN = EVERYTHING
"""What histories are drawn by: the one place to switch on what the engine has."""

TARGETS = ("a", "b", "c")


def a_config(chance: random.Random, weights: Weights = DRAWN) -> QueueConfig:
    """Settings for one history."""
    config = QueueConfig(
        concurrency=chance.randint(1, weights.slots),
        bisection_concurrency=chance.randint(0, 2),
        confirm_failures=chance.choice(tuple(ConfirmFailures)),
        auto_retry_limit=chance.randint(0, 2),
        merge_method=chance.choice((MergeMethod.SQUASH, MergeMethod.MERGE_COMMIT)),
        direct_merge_mode=chance.choice((Toggle.OFF, Toggle.OFF, Toggle.ALWAYS)),
        result_reuse_enabled=chance.random() < 0.8,
        not_ready_timeout_hours=0,
    )
    changes: dict[str, ConfigValue] = {}
    if chance.random() < weights.parallel:
        changes["mode"] = Mode.PARALLEL
    if chance.random() < weights.batch:
        changes |= {"batch": True, **_of_batches(chance, weights)}
        changes["bisection_concurrency"] = chance.randint(0, 3)
    if chance.random() < weights.optimistic:
        changes |= _of_optimism(chance)
    if chance.random() < weights.hedging:
        changes |= {"hedging": Hedging.SPARE_SLOTS, "hedge_threshold": 0.05}
    if chance.random() < weights.skips_redundant:
        changes["optimization_mode"] = OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS
    return QueueConfig(**{**_values(config), **changes})  # type: ignore[arg-type]


def a_change(chance: random.Random, weights: Weights = DRAWN) -> dict[str, ConfigValue]:
    """What an administrator may change half way; never the mode."""
    changes: list[dict[str, ConfigValue]] = [
        {"concurrency": chance.randint(1, weights.slots)},
        {"bisection_concurrency": chance.randint(0, 3)},
        {"confirm_failures": chance.choice(tuple(ConfirmFailures))},
        {"auto_retry_limit": chance.randint(0, 2)},
    ]
    if weights.batch:
        changes += [{"batch": chance.random() < 0.7}, _of_batches(chance, weights)]
    if weights.optimistic:
        changes += [_of_optimism(chance), {"can_optimistically_merge": False}]
    if weights.hedging:
        changes.append({"hedging": chance.choice(tuple(Hedging))})
    return chance.choice(changes)


def _of_batches(chance: random.Random, weights: Weights) -> dict[str, ConfigValue]:
    changes: dict[str, ConfigValue] = {
        "batching_min_size": chance.randint(1, 5),
        "batching_max_wait_time_minutes": chance.choice((0, 1, 5)),
    }
    if chance.random() < weights.adaptive:
        changes["batch_sizing"] = BatchSizing.ADAPTIVE
    if chance.random() < weights.rules:
        changes["batching_rules"] = (BatchingRule(chance.choice((*TARGETS, "a*"))),)
    return changes


def _of_optimism(chance: random.Random) -> dict[str, ConfigValue]:
    return {"can_optimistically_merge": True, "pending_failure_depth": chance.randint(0, 2)}


def _values(config: QueueConfig) -> dict[str, ConfigValue]:
    return {name: getattr(config, name) for name in config.__slots__}
