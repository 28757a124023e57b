"""Judge whether a queue can foresee which of its entries fail (docs/design/early-looks.md)."""

from service.mergequeue.engine.config import BatchSizing
from service.mergequeue.engine.policy import constants
from service.mergequeue.engine.state.draft import Draft


def is_lacking(draft: Draft) -> bool:
    """Return whether the queue tests entries of its line alone at the same time.

    Its estimates foresee few failures, a run in the line proves all below it, and conflicts, of
    which a test alone says nothing, are rare.
    """
    config, rates = draft.queue.config, draft.queue.rates
    return (
        config.batch_sizing is BatchSizing.ADAPTIVE
        and config.batch
        and config.can_optimistically_merge
        and not draft.is_parallel
        and rates.foreseen < constants.FORESEEN_MIN
        and rates.conflict <= constants.CALM_CONFLICTS_MAX
    )


def convicted_min(draft: Draft) -> float:
    """Return the least belief by which a failure alone rejects an entry."""
    return constants.EARLY_CONVICTED_MIN if is_lacking(draft) else constants.CONVICTED_MIN
