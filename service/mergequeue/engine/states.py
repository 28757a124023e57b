"""States and their transitions, as data (docs/design/engine.md 3).

`draft.py` looks every change of state up here; anything not listed is our own mistake.
"""

from enum import StrEnum


class EntryState(StrEnum):
    """The state of a pull request."""

    NOT_READY = "NOT_READY"
    PENDING = "PENDING"
    TESTING = "TESTING"
    TESTS_PASSED = "TESTS_PASSED"
    PENDING_FAILURE = "PENDING_FAILURE"
    MERGED = "MERGED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class RunStatus(StrEnum):
    """The status of a test run."""

    IN_PROGRESS = "in_progress"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunPhase(StrEnum):
    """Inside in_progress: the test branch is being made, or its checks run."""

    BUILDING = "building"
    TESTING = "testing"


class RunKind(StrEnum):
    """The purposes of runs (docs/design/engine.md 3.2)."""

    MAIN = "main"
    PROBE = "probe"
    CONFIRMATION = "confirmation"
    HEDGE = "hedge"
    SCREEN = "screen"
    SECOND_LOOK = "second_look"
    EARLY_LOOK = "early_look"
    WITNESS = "witness"
    TRY = "try"
    TIP = "tip"
    DIRECT = "direct"


class QueueState(StrEnum):
    """The state of a queue."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    DRAINING = "DRAINING"
    SWITCHING_MODES = "SWITCHING_MODES"


FINAL = frozenset({EntryState.MERGED, EntryState.FAILED, EntryState.CANCELLED})
"""Nothing leaves these; submitting again makes a new entry."""

GIVES_WAY = frozenset({RunKind.HEDGE, RunKind.SECOND_LOOK, RunKind.WITNESS, RunKind.TRY})
"""Runs that end when something else needs their slot."""

SPARE = GIVES_WAY | {RunKind.EARLY_LOOK}
"""Runs that begin in slots that nothing else uses, and prove nothing for their entries."""

MAIN_SLOTS = frozenset({RunKind.MAIN, RunKind.SCREEN}) | SPARE
"""Runs that take main slots while in progress (docs/design/testing.md 3)."""

PROBE_SLOTS = frozenset({RunKind.PROBE, RunKind.CONFIRMATION})
"""Runs that take probe slots, or share the main ones."""

LANDS = frozenset({QueueState.RUNNING, QueueState.DRAINING, QueueState.SWITCHING_MODES})
"""Queue states in which passed entries land."""

_LEAVES = frozenset({EntryState.CANCELLED, EntryState.MERGED})

_AFTER_TESTS = _LEAVES | {
    EntryState.PENDING,
    EntryState.NOT_READY,
    EntryState.TESTING,
    EntryState.PENDING_FAILURE,
    EntryState.FAILED,
}

ENTRY_TRANSITIONS: dict[EntryState, frozenset[EntryState]] = {
    EntryState.NOT_READY: _LEAVES | {EntryState.PENDING},
    EntryState.PENDING: _AFTER_TESTS - {EntryState.PENDING_FAILURE} | {EntryState.TESTS_PASSED},
    EntryState.TESTING: _AFTER_TESTS | {EntryState.TESTS_PASSED},
    EntryState.TESTS_PASSED: _AFTER_TESTS,
    EntryState.PENDING_FAILURE: _AFTER_TESTS | {EntryState.TESTS_PASSED},
    EntryState.MERGED: frozenset(),
    EntryState.FAILED: frozenset(),
    EntryState.CANCELLED: frozenset(),
}
"""From → to (docs/design/engine.md 3.1). A new reason inside PENDING is a step to itself."""

RUN_TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.IN_PROGRESS: frozenset(
        {RunStatus.IN_PROGRESS, RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED}
    ),
    RunStatus.FAILED: frozenset({RunStatus.SUCCEEDED, RunStatus.IN_PROGRESS}),
    RunStatus.SUCCEEDED: frozenset({RunStatus.IN_PROGRESS, RunStatus.FAILED}),
    RunStatus.CANCELLED: frozenset(),
}
"""From → to while an entry refers to the run; a retired run never changes.

See docs/design/engine.md 3.2.
"""

QUEUE_TRANSITIONS: dict[QueueState, frozenset[QueueState]] = {
    QueueState.RUNNING: frozenset(QueueState),
    QueueState.PAUSED: frozenset(QueueState),
    QueueState.DRAINING: frozenset(QueueState),
    QueueState.SWITCHING_MODES: frozenset({QueueState.RUNNING, QueueState.SWITCHING_MODES}),
}
"""From → to (docs/design/engine.md 3.3)."""
