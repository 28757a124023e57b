"""The small worlds that are searched, each with its bound.

A scope is complete for its number of inputs. `is_on` says whether the engine has what the scope
is about.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from service.mergequeue.engine.config import (
    BatchSizing,
    ConfirmFailures,
    FairShares,
    Hedging,
    Mode,
    QueueConfig,
)
from service.mergequeue.engine.inputs import LandingStopCode
from service.mergequeue.engine.states import QueueState
from service.vocabulary import MergeMethod


@dataclass(frozen=True)
class Scope:
    """A small world.

    `inputs` is the bound in `make test`, `inputs_long` in `make soak`. `breaks` names the sets
    of pull requests that fail together (a set of one: it is broken); then CI never errs. None:
    CI may say anything at any time. `targets` are what pull requests touch, by number, `p_fail`
    the chance of failing that is said of each. `stacked`: each is put on the one before it.
    With `late` a report may come at the instant at which a clock runs out, with `delays` the
    provider's limits may put off a build. With `evidence` a failure may be explained, with `dooms`
    foreseen and taken back; where CI never errs, wrongly of a main run alone. With
    `failed_tests` each has one of these groups of tests; an empty one: nobody knows which.
    With `reruns` failed checks may run again where they ran, and the provider may refuse it.
    `submitters` are those of the pull requests, in order; `[bot]` ends the name of an agent.
    `is_new`: the queue has no history that foresees who fails.
    """

    name: str
    config: QueueConfig
    pull_requests: int
    inputs: int
    inputs_long: int
    breaks: tuple[frozenset[int], ...] | None = None
    priorities: tuple[int | None, ...] = (None,)
    versions: int = 1
    states: tuple[QueueState, ...] = ()
    stops: tuple[LandingStopCode, ...] = ()
    wait_max: timedelta = timedelta(seconds=100)
    cancels: bool = False
    restarts: bool = False
    conflicts: bool = False
    delays: bool = False
    foreign: bool = False
    by_hand: bool = False
    unknown: bool = False
    interrupted: bool = False
    skipped: bool = False
    evidence: bool = False
    dooms: bool = False
    failed_tests: tuple[tuple[str, ...], ...] = ()
    revokes: bool = False
    reruns: bool = False
    crashes: bool = False
    late: bool = False
    stacked: bool = False
    targets: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    uploads: tuple[tuple[str, ...], ...] = ()
    modes: tuple[Mode, ...] = ()
    p_fail: float | None = None
    submitters: tuple[str, ...] = ()
    is_new: bool = False
    is_on: bool = True

    @property
    def is_symmetric(self) -> bool:
        """Whether pull requests differ in nothing but their number."""
        is_told_apart = bool(self.targets) or self.stacked or bool(self.submitters)
        return self.breaks is None and not is_told_apart


def _config(**settings: object) -> QueueConfig:
    """Clocks of hours are put beyond every bound: within it they cannot run out."""
    known: dict[str, object] = {
        "concurrency": 2,
        "not_ready_timeout_hours": 0,
        "check_start_timeout_minutes": 1440,
        "testing_timeout_minutes": 10080,
        "result_reuse_enabled": False,
    }
    return QueueConfig(**(known | settings))  # type: ignore[arg-type]


_ALL_STATES = (QueueState.RUNNING, QueueState.PAUSED, QueueState.DRAINING)
_STOPS = (LandingStopCode.STALE, LandingStopCode.CONFLICT, LandingStopCode.PR_REFUSED)
_PAIR = (frozenset({1, 3}),)
_ONE = (frozenset({2}),)
_BATCH = {"batch": True, "batching_min_size": 2, "batching_max_wait_time_minutes": 1}
_CLEARED = {
    "batch_sizing": BatchSizing.ADAPTIVE,
    "full_suite": True,
    "can_optimistically_merge": True,
}
"""With these a follower that passes clears what it contains."""
_LANES = {1: ("a",), 2: ("b",), 3: ("a", "b")}

HALF_WAY = Scope(
    "a batch that stops half-way",
    _config(**_BATCH),
    pull_requests=3,
    inputs=9,
    inputs_long=13,
    states=(QueueState.RUNNING, QueueState.PAUSED),
    stops=(LandingStopCode.STALE, LandingStopCode.PR_REFUSED),
    breaks=(frozenset({1}),),
    cancels=True,
    foreign=True,
)
"""The merge call lands one pull request of it, and then the other one does not follow."""

SCOPES: tuple[Scope, ...] = (
    Scope(
        "SINGLE, submitters take turns",
        _config(concurrency=1, fair_shares=FairShares.SUBMITTERS),
        pull_requests=4,
        inputs=7,
        inputs_long=11,
        submitters=("ann", "ann", "ann", "bob"),
        cancels=True,
    ),
    Scope(
        "SINGLE, people and agents take turns",
        _config(concurrency=1, fair_shares=FairShares.PEOPLE_AND_AGENTS),
        pull_requests=4,
        inputs=7,
        inputs_long=11,
        submitters=("a[bot]", "a[bot]", "ann", "b[bot]"),
        cancels=True,
    ),
    Scope(
        "SINGLE, failed checks run again",
        _config(confirm_failures=ConfirmFailures.ALWAYS, concurrency=1),
        pull_requests=2,
        inputs=9,
        inputs_long=12,
        cancels=True,
        foreign=True,
        reruns=True,
    ),
    Scope(
        "adaptive, failed checks run again",
        _config(batch_sizing=BatchSizing.ADAPTIVE),
        pull_requests=2,
        inputs=8,
        inputs_long=11,
        states=(QueueState.RUNNING, QueueState.PAUSED),
        p_fail=0.3,
        cancels=True,
        foreign=True,
        reruns=True,
    ),
    Scope(
        "SINGLE, anything CI may say",
        _config(confirm_failures=ConfirmFailures.ALWAYS),
        pull_requests=3,
        inputs=8,
        inputs_long=14,
        conflicts=True,
        cancels=True,
    ),
    Scope(
        "SINGLE, CI skips the check",
        _config(can_optimistically_merge=True, pending_failure_depth=1),
        pull_requests=3,
        inputs=8,
        inputs_long=12,
        skipped=True,
    ),
    Scope(
        "SINGLE, people against a landing",
        _config(concurrency=2, merge_method=MergeMethod.MERGE_COMMIT),
        pull_requests=2,
        inputs=6,
        inputs_long=12,
        versions=2,
        cancels=True,
        restarts=True,
        states=_ALL_STATES,
        stops=_STOPS,
        unknown=True,
        crashes=True,
    ),
    Scope(
        "SINGLE, one stack",
        _config(concurrency=2, merge_method=MergeMethod.MERGE_COMMIT),
        pull_requests=3,
        inputs=6,
        inputs_long=12,
        versions=2,
        cancels=True,
        by_hand=True,
        stops=(LandingStopCode.STALE,),
        stacked=True,
    ),
    Scope(
        "SINGLE, the branch moves",
        _config(concurrency=2, result_reuse_enabled=True),
        pull_requests=3,
        inputs=6,
        inputs_long=12,
        foreign=True,
        by_hand=True,
        crashes=True,
        stops=(LandingStopCode.STALE,),
    ),
    Scope(
        "SINGLE, the provider's limits delay builds",
        _config(concurrency=2, confirm_failures=ConfirmFailures.ALWAYS),
        pull_requests=3,
        inputs=6,
        inputs_long=11,
        delays=True,
        cancels=True,
        restarts=True,
        states=(QueueState.RUNNING, QueueState.PAUSED),
    ),
    Scope(
        "SINGLE, urgent among four",
        _config(concurrency=3),
        pull_requests=4,
        inputs=6,
        inputs_long=12,
        priorities=(None, 0),
        cancels=True,
    ),
    Scope(
        "SINGLE, interrupted CI and evidence",
        _config(concurrency=2),
        pull_requests=2,
        inputs=7,
        inputs_long=13,
        interrupted=True,
        evidence=True,
        restarts=True,
    ),
    Scope(
        "SINGLE, failures are foreseen",
        _config(confirm_failures=ConfirmFailures.OFF),
        pull_requests=2,
        inputs=9,
        inputs_long=14,
        interrupted=True,
        evidence=True,
        dooms=True,
    ),
    Scope(
        "batch of 2, failures are foreseen, CI that never errs",
        _config(**_BATCH, confirm_failures=ConfirmFailures.OFF),
        pull_requests=3,
        inputs=10,
        inputs_long=14,
        breaks=(*_PAIR, *_ONE),
        dooms=True,
    ),
    Scope(
        "optimistic, failures are foreseen",
        _config(can_optimistically_merge=True, pending_failure_depth=1),
        pull_requests=2,
        inputs=8,
        inputs_long=13,
        cancels=True,
        dooms=True,
    ),
    Scope(
        "adaptive, failures are foreseen, CI that never errs",
        _config(**(_BATCH | {"batch_sizing": BatchSizing.ADAPTIVE})),
        p_fail=0.1,
        pull_requests=2,
        inputs=10,
        inputs_long=14,
        breaks=_ONE,
        dooms=True,
    ),
    Scope(
        "SINGLE, passes are revoked",
        _config(can_optimistically_merge=True, pending_failure_depth=1, result_reuse_enabled=True),
        pull_requests=2,
        inputs=8,
        inputs_long=13,
        revokes=True,
        cancels=True,
        stops=(LandingStopCode.STALE, LandingStopCode.UNAVAILABLE),
    ),
    Scope(
        "SINGLE, CI that never errs, a pair that fails together",
        _config(concurrency=3),
        pull_requests=4,
        inputs=7,
        inputs_long=13,
        breaks=(*_PAIR, *_ONE),
        cancels=True,
        foreign=True,
    ),
    Scope(
        "batch of 2",
        _config(**_BATCH),
        pull_requests=4,
        inputs=7,
        inputs_long=13,
        cancels=True,
        conflicts=True,
    ),
    HALF_WAY,
    Scope(
        "batch of 2, CI that never errs",
        _config(**_BATCH),
        pull_requests=4,
        inputs=7,
        inputs_long=14,
        breaks=(*_PAIR, *_ONE),
        cancels=True,
        foreign=True,
    ),
    Scope(
        "optimistic, depth 1",
        _config(can_optimistically_merge=True, pending_failure_depth=1),
        pull_requests=3,
        inputs=7,
        inputs_long=14,
        cancels=True,
        stops=(LandingStopCode.STALE, LandingStopCode.CONFLICT),
        late=True,
    ),
    Scope(
        "PARALLEL, targets a, b and both",
        _config(mode=Mode.PARALLEL, concurrency=3),
        pull_requests=3,
        inputs=6,
        inputs_long=12,
        targets=_LANES,
        uploads=(("a",), ("a", "b")),
        cancels=True,
    ),
    Scope(
        "PARALLEL and back, batches, CI that never errs",
        _config(mode=Mode.PARALLEL, **_BATCH),
        pull_requests=3,
        inputs=11,
        inputs_long=16,
        targets=_LANES,
        breaks=(frozenset({1, 3}),),
        modes=(Mode.SINGLE, Mode.PARALLEL),
    ),
    Scope(
        "adaptive sizes and screens",
        _config(**(_BATCH | {"batch_sizing": BatchSizing.ADAPTIVE})),
        p_fail=0.1,
        pull_requests=3,
        inputs=9,
        inputs_long=15,
        cancels=True,
    ),
    Scope(
        "failed tests are named",
        _config(**_BATCH, **_CLEARED),
        pull_requests=3,
        inputs=9,
        inputs_long=13,
        failed_tests=((), ("t1",), ("t2",), ("t1", "t2")),
    ),
    Scope(
        "witnesses",
        _config(concurrency=4, **_CLEARED),
        pull_requests=2,
        inputs=8,
        inputs_long=12,
        failed_tests=((), ("t1",)),
        cancels=True,
        late=True,
    ),
    Scope(
        "witnesses, CI that never errs, a pair that fails together",
        _config(concurrency=4, **_CLEARED),
        pull_requests=3,
        inputs=9,
        inputs_long=14,
        breaks=(frozenset({1, 2}), frozenset({3})),
    ),
    Scope(
        "early looks",
        _config(concurrency=4, **_BATCH | _CLEARED),
        p_fail=0.1,
        pull_requests=2,
        inputs=8,
        inputs_long=12,
        cancels=True,
        late=True,
        is_new=True,
    ),
    Scope(
        "early looks, CI that never errs, a pair that fails together",
        _config(concurrency=6, **_BATCH | _CLEARED),
        p_fail=0.1,
        pull_requests=3,
        inputs=9,
        inputs_long=13,
        breaks=(frozenset({1, 2}), frozenset({3})),
        is_new=True,
    ),
    Scope(
        "second looks",
        _config(**(_BATCH | {"batch_sizing": BatchSizing.ADAPTIVE, "concurrency": 3})),
        p_fail=0.4,
        pull_requests=2,
        inputs=8,
        inputs_long=14,
        cancels=True,
        late=True,
    ),
    Scope(
        "hedging",
        _config(concurrency=3, hedging=Hedging.SPARE_SLOTS, hedge_threshold=0.05),
        p_fail=0.4,
        pull_requests=3,
        inputs=7,
        inputs_long=13,
        cancels=True,
    ),
)
"""Every scope; each is one test."""
