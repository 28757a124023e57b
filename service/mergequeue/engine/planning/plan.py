"""The table of the passes: what follows from the state alone, in which order, and by which rule.

See docs/design/engine.md 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

from service.errors import InvariantBroken
from service.mergequeue.engine.culprits import bisecting
from service.mergequeue.engine.planning import (
    confirming_runs,
    dropping,
    early_looks,
    hedging,
    landing,
    modes,
    screening,
    settling,
    shadow,
    starting,
    trying,
    untested,
)
from service.mergequeue.engine.state import holds, ledger, readiness
from service.mergequeue.engine.state.draft import Draft

_MOVED = "state state_since reason detail"
"""An entry changes its state, or the reason for it."""

_BACK = f"{_MOVED} run batch verified_by bisection kept wide held_by restarts rank"
"""An entry returns to the waiting ones, or to its place in the line."""

_LEFT = f"{_BACK} leaves"
"""An entry leaves, and the others of its batch return."""

_ASIDE = f"{_LEFT} barred retries unready_since build_after"
"""An entry leaves, or is set aside until it is ready again."""

_ENDED = "status finished_at deadline leaves"
"""A run is released, cancelled if it is still under way."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass: what it looks at, the page of its rule, and the fields that it may change.

    `leaves` stands for an entry or run that ends, `begins` for a new run.
    """

    apply: Callable[[Draft], None]
    looks_at: str
    rule: str
    queue: str = ""
    entry: str = ""
    run: str = ""


PASSES = (
    Pass(holds.expire, "holds that end by themselves", "docs/design/engine.md 4.2", queue="holds"),
    Pass(
        readiness.ready,
        "facts, conditions and commands of entries",
        "docs/design/engine.md 5",
        queue="next_seq bisections",
        entry=f"{_ASIDE} seq turn unmet waits refusal cancel cancel_detail facts work",
        run=_ENDED,
    ),
    Pass(
        trying.review,
        "tries under a breaker hold",
        "docs/design/testing.md 6",
        queue="breaker holds",
        entry=_ASIDE,
        run=_ENDED,
    ),
    Pass(
        settling.settle,
        "runs whose reports changed or whose clock ran out",
        "docs/design/testing.md 4",
        queue="bisections breaker greens holds next_hold next_run records untested",
        entry=f"{_ASIDE} screened taken_apart fresh build_tries failed_batches",
        run=f"{_ENDED} begins kind cause attempt built_at rerun_at rerun_ids start_clock failed_at"
        " evidence asked_evidence excused is_flaky is_repeated doomed is_foreseen",
    ),
    Pass(
        ledger.review,
        "records of failed runs whose entries have left",
        "docs/design/testing.md 11",
        queue="breaker records",
    ),
    Pass(
        screening.review_failed_groups,
        "failed groups in the line; the policy says which leave it",
        "docs/design/testing.md 11",
        entry=_LEFT,
        run=f"{_ENDED} cause",
    ),
    Pass(
        bisecting.bisect,
        "searches for culprits; the policy says whether new ones are opened",
        "docs/design/testing.md 8",
        queue="bisections next_bisection",
        entry=f"{_LEFT} failed_batches",
        run=f"{_ENDED} cause",
    ),
    Pass(
        starting.interrupt,
        "waiting entries that are urgent",
        "docs/design/testing.md 1",
        entry=_BACK,
        run=_ENDED,
    ),
    Pass(
        hedging.review,
        "hedges",
        "docs/design/testing.md 10",
        entry=f"{_MOVED} run batch verified_by kept fresh",
        run=f"{_ENDED} kind without",
    ),
    Pass(
        screening.review_second_looks,
        "second looks; the policy says which may count",
        "docs/design/testing.md 11",
        queue="records",
        entry=f"{_LEFT} screened fresh",
        run=f"{_ENDED} kind cause",
    ),
    Pass(
        early_looks.review,
        "early looks; the policy says which are wanted",
        "docs/design/testing.md 11",
        queue="records",
        entry=f"{_LEFT} screened fresh",
        run=f"{_ENDED} kind cause",
    ),
    Pass(
        dropping.drop,
        "runs whose base may hold no more; the policy chooses witnesses",
        "docs/design/testing.md 2",
        entry=_BACK,
        run=f"{_ENDED} kind cause witness_of",
    ),
    Pass(
        confirming_runs.review,
        "witnesses",
        "docs/design/testing.md 11",
        queue="records",
        entry=f"{_LEFT} screened",
        run=f"{_ENDED} cause",
    ),
    Pass(
        shadow.review,
        "a queue in shadow: what would have landed, and what has waited for others long enough",
        "docs/design/shadow.md 1",
        queue="bisections check_history shadow_time",
        entry=f"{_ASIDE} would_land_at refusal",
        run=_ENDED,
    ),
    Pass(
        landing.land,
        "the first unit that has passed",
        "docs/design/landing.md 1",
        queue="landed landing land_after next_landing",
        entry=f"{_LEFT} facts",
        run=_ENDED,
    ),
    Pass(
        untested.review,
        "a tip without a passed test",
        "docs/design/landing.md 10",
        queue="breaker holds next_hold next_run untested",
        run=f"{_ENDED} begins",
    ),
    Pass(
        modes.switch,
        "a mode that is asked for",
        "docs/design/engine.md 3.3",
        queue="bisections config state state_by state_reason state_since target_mode",
        entry=f"{_BACK} unmet unready_since build_after",
        run=_ENDED,
    ),
    Pass(
        starting.start,
        "free slots; the policy says what starts in them",
        "docs/design/testing.md 3",
        queue="bisections breaker greens holds next_run turns",
        entry=f"{_BACK} build_after build_tries fresh",
        run=f"{_ENDED} begins is_repeated",
    ),
    Pass(modes.note_drained, "a queue without runs", "docs/design/engine.md 3.3"),
)
"""In this order; whenever one of them changed something, all begin again.

So nothing lands or starts while anything else is still to be drawn from the state.
`tests/mergequeue/test_passes.py` checks that no pass changes more than its row says.
"""


def settle(draft: Draft) -> None:
    """Plan to a fixed point. Raises InvariantBroken if the passes do not come to rest."""
    rounds_max = 4 * (len(draft.entries) + len(draft.runs)) + 16
    for _ in range(rounds_max):
        if not _has_changed(draft):
            return
    raise InvariantBroken("E8", f"planning did not come to rest in {rounds_max} rounds")


def _has_changed(draft: Draft) -> bool:
    before = draft.revision
    for each in PASSES:
        each.apply(draft)
        if draft.revision != before:
            return True
    return False
