"""The two policies, chosen by `batchSizing`. The rest of the engine enters the package here."""

from service.mergequeue.engine.config import BatchSizing, QueueConfig
from service.mergequeue.engine.policy import adaptive, batching, questions, screening
from service.mergequeue.engine.policy.questions import Policy

FIXED = Policy(
    starts=questions.Starts,
    is_isolated=batching.is_isolated,
    waits_until=batching.waits_until,
    suspects=questions.Suspects,
    confirms=questions.Confirms,
    retests=lambda *_: [],
)

ADAPTIVE = Policy(
    starts=adaptive.AdaptiveStarts,
    is_isolated=batching.is_isolated_once_failed,
    waits_until=lambda *_: None,
    suspects=adaptive.AdaptiveSuspects,
    confirms=adaptive.AdaptiveConfirms,
    retests=screening.groups_to_retest,
)

_CHOSEN = {BatchSizing.FIXED: FIXED, BatchSizing.ADAPTIVE: ADAPTIVE}


def policy_of(config: QueueConfig) -> Policy:
    """Return the policy of a queue with these settings."""
    return _CHOSEN[config.batch_sizing]
