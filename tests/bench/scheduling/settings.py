"""Recommended settings of the engine, by name: the one place where they stand.

Each name gives what differs from the defaults, for what a strategy is told of its world.
"""

from collections.abc import Callable, Mapping

from service.mergequeue.engine import config
from service.mergequeue.engine.config import (
    BatchSizing,
    ConfigValue,
    ConfirmFailures,
    Hedging,
    Mode,
    QueueConfig,
)
from tests.bench.scheduling.interface import StrategyConfig

Changes = Mapping[str, ConfigValue]

BATCH_MAX = 16
"""The cap of a batch that is sized by load (docs/design/testing.md 11)."""

FIXED_BATCH = 4
"""What the chain of fixed batches has (strategies/batch_chain.py)."""


def adaptive(told: StrategyConfig) -> Changes:
    """Batches sized by load; spare slots hedge where a run proves only what it tests."""
    return {
        "batch": True,
        "batch_sizing": BatchSizing.ADAPTIVE,
        "batching_min_size": BATCH_MAX,
        "can_optimistically_merge": told.full_suite,
        "confirm_failures": ConfirmFailures.ALWAYS,
        "hedging": Hedging.OFF if told.full_suite else Hedging.SPARE_SLOTS,
    }


def fixed(told: StrategyConfig) -> Changes:
    """Fixed batches: what is to be compared with `batch-chain`; none waits for company.

    Like that chain, a failed batch waits for followers that may clear it where a run proves its
    base too, at a depth of 0: at a depth of 2 F 30 x 24 is slower (4.5 / 11.3 times the ideal
    against 3.0 / 7.7 without optimistic merging).
    """
    return {
        **plain(told),
        "batch": True,
        "batching_min_size": FIXED_BATCH,
        "batching_max_wait_time_minutes": 0,
    }


def plain(told: StrategyConfig) -> Changes:
    """No batches: what is to be compared with `prefix`. Spare slots hedge."""
    return {
        "can_optimistically_merge": told.full_suite,
        "hedging": Hedging.SPARE_SLOTS,
    }


RECOMMENDED: dict[str, Callable[[StrategyConfig], Changes]] = {
    "headgate": adaptive,
    "headgate-fixed": fixed,
    "headgate-plain": plain,
}


def settings_of(name: str, told: StrategyConfig) -> QueueConfig:
    """All settings of a queue under this name."""
    return config.changed(QueueConfig(), {**_world(told), **RECOMMENDED[name](told)})


def _world(told: StrategyConfig) -> Changes:
    """What the simulated world decides: slots, targets, what a run proves, a CI that hangs never.

    An equal tree proves nothing where a run tests only its own pull requests' targets.
    """
    return {
        "mode": Mode.PARALLEL if told.use_targets else Mode.SINGLE,
        "concurrency": told.workers,
        "full_suite": told.full_suite,
        "bisection_concurrency": 0,
        "result_reuse_enabled": told.full_suite,
        "check_start_timeout_minutes": config.RANGES["check_start_timeout_minutes"].maximum,
        "testing_timeout_minutes": config.RANGES["testing_timeout_minutes"].maximum,
    }
