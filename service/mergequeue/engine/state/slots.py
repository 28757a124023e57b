"""Slots: how many are free, and which runs share them (docs/design/testing.md 3)."""

from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import GIVES_WAY, MAIN_SLOTS, PROBE_SLOTS, RunKind

_ALL_SLOTS = MAIN_SLOTS | PROBE_SLOTS


def free(draft: Draft) -> int:
    """Main slots that are free, or used by runs that give way to everything."""
    return unused(draft) + draft.runs.in_progress(GIVES_WAY)


def unused(draft: Draft) -> int:
    """Main slots that nothing uses."""
    return draft.queue.config.concurrency - draft.runs.in_progress(in_main(draft))


def in_main(draft: Draft) -> frozenset[RunKind]:
    """The kinds of runs that share the main slots."""
    return _ALL_SLOTS if draft.queue.config.bisection_concurrency == 0 else MAIN_SLOTS


def for_probes(draft: Draft) -> int:
    """Slots that are free for probes and confirmations."""
    own = draft.queue.config.bisection_concurrency
    if own == 0:
        return free(draft)
    return own - draft.runs.in_progress(PROBE_SLOTS)
