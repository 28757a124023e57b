"""A queue's settings: fields, defaults and ranges (ENGINE.md 2, API.md 5.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum

from service.vocabulary import MergeMethod


class Mode(StrEnum):
    """One line, or lanes by impacted targets."""

    SINGLE = "SINGLE"
    PARALLEL = "PARALLEL"


class Toggle(StrEnum):
    """`directMergeMode`."""

    OFF = "OFF"
    ALWAYS = "ALWAYS"


class OptimizationMode(StrEnum):
    """Which probes may take an earlier result."""

    OFF = "OFF"
    BISECTION_SKIP_REDUNDANT_TESTS = "BISECTION_SKIP_REDUNDANT_TESTS"


class ConfirmFailures(StrEnum):
    """When a failure is confirmed by a second run before a pull request is rejected.

    ALWAYS: also of a pull request that was tested alone. BISECTION: only of a culprit found in a
    batch (ENGINE.md 10.3).
    """

    OFF = "OFF"
    BISECTION = "BISECTION"
    ALWAYS = "ALWAYS"


class Hedging(StrEnum):
    """Whether spare slots test alternative bases."""

    OFF = "OFF"
    SPARE_SLOTS = "SPARE_SLOTS"


class BatchSizing(StrEnum):
    """How large batches become."""

    FIXED = "FIXED"
    ADAPTIVE = "ADAPTIVE"


class ForkPolicy(StrEnum):
    """Whether pull requests from forks may enter (RELIABILITY.md 8.3)."""

    REQUIRE_MAINTAINER = "REQUIRE_MAINTAINER"
    DENY = "DENY"


class TestBranchConstruction(StrEnum):
    """How a finished scratch branch is published (GITHUB.md 3.3)."""

    __test__ = False
    RENAME_TEMP_BRANCH = "RENAME_TEMP_BRANCH"
    PUSH_NEW_BRANCH_FROM_TEMP = "PUSH_NEW_BRANCH_FROM_TEMP"


@dataclass(frozen=True, slots=True)
class BatchingRule:
    """Entries with a matching target travel alone; the pattern is exact or ends in `*`."""

    target_pattern: str
    policy: str = "ISOLATE"


ConfigValue = bool | int | float | str | None | tuple[str, ...] | tuple[BatchingRule, ...]
"""What one setting can hold."""


@dataclass(frozen=True, slots=True)
class QueueConfig:
    """All settings of a queue; those the engine does not read are carried for the shell."""

    mode: Mode = Mode.SINGLE
    concurrency: int = 1
    bisection_concurrency: int = 1
    testing_timeout_minutes: int = 300
    check_start_timeout_minutes: int = 15
    not_ready_timeout_hours: float = 24
    can_optimistically_merge: bool = False
    pending_failure_depth: int = 0
    batch: bool = False
    batching_min_size: int = 4
    batching_max_wait_time_minutes: int = 5
    batch_sizing: BatchSizing = BatchSizing.FIXED
    batching_rules: tuple[BatchingRule, ...] = ()
    optimization_mode: OptimizationMode = OptimizationMode.OFF
    result_reuse_enabled: bool = True
    direct_merge_mode: Toggle = Toggle.OFF
    auto_retry_limit: int = 1
    flaky_knowledge_enabled: bool = True
    max_excused_failures: int = 5
    confirm_failures: ConfirmFailures = ConfirmFailures.ALWAYS
    hedging: Hedging = Hedging.OFF
    hedge_threshold: float = 0.3
    full_suite: bool = False
    required_statuses: tuple[str, ...] | None = None
    merge_method: MergeMethod = MergeMethod.SQUASH
    create_prs_for_testing_branches: bool = True
    test_branch_construction_mode: TestBranchConstruction = (
        TestBranchConstruction.RENAME_TEMP_BRANCH
    )
    skipped_statuses_pass: bool = True
    comments_enabled: bool = True
    commands_enabled: bool = True
    status_check_enabled: bool = True
    label_commands_enabled: bool = True
    state_labels_enabled: bool = False
    extension_enabled: bool = True
    enqueueing_label: str = "headgate-submit"
    fork_policy: ForkPolicy = ForkPolicy.REQUIRE_MAINTAINER
    allowed_bot_submitters: tuple[str, ...] = ()


RANGES: dict[str, tuple[float, float]] = {
    "concurrency": (1, 1000),
    "bisection_concurrency": (0, 1000),
    "testing_timeout_minutes": (1, 10080),
    "check_start_timeout_minutes": (1, 1440),
    "not_ready_timeout_hours": (0, 720),
    "pending_failure_depth": (0, 1000),
    "batching_min_size": (1, 1000),
    "batching_max_wait_time_minutes": (0, 10080),
    "auto_retry_limit": (0, 10),
    "max_excused_failures": (0, 1000),
    "hedge_threshold": (0.05, 0.95),
}
"""Least and greatest value of each number, both allowed (API.md 5.1)."""

NOT_AVAILABLE_YET = frozenset(
    {
        "state_labels_enabled",
    }
)
"""Settings whose behavior does not exist: any value but the default is refused openly."""

CLI_DEFAULTS: Mapping[str, ConfigValue] = {
    "concurrency": 5,
    "bisection_concurrency": 5,
    "direct_merge_mode": Toggle.ALWAYS,
}
"""What the command line, the dashboard and the first `/merge` set (API.md 5.1)."""


def out_of_range(changes: Mapping[str, ConfigValue]) -> str | None:
    """Return the first change that names no setting or is outside its range, else None."""
    known = {field.name for field in fields(QueueConfig)}
    for name, value in changes.items():
        if name not in known:
            return name
        bounds = RANGES.get(name)
        if bounds is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            return name
        if not bounds[0] <= value <= bounds[1]:
            return name
    return None


def changed(config: QueueConfig, changes: Mapping[str, ConfigValue]) -> QueueConfig:
    """The settings with some of them replaced. The changes have passed `out_of_range`."""
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    values.update(changes)
    return QueueConfig(**values)


def not_available_yet(changes: Mapping[str, ConfigValue]) -> tuple[str, ...]:
    """Changed settings that would have no effect, in the order given."""
    default = QueueConfig()
    return tuple(
        name
        for name, value in changes.items()
        if name in NOT_AVAILABLE_YET and value != getattr(default, name)
    )
